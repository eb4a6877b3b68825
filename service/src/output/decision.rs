//! A decision, or an audit, for people: what would break and how, what could not be decided, and how much was proved.

use std::fmt::Write;

use suture_checker::decision::{Counterexample, Decision, Exempted, Finding, Outcome, Verdict};
use suture_specs::spec::Action;

use super::denial::{by_cause, rank};
use super::terminal::Paint;
use super::visible;
use crate::failure::plural;

pub use super::denial::About;

/// More causes than these are only counted, unless all are asked for.
const CAUSES_MAX: usize = 5;
/// Of an audit, which takes a line or two for each.
const SHOWN_MAX: usize = 20;
/// More objects of one step than these are only counted.
const OBJECTS_MAX: usize = 5;

/// The text.
pub fn text(decision: &Decision, about: About, paint: Paint, verbose: bool) -> String {
    let mut out = if verbose { in_full(decision, about, paint) } else { by_causes(decision, about, paint) };
    for Exempted { invariant, instance, exemption, expires, reason } in &decision.exempted {
        let (label, invariant, instance) = (paint.warn("exempted:"), paint.strong(invariant), paint.strong(instance));
        _ = writeln!(out, "{label} {invariant} for {instance}");
        _ = writeln!(out, "  Exemption {exemption}, until {expires}: {reason}");
    }
    if decision.cut_short {
        _ = writeln!(out, "and perhaps more: the change is denied, and what else it reaches was not judged");
    }
    if !out.is_empty() {
        out.push('\n');
    }
    for assumed in decision.unmodelled_in_words() {
        _ = writeln!(out, "assumed: {assumed}");
    }
    out.push_str(&taken_as_none(&decision.taken_as_none));
    _ = writeln!(out, "{}", summary(decision, about, paint));
    out
}

/// The kinds of which a state has none, in a line.
pub fn taken_as_none(kinds: &[String]) -> String {
    match kinds {
        [] => String::new(),
        kinds => format!("taken as none: {}; --unknown KIND if they were not read\n", visible(&kinds.join(", "))),
    }
}

/// Each verdict with all that is known of it.
fn in_full(decision: &Decision, about: About, paint: Paint) -> String {
    let mut ranked: Vec<&Verdict> = decision.verdicts.iter().collect();
    ranked.sort_by_key(|verdict| rank(verdict));
    ranked.iter().map(|verdict| one(verdict, about, paint)).collect()
}

/// Each cause in a few lines.
fn by_causes(decision: &Decision, about: About, paint: Paint) -> String {
    let told = decision.verdicts.iter().filter(|verdict| !verdict.outcome.is_passed());
    let causes = by_cause(told, about);
    let shown = if about == About::Change { CAUSES_MAX } else { SHOWN_MAX };
    let mut out = String::new();
    for denial in causes.iter().take(shown) {
        let label = label(denial.first, about, paint);
        for (number, line) in denial.lines(about, paint).iter().enumerate() {
            _ = if number == 0 { writeln!(out, "{label} {line}") } else { writeln!(out, "  {line}") };
        }
    }
    if causes.len() > shown {
        let left_out: usize = causes.iter().skip(shown).map(|denial| 1 + denial.others.len()).sum();
        _ = writeln!(out, "and {left_out} more, which --verbose lists");
    }
    out
}

fn label(verdict: &Verdict, about: About, paint: Paint) -> String {
    match (verdict.outcome, verdict.action, about) {
        (Finding::Proved, ..) => paint.good("proved:"),
        (Finding::NotWorse, ..) => paint.warn("not worse:"),
        (Finding::Undecided, ..) => paint.warn("undecided:"),
        (Finding::Refuted, _, About::Present) => paint.bad("violated:"),
        (Finding::Refuted, Action::Deny, About::Change) => paint.bad("denied:"),
        (Finding::Refuted, Action::Warn, About::Change) => paint.warn("warned:"),
        (Finding::Refuted, Action::Audit, About::Change) => paint.warn("audited:"),
    }
}

