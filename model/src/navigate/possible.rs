//! Where pods and volumes may be: on which nodes a pod may run, and from which ones a claim or volume may be used.
//!
//! Sources: `pkg/scheduler/framework/plugins` (`nodename`, `nodeaffinity`, `tainttoleration`, `noderesources`,
//! `interpodaffinity`, `volumebinding`). A node is left out only where it can be no place as things stand: its labels, its
//! taints but for those that come and go with its condition, what it can allocate in all, where the pods are that a required
//! pod affinity asks for, or may be placed in their turn. Room that others take, spreading and anti-affinity leave none out.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::claims::volume;
use super::template::{pod_spec, template_labels};
use crate::fields;
use crate::kinds::{Kind, KindTraits};
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::state::State;
use crate::value::{Str, Val};

/// The taints that a node has for its condition: they go by themselves (`pkg/controller/nodelifecycle`).
const OF_CONDITIONS: [&str; 6] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
];

/// The nodes on which the pod, or a new pod of the object, may run; from which a claim or volume may be used.
pub fn possible_nodes<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    match &*object.key.kind.kind {
        "PersistentVolume" if object.key.kind.is("PersistentVolume") => of_volume(state, object),
        "PersistentVolumeClaim" if object.key.kind.is("PersistentVolumeClaim") => of_claim(state, object),
        "Pod" if object.key.kind.is("Pod") && !object.node.is_empty() => {
            state.get(&Key::global("Node", &object.node)).into_iter().collect()
        }
        _ => {
            let Some(spec) = placed_spec(state, object) else { return Vec::new() };
            let labels = template_labels(state, object).unwrap_or_default();
            let terms = fields::pod_terms(&spec, "podAffinity");
            let mut found = alone(state, &spec, &object.key.ns);
            for term in terms {
                if means(term, &object.key.ns, &object.key.ns, &labels) {
                    continue;
                }
                let topology = term.str_at(&["topologyKey"]).map_or("", |key| key);
                let near = domains(state, term, topology, &object.key.ns);
                found.retain(|node| node.label(topology).is_some_and(|value| near.contains(value)));
            }
            found
        }
    }
}

/// What decides about [`possible_nodes`] beside nodes and pods: claims, their volumes, and the classes of those that have none.
pub fn placing<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    let behind = |claim: &Object| volume(state, claim).or_else(|| class_of(state, claim));
    match &*object.key.kind.kind {
        "PersistentVolume" if object.key.kind.is("PersistentVolume") => Vec::new(),
        "PersistentVolumeClaim" if object.key.kind.is("PersistentVolumeClaim") => behind(object).into_iter().collect(),
        _ if !object.node.is_empty() => Vec::new(),
        _ => {
            let own = placed_spec(state, object).map(|spec| claims(state, &spec, &object.key.ns)).unwrap_or_default();
            let followed = if follows_pods(state, object) { placed(state) } else { Vec::new() };
            let specs = followed.into_iter().filter_map(|o| Some((placed_spec(state, o)?, &o.key.ns)));
            let others = specs.flat_map(|(spec, ns)| claims(state, &spec, ns));
            let mut found: Vec<_> =
                own.into_iter().chain(others).flat_map(|c| [Some(c), volume(state, c)]).flatten().collect();
            found.sort_by(|a, b| a.key.cmp(&b.key));
            found.dedup_by(|a, b| a.key == b.key);
            found
        }
    }
}

/// Whether a required pod affinity has a say in it.
pub fn follows_pods(state: &State, object: &Object) -> bool {
    let spec = || pod_spec(state, object);
    object.node.is_empty() && spec().is_some_and(|spec| !fields::pod_terms(&spec, "podAffinity").is_empty())
}

/// The spec by which an object's pods are placed.
fn placed_spec(state: &State, object: &Object) -> Option<Val> {
    let spec = pod_spec(state, object)?;
    Some(if object.key.kind.is("DaemonSet") { fields::daemon_pod_spec(&spec) } else { spec })
}

