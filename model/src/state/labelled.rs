//! What is found by a label that says what is looked for, as the snapshot has it and as it is here.

use std::sync::Arc;

use super::State;
use crate::fields::anti_affinity;
use crate::fields::hosts::ANY_PLACE;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::snapshot::{is_ranked, low_by};
use crate::value::{Str, Val};

impl State<'_> {
    /// The pods whose required anti-affinity may be about pods of a namespace, in the order of their keys.
    pub fn keeping_apart(&self, ns: &str) -> Vec<&Arc<Object>> {
        let changed = self.changed_in(&Kind::new("", "Pod"), None).filter(|pod| !anti_affinity(pod).is_empty());
        self.merged(self.base.keeping_apart(ns), changed)
    }

    /// The pods that wait for a node, in the order of their keys.
    pub fn waiting(&self) -> Vec<&Arc<Object>> {
        let changed = self.changed_in(&Kind::new("", "Pod"), None).filter(|pod| pod.node.is_empty());
        sorted(self.merged(self.base.waiting(), changed))
    }

    /// The pods on nodes whose priority is that of this class or, without one, stated and below 0.
    pub fn low(&self, class: &str) -> Vec<&Arc<Object>> {
        let changed = self.changed_in(&Kind::new("", "Pod"), None);
        self.merged(self.base.low(class), changed.filter(|pod| low_by(pod).is_some_and(|by| *by == *class)))
    }

    /// What makes pods of a stated priority or class, and pods of such that wait for a node, in the order of their keys. Custom
    /// resources make them by their adapter's template.
    pub fn ranked(&self) -> Vec<&Arc<Object>> {
        let is_ranked = |object: &Object| is_ranked(object, self.adapter(object).as_deref());
        let changed = self.indexed(Some(&self.index.keys)).filter(|object| is_ranked(object));
        sorted(self.merged(self.base.ranked(), changed))
    }

    /// What makes pods, and pods that wait for a node, that may ask for something of a pod with these labels in a namespace; and
    /// whatever is changed. One may be there several times.
    pub fn related_to(&self, ns: &str, labels: &Val) -> Vec<&Arc<Object>> {
        let unchanged = self.base.related_to(ns, labels).into_iter().filter_map(|object| self.marked(object));
        unchanged.chain(self.indexed(Some(&self.index.keys))).collect()
    }

    /// The Ingresses and routes that name this host and path, in the order of their keys, and those that name too many to tell.
    pub fn claiming(&self, host: &str, path: &str) -> Vec<&Arc<Object>> {
        let at = |(host, path): (&str, &str)| {
            let changed = self.index.by_place.get(&(Str::from(host), Str::from(path)));
            self.merged(self.base.claiming(host, path), self.indexed(changed))
        };
        [at((host, path)), at(ANY_PLACE)].concat()
    }

    /// The PersistentVolumes that may be bound to a claim by their claimRef, in the order of their keys.
    pub fn claimed_by(&self, claim: &Key) -> Vec<&Arc<Object>> {
        let kind = Kind::new("", "PersistentVolume");
        let changed = self.changed_in(&kind, None);
        self.merged(self.base.claimed_by(&claim.ns, &claim.name), changed)
    }

    /// The bindings that may mean a ServiceAccount, in the order of their keys.
    pub fn binding(&self, ns: &str, account: &str) -> Vec<&Arc<Object>> {
        let changed = ["RoleBinding", "ClusterRoleBinding"].into_iter().filter_map(Kind::builtin);
        let changed = changed.flat_map(|kind| self.changed_in(&kind, None).collect::<Vec<_>>());
        let mut found = self.merged(self.base.binding(ns, account), changed);
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found.dedup_by(|a, b| a.key == b.key);
        found
    }

    /// The custom resources of which an expression of their adapter failed.
    pub fn failing(&self) -> Vec<&Arc<Object>> {
        let fails = |object: &Object| self.adapter(object).is_some_and(|facts| !facts.errors.is_empty());
        let kinds = self.base.adapters().kinds().into_iter();
        let changed = kinds.flat_map(|kind| self.changed_in(&kind, None).collect::<Vec<_>>());
        sorted(self.merged(self.base.failing(), changed.filter(|object| fails(object))))
    }
}

fn sorted(mut objects: Vec<&Arc<Object>>) -> Vec<&Arc<Object>> {
    objects.sort_by(|a, b| a.key.cmp(&b.key));
    objects
}
