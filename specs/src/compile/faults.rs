//! The faults that an invariant must survive: fields of `under`, expressions over the parameters.

use std::collections::BTreeMap;

use suture_model::futures::Faults;
use suture_model::value::{Str, Val};

use super::source::{keep, strict};
use crate::cel::Scope;
use crate::eval::{Env, eval};
use crate::ir::Type;
use crate::spec::{Cel, Origin, SpecError, Under};
use crate::value::Value;

pub(super) fn under_fields(under: &Under) -> impl Iterator<Item = (&'static str, &Cel)> {
    let fields = [
        ("nodeFailures", under.node_failures.as_ref()),
        ("zoneFailures", under.zone_failures.as_ref()),
        ("evictions", under.evictions.as_ref()),
    ];
    fields.into_iter().filter_map(|(name, text)| Some((name, text?)))
}

/// `scheduler` says where new pods may go: to any node that their hard constraints admit, which is so anyway.
pub(super) fn unsupported_faults(under: &Under, origin: &Origin) -> Vec<SpecError> {
    let other = under.scheduler.iter().filter(|scheduler| *scheduler != "Any");
    let error = |scheduler: &String| {
        let message = format!("`under.scheduler: {scheduler}` is not supported yet");
        SpecError::new(origin, "spec.under.scheduler", message)
            .helped("`Any`, which is the default: new pods may go to any node that their hard constraints admit")
    };
    other.map(error).collect()
}

/// How many faults are worth asking about: more nodes, zones or pods at once than any cluster is meant to survive.
const FAULTS_MAX: i64 = 1_000;

/// The faults of an invariant: its own, field by field, else the template's, over the parameters.
pub(super) fn faults(
    own: Option<(&Under, &Origin)>,
    template: Option<(&Under, &Origin)>,
    types: &BTreeMap<Str, Type>,
    params: &Val,
) -> Result<Faults, Vec<SpecError>> {
    let mut found: BTreeMap<&str, u32> = BTreeMap::new();
    let mut errors = Vec::new();
    let scope = Scope::under().with_params(types.clone());
    let mut env = Env::without_worlds();
    env.bind("params", Ok(Value::from(params)));
    for (under, origin) in template.into_iter().chain(own) {
        errors.extend(unsupported_faults(under, origin));
        for (field, text) in under_fields(under) {
            let path = format!("spec.under.{field}");
            let value = strict(text, &scope, &Type::Int, origin, &path).and_then(|expr| {
                let value = eval(&expr, &env).map_err(|e| SpecError::new(origin, &path, e.to_string()))?;
                let number =
                    value.as_int().filter(|n| (0..=FAULTS_MAX).contains(n)).and_then(|n| u32::try_from(n).ok());
                number.ok_or_else(|| {
                    SpecError::new(origin, &path, format!("`{}` is not between 0 and {FAULTS_MAX}", value.display()))
                })
            });
            if let Some(number) = keep(value, &mut errors) {
                found.insert(field, number);
            }
        }
    }
    let of = |field: &str| found.get(field).copied().unwrap_or(0);
    let faults = Faults { nodes: of("nodeFailures"), zones: of("zoneFailures"), evictions: of("evictions") };
    if errors.is_empty() { Ok(faults) } else { Err(errors) }
}
