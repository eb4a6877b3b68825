//! Which roles built-in kinds play in what invariants read and in what changes reach.

use suture_model::kinds::Kind;

/// Kinds that select pods, beside custom resources with an adapter.
pub(crate) const SELECTING: [&str; 9] = [
    "Service",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "Job",
];

/// Those of them that do nothing but select.
pub(crate) const SELECTING_ONLY: [&str; 3] = ["Service", "PodDisruptionBudget", "NetworkPolicy"];

/// Kinds over which instances are found that depend on pods, beside custom resources with an adapter.
pub(crate) const MAKING: [&str; 8] =
    ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob"];

/// Kinds that `forEach: workload` means, beside custom resources with an adapter.
pub(crate) const WORKLOADS: [&str; 7] =
    ["Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"];

/// Built-in kinds whose objects may use a claim (`model/src/navigate/users.rs`).
pub(crate) const CLAIM_USERS: [&str; 8] =
    ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"];

/// Built-in kinds whose objects refer to others by name, bindings of roles aside (`model/src/references.rs`).
pub(crate) const REFERRING: [&str; 20] = [
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

/// Built-in kinds that others refer to by name.
pub(crate) const REFERRED: [&str; 12] = [
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

/// What a HorizontalPodAutoscaler may refer to.
pub(crate) const SCALED: [&str; 4] = ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"];

/// What a binding of roles refers to.
pub(crate) const ROLES: [&str; 2] = ["Role", "ClusterRole"];

/// What refers to roles and service accounts.
pub(crate) const ROLE_BINDINGS: [&str; 2] = ["RoleBinding", "ClusterRoleBinding"];

/// Kinds that claim hosts.
pub(crate) const ROUTES: [&str; 2] = ["Ingress", "HTTPRoute"];

/// Kinds that decide which class a route has, and with it what it claims.
pub(crate) const ROUTE_CLASSES: [&str; 2] = ["IngressClass", "Gateway"];

/// Kinds that say which hosts are claimed.
pub(crate) const CLAIMING: [&str; 5] = ["Ingress", "IngressClass", "HTTPRoute", "Gateway", "GatewayClass"];

/// Whether a kind is one of these.
pub(crate) fn is_any(kind: &Kind, names: &[&str]) -> bool {
    names.iter().any(|name| kind.is(name))
}

/// Whether a change to an object of a built-in kind never leaves all pods alone (`Impact::leaves_pods_alone`).
pub fn concerns_pods(kind: &Kind) -> bool {
    is_any(kind, &["Pod", "Node", "Namespace", "CustomResourceDefinition"]) || is_any(kind, &SELECTING)
}
