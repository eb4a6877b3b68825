//! The places of a group, and its existing pods, by topology domain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::effects::builder::Described;
use crate::fields::HOSTNAME;
use crate::fields::node_zone;
use crate::object::{Key, Object};
use crate::state::State;
use crate::steps;
use crate::value::Str;

/// The domain of a node by a topology key.
pub fn domain(node: &Object, topology: &str) -> Option<Str> {
    match node.label(topology) {
        Some(value) => Some(value.clone()),
        None if topology == HOSTNAME => Some(node.key.name.clone()),
        None if topology == "topology.kubernetes.io/zone" => node_zone(node),
        None => None,
    }
}

/// The nodes of the scenario by topology domain, and the group's existing pods in each.
pub struct Topology {
    /// For each place, its nodes' labels by topology key are alike except for the hostname.
    pub nodes: Vec<Arc<Object>>,
    /// For each place, how many nodes it stands for.
    pub sizes: Vec<i64>,
    /// Existing pods of the group that have not finished, which the scheduler does not see any more (`pkg/scheduler/
    /// scheduler.go`, `NewInformerFactory`): index into entities, object.
    pub existing: Vec<(usize, Arc<Object>)>,
    /// The node objects of existing pods.
    homes: BTreeMap<Str, Arc<Object>>,
}

impl Topology {
    /// Of a group.
    pub fn new(builder: &Described<'_, '_>) -> Self {
        let state = builder.state();
        let node = |name: &Str| state.get(&Key::global("Node", name)).cloned();
        let nodes = builder.group.places.iter().filter_map(|p| p.nodes.first().and_then(node)).collect();
        let sizes = builder.group.places.iter().map(|p| i64::try_from(p.nodes.len()).unwrap_or(i64::MAX)).collect();
        let existing: Vec<_> = builder
            .group
            .entities
            .iter()
            .enumerate()
            .filter_map(|(at, e)| Some((at, state.get(e.key()?)?.clone())))
            .filter(|(_, o)| o.key.kind.is("Pod") && !o.node.is_empty() && !o.finished())
            .collect();
        let homes = existing.iter().filter_map(|(_, o)| Some((o.node.clone(), node(&o.node)?))).collect();
        Self { nodes, sizes, existing, homes }
    }

    /// The domain that the node of a pod is in.
    pub fn domain_of(&self, state: &State<'_>, pod: &Object, topology: &str) -> Option<Str> {
        state.get(&Key::global("Node", &pod.node)).and_then(|node| domain(node, topology))
    }

    /// The names of those pods.
    pub fn inside(&self) -> BTreeSet<&Key> {
        self.existing.iter().map(|(_, pod)| &pod.key).collect()
    }

    /// The places by domain. For the hostname every place is a domain of its own (of as many domains as it has nodes).
    pub fn domains(&self, topology: &str) -> BTreeMap<Str, Vec<usize>> {
        let mut out: BTreeMap<Str, Vec<usize>> = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(value) = domain(node, topology) {
                out.entry(value).or_default().push(at);
            }
        }
        out
    }

    /// How many domains these places of one domain value stand for.
    pub fn size(&self, topology: &str, places: &[usize]) -> i64 {
        if topology == HOSTNAME { places.iter().filter_map(|at| self.sizes.get(*at)).sum() } else { 1 }
    }

    /// Existing pods in a domain that satisfy `means`.
    pub fn existing_in(&self, topology: &str, value: &Str, means: impl Fn(&Object) -> bool) -> Vec<usize> {
        steps::count_items(self.existing.len());
        let here = self.existing.iter().filter(|(_, pod)| {
            self.homes.get(&pod.node).and_then(|n| domain(n, topology)).as_ref() == Some(value) && means(pod)
        });
        here.map(|(at, _)| *at).collect()
    }
}
