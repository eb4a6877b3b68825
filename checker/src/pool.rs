//! Solver threads with a bounded queue, and the clock that no solver can hold up.
//!
//! One question, one thread, one context: a worker makes its context and warms it up, waits for a question, answers, and ends.
//! Contexts never outlive a question, so that memory is bounded and answers do not depend on what was asked before (see
//! [`crate::solve`]), and the cost of a context is paid while nobody waits. Its successor is started once its context is gone,
//! so that there are never more contexts than workers.
//!
//! The caller never waits longer than the question's deadline. A worker that is still busy then is abandoned: it is interrupted,
//! which Z3 heeds when it likes to, ends by itself, and is replaced at once.

mod gate;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use suture_encode::problem::Problem;
use suture_model::steps;

use self::gate::Gate;
use crate::answer::{Answer, Budget, Reason, Solved};
use crate::solve::{Prepared, without_solver};
use crate::version::{VersionError, z3_version};

/// How many abandoned workers may linger before none is replaced any more. Each holds about 20 MiB and perhaps a core.
const ABANDONED_MAX: usize = 8;

/// Z3 walks terms recursively; a thread's default of 2 MiB is less than a main thread has. Only touched pages are resident.
const WORKER_STACK_BYTES: usize = 16 << 20;

/// How long a pool that is dropped waits for its workers. The process should not exit under a thread that runs Z3, whose static
/// data is destroyed then.
const SHUTDOWN_MS_MAX: u64 = 2_000;

/// How often a caller looks whether its decision was ended meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Answers questions on threads of its own.
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    workers: usize,
    queue_len_max: usize,
    state: Mutex<State>,
    /// Notified when a ticket is queued, and when the pool closes.
    queued: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<Ticket>>,
    /// Workers that make their context, wait, or answer somebody who waits.
    serving: usize,
    /// Workers that answer nobody.
    abandoned: usize,
    /// All workers started and not yet seen to have ended.
    threads: Vec<JoinHandle<()>>,
    closed: bool,
}

/// A question and the place where its answer appears.
struct Ticket {
    problem: Problem,
    budget: Budget,
    progress: Mutex<Progress>,
    changed: Condvar,
}

enum Progress {
    Waiting,
    Running(Arc<Gate>),
    Done(Solved),
    /// Nobody waits for the answer.
    Abandoned,
}

/// How many threads a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Questions that no worker has taken yet.
    pub queued: usize,
    /// Workers that make their context, wait, or answer somebody who waits.
    pub serving: usize,
    /// Workers that overran their deadline and have not ended yet.
    pub abandoned: usize,
}

impl Pool {
    /// Starts the workers; they are ready some milliseconds later, and questions may be asked before. At least one worker, and room
    /// for at least one waiting question.
    pub fn new(workers: usize, queue_len_max: usize) -> Result<Pool, VersionError> {
        z3_version()?;
        let shared = Shared {
            workers: workers.max(1),
            queue_len_max: queue_len_max.max(1),
            state: Mutex::default(),
            queued: Condvar::new(),
        };
        let shared = Arc::new(shared);
        refill(&shared, &mut lock(&shared.state));
        Ok(Pool { shared })
    }

    /// Answers, or says that the deadline passed, or that the decision was [ended](steps::End). The deadline includes the time
    /// in the queue.
    pub fn solve(&self, problem: Problem, budget: Budget) -> Solved {
        if let Some(answer) = without_solver(&problem) {
            return Solved::free(answer);
        }
        let deadline = now() + Duration::from_millis(budget.deadline_ms);
        let ticket = Ticket { problem, budget, progress: Mutex::new(Progress::Waiting), changed: Condvar::new() };
        let ticket = Arc::new(ticket);
        if let Err(reason) = self.enqueue(&ticket) {
            return Solved::free(Answer::Unknown(reason));
        }
        self.wait(&ticket, deadline)
    }

    /// What the pool is doing.
    pub fn load(&self) -> Load {
        let state = lock(&self.shared.state);
        Load { queued: state.queue.len(), serving: state.serving, abandoned: state.abandoned }
    }

    fn enqueue(&self, ticket: &Arc<Ticket>) -> Result<(), Reason> {
        let mut state = lock(&self.shared.state);
        // again, in case a thread could not be started before
        refill(&self.shared, &mut state);
        if state.queue.len() >= self.shared.queue_len_max {
            return Err(Reason::QueueFull);
        }
        state.queue.push_back(Arc::clone(ticket));
        self.shared.queued.notify_one();
        Ok(())
    }

