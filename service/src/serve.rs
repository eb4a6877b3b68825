//! The admission backend: Suture in front of a cluster.

pub mod conditions;
pub mod configuration;
pub mod off;
pub mod rbac;
pub mod resources;
pub mod status;
pub mod surface;
