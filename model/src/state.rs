//! A possible cluster: a snapshot with a few objects changed, made without copying the snapshot.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::adapter::{AdapterFacts, Adapters};
use crate::fields::hosts::places_of;
use crate::fields::{node_constraint, node_matches, template_labels_by};
use crate::kinds::Kind;
use crate::object::{Body, Key, Object};
use crate::references::{children, named};
use crate::selector::Selector;
use crate::snapshot::{Facts, Snapshot, Supposition, ask_again, asked_by};
use crate::steps;
use crate::value::{Str, Val};

pub(crate) use under_way::UnderWay;

mod labelled;
mod under_way;

/// So many lists of nodes are kept; a few workloads' constraints make a few.
const ADMITTED_MAX: usize = 64;

/// A snapshot overlaid with changed, added and removed objects.
#[derive(Clone, Debug)]
pub struct State<'a> {
    base: &'a Snapshot,
    /// Shared with copies, as the two below, until one of them differs.
    delta: Arc<BTreeMap<Key, Option<Arc<Object>>>>,
    /// Where what differs is in memory, there and here (and some that was here): most objects are told from it by that.
    places: Arc<BTreeSet<usize>>,
    index: Arc<Index>,
    /// The nodes that match a constraint, where nodes differ; until another one does.
    admitted: RefCell<BTreeMap<Val, Arc<[Arc<Object>]>>>,
    /// The deletions under way, until something differs, and what was supposed to find them.
    under_way: OnceCell<Arc<(UnderWay, BTreeSet<Supposition>)>>,
    /// What was found out once for all who ask, until something differs: by what it is and about whom; shared with copies.
    found: RefCell<Arc<BTreeMap<(&'static str, Str), Found>>>,
}

/// What was found out, and from what; who asks again copies no facts.
type Found = (Arc<dyn Any + Send + Sync>, Arc<Sources>);

/// The facts that were read for something, and what was supposed.
type Sources = (Facts, BTreeSet<Supposition>);

/// The changed objects by what the snapshot is navigated by. An object that is only marked (same body, uid and node) is
/// not among them: the snapshot's own index finds it.
#[derive(Clone, Debug, Default)]
struct Index {
    keys: BTreeSet<Key>,
    by_uid: BTreeMap<Str, Key>,
    by_owner: BTreeMap<Str, BTreeSet<Key>>,
    by_node: BTreeMap<Str, BTreeSet<Key>>,
    by_reference: BTreeMap<Key, BTreeSet<Key>>,
    /// Custom resources by what their adapters list as made by their operators.
    by_child: BTreeMap<Key, BTreeSet<Key>>,
    /// Ingresses and routes by host and path.
    by_place: BTreeMap<(Str, Str), BTreeSet<Key>>,
}

impl Index {
    fn insert(&mut self, object: &Object, adapters: &dyn Adapters) {
        let key = &object.key;
        self.keys.insert(key.clone());
        if !object.uid.is_empty() {
            self.by_uid.insert(object.uid.clone(), key.clone());
        }
        for owner in object.owners() {
            self.by_owner.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        if !object.node.is_empty() {
            self.by_node.entry(object.node.clone()).or_default().insert(key.clone());
        }
        let facts = adapters.facts(object);
        for target in named(object, facts.as_deref()) {
            self.by_reference.entry(target).or_default().insert(key.clone());
        }
        for child in children(facts.as_deref()) {
            self.by_child.entry(child).or_default().insert(key.clone());
        }
        for place in places_of(object) {
            self.by_place.entry(place).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, object: &Object, adapters: &dyn Adapters) {
        let key = &object.key;
        if self.by_uid.get(&object.uid) == Some(key) {
            self.by_uid.remove(&object.uid);
        }
        for owner in object.owners() {
            drop_key(&mut self.by_owner, &owner.uid, key);
        }
        drop_key(&mut self.by_node, &object.node, key);
        let facts = adapters.facts(object);
        for target in named(object, facts.as_deref()) {
            drop_key(&mut self.by_reference, &target, key);
        }
        for child in children(facts.as_deref()) {
            drop_key(&mut self.by_child, &child, key);
        }
        for place in places_of(object) {
            drop_key(&mut self.by_place, &place, key);
        }
    }
}

impl<'a> State<'a> {
    /// The snapshot itself.
    pub fn new(base: &'a Snapshot) -> Self {
        Self {
            base,
            delta: Arc::default(),
            places: Arc::default(),
            index: Arc::default(),
            admitted: RefCell::default(),
            under_way: OnceCell::new(),
            found: RefCell::default(),
        }
    }

    /// The snapshot below.
    pub fn base(&self) -> &'a Snapshot {
        self.base
    }

    /// What differs from the snapshot: `None` for an object that is gone.
    pub fn delta(&self) -> &BTreeMap<Key, Option<Arc<Object>>> {
        &self.delta
    }

    /// The keys of what differs of a kind.
    pub fn changed_keys<'s>(&'s self, kind: &Kind) -> impl Iterator<Item = &'s Key> + use<'s> {
        let (kind, low) = (kind.clone(), Key::new(kind.clone(), "", ""));
        self.delta.range(low..).map(|(key, _)| key).take_while(move |key| key.kind == kind)
    }

