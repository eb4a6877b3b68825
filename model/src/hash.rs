//! One hash for what is found by its hash, and never shown in that order.
//!
//! It is seeded anew in each process: nobody who names objects can choose names that meet.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::SharedSeed;
pub use foldhash::fast::RandomState;
use foldhash::fast::SeedableRandomState;

/// A hasher that says the same of the same parts throughout the process.
pub fn hasher() -> impl Hasher {
    SeedableRandomState::with_seed(0, SharedSeed::global_random()).build_hasher()
}

/// The hash of a value, the same throughout the process.
pub fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = hasher();
    value.hash(&mut hasher);
    hasher.finish()
}
