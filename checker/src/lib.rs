//! Decides changes: the only crate that knows the solver. Lowering, budgets, replay, explanation and caches.

mod cache;
mod clock;
pub mod decision;
pub mod engine;
mod explain;
mod inputs;
mod kept;
mod lower;
mod minimize;
pub mod pool;
mod round;
pub mod solve;
pub mod version;

#[cfg(test)]
mod testing;
