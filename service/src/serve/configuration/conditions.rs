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
use suture_specs::spec::{Subject, SubjectKind};

use super::target::Installation;
use crate::never_asked::{HOUSEKEEPING, control_plane, own_group};
use crate::rules::Judged;

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
