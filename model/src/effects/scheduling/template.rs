//! The template of new pods, with what the scheduler's plugins read of it.

use super::host_port::{HostPort, host_ports};
use super::room::Room;
use super::term::{Term, term};
use crate::controllers::statefulset::INDIVIDUAL_LABELS;
use crate::fields::{self, hard_spreads, pod_terms};
use crate::object::{Key, Object};
use crate::steps;
use crate::value::{Str, Val};

/// The template of new pods, with what decides where they may go.
#[derive(Clone, Debug)]
pub struct Template {
    /// `{metadata, spec}`.
    pub val: Val,
    /// Required anti-affinity, then spread constraints that may not be ignored, as far as they are about its namespace.
    pub terms: Vec<Term>,
    /// Whether its pods may wait for a volume that nobody provides, for good.
    pub waits: bool,
    /// What it requests of cpu and memory.
    pub requests: Vec<(&'static str, i64)>,
    /// What it requests beside cpu and memory.
    pub others: Vec<(Str, i64)>,
    /// The ports that its pods take of their node.
    pub ports: Vec<HostPort>,
    /// For each place, whether it admits a pod of this template.
    pub admitted: Vec<bool>,
    /// For each place, how many it takes.
    pub room: Vec<Room>,
}

/// The resources of which the snapshot keeps what is taken of each node.
const COUNTED: [&str; 2] = ["cpu", "memory"];

impl Template {
    /// The template of this pod template value ({metadata, spec}), for pods in a namespace.
    pub fn new(val: &Val, ns: &str) -> Self {
        let spec = val.get("spec").cloned().unwrap_or_default();
        let amount = |resource: &str| fields::requests(&spec, resource);
        let requests = COUNTED.map(|resource| (resource, amount(resource)));
        let others = fields::requested(&spec).into_iter().filter(|name| !COUNTED.contains(&&**name));
        let others = others.map(|name| (name.clone(), amount(&name))).filter(|(_, amount)| *amount > 0).collect();
        Self {
            val: val.clone(),
            terms: terms(&spec, ns),
            waits: false,
            requests: requests.into_iter().filter(|(_, amount)| *amount > 0).collect(),
            others,
            ports: host_ports(&spec),
            admitted: Vec::new(),
            room: Vec::new(),
        }
    }

    /// Takes a pod of this template to be admitted everywhere.
    pub fn anywhere(&mut self, places: usize) {
        self.admitted = vec![true; places];
        self.room = vec![Room::default(); places];
    }

    /// Whether a pod of this template may be placed there.
    pub fn admits(&self, place: usize) -> bool {
        self.admitted.get(place).copied().unwrap_or(false)
    }

    /// Whether a pod of this template may be placed anywhere.
    pub fn admits_any(&self) -> bool {
        self.admitted.contains(&true)
    }

    /// A pod made from the template by `maker`, with the labels that it adds: not placed, not ready.
    pub fn pod(&self, maker: &Key, owner: Option<&Object>, name: &str, labels: &[(&str, &Val)]) -> Object {
        let status = Val::object([("phase", Val::str("Pending"))]);
        let val = Val::object([("apiVersion", Val::str("v1")), ("kind", Val::str("Pod"))])
            .with("metadata", self.val.get("metadata").cloned().unwrap_or_default())
            .with_at(&["metadata", "name"], Val::str(name))
            .with_at(&["metadata", "namespace"], Val::Str(maker.ns.clone()))
            .with("spec", self.val.get("spec").cloned().unwrap_or_default())
            .with("status", status);
        let val = match owner.filter(|o| !o.uid.is_empty()) {
            Some(owner) => val.with_at(&["metadata", "ownerReferences"], Val::list(vec![controller_reference(owner)])),
            None => val,
        };
        let val = val.with_at(&["metadata", "uid"], Val::str(format!("new:{}/{name}", maker.ns)));
        let labelled =
            |val: Val, (key, value): &(&str, &Val)| val.with_at(&["metadata", "labels", key], (*value).clone());
        let val = labels.iter().fold(val, labelled);
        Object::from_val(&val).unwrap_or_else(|_| Object::bare(Key::of("Pod", &maker.ns, name)))
    }

    /// Whether a node that a pod is on has no port for one of this template.
    pub fn wants_port_of(&self, pod: &Object) -> bool {
        let taken = || pod.val().get("spec").map(host_ports).unwrap_or_default();
        !self.ports.is_empty()
            && !pod.finished()
            && taken().iter().any(|taken| self.ports.iter().any(|port| port.excludes(taken)))
    }

    /// How many of so many pods a node takes for the sake of their ports: one of them has a port.
    pub fn room_by_ports(&self, number: i64) -> Room {
        let one = (!self.ports.is_empty() && number > 1).then_some(1);
        Room { most: one, least: one }
    }

    /// The node that its pods name themselves.
    pub fn pinned(&self) -> Option<&Str> {
        pinned(self.spec())
    }

    /// The labels of its pods.
    pub fn labels(&self) -> &Val {
        self.val.at(&["metadata", "labels"]).unwrap_or(&Val::Null)
    }

    /// The spec of its pods.
    pub fn spec(&self) -> &Val {
        self.val.get("spec").unwrap_or(&Val::Null)
    }

    /// The terms of required affinity of a kind (`podAffinity`, `podAntiAffinity`): the kubelet looks at no other pods.
    pub fn affinity(&self, kind: &str) -> &[Val] {
        required(self.spec(), kind)
    }
}

/// The node that a pod spec names: its kubelet takes the pod without asking the scheduler, if it has room and ports for it
/// and the node is one that the pod selects (`pkg/kubelet/lifecycle/predicate.go`, `generalFilter`).
fn pinned(spec: &Val) -> Option<&Str> {
    spec.str_at(&["nodeName"]).filter(|name| !name.is_empty())
}

fn required<'v>(spec: &'v Val, kind: &str) -> &'v [Val] {
    if pinned(spec).is_some() { &[] } else { pod_terms(spec, kind) }
}

/// Those of a pod spec that relate its pods to one another. `matchLabelKeys` of a label that differs from pod to pod makes a
/// term of them that is about no two pods of a template.
fn terms(spec: &Val, ns: &str) -> Vec<Term> {
    let is_shared = |term: &Term| !term.shared_keys.iter().any(|key| INDIVIDUAL_LABELS.contains(&&**key));
    let apart = required(spec, "podAntiAffinity").iter().filter_map(|t| term(t, ns, None));
    let spreads = hard_spreads(spec).filter(|_| pinned(spec).is_none());
    let spread = spreads.filter_map(|t| term(t, ns, Some(t.int_at(&["maxSkew"]).unwrap_or(1))));
    let terms: Vec<Term> = apart.chain(spread).filter(is_shared).collect();
    // each costs far more than a step
    steps::count_items(terms.len().saturating_mul(16));
    terms
}

fn controller_reference(owner: &Object) -> Val {
    let group = &owner.key.kind.group;
    let api_version = if group.is_empty() { owner.version.to_string() } else { format!("{group}/{}", owner.version) };
    Val::object([
        ("apiVersion", Val::str(api_version)),
        ("kind", Val::Str(owner.key.kind.kind.clone())),
        ("name", Val::Str(owner.key.name.clone())),
        ("uid", Val::Str(owner.uid.clone())),
        ("controller", Val::Bool(true)),
    ])
}
