//! Workloads: where they keep the template of their pods, and whether they are done.

use crate::adapter::{AdapterFacts, Adapters};
use crate::object::Object;
use crate::value::Val;

/// Where a built-in workload keeps the template of its pods.
pub fn template_path(object: &Object) -> Option<&'static [&'static str]> {
    object.key.kind.traits()?.template_path()
}

/// The PodSpec of a pod, or of the pods that an object of a built-in kind makes; without the affinity by which a pod
/// [names its own node](Object::names_own_node).
pub fn pod_spec(object: &Object) -> Option<&Val> {
    let holder = match template_path(object) {
        _ if object.key.kind.is("Pod") => object.val(),
        Some(path) => object.val().at_some(path)?,
        None => return None,
    };
    holder.at_some(&["spec"])
}

/// The labels of the pods that an object makes (null when they have none), custom resources read by these adapters.
pub(crate) fn template_labels_by(adapters: &dyn Adapters, object: &Object) -> Option<Val> {
    let by_adapter = template_path(object).is_none() && !object.key.kind.is("Pod");
    let facts = if by_adapter { adapters.facts(object) } else { None };
    template_labels(object, facts.as_deref())
}

/// The labels of the pods that an object makes (null when they have none), of which its adapter says this: the pods of a custom
/// resource bear the labels of its selector besides those of its template.
pub(crate) fn template_labels(object: &Object, facts: Option<&AdapterFacts>) -> Option<Val> {
    let path = ["metadata", "labels"];
    if object.key.kind.is("Pod") {
        return Some(object.labels().clone());
    }
    if let Some(template) = template_path(object) {
        return Some(object.val().at_some(template)?.at(&path).cloned().unwrap_or_default());
    }
    let facts = facts?;
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
pub(crate) fn is_spent(object: &Object) -> bool {
    object.key.kind.is("ReplicaSet")
        && object.val().int_at(&["spec", "replicas"]) == Some(0)
        && object.controller().is_some()
}

/// Whether an object makes no pod any more, whatever its template says: a Job that has finished, a ReplicaSet at 0 that its
/// controller keeps.
pub fn makes_no_more(object: &Object) -> bool {
    is_spent(object) || (object.key.kind.is("Job") && finished(object))
}

/// Whether a ReplicaSet has the template of its Deployment, its hash left aside
/// (`pkg/controller/deployment/util/deployment_util.go`, `EqualIgnoreHash`).
pub fn same_template(set: &Object, deployment: &Object) -> bool {
    let template = |o: &Object| {
        let template = o.val().at(&["spec", "template"]).cloned().unwrap_or(Val::Null);
        template.without_at(&["metadata", "labels", "pod-template-hash"])
    };
    template(set) == template(deployment)
}