/// The nodes that a pod spec may be placed on, whatever other pods there are.
fn alone<'s>(state: &'s State, spec: &Val, ns: &str) -> Vec<&'s Arc<Object>> {
    let pinned = spec.name_at(&["nodeName"]);
    let mut tolerations = spec.items_at(&["tolerations"]).to_vec();
    tolerations
        .extend(OF_CONDITIONS.map(|key| Val::object([("key", Val::str(key)), ("operator", Val::str("Exists"))])));
    let tolerant = spec.with("tolerations", Val::list(tolerations));
    let volumes: Vec<&Arc<Object>> = claims(state, spec, ns).into_iter().filter_map(|c| volume(state, c)).collect();
    let admits = |node: &Object| match pinned {
        // the scheduler is passed by
        Some(name) => *name == *node.key.name,
        None => {
            fields::node_matches(spec, node)
                && fields::tolerates(&tolerant, node, fields::SCHEDULING)
                && is_large_enough(spec, node)
                && volumes.iter().all(|volume| fields::volume_admits(volume, node))
        }
    };
    nodes(state).into_iter().filter(|node| admits(node)).collect()
}

/// The claims that a pod spec names.
fn claims<'s>(state: &'s State, spec: &Val, ns: &str) -> Vec<&'s Arc<Object>> {
    let volumes = spec.items_at(&["volumes"]).iter();
    let names = volumes.filter_map(|volume| volume.name_at(&["persistentVolumeClaim", "claimName"]));
    names.filter_map(|name| state.get(&Key::of("PersistentVolumeClaim", ns, name))).collect()
}

/// Whether an empty node could take a pod.
fn is_large_enough(spec: &Val, node: &Object) -> bool {
    let Some(allocatable) = node.val().at(&["status", "allocatable"]) else { return true };
    let stated = |name: &str| allocatable.get(name).and_then(|amount| fields::amount(amount, name));
    fields::requested(spec).iter().all(|name| stated(name).is_none_or(|most| fields::requests(spec, name) <= most))
}

/// The values of a topology label where pods are that a term of pod affinity means, or where they may be placed.
fn domains(state: &State, term: &Val, topology: &str, own: &str) -> BTreeSet<Str> {
    let mut found = BTreeSet::new();
    for object in placed(state) {
        let labels = template_labels(state, object).unwrap_or_default();
        if !means(term, own, &object.key.ns, &labels) || fields::finished(object) {
            continue;
        }
        let places = match object.node.is_empty() {
            true => placed_spec(state, object).map_or_else(Vec::new, |spec| alone(state, &spec, &object.key.ns)),
            false => state.get(&Key::global("Node", &object.node)).into_iter().collect(),
        };
        found.extend(places.into_iter().filter_map(|node| node.label(topology).cloned()));
    }
    found
}

/// All pods, and all that makes pods.
fn placed<'s>(state: &'s State) -> Vec<&'s Arc<Object>> {
    let mut kinds: Vec<Kind> = Kind::with(KindTraits::runs_pods).collect();
    kinds.extend(state.base().adapters().kinds());
    kinds.iter().flat_map(|kind| state.list(kind, None)).collect()
}

/// Whether a term of pod affinity of a pod in one namespace may mean pods of another one that bear these labels.
fn means(term: &Val, own: &str, ns: &str, labels: &Val) -> bool {
    let selector = term.at_some(&["labelSelector"]).map(Selector::from_label_selector);
    fields::reaches(term, own, ns) && selector.is_some_and(|selector| selector.matches(labels))
}

fn of_volume<'s>(state: &'s State, volume: &Object) -> Vec<&'s Arc<Object>> {
    nodes(state).into_iter().filter(|node| fields::volume_admits(volume, node)).collect()
}

/// A claim that is not bound yet may be provided wherever its class says (`allowedTopologies`).
fn of_claim<'s>(state: &'s State, claim: &Object) -> Vec<&'s Arc<Object>> {
    if let Some(volume) = volume(state, claim) {
        return of_volume(state, volume);
    }
    let terms = class_of(state, claim)
        .filter(|class| class.live())
        .map_or(&[][..], |class| class.val().items_at(&["allowedTopologies"]));
    let meets = |node: &Object, expression: &Val| {
        let here = expression.str_at(&["key"]).and_then(|key| node.label(key));
        here.is_some_and(|here| expression.items_at(&["values"]).iter().any(|value| value.as_str() == Some(here)))
    };
    let allowed = |node: &Object| {
        terms.is_empty()
            || terms.iter().any(|term| term.items_at(&["matchLabelExpressions"]).iter().all(|e| meets(node, e)))
    };
    nodes(state).into_iter().filter(|node| allowed(node)).collect()
}

fn class_of<'s>(state: &'s State, claim: &Object) -> Option<&'s Arc<Object>> {
    state.get(&Key::of("StorageClass", "", fields::class_named(claim.val())?))
}

fn nodes<'s>(state: &'s State) -> Vec<&'s Arc<Object>> {
    state.list(&Kind::new("", "Node"), None).into_iter().filter(|node| node.live()).collect()
}
