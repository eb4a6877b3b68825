//! What an applied manifest makes of the object that is there: the three-way merge of client-side `kubectl apply` where
//! the object remembers what was applied last, else the manifest as the whole truth.
//!
//! | field | in the manifest | left out of it |
//! |---|---|---|
//! | last applied is known | its value | removed if it was applied last, else kept |
//! | last applied is unknown | its value | kept if the API server set it (a default, an address it gave out), else removed |
//!
//! Leaving a default in place keeps an unchanged manifest from looking like a new pod template. `spec.replicas` is no
//! such field: dropped, it becomes 1.

use std::collections::BTreeMap;

use suture_model::object::Key;
use suture_model::value::Val;

/// The manifests that were applied last, of the objects that are applied now. A snapshot does not keep them.
pub type LastApplied = BTreeMap<Key, Val>;

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

/// The manifest that `kubectl apply` remembers in an object.
pub fn last_applied(live: &Val) -> Option<Val> {
    let text = live.str_at(&["metadata", "annotations", LAST_APPLIED])?;
    serde_json::from_str(text).ok()
}

/// The object that applying `manifest` over `live` leaves, when `last` was applied before.
pub fn applied(live: &Val, manifest: &Val, last: Option<&Val>) -> Val {
    let merged = match last {
        Some(last) => three_way(live, manifest, last),
        None => two_way(live, manifest),
    };
    SYSTEM_META.iter().fold(merged, |object, field| {
        let path = ["metadata", field];
        match live.at_some(&path) {
            Some(value) if object.at_some(&path).is_none() => object.with_at(&path, value.clone()),
            _ => object,
        }
    })
}

fn three_way(live: &Val, manifest: &Val, last: &Val) -> Val {
    match (live, manifest) {
        (Val::Map(old), Val::Map(new)) => {
            let kept = old.iter().filter(|(key, _)| new.get(key).is_none() && last.get(key).is_none());
            let written = new.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| {
                let merged = old.get(key).map(|old| three_way(old, value, last.get(key).unwrap_or(&Val::Null)));
                (key.clone(), merged.unwrap_or_else(|| value.clone()))
            });
            Val::map(kept.map(|(key, value)| (key.clone(), value.clone())).chain(written).collect())
        }
        (Val::List(old), Val::List(new)) => {
            let Some(name) = naming(old, new) else { return manifest.clone() };
            let of = |items: &[Val], item: &Val| items.iter().find(|i| i.get(name) == item.get(name)).cloned();
            let written = new.iter().map(|item| match of(old, item) {
                Some(old) => three_way(&old, item, &of(last.items(), item).unwrap_or_default()),
                None => item.clone(),
            });
            let kept = old.iter().filter(|item| of(new, item).is_none() && of(last.items(), item).is_none());
            Val::list(written.chain(kept.cloned()).collect())
        }
        _ => manifest.clone(),
    }
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
