//! What may not be concluded, since a kind was not read.

use crate::kinds::Kind;
use crate::state::State;
use crate::value::Str;

/// The answer depends on objects of a kind that was not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("objects of kind `{0}` were not read")]
pub struct UnknownKind(
    /// The short name of the kind.
    pub Str,
);

/// Whether objects of this kind were read at all.
///
/// # Errors
/// When they were not: nothing may be concluded from their absence.
pub fn known(state: &State, kind: &Kind) -> Result<(), UnknownKind> {
    if state.base().unknown().contains(&kind.kind) { Err(UnknownKind(kind.kind.clone())) } else { Ok(()) }
}
