//! What a request changes reads as shown.

use std::sync::Arc;

use suture_model::adapter::NoAdapters;
use suture_model::change::User;
use suture_model::ingest::parse_documents;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;

use super::*;

fn val(yaml: &str) -> Val {
    parse_documents(yaml, "a.yaml").unwrap().remove(0).val
}

#[track_caller]
fn expect(old: &str, new: &str, told: &str) {
    let snapshot = Snapshot::new(Arc::new(NoAdapters));
    let before = State::new(&snapshot);
    let head = r#""apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}"#;
    let whole = |rest: &str| val(&format!("{{{head},{rest}}}"));
    let request = Request::update(User::admin(), &before, &whole(new), "").unwrap();
    let request = Request { old: Some(whole(old)), ..request };
    let said = describe_changes(&request, &before);
    assert_eq!(said, format!("kubernetes-admin updates Deployment/shop/web{told}"));
}

#[test]
fn an_update_says_what_it_changes_from_what_to_what() {
    expect(r#""spec":{"replicas":3}"#, r#""spec":{"replicas":1}"#, ": replicas 3 → 1");
    expect(
        r#""spec":{"replicas":3}"#,
        r#""spec":{"paused":false}"#,
        ": replicas 3 → 1, since it is left out, paused none → false",
    );
    expect(r#""spec":{"replicas":3}"#, r#""spec":{"replicas":3},"status":{"replicas":1}"#, "");
    expect(
        r#""spec":{"template":{"spec":{"containers":[{"name":"a","image":"x:1"},{"name":"b","image":"y:1"}]}}}"#,
        r#""spec":{"template":{"spec":{"containers":[{"name":"b","image":"y:2"},{"name":"a","image":"x:1"}]}}}"#,
        ": template.containers[b].image y:1 → y:2",
    );
    expect(
        r#""spec":{"a":1,"b":1,"c":1,"d":1,"replicas":2}"#,
        r#""spec":{"a":2,"b":2,"c":2,"d":2,"replicas":1}"#,
        ": replicas 2 → 1, a 1 → 2, b 1 → 2 and 2 more fields",
    );
}

/// The API server writes no number where it is 0.
#[test]
fn a_scale_without_a_number_asks_for_none() {
    let snapshot = Snapshot::new(Arc::new(NoAdapters));
    let before = State::new(&snapshot);
    let scale = |spec: &str| {
        val(&format!(
            "{{apiVersion: autoscaling/v1, kind: Scale, metadata: {{name: web, namespace: shop}}, spec: {spec}}}"
        ))
    };
    let target = Key::of("Deployment", "shop", "web");
    let request = Request { object: Some(scale("{}")), ..Request::scale(User::admin(), &before, target, 0) };
    let told = |old: Option<Val>| describe_changes(&Request { old, ..request.clone() }, &before);
    assert_eq!(told(Some(scale("{replicas: 2}"))), "kubernetes-admin scales Deployment/shop/web from 2 to 0");
    assert_eq!(told(None), "kubernetes-admin scales Deployment/shop/web to 0");
}

#[test]
fn what_may_be_a_secret_is_not_shown() {
    expect(
        r#""spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"P","value":"s3cret"}]}]}}}"#,
        r#""spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"P","value":"t0psecret"}]}]}}}"#,
        ": template.containers[a].env[P].value changed",
    );
    expect(r#""data":{"k":"s3cret"}"#, r#""data":{"k":"other"}"#, ": data.k changed");
}
