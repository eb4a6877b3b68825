//! The template of the pods that an object makes, custom resources among them.

use crate::controllers::pod_template::same;
use crate::fields::{self, template_labels_by, template_path};
use crate::object::Object;
use crate::state::State;
use crate::value::Val;

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

/// Whether two objects make their pods from one template.
pub fn same_template(state: &State, one: &Object, other: &Object) -> bool {
    let template = |object: &Object| template_of(state, object).unwrap_or_default();
    same(&template(one), &template(other))
}

/// The PodSpec of the pods that an object makes.
pub fn pod_spec(state: &State, object: &Object) -> Option<Val> {
    match object.key.kind.is("Pod") || template_path(object).is_some() {
        true if object.names_own_node => object.at(&["spec"]),
        true => fields::pod_spec(object).cloned(),
        false => state.adapter(object)?.template.as_ref()?.at_some(&["spec"]).cloned(),
    }
}

/// The labels of the pods that an object makes (null when they have none).
pub fn template_labels(state: &State, object: &Object) -> Option<Val> {
    template_labels_by(state.base().adapters().as_ref(), object)
}
