//! What a universe has more of.

/// What an invariant is about: its universes have more of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Focus {
    Services,
    Quorum,
    Faults,
    Claims,
    References,
    Owners,
    Definitions,
    Namespaces,
    Hosts,
    Budgets,
    Selectors,
    Pods,
    Capacity,
    Writers,
    Rights,
    Room,
}
