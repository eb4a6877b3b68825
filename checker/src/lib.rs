//! Decides changes: the only crate that knows the solver. Lowering, budgets, replay, explanation and caches.

mod cache;
mod clock;
pub mod decision;
mod decision_cache;
pub mod engine;
mod explain;
mod inputs;
mod invariant_run;
mod lower;
mod minimize;
pub mod pool;
pub mod solve;
pub mod version;

#[cfg(test)]
mod testing;
