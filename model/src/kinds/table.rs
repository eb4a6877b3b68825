//! The table of the built-in kinds: a row each. A role that a row leaves out does not compile.
//!
//! Sources: `kubectl api-resources`; `pkg/apis/*/types.go`; `pkg/registry/*/*/strategy.go` (status, default garbage
//! collection); `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go` (accounts of controllers).
//!
//! The order is seen: lists of kinds in messages keep it, and a pod that several controllers select is adopted by the
//! first kind.

use super::Role::{
    Budget, Claim, Controller as Controls, Definition, Host, Namespace, Node, Other, Pod, PodTemplate, Scaler, Selector,
};
use super::TakesAlong::{Claims, Contents, Dependents, Instances, Pods, Tokens, Volume};
use super::Watched::{Always, WhenNamed, WhenRead};
use super::{Adopts, Controller, KindTraits, Makes};

const DEPLOYMENT: Controller = Controller {
    template: &["spec", "template"],
    makes: Makes::ReplicaSets,
    adopts: Adopts::ReplicaSets,
    has_scale: true,
    decides: true,
    rolls_out: true,
    generates_names: false,
    replaces_released: false,
    orphans_by_default: false,
    is_workload: true,
};

const REPLICA_SET: Controller = Controller {
    template: &["spec", "template"],
    makes: Makes::Pods,
    adopts: Adopts::Pods,
    has_scale: true,
    decides: true,
    rolls_out: false,
    generates_names: true,
    replaces_released: true,
    orphans_by_default: false,
    is_workload: true,
};

const STATEFUL_SET: Controller = Controller {
    template: &["spec", "template"],
    makes: Makes::Pods,
    adopts: Adopts::Pods,
    has_scale: true,
    decides: true,
    rolls_out: true,
    generates_names: false,
    replaces_released: false,
    orphans_by_default: false,
    is_workload: true,
};

const DAEMON_SET: Controller = Controller {
    template: &["spec", "template"],
    makes: Makes::Pods,
    adopts: Adopts::Pods,
    has_scale: false,
    decides: true,
    rolls_out: true,
    generates_names: true,
    replaces_released: false,
    orphans_by_default: false,
    is_workload: true,
};

const JOB: Controller = Controller {
    template: &["spec", "template"],
    makes: Makes::Pods,
    adopts: Adopts::Nothing,
    has_scale: false,
    decides: false,
    rolls_out: false,
    generates_names: true,
    replaces_released: false,
    orphans_by_default: true,
    is_workload: true,
};

const CRON_JOB: Controller = Controller {
    template: &["spec", "jobTemplate", "spec", "template"],
    makes: Makes::Jobs,
    adopts: Adopts::Nothing,
    has_scale: false,
    decides: false,
    rolls_out: false,
    generates_names: false,
    replaces_released: false,
    orphans_by_default: false,
    is_workload: true,
};

const REPLICATION_CONTROLLER: Controller = Controller {
    template: &["spec", "template"],
    makes: Makes::Pods,
    adopts: Adopts::Pods,
    has_scale: true,
    decides: true,
    rolls_out: false,
    generates_names: true,
    replaces_released: true,
    orphans_by_default: true,
    is_workload: false,
};

