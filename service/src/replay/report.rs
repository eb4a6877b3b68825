//! What a replay found, as data: a whole log, or the part of it that a shard judged; parts add up.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use suture_checker::decision::{Finding, Outcome};

use super::shard::Shard;
use crate::report::Report;

/// Entries by which nothing is to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Left {
    /// A read.
    Read,
    /// An event before the last one of its request.
    OtherStage,
    /// The API server refused it, or failed.
    Refused,
    /// Leases, events, tokens, reviews of rights: they never wait for the webhook, and are not kept.
    Housekeeping,
    /// A connection, or a subresource that writes nothing that a fact is about.
    NoFact,
    /// The state holds it already, or a later version.
    InState,
    /// Its author never waits for the webhook: the control plane, a node that reports, Suture itself. It is applied.
    NeverAsked,
}

impl Left {
    /// In words, after a number.
    pub fn words(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::OtherStage => "earlier stages of requests",
            Self::Refused => "refused by the API server",
            Self::Housekeeping => "leases, events and the like",
            Self::NoFact => "connections and what else writes no fact",
            Self::InState => "in the state already",
            Self::NeverAsked => "writes of the control plane and of nodes, applied and not judged",
        }
    }
}

/// Why a write could not be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Gap {
    /// Its body is missing: the cluster after it is not known as it was.
    NoBody,
    /// The line is no event.
    NotAnEvent,
    /// Its object is not in the state, so that what it was before is not known. It is applied.
    NotInState,
    /// The model says that it has no effect on the cluster as it is known, and the API server answered otherwise.
    NoEffect,
}

impl Gap {
    /// In words, after a number.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoBody => {
                "writes without a body: not applied either, verdicts after them rest on a state without them"
            }
            Self::NotAnEvent => "entries that cannot be read",
            Self::NotInState => "writes of objects that the state does not hold: applied, not judged",
            Self::NoEffect => "writes that have no effect on the state as it is known: not judged",
        }
    }
}

/// What was replayed: parts of one report have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// The version of Suture.
    pub suture: String,
    /// A digest of the invariants, adapters, grants and exemptions.
    pub policy: String,
    /// A digest of the state at the beginning.
    pub state: String,
    /// A digest of the log as far as it was read.
    pub log: String,
}

/// How many writes were decided in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcomes {
    /// No instance can break.
    pub allowed: u64,
    /// An instance whose invariant warns can break.
    pub warned: u64,
    /// Some instance could not be decided.
    pub undecided: u64,
    /// An instance whose invariant denies can break.
    pub denied: u64,
}

/// How often something could not be judged, and where for the first time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GapCount {
    /// How often.
    pub count: u64,
    /// The first entry, by its number.
    pub entry: u64,
    /// Where it is: `FILE:LINE`.
    pub place: String,
    /// What it is, in words.
    pub what: String,
}

/// A write that would not simply have been allowed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The number of the entry in the log, from 0.
    pub entry: u64,
    /// Which of the objects of a deletion of many, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub part: u64,
    /// Where it is: `FILE:LINE`.
    pub place: String,
    /// The id of the event.
    pub id: String,
    /// When it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Who asked for it.
    pub user: String,
    /// What it does, in words.
    pub request: String,
    /// What would have been decided.
    pub decision: Outcome,
    /// Whether the webhook would have refused it.
    pub refused: bool,
    /// What would break, or could not be decided: `invariant Kind/namespace/name`.
    pub broken: Vec<Broken>,
    /// The report, as `check -o json` prints it; only of the first of those that are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<Report>>,
}

/// An instance that would break, or could not be decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Broken {
    /// The invariant.
    pub invariant: String,
    /// The instance.
    pub instance: String,
    /// Refuted or undecided.
    pub outcome: Finding,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Found {
    fn alike(&self) -> Alike {
        (self.user.clone(), self.request.clone(), self.decision, self.broken.clone())
    }
}

/// What a replay found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// What was replayed.
    pub inputs: Inputs,
    /// Whether all of it was.
    pub complete: bool,
    /// Which part was judged; none for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// How many entries were read.
    pub read: u64,
    /// How many of them are of this part.
    pub entries: u64,
    /// The time of the first entry that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The latest time of an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// How long it took, in milliseconds; none where that is not to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// The kinds that the policy reads and of which the state has none; they count as not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_as_none: Vec<String>,
    /// The writes that were judged, by outcome.
    pub outcomes: Outcomes,
    /// How many of them the webhook would have refused.
    pub refused: u64,
    /// The entries by which nothing was to be judged.
    pub left: BTreeMap<Left, u64>,
    /// The writes that could not be judged.
    pub not_judged: BTreeMap<Gap, GapCount>,
    /// The writes that would not simply have been allowed, in their order.
    pub findings: Vec<Found>,
    /// What findings are about whose report is kept.
    #[serde(skip)]
    told: BTreeSet<Alike>,
}

