//! Facts about a cluster, changes to it, and what may become of it: effects as declarations, and the concrete
//! interpreter that enumerates them. No I/O, no clock, no solver, no expression language.

pub mod access;
pub mod adapter;
pub mod annotations;
pub mod apply;
pub mod change;
pub mod controllers;
pub mod deletion;
pub mod effects;
pub mod fields;
pub mod futures;
pub mod hash;
pub mod ingest;
pub mod intern;
pub mod interpret;
pub mod kinds;
pub mod land;
pub mod navigate;
pub mod node_names;
pub mod object;
pub mod placement;
pub mod quantity;
pub mod references;
pub mod scenario;
pub mod selector;
pub mod snapshot;
pub mod state;
pub mod steps;
pub mod value;

#[cfg(test)]
mod testing;
