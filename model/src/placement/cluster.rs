//! Nodes and the pods that stay on them, as new pods find them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::deletion::Expected;
use crate::effects::scheduling::template::Template;
use crate::effects::scheduling::usage::{room, room_of_others};
use crate::effects::{ByBody, Memo, at_risk, unsteady};
use crate::fields::{allocatable, has_deadline, requests};
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::quantity::Allocatable;
use crate::snapshot::Usage;
use crate::state::State;
use crate::steps;
use crate::value::{Str, Val};

/// A cluster in which pods are to be placed.
pub struct Cluster<'s, 'a> {
    /// What it is made of.
    pub state: &'s State<'a>,
    /// Nodes that are taken to be gone, and their pods with them.
    pub gone: BTreeSet<Str>,
    expected: Expected<'s, 'a>,
    /// Whether pods go with their owners.
    going: ByBody,
    memo: Memo,
    /// What changed pods add to the snapshot's figures.
    changed: BTreeMap<Str, Usage>,
    /// The nodes on which a pod may be that does not stay.
    unsteady: OnceCell<Arc<BTreeSet<Str>>>,
}

impl<'s, 'a> Cluster<'s, 'a> {
    /// A state without some nodes.
    pub fn new(state: &'s State<'a>, gone: BTreeSet<Str>) -> Self {
        let mut changed: BTreeMap<Str, Usage> = BTreeMap::new();
        for key in state.changed_keys(&Kind::new("", "Pod")) {
            for (pod, times) in [(state.base().get(key), -1), (state.get(key), 1)] {
                if let Some(pod) = pod.filter(|pod| !pod.node.is_empty()) {
                    changed.entry(pod.node.clone()).or_default().add(pod, times);
                }
            }
        }
        let (expected, going, memo) = (Expected::new(state), ByBody::default(), Memo::default());
        Self { state, gone, expected, going, memo, changed, unsteady: OnceCell::new() }
    }

    /// The live nodes.
    pub fn nodes(&self) -> Vec<&'s Arc<Object>> {
        let nodes = self.state.list(&Kind::new("", "Node"), None);
        steps::count_items(nodes.len());
        nodes.into_iter().filter(|node| node.live() && !self.gone.contains(&node.key.name)).collect()
    }

    /// The live nodes that a pod of a spec may be on by its constraint on nodes, in the order of their names.
    pub fn admitted(&self, spec: &Val) -> Arc<[Arc<Object>]> {
        let found = self.state.admitted(spec);
        if self.gone.is_empty() {
            found
        } else {
            found.iter().filter(|node| !self.gone.contains(&node.key.name)).cloned().collect()
        }
    }

    /// Whether there are live nodes.
    pub fn has_nodes(&self) -> bool {
        let is_there = |node: &Object| node.live() && !self.gone.contains(&node.key.name);
        !self.state.first(&Kind::new("", "Node"), 1, &is_there).is_empty()
    }

    /// A live node.
    pub fn node(&self, name: &Str) -> Option<&'s Arc<Object>> {
        self.state.get(&Key::global("Node", name)).filter(|node| node.live() && !self.gone.contains(name))
    }

    /// Whether a pod is placed and stays there unless its controller replaces it.
    pub fn stays(&self, pod: &Object) -> bool {
        let ends = || pod.finished() || has_deadline(pod) || self.gone.contains(&pod.node);
        let is_evicted = || self.memo.on_unhealthy_node(self.state, pod) && at_risk(self.state, pod);
        !pod.node.is_empty() && pod.live() && !(ends() || is_evicted() || self.goes_with_owners(pod))
    }

    fn goes_with_owners(&self, pod: &Object) -> bool {
        self.going.of(pod, || self.expected.goes(pod))
    }

    /// The pods that stay on a node.
    pub fn staying_on(&self, node: &Str) -> Vec<&'s Arc<Object>> {
        let pods = self.state.pods_on(node);
        steps::count_items(pods.len());
        // of a node on which all stay it is not asked for each
        let all_stay = self.is_steady(node) && !self.gone.contains(node);
        pods.into_iter().filter(|pod| if all_stay { !pod.finished() } else { self.stays(pod) }).collect()
    }

    /// How many pods of a template a node takes beside those that stay and do not leave, up to `most`.
    pub fn room(&self, node: &Object, own: &Template, most: i64, leaving: &Leaving) -> i64 {
        let name = &node.key.name;
        if self.is_steady(name) && own.others.is_empty() && own.ports.is_empty() {
            return self.room_by_sum(node, own, most, leaving.usage.get(name).copied().unwrap_or_default());
        }
        let mut others = self.staying_on(name);
        others.retain(|pod| !leaving.pods.contains(&pod.key));
        room_beside(node, own, most, &others)
    }

    /// Whether all pods on a node stay there.
    fn is_steady(&self, node: &Str) -> bool {
        let find = || self.state.once("unsteady", "", || unsteady(self.state, self.memo.unhealthy(self.state)));
        !self.unsteady.get_or_init(find).contains(node)
    }

    fn room_by_sum(&self, node: &Object, own: &Template, most: i64, leaving: Usage) -> i64 {
        let changed = self.changed.get(&node.key.name).copied().unwrap_or_default();
        let all = self.state.base().usage(&node.key.name).plus(changed, 1).plus(leaving, -1);
        room(own, node, most, all, all).least.unwrap_or(most).min(most)
    }

    /// No more than [`Self::room`], found without looking at each pod: by what all pods request.
    pub fn least_room(&self, node: &Object, own: &Template, most: i64) -> i64 {
        if !own.others.is_empty() || !own.ports.is_empty() {
            return 0;
        }
        self.room_by_sum(node, own, most, Usage::default())
    }
}