    /// Adds or replaces an object.
    pub fn put(&mut self, object: Object) {
        self.put_shared(Arc::new(object));
    }

    /// Adds or replaces an object that is shared already.
    pub fn put_shared(&mut self, object: Arc<Object>) {
        if self.delta.get(&object.key).is_some_and(|here| here.as_ref().is_some_and(|here| here.is_same(&object))) {
            return;
        }
        self.forget(&object.key);
        self.note(&object.key);
        own(&mut self.places, BTreeSet::len).insert(place(&object));
        if self.base.get(&object.key).is_none_or(|base| !only_marked(base, &object)) {
            own(&mut self.index, |index| index.keys.len()).insert(&object, self.base.adapters().as_ref());
        }
        own(&mut self.delta, BTreeMap::len).insert(object.key.clone(), Some(object));
    }

    /// Takes an object away.
    pub fn take(&mut self, key: &Key) {
        self.forget(key);
        self.note(key);
        let delta = own(&mut self.delta, BTreeMap::len);
        if self.base.get(key).is_some() {
            delta.insert(key.clone(), None);
        } else {
            delta.remove(key);
        }
    }

    /// The deletions under way, as they are found once.
    pub(crate) fn under_way(&self, find: impl FnOnce() -> UnderWay) -> &UnderWay {
        let (found, asked) = &**self.under_way.get_or_init(|| Arc::new(asked_by(find)));
        ask_again(asked);
        found
    }

    /// What is found out about this state by `find`, once for all who ask for the same of it.
    pub(crate) fn once<T: Any + Send + Sync>(&self, what: &'static str, of: &str, find: impl FnOnce() -> T) -> Arc<T> {
        let at = (what, Str::from(of));
        let known = self.found.borrow().get(&at).cloned();
        if let Some((found, sources)) = known
            && let Ok(found) = found.downcast::<T>()
        {
            let (facts, asked) = &*sources;
            facts.read();
            ask_again(asked);
            return found;
        }
        let ((found, asked), facts) = Facts::read_by(|| asked_by(find));
        let found = Arc::new(found);
        Arc::make_mut(&mut self.found.borrow_mut()).insert(at, (found.clone(), Arc::new((facts, asked))));
        found
    }

    fn note(&mut self, key: &Key) {
        self.under_way.take();
        *self.found.get_mut() = Arc::default();
        if key.kind.is("Node") {
            self.admitted.get_mut().clear();
        }
        if let Some(before) = self.base.get(key) {
            own(&mut self.places, BTreeSet::len).insert(place(before));
        }
    }

    /// Whether an object of this state or of the snapshot may differ between them; false only where it does not.
    pub fn may_differ(&self, object: &Arc<Object>) -> bool {
        self.places.contains(&place(object))
    }

    /// Takes a changed object out of the index.
    fn forget(&mut self, key: &Key) {
        if !self.index.keys.contains(key) {
            return;
        }
        let index = own(&mut self.index, |index| index.keys.len());
        index.keys.remove(key);
        if let Some(Some(old)) = self.delta.get(key) {
            index.remove(old, self.base.adapters().as_ref());
        }
    }

