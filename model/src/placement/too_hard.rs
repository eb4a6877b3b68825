//! What is said where the budget of a search was spent.

/// Neither a way to place the pods was found, nor that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("whether there is a place for each pod was not found within the budget of the search")]
pub struct TooHard;
