//! The cluster as the watch shows it: objects with the indexes that effects and invariants navigate by.
//!
//! State is complete: what it does not hold does not exist, except that a Node or a PersistentVolume which pods or
//! claims only name is present and unremarkable ([`Snapshot::complete`]), and that a kind listed as unknown was not
//! read at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

pub use facts::{FactIndex, Facts};
pub use labels::{is_ranked, low_by};
pub use lacking::{Lack, Lacks, Mark, kinds as lacking_kinds, marks};
pub use pools::{Pool, Pools};
pub(crate) use supposition::ask_again;
pub use supposition::{Supposition, asked_by};
pub use usage::Usage;

use crate::adapter::{AdapterFacts, Adapters, NoAdapters};
use crate::fields::{self, NodeConstraint};
use crate::intern::Interner;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::references::{children, named};
use crate::selector::text;
use crate::value::{Str, Val};
use facts::{Fact, Journal, note};
use hashes::{Hashes, Names};
use labels::{LabelKey, labels_of};
use persistent_map::PersistentMap;
use places::{Found, Place, Places, Slot, drop_slot};
use terms::{Changes, Terms, of_kinds};

mod between;
mod facts;
mod hashes;
mod implicit;
mod labelled;
mod labels;
mod lacking;
mod missing;
mod persistent_map;
mod places;
mod pools;
mod since;
mod supposed;
mod supposition;
mod terms;
mod usage;

/// The observed cluster. Built by [`Snapshot::insert`] and [`Snapshot::remove`], read through [`crate::state::State`]. A
/// copy takes no time, and shares what neither changes.
#[derive(Clone, Debug)]
pub struct Snapshot {
    places: Places,
    by_key: PersistentMap<Key, Slot>,
    /// The kinds of which an object exists: most lists are of kinds of which none does, one for each adapter.
    kinds: Arc<BTreeSet<Kind>>,
    named: Hashes<Slot>,
    by_uid: Hashes<Slot>,
    by_owner: Names<Str, Found>,
    /// How many references there are to owners of each kind.
    owner_kinds: BTreeMap<Kind, usize>,
    by_node: Names<Str, Found>,
    usage: Names<Str, Usage>,
    pools: Pools,
    /// The names of nodes that were taken out while pods were assigned to them, as long as these are there.
    missing_nodes: Arc<BTreeSet<Str>>,
    /// The uids that objects name as their owners' and that no object has.
    missing_owners: Arc<BTreeSet<Str>>,
    by_label: Names<LabelKey, Found>,
    by_selector: Names<LabelKey, Found>,
    by_reference: Names<Key, Found>,
    by_child: Names<Key, Found>,
    /// Copies have one together.
    interner: Arc<Mutex<Interner>>,
    by_constraint: PersistentMap<NodeConstraint, PersistentMap<Key, Slot>>,
    adapters: Arc<dyn Adapters>,
    unknown: BTreeSet<Str>,
    /// What is supposed of them.
    supposed: BTreeSet<Supposition>,
    journal: Journal,
    lacking: lacking::Known,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self::new(Arc::new(NoAdapters))
    }
}

impl Snapshot {
    /// An empty snapshot that reads custom resources by these adapters.
    pub fn new(adapters: Arc<dyn Adapters>) -> Self {
        Self {
            places: Places::default(),
            by_key: PersistentMap::default(),
            kinds: Arc::default(),
            named: Hashes::default(),
            by_uid: Hashes::default(),
            by_owner: Names::default(),
            owner_kinds: BTreeMap::new(),
            by_node: Names::default(),
            usage: Names::default(),
            pools: Pools::default(),
            missing_nodes: Arc::default(),
            missing_owners: Arc::default(),
            by_label: Names::default(),
            by_selector: Names::default(),
            by_reference: Names::default(),
            by_child: Names::default(),
            interner: Arc::default(),
            by_constraint: PersistentMap::default(),
            adapters,
            unknown: BTreeSet::new(),
            supposed: BTreeSet::new(),
            journal: Journal::new(),
            lacking: lacking::Known::default(),
        }
    }

    /// Declares a kind (by its short name) as not read: nothing is known of it.
    pub fn mark_unknown(&mut self, kind: &str) {
        self.journal.note(Journal::event(), Fact::Readings);
        self.lacking.mark(vec![Mark::All]);
        self.unknown.insert(kind.into());
    }

    /// Declares which kinds (by their short names) are not read at present; all others are.
    pub fn set_unknown(&mut self, kinds: BTreeSet<Str>) {
        if self.unknown != kinds {
            self.journal.note(Journal::event(), Fact::Readings);
            self.lacking.mark(vec![Mark::All]);
            self.unknown = kinds;
        }
    }

