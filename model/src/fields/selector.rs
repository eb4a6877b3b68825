//! The pods that an object selects, as it says itself.

use crate::adapter::Adapters;
use crate::kinds::KindTraits;
use crate::object::Object;
use crate::selector::Selector;
use crate::value::Val;

/// The selector of the pods that an object is about, custom resources read by these adapters; `None` when it selects none.
///
/// An absent or empty Service selector selects nothing (`endpointslice_controller.go`); an empty selector of a budget
/// of `policy/v1` selects everything and one of `policy/v1beta1` nothing (`pkg/registry/policy/poddisruptionbudget`);
/// an empty podSelector of a NetworkPolicy selects everything.
pub(crate) fn selector_by(adapters: &dyn Adapters, object: &Object) -> Option<Selector> {
    let selector = object.val().at_some(&["spec", "selector"]);
    let labels = || selector.map(Selector::from_label_selector);
    match (&*object.key.kind.group, &*object.key.kind.kind) {
        ("", "Service") => {
            let external = object.val().str_at(&["spec", "type"]).is_some_and(|t| &**t == "ExternalName");
            pairs(selector.filter(|_| !external))
        }
        ("", "ReplicationController") => {
            pairs(selector).or_else(|| pairs(object.val().at_some(&["spec", "template", "metadata", "labels"])))
        }
        ("policy", "PodDisruptionBudget") => labels().filter(|s| !s.is_empty() || &*object.version != "v1beta1"),
        ("networking.k8s.io", "NetworkPolicy") => {
            let selector = object.val().at(&["spec", "podSelector"]).unwrap_or(&Val::Null);
            Some(Selector::from_label_selector(selector))
        }
        _ if object.key.kind.has(KindTraits::makes_pods) => labels(),
        _ => adapters.facts(object)?.selector.clone(),
    }
}

fn pairs(selector: Option<&Val>) -> Option<Selector> {
    selector.map(Selector::from_pairs).filter(|s| !s.is_empty())
}

/// Where the labels stand that an object's selector is written with.
pub fn selected_labels(object: &Object) -> &'static [&'static str] {
    match (&*object.key.kind.group, &*object.key.kind.kind) {
        ("", "Service" | "ReplicationController") => &["spec", "selector"],
        ("networking.k8s.io", "NetworkPolicy") => &["spec", "podSelector", "matchLabels"],
        _ => &["spec", "selector", "matchLabels"],
    }
}

/// The labels, and the expressions about labels, that an object's selector is written with.
pub(crate) fn selector_parts(object: &Object) -> Option<(Val, Val)> {
    let selector =
        object.val().at_some(&["spec", "selector"]).or_else(|| object.val().at_some(&["spec", "podSelector"]))?;
    Some(match selected_labels(object) {
        ["spec", "selector"] => (selector.clone(), Val::list(Vec::new())),
        _ => (
            selector.get("matchLabels").cloned().unwrap_or_default(),
            selector.get("matchExpressions").cloned().unwrap_or_else(|| Val::list(Vec::new())),
        ),
    })
}