    /// The live nodes that match the node constraint of a pod spec, in the order of their names.
    pub fn admitted(&self, spec: &Val) -> Arc<[Arc<Object>]> {
        let mut changed = self.changed_keys(&Kind::new("", "Node")).peekable();
        if changed.peek().is_none() {
            return self.base.admitted(spec);
        }
        let constraint = node_constraint(spec);
        if let Some(known) = self.admitted.borrow().get(&constraint) {
            return known.clone();
        }
        let mut found = self.base.admitted(spec).to_vec();
        for key in changed {
            let at = found.binary_search_by(|node| node.key.cmp(key));
            let here = self.get(key).filter(|n| n.live() && node_matches(spec, n));
            match (at, here) {
                (Ok(at), Some(here)) => found.splice(at..=at, [here.clone()]).for_each(drop),
                (Ok(at), None) => drop(found.remove(at)),
                (Err(at), Some(here)) => found.insert(at, here.clone()),
                (Err(_), None) => {}
            }
        }
        let found: Arc<[Arc<Object>]> = found.into();
        let mut known = self.admitted.borrow_mut();
        if known.len() >= ADMITTED_MAX {
            known.clear();
        }
        known.insert(constraint, found.clone());
        found
    }

    /// What the adapter of this object says about it.
    pub fn adapter(&self, object: &Object) -> Option<Arc<AdapterFacts>> {
        self.base.adapter(object)
    }

