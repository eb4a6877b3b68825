//! The threads that decide: a bounded queue before them, panics contained, stuck ones replaced.
//!
//! | a worker | then |
//! |---|---|
//! | panics | the request is answered as declared, the thread ends, a new one with a new decider takes its place |
//! | takes nearly until its deadline | its steps are ended: what is not decided by then is undecided |
//! | overruns a deadline | its request has been answered by then; it is left to itself, a new one takes its place |
//! | cannot be made | it is tried again at the watchdog's next look |
//!
//! Solver contexts are bound to a thread and never survive a panic. Workers, and the solver's threads that they start,
//! run at a lower priority than the threads that serve connections and keep the Lease.
//!
//! Requests of one namespace (of one author, outside of namespaces) never take all workers: who sends what is slow to decide
//! makes its own requests wait, and no others. A thread that is left to itself counts until it ends, which the steps of a
//! decision see to. Where there is one worker it cannot be so.
//!
//! A request that would wait beyond its deadline is shed when it comes: the wait is the number that wait times the time
//! that one takes, over the number of workers (Little's law). With nobody waiting nothing is shed, so that the time that
//! one takes is always measured anew.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use suture_model::steps::{self, Abandoned, End};
use tokio::sync::oneshot;
use tracing::Span;

use super::answer::{Answer, Unanswered};
use super::metrics::Metrics;
use super::review::{AdmissionCall, whose};
use crate::clock::now;

/// How often the watchdog looks: an overrun worker is missed for no longer.
const WATCH_EVERY: Duration = Duration::from_millis(50);
/// Threads that may be stuck at once; more than these, and only a restart helps: [`Workers::alive`] says so.
const STUCK_MAX: usize = 16;

/// How much lower the priority of a worker is (`setpriority(2)`, which on Linux is that of one thread): the least step,
/// since whatever else runs on the machine comes first, too.
const NICE: i32 = 1;
/// The part of a request's time in which its decision ends, once it has taken all others: one in this many.
const ENDING_PART: u32 = 10;
/// The part of the newest measurement in [`Crew::decision_micros`]: one in this many, so that a slow one sheds nobody.
const AVERAGE_PART: u64 = 32;

/// Decides admission requests on one worker thread; each worker owns one (solver contexts are bound to their thread).
pub trait Decider {
    /// Decides one request. It should be done by `asked.deadline`: later, nobody listens.
    fn decide(&mut self, asked: &AdmissionCall) -> Answer;
}

/// Makes the decider of a worker, on the worker's own thread.
pub trait Deciders: Send + Sync + 'static {
    /// A new decider.
    fn decider(&self) -> Box<dyn Decider>;
}

/// How many there are.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads that decide.
    pub workers: usize,
    /// Requests that wait for one.
    pub queue_len_max: usize,
}

/// The workers; cheap to clone. The threads end when the last clone is dropped.
#[derive(Clone)]
pub struct Workers {
    owner: Arc<Owner>,
}

/// Lets the threads go when it is dropped; they themselves keep only the crew.
struct Owner {
    crew: Arc<Crew>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.crew.closed.store(true, Ordering::Release);
        drop(self.crew.queue());
        self.crew.waiting.notify_all();
    }
}

struct Crew {
    deciders: Arc<dyn Deciders>,
    limits: Limits,
    metrics: Metrics,
    queue: Mutex<Queue>,
    waiting: Condvar,
    members: Mutex<Vec<Arc<Member>>>,
    stuck: AtomicUsize,
    /// What a decision takes, in microseconds: a moving average.
    decision_micros: AtomicU64,
    closed: AtomicBool,
    began: Instant,
}

/// What waits, and what is being decided.
#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// How many requests are being decided of each namespace or author.
    running: BTreeMap<String, usize>,
}

impl Queue {
    /// Takes out the first request whose namespace leaves a worker to others, and that somebody still waits for.
    fn take(&mut self, workers: usize) -> Option<Job> {
        self.jobs.retain(|job| !job.reply.is_closed());
        let most = workers.saturating_sub(1).max(1);
        let has_turn = |job: &Job| workers == 1 || self.running.get(&job.whose).is_none_or(|running| *running < most);
        let at = self.jobs.iter().position(has_turn)?;
        let job = self.jobs.remove(at)?;
        *self.running.entry(job.whose.clone()).or_default() += 1;
        Some(job)
    }

    /// A request of these is decided.
    fn done(&mut self, whose: &str) {
        if let Some(running) = self.running.get_mut(whose) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(whose);
            }
        }
    }
}

