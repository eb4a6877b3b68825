//! Recorded requests against invariants: what would have been denied, when, by whom, why.
//!
//! The cluster starts as a state, and each write of the log that was made is applied to it as it was stored, also one that
//! would have been denied: the log says what happened. Before that it is judged as `check` judges it, with nothing else in
//! flight. A shard applies all writes and judges its part, so that parts add up to the report of the whole.

use suture_checker::decision::{Decision, Finding};
use suture_checker::engine::Engine;
use suture_model::change::{Change, Request};
use suture_model::land::SCENARIOS_MAX;
use suture_model::snapshot::{Facts, Snapshot};
use suture_model::state::State;

use crate::clock::Clock;
use crate::decide::{Decided, Question, admits, decide};
use crate::grants::History;
use crate::never_asked::is_never_asked;
use crate::no_op::{RelevantFields, writes};
use crate::policy::Policy;
use crate::report::Report;

use cluster::{Standing, put, standing};
use event::{Entry, Recorded, Write};
use log::{LogEntry, Text};
use report::{Broken, Found, Left, Replayed};
use shard::Shard;

pub mod cluster;
pub mod digest;
pub mod event;
pub mod log;
pub mod report;
pub mod shard;

/// A replay under way.
pub struct Replay<'p> {
    policy: &'p Policy,
    engine: Engine,
    relevant: RelevantFields,
    snapshot: Snapshot,
    history: History,
    shard: Shard,
    /// Entries before this one were judged already.
    from: u64,
    /// The time of the entries so far, which one without a time has.
    now: Option<Clock>,
    /// What was found so far.
    pub report: Replayed,
}

impl<'p> Replay<'p> {
    /// Begins with a cluster, at a time; goes on where a report ends that has not ended.
    pub fn new(
        policy: &'p Policy,
        engine: Engine,
        snapshot: Snapshot,
        now: Option<Clock>,
        shard: Shard,
        mut report: Replayed,
    ) -> Self {
        let (relevant, from) = (RelevantFields::of(policy), report.read);
        report.read = 0;
        Self { policy, engine, relevant, snapshot, history: History::default(), shard, from, now, report }
    }

    /// Takes the next entry of the log.
    pub fn take(&mut self, entry: LogEntry) {
        let LogEntry { place, text } = entry;
        let number = self.report.read;
        self.report.read += 1;
        let Recorded { time, id, entry } = match text {
            Text::Line(line) => event::read(&line),
            Text::Value(review) => event::of_value(&review),
        };
        let is_own = self.shard.has(number) && number >= self.from;
        if number >= self.from {
            self.pass(time.as_deref());
        }
        self.now = time.as_deref().and_then(|time| Clock::parse(time).ok()).or(self.now);
        self.report.entries += u64::from(is_own);
        match entry {
            Entry::Left(left) if is_own => self.report.leave(left),
            Entry::Gap(gap, what) if is_own => self.report.miss(gap, number, place, what),
            Entry::Left(_) | Entry::Gap(..) => {}
            Entry::Writes(writes) => {
                for (part, write) in (0..).zip(writes) {
                    let at = At { entry: number, part, place: &place, id: &id, time: time.as_deref(), is_own };
                    self.write(write, at);
                }
            }
        }
    }

    /// Notes that time has come so far.
    fn pass(&mut self, time: Option<&str>) {
        let Some(time) = time else { return };
        let Replayed { from, until, .. } = &mut self.report;
        from.get_or_insert_with(|| time.to_owned());
        if until.as_deref().is_none_or(|until| until < time) {
            *until = Some(time.to_owned());
        }
    }

