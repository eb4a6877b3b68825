//! Asks Z3 one question within a budget. SAT means "a violating future exists" and comes with that future; UNSAT is the proof that
//! none does and comes with the assumptions that it needs; anything else is unknown, with a reason.
//!
//! Same problem, same budget, same answer to the byte, rlimit spent included: every question gets a context of its own. Measured on
//! Z3 5.3.2, a context that has answered other questions before gives other models, other cores and other resource counts, even to
//! a fresh solver in it, because Z3 orders terms by recycled identifiers. Creating a context costs 1–5 ms, which [`crate::pool`]
//! spends before the question arrives.

mod session;

use std::sync::atomic::AtomicBool;

use suture_encode::problem::Problem;

pub use crate::answer::{Answer, Budget, Reason, Solved, Spent};
pub(crate) use session::Prepared;

/// Answers on the calling thread, in a context made for this question: a few milliseconds. The deadline is Z3's own, which it heeds
/// between steps only.
pub fn solve_here(problem: &Problem, budget: Budget) -> Solved {
    if let Some(answer) = without_solver(problem) {
        return Solved::free(answer);
    }
    let ask = || Prepared::new().solve(problem, budget, Some(budget.deadline_ms), &AtomicBool::new(false));
    z3::with_z3_config(&z3::Config::new(), ask)
}

/// The answer to a problem whose goal is plainly false, or that is malformed. (A plainly false assertion is left to the solver: the
/// goal alone may be contradictory, and then the core is empty.)
pub(crate) fn without_solver(problem: &Problem) -> Option<Answer> {
    if let Err(error) = problem.check() {
        return Some(Answer::Unknown(Reason::Other(error.to_string())));
    }
    problem.goal.is_false().then(|| Answer::Unsat { core: Vec::new() })
}

#[cfg(test)]
mod tests;
