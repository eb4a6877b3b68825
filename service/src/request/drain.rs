//! The requests of `kubectl drain` and `kubectl cordon` (`k8s.io/kubectl/pkg/drain`).
//!
//! A drain cordons the node, then evicts its pods all at once: they are judged as one batch, in which no eviction waits for
//! another one's pod to be made anew. An eviction that a budget refuses leaves its pod; kubectl tries again until the budget
//! lets it go, and by then others are ready in its place.

use suture_model::change::{Request, User};
use suture_model::fields::finished;
use suture_model::object::{Key, Object};
use suture_model::state::State;
use suture_model::value::Val;

use super::existing::existing;
use crate::failure::Failure;

/// The annotation of a pod that a kubelet runs from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What a drain does with a pod.
enum Verdict {
    Evicted,
    /// It stays: its DaemonSet would make it anew at once, its kubelet runs it from a file, or it goes already.
    Left,
    /// Nothing makes it anew, for this reason.
    Refused(&'static str),
}

/// That the node is cordoned.
pub(super) fn cordon(text: &str, state: &State<'_>, user: &User) -> Result<Request, Failure> {
    let patch = Val::object([("spec", Val::object([("unschedulable", Val::Bool(true))]))]);
    Request::patch(user.clone(), state, node(text, state)?, &patch, "").map_err(Failure::invalid)
}

/// That the node is cordoned, and the evictions of its pods in the order of their names.
pub(super) fn drain(text: &str, force: bool, state: &State<'_>, user: &User) -> Result<Vec<Request>, Failure> {
    let mut requests = vec![cordon(text, state, user)?];
    let mut pods = state.pods_on(&node(text, state)?.name);
    pods.sort_by(|a, b| a.key.cmp(&b.key));
    let mut refused = Vec::new();
    for pod in pods {
        match verdict(pod, state) {
            Verdict::Left => {}
            Verdict::Refused(why) if !force => refused.push(format!("`{}` {why}", pod.key)),
            Verdict::Evicted | Verdict::Refused(_) => requests.push(Request::evict(user.clone(), pod.key.clone())),
        }
    }
    if refused.is_empty() {
        return Ok(requests);
    }
    Err(Failure::invalid(format!("kubectl would not drain `{text}` without --force: {}", refused.join(", "))))
}

/// `mirrorPodFilter`, `daemonSetFilter` and `unreplicatedFilter` of `k8s.io/kubectl/pkg/drain/filters.go`.
fn verdict(pod: &Object, state: &State<'_>) -> Verdict {
    if pod.terminating() || pod.val().at_some(&["metadata", "annotations", MIRROR]).is_some() {
        return Verdict::Left;
    }
    if finished(pod) {
        return Verdict::Evicted;
    }
    match pod.controller() {
        None => Verdict::Refused("has no controller"),
        Some(owner) if owner.kind.is("DaemonSet") => {
            match state.get(&Key::new(owner.kind.clone(), &pod.key.ns, &owner.name)) {
                None => Verdict::Refused("belongs to a DaemonSet that does not exist"),
                Some(_) => Verdict::Left,
            }
        }
        Some(_) => Verdict::Evicted,
    }
}

/// `NODE` or `node/NODE`.
fn node(text: &str, state: &State<'_>) -> Result<Key, Failure> {
    let name = ["node/", "nodes/", "no/", "Node/"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    existing(Key::of("Node", "", name), state)
}
