//! What a pod refers to: init, ordinary and ephemeral containers, volumes, and the names in its spec.

use super::reference::Reference;
use crate::fields::{class_named, finished};
use crate::object::{Key, Object};
use crate::value::{Str, Val};

/// PriorityClasses that every API server makes (`pkg/apis/scheduling/types.go`, `SystemPriorityClasses`).
pub const SYSTEM_PRIORITIES: [&str; 2] = ["system-node-critical", "system-cluster-critical"];

/// The references of a pod; a finished one names what it no longer uses.
pub(super) fn of_pod(pod: &Object, found: &mut Vec<Reference>) {
    let Some(spec) = pod.val().at_some(&["spec"]) else { return };
    let mut own = Vec::new();
    of_spec(spec, &pod.key.ns, &mut own);
    for volume in spec.items_at(&["volumes"]) {
        // the ephemeral volume controller makes this claim, hence optional (`component-helpers/storage/ephemeral`)
        if let Some(name) = volume.name_at(&["name"]).filter(|_| volume.at_some(&["ephemeral"]).is_some()) {
            let claim = format!("{}-{name}", pod.key.name);
            own.push(Reference::new(claim_key(&pod.key.ns, &claim), "spec.volumes").optional_if(true));
        }
    }
    let needed = !finished(pod);
    found.extend(own.into_iter().map(|r| Reference { needed, ..r }));
}

/// Whether a pod refers to something by a name that is made of its own: of pods that are alike each names another.
pub fn names_its_own(pod: &Object) -> bool {
    pod.val().items_at(&["spec", "volumes"]).iter().any(|volume| volume.at_some(&["ephemeral"]).is_some())
}

/// The references of a PodSpec in a namespace.
pub(super) fn of_spec(spec: &Val, ns: &Str, found: &mut Vec<Reference>) {
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.items_at(&[field]) {
            of_container(container, ns, found);
        }
    }
    for volume in spec.items_at(&["volumes"]) {
        of_pod_volume(volume, ns, found);
    }
    for secret in spec.items_at(&["imagePullSecrets"]) {
        if let Some(name) = secret.name_at(&["name"]) {
            found.push(Reference::new(Key::of("Secret", ns, name), "imagePullSecrets"));
        }
    }
    // the deprecated field counts where the other one is empty (`pkg/apis/core/v1/conversion.go`)
    let account = spec.name_at(&["serviceAccountName"]).or_else(|| spec.name_at(&["serviceAccount"]));
    if let Some(name) = account {
        found.push(Reference::new(Key::of("ServiceAccount", ns, name), "serviceAccountName"));
    }
    if let Some(name) = spec.name_at(&["priorityClassName"]).filter(|n| !SYSTEM_PRIORITIES.contains(n)) {
        found.push(Reference::new(Key::of("PriorityClass", "", name), "priorityClassName"));
    }
    if let Some(name) = spec.name_at(&["runtimeClassName"]) {
        found.push(Reference::new(Key::of("RuntimeClass", "", name), "runtimeClassName"));
    }
}

fn of_container(container: &Val, ns: &str, found: &mut Vec<Reference>) {
    for source in container.items_at(&["envFrom"]) {
        found.extend(keyed(source.at_some(&["configMapRef"]), "ConfigMap", ns, "envFrom"));
        found.extend(keyed(source.at_some(&["secretRef"]), "Secret", ns, "envFrom"));
    }
    for variable in container.items_at(&["env"]) {
        let Some(from) = variable.at_some(&["valueFrom"]) else { continue };
        found.extend(keyed(from.at_some(&["configMapKeyRef"]), "ConfigMap", ns, "env"));
        found.extend(keyed(from.at_some(&["secretKeyRef"]), "Secret", ns, "env"));
    }
}

fn of_pod_volume(volume: &Val, ns: &str, found: &mut Vec<Reference>) {
    const SECRET_REFS: [&str; 7] = ["flexVolume", "cephfs", "cinder", "rbd", "iscsi", "scaleIO", "storageos"];
    let via = "spec.volumes";
    if let Some(claim) = volume.name_at(&["persistentVolumeClaim", "claimName"]) {
        found.push(Reference::new(claim_key(ns, claim), via));
    }
    if let Some(class) = volume.at_some(&["ephemeral", "volumeClaimTemplate"]).and_then(class_named) {
        found.push(Reference::new(Key::of("StorageClass", "", class), via));
    }
    found.extend(keyed(volume.at_some(&["configMap"]), "ConfigMap", ns, via));
    found.extend(keyed(volume.at_some(&["secret"]), "Secret", ns, via));
    for source in volume.items_at(&["projected", "sources"]) {
        found.extend(keyed(source.at_some(&["configMap"]), "ConfigMap", ns, via));
        found.extend(keyed(source.at_some(&["secret"]), "Secret", ns, via));
    }
    let by_name = SECRET_REFS.iter().filter_map(|field| volume.name_at(&[field, "secretRef", "name"]));
    let csi = volume.name_at(&["csi", "nodePublishSecretRef", "name"]);
    let azure = volume.name_at(&["azureFile", "secretName"]);
    for name in by_name.chain(csi).chain(azure) {
        found.push(Reference::new(Key::of("Secret", ns, name), via));
    }
}

/// A reference with `name` (or `secretName`), `optional`, and the keys in `key` or `items`.
fn keyed(source: Option<&Val>, kind: &str, ns: &str, via: &'static str) -> Option<Reference> {
    let source = source?;
    let name = source.name_at(&["name"]).or_else(|| source.name_at(&["secretName"]))?;
    let items = source.items_at(&["items"]).iter().filter_map(|item| item.str_at(&["key"]));
    let keys = source.str_at(&["key"]).into_iter().chain(items).cloned().collect();
    let optional = source.bool_at(&["optional"]).unwrap_or(false);
    Some(Reference { keys, optional, ..Reference::new(Key::of(kind, ns, name), via) })
}

fn claim_key(ns: &str, name: &str) -> Key {
    Key::of("PersistentVolumeClaim", ns, name)
}
