//! What a request did, and why it did nothing.

use crate::change::{Propagation, Request};
use crate::object::{Key, Object};
use crate::value::Str;

/// What a request did to a state directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Whether it did anything, or asks for a deletion.
    pub effective: bool,
    /// Why it did nothing.
    pub why_not: Option<String>,
    /// The objects whose deletion it asks for, or has completed by taking the last finalizer away; the latter are gone
    /// from the state, the others untouched.
    pub deletions: Vec<(Key, Propagation)>,
    /// Whether the deletion is an eviction.
    pub evicted: bool,
}

impl Applied {
    pub(super) fn done() -> Self {
        Self { effective: true, ..Self::default() }
    }

    pub(super) fn nothing(why: impl Into<String>) -> Self {
        Self { why_not: Some(why.into()), ..Self::default() }
    }

    pub(super) fn deleting(key: Key, propagation: Option<Propagation>) -> Self {
        let propagation = propagation.unwrap_or(Propagation::Background);
        Self { effective: true, deletions: vec![(key, propagation)], ..Self::default() }
    }
}

/// Why the preconditions of a deletion do not hold of the object: as the request shows it, else as the state does.
pub(super) fn contradiction(object: &Object, request: &Request) -> Option<String> {
    let shown = |field: &str| request.old.as_ref().and_then(|old| old.str_at(&["metadata", field]));
    let uid = shown("uid").unwrap_or(&object.uid);
    let version = shown("resourceVersion").unwrap_or(&object.resource_version);
    let other = |asked: &Option<Str>, stored: &str| {
        asked.as_ref().is_some_and(|asked| !stored.is_empty() && **asked != *stored)
    };
    if other(&request.preconditions.uid, uid) {
        return Some(format!("`{}` has another uid than the precondition asks for", request.target));
    }
    let stale = other(&request.preconditions.resource_version, version);
    stale.then(|| format!("`{}` has another resourceVersion than the precondition asks for", request.target))
}