    fn write(&mut self, write: Write, at: At<'_>) {
        let (gap, request, after) = match standing(&self.snapshot, write, at.time.unwrap_or_default()) {
            Standing::Known => {
                if at.is_own {
                    self.report.leave(Left::InState);
                }
                return;
            }
            Standing::Unclear(gap, request, after) => (Some(gap), request, after),
            Standing::Made(request, after) => (None, request, after),
        };
        match gap {
            _ if is_never_asked(&request) => {
                if at.is_own {
                    self.report.leave(Left::NeverAsked);
                }
            }
            Some(gap) if at.is_own => self.report.miss(gap, at.entry, at.place.to_owned(), request.describe()),
            Some(_) => {}
            None => self.judge(&request, at),
        }
        self.made(&request, after);
    }

    fn made(&mut self, request: &Request, after: Option<suture_model::object::Object>) {
        if !request.dry_run {
            put(&mut self.snapshot, request, after);
        }
    }

    /// Judges a write, and records what it takes of budgets. Of other shards' only the latter.
    fn judge(&mut self, request: &Request, at: At<'_>) {
        if !at.is_own && self.policy.grants.is_empty() {
            return;
        }
        let passes = !at.is_own || !writes(request) || self.relevant.is_no_op(request, self.policy);
        let change = Change::from(request.clone());
        let question = Question {
            snapshot: &self.snapshot,
            change: &change,
            writers: &|_| Vec::new(),
            ways_max: SCENARIOS_MAX,
            likely_reads: &Facts::default(),
            counted: &[],
            history: &self.history,
            time: self.now,
            unread: &[],
        };
        let engine = if passes { None } else { Some(&mut self.engine) };
        let Decided { decision, spent, .. } = decide(self.policy, engine, &question);
        spent.iter().for_each(|spent| self.history.record(spent, self.now.map(Clock::nanos)));
        if at.is_own {
            let is_refused = !admits(&decision, self.policy);
            self.report.count(decision.decision, is_refused);
            let is_told = decision.verdicts.iter().any(|verdict| !verdict.outcome.is_passed());
            if is_told || is_refused {
                let found = found(decision, &change, &self.snapshot, is_refused, at);
                self.report.find(found);
            }
        }
    }
}

/// Where a write stands in the log.
#[derive(Clone, Copy)]
struct At<'e> {
    entry: u64,
    part: u64,
    place: &'e str,
    id: &'e str,
    time: Option<&'e str>,
    is_own: bool,
}

fn found(decision: Decision, change: &Change, snapshot: &Snapshot, refused: bool, at: At<'_>) -> Found {
    // how long it took is another each time
    let decision = Decision { duration: None, ..decision };
    let told = decision.verdicts.iter().filter(|verdict| !verdict.outcome.is_passed());
    let broken = |(invariant, instance, outcome): (&str, &str, Finding)| Broken {
        invariant: invariant.to_owned(),
        instance: instance.to_owned(),
        outcome,
    };
    let broken = told.map(|verdict| broken((&verdict.invariant, &verdict.instance, verdict.outcome))).collect();
    let outcome = decision.decision;
    let report = Report { time: at.time.map(str::to_owned), ..Report::of(decision, change, snapshot) };
    let request = change.requests.first();
    Found {
        entry: at.entry,
        part: at.part,
        place: at.place.to_owned(),
        id: at.id.to_owned(),
        time: at.time.map(str::to_owned),
        user: request.map_or_else(String::new, |request| request.user.username.to_string()),
        request: request.map_or_else(String::new, |request| {
            suture_checker::written::describe_changes(request, &State::new(snapshot))
        }),
        decision: outcome,
        refused,
        broken,
        report: Some(Box::new(report)),
    }
}

/// A digest of a cluster: its objects in the order of their keys, and what was not read.
///
/// # Errors
/// When an object cannot be written as JSON.
pub fn digest_of(snapshot: &Snapshot) -> Result<String, serde_json::Error> {
    let mut digest = digest::Digest::default();
    for object in snapshot.iter() {
        digest.add(&serde_json::to_vec(&object.to_val())?);
    }
    snapshot.unknown().iter().for_each(|kind| digest.add(kind.as_bytes()));
    Ok(digest.to_string())
}
