//! The cluster as the watch shows it: objects with the indexes that effects and invariants navigate by.
//!
//! State is complete: what it does not hold does not exist, except that a Node or a PersistentVolume which pods or
//! claims only name is present and unremarkable ([`Snapshot::complete`]), and that a kind listed as unknown was not
//! read at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::adapter::{AdapterFacts, Adapters, NoAdapters};
use crate::intern::Interner;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::references::references;
use crate::value::{Str, Val};

type Slot = u32;

/// The observed cluster. Built by [`Snapshot::insert`] and [`Snapshot::remove`], read through [`crate::state::State`].
#[derive(Clone, Debug)]
pub struct Snapshot {
    slots: Vec<Option<Arc<Object>>>,
    free: Vec<Slot>,
    by_key: BTreeMap<Key, Slot>,
    by_uid: BTreeMap<Str, Slot>,
    by_owner: BTreeMap<Str, Vec<Slot>>,
    by_node: BTreeMap<Str, Vec<Slot>>,
    usage: BTreeMap<Str, Usage>,
    by_label: BTreeMap<LabelKey, Vec<Slot>>,
    by_reference: BTreeMap<Key, Vec<Slot>>,
    interner: Interner,
    restricting: BTreeSet<Key>,
    adapters: Arc<dyn Adapters>,
    unknown: BTreeSet<Str>,
}

/// What pods take of a node. Pods that have run to their end take nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many pods.
    pub pods: i64,
    /// Requested cpu, in milli.
    pub cpu: i64,
    /// Requested memory, in bytes.
    pub memory: i64,
}

impl Usage {
    /// Adds a pod so many times.
    pub fn add(&mut self, pod: &Object, times: i64) {
        if !pod.key.kind.is("Pod") || crate::navigate::finished(pod) {
            return;
        }
        let (cpu, memory) = pod.body.requests();
        self.pods += times;
        self.cpu = self.cpu.saturating_add(cpu.saturating_mul(times));
        self.memory = self.memory.saturating_add(memory.saturating_mul(times));
    }
}

/// Namespace, label, value.
type LabelKey = (Str, Str, Str);

impl Default for Snapshot {
    fn default() -> Self {
        Self::new(Arc::new(NoAdapters))
    }
}

