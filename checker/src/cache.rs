//! Verdicts by problem: isomorphic problems, whatever their objects are called, are solved once.
//!
//! The cache is bounded by bytes. A hit gives the same answer as solving would: the canonical problem is what is solved,
//! and the answer is translated back.

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lru::LruCache;
use suture_encode::problem::{Presolved, Problem};
use suture_model::steps;

use crate::answer::{Answer, Budget, Reason, Solved};
use crate::decision::Effort;
use crate::pool::Pool;
use crate::solve::solve_here;

/// What an entry costs beside its key and its values.
const ENTRY_BYTES: usize = 128;

/// The steps that a question to the solver counts, beside those for each of the solver's resource units: a unit is about
/// a third of a microsecond, a context a millisecond.
const STEPS_PER_QUESTION: u64 = 30_000;
const STEPS_PER_UNIT: u64 = 10;

/// The cache, with the way past it; clones are one cache.
#[derive(Clone)]
pub struct Verdicts(Arc<Mutex<Entries>>);

struct Entries {
    solved: LruCache<Vec<u8>, Solved>,
    bytes: usize,
    bytes_max: usize,
}

/// Solver threads of the process. Few questions come to a solver, and a context takes some 10 MiB.
const WORKERS: usize = 2;
/// Questions that wait: each thread asks one at a time.
const QUEUE_LEN_MAX: usize = 256;

/// The pool of the process, as long as a thread that has asked lives.
static POOL: Mutex<Weak<Pool>> = Mutex::new(Weak::new());

thread_local! {
    /// Started by the first problem that needs a solver, and kept: a context takes milliseconds to make.
    static MINE: OnceCell<Option<Arc<Pool>>> = const { OnceCell::new() };
}

impl Verdicts {
    /// An empty cache of at most so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        let most = NonZeroUsize::new((bytes_max / ENTRY_BYTES).max(1)).unwrap_or(NonZeroUsize::MIN);
        Self(Arc::new(Mutex::new(Entries { solved: LruCache::new(most), bytes: 0, bytes_max })))
    }

    /// Whether a violating future exists. Nobody else waits while a solver is asked.
    pub fn solve(&self, problem: &Problem, budget: Budget, effort: &mut Effort) -> Answer {
        match problem.presolve(&[]) {
            Ok(Presolved::Unsat { core }) => {
                effort.folded += 1;
                return Answer::Unsat { core };
            }
            Ok(Presolved::Sat(witness)) => {
                effort.folded += 1;
                return Answer::Sat(witness);
            }
            Ok(Presolved::Open) => {}
            Err(error) => return Answer::Unknown(Reason::Other(error.to_string())),
        }
        let canon = match problem.canonical() {
            Ok(canon) => canon,
            Err(error) => return Answer::Unknown(Reason::Other(error.to_string())),
        };
        let known = self.entries().solved.get(&canon.key).cloned();
        let solved = match known {
            Some(known) => {
                effort.cached += 1;
                known
            }
            None => {
                effort.solved += 1;
                let solved = ask(&canon.problem, budget);
                effort.rlimit = effort.rlimit.saturating_add(solved.spent.rlimit);
                // what the clock or the queue cut short is not the problem's answer
                if !matches!(solved.answer, Answer::Unknown(Reason::Deadline | Reason::QueueFull)) {
                    self.entries().keep(canon.key.clone(), solved.clone());
                }
                solved
            }
        };
        // what is known costs as much: a decision comes out the same whatever was asked before
        steps::count(solved.spent.rlimit.saturating_mul(STEPS_PER_UNIT).saturating_add(STEPS_PER_QUESTION));
        match solved.answer {
            Answer::Sat(assignment) => match canon.restore(problem, &assignment) {
                Ok(restored) => Answer::Sat(restored),
                Err(error) => Answer::Unknown(Reason::Other(error.to_string())),
            },
            Answer::Unsat { core } => Answer::Unsat { core: canon.restore_core(&core) },
            unknown => unknown,
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn keep(&mut self, key: Vec<u8>, solved: Solved) {
        self.bytes = self.bytes.saturating_add(cost(&key, &solved));
        if let Some((old_key, old)) = self.solved.push(key, solved) {
            self.bytes = self.bytes.saturating_sub(cost(&old_key, &old));
        }
        while self.bytes > self.bytes_max {
            let Some((old_key, old)) = self.solved.pop_lru() else { break };
            self.bytes = self.bytes.saturating_sub(cost(&old_key, &old));
        }
    }
}

/// Asks a solver thread; solves on this one where none can be started.
fn ask(problem: &Problem, budget: Budget) -> Solved {
    MINE.with(|mine| match mine.get_or_init(pool) {
        Some(pool) => pool.solve(problem.clone(), budget),
        None => solve_here(problem, budget),
    })
}

fn pool() -> Option<Arc<Pool>> {
    let mut known = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = known.upgrade() {
        return Some(pool);
    }
    let pool = Arc::new(Pool::new(WORKERS, QUEUE_LEN_MAX).ok()?);
    *known = Arc::downgrade(&pool);
    Some(pool)
}

fn cost(key: &[u8], solved: &Solved) -> usize {
    let answer = match &solved.answer {
        Answer::Sat(assignment) => assignment.0.len() * 8,
        Answer::Unsat { core } => core.len() * 4,
        Answer::Unknown(_) => 0,
    };
    key.len() + answer + ENTRY_BYTES
}
