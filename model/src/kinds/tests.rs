//! The table of kinds beside the lists that it replaces.

use std::collections::BTreeSet;

use super::*;

/// Asserts that these kinds, and no others, play a role.
#[track_caller]
fn plays(role: impl Fn(&KindTraits) -> bool, kinds: &[&str]) {
    let found: BTreeSet<String> = Kind::with(role).map(|kind| kind.kind.to_string()).collect();
    assert_eq!(found, kinds.iter().map(ToString::to_string).collect());
}

#[test]
fn a_row_is_found_by_its_kind_and_by_its_resource() {
    for traits in table::TABLE {
        let kind = Kind::new(traits.group, traits.kind);
        assert!(std::ptr::eq(kind.traits().unwrap(), traits), "{kind} stands twice");
        assert_eq!(Kind::of_resource(traits.group, traits.resource), Some(kind));
        assert_eq!(crate::change::plural(traits.kind), traits.resource);
        assert_eq!(Kind::new("example.com", traits.kind).traits().map(|t| t.kind), None);
        for (removed, _) in traits.removes {
            assert!(Kind::builtin(removed).is_some(), "{removed}");
        }
    }
}

#[test]
fn the_table_equals_the_lists_that_it_replaces() {
    let makers = ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "ReplicationController"];
    let and = |more: &[&'static str]| [&makers[..], more].concat();
    plays(KindTraits::makes_pods, &makers);
    plays(KindTraits::runs_pods, &and(&["Pod", "CronJob"]));
    plays(KindTraits::has_scale, &["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"]);
    plays(KindTraits::decides, &["ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "ReplicationController"]);
    plays(KindTraits::rolls_out, &["Deployment", "StatefulSet", "DaemonSet"]);
    plays(KindTraits::replaces_released, &["ReplicaSet", "ReplicationController"]);
    plays(KindTraits::orphans_by_default, &["Job", "ReplicationController"]);
    plays(KindTraits::selects_pods, &and(&["Service", "PodDisruptionBudget", "NetworkPolicy"]));
    plays(KindTraits::only_selects_pods, &["Service", "PodDisruptionBudget", "NetworkPolicy"]);
    let holders = ["Pod", "Node", "Namespace", "CustomResourceDefinition"];
    let selecting = and(&["Service", "PodDisruptionBudget", "NetworkPolicy"]);
    plays(KindTraits::concerns_pods, &[&holders[..], &selecting].concat());
    let deciding = ["ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "ReplicationController"];
    let moving = ["Pod", "Node", "Namespace", "HorizontalPodAutoscaler", "CustomResourceDefinition"];
    plays(KindTraits::moves_pods, &[deciding, moving].concat());
    plays(KindTraits::decides_about_pods, &and(&["Pod", "Node", "PodDisruptionBudget", "PersistentVolumeClaim"]));
    let workloads = ["Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"];
    plays(KindTraits::is_workload, &workloads);
    plays(|traits| !traits.may_be_quorum_group(), &["Pod", "Namespace"]);
    plays(KindTraits::claims_hosts, &["Ingress", "IngressClass", "HTTPRoute", "Gateway"]);
    let leaders = ["Namespace", "CustomResourceDefinition", "StatefulSet", "PersistentVolumeClaim", "ServiceAccount"];
    plays(KindTraits::leads, &leaders);
    let adopting: Vec<String> = Kind::with(KindTraits::adopts_pods).map(|kind| kind.kind.to_string()).collect();
    assert_eq!(adopting, ["ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"], "in this order");
    // a ReplicationController was missing: its pods have names of its own making as well
    plays(KindTraits::generates_names, &["ReplicaSet", "DaemonSet", "Job", "ReplicationController"]);
}

#[test]
fn the_columns_equal_the_lists_that_they_replace() {
    plays(|traits| traits.watched == Watched::Always, &["Namespace", "CustomResourceDefinition"]);
    plays(|traits| traits.watched == Watched::WhenNamed, &["Event", "Lease", "Endpoints"]);
    let without_status = [
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "StorageClass",
        "PriorityClass",
        "RuntimeClass",
        "IngressClass",
        "NetworkPolicy",
        "Role",
        "ClusterRole",
        "RoleBinding",
        "ClusterRoleBinding",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "LimitRange",
        "PodTemplate",
    ];
    plays(|traits| !traits.has_status, &without_status);
    let referring = [
        "Pod",
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "CronJob",
        "ReplicationController",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "ServiceAccount",
        "Ingress",
        "IngressClass",
        "HTTPRoute",
        "Gateway",
        "HorizontalPodAutoscaler",
        "CustomResourceDefinition",
        "APIService",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ];
    plays(|traits| traits.refers, &referring);
    let referred = [
        "Secret",
        "ConfigMap",
        "ServiceAccount",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "StorageClass",
        "PriorityClass",
        "RuntimeClass",
        "Service",
        "IngressClass",
        "Gateway",
        "Namespace",
    ];
    plays(|traits| traits.referred, &referred);
    // in the order of `WORLD_FIELDS` of `specs/src/functions/table.rs`
    let listed: Vec<&str> = table::TABLE.iter().filter(|traits| traits.listed).map(|traits| traits.resource).collect();
    assert_eq!(listed.len(), 39);
}
