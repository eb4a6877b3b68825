//! The command line of Suture and its admission backend: what reads files, watches and the clock, decides with
//! `checker`, and answers. Everything but `main` is callable from a test.
//!
//! Not there yet, and therefore not offered: `prove`.

pub mod arguments;
pub mod bench;
pub mod clock;
pub mod commands;
pub mod decide;
pub mod diff;
pub mod failure;
pub mod failure_policy;
pub mod grants;
#[cfg(feature = "page")]
pub mod html;
pub mod input;
pub mod ledger;
pub mod lint;
pub mod manifest;
pub mod names;
pub mod near;
pub mod never_asked;
pub mod no_op;
pub mod one_step;
pub mod output;
pub mod policy;
pub mod profile;
#[cfg(feature = "serve")]
pub mod reader;
pub mod recorded;
pub mod replay;
pub mod report;
pub mod request;
pub mod rules;
#[cfg(feature = "serve")]
pub mod serve;
pub mod suite;
pub mod unmodelled;
