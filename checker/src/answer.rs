//! What a question to the solver may cost, and what the solver says.

use suture_encode::problem::Label;
use suture_encode::term::Assignment;

/// What one question may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In Z3's resource units, for all checks of the question together. The real limit, because it does not depend on the machine.
    pub rlimit: u32,
    /// Wall clock, only a backstop.
    pub deadline_ms: u64,
}

impl Budget {
    /// What a decision in a webhook may cost. On 2 GHz cores Z3 spends 1.2–2.7 million units a second on hard problems of this
    /// kind, so that the units end long before the deadline unless the machine is overloaded; 13 counts take 2,000–3,500 units, 61
    /// counts 23,000–40,000; five members that are spread over zones and nodes at once take up to 400,000.
    pub const WEBHOOK: Budget = Budget { rlimit: 500_000, deadline_ms: 1_000 };

    /// What a decision outside a webhook may cost: the same units, so the same verdicts, and time enough for a busy machine.
    pub const OFFLINE: Budget = Budget { rlimit: 500_000, deadline_ms: 10_000 };
}

/// What the solver said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This is a violating future; it was evaluated against the problem.
    Sat(Assignment),
    /// There is none.
    Unsat {
        /// The labels that the proof relies on, sorted. Removing any of them breaks the proof, if [`Solved::core_is_minimal`].
        core: Vec<Label>,
    },
    /// Nothing is known.
    Unknown(Reason),
}

/// Why nothing is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The resource units are spent.
    #[error("the solver's budget is spent")]
    Rlimit,
    /// The wall clock ran out first: the machine is overloaded, or the budgets do not match.
    #[error("the deadline passed")]
    Deadline,
    /// Too many questions wait already.
    #[error("too many questions wait for the solver")]
    QueueFull,
    /// What Z3 or the lowering says.
    #[error("{0}")]
    Other(String),
}

/// What was spent on a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// In Z3's resource units.
    pub rlimit: u64,
    /// How often the solver was asked, minimisation included.
    pub checks: u32,
}

/// An answer and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solved {
    /// The answer.
    pub answer: Answer,
    /// What it cost. All zero if no solver was needed, or if the deadline passed.
    pub spent: Spent,
    /// Whether every label of the core is needed. False if the budget ended minimisation; true of answers without a core.
    pub core_is_minimal: bool,
}

impl Solved {
    pub(crate) fn free(answer: Answer) -> Solved {
        Solved { answer, spent: Spent::default(), core_is_minimal: true }
    }
}

/// The outcome of one check.
pub(crate) enum Check {
    Sat,
    Unsat(Vec<Label>),
    Unknown(Reason),
}