    /// The object with this key.
    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        // what differs here may differ there as well by what else is in flight
        let base = self.base.get(key);
        self.delta.get(key).map_or(base, Option::as_ref)
    }

    /// The object that a key [means](Key::means).
    pub fn resolve(&self, key: &Key) -> Option<&Arc<Object>> {
        if let Some(found) = self.get(key) {
            return Some(found);
        }
        if !key.is_partial() {
            return None;
        }
        let kinds = self.kinds().into_iter().filter(|kind| kind.kind == key.kind.kind);
        let keys = kinds.flat_map(|kind| [&key.ns, ""].map(|ns| Key::new(kind.clone(), ns, &key.name)));
        keys.filter(|found| key.means(found)).find_map(|found| self.get(&found))
    }

    /// The object with this uid.
    pub fn by_uid(&self, uid: &str) -> Option<&Arc<Object>> {
        if uid.is_empty() {
            return None;
        }
        if let Some(changed) = self.index.by_uid.get(uid) {
            return self.get(changed);
        }
        self.base.by_uid(uid).and_then(|found| self.marked(found))
    }

    /// The objects of a kind, in one namespace or all, in the order of their keys.
    pub fn list(&self, kind: &Kind, ns: Option<&str>) -> Vec<&Arc<Object>> {
        self.in_order(self.base.list(kind, ns), self.changed_in(kind, ns))
    }

    /// The first so many objects of a kind, in the order of their keys, that satisfy a predicate.
    pub fn first<'s>(&'s self, kind: &Kind, count: usize, holds: &dyn Fn(&Object) -> bool) -> Vec<&'s Arc<Object>> {
        let unchanged = self.base.iter_kind(kind).filter_map(|o| self.marked(o));
        let changed = self.changed_in(kind, None);
        let mut found: Vec<&Arc<Object>> = unchanged.filter(|o| holds(o)).take(count).collect();
        found.extend(changed.filter(|o| holds(o)));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found.truncate(count);
        found
    }

    /// The objects in a namespace, of every kind.
    pub fn in_namespace(&self, ns: &str) -> Vec<&Arc<Object>> {
        let changed = self.indexed(Some(&self.index.keys)).filter(|o| *o.key.ns == *ns);
        self.merged(self.base.in_namespace(ns), changed)
    }

    /// All objects, in the order of their keys.
    pub fn iter(&self) -> Vec<&Arc<Object>> {
        self.merged(self.base.iter().collect(), self.indexed(Some(&self.index.keys)))
    }

    /// The kinds of which an object exists, or existed in the snapshot.
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds = self.base.kinds();
        kinds.extend(self.delta.keys().map(|k| k.kind.clone()));
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// Whether an object of a kind exists, or existed in the snapshot.
    pub fn has_kind(&self, kind: &Kind) -> bool {
        self.base.has_kind(kind) || self.changed_keys(kind).next().is_some()
    }

    /// The objects that name this uid among their owners.
    pub fn owned_by(&self, uid: &str) -> Vec<&Arc<Object>> {
        if uid.is_empty() {
            return Vec::new();
        }
        self.merged(self.base.owned_by(uid), self.indexed(self.index.by_owner.get(uid)))
    }

    /// Whether an object may name an owner of this kind.
    pub fn owns(&self, kind: &Kind) -> bool {
        self.base.owns(kind)
            || self.delta.values().flatten().any(|o| o.owners().iter().any(|owner| owner.kind == *kind))
    }

    /// The pods assigned to this node.
    pub fn pods_on(&self, node: &str) -> Vec<&Arc<Object>> {
        if node.is_empty() {
            return Vec::new();
        }
        self.merged(self.base.pods_on(node), self.indexed(self.index.by_node.get(node)))
    }

    /// The pods in a namespace whose labels match.
    pub fn pods_matching(&self, ns: &str, selector: &Selector) -> Vec<&Arc<Object>> {
        self.matching(&Kind::new("", "Pod"), ns, selector)
    }

    /// The pods or claims in a namespace whose labels match.
    pub fn matching(&self, kind: &Kind, ns: &str, selector: &Selector) -> Vec<&Arc<Object>> {
        let candidates = match selector.a_pair() {
            Some((key, value)) => self.base.labelled(ns, key, value),
            None => self.base.list(kind, Some(ns)),
        };
        // equals stand together, and a selector sees no difference between them
        let last: Cell<Option<(*const Body, bool)>> = Cell::new(None);
        let selects = |o: &Object| {
            let body = Arc::as_ptr(&o.body);
            let known = last.get().filter(|(of, _)| *of == body).map(|(_, selects)| selects);
            known.unwrap_or_else(|| {
                let selects = selector.matches(o.labels());
                last.set(Some((body, selects)));
                selects
            })
        };
        let matches = |o: &Object| o.key.kind == *kind && *o.key.ns == *ns && selects(o);
        let changed = self.changed_in(kind, Some(ns)).filter(|o| matches(o));
        self.merged(candidates.into_iter().filter(|o| matches(o)).collect(), changed)
    }

    /// The workloads of these kinds in a namespace whose template's labels match, in the order of their keys.
    pub fn making(&self, kinds: &[Kind], ns: &str, selector: &Selector) -> Vec<&Arc<Object>> {
        let adapters = self.base.adapters().as_ref();
        let candidates: Vec<&Arc<Object>> = match selector.a_pair() {
            Some((key, value)) => self.base.labelled(ns, key, value),
            None => kinds.iter().flat_map(|kind| self.base.list(kind, Some(ns))).collect(),
        };
        let makes = |o: &Object| {
            let matches = || template_labels_by(adapters, o).is_some_and(|labels| selector.matches(&labels));
            kinds.contains(&o.key.kind) && *o.key.ns == *ns && matches()
        };
        let changed = kinds.iter().flat_map(|kind| self.changed_in(kind, Some(ns))).filter(|o| makes(o));
        let mut found = self.merged(candidates.into_iter().filter(|o| makes(o)).collect(), changed);
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }

    /// The objects of a kind in a namespace whose selector may match pods with these labels, in the order of their keys.
    pub fn selecting(&self, kind: &Kind, ns: &Str, labels: &Val) -> Vec<&Arc<Object>> {
        self.selecting_any(std::slice::from_ref(kind), ns, labels)
    }

    /// [`Self::selecting`] for several kinds.
    pub fn selecting_any(&self, kinds: &[Kind], ns: &Str, labels: &Val) -> Vec<&Arc<Object>> {
        let candidates = self.base.selecting(ns, labels).filter(|o| kinds.contains(&o.key.kind));
        let differing = self.differing_kinds().into_iter().filter(|kind| kinds.contains(kind));
        let mut found = self.merged(candidates.collect(), differing.flat_map(|kind| self.changed_in(kind, Some(ns))));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found.dedup_by(|a, b| a.key == b.key);
        found
    }

    /// The objects that refer to this key or scale it, or another that is [partially](Key::partial_key) the same, each once.
    pub fn referrers(&self, key: &Key) -> Vec<&Arc<Object>> {
        let changed = self.indexed(self.index.by_reference.get(&key.clone().partial_key()));
        let mut found = self.merged(self.base.referrers(key), changed);
        found.dedup_by(|a, b| a.key == b.key);
        found
    }

    /// The custom resources whose adapter lists this key among what their operator makes, or another that is
    /// [partially](Key::partial_key) the same, in the order of their keys.
    pub fn listing(&self, key: &Key) -> Vec<&Arc<Object>> {
        let changed = self.indexed(self.index.by_child.get(&key.clone().partial_key()));
        let mut found = self.merged(self.base.listing(key), changed);
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }

    /// The kinds of the changed objects, each once: mostly fewer than are asked for.
    fn differing_kinds(&self) -> Vec<&Kind> {
        let (mut found, mut next) = (Vec::new(), self.index.keys.first());
        while let Some(Key { kind, .. }) = next {
            found.push(kind);
            // no namespace starts with the highest character
            next = self.index.keys.range(Key::new(kind.clone(), "\u{10ffff}", "")..).next();
        }
        found
    }

    /// The changed objects of a kind.
    fn changed_in<'s>(&'s self, kind: &Kind, ns: Option<&str>) -> impl Iterator<Item = &'s Arc<Object>> + use<'s> {
        let (kind, ns): (Kind, Option<Str>) = (kind.clone(), ns.map(Into::into));
        let low = Key::new(kind.clone(), ns.as_deref().unwrap_or(""), "");
        let keys = self.index.keys.range(low..);
        let keys = keys.take_while(move |k| k.kind == kind && ns.as_ref().is_none_or(|ns| k.ns == *ns));
        keys.filter_map(|key| self.delta.get(key)?.as_ref())
    }

    /// An object of the snapshot as it is here, if it differs in its marks at most.
    fn marked<'s>(&'s self, base: &'s Arc<Object>) -> Option<&'s Arc<Object>> {
        if !self.may_differ(base) {
            return Some(base);
        }
        match self.delta.get(&base.key) {
            None => Some(base),
            Some(Some(here)) if only_marked(base, here) => Some(here),
            Some(_) => None,
        }
    }

    fn indexed<'s>(&'s self, keys: Option<&'s BTreeSet<Key>>) -> impl Iterator<Item = &'s Arc<Object>> {
        keys.into_iter().flatten().filter_map(|key| self.delta.get(key)?.as_ref())
    }

    /// [`Self::merged`] of what is in the order of its keys, both of it: thousands are not compared for a few that differ.
    fn in_order<'s>(
        &'s self,
        found: Vec<&'s Arc<Object>>,
        changed: impl Iterator<Item = &'s Arc<Object>>,
    ) -> Vec<&'s Arc<Object>> {
        let (unchanged, mut changed) = (self.unchanged(found), changed.peekable());
        if changed.peek().is_none() {
            return unchanged;
        }
        let (mut all, mut rest) = (Vec::with_capacity(unchanged.len()), unchanged.as_slice());
        for object in changed {
            let (before, after) = rest.split_at(rest.partition_point(|other| other.key < object.key));
            all.extend_from_slice(before);
            all.push(object);
            rest = after;
        }
        all.extend_from_slice(rest);
        all
    }

    /// The unchanged among `found`, and the changed ones, in the order of their keys.
    fn merged<'s>(
        &'s self,
        found: Vec<&'s Arc<Object>>,
        changed: impl Iterator<Item = &'s Arc<Object>>,
    ) -> Vec<&'s Arc<Object>> {
        let mut all = self.unchanged(found);
        let unchanged = all.len();
        all.extend(changed);
        if all.len() > unchanged {
            all.sort_by(|a, b| a.key.cmp(&b.key));
        }
        all
    }

    /// The unchanged among these objects of the snapshot.
    fn unchanged<'s>(&'s self, found: Vec<&'s Arc<Object>>) -> Vec<&'s Arc<Object>> {
        match self.delta.is_empty() {
            true => found,
            false => found.into_iter().filter_map(|o| self.marked(o)).collect(),
        }
    }
}

/// Where an object is in memory.
fn place(object: &Arc<Object>) -> usize {
    Arc::as_ptr(object) as usize
}

/// Whether two versions of an object differ in nothing that one navigates by.
fn only_marked(base: &Object, here: &Object) -> bool {
    Arc::ptr_eq(&base.body, &here.body) && base.uid == here.uid && base.node == here.node
}

/// What was shared with copies, to be changed; a copy of all that it holds, where it is shared still.
fn own<T: Clone>(shared: &mut Arc<T>, items: impl FnOnce(&T) -> usize) -> &mut T {
    if Arc::get_mut(shared).is_none() {
        steps::count_items(items(shared));
    }
    Arc::make_mut(shared)
}

fn drop_key<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Key>>, at: &K, key: &Key) {
    if let Some(keys) = index.get_mut(at) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(at);
        }
    }
}
