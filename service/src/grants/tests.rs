//! Grants, judged.
