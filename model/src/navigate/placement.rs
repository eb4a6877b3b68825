//! Where pods may run: node labels, taints and tolerations, zones.

use std::sync::Arc;

use super::template::pod_spec;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::selector::{node_matches, node_terms_match};
use crate::state::State;
use crate::value::{Str, Val};

pub use crate::selector::restricts_nodes;

/// How long a pod may stay on a node whose taints it does not care for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tolerance {
    /// A taint keeps it off.
    Never,
    /// Every taint is tolerated, a NoExecute one for some seconds only.
    Limited,
    /// Every taint is tolerated without end.
    Forever,
}

/// The effects of taints that the scheduler heeds; the kubelet and taint eviction heed `NoExecute` only.
pub const SCHEDULING: &[&str] = &["NoSchedule", "NoExecute"];

const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The nodes that the node selector and required node affinity of an object's pods match, whatever their taints; of a
/// PersistentVolume, the nodes from which its node affinity lets it be used (`component-helpers/storage/volume`).
pub fn admitted_nodes(state: &State, object: &Object) -> Arc<[Arc<Object>]> {
    if object.key.kind.is("PersistentVolume") {
        return nodes(state).into_iter().filter(|node| volume_admits(object, node)).cloned().collect();
    }
    pod_spec(state, object).map_or_else(Arc::default, |spec| state.admitted(&spec))
}

/// What a PersistentVolume requires of a node that uses it.
pub fn volume_affinity(volume: &Object) -> Option<&Val> {
    volume.val().at_some(&["spec", "nodeAffinity", "required"])
}

/// Whether a PersistentVolume's node affinity lets it be used from a node.
pub fn volume_admits(volume: &Object, node: &Object) -> bool {
    volume_affinity(volume).is_none_or(|required| node_terms_match(required, node))
}

/// The nodes that a DaemonSet runs a pod on (`pkg/controller/daemon/daemon_controller.go`, `NodeShouldRunDaemonPod`).
pub fn daemon_nodes<'s>(state: &'s State, set: &Object) -> Vec<&'s Arc<Object>> {
    let Some(spec) = pod_spec(state, set).map(|spec| daemon_pod_spec(&spec)) else { return Vec::new() };
    let pinned = spec.str_at(&["nodeName"]).filter(|n| !n.is_empty());
    nodes(state)
        .into_iter()
        .filter(|node| pinned.is_none_or(|n| *n == node.key.name))
        .filter(|node| node_matches(&spec, node) && tolerates(&spec, node, SCHEDULING))
        .collect()
}

/// Whether a DaemonSet leaves a pod on a node alone where it would make none: the node still has what it selects, and no
/// NoExecute taint that the pod does not tolerate (`NodeShouldRunDaemonPod`, `shouldContinueRunning`).
pub fn keeps_daemon_pod(state: &State, set: &Object, node: &Str) -> bool {
    let Some(spec) = pod_spec(state, set).map(|spec| daemon_pod_spec(&spec)) else { return false };
    let pinned = spec.str_at(&["nodeName"]).filter(|n| !n.is_empty());
    let found = state.get(&Key::global("Node", node)).filter(|node| node.live());
    pinned.is_none_or(|name| name == node)
        && found.is_some_and(|node| node_matches(&spec, node) && tolerates(&spec, node, &["NoExecute"]))
}

/// The pod spec with the tolerations that the DaemonSet controller adds
/// (`pkg/controller/daemon/util/daemonset_util.go`, `AddOrUpdateDaemonPodTolerations`).
pub fn daemon_pod_spec(pod_spec: &Val) -> Val {
    const ADDED: [(&str, &str); 6] = [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        (UNSCHEDULABLE, "NoSchedule"),
    ];
    let network = ("node.kubernetes.io/network-unavailable", "NoSchedule");
    let on_host = pod_spec.bool_at(&["hostNetwork"]).unwrap_or(false);
    let mut tolerations = pod_spec.items_at(&["tolerations"]).to_vec();
    for (key, effect) in ADDED.into_iter().chain(on_host.then_some(network)) {
        tolerations.push(Val::object([
            ("key", Val::str(key)),
            ("operator", Val::str("Exists")),
            ("effect", Val::str(effect)),
        ]));
    }
    pod_spec.with("tolerations", Val::list(tolerations))
}

