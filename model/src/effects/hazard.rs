//! What may happen to a pod whatever its controller does: NoExecute taints, a lost node, a node that is not Ready.
//!
//! Sources: `pkg/controller/tainteviction` (a pod without a matching toleration is deleted; tolerationSeconds only
//! delays it), `pkg/controller/podgc` (pods of a node that is gone), `pkg/controller/nodelifecycle` (pods of a node
//! that is not Ready are marked not ready).

use crate::fields::{Tolerance, daemon_pod_spec, tolerance};
use crate::object::{Key, Object};
use crate::state::State;

/// Whether the pod may be removed without anybody asking for it.
pub fn at_risk(state: &State<'_>, pod: &Object) -> bool {
    if !pod.key.kind.is("Pod") || pod.node.is_empty() {
        return false;
    }
    match node_of(state, pod) {
        // one that pods only ever named is unremarkable; pods of one that was seen to go follow it, after a while
        // (`pkg/controller/podgc/gc_controller.go`, `gcOrphaned`)
        None => state.base().missing_nodes().contains(&pod.node) || state.base().supposes_failing(&pod.node),
        Some(node) => !node.live() || not_ready(&node) == Some(true) || evicted_by_taint(pod, &node),
    }
}

/// Whether the pod's node reports that it is not Ready.
pub fn on_failing_node(state: &State<'_>, pod: &Object) -> bool {
    match node_of(state, pod) {
        None => state.base().supposes_failing(&pod.node),
        Some(node) => !node.live() || not_ready(&node) == Some(true),
    }
}

fn node_of(state: &State<'_>, pod: &Object) -> Option<std::sync::Arc<Object>> {
    state.get(&Key::global("Node", &pod.node)).cloned()
}

/// Whether the node's Ready condition says that it is not ready; `None` when it has no such condition.
pub fn not_ready(node: &Object) -> Option<bool> {
    let conditions = node.val().items_at(&["status", "conditions"]);
    let ready = conditions.iter().find(|c| c.str_at(&["type"]).is_some_and(|t| &**t == "Ready"))?;
    Some(ready.str_at(&["status"]).is_none_or(|s| &**s != "True"))
}

/// Whether a NoExecute taint of the node removes the pod, now or after a while.
fn evicted_by_taint(pod: &Object, node: &Object) -> bool {
    let Some(spec) = pod.val().get("spec") else { return false };
    let daemon = pod.controller().is_some_and(|c| c.kind.is("DaemonSet"));
    let effective = if daemon { daemon_pod_spec(spec) } else { spec.clone() };
    tolerance(&effective, node, &["NoExecute"]) != Tolerance::Forever
}