struct Job {
    /// The namespace of the request; outside of namespaces its author.
    whose: String,
    asked: AdmissionCall,
    reply: oneshot::Sender<Answer>,
    span: Span,
    /// Ends the decision.
    end: End,
}

/// Abandons a decision that nobody waits for any longer.
struct Asker(End);

impl Drop for Asker {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// One thread, as the watchdog sees it.
#[derive(Default)]
struct Member {
    /// Its place was given to another.
    left: AtomicBool,
    /// When the request that it decides is due, in microseconds after [`Crew::began`]; zero when it decides none.
    due_micros: AtomicU64,
}

impl Workers {
    /// Starts the threads.
    pub fn start(deciders: Arc<dyn Deciders>, limits: Limits, metrics: Metrics) -> Self {
        let crew = Arc::new(Crew {
            deciders,
            limits,
            metrics,
            queue: Mutex::default(),
            waiting: Condvar::new(),
            members: Mutex::default(),
            stuck: AtomicUsize::new(0),
            decision_micros: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            began: now(),
        });
        crew.complete();
        let watched = crew.clone();
        spawn("suture-watchdog", move || {
            while !watched.closed.load(Ordering::Acquire) {
                thread::sleep(WATCH_EVERY);
                watched.leave_stuck();
                watched.complete();
            }
        });
        Self { owner: Arc::new(Owner { crew }) }
    }

    /// Has a request decided by the next worker that is free.
    ///
    /// # Errors
    /// At once when the queue is full, at its deadline when there is no answer, and when the decider panics.
    pub async fn ask(&self, asked: AdmissionCall) -> Result<Answer, Unanswered> {
        let crew = &self.owner.crew;
        let (deadline, asker) = (asked.deadline, Asker(End::default()));
        let closing = deadline - deadline.saturating_duration_since(asked.arrived) / ENDING_PART;
        let (reply, mut answer) = oneshot::channel();
        let whose = whose(asked.text(&["namespace"]), asked.text(&["userInfo", "username"]));
        crew.push(Job { whose, asked, reply, span: Span::current(), end: asker.0.clone() })?;
        let mut answered = tokio::time::timeout_at(closing.into(), &mut answer).await;
        if answered.is_err() {
            asker.0.end();
            answered = tokio::time::timeout_at(deadline.into(), answer).await;
        }
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(Unanswered::Panicked),
            Err(_) => {
                crew.metrics.overran();
                Err(Unanswered::Overrun)
            }
        }
    }

    /// Whether a request that is due then would get its turn in time, if it came now. One that would not is counted as
    /// shed.
    ///
    /// # Errors
    /// When it would not.
    pub fn admit(&self, due: Instant) -> Result<(), Unanswered> {
        let crew = &self.owner.crew;
        let length = crew.queue().jobs.len();
        crew.admit(length, due)
    }

    /// Whether restarting would not help: enough threads are left that can decide.
    ///
    /// # Errors
    /// What is wrong.
    pub fn alive(&self) -> Result<(), String> {
        match self.owner.crew.stuck.load(Ordering::Acquire) {
            stuck if stuck >= STUCK_MAX => Err(format!("{stuck} workers are stuck")),
            _ => Ok(()),
        }
    }
}

impl Crew {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn members(&self) -> MutexGuard<'_, Vec<Arc<Member>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sheds a request where so many wait before it that its turn would come too late.
    fn admit(&self, waiting: usize, due: Instant) -> Result<(), Unanswered> {
        let each = Duration::from_micros(self.decision_micros.load(Ordering::Relaxed));
        let wait = each.saturating_mul(u32::try_from(waiting / self.limits.workers.max(1)).unwrap_or(u32::MAX));
        if waiting < self.limits.queue_len_max && now().checked_add(wait).is_some_and(|turn| waiting == 0 || turn < due)
        {
            return Ok(());
        }
        self.metrics.shed();
        Err(Unanswered::Shed)
    }

    fn push(&self, job: Job) -> Result<(), Unanswered> {
        let mut queue = self.queue();
        let waiting = queue.jobs.len();
        self.admit(waiting, job.asked.deadline)?;
        queue.jobs.push_back(job);
        self.metrics.queued(waiting, queue.jobs.len());
        drop(queue);
        self.waiting.notify_one();
        Ok(())
    }

