//! The pods that a workload makes: their template, and how many it wants.

use super::placement::daemon_nodes;
use crate::kinds::KindTraits;
use crate::object::Object;
use crate::state::State;
use crate::value::Val;

/// Where a built-in workload keeps the template of its pods.
pub fn template_path(object: &Object) -> Option<&'static [&'static str]> {
    object.key.kind.traits()?.template_path()
}

/// `{metadata, spec}` of the pods that an object makes; a pod's own, as its node left it out of it.
pub fn template_of(state: &State, object: &Object) -> Option<Val> {
    if object.key.kind.is("Pod") {
        let part = |key: &str| object.val().get(key).cloned().unwrap_or_default();
        return Some(Val::object([("metadata", part("metadata")), ("spec", part("spec"))]));
    }
    match template_path(object) {
        Some(path) => object.val().at_some(path).cloned(),
        None => state.adapter(object)?.template.clone(),
    }
}

/// The PodSpec of the pods that an object makes.
pub fn pod_spec(state: &State, object: &Object) -> Option<Val> {
    match template_path(object) {
        _ if object.key.kind.is("Pod") => object.val().at_some(&["spec"]).cloned(),
        Some(path) => object.val().at_some(path)?.at_some(&["spec"]).cloned(),
        None => state.adapter(object)?.template.as_ref()?.at_some(&["spec"]).cloned(),
    }
}

/// The labels of the pods that an object makes (null when they have none); a custom resource's pods bear the labels of
/// its selector besides those of its template.
pub fn template_labels(state: &State, object: &Object) -> Option<Val> {
    let path = ["metadata", "labels"];
    if object.key.kind.is("Pod") {
        return Some(object.labels().clone());
    }
    if template_path(object).is_some() {
        return Some(template_of(state, object)?.at(&path).cloned().unwrap_or_default());
    }
    let facts = state.adapter(object)?;
    let own = facts.template.as_ref()?.at(&path).cloned().unwrap_or_default();
    let selected = facts.selector_labels.entries();
    Some(selected.fold(own, |labels, (key, value)| labels.with(key, value.clone())))
}

/// Whether a pod or a Job has run to its end and makes or uses nothing any more
/// (`pkg/api/v1/pod/util.go`, `IsPodTerminal`; `pkg/controller/job/utils.go`, `IsJobFinished`).
pub fn finished(object: &Object) -> bool {
    if object.key.kind.is("Pod") {
        return object.finished();
    }
    object.key.kind.is("Job")
        && object.val().items_at(&["status", "conditions"]).iter().any(|c| {
            c.str_at(&["type"]).is_some_and(|t| matches!(&**t, "Complete" | "Failed"))
                && c.str_at(&["status"]).is_some_and(|s| &**s == "True")
        })
}

/// Whether an object is a ReplicaSet at 0 that names a controller: a rollback gives the controller that template, and is
/// judged as its change.
pub(super) fn is_spent(object: &Object) -> bool {
    object.key.kind.is("ReplicaSet")
        && object.val().int_at(&["spec", "replicas"]) == Some(0)
        && object.controller().is_some()
}

/// Whether an object makes no pod any more, whatever its template says: a Job that has finished, a ReplicaSet at 0 that its
/// controller keeps.
pub fn makes_no_more(object: &Object) -> bool {
    is_spent(object) || (object.key.kind.is("Job") && finished(object))
}

/// How many pods an object wants at a time; `None` when it makes none, or only through Jobs (CronJob).
///
/// Defaults are those of `pkg/apis/apps/v1/defaults.go` and `pkg/apis/batch/v1/defaults.go`; a Job wants no more pods
/// than completions are left (`pkg/controller/job/job_controller.go`, `manageJob`).
pub fn wanted_replicas(state: &State, object: &Object) -> Option<i64> {
    let val = object.val();
    match (&*object.key.kind.group, &*object.key.kind.kind) {
        ("", "Pod") => Some(i64::from(!finished(object))),
        ("apps", "DaemonSet") => i64::try_from(daemon_nodes(state, object).len()).ok(),
        ("batch", "Job") if finished(object) || val.bool_at(&["spec", "suspend"]) == Some(true) => Some(0),
        ("batch", "Job") => {
            let parallel = val.int_at(&["spec", "parallelism"]).unwrap_or(1);
            let done = val.int_at(&["status", "succeeded"]).unwrap_or(0);
            let left = val.int_at(&["spec", "completions"]).map_or(parallel, |all| all.saturating_sub(done).max(0));
            Some(parallel.min(left))
        }
        _ if object.key.kind.has(KindTraits::has_scale) => Some(val.int_at(&["spec", "replicas"]).unwrap_or(1)),
        _ => state.adapter(object)?.replicas,
    }
}
