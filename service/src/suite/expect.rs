//! What a step expects against what was decided.

use suture_checker::decision::{Decision, Finding, Outcome, Verdict};
use suture_specs::spec::{Expect, Step};

/// What is not as expected, in one line; nothing if all is.
pub fn mismatch(step: &Step, decision: &Decision) -> Option<String> {
    if let Some(expected) = step.expect
        && outcome(expected) != decision.decision
    {
        return Some(format!("expected {expected:?}, got {:?}{}", decision.decision, by_whom(decision)));
    }
    // an undecided step names the invariants that could not be decided
    let wanted = if step.expect == Some(Expect::Undecided) { Finding::Undecided } else { Finding::Refuted };
    let found: Vec<&Verdict> = decision.verdicts.iter().filter(|verdict| verdict.outcome == wanted).collect();
    for name in &step.by {
        if !found.iter().any(|verdict| is_named(verdict, name)) {
            return Some(format!("expected `{name}` among the broken invariants, got {}", invariants(&found)));
        }
    }
    for name in &step.instances {
        // an instance belongs to one of the invariants in `by`, if there are any
        let of = |verdict: &&&Verdict| step.by.is_empty() || step.by.iter().any(|name| is_named(verdict, name));
        if !found.iter().filter(of).any(|verdict| verdict.instance == *name) {
            return Some(format!("expected `{name}` among the broken instances, got {}", instances(&found)));
        }
    }
    let texts: Vec<String> = found.iter().map(|verdict| text(verdict)).collect();
    let missing = step.contains.iter().find(|part| !texts.iter().any(|text| text.contains(part.as_str())));
    missing.map(|part| format!("expected `{part}` in the message"))
}

/// Whether a verdict is of the invariant of a name, which of a NamespacedInvariant may leave the namespace out.
fn is_named(verdict: &Verdict, name: &str) -> bool {
    verdict.invariant == name || verdict.invariant.rsplit_once('/').is_some_and(|(_, own)| own == name)
}

fn outcome(expected: Expect) -> Outcome {
    match expected {
        Expect::Allowed => Outcome::Allowed,
        Expect::Denied => Outcome::Denied,
        Expect::Warned => Outcome::Warned,
        Expect::Undecided => Outcome::Undecided,
    }
}

/// What a person would read.
fn text(verdict: &Verdict) -> String {
    let Verdict { message, reason, counterexample, .. } = verdict;
    let broken = counterexample.as_ref().map_or("", |counterexample| &counterexample.broken);
    [message.as_str(), reason.as_deref().unwrap_or_default(), broken].join("\n")
}

fn by_whom(decision: &Decision) -> String {
    let unproved: Vec<&Verdict> = decision.verdicts.iter().filter(|v| !v.outcome.is_passed()).collect();
    if unproved.is_empty() { String::new() } else { format!(" by {}", invariants(&unproved)) }
}

fn invariants(verdicts: &[&Verdict]) -> String {
    listed(verdicts.iter().map(|verdict| verdict.invariant.as_str()))
}

fn instances(verdicts: &[&Verdict]) -> String {
    listed(verdicts.iter().map(|verdict| verdict.instance.as_str()))
}

/// The distinct names in backticks, or `none`.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.sort();
    names.dedup();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
