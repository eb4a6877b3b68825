//! Judges the writes of a log on several threads; what is found is told in the order of the log.
//!
//! Each write is judged in the cluster that those before it left. A copy of that cluster takes no time, and goes along with
//! the write. Only budgets make one decision wait for another: where a policy has grants, all is judged on one thread.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use suture_checker::decision::{Decision, Finding, Outcome};
use suture_checker::engine::Engine;
use suture_checker::written::describe_changes;
use suture_model::change::{Change, Request};
use suture_model::land::SCENARIOS_MAX;
use suture_model::snapshot::{Facts, Snapshot};
use suture_model::state::State;

use super::report::{Broken, Found};
use crate::clock::Clock;
use crate::decide::{Decided, Question, admits, decide};
use crate::grants::{History, Spent};
use crate::no_op::{RelevantFields, writes};
use crate::policy::Policy;
use crate::report::Report;

/// So many writes wait for each thread: one that takes long does not hold up the others.
const WAITING_MAX: usize = 64;

/// A write to be judged.
pub struct Asked {
    /// The cluster before it.
    pub snapshot: Snapshot,
    /// The write.
    pub request: Request,
    /// When it is made, as far as that is known.
    pub time: Option<Clock>,
    /// Where it stands.
    pub at: At,
}

/// Where a write stands in a log.
#[derive(Clone, Debug)]
pub struct At {
    /// Its entry.
    pub entry: Arc<Origin>,
    /// Which of the writes of its entry it is.
    pub part: u64,
}

/// An entry of a log.
#[derive(Debug)]
pub struct Origin {
    /// Its number.
    pub number: u64,
    /// `FILE:LINE`.
    pub place: String,
    /// The id of its event.
    pub id: String,
    /// When it was made.
    pub time: Option<String>,
    /// Whether it is of the part of the log that is judged; of the others only the budgets count.
    pub is_own: bool,
}

/// What is found of a write.
pub struct Judged {
    /// What is decided.
    pub outcome: Outcome,
    /// Whether the webhook would have refused it.
    pub is_refused: bool,
    /// What is told of it, if it would not simply have been allowed.
    pub found: Option<Found>,
}

/// All that judging takes but for the write. A clone shares what is kept from one decision to the next.
#[derive(Clone)]
struct Judging {
    policy: Arc<Policy>,
    relevant: Arc<RelevantFields>,
    engine: Engine,
}

impl Judging {
    /// Judges a write, and says what it takes of budgets.
    fn judge(&mut self, asked: Asked, history: &History) -> (Judged, Vec<Spent>) {
        let Asked { snapshot, request, time, at } = asked;
        let passes = !at.entry.is_own || !writes(&request) || self.relevant.is_no_op(&request, &self.policy);
        let change = Change::from(request);
        let question = Question {
            snapshot: &snapshot,
            change: &change,
            writers: &|_| Vec::new(),
            ways_max: SCENARIOS_MAX,
            hopes: false,
            likely_reads: &Facts::default(),
            counted: &[],
            history,
            time,
            unread: &[],
        };
        let engine = if passes { None } else { Some(&mut self.engine) };
        let Decided { decision, spent, .. } = decide(&self.policy, engine, &question);
        let (outcome, is_refused) = (decision.decision, !admits(&decision, &self.policy));
        let is_told = is_refused || decision.verdicts.iter().any(|verdict| !verdict.outcome.is_passed());
        let found = is_told.then(|| found(decision, &change, &snapshot, is_refused, at));
        (Judged { outcome, is_refused, found }, spent)
    }
}

fn found(decision: Decision, change: &Change, snapshot: &Snapshot, refused: bool, at: At) -> Found {
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
    let Origin { number, place, id, time, is_own: _ } = &*at.entry;
    let report = Report { time: time.clone(), ..Report::of(decision, change, snapshot) };
    let request = change.requests.first();
    Found {
        entry: *number,
        part: at.part,
        place: place.clone(),
        id: id.clone(),
        time: time.clone(),
        user: request.map_or_else(String::new, |request| request.user.username.to_string()),
        request: request.map_or_else(String::new, |request| describe_changes(request, &State::new(snapshot))),
        decision: outcome,
        refused,
        broken,
        report: Some(Box::new(report)),
    }
}

/// Threads that judge.
pub struct Judges {
    judging: Judging,
    at_work: Option<AtWork>,
    /// How many writes were asked about, and how many of these were told of.
    asked: u64,
    told: u64,
    /// What is found and not told yet, since one before it is not found.
    found: BTreeMap<u64, Judged>,
}

/// The threads, as long as they have work.
struct AtWork {
    asks: SyncSender<(u64, Asked)>,
    finds: Receiver<(u64, Judged)>,
    threads: Vec<JoinHandle<()>>,
}

impl Judges {
    /// As many threads as there are processors, by a policy and the engine for it.
    pub fn by(policy: Arc<Policy>, engine: Engine) -> Self {
        let relevant = RelevantFields::of(&policy).into();
        let judging = Judging { policy, relevant, engine };
        Self { judging, at_work: None, asked: 0, told: 0, found: BTreeMap::new() }
    }

    /// Whether decisions wait for each other, since budgets are counted: then they are made by [`Self::judge`].
    pub fn count_budgets(&self) -> bool {
        !self.judging.policy.grants.is_empty()
    }

    /// Judges a write on this thread, and says what it takes of budgets.
    pub fn judge(&mut self, asked: Asked, history: &History) -> (Judged, Vec<Spent>) {
        self.judging.judge(asked, history)
    }

    /// Hands a write over; waits where too many wait already.
    pub fn ask(&mut self, asked: Asked) {
        let number = self.asked;
        self.asked += 1;
        let judging = &self.judging;
        let at_work = self.at_work.get_or_insert_with(|| AtWork::begin(judging));
        if at_work.asks.send((number, asked)).is_err() {
            // every thread has panicked, and so does this one
            self.end();
        }
    }

    /// What is found of the next writes, as far as all before them is found.
    pub fn told(&mut self) -> Vec<Judged> {
        if let Some(AtWork { finds, .. }) = &self.at_work {
            self.found.extend(finds.try_iter());
        }
        let mut next = Vec::new();
        while let Some(judged) = self.found.remove(&self.told) {
            next.push(judged);
            self.told += 1;
        }
        next
    }

    /// Waits until all is found, and gives what was not told yet.
    pub fn settle(&mut self) -> Vec<Judged> {
        self.end();
        self.told()
    }

    fn end(&mut self) {
        let Some(AtWork { asks, finds, threads }) = self.at_work.take() else { return };
        drop(asks);
        self.found.extend(finds.iter());
        for thread in threads {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
    }
}

impl AtWork {
    fn begin(judging: &Judging) -> Self {
        let count = thread::available_parallelism().map_or(1, usize::from);
        let (asks, asked) = sync_channel(count * WAITING_MAX);
        let (sends, finds) = channel();
        let asked = Arc::new(Mutex::new(asked));
        let thread = || {
            let (asked, sends, judging) = (asked.clone(), sends.clone(), judging.clone());
            thread::spawn(move || work(judging, &asked, &sends))
        };
        Self { asks, finds, threads: (0..count).map(|_| thread()).collect() }
    }
}

/// Judges what is asked until nobody asks any more.
fn work(mut judging: Judging, asked: &Mutex<Receiver<(u64, Asked)>>, sends: &Sender<(u64, Judged)>) {
    loop {
        let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, asked)) = next else { return };
        let (judged, _) = judging.judge(asked, &History::default());
        if sends.send((number, judged)).is_err() {
            return;
        }
    }
}