/// Pods that leave their nodes.
#[derive(Default)]
pub struct Leaving {
    pods: BTreeSet<Key>,
    /// What they take of each.
    usage: BTreeMap<Str, Usage>,
}

impl Leaving {
    /// Those of these that are there and stay otherwise.
    pub fn of(cluster: &Cluster<'_, '_>, pods: &BTreeSet<Key>) -> Self {
        let mut usage: BTreeMap<Str, Usage> = BTreeMap::new();
        for pod in pods.iter().filter_map(|key| cluster.state.get(key)).filter(|pod| !pod.node.is_empty()) {
            usage.entry(pod.node.clone()).or_default().add(pod, 1);
        }
        Self { pods: pods.clone(), usage }
    }
}

/// What the others on a node may take at most, so that so many pods of a template have room beside them.
pub struct Limit {
    pods: Option<i64>,
    cpu: Option<i64>,
    memory: Option<i64>,
}

impl Limit {
    /// None where something else than the number of pods, cpu and memory decides.
    pub fn of(node: &Object, own: &Template, number: i64) -> Option<Self> {
        if !own.others.is_empty() || !own.ports.is_empty() {
            return None;
        }
        let stated = |of: fn(&Allocatable) -> Option<i64>| of(allocatable(node)?);
        let beside = |total: i64, each: i64| total.max(0).saturating_sub(each.saturating_mul(number));
        let asked = |resource: &str| own.requests.iter().find(|(name, _)| *name == resource).map(|(_, each)| *each);
        let of = |total: Option<i64>, resource: &str| Some(beside(total?, asked(resource)?));
        Some(Self {
            pods: stated(|of| of.pods).map(|total| beside(total, 1)),
            cpu: of(stated(|of| of.cpu), "cpu"),
            memory: of(stated(|of| of.memory), "memory"),
        })
    }

    /// Whether they take no more.
    pub fn admits(&self, used: Usage) -> bool {
        let within = |limit: Option<i64>, used: i64| limit.is_none_or(|limit| used <= limit);
        within(self.pods, used.pods) && within(self.cpu, used.cpu) && within(self.memory, used.memory)
    }
}

/// How many pods of a template a node takes beside these, up to `most`.
pub fn room_beside(node: &Object, own: &Template, most: i64, others: &[&Arc<Object>]) -> i64 {
    if others.iter().any(|pod| own.wants_port_of(pod)) {
        return 0;
    }
    let mut used = Usage::default();
    others.iter().for_each(|pod| used.add(pod, 1));
    let taken = |resource: &str| {
        let of = |pod: &&Arc<Object>| pod.val().get("spec").map_or(0, |spec| requests(spec, resource));
        let all = others.iter().map(of).fold(0, i64::saturating_add);
        (all, all)
    };
    let by_resources = room(own, node, most, used, used).tighter(room_of_others(own, node, most, taken));
    by_resources.tighter(own.room_by_ports(most)).least.unwrap_or(most).min(most)
}
