//! What a manifest makes of the object that is there: applied server-side, as `kubectl apply --server-side
//! --force-conflicts` does, or put in its place as a whole.
//!
//! | field | in the manifest | left out of it |
//! |---|---|---|
//! | applied | its value | removed if nobody but this manager owns it, else kept |
//! | replaced | its value | kept if the API server set it (a default, an address it gave out), else removed |
//!
//! Who owns a field is in `metadata.managedFields`, which `kubectl get` prints with `--show-managed-fields`. Where that is
//! not there, what client-side `kubectl apply` remembers in an annotation is owned, as kubectl itself takes it over
//! (`k8s.io/client-go/util/csaupgrade`). A field that another manager owns is taken from it: the API server would report a
//! conflict, and the forced request is the one that can do harm.
//!
//! A default that stays in place keeps an unchanged manifest from looking like a new pod template. `spec.replicas` is no
//! such field: dropped, it becomes 1.

use std::collections::BTreeMap;

use suture_model::object::Key;
use suture_model::value::Val;

mod fields;
mod merge;
mod structure;

use fields::Fields;
pub use merge::strategic_patch;
pub use structure::Structure;

/// Who owns which fields, of the objects that are applied now. A snapshot does not keep it.
pub type Ownership = BTreeMap<Key, Owned>;

/// Who owns which fields of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owned {
    /// The entries of `metadata.managedFields`.
    managed: Vec<Val>,
    /// The manifest that client-side `kubectl apply` remembers.
    last_applied: Option<Val>,
}

/// The manager that `kubectl apply --server-side` names, and that of client-side `kubectl apply`, whose fields it takes
/// over.
pub const KUBECTL: &str = "kubectl";
const KUBECTL_CLIENT_SIDE: &str = "kubectl-client-side-apply";

/// Where `kubectl apply` remembers the manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Metadata that no manifest takes away.
const SYSTEM_META: [&str; 9] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "ownerReferences",
    "managedFields",
];

/// Fields that the API server or a controller fills in, whatever their value.
const ALLOCATED: [&str; 16] = [
    "allocateLoadBalancerNodePorts",
    "claimRef",
    "clusterIP",
    "clusterIPs",
    "healthCheckNodePort",
    "internalTrafficPolicy",
    "ipFamilies",
    "ipFamilyPolicy",
    "loadBalancerClass",
    "nodeName",
    "nodePort",
    "podCIDR",
    "podCIDRs",
    "providerID",
    "status",
    "volumeName",
];

/// What names an item of a list, in the order in which it is tried (the merge keys of Kubernetes' strategic patches).
const ITEM_NAMES: [&str; 7] = ["name", "mountPath", "containerPort", "port", "topologyKey", "type", "ip"];

impl Owned {
    /// What an object as it was read says about its fields; none where it says nothing.
    pub fn of(live: &Val) -> Option<Self> {
        let text = live.str_at(&["metadata", "annotations", LAST_APPLIED]);
        let last_applied = text.and_then(|text| serde_json::from_str(text).ok());
        let managed = live.items_at(&["metadata", "managedFields"]).to_vec();
        (last_applied.is_some() || !managed.is_empty()).then_some(Self { managed, last_applied })
    }

    /// The fields of a manager, and those of all others.
    fn shared_out(&self, manager: &str, structure: &Structure<'_>) -> (Fields, Fields) {
        let (mut own, mut others) = (Fields::default(), Fields::default());
        for entry in &self.managed {
            let Some(fields) = entry.at(&["fieldsV1"]) else { continue };
            let by = entry.str_at(&["manager"]).map_or("", |name| name);
            let is_own = by == manager || (manager == KUBECTL && by == KUBECTL_CLIENT_SIDE);
            let whole = entry.str_at(&["subresource"]).is_none_or(|name| name.is_empty());
            if is_own && whole { &mut own } else { &mut others }.add(&Fields::of_entry(fields));
        }
        if let (true, Some(last)) = (self.managed.is_empty() && manager == KUBECTL, &self.last_applied) {
            own = Fields::of_manifest(last, structure);
        }
        (own, others)
    }
}

/// The object that a manager leaves who applies a manifest over `live`.
pub fn applied(live: &Val, manifest: &Val, owned: Option<&Owned>, manager: &str, structure: &Structure<'_>) -> Val {
    let merged = merge::merge(live, manifest, structure);
    let Some(owned) = owned else { return merged };
    let (own, others) = owned.shared_out(manager, structure);
    fields::without_left_out(&merged, &own, &Fields::of_manifest(manifest, structure), &others)
}