    /// The same objects, read by other adapters.
    #[must_use]
    pub fn with_adapters(&self, adapters: Arc<dyn Adapters>) -> Self {
        let missing_nodes = self.missing_nodes.clone();
        let (unknown, supposed) = (self.unknown.clone(), self.supposed.clone());
        let mut other = Self { unknown, supposed, missing_nodes, ..Self::new(adapters) };
        self.iter().for_each(|object| other.insert_shared(object.clone()));
        other
    }

    /// The kinds that were not read.
    pub fn unknown(&self) -> &BTreeSet<Str> {
        note(Fact::Readings);
        &self.unknown
    }

    /// What the adapter of this object says about it.
    pub fn adapter(&self, object: &Object) -> Option<Arc<AdapterFacts>> {
        note(Fact::Readings);
        self.adapters.facts(object)
    }

    /// The loaded adapters.
    pub fn adapters(&self) -> &Arc<dyn Adapters> {
        note(Fact::Readings);
        &self.adapters
    }

    /// Adds an object, or puts it in place of the one with its key.
    pub fn insert(&mut self, object: Object) {
        let object = self.interner.lock().unwrap_or_else(PoisonError::into_inner).object(object);
        self.insert_shared(Arc::new(object));
    }

    /// [`Self::insert`] of an object that other snapshots hold too; its parts stay as they are.
    pub fn insert_shared(&mut self, object: Arc<Object>) {
        let lacking = self.mark_lacking(&object.key, Some(&object));
        if self.replace(&object, lacking) {
            return;
        }
        // the last pod on a node may be another version of itself
        let misses = self.missing_nodes.contains(&object.node);
        let old = self.get_unread(&object.key);
        let same = old.is_some_and(|old| old.uid == object.uid);
        let changes = Changes { usage: Usage::differs(old.map(|old| &**old), Some(&object)), lacking };
        self.take_out(&object.key, !same, changes);
        let event = Journal::event();
        let terms = self.terms_of(&object);
        self.note_change(&object, &terms, changes, event);
        let slot = self.places.take();
        self.by_key.insert(object.key.clone(), slot);
        if !self.kinds.contains(&object.key.kind) {
            Arc::make_mut(&mut self.kinds).insert(object.key.kind.clone());
            self.note_kind(&object.key.kind, event);
        }
        self.named.insert(&object.key, slot);
        if !object.uid.is_empty() {
            self.by_uid.insert(&object.uid, slot);
        }
        let place = Place { places: &self.places, key: &object.key, slot };
        let mut orphans = vec![(object.uid.clone(), false)];
        for owner in object.owners() {
            if self.named_uid(&owner.uid).is_none() {
                orphans.push((owner.uid.clone(), true));
            }
            place.enter(&mut self.by_owner, owner.uid.clone());
            let count = self.owner_kinds.entry(owner.kind.clone()).or_default();
            *count += 1;
            if *count == 1 {
                self.journal.note(event, Fact::OwnerKind(&owner.kind));
            }
        }
        if !object.node.is_empty() {
            place.enter(&mut self.by_node, object.node.clone());
            let mut usage = self.usage(&object.node);
            usage.add(&object, 1);
            self.usage.insert(object.node.clone(), usage);
            self.pools.touch(&object.node);
        }
        if object.key.kind.is("Node") {
            self.pools.insert(&object);
        }
        terms.labels.into_iter().for_each(|label| place.enter(&mut self.by_label, label));
        if let Some(pair) = terms.selector {
            place.append(&mut self.by_selector, pair);
        }
        if let Some(constraint) = terms.constraint {
            let mut alike = self.by_constraint.get(&constraint).cloned().unwrap_or_default();
            alike.insert(object.key.clone(), slot);
            self.by_constraint.insert(constraint, alike);
        }
        terms.references.into_iter().for_each(|target| place.enter(&mut self.by_reference, target));
        terms.children.into_iter().for_each(|child| place.enter(&mut self.by_child, child));
        if object.key.kind.is("Node") {
            self.miss(&object.key.name, false, event);
        } else if misses {
            self.miss(&object.node, true, event);
        }
        self.places.put(slot, object);
        self.orphan(orphans, event);
    }

