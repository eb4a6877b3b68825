//! What a custom resource means, as plain data: the values that a `ResourceAdapter`'s expressions take on one object.
//!
//! `model` neither parses nor evaluates expressions; whoever does (crate `specs`) implements [`Adapters`].

use std::sync::Arc;

use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::references::reference::Reference;
use crate::selector::Selector;
use crate::value::{Str, Val};

/// What an adapter says about one custom resource. Absent parts say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdapterFacts {
    /// How many pods it wants.
    pub replicas: Option<i64>,
    /// The path of the field that `replicas` reads, if it is a plain field path (so that a scale request can set it).
    pub replicas_path: Option<Vec<String>>,
    /// The pods it runs, in its own namespace.
    pub selector: Option<Selector>,
    /// The labels of `selector`, for pods that its operator makes.
    pub selector_labels: Val,
    /// The claims it wants kept while it lives, in its own namespace.
    pub claim_selector: Option<Selector>,
    /// A PodTemplateSpec (a bare PodSpec is wrapped).
    pub template: Option<Val>,
    /// The objects that its operator makes and wants, if the adapter lists them (an empty list: none).
    pub children: Option<Vec<Key>>,
    /// What it needs or writes.
    pub references: Vec<Reference>,
    /// Whether the pods of `selector` vote.
    pub quorum: bool,
    /// What it scales.
    pub scale_target: Option<Key>,
    /// The replicas that it may set on its scale target, lowest and highest.
    pub replica_range: Option<(i64, i64)>,
    /// Whether deleting it deletes the claims of `claim_selector`; without one, those of its StatefulSets and pods.
    pub deletes_volumes: bool,
    /// Whether deleting it deletes its children.
    pub cascades: bool,
    /// Expressions that failed on this object, with their errors; such an object decides nothing.
    pub errors: Vec<String>,
}

impl AdapterFacts {
    /// Whether its operator may delete objects of a kind with it, beside those that name it as an owner.
    pub fn may_delete(&self, kind: &str) -> bool {
        let lists = |children: &Vec<Key>| children.iter().any(|child| *child.kind.kind == *kind);
        (self.cascades && self.children.as_ref().is_some_and(lists))
            || (self.deletes_volumes && kind == "PersistentVolumeClaim")
    }
}

/// The loaded adapters.
pub trait Adapters: Send + Sync + std::fmt::Debug {
    /// What the adapter of this object's kind says about it; `None` when no adapter is for that kind.
    fn facts(&self, object: &Object) -> Option<Arc<AdapterFacts>>;
    /// The kinds that have an adapter.
    fn kinds(&self) -> Vec<Kind>;
    /// Those of them that are named before an object of them was seen: a user wrote the adapter. A shipped one says nothing
    /// about which kinds a cluster has.
    fn stated_kinds(&self) -> Vec<Kind> {
        self.kinds()
    }
    /// Whether the adapter of a kind may list what its operator makes.
    fn lists_children(&self, _: &Kind) -> bool {
        true
    }
    /// What the adapter of a kind leaves to its operator, which every proof about such an object relies on.
    fn assumed(&self, _: &Kind) -> Vec<Str> {
        Vec::new()
    }
    /// Whether the adapter of a kind says that what its operator does is not modelled.
    fn is_unmodelled(&self, _: &Kind) -> bool {
        false
    }
}

/// No adapters at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAdapters;

impl Adapters for NoAdapters {
    fn facts(&self, _: &Object) -> Option<Arc<AdapterFacts>> {
        None
    }

    fn kinds(&self) -> Vec<Kind> {
        Vec::new()
    }
}