/// Whether a pod tolerates every taint of the node that has one of these effects, for a while at least.
pub fn tolerates(pod_spec: &Val, node: &Object, effects: &[&str]) -> bool {
    tolerance(pod_spec, node, effects) != Tolerance::Never
}

/// How a pod tolerates the node's taints that have one of these effects. A cordoned node counts as tainted
/// (`pkg/scheduler/framework/plugins/nodeunschedulable`).
pub fn tolerance(pod_spec: &Val, node: &Object, effects: &[&str]) -> Tolerance {
    let tolerations = pod_spec.items_at(&["tolerations"]);
    let cordoned = node.val().bool_at(&["spec", "unschedulable"]).unwrap_or(false);
    let cordon = cordoned.then(|| Val::object([("key", Val::str(UNSCHEDULABLE)), ("effect", Val::str("NoSchedule"))]));
    let taints = node.val().items_at(&["spec", "taints"]).iter().chain(&cordon);
    let heeded = taints.filter(|taint| effects.contains(&text(taint, "effect")));
    heeded.map(|taint| tolerance_of(tolerations, taint)).min().unwrap_or(Tolerance::Forever)
}

/// The longest tolerance that any toleration grants. The API server makes the shortest of several count for eviction
/// (`pkg/controller/tainteviction`, `getMinTolerationTime`), so one that ends makes the whole one end.
fn tolerance_of(tolerations: &[Val], taint: &Val) -> Tolerance {
    let mut matching = tolerations.iter().filter(|toleration| tolerates_taint(toleration, taint)).peekable();
    if matching.peek().is_none() {
        Tolerance::Never
    } else if text(taint, "effect") == "NoExecute" && matching.any(|t| t.at_some(&["tolerationSeconds"]).is_some()) {
        Tolerance::Limited
    } else {
        Tolerance::Forever
    }
}

/// `component-helpers/scheduling/corev1/helpers.go` and `core/v1/toleration.go`, `ToleratesTaint`: an empty effect
/// matches all effects, an empty key with Exists all keys. Operators other than Exists and Equal match nothing here.
fn tolerates_taint(toleration: &Val, taint: &Val) -> bool {
    let (effect, key) = (text(toleration, "effect"), text(toleration, "key"));
    if !effect.is_empty() && effect != text(taint, "effect") {
        return false;
    }
    if !key.is_empty() && key != text(taint, "key") {
        return false;
    }
    match text(toleration, "operator") {
        "" | "Equal" => !key.is_empty() && text(toleration, "value") == text(taint, "value"),
        "Exists" => true,
        _ => false,
    }
}

/// The zone of a pod: that of its node.
pub fn zone(state: &State, pod: &Object) -> Option<Str> {
    let node = state.get(&Key::global("Node", &pod.node))?;
    node_zone(node)
}

/// The zone of a node, by the label or the one that preceded it.
pub fn node_zone(node: &Object) -> Option<Str> {
    let old = || node.label("failure-domain.beta.kubernetes.io/zone");
    node.label("topology.kubernetes.io/zone").or_else(old).filter(|z| !z.is_empty()).cloned()
}

/// All live nodes.
fn nodes<'s>(state: &'s State) -> Vec<&'s Arc<Object>> {
    state.list(&Kind::new("", "Node"), None).into_iter().filter(|n| n.live()).collect()
}

fn text<'v>(val: &'v Val, key: &str) -> &'v str {
    val.str_at(&[key]).map_or("", |s| s)
}

/// The terms of a pod's required anti-affinity; none for an object of another kind.
pub fn anti_affinity(object: &Object) -> &[Val] {
    if !object.key.kind.is("Pod") {
        return &[];
    }
    object.val().items_at(&["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"])
}
