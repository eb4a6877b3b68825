//! Facts about a cluster, changes to it, and what may become of it: effects as declarations, and the concrete
//! interpreter that enumerates them. No I/O, no clock, no solver, no expression language.

pub mod value;
pub mod kinds;
pub mod object;
pub mod quantity;
pub mod selector;
pub mod references;
pub mod adapter;
pub mod snapshot;
pub mod state;
pub mod navigate;
pub mod ingest;
pub mod change;
pub mod apply;
pub mod futures;
pub mod cascade;
pub mod scenario;
pub mod effects;
pub mod interpret;

#[cfg(test)]
mod testing;
