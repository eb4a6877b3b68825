//! Suites: cases with requests and the outcomes that they expect, run without a cluster.

pub mod documents;
pub mod expect;
pub mod report;
pub mod run;
pub mod steps;
