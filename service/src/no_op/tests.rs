//! What may be passed over, and what may not.

use super::*;
use crate::input::Source;
use crate::policy::Documents;

const SHIPPED: &str = "{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: a}, spec: {template: service-keeps-endpoints}}";
const READING: &str =
    "{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: b}, spec: {forEach: {var: p, kind: Pod},
    require: [{expression: \"p.annotation('read') == ''\"}]}}";
const STRICT: &str = "{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: c}, spec: {template: service-keeps-endpoints, violations: Strict}}";

fn policy(documents: &[&str]) -> Policy {
    let source = Source { name: "a test".to_owned(), text: documents.join("\n---\n") };
    Documents::read(&[source]).expect("documents").compile().expect("a policy")
}

fn pod(more: &str) -> Val {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a","namespace":"n","uid":"u"{more}}},
            "spec":{{"nodeName":"node","containers":[{{"name":"c","image":"i"}}]}}}}"#
    );
    serde_json::from_str(&text).expect("JSON")
}

/// An update between two versions of a pod.
fn update(old: &str, new: &str, subresource: &str) -> Request {
    let mut review = Val::object([
        ("uid", Val::str("1")),
        ("operation", Val::str("UPDATE")),
        ("kind", Val::object([("group", Val::str("")), ("version", Val::str("v1")), ("kind", Val::str("Pod"))])),
        ("resource", Val::object([("group", Val::str("")), ("resource", Val::str("pods"))])),
        ("name", Val::str("a")),
        ("namespace", Val::str("n")),
        ("userInfo", Val::object([("username", Val::str("ana"))])),
        ("object", pod(new)),
        ("oldObject", pod(old)),
    ]);
    if !subresource.is_empty() {
        review = review.with("subResource", Val::str(subresource));
    }
    Request::from_review(&Val::object([
        ("apiVersion", Val::str("admission.k8s.io/v1")),
        ("kind", Val::str("AdmissionReview")),
        ("request", review),
    ]))
    .expect("a request")
}

fn passed(policy: &Policy, request: &Request) -> bool {
    RelevantFields::of(policy).is_no_op(request, policy)
}

#[test]
fn a_note_that_nothing_reads_is_passed_over() {
    let policy = policy(&[SHIPPED]);
    let noted = r#","annotations":{"note":"x"}"#;
    assert!(passed(&policy, &update("", noted, "")));
    assert!(passed(&policy, &update(noted, r#","annotations":{"note":"y"}"#, "status")));
    assert!(passed(&policy, &update("", r#","resourceVersion":"7","managedFields":[{"manager":"m"}]"#, "")));
    assert!(writes(&update("", noted, "")), "it is stored all the same");
    assert!(!writes(&update("", r#","resourceVersion":"7""#, "")), "this is not");
}

#[test]
fn what_may_be_read_is_judged() {
    let policy = policy(&[SHIPPED]);
    for more in [
        r#","labels":{"note":"x"}"#,
        r#","finalizers":["a/b"]"#,
        r#","annotations":{"controller.kubernetes.io/pod-deletion-cost":"7"}"#,
        r#","deletionTimestamp":"2026-01-01T00:00:00Z""#,
        r#","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"v"}]"#,
    ] {
        assert!(!passed(&policy, &update("", more, "")), "{more}");
    }
    let created = Request { operation: Operation::Create, ..update("", "", "") };
    assert!(!passed(&policy, &created));
}

#[test]
fn an_invariant_may_read_more() {
    let policy = policy(&[SHIPPED, READING]);
    assert!(!passed(&policy, &update("", r#","annotations":{"read":"x"}"#, "")));
    assert!(passed(&policy, &update("", r#","annotations":{"other":"x"}"#, "")));
}

#[test]
fn a_strict_invariant_blames_writes_that_change_nothing() {
    let policy = policy(&[SHIPPED, STRICT]);
    assert!(!passed(&policy, &update("", r#","annotations":{"note":"x"}"#, "")));
}