/// The built-in kinds.
#[rustfmt::skip]
pub(super) static TABLE: &[KindTraits] = &[
    KindTraits {
        group: "", kind: "Node", resource: "nodes", short: &["no"],
        namespaced: false, listed: true, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Pods, role: Node,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "Namespace", resource: "namespaces", short: &["ns"],
        namespaced: false, listed: true, has_status: true, watched: Always,
        refers: false, referred: true, takes_along: Contents, role: Namespace,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "Pod", resource: "pods", short: &["po"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Pod,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "Service", resource: "services", short: &["svc"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: false, referred: true, takes_along: Dependents, role: Selector,
        removes: &[("EndpointSlice", "endpointslice-controller")],
    },
    KindTraits {
        group: "", kind: "PersistentVolumeClaim", resource: "persistentvolumeclaims", short: &["pvc"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: true, takes_along: Volume, role: Claim,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "PersistentVolume", resource: "persistentvolumes", short: &["pv"],
        namespaced: false, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: true, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "ConfigMap", resource: "configmaps", short: &["cm"],
        namespaced: true, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: true, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "Secret", resource: "secrets", short: &[],
        namespaced: true, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: true, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "ServiceAccount", resource: "serviceaccounts", short: &["sa"],
        namespaced: true, listed: true, has_status: false, watched: WhenRead,
        refers: true, referred: true, takes_along: Tokens, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "ResourceQuota", resource: "resourcequotas", short: &["quota"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "LimitRange", resource: "limitranges", short: &["limits"],
        namespaced: true, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "Endpoints", resource: "endpoints", short: &["ep"],
        namespaced: true, listed: false, has_status: true, watched: WhenNamed,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "Event", resource: "events", short: &["ev"],
        namespaced: true, listed: false, has_status: true, watched: WhenNamed,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "", kind: "PodTemplate", resource: "podtemplates", short: &[],
        namespaced: true, listed: false, has_status: false, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: PodTemplate,
        removes: &[],
    },
    KindTraits {
        group: "apps", kind: "Deployment", resource: "deployments", short: &["deploy"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Controls(&DEPLOYMENT),
        removes: &[("ReplicaSet", "deployment-controller")],
    },
    KindTraits {
        group: "apps", kind: "ReplicaSet", resource: "replicasets", short: &["rs"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Controls(&REPLICA_SET),
        removes: &[("Pod", "replicaset-controller")],
    },
    KindTraits {
        group: "apps", kind: "StatefulSet", resource: "statefulsets", short: &["sts"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Claims, role: Controls(&STATEFUL_SET),
        removes: &[("Pod", "statefulset-controller"), ("ControllerRevision", "statefulset-controller")],
    },
    KindTraits {
        group: "apps", kind: "DaemonSet", resource: "daemonsets", short: &["ds"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Controls(&DAEMON_SET),
        removes: &[("Pod", "daemon-set-controller"), ("ControllerRevision", "daemon-set-controller")],
    },
    KindTraits {
        group: "apps", kind: "ControllerRevision", resource: "controllerrevisions", short: &[],
        namespaced: true, listed: false, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "batch", kind: "Job", resource: "jobs", short: &[],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Controls(&JOB),
        removes: &[("Pod", "job-controller")],
    },
    KindTraits {
        group: "batch", kind: "CronJob", resource: "cronjobs", short: &["cj"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Controls(&CRON_JOB),
        removes: &[],
    },
    KindTraits {
        group: "", kind: "ReplicationController", resource: "replicationcontrollers", short: &["rc"],
        namespaced: true, listed: false, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Controls(&REPLICATION_CONTROLLER),
        removes: &[("Pod", "replication-controller")],
    },
    KindTraits {
        group: "discovery.k8s.io", kind: "EndpointSlice", resource: "endpointslices", short: &[],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "networking.k8s.io", kind: "Ingress", resource: "ingresses", short: &["ing"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Host,
        removes: &[],
    },
    KindTraits {
        group: "networking.k8s.io", kind: "IngressClass", resource: "ingressclasses", short: &[],
        namespaced: false, listed: true, has_status: false, watched: WhenRead,
        refers: true, referred: true, takes_along: Dependents, role: Host,
        removes: &[],
    },
    KindTraits {
        group: "networking.k8s.io", kind: "NetworkPolicy", resource: "networkpolicies", short: &["netpol"],
        namespaced: true, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Selector,
        removes: &[],
    },
    KindTraits {
        group: "policy", kind: "PodDisruptionBudget", resource: "poddisruptionbudgets", short: &["pdb"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Budget,
        removes: &[],
    },
    KindTraits {
        group: "autoscaling", kind: "HorizontalPodAutoscaler", resource: "horizontalpodautoscalers", short: &["hpa"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Scaler,
        removes: &[],
    },
    KindTraits {
        group: "storage.k8s.io", kind: "StorageClass", resource: "storageclasses", short: &["sc"],
        namespaced: false, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: true, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "storage.k8s.io", kind: "VolumeAttachment", resource: "volumeattachments", short: &[],
        namespaced: false, listed: false, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "storage.k8s.io", kind: "CSIDriver", resource: "csidrivers", short: &[],
        namespaced: false, listed: false, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "scheduling.k8s.io", kind: "PriorityClass", resource: "priorityclasses", short: &["pc"],
        namespaced: false, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: true, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "node.k8s.io", kind: "RuntimeClass", resource: "runtimeclasses", short: &[],
        namespaced: false, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: true, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "coordination.k8s.io", kind: "Lease", resource: "leases", short: &[],
        namespaced: true, listed: true, has_status: true, watched: WhenNamed,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "rbac.authorization.k8s.io", kind: "Role", resource: "roles", short: &[],
        namespaced: true, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "rbac.authorization.k8s.io", kind: "ClusterRole", resource: "clusterroles", short: &[],
        namespaced: false, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "rbac.authorization.k8s.io", kind: "RoleBinding", resource: "rolebindings", short: &[],
        namespaced: true, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "rbac.authorization.k8s.io", kind: "ClusterRoleBinding", resource: "clusterrolebindings", short: &[],
        namespaced: false, listed: true, has_status: false, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "apiextensions.k8s.io", kind: "CustomResourceDefinition",
        resource: "customresourcedefinitions", short: &["crd", "crds"],
        namespaced: false, listed: true, has_status: true, watched: Always,
        refers: true, referred: false, takes_along: Instances, role: Definition,
        removes: &[],
    },
    KindTraits {
        group: "apiregistration.k8s.io", kind: "APIService", resource: "apiservices", short: &[],
        namespaced: false, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "admissionregistration.k8s.io", kind: "ValidatingWebhookConfiguration",
        resource: "validatingwebhookconfigurations", short: &[],
        namespaced: false, listed: true, has_status: false, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "admissionregistration.k8s.io", kind: "MutatingWebhookConfiguration",
        resource: "mutatingwebhookconfigurations", short: &[],
        namespaced: false, listed: true, has_status: false, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "admissionregistration.k8s.io", kind: "ValidatingAdmissionPolicy",
        resource: "validatingadmissionpolicies", short: &[],
        namespaced: false, listed: false, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "admissionregistration.k8s.io", kind: "ValidatingAdmissionPolicyBinding",
        resource: "validatingadmissionpolicybindings", short: &[],
        namespaced: false, listed: false, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", resource: "volumesnapshots", short: &["vs"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "snapshot.storage.k8s.io", kind: "VolumeSnapshotContent",
        resource: "volumesnapshotcontents", short: &["vsc"],
        namespaced: false, listed: false, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "snapshot.storage.k8s.io", kind: "VolumeSnapshotClass",
        resource: "volumesnapshotclasses", short: &["vsclass"],
        namespaced: false, listed: false, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "gateway.networking.k8s.io", kind: "Gateway", resource: "gateways", short: &["gtw"],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: true, takes_along: Dependents, role: Host,
        removes: &[],
    },
    KindTraits {
        group: "gateway.networking.k8s.io", kind: "GatewayClass", resource: "gatewayclasses", short: &["gc"],
        namespaced: false, listed: false, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
    KindTraits {
        group: "gateway.networking.k8s.io", kind: "HTTPRoute", resource: "httproutes", short: &[],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: true, referred: false, takes_along: Dependents, role: Host,
        removes: &[],
    },
    KindTraits {
        group: "gateway.networking.k8s.io", kind: "ReferenceGrant", resource: "referencegrants", short: &[],
        namespaced: true, listed: true, has_status: true, watched: WhenRead,
        refers: false, referred: false, takes_along: Dependents, role: Other,
        removes: &[],
    },
];
