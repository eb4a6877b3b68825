//! Names of kinds: group and kind, scope, and the built-in kinds that short names resolve to.

use std::fmt;

use crate::value::Str;

/// A kind in its API group; the version does not matter to identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: Str,
    /// The kind, as in `kind:` of a manifest.
    pub kind: Str,
}

impl Kind {
    /// The kind `kind` of API group `group`.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// The built-in kind of this short name, if there is exactly one.
    pub fn builtin(kind: &str) -> Option<Self> {
        BUILTIN.iter().find(|(_, k, _)| *k == kind).map(|(g, k, _)| Self::new(g, k))
    }

    /// Whether this is the built-in kind `kind`.
    pub fn is(&self, kind: &str) -> bool {
        &*self.kind == kind && BUILTIN.iter().any(|(g, k, _)| *k == kind && *g == &*self.group)
    }

    /// Whether objects of a built-in kind live in a namespace; `None` for kinds that are not built in.
    pub fn builtin_namespaced(&self) -> Option<bool> {
        BUILTIN.iter().find(|(g, k, _)| *k == &*self.kind && *g == &*self.group).map(|(_, _, n)| *n)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

/// Group, kind, and whether it is namespaced, of the kinds known from the start (DESIGN: facts).
const BUILTIN: &[(&str, &str, bool)] = &[
    ("", "Node", false),
    ("", "Namespace", false),
    ("", "Pod", true),
    ("", "Service", true),
    ("", "PersistentVolumeClaim", true),
    ("", "PersistentVolume", false),
    ("", "ConfigMap", true),
    ("", "Secret", true),
    ("", "ServiceAccount", true),
    ("", "ResourceQuota", true),
    ("", "LimitRange", true),
    ("", "Endpoints", true),
    ("", "Event", true),
    ("", "ReplicationController", true),
    ("", "PodTemplate", true),
    ("apps", "Deployment", true),
    ("apps", "ReplicaSet", true),
    ("apps", "StatefulSet", true),
    ("apps", "DaemonSet", true),
    ("apps", "ControllerRevision", true),
    ("batch", "Job", true),
    ("batch", "CronJob", true),
    ("discovery.k8s.io", "EndpointSlice", true),
    ("networking.k8s.io", "Ingress", true),
    ("networking.k8s.io", "IngressClass", false),
    ("networking.k8s.io", "NetworkPolicy", true),
    ("policy", "PodDisruptionBudget", true),
    ("autoscaling", "HorizontalPodAutoscaler", true),
    ("storage.k8s.io", "StorageClass", false),
    ("storage.k8s.io", "VolumeAttachment", false),
    ("storage.k8s.io", "CSIDriver", false),
    ("scheduling.k8s.io", "PriorityClass", false),
    ("node.k8s.io", "RuntimeClass", false),
    ("coordination.k8s.io", "Lease", true),
    ("rbac.authorization.k8s.io", "Role", true),
    ("rbac.authorization.k8s.io", "ClusterRole", false),
    ("rbac.authorization.k8s.io", "RoleBinding", true),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", false),
    ("apiextensions.k8s.io", "CustomResourceDefinition", false),
    ("apiregistration.k8s.io", "APIService", false),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", false),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", false),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", false),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", false),
    ("snapshot.storage.k8s.io", "VolumeSnapshot", true),
    ("snapshot.storage.k8s.io", "VolumeSnapshotContent", false),
    ("snapshot.storage.k8s.io", "VolumeSnapshotClass", false),
    ("gateway.networking.k8s.io", "Gateway", true),
    ("gateway.networking.k8s.io", "GatewayClass", false),
    ("gateway.networking.k8s.io", "HTTPRoute", true),
    ("gateway.networking.k8s.io", "ReferenceGrant", true),
];
