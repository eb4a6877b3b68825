//! What a deletion takes along: garbage collection, namespaces, definitions, adapters, volumes, pods of a lost node, tokens.
//!
//! | file | says |
//! |---|---|
//! | `edges` | in which ways an object goes with another: each once, with both ends |
//! | `closure` | forward: the closure of the deletions that a request asks for |
//! | `expected` | backward: what goes anyway, since what it depends on goes; who stays in use |

mod closure;
mod edges;
mod expected;

pub use closure::{DeletionClosure, cascade};
pub use edges::{Cause, cascaded, followers, given_up, may_take_along, takes_along};
pub use expected::{Expected, expected_to_go, is_protected, live_referrers, stays_in_use, why_expected};

#[cfg(test)]
mod tests;
