//! `suture bench`: a generated cluster of a given size, requests that touch each template, and how long deciding them
//! takes.

pub mod beside;
pub mod cluster;
pub mod manifests;
pub mod measure;
pub mod prng;
pub mod report;
pub mod requests;