/// What findings have in common that are alike: the same request, by the same author, breaks the same.
type Alike = (String, String, Outcome, Vec<Broken>);

impl Replayed {
    /// Of nothing yet.
    pub fn begun(inputs: Inputs, shard: Shard) -> Self {
        Self { inputs, shard: Some(shard).filter(|shard| *shard != Shard::WHOLE), ..Self::default() }
    }

    /// Counts an entry by which nothing is to be judged.
    pub fn leave(&mut self, why: Left) {
        *self.left.entry(why).or_default() += 1;
    }

    /// Counts a write that cannot be judged.
    pub fn miss(&mut self, gap: Gap, entry: u64, place: String, what: String) {
        let count = self.not_judged.entry(gap).or_insert(GapCount { count: 0, entry, place, what });
        count.count += 1;
    }

    /// Counts a decision.
    pub fn count(&mut self, outcome: Outcome, refused: bool) {
        let of = match outcome {
            Outcome::Allowed => &mut self.outcomes.allowed,
            Outcome::Warned => &mut self.outcomes.warned,
            Outcome::Undecided => &mut self.outcomes.undecided,
            Outcome::Denied => &mut self.outcomes.denied,
        };
        *of += 1;
        self.refused += u64::from(refused);
    }

    /// How many writes were judged.
    pub fn judged(&self) -> u64 {
        let Outcomes { allowed, warned, undecided, denied } = self.outcomes;
        allowed + warned + undecided + denied
    }

    /// Adds a finding; the report is kept of the first of those that are alike.
    pub fn find(&mut self, found: Found) {
        let is_first = self.told.insert(found.alike());
        self.findings.push(Found { report: found.report.filter(|_| is_first), ..found });
    }

    /// Knows again, after it was read, of which findings reports are kept.
    pub fn resume(&mut self) {
        self.told = self.findings.iter().map(Found::alike).collect();
    }

    /// The findings that are alike, each group in order, by its first.
    pub fn groups(&self) -> Vec<Vec<&Found>> {
        let mut groups: BTreeMap<_, Vec<&Found>> = BTreeMap::new();
        for found in &self.findings {
            groups.entry(found.alike()).or_default().push(found);
        }
        let mut groups: Vec<Vec<&Found>> = groups.into_values().collect();
        groups.sort_by_key(|group| {
            group.first().map(|found| (std::cmp::Reverse(found.decision), found.entry, found.part))
        });
        groups
    }

    /// The whole that these parts make.
    ///
    /// # Errors
    /// When they are not all the parts of one replay, or one of them has not ended.
    pub fn of_parts(parts: Vec<(String, Self)>) -> Result<Self, String> {
        let mut whole = Self { complete: true, ..Self::default() };
        let mut seen: BTreeMap<u64, String> = BTreeMap::new();
        let mut count = None;
        for (name, part) in parts {
            let Shard { number, of } = part.shard.unwrap_or(Shard::WHOLE);
            if !part.complete {
                return Err(format!("{name} has not ended: run shard {number}/{of} again with `--part {name}`"));
            }
            if let Some(other) = seen.insert(number, name.clone()) {
                return Err(format!("{name} and {other} are both shard {number}/{of}"));
            }
            if *count.get_or_insert(of) != of {
                return Err(format!("{name} is one of {of} shards, the others are not"));
            }
            if seen.len() > 1 && whole.inputs != part.inputs {
                return Err(format!("{name} is of another log, state, policy or version of Suture than the others"));
            }
            whole.add(part);
        }
        let of = count.ok_or("there is no part to merge")?;
        if let Some(missing) = (0..of).find(|number| !seen.contains_key(number)) {
            return Err(format!("shard {missing}/{of} is missing"));
        }
        whole.findings.sort_by_key(|found| (found.entry, found.part));
        for found in std::mem::take(&mut whole.findings) {
            whole.find(found);
        }
        Ok(whole)
    }

    fn add(&mut self, part: Self) {
        self.inputs = part.inputs;
        self.taken_as_none = part.taken_as_none;
        self.read = part.read;
        self.entries += part.entries;
        self.from = part.from;
        self.until = part.until;
        self.millis = self.millis.max(part.millis);
        let (mine, its) = (&mut self.outcomes, part.outcomes);
        mine.allowed += its.allowed;
        mine.warned += its.warned;
        mine.undecided += its.undecided;
        mine.denied += its.denied;
        self.refused += part.refused;
        for (left, count) in part.left {
            *self.left.entry(left).or_default() += count;
        }
        for (gap, other) in part.not_judged {
            let known = self.not_judged.entry(gap).or_insert(GapCount { count: 0, ..other.clone() });
            let count = known.count + other.count;
            let first = if known.entry <= other.entry { known.clone() } else { other };
            *known = GapCount { count, ..first };
        }
        self.findings.extend(part.findings);
    }
}

#[cfg(test)]
mod tests;