    /// The next request that somebody still waits for; none when the thread is to end.
    fn next(&self, member: &Member) -> Option<Job> {
        let mut queue = self.queue();
        loop {
            if member.left.load(Ordering::Acquire) || self.closed.load(Ordering::Acquire) {
                return None;
            }
            let waiting = queue.jobs.len();
            let job = queue.take(self.limits.workers);
            self.metrics.queued(waiting, queue.jobs.len());
            match job {
                Some(job) => return Some(job),
                None => queue = self.waiting.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Starts the threads that are missing.
    fn complete(self: &Arc<Self>) {
        let mut members = self.members();
        while members.len() < self.limits.workers && !self.closed.load(Ordering::Acquire) {
            let member = Arc::new(Member::default());
            let (crew, own) = (self.clone(), member.clone());
            if !spawn("suture-worker", move || crew.work(&own)) {
                return;
            }
            members.push(member);
        }
    }

    /// One thread's life.
    fn work(self: &Arc<Self>, member: &Arc<Member>) {
        if let Err(error) = setpriority_process(None, NICE) {
            tracing::warn!(%error, "a worker keeps the priority of the threads that serve connections");
        }
        let mut place = Place { crew: self, member, at_once: false };
        let made = catch_unwind(AssertUnwindSafe(|| self.deciders.decider()));
        let Ok(mut decider) = made else {
            self.metrics.panicked();
            return;
        };
        place.at_once = true;
        while let Some(Job { whose, asked, reply, span, end }) = self.next(member) {
            let _turn = Turn { crew: self, whose };
            let began = now();
            let waited = began.saturating_duration_since(asked.arrived);
            self.metrics.waited(waited);
            member.due_micros.store(self.micros(asked.deadline), Ordering::Release);
            let decided =
                steps::until(&end, || catch_unwind(AssertUnwindSafe(|| span.in_scope(|| decider.decide(&asked)))));
            member.due_micros.store(0, Ordering::Release);
            self.took(now().saturating_duration_since(began));
            let mut answer = match decided {
                Ok(answer) => answer,
                Err(with) => {
                    // another thread takes the place of one that left in the middle of something
                    if !with.is::<Abandoned>() {
                        self.metrics.panicked();
                    }
                    return;
                }
            };
            answer.waited = waited;
            // the asker may have gone
            _ = reply.send(answer);
        }
    }

    /// One decision took so long.
    fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let known = self.decision_micros.load(Ordering::Relaxed);
        // of two that measure at once one may be lost
        let average = if known == 0 { micros } else { known - known / AVERAGE_PART + micros / AVERAGE_PART };
        self.decision_micros.store(average, Ordering::Relaxed);
    }

    /// Gives the places of threads that overran to others, as long as not too many are stuck.
    fn leave_stuck(&self) {
        let late = self.micros(now());
        self.members().retain(|member| {
            let due = member.due_micros.load(Ordering::Acquire);
            let keep = due == 0 || due >= late || self.stuck.load(Ordering::Acquire) >= STUCK_MAX;
            if !keep {
                tracing::error!("a worker is stuck, another one takes its place");
                self.stuck.fetch_add(1, Ordering::AcqRel);
                member.left.store(true, Ordering::Release);
                self.metrics.replaced();
            }
            keep
        });
    }

    fn micros(&self, instant: Instant) -> u64 {
        let micros = instant.saturating_duration_since(self.began).as_micros();
        u64::try_from(micros).unwrap_or(u64::MAX).max(1)
    }
}

/// A request that is being decided; over however that ends.
struct Turn<'a> {
    crew: &'a Crew,
    whose: String,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.crew.queue().done(&self.whose);
        // one of the same may have waited for it
        self.crew.waiting.notify_one();
    }
}

/// A thread's place among the members; given up however the thread ends.
struct Place<'a> {
    crew: &'a Arc<Crew>,
    member: &'a Arc<Member>,
    /// Whether the place is taken again at once, not at the watchdog's next look.
    at_once: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Self { crew, member, at_once } = self;
        let mut members = crew.members();
        if member.left.load(Ordering::Acquire) {
            crew.stuck.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        members.retain(|other| !Arc::ptr_eq(other, member));
        drop(members);
        if *at_once {
            crew.complete();
        }
    }
}

/// Starts a thread and says whether there is one.
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    let started = thread::Builder::new().name(name.to_owned()).spawn(run);
    if let Err(error) = &started {
        tracing::error!(%error, thread = name, "no thread can be started");
    }
    started.is_ok()
}

#[cfg(test)]
mod tests;
