//! What a change of invariants newly denies or allows: which requests one policy refuses and another lets pass.
//!
//! It is decided over every request of one step that a state allows for ([`crate::one_step`]), and over the writes of a log
//! where one is given. Each request is judged by both policies as `check` judges it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use suture_checker::decision::{Decision, Finding};
use suture_model::change::{Change, Request, User};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;

use crate::clock::Clock;
use crate::one_step::side::{Answer, Side};
use crate::one_step::{Covered, Kind, Step, steps};
use crate::replay::report::Replayed;
use crate::report::Report;

/// Requests that the two policies answer differently, for the same invariants.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The answer of the old policy.
    pub old: Answer,
    /// That of the new one.
    pub new: Answer,
    /// The invariants by which the stricter one answers so.
    pub invariants: BTreeSet<String>,
    /// How many requests there are.
    pub count: u64,
    /// The one that changes least: in words.
    pub smallest: String,
    /// Its report by the stricter policy, as `check -o json` prints it.
    pub report: Report,
    /// How much it changes.
    #[serde(skip)]
    size: Size,
}

/// What a request changes: how much by, in which way; and its words, so that of two that change as much always the same is
/// told.
type Size = (u64, Kind, String);

/// What differs.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Differences {
    /// How many requests of each kind were judged.
    pub covered: Covered,
    /// Of how many objects.
    pub objects: u64,
    /// How many of them at least one policy could not decide.
    pub undecided: u64,
    /// The kinds that a policy reads and of which the state has none; they count as not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_as_none: Vec<String>,
    /// What differs, the strictest first.
    pub differences: Vec<Difference>,
    /// How the writes of a log differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogDifferences>,
}

/// How the writes of a log differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogDifferences {
    /// How many writes were judged by both.
    pub judged: u64,
    /// Writes that only the new policy refuses, in words, with how often.
    pub newly_refused: BTreeMap<String, u64>,
    /// Writes that only the old policy refuses.
    pub newly_allowed: BTreeMap<String, u64>,
}

impl Differences {
    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        let log = self.log.as_ref();
        self.differences.is_empty()
            && log.is_none_or(|log| log.newly_refused.is_empty() && log.newly_allowed.is_empty())
    }
}

/// Compares two policies over all requests of one step. `look` is told of each object that is looked at.
pub fn over_steps(
    old: &mut Side<'_>,
    new: &mut Side<'_>,
    snapshot: &Snapshot,
    user: &User,
    time: Option<Clock>,
    mut look: impl FnMut(&str),
) -> Differences {
    let state = State::new(snapshot);
    let mut found = Differences::default();
    let mut differing: BTreeMap<(Answer, Answer, BTreeSet<String>), Difference> = BTreeMap::new();
    for object in snapshot.iter() {
        look(&object.key.to_string());
        found.objects += 1;
        for Step { kind, by, request } in steps(&state, object, user) {
            *found.covered.entry(kind).or_default() += 1;
            let change = Change::from(request);
            let (before, after) = (old.decide(snapshot, &change, time), new.decide(snapshot, &change, time));
            let is_undecided = |decision: &Decision| decision.verdicts.iter().any(|v| v.outcome == Finding::Undecided);
            found.undecided += u64::from(is_undecided(&before) || is_undecided(&after));
            let (was, is) = (old.answer(&before), new.answer(&after));
            if was == is {
                continue;
            }
            let (decision, by_side) = if was > is { (before, &*old) } else { (after, &*new) };
            let invariants = by_side.deciding(&decision, was.max(is));
            let words = change.requests.first().map_or_else(String::new, Request::describe);
            let size = (by, kind, words.clone());
            let known = differing.get_mut(&(was, is, invariants.clone()));
            let count = known.as_ref().map_or(0, |known| known.count) + 1;
            match known {
                Some(known) if known.size <= size => known.count = count,
                _ => {
                    let decision = Decision { duration: None, ..decision };
                    let report = Report::of(decision, &change, snapshot);
                    let smallest = report.requests.first().map_or(words, |request| request.text.clone());
                    let key = (was, is, invariants.clone());
                    let difference = Difference { old: was, new: is, invariants, count, smallest, report, size };
                    differing.insert(key, difference);
                }
            }
        }
    }
    found.differences = differing.into_values().collect();
    found.differences.sort_by(|a, b| (b.new, a.old, &a.size).cmp(&(a.new, b.old, &b.size)));
    found
}

/// Compares what two policies found in one log.
pub fn over_log(old: &Replayed, new: &Replayed) -> LogDifferences {
    let refused = |replayed: &Replayed| -> BTreeMap<(u64, u64), String> {
        let refused = replayed.findings.iter().filter(|found| found.refused);
        refused.map(|found| ((found.entry, found.part), found.request.clone())).collect()
    };
    let (before, after) = (refused(old), refused(new));
    let only = |these: &BTreeMap<(u64, u64), String>, others: &BTreeMap<(u64, u64), String>| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (_, request) in these.iter().filter(|(at, _)| !others.contains_key(*at)) {
            *counts.entry(request.clone()).or_default() += 1;
        }
        counts
    };
    LogDifferences { judged: new.judged(), newly_refused: only(&after, &before), newly_allowed: only(&before, &after) }
}
