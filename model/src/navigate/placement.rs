//! Where pods may run: the nodes that a constraint admits, those of a DaemonSet, the zone of a pod.

use std::sync::Arc;

use super::template::pod_spec;
use crate::fields::{SCHEDULING, daemon_pod_spec, node_matches, node_zone, tolerates, volume_admits};
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::state::State;
use crate::value::{Str, Val};

/// The nodes that the node selector and required node affinity of an object's pods match, whatever their taints; of a
/// PersistentVolume, the nodes from which its node affinity lets it be used (`component-helpers/storage/volume`).
pub fn admitted_nodes(state: &State, object: &Object) -> Arc<[Arc<Object>]> {
    if object.key.kind.is("PersistentVolume") {
        return nodes(state).into_iter().filter(|node| volume_admits(object, node)).cloned().collect();
    }
    pod_spec(state, object).map_or_else(Arc::default, |spec| state.admitted(&spec))
}

/// The nodes that a DaemonSet runs a pod on (`pkg/controller/daemon/daemon_controller.go`, `NodeShouldRunDaemonPod`).
pub fn daemon_nodes<'s>(state: &'s State, set: &Object) -> Vec<&'s Arc<Object>> {
    let Some(spec) = pod_spec(state, set).map(|spec| daemon_pod_spec(&spec)) else { return Vec::new() };
    nodes(state).into_iter().filter(|node| takes_daemon_pod(&spec, node, SCHEDULING)).collect()
}

/// Whether a DaemonSet makes a pod on a node, and whether it leaves one there alone.
pub fn daemon_pod_on(state: &State, set: &Object, node: &Object) -> [bool; 2] {
    let Some(spec) = pod_spec(state, set).map(|spec| daemon_pod_spec(&spec)) else { return [false; 2] };
    [SCHEDULING, &["NoExecute"][..]].map(|effects| node.live() && takes_daemon_pod(&spec, node, effects))
}

/// Whether a node is another one but for whether it is cordoned, which pods of DaemonSets tolerate
/// (`pkg/controller/daemon/util/daemonset_util.go`, `AddOrUpdateDaemonPodTolerations`).
pub fn differs_beyond_cordon(old: &Object, new: &Object) -> bool {
    let rest = |node: &Object| node.val().without_at(&["spec", "unschedulable"]);
    old.live() != new.live() || rest(old) != rest(new)
}

/// Whether a node is another one but for what decides which pods come to it: whether it is cordoned, and taints that do not
/// evict. The pods that it has stay (`pkg/controller/tainteviction/taint_eviction.go`, `getNoExecuteTaints`).
pub fn differs_beyond_scheduling(old: &Object, new: &Object) -> bool {
    let plain = |node: &Object| {
        let stays = |taint: &&Val| !taint.str_at(&["effect"]).is_some_and(|effect| effect.ends_with("NoSchedule"));
        let taints = node.val().items_at(&["spec", "taints"]).iter().filter(stays).cloned().collect();
        node.map_body(|val| val.with_at(&["spec", "taints"], Val::list(taints)))
    };
    differs_beyond_cordon(&plain(old), &plain(new))
}

/// Whether what is another about a node may matter to what a DaemonSet does. Labels, annotations and a cordon do where it wants
/// a pod there with them and none without, or the other way round.
pub fn matters_to_daemon_set(state: &State, set: &Object, old: &Object, new: &Object) -> bool {
    let plain = |node: &Object| {
        node.map_body(|val| val.without_at(&["metadata", "labels"]).without_at(&["metadata", "annotations"]))
    };
    differs_beyond_cordon(&plain(old), &plain(new)) || daemon_pod_on(state, set, old) != daemon_pod_on(state, set, new)
}

/// Whether a node has what such a pod selects, and no taint of these effects that the pod does not tolerate.
fn takes_daemon_pod(spec: &Val, node: &Object, effects: &[&str]) -> bool {
    let pinned = spec.str_at(&["nodeName"]).filter(|n| !n.is_empty());
    pinned.is_none_or(|n| *n == node.key.name) && node_matches(spec, node) && tolerates(spec, node, effects)
}

/// Whether a DaemonSet leaves a pod on a node alone where it would make none: the node still has what it selects, and no
/// NoExecute taint that the pod does not tolerate (`NodeShouldRunDaemonPod`, `shouldContinueRunning`).
pub fn keeps_daemon_pod(state: &State, set: &Object, node: &Str) -> bool {
    let Some(node) = state.get(&Key::global("Node", node)) else { return false };
    let [_, keeps] = daemon_pod_on(state, set, node);
    keeps
}

/// The zone of a pod: that of its node.
pub fn zone(state: &State, pod: &Object) -> Option<Str> {
    let node = state.get(&Key::global("Node", &pod.node))?;
    node_zone(node)
}

/// All live nodes.
fn nodes<'s>(state: &'s State) -> Vec<&'s Arc<Object>> {
    state.list(&Kind::new("", "Node"), None).into_iter().filter(|n| n.live()).collect()
}
