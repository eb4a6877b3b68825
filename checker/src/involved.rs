//! The objects that a counterexample is about, and what they are to each other: before the change, and in the violating
//! future. This is what a picture of a denial is drawn from.
//!
//! A decision keeps the future only. The objects around it are looked up when somebody asks, apart from the decision, so
//! that they are no facts that it rests on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suture_model::navigate;
use suture_model::object::{Key, Object};
use suture_model::references::references;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;

/// So many differences of a future are kept; of more, no numbers are told.
const CHANGED_MAX: usize = 512;
/// So many objects are looked around from.
const NAMED_MAX: usize = 20;
/// So many objects are told of.
const OBJECTS_MAX: usize = 40;
/// So many objects of one relation are looked at from one object; those that differ come first.
const AROUND_MAX: usize = 6;
/// Owners above owners, at most.
const OWNERS_MAX: usize = 4;

/// One of the objects that a counterexample is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvolvedObject {
    /// `Kind/namespace/name`.
    pub name: String,
    /// How it is before the change, in a few words that may be none; `None` where it does not exist.
    pub before: Option<String>,
    /// How it is in the violating future.
    pub after: Option<String>,
    /// Whether it is on its way out in that future: a deletion takes it along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes: bool,
}

/// What one of these objects is to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvolvedEdge {
    /// The name of the object that has the relation.
    pub from: String,
    /// The name of the object that it has it to.
    pub to: String,
    /// Which.
    pub relation: Relation,
    /// Whether it is so before the change.
    pub before: bool,
    /// Whether it is so in the violating future; not where one of them is on its way out.
    pub after: bool,
}

/// What an object is to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Relation {
    /// It owns it.
    Owner,
    /// Its selector means it.
    Selector,
    /// It keeps its data in it: a pod in a claim, a claim in a volume.
    Volume,
    /// It runs on it.
    Node,
    /// It names it otherwise.
    Reference,
}

impl Relation {
    /// As a verb, from the one to the other.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Owner => "owns",
            Self::Selector => "selects",
            Self::Volume => "stores in",
            Self::Node => "runs on",
            Self::Reference => "refers to",
        }
    }
}

/// What the violating future has in place of what was there, and which objects are named on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViolatingFuture {
    /// The instance first.
    named: Vec<Key>,
    changed: Arc<[(Key, Option<Arc<Object>>)]>,
    /// Whether these are all differences.
    is_whole: bool,
}

impl ViolatingFuture {
    /// Of an instance that is violated as things are.
    pub(crate) fn present(instance: Key) -> Self {
        Self { named: vec![instance], changed: Arc::default(), is_whole: true }
    }

    /// A future, with the objects that are named on the way; the instance first.
    pub(crate) fn of(named: impl Iterator<Item = Key>, world: &State<'_>) -> Self {
        let mut seen = BTreeSet::new();
        let named = named.filter(|key| seen.insert(key.clone())).take(NAMED_MAX).collect();
        let changed = world.delta().iter().take(CHANGED_MAX).map(|(key, object)| (key.clone(), object.clone()));
        Self { named, changed: changed.collect(), is_whole: world.delta().len() <= CHANGED_MAX }
    }

    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        (self.changed.len() + self.named.len()) * (size_of::<Key>() + size_of::<Object>())
    }

    /// The named objects, with this one as the instance: one of a class stands for all of it.
    fn named_with(&self, instance: &str) -> Vec<Key> {
        let mut named = self.named.clone();
        if let Some(first) = named.first_mut().filter(|first| first.to_string() != instance) {
            let place = instance.split_once('/').map_or(instance, |(_, place)| place);
            let (ns, name) = place.split_once('/').unwrap_or(("", place));
            *first = Key::new(first.kind.clone(), ns, name);
        }
        named
    }
}

/// The objects that a counterexample about an instance is about, and what they are to each other.
pub(crate) fn involve(
    snapshot: &Snapshot,
    instance: &str,
    future: &ViolatingFuture,
) -> (Vec<InvolvedObject>, Vec<InvolvedEdge>) {
    let before = State::new(snapshot);
    let mut after = before.clone();
    for (key, object) in future.changed.iter() {
        match object {
            Some(object) => after.put_shared(object.clone()),
            None => after.take(key),
        }
    }
    let mut found = Neighbourhood { before: &before, after: &after, keys: Vec::new(), seen: BTreeSet::new() };
    let named = future.named_with(instance);
    named.iter().for_each(|key| found.add(key));
    named.iter().for_each(|key| found.look_around(key));
    found.add_owners();
    let told = |state: &State<'_>, is_whole: bool, key: &Key| state.get(key).map(|o| told(state, o, is_whole));
    let objects = found.keys.iter().map(|key| InvolvedObject {
        name: key.to_string(),
        before: told(&before, true, key),
        after: told(&after, future.is_whole, key),
        goes: found.leaves(key),
    });
    (objects.collect(), found.edges())
}

