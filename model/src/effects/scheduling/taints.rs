//! TaintToleration, NodeUnschedulable: nodes that keep pods off.

use std::sync::Arc;

use super::constraint::{Around, Constraint, Differences, Fit, NodeView, Placing, Waiting};
use super::room::Room;
use super::template::Template;
use crate::effects::hazard;
use crate::fields::{SCHEDULING, tolerates};
use crate::object::Object;
use crate::value::Val;

/// The plugins.
pub struct TaintToleration;

impl Constraint for TaintToleration {
    /// A node is taken to be well: it may recover or not, and `pending` says which ones keep a pod waiting.
    fn filter(&self, own: &Template, node: &NodeView<'_>) -> Fit {
        // the kubelet heeds NoExecute only
        let effects = if own.pinned().is_some() { &["NoExecute"] } else { SCHEDULING };
        if tolerates(own.spec(), node.well, effects) { Fit::Takes(Room::default()) } else { Fit::Rejected }
    }

    /// Nodes of a pool have the same taints.
    fn distinguishes<'t>(&self, _: &Around<'t, '_>, _: &mut Differences<'t>) {}

    /// A place that rejects a template admits none of its pods.
    fn limits(&self, _: &mut Placing<'_, '_, '_>) {}

    fn may_block(&self, _: &Waiting<'_, '_, '_>) -> bool {
        false
    }

    /// Its controller chose the node by this rule.
    fn is_sure(&self, _: &Template, _: &Object, _: &[&Arc<Object>]) -> bool {
        true
    }
}

/// The taints that stand for a node's conditions: nobody asks for them to be set or removed
/// (`pkg/controller/nodelifecycle/node_lifecycle_controller.go`, `taintKeyToNodeConditionMap`).
const OF_CONDITIONS: [&str; 6] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
];

fn is_of_condition(taint: &Val) -> bool {
    taint.str_at(&["key"]).is_some_and(|key| OF_CONDITIONS.contains(&&**key))
}

/// Whether a node takes no new pods for reasons that may pass by themselves.
pub fn is_unwell(node: &Object) -> bool {
    hazard::not_ready(node) == Some(true) || node.val().items_at(&["spec", "taints"]).iter().any(is_of_condition)
}

/// The node once it is well again.
pub fn recovered(node: &Object) -> Object {
    let taints = node.val().items_at(&["spec", "taints"]).iter().filter(|taint| !is_of_condition(taint));
    let taints = Val::list(taints.cloned().collect());
    node.map_body(|val| val.with_at(&["spec", "taints"], taints.clone()))
}
