//! The types of Suture's specs, CEL lowered to a typed IR with its concrete evaluator, and the shipped library. This
//! crate owns CEL: no other one knows its syntax, and only `cel` knows the parser's types.

pub mod ir;
pub mod value;
pub mod error;
pub mod functions;
pub mod time;
mod strings;
pub mod access;
pub mod eval;
pub mod cel;
pub mod suggest;
pub mod spec;
pub mod compile;
pub mod library;
pub mod adapters;
