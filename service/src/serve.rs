//! The admission backend: Suture in front of a cluster.

pub mod surface;
