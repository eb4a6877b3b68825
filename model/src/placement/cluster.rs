//! Nodes and the pods that stay on them, as new pods find them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::deletion::Expected;
use crate::effects::scheduling::template::Template;
use crate::effects::scheduling::usage::{room, room_of_others};
use crate::effects::{Memo, at_risk};
use crate::fields::{has_deadline, requests};
use crate::kinds::Kind;
use crate::object::{Body, Key, Object};
use crate::snapshot::Usage;
use crate::state::State;
use crate::steps;
use crate::value::Str;

/// A cluster in which pods are to be placed.
pub struct Cluster<'s, 'a> {
    /// What it is made of.
    pub state: &'s State<'a>,
    /// Nodes that are taken to be gone, and their pods with them.
    pub gone: BTreeSet<Str>,
    expected: Expected<'s, 'a>,
    /// Whether pods of a body go with their owners, worked out once.
    going: RefCell<BTreeMap<(Str, *const Body), bool>>,
    memo: Memo,
    /// What changed pods add to the snapshot's figures.
    changed: BTreeMap<Str, Usage>,
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
        let (expected, going, memo) = (Expected::new(state), RefCell::default(), Memo::default());
        Self { state, gone, expected, going, memo, changed }
    }

    /// The live nodes.
    pub fn nodes(&self) -> Vec<&'s Arc<Object>> {
        let nodes = self.state.list(&Kind::new("", "Node"), None);
        steps::count_items(nodes.len());
        nodes.into_iter().filter(|node| node.live() && !self.gone.contains(&node.key.name)).collect()
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
        let key = (pod.key.ns.clone(), Arc::as_ptr(&pod.body));
        if let Some(known) = self.going.borrow().get(&key) {
            return *known;
        }
        let goes = self.expected.goes(pod);
        self.going.borrow_mut().insert(key, goes);
        goes
    }

    /// The pods that stay on a node.
    pub fn staying_on(&self, node: &Str) -> Vec<&'s Arc<Object>> {
        let pods = self.state.pods_on(node);
        steps::count_items(pods.len());
        pods.into_iter().filter(|pod| self.stays(pod)).collect()
    }

    /// How many pods of a template a node takes beside those that stay and do not leave, up to `most`.
    pub fn room(&self, node: &Object, own: &Template, most: i64, leaving: &BTreeSet<Key>) -> i64 {
        let mut others = self.staying_on(&node.key.name);
        others.retain(|pod| !leaving.contains(&pod.key));
        room_beside(node, own, most, &others)
    }

    /// No more than [`Self::room`], found without looking at each pod: by what all pods request.
    pub fn least_room(&self, node: &Object, own: &Template, most: i64) -> i64 {
        if !own.others.is_empty() || !own.ports.is_empty() {
            return 0;
        }
        let changed = self.changed.get(&node.key.name).copied().unwrap_or_default();
        let all = self.state.base().usage(&node.key.name).plus(changed, 1);
        room(own, node, most, all, all).least.unwrap_or(most).min(most)
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
