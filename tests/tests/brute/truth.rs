//! What brute force says of an instance, or why it says nothing, and the clock that it has in common with the checker.

/// The clock of every case.
pub const TIME: &str = "2026-11-01T12:00:00Z";

/// What brute force finds out about an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// No future of the change breaks it.
    Proved,
    /// A future breaks it, as one does without the change, and no worse.
    NotWorse,
    /// A future breaks it and the change is to blame.
    Refuted,
    /// No future breaks it where it can be evaluated, and in some it cannot.
    Fails,
}

/// Why a case is not enumerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfit {
    /// It has more worlds than are looked at.
    TooLarge,
    /// The model gives two groups power over one object.
    Overlap,
    /// The limits of a group leave no world at all, where the cluster must be in some.
    NoFuture,
}
