//! What a replay found, for people: what would have been denied, how often, when, by whom and why; and what was not judged.

use std::fmt::Write;

use suture_checker::decision::{Finding, Outcome};

use super::decision::taken_as_none;
use super::terminal::Paint;
use super::visible;
use crate::failure::plural;
use crate::replay::report::{Broken, Found, Replayed};
use crate::replay::shard::Shard;

/// More groups than these are only counted, unless all are asked for.
const GROUPS_MAX: usize = 20;
/// More broken instances of one request than these are only counted.
const BROKEN_MAX: usize = 3;
const MILLIS_PER_SECOND: u64 = 1_000;

/// The text.
pub fn text(replayed: &Replayed, paint: Paint, verbose: bool) -> String {
    let mut out = String::new();
    let groups = replayed.groups();
    let shown = if verbose { groups.len() } else { GROUPS_MAX };
    groups.iter().take(shown).for_each(|group| told(group, paint, &mut out));
    if groups.len() > shown {
        let left_out: usize = groups.iter().skip(shown).map(Vec::len).sum();
        _ = writeln!(out, "and {left_out} more writes in {} ways, which --verbose lists", groups.len() - shown);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    entries(replayed, &mut out);
    out.push_str(&taken_as_none(&replayed.taken_as_none));
    for (gap, count) in &replayed.not_judged {
        let label = paint.warn("not judged:");
        _ = writeln!(out, "{label} {} {}", count.count, gap.words());
        _ = writeln!(out, "  the first is {}: {}", visible(&count.place), visible(&count.what));
    }
    _ = writeln!(out, "{}", summary(replayed, paint));
    out
}

/// Findings that are alike.
fn told(group: &[&Found], paint: Paint, out: &mut String) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let label = match first.decision {
        Outcome::Denied => paint.bad("denied:"),
        Outcome::Undecided => paint.warn("undecided:"),
        Outcome::Warned => paint.warn("warned:"),
        Outcome::Allowed if first.refused => paint.bad("refused:"),
        Outcome::Allowed => paint.warn("audited:"),
    };
    let when = match (&first.time, &last.time) {
        (Some(first), Some(last)) if group.len() > 1 => format!(", {} times from {first} to {last}", group.len()),
        _ if group.len() > 1 => format!(", {} times", group.len()),
        (Some(time), _) => format!(", at {time}"),
        (None, _) => String::new(),
    };
    _ = writeln!(out, "{label} {}{}", visible(&first.request), visible(&when));
    let verdicts = first.report.iter().flat_map(|report| &report.decision.verdicts);
    let message = |broken: &Broken| {
        let of = verdicts.clone().find(|v| v.invariant == broken.invariant && v.instance == broken.instance);
        let text = of.and_then(|verdict| verdict.message.lines().next().map(str::to_owned));
        text.map_or_else(String::new, |text| format!(": {text}"))
    };
    for broken in first.broken.iter().take(BROKEN_MAX) {
        let relation =
            if broken.outcome == Finding::Undecided { "could not be decided for" } else { "would break for" };
        let line = format!("{} {relation} {}{}", broken.invariant, broken.instance, message(broken));
        _ = writeln!(out, "  {}", visible(&line));
    }
    if first.broken.len() > BROKEN_MAX {
        _ = writeln!(out, "  and {} more", first.broken.len() - BROKEN_MAX);
    }
    let id = if first.id.is_empty() { String::new() } else { format!(", {}", first.id) };
    _ = writeln!(out, "  {}", paint.dim(&visible(&format!("{}{id}", first.place))));
}

/// What the log consists of.
fn entries(replayed: &Replayed, out: &mut String) {
    let times = match (&replayed.from, &replayed.until) {
        (Some(from), Some(until)) => format!(" from {from} to {until}"),
        _ => String::new(),
    };
    let part = match replayed.shard {
        Some(Shard { number, of }) => format!(" of shard {number}/{of}"),
        None => String::new(),
    };
    let took = match replayed.millis {
        Some(millis) if millis > 0 => {
            let rate = replayed.read.saturating_mul(MILLIS_PER_SECOND) / millis;
            format!(" in {} s, {rate} a second", millis.div_ceil(MILLIS_PER_SECOND))
        }
        _ => String::new(),
    };
    let count = plural(usize::try_from(replayed.entries).unwrap_or(usize::MAX), "entry", "entries");
    _ = writeln!(out, "{count}{part}{}{took}", visible(&times));
    for (left, count) in &replayed.left {
        _ = writeln!(out, "  {count} {}", left.words());
    }
    _ = writeln!(out, "  {} writes judged", replayed.judged());
}

fn summary(replayed: &Replayed, paint: Paint) -> String {
    let outcomes = replayed.outcomes;
    let answer = match (outcomes.denied, outcomes.undecided, replayed.complete) {
        (_, _, false) => paint.warn("not complete"),
        (0, 0, _) => paint.good("clean"),
        (0, _, _) => paint.warn("undecided"),
        _ => paint.bad("denied"),
    };
    format!(
        "{answer}: of {} writes {} would have been denied, {} undecided, {} warned about; the webhook would have refused {}",
        replayed.judged(),
        outcomes.denied,
        outcomes.undecided,
        outcomes.warned,
        replayed.refused
    )
}
