//! Names of kinds: group and kind, scope, and the built-in kinds that short names resolve to.

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::value::Str;

/// A kind in its API group; the version does not matter to identity. Built-in kinds share their texts, so that comparing
/// them rarely reads any.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: Str,
    /// The kind, as in `kind:` of a manifest.
    pub kind: Str,
}

impl Kind {
    /// The kind `kind` of API group `group`.
    pub fn new(group: &str, kind: &str) -> Self {
        match builtin(kind) {
            Some(found) if *found.0.group == *group => found.0.clone(),
            _ => Self { group: group.into(), kind: kind.into() },
        }
    }

    /// The built-in kind of this short name, if there is one.
    pub fn builtin(kind: &str) -> Option<Self> {
        builtin(kind).map(|(kind, _)| kind.clone())
    }

    /// The built-in kinds.
    pub fn builtins() -> impl Iterator<Item = Self> {
        BUILTIN.iter().map(|(group, kind, _)| Self::new(group, kind))
    }

    /// Whether this is the built-in kind `kind`.
    pub fn is(&self, kind: &str) -> bool {
        &*self.kind == kind && builtin(kind).is_some_and(|(found, _)| same(&found.group, &self.group))
    }

    /// Whether objects of a built-in kind live in a namespace; `None` for kinds that are not built in.
    pub fn builtin_namespaced(&self) -> Option<bool> {
        builtin(&self.kind).filter(|(found, _)| same(&found.group, &self.group)).map(|(_, namespaced)| *namespaced)
    }
}

/// The built-in kind of this short name, and whether it is namespaced.
fn builtin(kind: &str) -> Option<&'static (Kind, bool)> {
    /// By the length of the short name: few have the same, so that hardly any text is read.
    static KNOWN: LazyLock<Vec<Vec<(Kind, bool)>>> = LazyLock::new(|| {
        let longest = BUILTIN.iter().map(|(_, kind, _)| kind.len()).max().unwrap_or(0);
        let known = |(g, k, n): &(&str, &str, bool)| (Kind { group: Str::from(*g), kind: Str::from(*k) }, *n);
        let of_length = |length| BUILTIN.iter().filter(move |(_, kind, _)| kind.len() == length).map(known).collect();
        (0..=longest).map(of_length).collect()
    });
    KNOWN.get(kind.len())?.iter().find(|(known, _)| *known.kind == *kind)
}

/// Equality of shared texts.
pub(crate) fn same(a: &Str, b: &Str) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// Order of shared texts.
pub(crate) fn order(a: &Str, b: &Str) -> Ordering {
    if Arc::ptr_eq(a, b) { Ordering::Equal } else { a.cmp(b) }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        same(&self.kind, &other.kind) && same(&self.group, &other.group)
    }
}
impl Eq for Kind {}
impl std::hash::Hash for Kind {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.group.hash(state);
        self.kind.hash(state);
    }
}
impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.group, &other.group).then_with(|| order(&self.kind, &other.kind))
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
