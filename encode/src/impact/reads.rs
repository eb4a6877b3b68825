//! What an invariant reads, by kind, whatever the cluster: what must be watched to decide it, and which writes can
//! break it from any side. Both are over-approximated: a kind too many costs a request, one too few a wrong proof.
//!
//! | reads | stands for |
//! |---|---|
//! | `kinds` | objects of these kinds; a kind that is not built in and names no group has the group `*` |
//! | `pods` | what becomes of pods: they, what makes them, and where they run |
//! | `adapted` | custom resources that have an adapter |
//! | `any` | objects of any kind |
//! | `customs` | objects of any custom resource |
//! | `status` | a field `status` |

use std::collections::BTreeSet;

use suture_model::kinds::Kind;
use suture_specs::compile::{CompiledInvariant, Kinds};
use suture_specs::functions::Func;
use suture_specs::ir::{Expr, Node};

use super::uses::Uses;

/// The group of kinds whose group is not known.
pub const ANY_GROUP: &str = "*";

/// Built-in kinds whose objects may use a claim (`model/src/navigate/users.rs`).
const CLAIM_USERS: [&str; 8] =
    ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"];

/// Built-in kinds whose objects refer to others by name, bindings of roles aside (`model/src/references.rs`).
const REFERRING: [&str; 20] = [
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
const REFERRED: [&str; 12] = [
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

/// Kinds that run pods by themselves.
const WORKLOADS: [&str; 7] = ["Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"];

/// Kinds that say which hosts are claimed.
const CLAIMING: [&str; 5] = ["Ingress", "IngressClass", "HTTPRoute", "Gateway", "GatewayClass"];

/// What is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Objects of these kinds.
    pub kinds: BTreeSet<Kind>,
    /// What becomes of pods.
    pub pods: bool,
    /// Custom resources that have an adapter.
    pub adapted: bool,
    /// Objects of any kind.
    pub any: bool,
    /// Objects of any custom resource.
    pub customs: bool,
    /// Fields of a status.
    pub status: bool,
    /// Owners of any kind, beside instances ([`Self::beside_instance`]).
    pub(super) owners: bool,
    /// The kinds of the instances.
    instances: BTreeSet<Kind>,
}

impl Reads {
    /// All that the invariant reads, in any state.
    pub fn of(compiled: &CompiledInvariant) -> Self {
        let mut reads = Self::default();
        reads.instances(compiled);
        reads.kinds.extend(compiled.kinds.iter().cloned().map(grouped));
        for func in &compiled.functions {
            reads.function(*func);
        }
        reads.notes(compiled);
        reads
    }

    /// What it reads of the future, which is what a request can change.
    pub fn of_future(compiled: &CompiledInvariant) -> Self {
        let mut reads = Self::default();
        reads.instances(compiled);
        reads.future(compiled);
        reads
    }

    /// What it reads of the future beside the instance itself.
    pub fn beside_instance(compiled: &CompiledInvariant) -> Self {
        let mut of_instances = Self::default();
        of_instances.instances(compiled);
        let mut reads = Self { instances: of_instances.instances, ..Self::default() };
        reads.future(compiled);
        let owners = [Func::OwnersIn, Func::UnresolvedOwners, Func::WantedBy, Func::Parents];
        reads.owners = owners.iter().any(|func| compiled.functions.contains(func));
        reads
    }

    fn future(&mut self, compiled: &CompiledInvariant) {
        let (reads, uses) = (self, Uses::of(compiled));
        for func in &uses.funcs {
            reads.function(*func);
        }
        reads.kinds.extend(uses.lists.iter().cloned().map(grouped));
        for name in uses.named.iter().chain(uses.within.iter().map(|(kind, _)| kind)) {
            reads.kind(name);
        }
        if uses.volume_nodes {
            reads.function(Func::AdmittedNodes);
        }
        if uses.everything {
            // from an unknown place: all that the invariant reads anywhere, in the future too
            let all = Self::of(compiled);
            reads.join(&all);
        }
        reads.notes(compiled);
    }

    /// Adds what another invariant reads.
    pub fn join(&mut self, other: &Self) {
        let Self { kinds, pods, adapted, any, customs, status, owners, instances } = other;
        self.owners |= owners;
        self.instances.extend(instances.iter().cloned());
        self.kinds.extend(kinds.iter().cloned());
        self.pods |= pods;
        self.adapted |= adapted;
        self.any |= any;
        self.customs |= customs;
        self.status |= status;
    }

    fn instances(&mut self, compiled: &CompiledInvariant) {
        for kinds in &compiled.for_each.kinds {
            match kinds {
                Kinds::Every => self.any = true,
                Kinds::Workload => {
                    self.named(&WORKLOADS);
                    self.adapted = true;
                }
                Kinds::Adapted => self.adapted = true,
                Kinds::Kind(kind) => {
                    self.kinds.insert(kind.resolve().unwrap_or_else(|| Kind::new(ANY_GROUP, &kind.kind)));
                }
            }
        }
        self.instances = self.kinds.clone();
    }

    fn has_instance(&self, kind: &str) -> bool {
        self.instances.iter().any(|k| k.is(kind))
    }

    /// What the fields and faults of an invariant add.
    fn notes(&mut self, compiled: &CompiledInvariant) {
        for expr in compiled.expressions() {
            expr.walk(&mut |part| {
                match &part.node {
                    Node::Select { field, .. } | Node::HasField { field, .. } | Node::OptSelect { field, .. } => {
                        self.status |= &**field == "status";
                    }
                    // a kind that is computed may be any
                    Node::Call { func: Func::Objects, args } => self.any |= !args.iter().skip(1).all(constant),
                    Node::Call { func: Func::InNamespace, args } => self.any |= !args.get(2).is_some_and(constant),
                    Node::Call { func: Func::HasObject, args } => self.any |= !args.get(1).is_some_and(constant),
                    _ => {}
                }
            });
        }
        let pod = Kind::new("", "Pod");
        self.pods |= self.kinds.contains(&pod) || compiled.faults != suture_model::futures::Faults::default();
    }

    fn kind(&mut self, name: &str) {
        self.kinds.insert(Kind::builtin(name).unwrap_or_else(|| Kind::new(ANY_GROUP, name)));
    }

    fn named(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.kind(name));
    }

    /// What a function reads beside the object that it is about.
    fn function(&mut self, func: Func) {
        match func {
            Func::Selects
            | Func::Endpoints
            | Func::PodsOwnedBy
            | Func::PodsMatching
            | Func::Ready
            | Func::PodNode
            | Func::PodZone => self.pods = true,
            Func::WantedReplicas => {
                // a DaemonSet wants as many as there are nodes for it
                self.kind("Node");
                self.adapted = true;
            }
            Func::HasSelector
            | Func::IsQuorumGroup
            | Func::Requests
            | Func::References
            // owners are of any kind, and are watched as they are seen; parents have an adapter
            | Func::OwnersIn
            | Func::UnresolvedOwners
            | Func::WantedBy
            | Func::Parents => self.adapted = true,
            Func::PodsWanted => {
                self.pods = true;
                self.kind("Node");
                self.adapted = true;
            }
            Func::ListedEndpoints => self.kind("EndpointSlice"),
            Func::DisruptionsWhenSettled => {
                self.pods = true;
                self.adapted = true;
                self.named(&["HorizontalPodAutoscaler", "CustomResourceDefinition", "CronJob"]);
            }
            Func::AdmittedNodes | Func::RestrictsNodes => self.kind("Node"),
            Func::Referrers => {
                let claims = Kind::new("", "PersistentVolumeClaim");
                if !self.any && self.instances.iter().all(|kind| *kind == claims) && !self.instances.is_empty() {
                    self.named(&CLAIM_USERS);
                } else {
                    self.named(&REFERRING);
                }
                if ["ServiceAccount", "Role", "ClusterRole"].iter().any(|kind| self.has_instance(kind)) {
                    self.named(&["RoleBinding", "ClusterRoleBinding"]);
                }
                self.adapted = true;
            }
            Func::ResolvesIn => {
                self.named(&REFERRED);
                if self.has_instance("HorizontalPodAutoscaler") {
                    self.named(&["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"]);
                }
                if ["RoleBinding", "ClusterRoleBinding"].iter().any(|kind| self.has_instance(kind)) {
                    self.named(&["Role", "ClusterRole"]);
                }
                self.adapted = true;
            }
            Func::Instances => {
                self.kind("CustomResourceDefinition");
                self.customs = true;
            }
            Func::Volume => self.named(&["PersistentVolume", "PersistentVolumeClaim"]),
            Func::HostClaims | Func::HostClaimants => self.named(&CLAIMING),
            _ => {}
        }
    }
}

fn constant(expr: &Expr) -> bool {
    matches!(expr.node, Node::Const(_))
}

/// A kind that `compile` left without a group, because it is not built in, is of any group.
fn grouped(kind: Kind) -> Kind {
    if kind.group.is_empty() && kind.builtin_namespaced().is_none() { Kind::new(ANY_GROUP, &kind.kind) } else { kind }
}
