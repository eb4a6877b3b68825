//! What is watched, and what is covered.
