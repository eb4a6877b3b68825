//! Decides changes: the only crate that knows the solver. Lowering, budgets, replay, explanation and caches.

mod answer;
pub mod audit;
mod blame;
mod cache;
mod causes;
mod clock;
pub mod decision;
mod decision_cache;
pub mod engine;
mod explain;
mod instance;
pub mod involved;
mod judge;
mod lower;
mod minimize;
pub mod pool;
mod prove;
mod request;
mod shares;
pub mod solve;
mod suggest;
mod suppose;
mod symmetry_memo;
mod unmodelled;
pub mod version;
pub mod written;

#[cfg(test)]
mod testing;