/// A few objects, as they are found around those that are named.
struct Neighbourhood<'s, 'a> {
    before: &'s State<'a>,
    after: &'s State<'a>,
    keys: Vec<Key>,
    seen: BTreeSet<Key>,
}

impl Neighbourhood<'_, '_> {
    /// Adds an object that exists, before or after.
    fn add(&mut self, key: &Key) {
        let exists = self.before.get(key).is_some() || self.after.get(key).is_some();
        if exists && self.keys.len() < OBJECTS_MAX && self.seen.insert(key.clone()) {
            self.keys.push(key.clone());
        }
    }

    /// Adds what an object is related to, and what is related to it.
    fn look_around(&mut self, key: &Key) {
        let mut around: BTreeMap<(Relation, bool), BTreeSet<Key>> = BTreeMap::new();
        for state in [self.before, self.after] {
            let Some(object) = state.get(key) else { continue };
            for (target, relation) in outgoing(state, object) {
                // what it merely names is not what it is about
                if relation != Relation::Reference {
                    around.entry((relation, true)).or_default().insert(target);
                }
            }
            for (source, relation) in incoming(state, object) {
                around.entry((relation, false)).or_default().insert(source);
            }
        }
        for keys in around.into_values() {
            let mut keys: Vec<Key> = keys.into_iter().filter(|key| !self.seen.contains(key)).collect();
            keys.sort_by_key(|key| !self.after.delta().contains_key(key));
            keys.iter().take(AROUND_MAX).for_each(|key| self.add(key));
        }
    }

    /// Adds the owners of all that was found.
    fn add_owners(&mut self) {
        for _ in 0..OWNERS_MAX {
            for key in self.keys.clone() {
                for state in [self.before, self.after] {
                    let Some(object) = state.get(&key) else { continue };
                    let owners =
                        object.owners().iter().filter_map(|owner| navigate::owner_object(state, object, owner));
                    for owner in owners.map(|owner| owner.key.clone()).collect::<Vec<_>>() {
                        self.add(&owner);
                    }
                }
            }
        }
    }

    /// Whether an object is on its way out in the violating future, and was not before.
    fn leaves(&self, key: &Key) -> bool {
        let is_going = |state: &State<'_>| state.get(key).is_some_and(|object| is_going(object));
        is_going(self.after) && !is_going(self.before)
    }

    /// What they are to each other; what is on its way out is nothing to others any more. Where an owner is known, that it also selects is not told.
    fn edges(&self) -> Vec<InvolvedEdge> {
        let mut edges: BTreeMap<(Key, Key, Relation), (bool, bool)> = BTreeMap::new();
        for (is_after, state) in [(false, self.before), (true, self.after)] {
            for object in self.keys.iter().filter_map(|key| state.get(key)) {
                let owned = object.owners().iter().filter_map(|owner| navigate::owner_object(state, object, owner));
                let owned = owned.map(|owner| (owner.key.clone(), object.key.clone(), Relation::Owner));
                let others = outgoing(state, object).into_iter();
                let others = others.map(|(target, relation)| (object.key.clone(), target, relation));
                for edge in owned.chain(others) {
                    let is_inside = self.seen.contains(&edge.0) && self.seen.contains(&edge.1);
                    let is_leaving = is_after && (self.leaves(&edge.0) || self.leaves(&edge.1));
                    if is_inside && !is_leaving && state.get(&edge.1).is_some() {
                        let there = edges.entry(edge).or_default();
                        if is_after { there.1 = true } else { there.0 = true }
                    }
                }
            }
        }
        edges.into_iter().map(told_edge).collect()
    }
}

fn told_edge(edge: ((Key, Key, Relation), (bool, bool))) -> InvolvedEdge {
    let ((from, to, relation), (before, after)) = edge;
    InvolvedEdge { from: from.to_string(), to: to.to_string(), relation, before, after }
}

