//! Whose requests, and which, never wait for the webhook. The match conditions of its configuration say so to the API server
//! (`serve::configuration::conditions`), and who reads recorded requests asks here.

use suture_model::change::{Operation, Request};
use suture_model::value::Val;
use suture_specs::spec::API_VERSION;

/// Users of the control plane whose requests are never judged.
///
/// The API server itself and the scheduler cannot be told no: a binding or a preemption is a choice among the futures.
/// Controllers act on what was admitted before (names: `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/
/// controller_policy.go`): what they do is part of the futures of the request that set them going, and it is too late to
/// refuse: a refused garbage collector or namespace controller would only try again, for ever. One user stands for all
/// controllers where they have no accounts of their own (`--use-service-account-credentials=false`).
///
/// Not among them, hence judged: the autoscaler, CronJobs and the clean-up of finished Jobs, which decide by themselves.
const CONTROL_PLANE: [&str; 3] = ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"];

/// What the names of service accounts of kube-system begin with.
const KUBE_SYSTEM: &str = "system:serviceaccount:kube-system:";

/// Service accounts of kube-system that are such controllers.
const CONTROLLERS: [&str; 31] = [
    "attachdetach-controller",
    "certificate-controller",
    "clusterrole-aggregation-controller",
    "daemon-set-controller",
    "deployment-controller",
    "device-taint-eviction-controller",
    "disruption-controller",
    "endpoint-controller",
    "endpointslice-controller",
    "endpointslicemirroring-controller",
    "ephemeral-volume-controller",
    "expand-controller",
    "generic-garbage-collector",
    "job-controller",
    "namespace-controller",
    "node-controller",
    "persistent-volume-binder",
    "pod-garbage-collector",
    "pv-protection-controller",
    "pvc-protection-controller",
    "replicaset-controller",
    "replication-controller",
    "resource-claim-controller",
    "resourcequota-controller",
    "root-ca-cert-publisher",
    "selinux-warning-controller",
    "service-account-controller",
    "service-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "ttl-controller",
];

/// API groups that never wait for the webhook: leases, events, reviews of tokens and rights, requests for certificates
/// (a node cannot join without one), priorities of the API server's own queues.
pub const HOUSEKEEPING: [&str; 6] = [
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// The users of the control plane whose requests are never judged.
pub fn control_plane() -> impl Iterator<Item = String> {
    let accounts = CONTROLLERS.iter().map(|name| format!("{KUBE_SYSTEM}{name}"));
    CONTROL_PLANE.iter().map(ToString::to_string).chain(accounts)
}

/// The API group of Suture's own resources.
pub fn own_group() -> &'static str {
    API_VERSION.split_once('/').map_or(API_VERSION, |(group, _)| group)
}

/// Whether requests on a resource never wait, whoever sends them.
pub fn is_housekeeping(group: &str, resource: &str, subresource: &str) -> bool {
    HOUSEKEEPING.contains(&group)
        || (group.is_empty() && matches!(resource, "events" | "componentstatuses"))
        || subresource == "token"
}

/// Whether the webhook is not asked about a request of a kind that it is asked about, for the sake of who sends it or of what
/// it is about: Suture's own resources, the control plane, and nodes that report what has happened.
pub fn is_never_asked(request: &Request) -> bool {
    let user = &request.user;
    let name = &*user.username;
    let is_controller = name.strip_prefix(KUBE_SYSTEM).is_some_and(|name| CONTROLLERS.contains(&name));
    let is_node = user.groups.iter().any(|group| &**group == "system:nodes");
    &*request.target.kind.group == own_group()
        || CONTROL_PLANE.contains(&name)
        || is_controller
        || (is_node && !takes_pod(request))
}

/// Whether it evicts a pod, or deletes one whose deletion nobody has asked for before.
fn takes_pod(request: &Request) -> bool {
    let is_asked = |old: &Val| old.at_some(&["metadata", "deletionTimestamp"]).is_none();
    let deletes = || request.operation == Operation::Delete && request.old.as_ref().is_some_and(is_asked);
    request.target.kind.is("Pod") && (request.subresource == "eviction" || deletes())
}
