//! One solver in its own context, from before its question arrives to the end of the answer.

use std::sync::atomic::{AtomicBool, Ordering};

use suture_encode::problem::{Label, Problem};
use suture_encode::term::Assignment;
use z3::{Params, SatResult, Solver, StatisticsValue, ast};

use crate::answer::{Answer, Budget, Check, Reason, Solved, Spent};
use crate::lower::Lowered;
use crate::minimize;

/// A solver that has done, in the context of this thread, whatever the first question would otherwise wait for. It answers one
/// question: its context remembers. Dropping it takes as long as a check; pass the answer on first.
pub(crate) struct Prepared {
    solver: Solver,
}

impl Prepared {
    /// Asks a small question of the usual kind and forgets it: always the same one, so that answers stay reproducible.
    pub(crate) fn new() -> Self {
        let solver = Solver::new();
        solver.push();
        let [a, b] = [0_u32, 1].map(ast::Int::new_const);
        let on = ast::Bool::new_const(2_u32);
        for var in [&a, &b] {
            solver.assert(var.ge(0));
            solver.assert(var.le(9));
        }
        solver.assert(on.implies(ast::Int::add(&[a.clone(), b.clone()]).le(5)));
        solver.assert(ast::Bool::or(&[a.ge(4), b.ge(7)]));
        if solver.check_assumptions(std::slice::from_ref(&on)) == SatResult::Sat {
            let _ = solver.get_model().and_then(|model| model.eval(&a, true));
        }
        solver.assert(b.ge(3));
        solver.assert(a.ge(3));
        let _ = solver.check_assumptions(&[on]);
        let _ = solver.get_unsat_core();
        solver.pop(1);
        Prepared { solver }
    }

    /// Answers the question. `timeout_ms` is for a caller who cannot be left by anybody; `stop` ends the search between checks.
    pub(crate) fn solve(
        &self,
        problem: &Problem,
        budget: Budget,
        timeout_ms: Option<u64>,
        stop: &AtomicBool,
    ) -> Solved {
        let mut session = match Session::start(&self.solver, problem, budget, timeout_ms, stop) {
            Ok(session) => session,
            Err(reason) => return Solved::free(Answer::Unknown(reason)),
        };
        let all: Vec<Label> = session.lowered.literals().keys().copied().collect();
        let (answer, core_is_minimal) = match session.check(&all) {
            Check::Sat => (session.witness().map_or_else(Answer::Unknown, Answer::Sat), true),
            Check::Unsat(core) => {
                let (core, minimal) = minimize::core(core, |labels| session.check(labels));
                (Answer::Unsat { core }, minimal)
            }
            Check::Unknown(reason) => (Answer::Unknown(reason), true),
        };
        Solved { answer, spent: session.spent, core_is_minimal }
    }
}

/// A problem in a solver, and what is left of its budget.
struct Session<'a> {
    solver: &'a Solver,
    problem: &'a Problem,
    lowered: Lowered,
    stop: &'a AtomicBool,
    timeout_ms: Option<u64>,
    left: u32,
    /// What the context had spent at the last look.
    seen: u32,
    spent: Spent,
}

impl<'a> Session<'a> {
    fn start(
        solver: &'a Solver,
        problem: &'a Problem,
        budget: Budget,
        timeout_ms: Option<u64>,
        stop: &'a AtomicBool,
    ) -> Result<Self, Reason> {
        let seen = rlimit_count(solver);
        let lowered = Lowered::assert(problem, solver).map_err(|error| Reason::Other(error.to_string()))?;
        Ok(Session { solver, problem, lowered, stop, timeout_ms, left: budget.rlimit, seen, spent: Spent::default() })
    }

    /// Asks with only these labels' assertions.
    fn check(&mut self, labels: &[Label]) -> Check {
        if self.stop.load(Ordering::Relaxed) {
            return Check::Unknown(Reason::Deadline);
        }
        if self.left == 0 {
            return Check::Unknown(Reason::Rlimit);
        }
        let mut params = Params::new();
        params.set_u32("rlimit", self.left);
        if let Some(timeout_ms) = self.timeout_ms {
            // zero means none to Z3
            params.set_u32("timeout", u32::try_from(timeout_ms).unwrap_or(u32::MAX).max(1));
        }
        self.solver.set_params(&params);
        let literals: Vec<ast::Bool> =
            labels.iter().filter_map(|label| self.lowered.literals().get(label)).cloned().collect();
        let result = self.solver.check_assumptions(&literals);
        self.settle();
        match result {
            SatResult::Sat => Check::Sat,
            SatResult::Unsat => Check::Unsat(self.lowered.labels(&self.solver.get_unsat_core())),
            SatResult::Unknown => Check::Unknown(self.reason()),
        }
    }

    /// The model of the last check, if it satisfies the problem: nothing that Z3 says is believed unseen.
    fn witness(&self) -> Result<Assignment, Reason> {
        let model = self.solver.get_model().and_then(|model| self.lowered.decode(&model));
        let witness = model.ok_or_else(|| Reason::Other("the solver's model has no values".to_owned()))?;
        match self.problem.is_witness(&witness) {
            Ok(true) => Ok(witness),
            Ok(false) => Err(Reason::Other("the solver's model does not satisfy the problem".to_owned())),
            Err(error) => Err(Reason::Other(error.to_string())),
        }
    }

    /// Charges what was spent since the last look.
    fn settle(&mut self) {
        let now = rlimit_count(self.solver);
        // the count is cumulative and cut to 32 bits
        let used = now.wrapping_sub(self.seen);
        self.seen = now;
        self.left = self.left.saturating_sub(used);
        self.spent.rlimit += u64::from(used);
        self.spent.checks += 1;
    }

    fn reason(&self) -> Reason {
        let text = self.solver.get_reason_unknown().unwrap_or_default();
        if self.stop.load(Ordering::Relaxed) {
            Reason::Deadline
        } else if self.left == 0 || text.contains("resource limit") {
            Reason::Rlimit
        } else if text == "timeout" || text == "canceled" {
            // Z3 has one word for all that may cancel a check: the units are not spent, hence its timeout
            Reason::Deadline
        } else {
            Reason::Other(format!("the solver gave up: {text}"))
        }
    }
}

/// What the context has spent so far, cut to 32 bits.
fn rlimit_count(solver: &Solver) -> u32 {
    match solver.get_statistics().value("rlimit count") {
        Some(StatisticsValue::UInt(count)) => count,
        _ => 0,
    }
}