/// The object that a manifest leaves which is put in place of `live`.
pub fn replaced(live: &Val, manifest: &Val) -> Val {
    SYSTEM_META.iter().fold(two_way(live, manifest), |object, field| {
        let path = ["metadata", field];
        match live.at_some(&path) {
            Some(value) if object.at_some(&path).is_none() => object.with_at(&path, value.clone()),
            _ => object,
        }
    })
}

fn two_way(live: &Val, manifest: &Val) -> Val {
    match (live, manifest) {
        (Val::Map(old), Val::Map(new)) => {
            let kept = old.iter().filter(|(key, value)| new.get(key).is_none() && set_by_server(key, value));
            let written = new.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| {
                (key.clone(), old.get(key).map_or_else(|| value.clone(), |old| two_way(old, value)))
            });
            Val::map(kept.map(|(key, value)| (key.clone(), value.clone())).chain(written).collect())
        }
        (Val::List(old), Val::List(new)) => {
            let Some(name) = naming(old, new) else { return manifest.clone() };
            let written = new.iter().map(|item| {
                let there = old.iter().find(|there| there.get(name) == item.get(name));
                there.map_or_else(|| item.clone(), |there| two_way(there, item))
            });
            Val::list(written.collect())
        }
        _ => manifest.clone(),
    }
}

/// The field that tells the items of both lists apart, if all have one.
fn naming(old: &[Val], new: &[Val]) -> Option<&'static str> {
    let distinct = |items: &[Val], name: &str| {
        let mut names: Vec<&Val> = items.iter().filter_map(|item| item.get(name)).collect();
        let all = names.len() == items.len();
        names.sort();
        names.dedup();
        all && names.len() == items.len()
    };
    ITEM_NAMES.into_iter().find(|name| distinct(old, name) && distinct(new, name))
}

/// Whether a field that a manifest leaves out has the value that the API server gives it then
/// (`pkg/apis/{core,apps,batch}/v1/defaults.go`).
fn set_by_server(key: &str, value: &Val) -> bool {
    let text = |expected: &[&str]| value.as_str().is_some_and(|found| expected.contains(&&**found));
    let number = |expected: &[i64]| value.as_int().is_some_and(|found| expected.contains(&found));
    let empty = || matches!(value, Val::Map(map) if map.is_empty());
    match key {
        key if ALLOCATED.contains(&key) => true,
        "terminationMessagePath" => text(&["/dev/termination-log"]),
        "terminationMessagePolicy" => text(&["File"]),
        "imagePullPolicy" => text(&["IfNotPresent", "Always"]),
        "dnsPolicy" => text(&["ClusterFirst"]),
        "restartPolicy" => text(&["Always"]),
        "schedulerName" => text(&["default-scheduler"]),
        "protocol" => text(&["TCP"]),
        "scheme" => text(&["HTTP"]),
        "sessionAffinity" => text(&["None"]),
        "podManagementPolicy" => text(&["OrderedReady"]),
        "volumeMode" => text(&["Filesystem"]),
        "completionMode" => text(&["NonIndexed"]),
        "podReplacementPolicy" => text(&["TerminatingOrFailed", "Failed"]),
        "whenDeleted" | "whenScaled" => text(&["Retain"]),
        "securityContext" | "resources" => empty(),
        "terminationGracePeriodSeconds" => number(&[30]),
        "revisionHistoryLimit" => number(&[10]),
        "progressDeadlineSeconds" => number(&[600]),
        "defaultMode" => number(&[420]),
        "backoffLimit" => number(&[6]),
        "successThreshold" | "timeoutSeconds" => number(&[1]),
        "failureThreshold" => number(&[3]),
        "periodSeconds" => number(&[10]),
        "partition" | "minReadySeconds" => number(&[0]),
        "type" => text(&["ClusterIP", "RollingUpdate"]),
        "maxSurge" | "maxUnavailable" => text(&["25%"]) || number(&[0, 1]),
        // a map whose every field is such a one was left out as a whole
        "strategy" | "updateStrategy" | "rollingUpdate" | "persistentVolumeClaimRetentionPolicy" => {
            value.entries().all(|(key, value)| set_by_server(key, value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
