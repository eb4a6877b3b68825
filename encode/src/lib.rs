//! From a scenario and an invariant to one question for a solver: slicing to what is read, the quotient into classes of
//! interchangeable objects, and the invariant evaluated in all futures at once.
//!
//! This crate knows no solver and no syntax: it reads the model's futures and the typed expressions of `specs`.

pub mod analysis;
mod calls;
mod cases;
pub mod class;
pub mod eval;
pub mod evictions;
pub mod impact;
mod navigate;
pub mod outage;
mod preparations;
mod priority;
pub mod problem;
pub mod question;
mod reading;
pub mod relations;
pub mod scene;
pub mod smtlib;
pub mod sym;
pub mod term;