fn one(verdict: &Verdict, about: About, paint: Paint) -> String {
    let Verdict {
        invariant,
        instance,
        outcome,
        action: _,
        reason: _,
        message,
        counterexample,
        assumptions,
        proved_against,
        nearest_allowed,
        awaits_landing: _,
        requests: _,
    } = verdict;
    let label = label(verdict, about, paint);
    let relation = match (outcome, about) {
        (Finding::Proved, _) => "holds for",
        (Finding::Undecided | Finding::NotWorse, _) => "for",
        (Finding::Refuted, About::Change) => "would break for",
        (Finding::Refuted, About::Present) => "is broken for",
    };
    let mut out = format!("{label} {} {relation} {}\n", paint.strong(invariant), paint.strong(instance));
    // the message tells the steps in short; it need not when they are told in full
    for line in message.lines().filter(|line| counterexample.is_none() || !line.starts_with("- ")) {
        _ = writeln!(out, "  {line}");
    }
    if let Some(counterexample) = counterexample {
        out.push_str(&steps(counterexample, paint));
    }
    list(&mut out, "assumed", assumptions, paint);
    list(&mut out, "allowed instead", nearest_allowed, paint);
    let versions: Vec<String> = proved_against.iter().map(|(object, version)| format!("{object} {version}")).collect();
    list(&mut out, "judged against resourceVersions", &versions, paint);
    out
}

fn steps(counterexample: &Counterexample, paint: Paint) -> String {
    let Counterexample { steps, broken, .. } = counterexample;
    let mut out = String::new();
    if !steps.is_empty() {
        _ = writeln!(out, "  {}", paint.dim("how"));
    }
    for (number, step) in (1..).zip(steps) {
        let mut objects: Vec<String> = step.objects.iter().take(OBJECTS_MAX).cloned().collect();
        if step.objects.len() > OBJECTS_MAX {
            objects.push(format!("{} more", step.objects.len() - OBJECTS_MAX));
        }
        let separator = if objects.is_empty() { "" } else { ": " };
        _ = writeln!(out, "    {number}. {}{separator}{}", step.effect, objects.join(", "));
    }
    if !broken.is_empty() {
        _ = writeln!(out, "  {} {broken}", paint.dim("broken"));
    }
    out
}

fn list(out: &mut String, title: &str, items: &[String], paint: Paint) {
    if !items.is_empty() {
        _ = writeln!(out, "  {}", paint.dim(title));
    }
    for item in items {
        _ = writeln!(out, "    - {item}");
    }
}

fn summary(decision: &Decision, about: About, paint: Paint) -> String {
    let count = |wanted: Finding| decision.verdicts.iter().filter(|verdict| verdict.outcome == wanted).count();
    let (refuted, undecided) = (count(Finding::Refuted), count(Finding::Undecided));
    let answer = match (about, decision.decision) {
        (About::Present, _) if refuted > 0 => paint.bad("violated"),
        (About::Present, Outcome::Undecided) => paint.warn("undecided"),
        (About::Present, _) => paint.good("clean"),
        (About::Change, Outcome::Denied) => paint.bad("denied"),
        (About::Change, Outcome::Undecided) => paint.warn("undecided"),
        (About::Change, Outcome::Warned) => paint.warn("allowed with a warning"),
        (About::Change, Outcome::Allowed) => paint.good("allowed"),
    };
    let broken = if about == About::Change { "would break" } else { "broken" };
    let mut parts = Vec::new();
    if refuted > 0 {
        parts.push(format!("{} {broken}", plural(refuted, "instance", "instances")));
    }
    if undecided > 0 {
        parts.push(format!("{undecided} undecided"));
    }
    if decision.not_worse > 0 {
        parts.push(format!("{} not worse", decision.not_worse));
    }
    if !decision.exempted.is_empty() {
        parts.push(format!("{} exempted", decision.exempted.len()));
    }
    parts.push(format!("{} {}", decision.proved, if about == About::Change { "proved" } else { "hold" }));
    let took = decision.duration.map_or_else(String::new, |duration| format!(", {} µs", duration.total_micros));
    format!("{answer}: {} (z3 {}{took})", parts.join(", "), decision.solver)
}

#[cfg(test)]
mod tests;
