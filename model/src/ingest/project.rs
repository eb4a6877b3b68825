//! What is kept of an object: never a secret's value, and of pods nothing that only tells one from its equals.

use crate::kinds::Kind;
use crate::object::HIDDEN;
use crate::value::{Str, Val};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The volume with a pod's token, whose name is random (`plugin/pkg/admission/serviceaccount`).
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Annotations of single pods, written by network plugins.
const POD_ANNOTATIONS: [&str; 6] = [
    "cni.projectcalico.org/containerID",
    "cni.projectcalico.org/podIP",
    "cni.projectcalico.org/podIPs",
    "k8s.ovn.org/pod-networks",
    "k8s.v1.cni.cncf.io/network-status",
    "k8s.v1.cni.cncf.io/networks-status",
];
/// What of a pod's status is kept; of its conditions only what [`CONDITION`] names.
const POD_STATUS: [&str; 6] = ["phase", "conditions", "reason", "qosClass", "nominatedNodeName", "resize"];
const CONDITION: [&str; 3] = ["type", "status", "reason"];
/// What of a node's status is long and read by nothing.
const NODE_STATUS: [&str; 3] = ["images", "volumesInUse", "volumesAttached"];

/// The parts of Secrets and ConfigMaps that have values.
const VALUES: [&str; 3] = ["binaryData", "data", "stringData"];

/// The parts of an object of a kind of which keys are kept and values are not.
pub fn hidden(kind: &Kind) -> &'static [&'static str] {
    if kind.is("Secret") || kind.is("ConfigMap") { &VALUES } else { &[] }
}

/// Whether a field of an object of a kind is not kept, though its schema has it.
pub fn is_dropped(kind: &Kind, path: &[&str]) -> bool {
    match path {
        ["status", field, ..] if kind.is("Pod") => !POD_STATUS.contains(field),
        ["status", field, ..] if kind.is("Node") => NODE_STATUS.contains(field),
        _ => false,
    }
}

/// The object as a snapshot keeps it.
///
/// [`HIDDEN`] takes the place of the values of Secrets and ConfigMaps, their keys stay. Pods of one workload become equal but for
/// their header, so that they share one body: addresses, container statuses, times of conditions and the token volume
/// go. What a workload's pods have in common (images, commands, probes) stays, since any invariant may read it.
pub fn project(object: &Val) -> Val {
    let object = without_keys(object, &["metadata", "annotations"], |key| key == LAST_APPLIED);
    let core = object.str_at(&["apiVersion"]).is_some_and(|v| &**v == "v1");
    match object.str_at(&["kind"]).map_or("", |k| k) {
        "Secret" | "ConfigMap" if core => VALUES.iter().fold(object, |object, part| blank(&object, part)),
        "Pod" if core => pod(&object),
        "Node" if core => without_keys(&object, &["status"], |key| NODE_STATUS.contains(&key)),
        _ => object,
    }
}

/// The object with the values of a map replaced by [`HIDDEN`]. Anything else in its place goes entirely.
fn blank(object: &Val, part: &str) -> Val {
    match object.at_some(&[part]) {
        None => object.clone(),
        Some(Val::Map(map)) => {
            let keys = map.iter().map(|(key, _)| (key.clone(), Val::str(HIDDEN)));
            object.with(part, Val::map(keys.collect()))
        }
        Some(_) => object.without_at(&[part]),
    }
}

fn pod(object: &Val) -> Val {
    let mut pod = without_keys(object, &["metadata", "annotations"], |key| POD_ANNOTATIONS.contains(&key));
    pod = without_keys(&pod, &["status"], |key| !POD_STATUS.contains(&key));
    if let Some(conditions) = pod.at_some(&["status", "conditions"]) {
        let kept = |c: &Val| only(c.entries().filter(|(key, _)| CONDITION.contains(&&***key)));
        let conditions = Val::list(conditions.items().iter().map(kept).collect());
        pod = pod.with_at(&["status", "conditions"], conditions);
    }
    pod = without_token(&pod, &["spec", "volumes"]);
    for part in ["containers", "initContainers", "ephemeralContainers"] {
        if let Some(containers) = pod.at_some(&["spec", part]) {
            let containers = containers.items().iter().map(|c| without_token(c, &["volumeMounts"]));
            pod = pod.with_at(&["spec", part], Val::list(containers.collect()));
        }
    }
    pod
}

/// Without the items of the list at a path that are named after the token volume; an empty list goes too.
fn without_token(object: &Val, path: &[&str]) -> Val {
    let is_token = |item: &Val| item.str_at(&["name"]).is_some_and(|n| n.starts_with(TOKEN_VOLUME));
    let items = object.items_at(path);
    if !items.iter().any(is_token) {
        return object.clone();
    }
    let kept: Vec<Val> = items.iter().filter(|item| !is_token(item)).cloned().collect();
    if kept.is_empty() { object.without_at(path) } else { object.with_at(path, Val::list(kept)) }
}

/// Without the keys of the map at a path that `drop` names; an empty map goes too.
fn without_keys(object: &Val, path: &[&str], drop: impl Fn(&str) -> bool) -> Val {
    let Some(map @ Val::Map(_)) = object.at(path) else { return object.clone() };
    if !map.entries().any(|(key, _)| drop(key)) {
        return object.clone();
    }
    let kept = only(map.entries().filter(|(key, _)| !drop(key)));
    if kept.entries().len() == 0 { object.without_at(path) } else { object.with_at(path, kept) }
}

fn only<'v>(entries: impl Iterator<Item = (&'v Str, &'v Val)>) -> Val {
    Val::map(entries.map(|(key, value)| (key.clone(), value.clone())).collect())
}
