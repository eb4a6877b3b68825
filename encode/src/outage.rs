//! Which outages need to be looked at: every choice of failing nodes, up to nodes that are alike, and of failing zones. Node
//! faults and zone faults are never combined.
//!
//! Few fault scenarios are enumerated outside the solver: that folds more and tells better what failed. Two nodes are
//! alike when they hold the same numbers of the same classes of the entities that the question reads and admit new pods
//! alike, and none has a pod of another workload that keeps new ones off; failing one or the other is the same question.
//! Most proofs hold whichever nodes fail, and take one question ([`Scene::whichever_fails`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::effects::{AntiAffinityPresence, Demand, new_templates, node_classes, nodes_beside_others};
use suture_model::fields::node_zone;
use suture_model::futures::{Entity, FateKind, Faults, Outage, Remains};
use suture_model::kinds::Kind;
use suture_model::object::{Body, Key, Object};
use suture_model::state::State;
use suture_model::value::Str;

use crate::class::{Class, EncodedGroup};
use crate::scene::Scene;

/// How many outages one question looks at; more is refused.
pub const OUTAGES_MAX: usize = 4096;

/// More outages than are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are more than {OUTAGES_MAX} different ways to lose so many nodes and zones")]
pub struct TooManyOutages;

/// The outages to look at, none first. `scene` is the question's scene without an outage. With a coarse view, nodes
/// that hold nothing of the question are alike. With `lone_alike`, equal pods that nothing controls are alike whatever
/// their names and nodes: the invariant tells them apart by neither.
///
/// # Errors
/// When there are more than [`OUTAGES_MAX`].
pub fn outages(scene: &Scene<'_, '_>, faults: Faults, lone_alike: bool) -> Result<Vec<Outage>, TooManyOutages> {
    if !faults.lose_nodes() {
        return Ok(vec![Outage::default()]);
    }
    let zones = if faults.zones == 0 { BTreeMap::new() } else { zones(scene.state()) };
    let by_zone = choices(&zones.keys().cloned().map(|z| vec![z]).collect::<Vec<_>>(), faults.zones)?;
    let classes: Vec<Vec<Str>> =
        if faults.nodes == 0 { Vec::new() } else { node_classes_of_question(scene, faults, lone_alike) };
    let by_node = choices(&classes, faults.nodes)?;
    let mut found: BTreeSet<Outage> = BTreeSet::new();
    for lost in &by_node {
        found.insert(Outage { nodes: lost.iter().cloned().collect(), zones: BTreeSet::new() });
    }
    for lost in &by_zone {
        let nodes = lost.iter().filter_map(|z| zones.get(z)).flatten().cloned().collect();
        found.insert(Outage { nodes, zones: lost.iter().cloned().collect() });
    }
    if found.len() > OUTAGES_MAX {
        return Err(TooManyOutages);
    }
    Ok(found.into_iter().collect())
}

/// How many nodes fail together at most.
pub fn failing_max(state: &State<'_>, faults: Faults) -> usize {
    let nodes = faults.nodes as usize;
    if faults.zones == 0 {
        return nodes;
    }
    let zones = zones(state).into_values().map(|nodes| nodes.len()).collect();
    nodes.max(greatest(zones, faults.zones))
}

/// How many pods are on nodes that fail together at most, by how many there are on each.
pub fn lost_max(state: &State<'_>, faults: Faults, on_node: &BTreeMap<&Str, i64>) -> i64 {
    let by_node = greatest(on_node.values().copied().collect(), faults.nodes);
    if faults.zones == 0 {
        return by_node;
    }
    let in_zone = |nodes: &BTreeSet<Str>| nodes.iter().filter_map(|node| on_node.get(node)).sum();
    by_node.max(greatest(zones(state).values().map(in_zone).collect(), faults.zones))
}

/// The sum of the greatest of these numbers.
fn greatest<N: Ord + std::iter::Sum>(mut numbers: Vec<N>, most: u32) -> N {
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.into_iter().take(most as usize).sum()
}

fn zones(state: &State<'_>) -> BTreeMap<Str, BTreeSet<Str>> {
    let mut zones: BTreeMap<Str, BTreeSet<Str>> = BTreeMap::new();
    for node in state.list(&Kind::new("", "Node"), None).into_iter().filter(|n| n.live()) {
        if let Some(zone) = node_zone(node) {
            zones.entry(zone).or_default().insert(node.key.name.clone());
        }
    }
    zones
}

