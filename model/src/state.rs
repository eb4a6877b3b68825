//! A possible cluster: a snapshot with a few objects changed, made without copying the snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::adapter::AdapterFacts;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::references::references;
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// A snapshot overlaid with changed, added and removed objects.
#[derive(Clone, Debug)]
pub struct State<'a> {
    base: &'a Snapshot,
    delta: BTreeMap<Key, Option<Arc<Object>>>,
}

impl<'a> State<'a> {
    /// The snapshot itself.
    pub fn new(base: &'a Snapshot) -> Self {
        Self { base, delta: BTreeMap::new() }
    }

    /// The snapshot below.
    pub fn base(&self) -> &'a Snapshot {
        self.base
    }

    /// What differs from the snapshot: `None` for an object that is gone.
    pub fn delta(&self) -> &BTreeMap<Key, Option<Arc<Object>>> {
        &self.delta
    }

    /// Adds or replaces an object.
    pub fn put(&mut self, object: Object) {
        self.delta.insert(object.key.clone(), Some(Arc::new(object)));
    }

    /// Adds or replaces an object that is shared already.
    pub fn put_shared(&mut self, object: Arc<Object>) {
        self.delta.insert(object.key.clone(), Some(object));
    }

    /// Takes an object away.
    pub fn take(&mut self, key: &Key) {
        if self.base.get(key).is_some() {
            self.delta.insert(key.clone(), None);
        } else {
            self.delta.remove(key);
        }
    }

    /// What the adapter of this object says about it.
    pub fn adapter(&self, object: &Object) -> Option<Arc<AdapterFacts>> {
        self.base.adapter(object)
    }

    /// The object with this key.
    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        match self.delta.get(key) {
            Some(changed) => changed.as_ref(),
            None => self.base.get(key),
        }
    }

    /// The object with this uid.
    pub fn by_uid(&self, uid: &str) -> Option<&Arc<Object>> {
        if uid.is_empty() {
            return None;
        }
        let changed = self.delta.values().flatten().find(|o| &*o.uid == uid);
        changed.or_else(|| {
            let found = self.base.by_uid(uid)?;
            (!self.delta.contains_key(&found.key)).then_some(found)
        })
    }

    /// The objects of a kind, in one namespace or all, in the order of their keys.
    pub fn list(&self, kind: &Kind, ns: Option<&str>) -> Vec<&Arc<Object>> {
        self.merged(self.base.list(kind, ns), |o| o.key.kind == *kind && ns.is_none_or(|ns| *o.key.ns == *ns))
    }

    /// The objects in a namespace, of every kind.
    pub fn in_namespace(&self, ns: &str) -> Vec<&Arc<Object>> {
        self.merged(self.base.in_namespace(ns), |o| *o.key.ns == *ns)
    }

    /// All objects, in the order of their keys.
    pub fn iter(&self) -> Vec<&Arc<Object>> {
        self.merged(self.base.iter().collect(), |_| true)
    }

    /// The kinds of which an object exists, or existed in the snapshot.
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds = self.base.kinds();
        kinds.extend(self.delta.keys().map(|k| k.kind.clone()));
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// The objects that name this uid among their owners.
    pub fn owned_by(&self, uid: &str) -> Vec<&Arc<Object>> {
        if uid.is_empty() {
            return Vec::new();
        }
        self.merged(self.base.owned_by(uid), |o| o.owners().iter().any(|owner| &*owner.uid == uid))
    }

    /// The pods assigned to this node.
    pub fn pods_on(&self, node: &str) -> Vec<&Arc<Object>> {
        self.merged(self.base.pods_on(node), |o| !node.is_empty() && &*o.node == node)
    }

    /// The pods in a namespace whose labels match.
    pub fn pods_matching(&self, ns: &str, selector: &Selector) -> Vec<&Arc<Object>> {
        self.matching(&Kind::new("", "Pod"), ns, selector)
    }

    /// The pods or claims in a namespace whose labels match.
    pub fn matching(&self, kind: &Kind, ns: &str, selector: &Selector) -> Vec<&Arc<Object>> {
        let matches =
            |o: &Object| o.key.kind == *kind && *o.key.ns == *ns && selector.matches(o.labels());
        let candidates = match selector.a_pair() {
            Some((key, value)) => self.base.labelled(ns, key, value),
            None => self.base.list(kind, Some(ns)),
        };
        self.merged(candidates.into_iter().filter(|o| matches(o)).collect(), matches)
    }

    /// The objects that refer to this key.
    pub fn referrers(&self, key: &Key) -> Vec<&Arc<Object>> {
        let adapters = self.base.adapters().as_ref();
        self.merged(self.base.referrers(key), |o| references(o, adapters).iter().any(|r| r.target == *key))
    }

    /// The unchanged among `found`, and the changed objects that satisfy `also`, in the order of their keys.
    fn merged<'s>(&'s self, found: Vec<&'s Arc<Object>>, also: impl Fn(&Object) -> bool) -> Vec<&'s Arc<Object>> {
        if self.delta.is_empty() {
            return found;
        }
        let unchanged = found.into_iter().filter(|o| !self.delta.contains_key(&o.key));
        let changed = self.delta.values().flatten().filter(|o| also(o));
        let mut all: Vec<&Arc<Object>> = unchanged.chain(changed).collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }
}
