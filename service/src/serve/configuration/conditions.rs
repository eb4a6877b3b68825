//! Match conditions: what the API server leaves out by itself, without a call. CEL over the request, evaluated before it.
//!
//! A condition that fails is, under `failurePolicy: Fail`, a refusal (`apiserver/pkg/admission/plugin/webhook/
//! matchconditions/matcher.go`), hence every optional field is guarded by `has`: an AdmissionRequest leaves out what is
//! empty (`k8s.io/api/admission/v1/types.go`).
//!
//! What is left out can never lock the cluster when Suture is away: what a control plane and its nodes need to live,
//! and what Suture needs to come back.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use suture_model::kinds::Kind;
use suture_specs::spec::{API_VERSION, Subject, SubjectKind};

use super::target::Installation;
use crate::rules::Judged;

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

/// The subresource, empty where there is none.
pub const SUBRESOURCE: &str = "(has(request.subResource) ? request.subResource : '')";

/// The conditions of every webhook that judges.
pub fn common(installation: &Installation) -> Vec<MatchCondition> {
    let own = format!("system:serviceaccount:{}:{}", installation.namespace, installation.service_account);
    vec![
        condition("not-suture", format!("request.userInfo.username != {}", quote(&own))),
        condition("not-own-resources", format!("request.resource.group != {}", quote(own_group()))),
        condition("not-control-plane", format!("!(request.userInfo.username in {})", list(control_plane()))),
        condition("not-housekeeping", housekeeping()),
        condition("not-node-reports", node_reports()),
        condition("not-heartbeats", heartbeats()),
    ]
}

/// The condition that the request is (`of`) or is not one of these subjects'.
pub fn subjects<'s>(subjects: impl Iterator<Item = &'s Subject>, of: bool) -> MatchCondition {
    let each: BTreeSet<String> = subjects.map(subject).collect();
    let any = each.into_iter().collect::<Vec<_>>().join(" || ");
    if of { condition("granted", any) } else { condition("not-granted", format!("!({any})")) }
}

/// The condition that something depends on a request: it deletes, it writes what is read, or it changes with what an object
/// goes, or what goes with it.
pub fn judged(judged: &Judged) -> MatchCondition {
    let Judged { every, customs, places, groups, status_groups } = judged;
    let in_group = |groups: &BTreeSet<String>| format!("request.resource.group in {}", list(groups.iter().cloned()));
    let whole = match (every, customs) {
        (true, _) => "true".to_owned(),
        (false, true) => format!("!({})", in_group(&builtin_groups().collect())),
        (false, false) => in_group(groups),
    };
    let subresource = format!("({SUBRESOURCE} == '' ? '' : '/' + {SUBRESOURCE})");
    let expression = format!(
        "request.operation == 'DELETE' \
         || (request.resource.group + '/' + request.resource.resource + {subresource}) in {} \
         || ({SUBRESOURCE} == '' && {whole}) || ({SUBRESOURCE} == 'scale' && {}) || ({SUBRESOURCE} == 'status' && {}) \
         || (request.operation == 'UPDATE' && object != null && oldObject != null && ({} || {}))",
        list(places.iter().cloned()),
        in_group(groups),
        in_group(status_groups),
        differs("ownerReferences"),
        differs("finalizers"),
    );
    condition("judged", expression)
}

/// The groups of the API server's own kinds.
pub fn builtin_groups() -> impl Iterator<Item = String> {
    let groups: BTreeSet<String> = Kind::builtins()
        .map(|kind| kind.group.to_string())
        // these are defined by definitions that are installed like any other
        .filter(|group| !group.starts_with("gateway.") && !group.starts_with("snapshot."))
        .collect();
    groups.into_iter()
}

/// That a field of the metadata differs, which is a list.
fn differs(field: &str) -> String {
    let of = |object: &str| {
        format!("(has({object}.metadata) && has({object}.metadata.{field}) ? {object}.metadata.{field} : [])")
    };
    format!("{} != {}", of("object"), of("oldObject"))
}

/// The API group of Suture's own resources.
pub fn own_group() -> &'static str {
    API_VERSION.split_once('/').map_or(API_VERSION, |(group, _)| group)
}

fn control_plane() -> impl Iterator<Item = String> {
    let accounts = CONTROLLERS.iter().map(|name| format!("system:serviceaccount:kube-system:{name}"));
    CONTROL_PLANE.iter().map(ToString::to_string).chain(accounts)
}

fn housekeeping() -> String {
    let groups = list(HOUSEKEEPING.iter().map(ToString::to_string));
    format!(
        "!(request.resource.group in {groups}) && !(request.resource.group == '' && request.resource.resource in \
         ['events', 'componentstatuses']) && {SUBRESOURCE} != 'token'"
    )
}

/// Kubelets report what has happened; a refusal would not undo it. They also evict, and delete pods: the latter to finish a
/// deletion that was asked for before (`pkg/kubelet/status/status_manager.go`), which needs no judgement.
fn node_reports() -> String {
    format!(
        "!(has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups) \
         || (request.resource.group == '' && request.resource.resource == 'pods' && ({SUBRESOURCE} == 'eviction' \
         || (request.operation == 'DELETE' && oldObject != null && !has(oldObject.metadata.deletionTimestamp))))"
    )
}

/// A node's status matters where it says whether the node is ready and what it has room for.
fn heartbeats() -> String {
    let ready = |object: &str| {
        format!(
            "(has({object}.status) && has({object}.status.conditions) && {object}.status.conditions.exists(c, \
             c.type == 'Ready' && c.status == 'True'))"
        )
    };
    let room = |object: &str| {
        format!("(has({object}.status) && has({object}.status.allocatable) ? {object}.status.allocatable : {{}})")
    };
    format!(
        "request.resource.group != '' || request.resource.resource != 'nodes' || {SUBRESOURCE} != 'status' \
         || {} != {} || {} != {}",
        ready("object"),
        ready("oldObject"),
        room("object"),
        room("oldObject")
    )
}

fn subject(subject: &Subject) -> String {
    let name = &subject.name;
    match (subject.kind, &subject.namespace) {
        (SubjectKind::User, _) => format!("request.userInfo.username == {}", quote(name)),
        (SubjectKind::Group, _) => {
            format!("(has(request.userInfo.groups) && {} in request.userInfo.groups)", quote(name))
        }
        (SubjectKind::ServiceAccount, Some(ns)) if name == "*" => {
            format!("request.userInfo.username.startsWith({})", quote(&format!("system:serviceaccount:{ns}:")))
        }
        (SubjectKind::ServiceAccount, Some(ns)) => {
            format!("request.userInfo.username == {}", quote(&format!("system:serviceaccount:{ns}:{name}")))
        }
        (SubjectKind::ServiceAccount, None) => {
            let starts = "request.userInfo.username.startsWith('system:serviceaccount:')";
            if name == "*" {
                return starts.to_owned();
            }
            format!("({starts} && request.userInfo.username.endsWith({}))", quote(&format!(":{name}")))
        }
    }
}

/// A condition.
pub fn condition(name: &str, expression: String) -> MatchCondition {
    MatchCondition { name: name.to_owned(), expression }
}

/// A list of texts as a CEL literal.
pub fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.map(|item| quote(&item)).collect::<Vec<_>>().join(", "))
}

/// A text as a CEL literal.
pub fn quote(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' => out.push_str("\\'"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn a_text_cannot_leave_its_quotes() {
        assert_eq!(quote("a'b\\c\n"), "'a\\'b\\\\c\\n'");
    }
}
