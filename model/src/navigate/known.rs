//! What may not be concluded, since a kind was not read.

use std::sync::Arc;

use crate::adapter::AdapterFacts;
use crate::kinds::Kind;
use crate::object::Key;
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

/// The custom resources of a namespace, or of none, of which an expression of their adapter failed; all there are for what is
/// in no namespace.
pub fn failing_adapters(state: &State, ns: &str) -> Vec<(Key, Arc<AdapterFacts>)> {
    let all = state.once("failing adapters", "", || -> Vec<_> {
        let failing = state.failing().into_iter();
        failing.filter_map(|custom| Some((custom.key.clone(), state.adapter(custom)?))).collect()
    });
    let is_near = |key: &Key| ns.is_empty() || key.ns.is_empty() || *key.ns == *ns;
    all.iter().filter(|(key, _)| is_near(key)).cloned().collect()
}
