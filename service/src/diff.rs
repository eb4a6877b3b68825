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
use crate::one_step::{Covered, Kind, Step, Written, steps, writing};
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

/// Compares two policies over all requests of one step. Between two numbers that are answered differently it is looked by
/// halves where that changes. `look` is told of each object that is looked at.
pub fn over_steps<'p>(
    old: &mut Side<'p>,
    new: &mut Side<'p>,
    snapshot: &Snapshot,
    user: &User,
    time: Option<Clock>,
    mut look: impl FnMut(&str),
) -> Differences {
    let state = State::new(snapshot);
    let found = Differences::default();
    let mut search = Search { old, new, snapshot, time, found, differing: BTreeMap::new() };
    for object in snapshot.iter() {
        look(&object.key.to_string());
        search.found.objects += 1;
        let mut sides = Sides::default();
        for step in steps(&state, object, user) {
            let number = step.number.clone();
            let answers = search.judge(step);
            number.into_iter().for_each(|number| sides.add(number, answers));
        }
        for (mut near, far) in sides.intervals() {
            // what lies nearer to the present is answered as `near` is, or so it is taken
            while near.answers != far.answers && near.number.to.abs_diff(far.number.to) > 1 {
                let mut next = far.clone();
                while near.number.to.abs_diff(next.number.to) > 1 {
                    let number = Written { to: i64::midpoint(near.number.to, next.number.to), ..next.number.clone() };
                    let Some(step) = writing(&state, object, user, number.clone()) else { break };
                    let tried = Tried { number, answers: search.judge(step) };
                    if tried.answers == near.answers { near = tried } else { next = tried }
                }
                near = next;
            }
        }
    }
    let Search { mut found, differing, .. } = search;
    found.differences = differing.into_values().collect();
    found.differences.sort_by(|a, b| (b.new, a.old, &a.size).cmp(&(a.new, b.old, &b.size)));
    found
}

/// What the old policy answers and what the new one does.
type Answers = (Answer, Answer);

/// A number that was tried.
#[derive(Clone)]
struct Tried {
    number: Written,
    answers: Answers,
}

/// The numbers of an object that were tried, those above and those below what each is now apart.
#[derive(Default)]
struct Sides(Vec<Vec<Tried>>);

impl Sides {
    fn add(&mut self, number: Written, answers: Answers) {
        let is_above = |number: &Written| number.to > number.from;
        let is_side = |side: &&mut Vec<Tried>| {
            side.iter().any(|Tried { number: known, .. }| known.at == number.at && is_above(known) == is_above(&number))
        };
        let tried = Tried { number: number.clone(), answers };
        match self.0.iter_mut().find(is_side) {
            Some(side) => side.push(tried),
            None => {
                let present = Tried { number: Written { to: number.from, ..number }, answers: ALLOWED };
                self.0.push(vec![present, tried]);
            }
        }
    }

    /// Those of which none between them was tried, the nearer one first; from the present on.
    fn intervals(mut self) -> Vec<(Tried, Tried)> {
        let distance = |tried: &Tried| tried.number.to.abs_diff(tried.number.from);
        self.0.iter_mut().for_each(|side| side.sort_by_key(distance));
        let pairs = self.0.iter().flat_map(|side| side.iter().zip(side.iter().skip(1)));
        pairs.map(|(near, far)| (near.clone(), far.clone())).collect()
    }
}

/// Of what changes nothing.
const ALLOWED: Answers = (Answer::Allowed, Answer::Allowed);

/// What is compared, and what was found so far.
struct Search<'s, 'p> {
    old: &'s mut Side<'p>,
    new: &'s mut Side<'p>,
    snapshot: &'s Snapshot,
    time: Option<Clock>,
    found: Differences,
    differing: BTreeMap<(Answer, Answer, BTreeSet<String>), Difference>,
}

impl Search<'_, '_> {
    /// Judges a request by both policies.
    fn judge(&mut self, step: Step) -> Answers {
        let (by, Step { kind, request, .. }) = (step.by(), step);
        *self.found.covered.entry(kind).or_default() += 1;
        let change = Change::from(request);
        let before = self.old.decide(self.snapshot, &change, self.time);
        let after = self.new.decide(self.snapshot, &change, self.time);
        let is_undecided = |decision: &Decision| decision.verdicts.iter().any(|v| v.outcome == Finding::Undecided);
        self.found.undecided += u64::from(is_undecided(&before) || is_undecided(&after));
        let (was, is) = (self.old.answer(&before), self.new.answer(&after));
        if was == is {
            return (was, is);
        }
        let (decision, by_side) = if was > is { (before, &*self.old) } else { (after, &*self.new) };
        let invariants = by_side.deciding(&decision, was.max(is));
        let words = change.requests.first().map_or_else(String::new, Request::describe);
        let size = (by, kind, words.clone());
        let known = self.differing.get_mut(&(was, is, invariants.clone()));
        let count = known.as_ref().map_or(0, |known| known.count) + 1;
        match known {
            Some(known) if known.size <= size => known.count = count,
            _ => {
                let decision = Decision { duration: None, ..decision };
                let report = Report::of(decision, &change, self.snapshot);
                let smallest = report.requests.first().map_or(words, |request| request.text.clone());
                let key = (was, is, invariants.clone());
                let difference = Difference { old: was, new: is, invariants, count, smallest, report, size };
                self.differing.insert(key, difference);
            }
        }
        (was, is)
    }
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
