//! One question for the solver, what it means, and its form that does not depend on names.

pub mod canon;
mod narrow;

use std::collections::BTreeSet;

use crate::term::{Assignment, Bool, TERM_NODES_MAX, TermError, VarId, Vars};

/// Names an assumption in the caller's own table. Assertions that share a label are kept or dropped together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// SAT of all assertions and the goal, over the ranges of the variables, means that a violating future exists, and the satisfying
/// assignment is that future. UNSAT is the proof that there is none, and its core names the assertions that the proof relies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The variables with their ranges.
    pub vars: Vars,
    /// What limits the futures.
    pub assertions: Vec<(Label, Bool)>,
    /// What a violating future satisfies.
    pub goal: Bool,
}

/// What can be said of a problem without a solver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presolved {
    /// No violating future exists; the proof relies on these assertions.
    Unsat {
        /// The labels, sorted.
        core: Vec<Label>,
    },
    /// This is a violating future.
    Sat(Assignment),
    /// A solver must tell.
    Open,
}

impl Problem {
    /// Nodes of all terms in written-out form, at most `u64::MAX`.
    pub fn size(&self) -> u64 {
        self.assertions.iter().map(|(_, condition)| condition.size()).fold(self.goal.size(), u64::saturating_add)
    }

    /// Refuses a problem that is too large to walk, or that names variables which its table does not have.
    pub fn check(&self) -> Result<(), TermError> {
        let nodes = self.size();
        if nodes > TERM_NODES_MAX {
            return Err(TermError::TooLarge { nodes });
        }
        // the greatest name stands for all: the table has no gaps
        self.occurring().last().map_or(Ok(()), |var| self.vars.info(*var).map(|_| ()))
    }

    /// Whether the assignment is a violating future.
    pub fn is_witness(&self, assignment: &Assignment) -> Result<bool, TermError> {
        if !self.vars.admit(assignment) {
            return Ok(false);
        }
        for condition in self.assertions.iter().map(|(_, condition)| condition).chain([&self.goal]) {
            if !condition.eval(assignment)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The least label whose assertion is plainly false.
    pub fn false_assertion(&self) -> Option<Label> {
        self.assertions.iter().filter(|(_, condition)| condition.is_false()).map(|(label, _)| *label).min()
    }

    /// The variables that occur in a condition.
    pub fn occurring(&self) -> BTreeSet<VarId> {
        let mut occurring = BTreeSet::new();
        self.assertions.iter().for_each(|(_, condition)| condition.collect_vars(&mut occurring));
        self.goal.collect_vars(&mut occurring);
        occurring
    }
}

#[cfg(test)]
mod tests;
