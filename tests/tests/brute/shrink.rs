//! From a case in which the verdicts differ to the smallest one that can be had by leaving things out.

use crate::universe::Case;

/// Leaves out requests and objects as long as `still` holds of what is left.
pub fn shrink(case: Case, still: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case;
    loop {
        let smaller = candidates(&best).into_iter().find(|candidate| still(candidate));
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// The cases with one thing less.
fn candidates(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for at in 0..case.in_flight.len() {
        let mut less = case.clone();
        less.in_flight.remove(at);
        found.push(less);
    }
    if case.change.requests.len() > 1 {
        for at in 0..case.change.requests.len() {
            let mut less = case.clone();
            less.change.requests.remove(at);
            found.push(less);
        }
    }
    for at in 0..case.objects.len() {
        let mut less = case.clone();
        less.objects.remove(at);
        found.push(less);
    }
    for (at, object) in case.objects.iter().enumerate() {
        for path in PARTS {
            if object.at(path).is_some() {
                let mut less = case.clone();
                less.objects[at] = object.without_at(path);
                found.push(less);
            }
        }
    }
    found
}

/// Parts of an object that may not matter.
const PARTS: &[&[&str]] = &[
    &["metadata", "resourceVersion"],
    &["metadata", "annotations"],
    &["metadata", "finalizers"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "ownerReferences"],
    &["metadata", "labels", "suture.dev/quorum"],
    &["metadata", "labels", "ver"],
    &["metadata", "labels", "controller-revision-hash"],
    &["metadata", "labels", "topology.kubernetes.io/zone"],
    &["metadata", "labels", "disk"],
    &["spec", "strategy", "rollingUpdate"],
    &["spec", "strategy"],
    &["spec", "updateStrategy"],
    &["spec", "podManagementPolicy"],
    &["spec", "persistentVolumeClaimRetentionPolicy"],
    &["spec", "volumeClaimTemplates"],
    &["spec", "serviceName"],
    &["spec", "ordinals"],
    &["spec", "affinity"],
    &["spec", "nodeSelector"],
    &["spec", "tolerations"],
    &["spec", "topologySpreadConstraints"],
    &["spec", "volumes"],
    &["spec", "containers"],
    &["spec", "serviceAccountName"],
    &["spec", "priorityClassName"],
    &["spec", "unschedulable"],
    &["spec", "taints"],
    &["spec", "tls"],
    &["spec", "ingressClassName"],
    &["spec", "template", "metadata", "labels", "ver"],
    &["spec", "template", "spec", "affinity"],
    &["spec", "template", "spec", "nodeSelector"],
    &["spec", "template", "spec", "tolerations"],
    &["spec", "template", "spec", "topologySpreadConstraints"],
    &["spec", "template", "spec", "volumes"],
    &["spec", "template", "spec", "containers"],
    &["spec", "template", "spec", "serviceAccountName"],
    &["spec", "template", "spec", "priorityClassName"],
    &["spec", "secret"],
    &["spec", "children"],
    &["spec", "claims"],
    &["spec", "cascades"],
    &["spec", "deletesVolumes"],
    &["spec", "scales"],
    &["spec", "least"],
    &["spec", "most"],
    &["spec", "quorum"],
    &["spec", "writes"],
    &["spec", "optional"],
    &["status", "allocatable"],
    &["status", "conditions"],
    &["status"],
    &["data"],
];