impl Snapshot {
    /// An empty snapshot that reads custom resources by these adapters.
    pub fn new(adapters: Arc<dyn Adapters>) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            by_node: BTreeMap::new(),
            usage: BTreeMap::new(),
            by_label: BTreeMap::new(),
            by_reference: BTreeMap::new(),
            interner: Interner::default(),
            restricting: BTreeSet::new(),
            adapters,
            unknown: BTreeSet::new(),
        }
    }

    /// Declares a kind (by its short name) as not read: nothing is known of it.
    pub fn mark_unknown(&mut self, kind: &str) {
        self.unknown.insert(kind.into());
    }

    /// Declares which kinds (by their short names) are not read at present; all others are.
    pub fn set_unknown(&mut self, kinds: BTreeSet<Str>) {
        self.unknown = kinds;
    }

    /// The same objects, read by other adapters.
    #[must_use]
    pub fn with_adapters(&self, adapters: Arc<dyn Adapters>) -> Self {
        let mut other = Self { unknown: self.unknown.clone(), ..Self::new(adapters) };
        self.iter().for_each(|object| other.insert_shared(object.clone()));
        other
    }

    /// The kinds that were not read.
    pub fn unknown(&self) -> &BTreeSet<Str> {
        &self.unknown
    }

    /// What the adapter of this object says about it.
    pub fn adapter(&self, object: &Object) -> Option<Arc<AdapterFacts>> {
        self.adapters.facts(object)
    }

    /// The loaded adapters.
    pub fn adapters(&self) -> &Arc<dyn Adapters> {
        &self.adapters
    }

    /// Adds an object, or puts it in place of the one with its key.
    pub fn insert(&mut self, object: Object) {
        let object = self.interner.object(object);
        self.insert_shared(Arc::new(object));
    }

    /// [`Self::insert`] of an object that other snapshots hold too; its parts stay as they are.
    pub fn insert_shared(&mut self, object: Arc<Object>) {
        self.remove(&object.key);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Slot::try_from(self.slots.len() - 1).unwrap_or(Slot::MAX)
        });
        self.by_key.insert(object.key.clone(), slot);
        if !object.uid.is_empty() {
            self.by_uid.insert(object.uid.clone(), slot);
        }
        for owner in object.owners() {
            self.by_owner.entry(owner.uid.clone()).or_default().push(slot);
        }
        if !object.node.is_empty() {
            self.by_node.entry(object.node.clone()).or_default().push(slot);
            self.usage.entry(object.node.clone()).or_default().add(&object, 1);
        }
        for label in labels_of(&object) {
            self.by_label.entry(label).or_default().push(slot);
        }
        if constrains_nodes(&object) {
            self.restricting.insert(object.key.clone());
        }
        for reference in references(&object, self.adapters.as_ref()) {
            self.by_reference.entry(reference.target).or_default().push(slot);
        }
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(object);
        }
    }

    /// Takes an object out, if it is there.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let slot = self.by_key.remove(key)?;
        let object = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        if self.by_uid.get(&object.uid) == Some(&slot) {
            self.by_uid.remove(&object.uid);
        }
        for owner in object.owners() {
            drop_slot(&mut self.by_owner, &owner.uid, slot);
        }
        drop_slot(&mut self.by_node, &object.node, slot);
        if let Some(usage) = self.usage.get_mut(&object.node) {
            usage.add(&object, -1);
        }
        for label in labels_of(&object) {
            drop_slot(&mut self.by_label, &label, slot);
        }
        self.restricting.remove(key);
        for reference in references(&object, self.adapters.as_ref()) {
            drop_slot(&mut self.by_reference, &reference.target, slot);
        }
        Some(object)
    }

    /// Adds the Nodes that pods name and the PersistentVolumes that claims name, where the state does not hold them
    /// (FORMATS: state). A Node so added is Ready; a volume so added is bound to its claim, and its reclaim policy is
    /// the default of a StorageClass, Delete.
    pub fn complete(&mut self) {
        let mut missing = Vec::new();
        for node in self.by_node.keys().filter(|n| !n.is_empty()) {
            if !self.by_key.contains_key(&Key::of("Node", "", node)) && !self.unknown.contains("Node") {
                missing.push(implicit_node(node));
            }
        }
        for claim in self.list(&Kind::new("", "PersistentVolumeClaim"), None) {
            let Some(volume) = claim.val().str_at(&["spec", "volumeName"]) else { continue };
            let known = self.by_key.contains_key(&Key::of("PersistentVolume", "", volume));
            if !known && !self.unknown.contains("PersistentVolume") {
                missing.push(implicit_volume(volume, claim));
            }
        }
        for val in missing {
            if let Ok(object) = Object::from_val(&val) {
                self.insert(object);
            }
        }
    }

    /// The object with this key.
    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.by_key.get(key).and_then(|slot| self.at(*slot))
    }

    /// The object with this uid.
    pub fn by_uid(&self, uid: &str) -> Option<&Arc<Object>> {
        self.by_uid.get(uid).and_then(|slot| self.at(*slot))
    }

    /// All objects, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.by_key.values().filter_map(|slot| self.at(*slot))
    }

    /// The objects of a kind, in one namespace or all, in the order of their keys.
    pub fn list(&self, kind: &Kind, ns: Option<&str>) -> Vec<&Arc<Object>> {
        let low = Key::new(kind.clone(), ns.unwrap_or(""), "");
        self.by_key
            .range(low..)
            .take_while(|(key, _)| key.kind == *kind && ns.is_none_or(|ns| *key.ns == *ns))
            .filter_map(|(_, slot)| self.at(*slot))
            .collect()
    }

    /// The objects in a namespace, of every kind.
    pub fn in_namespace(&self, ns: &str) -> Vec<&Arc<Object>> {
        let mut found = Vec::new();
        for kind in self.kinds() {
            found.extend(self.list(&kind, Some(ns)));
        }
        found
    }

    /// The kinds of which an object exists.
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = Vec::new();
        let mut next = self.by_key.keys().next().map(|k| k.kind.clone());
        while let Some(kind) = next {
            // the first key after every key of this kind: no namespace starts with the highest character
            let above = Key::new(kind.clone(), "\u{10ffff}", "");
            next = self.by_key.range(above..).map(|(k, _)| k.kind.clone()).find(|k| *k != kind);
            kinds.push(kind);
        }
        kinds
    }

    /// The objects that name this uid among their owners.
    pub fn owned_by(&self, uid: &str) -> Vec<&Arc<Object>> {
        self.slots_of(self.by_owner.get(uid))
    }

    /// The pods assigned to this node.
    pub fn pods_on(&self, node: &str) -> Vec<&Arc<Object>> {
        self.slots_of(self.by_node.get(node))
    }

    /// What the pods on this node take of it.
    pub fn usage(&self, node: &str) -> Usage {
        self.usage.get(node).copied().unwrap_or_default()
    }

    /// The objects (pods and claims) in a namespace that bear this label.
    pub fn labelled(&self, ns: &str, key: &Str, value: &Str) -> Vec<&Arc<Object>> {
        self.slots_of(self.by_label.get(&(Str::from(ns), key.clone(), value.clone())))
    }

    /// The Ingresses and routes that may claim this host.
    pub fn claiming(&self, host: &str) -> Vec<&Arc<Object>> {
        self.slots_of(self.by_label.get(&(Str::from(""), HOST.into(), host.into())))
    }

    /// The PersistentVolumes whose claimRef is of this namespace and name.
    pub fn claimed_by(&self, ns: &str, name: &str) -> Vec<&Arc<Object>> {
        self.slots_of(self.by_label.get(&(Str::from(ns), CLAIM.into(), name.into())))
    }

    /// The objects whose pods are constrained by node labels; of built-in kinds only.
    pub fn restricting(&self) -> impl Iterator<Item = &Key> {
        self.restricting.iter()
    }

    /// The objects that refer to this key.
    pub fn referrers(&self, key: &Key) -> Vec<&Arc<Object>> {
        self.slots_of(self.by_reference.get(key))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    fn at(&self, slot: Slot) -> Option<&Arc<Object>> {
        self.slots.get(slot as usize)?.as_ref()
    }

    fn slots_of(&self, slots: Option<&Vec<Slot>>) -> Vec<&Arc<Object>> {
        let mut found: Vec<&Arc<Object>> = slots.into_iter().flatten().filter_map(|s| self.at(*s)).collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }
}

