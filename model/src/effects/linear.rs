//! Counts over fates and the inequalities between them, of which limits are made.

use crate::futures::{Count, FateKind, Linear, SetId};

/// Fates in which an existing pod is there still.
pub const STAY: [FateKind; 3] = [FateKind::Stays, FateKind::BecomesReady, FateKind::LosesReadiness];

/// Fates in which an existing pod is not there to serve any more.
pub const LOST: [FateKind; 2] = [FateKind::Terminating, FateKind::Gone];

/// Fates in which a new pod is on a node.
const PLACED: [FateKind; 1] = [FateKind::NewReady];

/// `set` counted over these fates, at any place.
pub fn count(set: SetId, fates: &[FateKind]) -> Count {
    Count { set, fates: fates.to_vec(), places: None }
}

/// The new pods of `set` that are placed.
pub fn placed(set: SetId) -> Count {
    count(set, &PLACED)
}

/// The new pods of `set` at these places.
pub fn placed_at(set: SetId, places: &[usize]) -> Count {
    Count { places: Some(places.to_vec()), ..placed(set) }
}

/// The sum of these counts is at most `bound`.
pub fn at_most(counts: Vec<Count>, bound: i64) -> Linear {
    Linear { terms: counts.into_iter().map(|c| (1, c)).collect(), at_most: bound }
}

/// The sum of these counts is at least `bound`.
pub fn at_least(counts: Vec<Count>, bound: i64) -> Linear {
    Linear { terms: counts.into_iter().map(|c| (-1, c)).collect(), at_most: -bound }
}

/// What holds whatever happens.
pub fn always() -> Linear {
    Linear { terms: Vec::new(), at_most: 0 }
}
