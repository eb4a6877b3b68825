//! Asks Z3 one question within a budget. SAT means "a violating future exists" and comes with that future; UNSAT is the proof that
//! none does and comes with the assumptions that it needs; anything else is unknown, with a reason.
//!
//! Same problem, same budget, same answer to the byte, rlimit spent included: every question gets a context of its own. Measured on
//! Z3 5.3.2, a context that has answered other questions before gives other models, other cores and other resource counts, even to
//! a fresh solver in it, because Z3 orders terms by recycled identifiers. Creating a context costs 1–5 ms, which [`crate::pool`]
//! spends before the question arrives. Where only the verdict matters, [`quick`] reuses one solver and returns nothing else.

mod session;

pub use crate::answer::{Answer, Budget, Maximum, Reason, Solved, Spent};
pub(crate) use session::Prepared;

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use suture_encode::problem::Problem;
use suture_encode::term::Int;
use z3::{Params, SatResult, Solver};

use crate::lower::Lowered;

/// A verdict without witness, core or cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quick {
    /// A violating future exists.
    Sat,
    /// None does.
    Unsat,
    /// The budget ended the search.
    Unknown,
}

/// Answers on the calling thread, in a context made for this question: a few milliseconds. The deadline is Z3's own, which it heeds
/// between steps only.
pub fn solve_here(problem: &Problem, budget: Budget) -> Solved {
    if let Some(answer) = without_solver(problem) {
        return Solved::free(answer);
    }
    in_fresh_context(|| Prepared::new().solve(problem, budget, Some(budget.deadline_ms), &AtomicBool::new(false)))
}

/// The greatest value that the objective takes where the assertions and the goal hold, found by asking for more than the best so
/// far until there is none. On the calling thread, like [`solve_here`].
pub fn maximize(problem: &Problem, objective: &Int, budget: Budget) -> (Maximum, Spent) {
    in_fresh_context(|| Prepared::new().maximize(problem, objective, budget))
}

/// How many problems one solver of [`quick`] sees before it is replaced: bounds what it hoards.
const QUICK_SOLVES_MAX: u32 = 4096;

/// Only the verdict, on the calling thread, on a solver that is kept from call to call: 0.1–1 ms. What such a solver says beyond the
/// verdict depends on what it was asked before, therefore nothing else is returned. For lints and oracles that ask thousands of
/// questions; a decision that is reported wants [`solve_here`] or the pool.
pub fn quick(problem: &Problem, rlimit: u32) -> Quick {
    thread_local! {
        static KEPT: RefCell<Option<(Solver, u32)>> = const { RefCell::new(None) };
    }
    match without_solver(problem) {
        Some(Answer::Sat(_)) => return Quick::Sat,
        Some(Answer::Unsat { .. }) => return Quick::Unsat,
        Some(Answer::Unknown(_)) => return Quick::Unknown,
        None => {}
    }
    KEPT.with_borrow_mut(|kept| {
        let (solver, solves) = kept.take().filter(|(_, solves)| *solves < QUICK_SOLVES_MAX).unwrap_or_default();
        solver.push();
        let verdict = quick_check(&solver, problem, rlimit);
        solver.pop(1);
        *kept = Some((solver, solves + 1));
        verdict
    })
}

fn quick_check(solver: &Solver, problem: &Problem, rlimit: u32) -> Quick {
    let Ok(lowered) = Lowered::assert(problem, solver) else { return Quick::Unknown };
    lowered.literals().values().for_each(|literal| solver.assert(literal));
    let mut params = Params::new();
    params.set_u32("rlimit", rlimit.max(1));
    solver.set_params(&params);
    match solver.check() {
        SatResult::Sat => Quick::Sat,
        SatResult::Unsat => Quick::Unsat,
        SatResult::Unknown => Quick::Unknown,
    }
}

/// The answer to a problem whose goal is plainly false, or that is malformed. (A plainly false assertion is left to the solver: the
/// goal alone may be contradictory, and then the core is empty.)
pub(crate) fn without_solver(problem: &Problem) -> Option<Answer> {
    if let Err(error) = problem.check() {
        return Some(Answer::Unknown(Reason::Other(error.to_string())));
    }
    problem.goal.is_false().then(|| Answer::Unsat { core: Vec::new() })
}

fn in_fresh_context<T: Send + Sync>(ask: impl FnOnce() -> T + Send + Sync) -> T {
    z3::with_z3_config(&z3::Config::new(), ask)
}

#[cfg(test)]
mod tests;