    /// Puts an object in place of its last version where no index tells the two apart, as most writes of a status leave
    /// them; whether it did.
    fn replace(&mut self, object: &Arc<Object>, lacking: bool) -> bool {
        let known = self.named.find(&object.key).find(|slot| self.at(**slot).is_some_and(|o| o.key == object.key));
        let Some((slot, known)) = known.and_then(|slot| Some((*slot, self.at(*slot)?.clone()))) else { return false };
        let is_found_alike = known.uid == object.uid && known.node == object.node && known.owners() == object.owners();
        if object.key.kind.is("Node") || !is_found_alike {
            return false;
        }
        let terms = self.terms_of(object);
        if self.terms_of(&known) != terms {
            return false;
        }
        let changes = Changes { usage: Usage::differs(Some(&known), Some(object)), lacking };
        self.note_change(object, &terms, changes, Journal::event());
        if let Some(usage) = self.usage.get(&object.node).copied().filter(|_| changes.usage) {
            let usage = usage.plus(Usage::of(&known), -1).plus(Usage::of(object), 1);
            self.usage.insert(object.node.clone(), usage);
            self.pools.touch(&object.node);
        }
        self.places.put(slot, object.clone());
        true
    }

    /// Takes an object out, if it is there.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let lacking = self.mark_lacking(key, None);
        let object = self.take_out(key, true, Changes { usage: true, lacking })?;
        if self.of_kind(&key.kind).next().is_none() {
            Arc::make_mut(&mut self.kinds).remove(&key.kind);
            self.note_kind(&key.kind, Journal::event());
        }
        Some(object)
    }

    /// Takes an object out, `as_owner` unless another version of it comes.
    fn take_out(&mut self, key: &Key, as_owner: bool, changes: Changes) -> Option<Arc<Object>> {
        let slot = self.by_key.remove(key)?;
        let object = self.places.empty(slot)?;
        let event = Journal::event();
        let terms = self.terms_of(&object);
        self.note_change(&object, &terms, changes, event);
        self.named.remove(key, |at| *at == slot);
        self.by_uid.remove(&object.uid, |at| *at == slot);
        let mut orphans = vec![(object.uid.clone(), as_owner && self.by_owner.get(&object.uid).is_some())];
        for owner in object.owners() {
            drop_slot(&mut self.by_owner, &owner.uid, slot);
            if self.by_owner.get(&owner.uid).is_none() {
                orphans.push((owner.uid.clone(), false));
            }
            if let Some(count) = self.owner_kinds.get_mut(&owner.kind) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.journal.note(event, Fact::OwnerKind(&owner.kind));
                }
            }
        }
        drop_slot(&mut self.by_node, &object.node, slot);
        if let Some(usage) = self.usage.get_mut(&object.node) {
            usage.add(&object, -1);
            self.pools.touch(&object.node);
        }
        if object.key.kind.is("Node") {
            self.pools.remove(&object.key.name);
            self.miss(&object.key.name, self.by_node.get(&object.key.name).is_some(), event);
        } else if self.by_node.get(&object.node).is_none() {
            self.miss(&object.node, false, event);
        }
        terms.labels.iter().for_each(|label| drop_slot(&mut self.by_label, label, slot));
        if let Some(pair) = terms.selector {
            drop_slot(&mut self.by_selector, &pair, slot);
        }
        if let Some(constraint) = terms.constraint
            && let Some(alike) = self.by_constraint.get_mut(&constraint)
        {
            alike.remove(key);
            if alike.is_empty() {
                self.by_constraint.remove(&constraint);
            }
        }
        terms.references.iter().for_each(|target| drop_slot(&mut self.by_reference, target, slot));
        terms.children.iter().for_each(|child| drop_slot(&mut self.by_child, child, slot));
        self.orphan(orphans, event);
        Some(object)
    }

    /// Notes the facts that change with an object that comes or goes.
    fn note_change(&mut self, object: &Object, terms: &Terms, changes: Changes, event: u64) {
        let journal = &mut self.journal;
        terms.each_fact(object, changes, |fact| journal.note(event, fact));
    }

    /// Notes the facts that change with the first object of a kind, or with the last one that goes.
    fn note_kind(&mut self, kind: &Kind, event: u64) {
        of_kinds(kind).into_iter().for_each(|fact| self.journal.note(event, fact));
    }

    /// The places of the objects of a kind.
    fn of_kind(&self, kind: &Kind) -> impl Iterator<Item = (&Key, &Slot)> {
        self.by_key.range(&Key::new(kind.clone(), "", ""), &after(kind))
    }

    /// By what an object is found.
    fn terms_of(&self, object: &Object) -> Terms {
        let selector = self.selector_pair(object);
        let facts = self.adapters.facts(object);
        let facts = facts.as_deref();
        Terms {
            labels: labels_of(object, facts, selector.as_ref()),
            selector,
            constraint: NodeConstraint::of(object).filter(|asks| !object.names_own_node && asks.restricts()),
            references: named(object, facts),
            children: children(facts),
        }
    }

    /// The number of the last event, which no event of another snapshot has.
    pub fn last_event(&self) -> u64 {
        self.journal.last()
    }

    /// The facts that events after this one have changed; `None` where that is not known: it is too long ago, or an event
    /// of another snapshot.
    pub fn changed_since(&self, event: u64) -> Option<Facts> {
        self.journal.since(event)
    }

    /// Whether what was found out from these facts, when this event was the last, is what would be found out here: no event
    /// has changed any of them since. False as well for what is long ago, or of a snapshot that is no older copy.
    pub fn unchanged_since(&self, event: u64, facts: &Facts) -> bool {
        self.journal.unchanged_since(event, facts)
    }

    /// The object with this key.
    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        note(Fact::Object(key));
        self.named.find(key).filter_map(|slot| self.at(*slot)).find(|object| object.key == *key)
    }

    /// The object with this uid, the first of its kind and name if there are several.
    pub fn by_uid(&self, uid: &str) -> Option<&Arc<Object>> {
        note(Fact::Uid(uid));
        self.by_uid
            .find(uid)
            .filter_map(|slot| self.at(*slot))
            .filter(|object| *object.uid == *uid)
            .min_by(|a, b| a.key.cmp(&b.key))
    }

    /// All objects, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        note(Fact::Objects);
        self.by_key.values().filter_map(|slot| self.at(*slot))
    }

    /// The objects of a kind, in one namespace or all, in the order of their keys.
    pub fn list(&self, kind: &Kind, ns: Option<&str>) -> Vec<&Arc<Object>> {
        note(ns.map_or(Fact::Kind(kind), |ns| Fact::KindIn(kind, ns)));
        if !self.kinds.contains(kind) {
            return Vec::new();
        }
        let low = Key::new(kind.clone(), ns.unwrap_or(""), "");
        let above = match ns {
            // what comes after a namespace's name, and after all of them
            Some(ns) => Key::new(kind.clone(), &format!("{ns}\0"), ""),
            None => after(kind),
        };
        self.by_key.range(&low, &above).filter_map(|(_, slot)| self.at(*slot)).collect()
    }

    /// The objects of a kind, in the order of their keys, one by one.
    pub fn iter_kind<'s>(&'s self, kind: &Kind) -> impl Iterator<Item = &'s Arc<Object>> + use<'s> {
        note(Fact::Kind(kind));
        let low = Key::new(kind.clone(), "", "");
        self.by_key.range(&low, &after(kind)).filter_map(|(_, slot)| self.at(*slot))
    }

    /// Says that something may depend on any object of these kinds, without a look at them.
    pub fn read_kinds(&self, kinds: impl IntoIterator<Item = Kind>) {
        kinds.into_iter().for_each(|kind| note(Fact::Kind(&kind)));
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
        note(Fact::Kinds);
        self.kinds.iter().cloned().collect()
    }

    /// Whether an object of a kind exists.
    pub fn has_kind(&self, kind: &Kind) -> bool {
        note(Fact::Exists(kind));
        self.kinds.contains(kind)
    }

    /// The objects that name this uid among their owners.
    pub fn owned_by(&self, uid: &str) -> Vec<&Arc<Object>> {
        note(Fact::Owned(uid));
        self.slots_of(self.by_owner.get(uid))
    }

    /// Whether an object names an owner of this kind.
    pub fn owns(&self, kind: &Kind) -> bool {
        note(Fact::OwnerKind(kind));
        self.owner_kinds.get(kind).is_some_and(|count| *count > 0)
    }

    /// The kinds that were not read and that an object names an owner of.
    pub(crate) fn unread_owner_kinds(&self) -> Vec<&Kind> {
        if self.unknown().is_empty() {
            return Vec::new();
        }
        self.owner_kinds.keys().filter(|kind| self.unknown.contains(&kind.kind) && self.owns(kind)).collect()
    }

    /// The pods assigned to this node.
    pub fn pods_on(&self, node: &str) -> Vec<&Arc<Object>> {
        note(Fact::Node(node));
        self.slots_of(self.by_node.get(node))
    }

    /// The nodes by what pods see of them.
    pub fn pools(&self) -> &Pools {
        note(Fact::Nodes);
        &self.pools
    }

    /// What the pods on this node take of it.
    pub fn usage(&self, node: &str) -> Usage {
        note(Fact::Usage(node));
        self.usage.get(node).copied().unwrap_or_default()
    }

    /// The objects in a namespace whose selector may match pods with these labels.
    pub fn selecting(&self, ns: &Str, labels: &Val) -> impl Iterator<Item = &Arc<Object>> {
        let pairs = labels.entries().map(|(key, value)| (ns.clone(), key.clone(), text(value)));
        let all = pairs.chain([(ns.clone(), "".into(), "".into())]).collect::<Vec<_>>().into_iter();
        all.flat_map(|pair| self.asking_for(&pair)).filter_map(|slot| self.at(*slot))
    }

    /// The pair of labels that an object's selector asks for, by which it is found; none asked for is a pair as well.
    fn selector_pair(&self, object: &Object) -> Option<LabelKey> {
        let selector = fields::selector_by(self.adapters.as_ref(), object)?;
        let (key, value) = selector.a_pair().map_or_else(|| ("".into(), "".into()), |(k, v)| (k.clone(), v.clone()));
        Some((object.key.ns.clone(), key, value))
    }

    /// The constraints on nodes that objects have, those aside that restrict none, and those of pods that
    /// [name their own node](Object::names_own_node); of built-in kinds only.
    pub fn node_constraints(&self) -> impl Iterator<Item = &NodeConstraint> {
        note(Fact::Constraints);
        self.by_constraint.keys()
    }

    /// The objects of these kinds with this constraint on nodes, kind by kind in the order of their keys; pods that
    /// [name their own node](Object::names_own_node) are found by that.
    pub fn constrained(&self, constraint: &NodeConstraint, of: impl Fn(&Kind) -> bool) -> Vec<Vec<&Arc<Object>>> {
        if !constraint.restricts() {
            // most objects, so that no index has them
            let kinds = self.kinds().into_iter().filter(|kind| NodeConstraint::may_be_of(kind) && of(kind));
            let having = |kind: &Kind| {
                let all = self.list(kind, None).into_iter();
                all.filter(|object| constraint.is_of(object)).collect()
            };
            return kinds.map(|kind| having(&kind)).filter(|found: &Vec<_>| !found.is_empty()).collect();
        }
        note(Fact::Constraints);
        let Some(alike) = self.by_constraint.get(constraint) else { return Vec::new() };
        let mut found = Vec::new();
        let mut next = alike.keys().next().map(|key| key.kind.clone());
        // without a look at each of other kinds; no namespace starts with the highest character
        while let Some(kind) = next {
            let above = Key::new(kind.clone(), "\u{10ffff}", "");
            if of(&kind) {
                let alike = alike.from(&Key::new(kind, "", "")).take_while(|(key, _)| **key < above);
                found.push(alike.filter_map(|(_, slot)| self.at(*slot)).collect());
            }
            next = alike.from(&above).next().map(|(key, _)| key.kind.clone());
        }
        found
    }

    /// The live nodes that match the node constraint of a pod spec, in the order of their names.
    pub fn admitted(&self, spec: &Val) -> Arc<[Arc<Object>]> {
        note(Fact::Nodes);
        self.pools.admitted(spec, |name| self.get(&Key::of("Node", "", name)))
    }

    /// The objects that refer to this key or scale it, or another that is [partially](Key::partial_key) the same.
    pub fn referrers(&self, key: &Key) -> Vec<&Arc<Object>> {
        let target = key.clone().partial_key();
        note(Fact::Reference(&target));
        self.slots_of(self.by_reference.get(&target))
    }

    /// The custom resources whose adapter lists this key among what their operator makes, or another that is
    /// [partially](Key::partial_key) the same.
    pub fn listing(&self, key: &Key) -> Vec<&Arc<Object>> {
        let child = key.clone().partial_key();
        note(Fact::Child(&child));
        self.slots_of(self.by_child.get(&child))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        note(Fact::Objects);
        self.by_key.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        note(Fact::Objects);
        self.by_key.is_empty()
    }

    /// Those whose selector asks for a label.
    fn asking_for(&self, label: &LabelKey) -> &[Slot] {
        note(Fact::Selector(label));
        self.by_selector.get(label).map_or(&[][..], Found::slots)
    }

    fn at(&self, slot: Slot) -> Option<&Arc<Object>> {
        self.places.get(slot)
    }

    fn slots_of(&self, found: Option<&Found>) -> Vec<&Arc<Object>> {
        found.map_or(&[][..], Found::slots).iter().filter_map(|slot| self.at(*slot)).collect()
    }
}

/// What comes after every key of a kind.
fn after(kind: &Kind) -> Key {
    Key::new(Kind::new(&kind.group, &format!("{}\0", kind.kind)), "", "")
}