/// The label under which the hosts of Ingresses and routes are indexed; no Kubernetes label is called so.
const HOST: &str = "(host)";

/// The label under which PersistentVolumes are indexed by their claim.
const CLAIM: &str = "(claim)";

fn constrains_nodes(object: &Object) -> bool {
    let spec = match crate::navigate::template_path(object) {
        Some(path) => object.val().at(path).and_then(|template| template.get("spec")),
        None => object.val().get("spec").filter(|_| object.key.kind.is("Pod")),
    };
    spec.is_some_and(crate::navigate::restricts_nodes)
}

fn labels_of(object: &Object) -> Vec<LabelKey> {
    if object.key.kind.is("Ingress") || object.key.kind.is("HTTPRoute") {
        let hosts = crate::navigate::hosts_of(object).into_iter();
        return hosts.map(|host| (Str::from(""), HOST.into(), host)).collect();
    }
    if object.key.kind.is("PersistentVolume") {
        let part = |field| object.val().str_at(&["spec", "claimRef", field]).cloned();
        return part("namespace").zip(part("name")).map(|(ns, name)| (ns, CLAIM.into(), name)).into_iter().collect();
    }
    if !object.key.kind.is("Pod") && !object.key.kind.is("PersistentVolumeClaim") {
        return Vec::new();
    }
    let pairs = object.labels().entries();
    pairs.filter_map(|(k, v)| Some((object.key.ns.clone(), k.clone(), v.as_str()?.clone()))).collect()
}

fn drop_slot<K: Ord>(index: &mut BTreeMap<K, Vec<Slot>>, key: &K, slot: Slot) {
    if let Some(slots) = index.get_mut(key) {
        slots.retain(|s| *s != slot);
        if slots.is_empty() {
            index.remove(key);
        }
    }
}

fn implicit_node(name: &Str) -> Val {
    let ready = Val::object([("type", Val::str("Ready")), ("status", Val::str("True"))]);
    Val::object([
        ("apiVersion", Val::str("v1")),
        ("kind", Val::str("Node")),
        (
            "metadata",
            Val::object([
                ("name", Val::Str(name.clone())),
                ("labels", Val::object([("kubernetes.io/hostname", Val::Str(name.clone()))])),
            ]),
        ),
        ("status", Val::object([("conditions", Val::list(vec![ready]))])),
    ])
}

fn implicit_volume(name: &Str, claim: &Object) -> Val {
    let claim_ref = Val::object([
        ("kind", Val::str("PersistentVolumeClaim")),
        ("namespace", Val::Str(claim.key.ns.clone())),
        ("name", Val::Str(claim.key.name.clone())),
        ("uid", Val::Str(claim.uid.clone())),
    ]);
    Val::object([
        ("apiVersion", Val::str("v1")),
        ("kind", Val::str("PersistentVolume")),
        ("metadata", Val::object([("name", Val::Str(name.clone()))])),
        ("spec", Val::object([("claimRef", claim_ref), ("persistentVolumeReclaimPolicy", Val::str("Delete"))])),
        ("status", Val::object([("phase", Val::str("Bound"))])),
    ])
}