/// What an object is related to, but for what it owns.
fn outgoing(state: &State<'_>, object: &Arc<Object>) -> Vec<(Key, Relation)> {
    let mut found = Vec::new();
    if !object.node.is_empty() {
        found.push((Key::global("Node", &object.node), Relation::Node));
    }
    if !navigate::selected(state, object).is_empty() {
        let owned: BTreeSet<&Key> = navigate::pods_owned_by(state, object).into_iter().map(|pod| &pod.key).collect();
        let meant = navigate::selected(state, object).into_iter().map(|pod| &pod.key);
        found.extend(meant.filter(|pod| !owned.contains(pod)).map(|pod| (pod.clone(), Relation::Selector)));
    }
    if object.key.kind.is("PersistentVolumeClaim") {
        found.extend(navigate::volume(state, object).map(|volume| (volume.key.clone(), Relation::Volume)));
    }
    let mut known: BTreeSet<Key> = found.iter().map(|(target, _)| target.clone()).collect();
    for reference in references(object, state.base().adapters().as_ref()) {
        let relation = match reference.target.kind.is("PersistentVolumeClaim") && object.key.kind.is("Pod") {
            true => Relation::Volume,
            false => Relation::Reference,
        };
        if !object.key.kind.is("PersistentVolume") && known.insert(reference.target.clone()) {
            found.push((reference.target, relation));
        }
    }
    found
}

/// What is related to an object, and what it owns.
fn incoming(state: &State<'_>, object: &Arc<Object>) -> Vec<(Key, Relation)> {
    let mut found: Vec<(Key, Relation)> = Vec::new();
    let add = |found: &mut Vec<(Key, Relation)>, objects: Vec<&Arc<Object>>, relation| {
        found.extend(objects.into_iter().map(|o| (o.key.clone(), relation)));
    };
    if !object.uid.is_empty() {
        add(&mut found, state.owned_by(&object.uid), Relation::Owner);
    }
    if object.key.kind.is("Pod") {
        add(&mut found, navigate::selected_by(state, object), Relation::Selector);
    }
    if object.key.kind.is("PersistentVolume") {
        add(&mut found, navigate::claims_of(state, object), Relation::Volume);
    }
    if object.key.kind.is("Node") {
        add(&mut found, state.pods_on(&object.key.name), Relation::Node);
    }
    add(&mut found, state.referrers(&object.key), Relation::Reference);
    found
}

/// Whether a deletion has begun to take it, or will.
fn is_going(object: &Object) -> bool {
    object.in_deletion_closure || object.terminating()
}

/// How an object is, in a few words. Numbers of pods are told where all pods are known (`is_whole`).
fn told(state: &State<'_>, object: &Object, is_whole: bool) -> String {
    let text = |path: &[&str]| object.val().str_at(path).map(ToString::to_string);
    let counted = |text: String| is_whole.then_some(text);
    let told = match &*object.key.kind.kind {
        "Pod" if object.ready() => Some("ready".to_owned()),
        "Pod" => Some(if object.node.is_empty() { "pending" } else { "not ready" }.to_owned()),
        "Node" => Some(node(object)),
        "Service" if navigate::selector_of(state, object).is_some() => {
            counted(numbered(navigate::endpoints(state, object).len(), "ready endpoint"))
        }
        "PersistentVolumeClaim" => text(&["status", "phase"]).map(|phase| phase.to_lowercase()),
        "PersistentVolume" => {
            text(&["spec", "persistentVolumeReclaimPolicy"]).map(|policy| format!("reclaim {policy}"))
        }
        _ => navigate::wanted_replicas(state, object)
            .and_then(|wanted| usize::try_from(wanted).ok())
            .map(|wanted| format!("wants {}", numbered(wanted, "pod"))),
    };
    match (is_going(object), told) {
        (true, Some(told)) => format!("{told}, being deleted"),
        (true, None) => "being deleted".to_owned(),
        (false, told) => told.unwrap_or_default(),
    }
}

fn node(node: &Object) -> String {
    let is_ready = node.val().items_at(&["status", "conditions"]).iter().any(|condition| {
        let is = |field: &str, value: &str| condition.str_at(&[field]).is_some_and(|text| &**text == value);
        is("type", "Ready") && is("status", "True")
    });
    let ready = if is_ready { "ready" } else { "not ready" };
    match node.val().bool_at(&["spec", "unschedulable"]) {
        Some(true) => format!("{ready}, cordoned"),
        _ => ready.to_owned(),
    }
}

fn numbered(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
