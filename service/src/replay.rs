//! Recorded requests against invariants: what would have been denied, when, by whom, why.
//!
//! The cluster starts as a state, and each write of the log that was made is applied to it as it was stored, also one that
//! would have been denied: the log says what happened. Before that it is judged as `check` judges it, with nothing else in
//! flight. A shard applies all writes and judges its part, so that parts add up to the report of the whole.

use std::sync::Arc;

use suture_checker::engine::Engine;
use suture_model::change::Request;
use suture_model::snapshot::Snapshot;

use crate::clock::Clock;
use crate::grants::History;
use crate::never_asked::is_never_asked;
use crate::policy::Policy;

use cluster::{Standing, put, standing};
use event::{Entry, Recorded, Write};
use judging::{Asked, At, Judged, Judges, Origin};
use log::{LogEntry, Text};
use report::{Left, Replayed};
use shard::Shard;

pub mod cluster;
pub mod digest;
pub mod event;
pub mod judging;
pub mod log;
pub mod report;
pub mod shard;

/// A replay under way.
pub struct Replay {
    judges: Judges,
    snapshot: Snapshot,
    history: History,
    shard: Shard,
    /// Entries before this one were judged already.
    from: u64,
    /// The time of the entries so far, which one without a time has.
    now: Option<Clock>,
    report: Replayed,
}

impl Replay {
    /// Begins with a cluster, at a time; goes on where a report ends that has not ended.
    pub fn new(
        policy: Arc<Policy>,
        engine: Engine,
        snapshot: Snapshot,
        now: Option<Clock>,
        shard: Shard,
        mut report: Replayed,
    ) -> Self {
        let from = report.read;
        report.read = 0;
        Self { judges: Judges::by(policy, engine), snapshot, history: History::default(), shard, from, now, report }
    }

    /// What was found so far, but for what is being judged.
    pub fn progress(&self) -> &Replayed {
        &self.report
    }

    /// What was found, once all that was taken is judged.
    pub fn settled(&mut self) -> &mut Replayed {
        let found = self.judges.settle();
        self.note(found);
        &mut self.report
    }

    fn note(&mut self, found: Vec<Judged>) {
        for Judged { outcome, is_refused, found } in found {
            self.report.count(outcome, is_refused);
            if let Some(found) = found {
                self.report.find(found);
            }
        }
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
                let entry = Arc::new(Origin { number, place, id, time, is_own });
                for (part, write) in (0..).zip(writes) {
                    let at = At { entry: entry.clone(), part };
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

    fn write(&mut self, write: Write, at: At) {
        let (gap, request, after) = match standing(&self.snapshot, write, at.entry.time.as_deref().unwrap_or_default())
        {
            Standing::Known => {
                if at.entry.is_own {
                    self.report.leave(Left::InState);
                }
                return;
            }
            Standing::Unclear(gap, request, after) => (Some(gap), request, after),
            Standing::Made(request, after) => (None, request, after),
        };
        match gap {
            _ if is_never_asked(&request) => {
                if at.entry.is_own {
                    self.report.leave(Left::NeverAsked);
                }
            }
            Some(gap) if at.entry.is_own => {
                self.report.miss(gap, at.entry.number, at.entry.place.clone(), request.describe())
            }
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
    fn judge(&mut self, request: &Request, at: At) {
        let (is_own, count_budgets) = (at.entry.is_own, self.judges.count_budgets());
        if !is_own && !count_budgets {
            return;
        }
        let asked = Asked { snapshot: self.snapshot.clone(), request: request.clone(), time: self.now, at };
        if !count_budgets {
            self.judges.ask(asked);
            let told = self.judges.told();
            return self.note(told);
        }
        let (judged, spent) = self.judges.judge(asked, &self.history);
        spent.iter().for_each(|spent| self.history.record(spent, self.now.map(Clock::nanos)));
        if is_own {
            self.note(vec![judged]);
        }
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
