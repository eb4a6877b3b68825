//! What is found out about the deletions of a state once, for all objects that may go with them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::adapter::AdapterFacts;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::value::Str;

/// A custom resource, and what its adapter says about it.
type WithFacts = (Arc<Object>, Arc<AdapterFacts>);

/// What goes, of that which its dependents do not name.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// What operators delete with the custom resources that list it, by [`Key::partial_key`].
    children: BTreeMap<Key, Vec<Key>>,
    /// The custom resources whose operators delete claims with them, by namespace.
    without_claims: BTreeMap<Str, Vec<WithFacts>>,
    /// The kinds whose definitions go.
    pub(crate) kinds: BTreeSet<Kind>,
}

impl UnderWay {
    /// Adds a custom resource that goes.
    pub(crate) fn add(&mut self, custom: &Arc<Object>, facts: &Arc<AdapterFacts>) {
        for child in facts.children.iter().flatten().filter(|_| facts.cascades) {
            self.children.entry(child.clone().partial_key()).or_default().push(child.clone());
        }
        if facts.deletes_volumes {
            self.without_claims.entry(custom.key.ns.clone()).or_default().push((custom.clone(), facts.clone()));
        }
    }

    /// Whether an operator deletes an object with a custom resource that lists it.
    pub(crate) fn is_listed(&self, object: &Key) -> bool {
        // most states have none
        !self.children.is_empty()
            && self.children.get(&object.clone().partial_key()).is_some_and(|keys| keys.iter().any(|k| k.means(object)))
    }

    /// The custom resources of a namespace whose operators delete claims with them.
    pub(crate) fn without_claims(&self, ns: &Str) -> &[WithFacts] {
        self.without_claims.get(ns).map_or(&[], Vec::as_slice)
    }
}
