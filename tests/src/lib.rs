//! Suture: tests.
