//! Which bodies are reviews, and when their answers are due.

use super::*;
use crate::serve::fixtures::{instant, review};

fn read_value(value: &serde_json::Value) -> Result<AdmissionCall, Unreadable> {
    read(value.to_string().as_bytes(), instant(), instant())
}

#[test]
fn a_review_is_read_once_and_whole() {
    let asked = read_value(&review("u-1", "web")).unwrap();
    assert_eq!((asked.uid.as_str(), asked.api_version), ("u-1", "admission.k8s.io/v1"));
    assert_eq!(asked.text(&["userInfo", "username"]), "ana");
    let request = suture_model::change::Request::from_review(&asked.review).unwrap();
    assert_eq!(request.target.to_string(), "Deployment/shop/web");
}

#[test]
fn nothing_is_left_out_but_who_set_which_field_of_an_object() {
    let mut whole = review("u-1", "web");
    let object = serde_json::json!({"metadata": {"name": "web", "labels": {"managedFields": "x"}, "n": null},
        "spec": {"managedFields": [1, 2.5, -3, true, "a"], "metadata": {"managedFields": {}}}});
    whole["request"]["object"] = object.clone();
    whole["request"]["oldObject"] = object;
    whole["metadata"] = serde_json::json!({"managedFields": 1});
    whole["request"]["options"]["metadata"] = serde_json::json!({"managedFields": 1});
    let plain: Val = serde_json::from_str(&whole.to_string()).unwrap();
    assert_eq!(read_value(&whole).unwrap().review, plain);
    for object in ["object", "oldObject"] {
        whole["request"][object]["metadata"]["managedFields"] = serde_json::json!([{"manager": "kubectl"}]);
    }
    assert_eq!(read_value(&whole).unwrap().review, plain);
    // of equal fields the last one counts, as anywhere in JSON
    let twice = whole.to_string().replacen("\"name\":\"web\"", "\"name\":\"other\",\"name\":\"web\"", 1);
    assert_eq!(read(twice.as_bytes(), instant(), instant()).unwrap().text(&["name"]), "web");
}

#[test]
fn values_of_secrets_do_not_come_to_memory() {
    let mut whole = review("u-1", "web");
    let secret = serde_json::json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "web"},
        "data": {"key": "c2VjcmV0"}, "stringData": {"other": "secret"}});
    whole["request"]["oldObject"] = secret.clone();
    // the API server writes what it is about first
    let kind = r#"{"group":"","version":"v1","kind":"Secret"}"#;
    whole["request"].as_object_mut().unwrap().remove("kind");
    whole["request"].as_object_mut().unwrap().remove("object");
    let first = format!("\"request\":{{\"kind\":{kind},\"object\":{secret},");
    let text = whole.to_string().replacen("\"request\":{", &first, 1);
    let read = read(text.as_bytes(), instant(), instant()).unwrap().review;
    for object in ["object", "oldObject"] {
        let object = read.at(&["request", object]).unwrap();
        assert_eq!(object.str_at(&["data", "key"]).map(|text| &**text), Some(suture_model::object::HIDDEN));
        assert_eq!(object.str_at(&["stringData", "other"]).map(|text| &**text), Some(suture_model::object::HIDDEN));
    }
    assert!(!format!("{read:?}").contains("ecret\", \"") && !format!("{read:?}").contains("c2VjcmV0"));
}

#[test]
fn a_review_of_an_object_that_is_nested_too_deep_is_read() {
    let mut whole = review("u-1", "web");
    for (operation, objects) in [("DELETE", &["oldObject"][..]), ("UPDATE", &["object", "oldObject"])] {
        whole["request"]["operation"] = operation.into();
        for object in ["object", "oldObject"] {
            whole["request"].as_object_mut().unwrap().remove(object);
        }
        let mut text = whole.to_string();
        for object in objects {
            let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
            let part = format!(r#""{object}":{{"kind":"A","metadata":{{"name":"web"}},"spec":{deep}}}"#);
            text = text.replacen("\"request\":{", &format!("\"request\":{{{part},"), 1);
        }
        let review = read(text.as_bytes(), instant(), instant()).unwrap().review;
        for object in objects {
            assert!(
                review.at(&["request", object]).unwrap().get("suture.dev/unread").is_some(),
                "{operation} {object}"
            );
        }
    }
}

#[test]
fn what_is_no_review_says_why_and_keeps_the_uid() {
    let mut other = review("u-1", "web");
    other["kind"] = "ConversionReview".into();
    let error = read_value(&other).unwrap_err();
    assert_eq!((error.http, error.uid.as_str()), (200, "u-1"));
    assert_eq!(error.message, "the body is no AdmissionReview");

    let mut old = review("u-1", "web");
    old["apiVersion"] = "admission.k8s.io/v2".into();
    let error = read_value(&old).unwrap_err();
    assert_eq!((error.http, error.uid.as_str(), error.api_version), (200, "u-1", "admission.k8s.io/v1"));

    let mut nameless = review("u-1", "web");
    nameless["request"]["uid"] = 7.into();
    assert_eq!(read_value(&nameless).unwrap_err().http, 400);
}

#[test]
fn an_answer_has_the_version_of_its_question() {
    let mut beta = review("u-1", "web");
    beta["apiVersion"] = "admission.k8s.io/v1beta1".into();
    assert_eq!(read_value(&beta).unwrap().api_version, "admission.k8s.io/v1beta1");
}

#[test]
fn a_broken_body_gives_its_uid_away_if_it_has_come_that_far() {
    let text = review("705ab4f5-6393-11e8-b7cc-42010a800002", "web").to_string();
    let known = text.find("\"web\"").unwrap();
    let early = text.find("705ab").unwrap();
    for end in 0..text.len() {
        let error = read(&text.as_bytes()[..end], instant(), instant()).unwrap_err();
        assert_eq!(error.http, 400, "{end}");
        if end >= known {
            assert_eq!(error.uid, "705ab4f5-6393-11e8-b7cc-42010a800002", "{end}");
        }
        if end <= early {
            assert_eq!(error.uid, "", "{end}");
        }
    }
}

#[test]
fn a_uid_that_is_none_is_not_repeated() {
    for uid in ["a b", "<script>", "", &"x".repeat(500)] {
        let body = format!("{{\"request\": {{\"uid\": \"{uid}\", ");
        assert_eq!(read(body.as_bytes(), instant(), instant()).unwrap_err().uid, "", "{uid}");
    }
}

#[test]
fn hostile_nesting_is_an_error_and_no_overflow() {
    let deep = format!("{{\"request\":{}", "[".repeat(1_000_000));
    assert_eq!(read(deep.as_bytes(), instant(), instant()).unwrap_err().http, 400);
}

#[test]
fn timeouts_are_go_durations() {
    let of = |query: &str| timeout_in(Some(query)).map(|timeout| timeout.as_millis());
    assert_eq!(of("timeout=10s"), Some(10_000));
    assert_eq!(of("a=b&timeout=1m30s"), Some(90_000));
    assert_eq!(of("timeout=1.5s"), Some(1_500));
    assert_eq!(of("timeout=250ms"), Some(250));
    for odd in ["", "timeout=", "timeout=10", "timeout=-1s", "timeout=0s", "timeout=s", "timeout=1y", "timeout=1e400s"]
    {
        assert_eq!(of(odd), None, "{odd}");
    }
    assert_eq!(timeout_in(None), None);
}
