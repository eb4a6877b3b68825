//! Which nodes and which neighbours the pods of an object ask for: node selector, affinity, anti-affinity; zones of nodes.

use super::workload::{makes_no_more, template_path};
use crate::object::Object;
use crate::selector::{term_matches, text};
use crate::value::{Str, Val};

/// The label that tells every node from every other.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// Whether a node satisfies a pod's `nodeSelector` and required node affinity (pod spec given).
pub fn node_matches(pod_spec: &Val, node: &Object) -> bool {
    let bears = |(key, value): (&Str, &Val)| match (node.labels().get(key), value) {
        (Some(Val::Str(here)), Val::Str(wanted)) => here == wanted,
        (here, wanted) => here.is_some_and(|here| text(here) == text(wanted)),
    };
    let by_selector = pod_spec.at_some(&["nodeSelector"]).is_none_or(|pairs| pairs.entries().all(bears));
    let required = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    by_selector && pod_spec.at_some(&required).is_none_or(|required| node_terms_match(required, node))
}

/// Whether a node satisfies one of the terms of a node selector (`nodeSelectorTerms`).
pub fn node_terms_match(node_selector: &Val, node: &Object) -> bool {
    node_selector.items_at(&["nodeSelectorTerms"]).iter().any(|term| term_matches(term, node.labels(), &node.key.name))
}

/// Whether the pod spec restricts its nodes by labels at all.
pub fn restricts_nodes(pod_spec: &Val) -> bool {
    pod_spec.at_some(&["nodeSelector"]).is_some_and(|s| s.entries().len() > 0)
        || pod_spec.at_some(&["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"]).is_some()
}

/// What restricts the nodes of a pod spec: its node selector and required node affinity.
pub fn node_constraint(spec: &Val) -> Val {
    let affinity = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    let part = |path: &[&str]| spec.at_some(path).cloned().unwrap_or_default();
    Val::list(vec![part(&["nodeSelector"]), part(&affinity)])
}

/// Whether a pod spec may tell nodes apart by their names.
pub fn names_nodes(spec: &Val) -> bool {
    let required = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];
    let by_name = |e: &Val| e.str_at(&["key"]).is_some_and(|key| &**key == HOSTNAME);
    spec.at(&["nodeSelector", HOSTNAME]).is_some()
        || spec.items_at(&required).iter().any(|term| {
            !term.items_at(&["matchFields"]).is_empty() || term.items_at(&["matchExpressions"]).iter().any(by_name)
        })
}

/// What restricts the nodes of an object's pods, or of the pod that it is; `None` where nothing does, or it makes none any
/// more.
pub fn constraint_of(object: &Object) -> Option<Val> {
    if makes_no_more(object) {
        return None;
    }
    let spec = match template_path(object) {
        Some(path) => object.val().at(path).and_then(|template| template.get("spec")),
        None => object.val().get("spec").filter(|_| object.key.kind.is("Pod")),
    };
    spec.filter(|spec| restricts_nodes(spec)).map(node_constraint)
}

/// What a PersistentVolume requires of a node that uses it.
pub fn volume_affinity(volume: &Object) -> Option<&Val> {
    volume.val().at_some(&["spec", "nodeAffinity", "required"])
}

/// Whether a PersistentVolume's node affinity lets it be used from a node.
pub fn volume_admits(volume: &Object, node: &Object) -> bool {
    volume_affinity(volume).is_none_or(|required| node_terms_match(required, node))
}

/// The terms of a pod's required anti-affinity; none for an object of another kind.
pub fn anti_affinity(object: &Object) -> &[Val] {
    if !object.key.kind.is("Pod") {
        return &[];
    }
    object.val().items_at(&["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"])
}

/// The zone of a node, by the label or the one that preceded it.
pub fn node_zone(node: &Object) -> Option<Str> {
    let old = || node.label("failure-domain.beta.kubernetes.io/zone");
    node.label("topology.kubernetes.io/zone").or_else(old).filter(|z| !z.is_empty()).cloned()
}
