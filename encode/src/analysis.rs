//! What can be said of an invariant before any cluster is looked at, worked out once for all decisions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use suture_model::kinds::Kind;
use suture_specs::compile::CompiledInvariant;

use crate::affected::Uses;
use crate::alike::{InstanceKind, instance_kind};

/// An invariant, and what is known of it whatever the cluster.
#[derive(Debug)]
pub struct Analysis {
    /// The invariant.
    pub compiled: Arc<CompiledInvariant>,
    pub(crate) uses: Uses,
    /// Of the kinds that were asked for.
    kinds: Mutex<BTreeMap<Kind, InstanceKind>>,
}

impl Analysis {
    /// Of this invariant.
    pub fn of(compiled: Arc<CompiledInvariant>) -> Self {
        let uses = Uses::of(&compiled);
        Self { compiled, uses, kinds: Mutex::default() }
    }

    /// Of each of these.
    pub fn of_all(invariants: &[Arc<CompiledInvariant>]) -> Vec<Self> {
        invariants.iter().cloned().map(Self::of).collect()
    }

    /// Whether an object of a kind may be an instance, where these kinds have adapters; never false for one that is.
    pub fn may_be(&self, kind: &Kind, adapted: &[Kind]) -> bool {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match kinds.get(kind) {
            Some(found) => *found,
            None => *kinds.entry(kind.clone()).or_insert(instance_kind(&self.compiled, kind)),
        };
        drop(kinds);
        match found {
            InstanceKind::Never => false,
            InstanceKind::Adapted => adapted.contains(kind),
            InstanceKind::Always => true,
        }
    }
}
