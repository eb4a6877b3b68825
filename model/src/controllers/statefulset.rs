//! What the StatefulSet controller intends with the pods of a set.
//!
//! Source: `pkg/controller/statefulset/{stateful_set_control,stateful_set_utils}.go`.

use std::cmp::Reverse;
use std::sync::Arc;

use super::intstr::scaled;
use super::replicas::replicas;
use crate::object::Object;
use crate::value::Val;

/// What the controller intends with one pod of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// It stays as it is.
    Keeps,
    /// It is replaced by one of the revision that is rolled out.
    Updates,
    /// Its ordinal is not wanted.
    Removes,
}

/// What the controller intends with a pod of a set that is to have so many pods; `None` where the name is none that the set
/// gives. `outdates_all` says that every pod may be of another revision than the one that is rolled out.
pub fn intent(set: &Object, pod: &Object, replicas: i64, outdates_all: bool) -> Option<Intent> {
    let ordinal = pod_ordinal(set, &pod.key.name)?;
    if is_condemned(set, ordinal, replicas) {
        return Some(Intent::Removes);
    }
    let updates = (outdates_all || is_of_another_revision(set, pod)) && rolls_out(set, ordinal);
    Some(if updates { Intent::Updates } else { Intent::Keeps })
}

/// Whether a set that is to have so many pods wants none of this ordinal (`updateStatefulSet`).
pub fn is_condemned(set: &Object, ordinal: i64, replicas: i64) -> bool {
    let first = first_ordinal(set);
    ordinal < first || ordinal >= first.saturating_add(replicas)
}

/// The first ordinal of a set (`getStartOrdinal`).
pub fn first_ordinal(set: &Object) -> i64 {
    set.val().int_at(&["spec", "ordinals", "start"]).unwrap_or(0)
}

/// The first ordinal of a set, and the one after its last.
pub fn ordinals(set: &Object) -> (i64, i64) {
    let first = first_ordinal(set);
    (first, first.saturating_add(replicas(set)))
}

/// The ordinal of a pod by its name, if it is one of this set's (`getParentNameAndOrdinal`).
pub fn pod_ordinal(set: &Object, pod: &str) -> Option<i64> {
    ordinal(pod.strip_prefix(&*set.key.name)?.strip_prefix('-')?)
}

/// An ordinal as the controller writes it, without leading zeros.
pub fn ordinal(text: &str) -> Option<i64> {
    let canonical = text == "0" || !text.starts_with(['0', '+', '-']);
    text.parse().ok().filter(|_| canonical)
}

/// Whether a rolling update of a set comes to this ordinal: the partition is a place among the pods, counted from the first
/// ordinal (`updateStatefulSetAfterInvariantEstablished`: an index into `replicas`).
pub fn rolls_out(set: &Object, ordinal: i64) -> bool {
    let strategy = |path: &[&str]| set.val().at(&[&["spec", "updateStrategy"], path].concat());
    let rolling = strategy(&["type"]).and_then(Val::as_str).is_none_or(|of| &**of == "RollingUpdate");
    let partition = strategy(&["rollingUpdate", "partition"]).and_then(Val::as_int).unwrap_or(0);
    rolling && ordinal.saturating_sub(first_ordinal(set)) >= partition
}

/// Whether a pod is of another revision than the one that a set rolls out (`getPodRevision`): one that it adopts, and did not
/// make, is of none. Of a pod of its own that does not say its revision it is not known.
fn is_of_another_revision(set: &Object, pod: &Object) -> bool {
    let Some(update) = set.val().str_at(&["status", "updateRevision"]) else { return false };
    match pod.label("controller-revision-hash") {
        Some(own) => own != update,
        None => pod.controller().is_none(),
    }
}

/// Whether a rollout of the set is under way, as its status shows it, that may take another pod: the highest outdated one, if
/// the updated ones above it are ready.
pub fn is_rolling(set: &Object, pods: &[Arc<Object>]) -> bool {
    let revision = |field| set.val().str_at(&["status", field]).filter(|name| !name.is_empty());
    if revision("updateRevision").is_none() {
        return set.unobserved();
    }
    let mut from_above: Vec<&Arc<Object>> = pods.iter().collect();
    from_above.sort_by_key(|pod| Reverse(pod_ordinal(set, &pod.key.name)));
    let next = from_above.into_iter().find(|pod| is_of_another_revision(set, pod) || !pod.ready());
    set.unobserved() || next.is_some_and(|pod| is_of_another_revision(set, pod))
}

/// How many of so many pods a rolling update takes down at a time: rounded down (`getStatefulSetMaxUnavailable`), whatever
/// the comment on the field says.
pub fn max_unavailable(set: &Object, replicas: i64) -> i64 {
    let field = set.val().at(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
    scaled(field, replicas, false, "1").max(1)
}

/// Whether a set makes and removes its pods one after the other (OrderedReady).
pub fn is_ordered(set: &Object) -> bool {
    set.val().str_at(&["spec", "podManagementPolicy"]).is_none_or(|policy| &**policy != "Parallel")
}

/// Whether a set waits for a pod that is not ready, and goes no further.
pub fn is_stuck(set: &Object) -> bool {
    is_ordered(set) && set.val().int_at(&["status", "readyReplicas"]) != set.val().int_at(&["status", "replicas"])
}

/// The labels that a controller gives each of its pods another value of: a StatefulSet (`initIdentity`), an indexed Job
/// (`pkg/controller/job/indexed_job_utils.go`, `addCompletionIndexLabel`).
pub const INDIVIDUAL_LABELS: [&str; 3] =
    ["statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"];

/// Those of a pod's labels by which its controller tells it from the others, and which the next pod of its name gets as well.
pub fn ordinal_labels(labels: &Val) -> impl Iterator<Item = (&'static str, &Val)> {
    INDIVIDUAL_LABELS.into_iter().filter_map(|name| Some((name, labels.get(name)?)))
}
