//! What a cluster needs to come up: requests that are judged while Suture answers, and pass while it does not.
//!
//! They come to webhooks of their own, under `failurePolicy: Ignore`, by another path. There a request is refused only for
//! what was shown to break ([`crate::serve::router`]). What is below is the whole list; nothing else passes unjudged.
//!
//! | class | because |
//! |---|---|
//! | writes in the namespaces of the system | the cluster's DNS, proxies, networks, volumes and their autoscalers live there |
//! | creations and updates by accounts of these namespaces; deletions of nodes, of attached volumes and of custom resources by them | cloud controllers, CNI and CSI set up nodes, addresses and volumes anywhere |
//! | creations of nodes, and reports of their status | nodes join, cloud controllers and networks say that they are usable |
//! | updates of a node that take nothing from it | a taint or a cordon that goes lets pods in; labels, annotations and addresses come with the cloud and the network |
//! | the definitions of Suture's own kinds, and the cluster's roles and bindings that `suture manifests rbac` prints | it cannot start without them |
//!
//! Evictions, scalings and all other deletions by these accounts are none of it, nor is what controllers there decide by
//! themselves for other namespaces (`DECIDERS`).

use std::collections::BTreeSet;

use super::conditions::{SUBRESOURCE, builtin_groups, list, quote};
use crate::never_asked::own_group;
use crate::serve::rbac::{READS, VIEWS, WRITES};

/// The namespaces of the system that every cluster has (`k8s.io/api/core/v1` `NamespaceNodeLease`, `metav1.NamespaceSystem`
/// and `NamespacePublic`).
pub const SYSTEM_NAMESPACES: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];

/// Accounts of kube-system that decide by themselves what becomes of other namespaces' workloads: the cluster comes up
/// without that (names: `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go`).
const DECIDERS: [&str; 3] = ["cronjob-controller", "horizontal-pod-autoscaler", "ttl-after-finished-controller"];

/// The expression of whether a request is essential, with these namespaces of the system beside the usual ones.
pub fn expression(namespaces: &[String]) -> String {
    let all: BTreeSet<String> =
        SYSTEM_NAMESPACES.iter().map(ToString::to_string).chain(namespaces.iter().cloned()).collect();
    let inside = format!("(has(request.namespace) && request.namespace in {})", list(all.iter().cloned()));
    let own = format!(
        "(has(request.name) && (request.resource.group == 'apiextensions.k8s.io' \
         && request.resource.resource == 'customresourcedefinitions' && request.name.endsWith({}) \
         || request.resource.group == 'rbac.authorization.k8s.io' && request.resource.resource in \
         ['clusterroles', 'clusterrolebindings'] && (request.name in ['{WRITES}', '{VIEWS}'] || request.name.startsWith('{READS}'))))",
        quote(&format!(".{}", own_group()))
    );
    [inside, by_accounts(&all), nodes(), own].join(" || ")
}

/// What accounts of these namespaces set up outside of them.
fn by_accounts(namespaces: &BTreeSet<String>) -> String {
    let account = |name: &str| format!("request.userInfo.username.startsWith({})", quote(name));
    let accounts: Vec<String> = namespaces.iter().map(|ns| account(&format!("system:serviceaccount:{ns}:"))).collect();
    let deciders = DECIDERS.iter().map(|name| format!("system:serviceaccount:kube-system:{name}"));
    format!(
        "(({}) && !(request.userInfo.username in {}) && (request.operation == 'DELETE' \
         ? (request.resource.group == '' && request.resource.resource == 'nodes') \
         || (request.resource.group == 'storage.k8s.io' && request.resource.resource == 'volumeattachments') \
         || !(request.resource.group in {}) \
         : !({SUBRESOURCE} in ['eviction', 'scale'])))",
        accounts.join(" || "),
        list(deciders),
        list(builtin_groups()),
    )
}

/// Nodes that come, report, and become usable.
fn nodes() -> String {
    let of = |object: &str, part: &str, field: &str, none: &str| {
        format!("(has({object}.{part}) && has({object}.{part}.{field}) ? {object}.{part}.{field} : {none})")
    };
    let (new_taints, old_taints) = (of("object", "spec", "taints", "[]"), of("oldObject", "spec", "taints", "[]"));
    let (new_labels, old_labels) =
        (of("object", "metadata", "labels", "{}"), of("oldObject", "metadata", "labels", "{}"));
    let cordoned = |object: &str| of(object, "spec", "unschedulable", "false");
    // of a taint, key and effect are what counts; the value is free
    let same = "n.key == o.key && n.effect == o.effect";
    format!(
        "(request.resource.group == '' && request.resource.resource == 'nodes' && (request.operation == 'CREATE' \
         || (request.operation == 'UPDATE' && ({SUBRESOURCE} == 'status' || ({SUBRESOURCE} == '' \
         && {new_taints}.all(n, {old_taints}.exists(o, {same})) && (!{} || {}) \
         && {old_labels}.all(k, k in {new_labels} && {new_labels}[k] == {old_labels}[k])\
         && {} == {})))))",
        cordoned("object"),
        cordoned("oldObject"),
        of("object", "metadata", "finalizers", "[]"),
        of("oldObject", "metadata", "finalizers", "[]"),
    )
}
