//! The budgets of a grant, as they are written, made ready to be judged.

use suture_model::kinds::Kind;
use suture_specs::spec::{Budget, KindRef, OperatorGrant, SpecError};
use suture_specs::time::parse_duration;

use super::history::Taken;

/// A budget, ready to be judged.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    /// The kind that is counted.
    pub kind: KindRef,
    /// How many may be deleted; with `percent` how many of a hundred of a workload's.
    pub max: u32,
    /// Of a budget for disruptions.
    pub percent: Option<u32>,
    /// In nanoseconds.
    pub window: i128,
    /// As it was written.
    pub text: String,
}

impl Limit {
    /// Whether an object that is taken away counts.
    pub fn counts(&self, taken: &Taken) -> bool {
        self.kind.matches(&taken.key.kind)
    }
}

/// The limits of a grant, and what is wrong with the others.
pub(super) fn limits(grant: &OperatorGrant) -> (Vec<Limit>, Vec<SpecError>) {
    let (mut limits, mut errors) = (Vec::new(), Vec::new());
    for (at, budget) in grant.spec.budgets.iter().enumerate() {
        let path = format!("spec.budgets[{at}]");
        match limit(budget) {
            Ok(limit) => limits.push(limit),
            Err((field, message)) => {
                let path = if field.is_empty() { path } else { format!("{path}.{field}") };
                errors.push(SpecError::new(&grant.origin, &path, message));
            }
        }
    }
    (limits, errors)
}

fn limit(budget: &Budget) -> Result<Limit, (&'static str, String)> {
    let Budget { verb, kind, max, disrupt, percent, window } = budget;
    let nanos = parse_duration(window).map_err(|error| ("window", error.to_string()))?;
    if nanos <= 0 {
        return Err(("window", format!("`{window}` is no time at all")));
    }
    let text = window.clone();
    match (verb, kind, max, disrupt, percent) {
        (Some(verb), Some(kind), Some(max), None, None) if verb == "delete" => {
            Ok(Limit { kind: kind.clone(), max: *max, percent: None, window: nanos, text })
        }
        (Some(verb), Some(_), Some(_), None, None) => {
            Err(("verb", format!("`{verb}` cannot be counted: `delete` can")))
        }
        (None, None, None, Some(kind), Some(percent)) => {
            if *percent > 100 {
                return Err(("percent", format!("`{percent}` is more than a hundred")));
            }
            if kind.resolve() != Kind::builtin("Pod") {
                return Err(("disrupt", format!("`{kind}` cannot be disrupted: `Pod` can")));
            }
            Ok(Limit { kind: kind.clone(), max: *percent, percent: Some(*percent), window: nanos, text })
        }
        _ => Err(("", "a budget has `verb`, `kind` and `max`, or `disrupt` and `percent`".to_owned())),
    }
}
