//! What an object selects whatever software does with the labels of pods: a role that is moved from pod to pod is a label that
//! no template bears.

use std::sync::Arc;

use super::owners::controller_of;
use super::selection::selected;
use super::template::template_labels;
use crate::controllers::statefulset::ordinal_labels;
use crate::object::Object;
use crate::state::State;
use crate::value::{Str, Val};

/// The label selector of a Service, a budget or a policy without the labels that the pods which it selects did not get from
/// their controllers' templates; as it is where nothing would be left of it.
pub fn standing_selector(state: &State, object: &Object) -> Option<Val> {
    let (labels, expressions) = asked(object)?;
    // pods of one controller and one body are alike
    let mut pods = selected(state, object);
    pods.dedup_by(|a, b| Arc::ptr_eq(&a.body, &b.body));
    let stand = |key: &Str| pods.iter().all(|pod| is_borne(state, pod, key));
    let standing: Vec<(Str, Val)> =
        labels.entries().filter(|(key, _)| stand(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    let labels = if standing.is_empty() { labels } else { Val::map(standing) };
    Some(Val::object([("matchLabels", labels), ("matchExpressions", expressions)]))
}

/// Whether the [standing selector](standing_selector) of an object may match a pod with these labels, whatever the pods bear that
/// it selects: it asks for one of these labels, or for none.
pub fn may_stand_for(object: &Object, labels: &Val) -> bool {
    asked(object).is_some_and(|(asked, _)| {
        asked.entries().len() == 0 || asked.entries().any(|(key, value)| labels.get(key) == Some(value))
    })
}

/// The labels, and the expressions about labels, by which an object selects pods.
fn asked(object: &Object) -> Option<(Val, Val)> {
    let selector =
        object.val().at_some(&["spec", "selector"]).or_else(|| object.val().at_some(&["spec", "podSelector"]))?;
    Some(match object.key.kind.is("Service") {
        true => (selector.clone(), Val::list(Vec::new())),
        false => (
            selector.get("matchLabels").cloned().unwrap_or_default(),
            selector.get("matchExpressions").cloned().unwrap_or_else(|| Val::list(Vec::new())),
        ),
    })
}

/// Whether a pod has a label from the template that it was made from, or for its place in a set. Where the template is not
/// known, a label is taken to be one that all pods of its controller have alike.
fn is_borne(state: &State, pod: &Object, key: &Str) -> bool {
    let Some(owner) = pod.controller() else { return true };
    let template = controller_of(state, pod).and_then(|controller| template_labels(state, controller));
    match template {
        Some(labels) => {
            labels.get(key).is_some()
                || ordinal_labels(pod.labels()).any(|(name, _)| *name == **key)
                || OF_CONTROLLERS.contains(&&**key)
        }
        None => {
            let siblings = state.owned_by(&owner.uid).into_iter();
            siblings.filter(|sibling| sibling.key.kind.is("Pod")).all(|sibling| sibling.label(key) == pod.label(key))
        }
    }
}

/// Labels by which controllers mark the revision of a pod (`pkg/controller/history`, `apps/v1/types.go`).
const OF_CONTROLLERS: [&str; 3] = ["controller-revision-hash", "pod-template-generation", "pod-template-hash"];