    fn wait(&self, ticket: &Arc<Ticket>, deadline: Instant) -> Solved {
        let mut progress = lock(&ticket.progress);
        loop {
            if let Progress::Done(solved) = &*progress {
                return solved.clone();
            }
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() || steps::ended() {
                break;
            }
            progress =
                ticket.changed.wait_timeout(progress, left.min(LOOK_EVERY)).unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut state = lock(&self.shared.state);
        match std::mem::replace(&mut *progress, Progress::Abandoned) {
            Progress::Running(gate) => {
                gate.stop();
                state.serving = state.serving.saturating_sub(1);
                state.abandoned += 1;
                refill(&self.shared, &mut state);
            }
            _ => state.queue.retain(|other| !Arc::ptr_eq(other, ticket)),
        }
        Solved::free(Answer::Unknown(Reason::Deadline))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.queued.notify_all();
        // whoever is still busy was abandoned, hence interrupted, or is about to end
        let deadline = now() + Duration::from_millis(SHUTDOWN_MS_MAX);
        let running = || lock(&self.shared.state).threads.iter().any(|thread| !thread.is_finished());
        while running() && now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        for thread in lock(&self.shared.state).threads.drain(..).filter(JoinHandle::is_finished) {
            // a worker that panicked has been accounted for
            let _ = thread.join();
        }
    }
}

/// Starts workers until there are enough, or too many abandoned ones.
fn refill(shared: &Arc<Shared>, state: &mut State) {
    state.threads.retain(|thread| !thread.is_finished());
    while !state.closed && state.serving < shared.workers && state.abandoned < ABANDONED_MAX {
        let theirs = Arc::clone(shared);
        let builder = thread::Builder::new().name("suture-solvers".to_owned());
        match builder.spawn(move || follow(&theirs)) {
            Ok(thread) => state.threads.push(thread),
            // tried again with the next question
            Err(_) => return,
        }
        state.serving += 1;
    }
}

/// Starts a worker, and signs it off when its context is gone: what that took is free by then, and its successor takes it.
fn follow(shared: &Arc<Shared>) {
    let mut end = End { shared, last: Last::Failed };
    let theirs = Arc::clone(shared);
    let builder = thread::Builder::new().name("suture-solver".to_owned()).stack_size(WORKER_STACK_BYTES);
    if let Ok(worker) = builder.spawn(move || work(&theirs)) {
        // it takes its context down as it ends
        end.last = worker.join().unwrap_or(Last::Failed);
    }
}

/// The life of a worker.
fn work(shared: &Arc<Shared>) -> Last {
    // this thread's own context; it ends with the thread
    let context = z3::Context::thread_local();
    let gate = Arc::new(Gate::default());
    thread::scope(|scope| {
        let (handle, theirs) = (context.handle(), Arc::clone(&gate));
        scope.spawn(move || theirs.guard(|| handle.interrupt()));
        let _opened = gate.open_on_drop();
        serve(shared, &gate)
    })
}

/// Answers one question.
fn serve(shared: &Arc<Shared>, gate: &Arc<Gate>) -> Last {
    let prepared = Prepared::new();
    let Some(ticket) = next_ticket(shared, gate) else { return Last::Failed };
    let answered =
        catch_unwind(AssertUnwindSafe(|| prepared.solve(&ticket.problem, ticket.budget, None, gate.stopped())));
    let panicked = |_| Solved::free(Answer::Unknown(Reason::Other("the solver failed".to_owned())));
    let solved = answered.unwrap_or_else(panicked);
    let mut progress = lock(&ticket.progress);
    if matches!(*progress, Progress::Abandoned) {
        return Last::Abandoned;
    }
    *progress = Progress::Done(solved);
    drop(progress);
    ticket.changed.notify_all();
    Last::Answered
}

/// Waits for a question that somebody still waits for; none if the pool closes.
fn next_ticket(shared: &Shared, gate: &Arc<Gate>) -> Option<Arc<Ticket>> {
    let mut state = lock(&shared.state);
    loop {
        if state.closed {
            return None;
        }
        let Some(ticket) = state.queue.pop_front() else {
            state = shared.queued.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        // never the pool's lock while waiting for a ticket's: the other way round is how a question is abandoned
        drop(state);
        let mut progress = lock(&ticket.progress);
        if matches!(*progress, Progress::Waiting) {
            *progress = Progress::Running(Arc::clone(gate));
            drop(progress);
            return Some(ticket);
        }
        drop(progress);
        state = lock(&shared.state);
    }
}

/// What a worker did last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// It answered.
    Answered,
    /// Nobody waited for its answer any more.
    Abandoned,
    /// It could not make its context, or the pool has closed.
    Failed,
}

/// Signs a worker off, however it ends, and starts its successor.
struct End<'a> {
    shared: &'a Arc<Shared>,
    last: Last,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        let count = if self.last == Last::Abandoned { &mut state.abandoned } else { &mut state.serving };
        *count = count.saturating_sub(1);
        if self.last != Last::Failed {
            // one that could not even make its context is replaced when the next question comes, lest it fail in a loop
            refill(self.shared, &mut state);
        }
    }
}

/// A poisoned lock is as good as any: no invariant spans a panic here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "the backstop of a budget; no answer but `Deadline` depends on it")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
