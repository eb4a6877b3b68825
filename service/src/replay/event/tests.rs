//! What lines are read as.

use serde_json::json;

use super::*;

fn event(more: serde_json::Value) -> Recorded {
    let mut event = json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "id",
        "stage": "ResponseComplete", "requestURI": "/api/v1/namespaces/n/pods/a", "verb": "delete",
        "user": {"username": "ana"}, "objectRef": {"resource": "pods", "namespace": "n", "name": "a"},
        "responseStatus": {"code": 200}, "requestReceivedTimestamp": "2026-11-01T12:00:00.000000Z"});
    for (field, value) in more.as_object().unwrap() {
        event[field] = value.clone();
    }
    read(event.to_string().as_bytes())
}

fn write(more: serde_json::Value) -> Write {
    match event(more).entry {
        Entry::Writes(writes) => writes.into_iter().next().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_is_impersonated_asks() {
    let asked = write(json!({"impersonatedUser": {"username": "ben", "groups": ["g"]}})).request;
    assert_eq!((&*asked.user.username, asked.user.groups.len()), ("ben", 1));
}

#[test]
fn options_stand_in_the_body_or_in_the_address() {
    let of_body = write(json!({"requestObject": {"kind": "DeleteOptions", "propagationPolicy": "Orphan"}})).request;
    let of_address = write(json!({"requestURI": "/api/v1/x?propagationPolicy=Orphan&dryRun=All"})).request;
    assert_eq!(of_body.propagation, of_address.propagation);
    assert_eq!((of_body.dry_run, of_address.dry_run), (false, true));
}

#[test]
fn what_nothing_holds_any_more_is_gone() {
    let answer = |more: &str| {
        let text = format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"a","namespace":"n","uid":"u",
            "deletionTimestamp":"2026-11-01T12:00:00Z"{more}}}}}"#
        );
        write(json!({"responseObject": serde_json::from_str::<serde_json::Value>(&text).unwrap()})).stored
    };
    assert!(matches!(answer(""), Some(Stored::Gone(Some(uid))) if uid == "u"));
    assert!(matches!(answer(r#","deletionGracePeriodSeconds":30"#), Some(Stored::Object(_))));
    assert!(matches!(answer(r#","deletionGracePeriodSeconds":0,"finalizers":["f"]"#), Some(Stored::Object(_))));
}

#[test]
fn the_kind_of_a_custom_resource_is_in_the_answer() {
    let reference = json!({"resource": "widgets", "apiGroup": "example.com", "namespace": "n", "name": "w"});
    let widget = json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w", "namespace": "n"}});
    let asked = write(json!({"verb": "update", "objectRef": reference, "responseObject": widget})).request;
    assert_eq!(asked.target.to_string(), "Widget/n/w");
}

#[test]
fn values_of_a_secret_are_not_kept() {
    let reference = json!({"resource": "secrets", "namespace": "n", "name": "s"});
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "n"},
        "data": {"password": "aHVudGVyLTI="}});
    let asked = write(json!({"verb": "update", "objectRef": reference, "responseObject": secret}));
    assert!(!format!("{asked:?}").contains("aHVudGVyLTI="), "{asked:?}");
}

#[test]
fn connections_write_nothing() {
    for subresource in ["exec", "log", "proxy", "portforward"] {
        let reference = json!({"resource": "pods", "subresource": subresource, "namespace": "n", "name": "a"});
        let entry = event(json!({"verb": "create", "objectRef": reference})).entry;
        assert!(matches!(entry, Entry::Left(Left::NoFact)), "{subresource}: {entry:?}");
    }
}
