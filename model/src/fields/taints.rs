//! Taints of nodes, and the tolerations of pods.

use crate::object::Object;
use crate::value::Val;

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

fn text<'v>(val: &'v Val, key: &str) -> &'v str {
    val.str_at(&[key]).map_or("", |s| s)
}
