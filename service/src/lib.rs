//! The command line of Suture: what reads files and the clock, decides with `checker`, and prints. Everything but `main`
//! is callable from a test.

pub mod arguments;
pub mod bench;
pub mod commands;
pub mod failure;
pub mod input;
pub mod manifest;
pub mod names;
pub mod output;
pub mod policy;
pub mod request;
pub mod suite;
pub mod world;
