//! What can be said of an invariant before any cluster is looked at, worked out once for all decisions: its footprint, and
//! what the kind of an instance decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use suture_model::kinds::Kind;
use suture_specs::compile::CompiledInvariant;

pub mod annotations;
pub mod footprint;
mod instances;
pub mod reads;
mod uses;

use footprint::Footprint;
use instances::{InstanceKind, instance_kind, reads_nodes_only};
pub(crate) use uses::Place;

/// An invariant, and what is known of it whatever the cluster.
#[derive(Debug)]
pub struct Analysis {
    /// The invariant.
    pub compiled: Arc<CompiledInvariant>,
    /// What it reads.
    pub footprint: Footprint,
    /// Of the kinds that were asked for.
    kinds: Mutex<BTreeMap<Kind, KindAnalysis>>,
}

/// What is known of the instances of a kind.
#[derive(Clone, Copy, Debug)]
struct KindAnalysis {
    instances: InstanceKind,
    reads_nodes_only: bool,
}

impl Analysis {
    /// Of this invariant.
    pub fn of(compiled: Arc<CompiledInvariant>) -> Self {
        Self { footprint: Footprint::of(&compiled), kinds: Mutex::default(), compiled }
    }

    /// Of each of these.
    pub fn of_all(invariants: impl IntoIterator<Item = Arc<CompiledInvariant>>) -> Vec<Self> {
        invariants.into_iter().map(Self::of).collect()
    }

    /// Whether an object of a kind may be an instance, where these kinds have adapters; never false for one that is.
    pub fn may_be(&self, kind: &Kind, adapted: &[Kind]) -> bool {
        match self.of_kind(kind).instances {
            InstanceKind::Never => false,
            InstanceKind::Adapted => adapted.contains(kind),
            InstanceKind::Always => true,
        }
    }

    /// Whether nothing but the constraint on nodes is read of its instances of a kind.
    pub fn reads_nodes_only(&self, kind: &Kind) -> bool {
        self.of_kind(kind).reads_nodes_only
    }

    fn of_kind(&self, kind: &Kind) -> KindAnalysis {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        match kinds.get(kind) {
            Some(known) => *known,
            None => *kinds.entry(kind.clone()).or_insert(KindAnalysis {
                instances: instance_kind(&self.compiled, kind),
                reads_nodes_only: reads_nodes_only(&self.compiled, kind),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