/// Nodes by what they hold and admit; nodes that nothing tells apart stand together, no more of them than can fail.
fn node_classes_of_question(scene: &Scene<'_, '_>, faults: Faults, lone_alike: bool) -> Vec<Vec<Str>> {
    let is_live = |name: &Str| scene.state().get(&Key::global("Node", name)).is_some_and(|n| n.live());
    if scene.grain.nodes || scene.grain.identity || scene.reads_nodes {
        let nodes = scene.state().list(&Kind::new("", "Node"), None).into_iter();
        return nodes.filter(|n| n.live()).map(|n| vec![n.key.name.clone()]).collect();
    }
    let mut held = holdings(scene, lone_alike);
    let empty = if scene.view.coarse { BTreeMap::new() } else { admissions(scene, faults, &mut held, is_live) };
    let holding = held.iter().map(|known| (known.node, known.holds.as_slice(), known.admits.as_slice()));
    let empty = empty.iter().map(|(node, admits)| (node, &[][..], admits.as_slice()));
    let mut classes: BTreeMap<Likeness<'_>, Vec<Str>> = BTreeMap::new();
    for (node, holds, admits) in holding.chain(empty) {
        let class = classes.entry((holds, admits)).or_default();
        if class.len() < faults.nodes as usize && is_live(node) {
            class.push(node.clone());
        }
    }
    let mut found: Vec<Vec<Str>> = classes.into_values().filter(|nodes| !nodes.is_empty()).collect();
    if scene.view.coarse {
        // one node that holds nothing stands for all: new pods may have been on it
        let is_empty = |n: &Object| n.live() && !holds_any(&held, &n.key.name);
        let empty = scene.state().first(&Kind::new("", "Node"), faults.nodes as usize, &is_empty);
        found.extend((!empty.is_empty()).then(|| empty.iter().map(|node| node.key.name.clone()).collect()));
    }
    found
}

/// What each node holds of the entities that the question reads, in the order of the nodes' names.
fn holdings<'q>(scene: &'q Scene<'_, '_>, lone_alike: bool) -> Vec<Holding<'q>> {
    let mut holds: Vec<(&Str, Number)> = Vec::new();
    // pods that nothing controls are groups of their own
    let mut lone: BTreeMap<Lone, Number> = BTreeMap::new();
    for (at, encoded) in scene.encoded_groups().iter().enumerate() {
        for (class_at, class) in encoded.classes.iter().enumerate() {
            let (at, class_at) = match Lone::of(scene, encoded, class).filter(|_| lone_alike) {
                Some(signature) => *lone.entry(signature).or_insert((at, class_at)),
                None => (at, class_at),
            };
            for entity in class.entities.iter() {
                let node = encoded.group.entities.get(*entity).and_then(bound_to);
                holds.extend(node.map(|node| (node, (at, class_at))));
            }
        }
    }
    holds.sort_unstable();
    let by_node = holds.chunk_by(|(a, _), (b, _)| a == b);
    let held = by_node.filter_map(|pods| {
        let (node, _) = *pods.first()?;
        Some(Holding { node, holds: pods.iter().map(|(_, class)| *class).collect(), admits: Vec::new() })
    });
    held.collect()
}

