//! The nodes of a scenario by what new pods of some templates find there.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::host_port::host_ports;
use super::room::Room;
use crate::fields::anti_affinity;
use crate::node_names::NodeNames;
use crate::object::Object;
use crate::value::{Str, Val};

/// What makes two nodes alike to new pods: admission and room by template, and their domains; a node with pods that a
/// constraint is about stands alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// By template: whether it is admitted.
    pub admitted: Vec<bool>,
    /// By template: how many have room.
    pub room: Vec<Room>,
    /// By topology key.
    pub domains: Vec<Option<Str>>,
    /// Whether it takes no new pods for reasons that may pass by themselves.
    pub unwell: bool,
    /// Whether somebody has a port there that one of the templates wants.
    pub taken: bool,
    /// The node, where pods are that a constraint is about.
    pub alone: Option<Str>,
}

/// The nodes of a scenario by what new pods of some templates find there.
#[derive(Debug, Default)]
pub struct NodeClasses {
    pub(super) classes: Vec<(Signature, NodeNames)>,
    /// The class of every live node that is in no other: the longest, if every live node is in one.
    pub(super) rest: Option<usize>,
}

impl NodeClasses {
    /// The nodes, class by class. A node that stands alone is a class of its own although others may be like it.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeNames> {
        self.classes.iter().map(|(_, nodes)| nodes)
    }

    /// The class of a live node, if it is in any.
    pub fn class_of(&self, node: &Str) -> Option<usize> {
        let mut others = self.nodes().enumerate().filter(|(at, _)| Some(*at) != self.rest);
        others.find(|(_, nodes)| nodes.contains(node)).map(|(at, _)| at).or(self.rest)
    }

    /// For each class the number of the first class that admits new pods alike, standing alone or not.
    pub fn admission(&self) -> Vec<usize> {
        let plain = |s: &Signature| (s.admitted.clone(), s.room.clone(), s.domains.clone(), s.unwell, s.taken);
        let mut first: BTreeMap<_, usize> = BTreeMap::new();
        self.classes.iter().enumerate().map(|(at, (s, _))| *first.entry(plain(s)).or_insert(at)).collect()
    }
}

/// What was worked out about a scenario's nodes, by namespace, templates and demand.
pub type NodeCache = RefCell<BTreeMap<(Str, Vec<Val>, Demand), Rc<NodeClasses>>>;

/// What else decides which nodes are alike to new pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Who keeps apart from them.
    pub anti_affinity: AntiAffinityPresence,
    /// How many there are at most.
    pub most: i64,
    /// Whether pods of other workloads are relied on to keep what they take.
    pub quiescent: bool,
    /// Whether nodes are relied on to be as they are.
    pub caused_by_request: bool,
}

/// Where existing pods are that keep apart from others, and by which topology keys: new pods may have no such constraint.
/// A pod that takes ports of its node keeps apart from others that do.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AntiAffinityPresence {
    /// The topology keys.
    pub topologies: BTreeSet<Str>,
    /// The nodes.
    pub nodes: BTreeSet<Str>,
}

impl AntiAffinityPresence {
    /// Of these pods.
    pub fn of<'p>(pods: impl Iterator<Item = &'p Arc<Object>>) -> Self {
        let mut presence = Self::default();
        for pod in pods.filter(|pod| !pod.node.is_empty()) {
            let terms = anti_affinity(pod);
            presence.topologies.extend(terms.iter().filter_map(|t| t.str_at(&["topologyKey"]).cloned()));
            let takes_ports = || pod.val().get("spec").is_some_and(|spec| !host_ports(spec).is_empty());
            presence.nodes.extend((!terms.is_empty() || takes_ports()).then(|| pod.node.clone()));
        }
        presence
    }
}
