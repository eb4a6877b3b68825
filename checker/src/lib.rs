//! Decides changes: the only crate that knows the solver. Lowering, budgets, replay, explanation and caches.

pub mod decision;
pub mod engine;
pub mod solve;
pub mod pool;
pub mod version;
mod cache;
mod clock;
mod explain;
mod inputs;
mod lower;
mod minimize;

#[cfg(test)]
mod testing;
