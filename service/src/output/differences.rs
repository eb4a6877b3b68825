//! What two policies answer differently, for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::decision::taken_as_none;
use super::denial::{About, by_cause};
use super::terminal::Paint;
use super::visible;
use crate::diff::{Difference, Differences, LogDifferences};
use crate::one_step::Covered;
use crate::one_step::side::Answer;

/// More writes of a log than these are only counted, unless all are asked for.
const WRITES_MAX: usize = 20;
/// What the family of requests leaves out.
pub const NOT_COVERED: &str =
    "not covered: creations, several changes at a time, other values and authors, what is in flight";

/// The text.
pub fn text(found: &Differences, paint: Paint, verbose: bool) -> String {
    let mut out = String::new();
    found.differences.iter().for_each(|difference| told(difference, paint, &mut out));
    if let Some(log) = &found.log {
        of_log(log, paint, verbose, &mut out);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&covered(&found.covered, found.objects));
    out.push_str(&taken_as_none(&found.taken_as_none));
    if found.undecided > 0 {
        _ = writeln!(out, "{} {} requests were not decided by one of them", paint.warn("undecided:"), found.undecided);
    }
    let stricter = found.differences.iter().filter(|difference| difference.new > difference.old);
    let looser = found.differences.iter().filter(|difference| difference.new < difference.old);
    let count = |differences: &mut dyn Iterator<Item = &Difference>| {
        differences.map(|difference| difference.count).sum::<u64>()
    };
    let (stricter, looser) = (count(&mut { stricter }), count(&mut { looser }));
    let answer = if found.is_empty() { paint.good("the same") } else { paint.warn("different") };
    _ = writeln!(out, "{answer}: {stricter} requests are answered more strictly, {looser} less");
    out
}

/// Which requests were looked at.
pub fn covered(covered: &Covered, objects: u64) -> String {
    let total: u64 = covered.values().sum();
    let parts: Vec<String> = covered.iter().rev().map(|(kind, count)| format!("{count} {}", kind.words())).collect();
    format!("judged: all {total} requests of one step on {objects} objects: {}\n{NOT_COVERED}\n", parts.join(", "))
}

fn told(difference: &Difference, paint: Paint, out: &mut String) {
    let Difference { old, new, invariants, count, smallest, report, .. } = difference;
    let label = match (old, new) {
        (_, Answer::Refused) => paint.bad("newly denied:"),
        (Answer::Allowed, _) => paint.warn("newly warned about:"),
        (_, Answer::Allowed) => paint.warn("newly allowed:"),
        (Answer::Refused | Answer::Warned, Answer::Warned) => paint.warn("newly allowed with a warning:"),
    };
    let names: Vec<&str> = invariants.iter().map(String::as_str).collect();
    let by = if new > old { "by" } else { "which was refused or warned about by" };
    _ = writeln!(out, "{label} {count} requests, {by} {}", names.join(", "));
    _ = writeln!(out, "  the smallest: {}", visible(smallest));
    let broken = report.decision.verdicts.iter().filter(|verdict| invariants.contains(&verdict.invariant));
    for cause in by_cause(broken, About::Change) {
        for line in cause.lines(About::Change, paint) {
            _ = writeln!(out, "    {}", visible(&line));
        }
    }
}

fn of_log(log: &LogDifferences, paint: Paint, verbose: bool, out: &mut String) {
    let mut list = |label: String, writes: &BTreeMap<String, u64>| {
        let shown = if verbose { writes.len() } else { WRITES_MAX };
        for (request, count) in writes.iter().take(shown) {
            _ = writeln!(out, "{label} {count} times in the log: {}", visible(request));
        }
        if writes.len() > shown {
            _ = writeln!(out, "and {} more writes of the log, which --verbose lists", writes.len() - shown);
        }
    };
    list(paint.bad("newly denied:"), &log.newly_refused);
    list(paint.warn("newly allowed:"), &log.newly_allowed);
    _ = writeln!(out, "log: {} writes judged by both", log.judged);
}