/// What each node admits of new pods: noted for those that hold something, given for the others.
fn admissions(
    scene: &Scene<'_, '_>,
    faults: Faults,
    held: &mut [Holding<'_>],
    is_live: impl Fn(&Str) -> bool,
) -> BTreeMap<Str, Vec<Number>> {
    let mut empty: BTreeMap<Str, Vec<Number>> = BTreeMap::new();
    let makers = scene.encoded_groups().iter().enumerate();
    let makers = makers.filter_map(|(at, encoded)| Some((at, encoded, encoded.group.name.as_ref()?)));
    let makers = makers.map(|(at, encoded, name)| (at, encoded, name, new_templates(&encoded.group)));
    let makers: Vec<_> = makers.filter(|(.., new)| !new.is_empty()).collect();
    // some stand for all, unless two workloads tell them apart
    let most = if makers.len() == 1 { faults.nodes as usize } else { usize::MAX };
    for (at, encoded, name, templates) in makers {
        let demand = Demand {
            anti_affinity: AntiAffinityPresence::of(encoded.group.entities.iter().filter_map(|e| e.object.as_ref())),
            most: encoded.group.entities.iter().map(|e| i64::from(e.count)).sum(),
            quiescent: encoded.group.quiescent,
            caused_by_request: encoded.group.caused_by_request,
        };
        let inside = encoded.group.entities.iter().filter_map(Entity::key).collect();
        let beside = nodes_beside_others(scene.scenario, &scene.memo, &name.ns, &templates, &demand, &inside);
        let classes = node_classes(scene.scenario, &scene.memo, &name.ns, &templates, demand);
        let admission = classes.admission();
        for (nodes, number) in classes.nodes().zip(&admission) {
            let free = |n: &&Str| !holds_any(held, n) && !beside.contains(*n) && (most == usize::MAX || is_live(n));
            for node in nodes.iter().filter(free).take(most) {
                empty.entry(node.clone()).or_default().push((at, *number));
            }
        }
        // each of these is like no other
        for (node, number) in beside.iter().zip(admission.len()..) {
            match position(held, node).and_then(|known| held.get_mut(known)) {
                Some(holding) => holding.admits.push((at, number)),
                None if is_live(node) => empty.entry(node.clone()).or_default().push((at, number)),
                None => {}
            }
        }
        for holding in &mut *held {
            let class = classes.class_of(holding.node);
            let looked_for = || classes.nodes().position(|nodes| nodes.contains(holding.node));
            debug_assert!(!is_live(holding.node) || class == looked_for());
            let number = class.and_then(|class| admission.get(class));
            holding.admits.extend(number.map(|number| (at, *number)));
        }
    }
    empty
}

/// The node that an entity is on or, if it is a new pod of a DaemonSet, is made for.
fn bound_to(entity: &Entity) -> Option<&Str> {
    let made = || {
        entity.fates.iter().find_map(|fate| match (&fate.remains, fate.place) {
            (Remains::New(pod), None) => Some(pod),
            (Remains::New(_), Some(_)) | (Remains::Nothing | Remains::Itself | Remains::Changed(_), _) => None,
        })
    };
    let pod = entity.object.as_ref().or_else(made)?;
    Some(&pod.node).filter(|node| !node.is_empty())
}

/// A group with a class of entities, or of nodes, by their numbers.
type Number = (usize, usize);

/// What a node holds, and what of new pods it admits.
type Likeness<'n> = (&'n [Number], &'n [Number]);

/// A node that holds pods, and what of new ones it admits.
struct Holding<'n> {
    node: &'n Str,
    holds: Vec<Number>,
    admits: Vec<Number>,
}

/// Whether a node is among these.
fn holds_any(held: &[Holding<'_>], node: &Str) -> bool {
    position(held, node).is_some()
}

/// Where a node is among these, which are in the order of their names.
fn position(held: &[Holding<'_>], node: &Str) -> Option<usize> {
    held.binary_search_by(|known| known.node.cmp(node)).ok()
}

/// A pod in a group of its own, as far as a question tells it from others: namespace, body now and before, fates.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Lone {
    ns: Str,
    bodies: Vec<Arc<Body>>,
    fates: Vec<FateKind>,
}

impl Lone {
    fn of(scene: &Scene<'_, '_>, encoded: &EncodedGroup, class: &Class) -> Option<Self> {
        let [entity] = encoded.group.entities.as_slice() else { return None };
        let key = entity.key().filter(|key| scene.grain.instance_key.as_ref() != Some(*key))?;
        let here = scene.state().get(key)?;
        let before = scene.before.get(key).map(|b| b.body.clone());
        let bodies = std::iter::once(here.body.clone()).chain(before).collect();
        let plain = encoded.group.limits.is_empty() && key.kind.is("Pod");
        plain.then(|| Self { ns: key.ns.clone(), bodies, fates: class.fates.iter().map(|f| f.kind).collect() })
    }
}

/// Every way to take up to `most` from classes of interchangeable things, taking the first of a class first.
fn choices(classes: &[Vec<Str>], most: u32) -> Result<Vec<Vec<Str>>, TooManyOutages> {
    let mut found: Vec<Vec<Str>> = vec![Vec::new()];
    for class in classes {
        let mut longer = Vec::new();
        for taken in &found {
            let free = (most as usize).saturating_sub(taken.len()).min(class.len());
            for number in 1..=free {
                let mut more = taken.clone();
                more.extend(class.iter().take(number).cloned());
                longer.push(more);
            }
        }
        found.extend(longer);
        if found.len() > OUTAGES_MAX {
            return Err(TooManyOutages);
        }
    }
    Ok(found)
}
