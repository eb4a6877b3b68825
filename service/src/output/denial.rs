//! Verdicts that say the same, told once: the promise that breaks, the one chain of steps that breaks it, what would be
//! allowed instead, and how many others break by the same. On the command line and in the webhook's answer alike.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use suture_checker::decision::{Finding, Verdict};
use suture_specs::spec::Action;

use super::terminal::Paint;

/// How many lines one cause takes at most: what fits a screen beside a prompt.
pub const LINES_MAX: usize = 10;
/// More instances that break by the same are only counted.
const NAMED_MAX: usize = 4;

/// What the verdicts are about: it chooses the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A change that may be made.
    Change,
    /// The cluster as it is.
    Present,
}

/// Verdicts of one cause.
#[derive(Clone, Debug)]
pub struct Denial<'d> {
    /// The one that is told.
    pub first: &'d Verdict,
    /// The others.
    pub others: Vec<&'d Verdict>,
}

/// The verdicts by what they have in common: of a change the requests that break them, in an audit the invariant and what
/// it says, and of what is undecided the reason.
pub fn by_cause<'d>(verdicts: impl IntoIterator<Item = &'d Verdict>, about: About) -> Vec<Denial<'d>> {
    let mut causes: BTreeMap<(u8, &[usize], &str, &str), Vec<&Verdict>> = BTreeMap::new();
    for verdict in verdicts {
        let (told, reason) = match (verdict.outcome, about) {
            (Finding::Undecided, _) => ("", verdict.reason.as_deref().unwrap_or(&verdict.message)),
            (_, About::Present) => (verdict.invariant.as_str(), verdict.message.as_str()),
            (_, About::Change) => ("", ""),
        };
        causes.entry((rank(verdict), &verdict.requests, told, reason)).or_default().push(verdict);
    }
    causes.into_values().filter_map(Denial::of).collect()
}

/// What matters most comes first.
pub fn rank(verdict: &Verdict) -> u8 {
    match (verdict.outcome, verdict.action) {
        (Finding::Refuted, Action::Deny) => 0,
        (Finding::Undecided, _) => 1,
        (Finding::Refuted, Action::Warn) => 2,
        (Finding::Refuted, Action::Audit) => 3,
        (Finding::NotWorse, _) => 4,
        (Finding::Proved, _) => 5,
    }
}

impl<'d> Denial<'d> {
    /// Told is what the request itself is about, else that of which most promises break, else what breaks soonest, else
    /// what names most objects.
    fn of(verdicts: Vec<&'d Verdict>) -> Option<Self> {
        let promises = |of: &Verdict| verdicts.iter().filter(|verdict| verdict.instance == of.instance).count();
        let steps = |of: &Verdict| of.counterexample.as_ref().map_or(0, |counterexample| counterexample.steps.len());
        let is_target = |of: &Verdict| {
            let mut steps = of.counterexample.iter().flat_map(|counterexample| &counterexample.steps);
            steps.any(|step| step.objects == [of.instance.as_str()])
        };
        let names = |of: &Verdict| of.message.lines().next().unwrap_or_default().matches('/').count();
        let order = |of: &&Verdict| (!is_target(of), Reverse(promises(of)), steps(of), Reverse(names(of)));
        let first = verdicts.iter().copied().min_by_key(order)?;
        let others = verdicts.iter().copied().filter(|verdict| !std::ptr::eq(*verdict, first)).collect();
        Some(Self { first, others })
    }

    /// It in lines, the first of which says enough to act on.
    pub fn lines(&self, about: About, paint: Paint) -> Vec<String> {
        let mut lines = vec![head(self.first, about, paint)];
        let rest = self.first.message.lines().skip(usize::from(self.first.outcome != Finding::Undecided));
        let steps: Vec<&str> = rest.filter(|line| line.starts_with("- ")).collect();
        let instead = self.first.nearest_allowed.iter().map(|text| format!("allowed instead: {text}"));
        let mut tail: Vec<String> = instead.collect();
        tail.extend(more(&self.others));
        let room = LINES_MAX.saturating_sub(1 + tail.len());
        lines.extend(steps.iter().take(room).map(|step| (*step).to_owned()));
        lines.extend(tail);
        lines.truncate(LINES_MAX);
        lines
    }
}

/// The promise, the instance, and what is wrong with it.
fn head(verdict: &Verdict, about: About, paint: Paint) -> String {
    let Verdict { invariant, instance, outcome, reason, message, .. } = verdict;
    let relation = match (outcome, about) {
        (Finding::Undecided, _) => "could not be decided for",
        (Finding::Proved, _) => "holds for",
        (Finding::NotWorse, _) => "is not worse for",
        (Finding::Refuted, About::Change) => "would break for",
        (Finding::Refuted, About::Present) => "is broken for",
    };
    let why = match outcome {
        Finding::Undecided => reason.as_deref().unwrap_or("no reason given"),
        _ => message.lines().next().filter(|line| !line.is_empty()).unwrap_or("it breaks"),
    };
    format!("{} {relation} {}: {why}", paint.strong(invariant), paint.strong(instance))
}

/// How many others there are, and which: each invariant once, with its instances.
fn more(others: &[&Verdict]) -> Option<String> {
    let mut by_invariant: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Verdict { invariant, instance, .. } in others.iter().take(NAMED_MAX) {
        by_invariant.entry(invariant).or_default().insert(instance);
    }
    let named = by_invariant.iter().map(|(invariant, instances)| {
        format!("{invariant} for {}", instances.iter().copied().collect::<Vec<_>>().join(", "))
    });
    let named = named.collect::<Vec<_>>().join("; ");
    match others.len() {
        0 => None,
        count if count > NAMED_MAX => Some(format!("and {count} more: {named}; …")),
        count => Some(format!("and {count} more: {named}")),
    }
}
