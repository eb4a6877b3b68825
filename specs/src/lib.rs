//! The types of Suture's specs, CEL lowered to a typed IR with its concrete evaluator, and the shipped library. This
//! crate owns CEL: no other one knows its syntax, and only `cel` knows the parser's types.

pub mod about_locals;
pub mod access;
pub mod adapters;
pub mod cel;
pub mod compile;
pub mod error;
pub mod eval;
pub mod functions;
pub mod globs;
pub mod ir;
pub mod library;
pub mod manifest;
pub mod members;
mod schedule;
pub mod spec;
mod strings;
pub mod suggest;
pub mod time;
mod types;
pub mod value;
