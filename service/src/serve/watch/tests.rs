//! Following a kind through a scripted API server.

use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::{Request as Call, Response};
use tower::service_fn;

use super::*;
use crate::serve::kind_events::version_of;

/// What the server answers: for each call a part of its address, the status, and the body.
type Script = Vec<(&'static str, u16, String)>;

/// A client of a server that answers by the script, one call after the other, and then with 404.
fn scripted(script: Script) -> Client {
    let script = Arc::new(Mutex::new(VecDeque::from(script)));
    let service = service_fn(move |call: Call<kube::client::Body>| {
        let next = script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        async move {
            let address = call.uri().to_string();
            let (expected, status, body) = next.unwrap_or_else(|| ("", 404, error(404)));
            assert!(address.contains(expected), "`{address}` lacks `{expected}`");
            Ok::<_, std::convert::Infallible>(Response::builder().status(status).body(Body::from(body)).unwrap())
        }
    });
    Client::new(service, "default")
}

fn error(code: u16) -> String {
    format!(r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"x","code":{code}}}"#)
}

fn object(name: &str, version: u64) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","namespace":"n","resourceVersion":"{version}"}}}}"#)
}

fn list(token: &str, version: u64, items: &[String]) -> String {
    let items = items.join(",");
    format!(r#"{{"metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":[{items}]}}"#)
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn place() -> Place {
    Place {
        kind: Kind::new("", "ConfigMap"),
        api_version: "v1".into(),
        path: "/api/v1/configmaps".to_owned(),
        label_selector: None,
        resumes: false,
        keeps_values: false,
    }
}

/// What is told, in words.
async fn told(script: Script) -> Vec<String> {
    told_of(place(), script).await
}

async fn told_of(place: Place, script: Script) -> Vec<String> {
    let (events, heard) = channel();
    let task = tokio::spawn(follow(scripted(script), place, events, latest::channel(0).1));
    let listening = tokio::task::spawn_blocking(move || {
        // a name, with the value of a key where one was read
        let name = |object: &Val| {
            let name = name_of(object).map(|(_, name)| name.to_string()).unwrap_or_default();
            let value = object.str_at(&["data", "key"]).filter(|value| ***value != *suture_model::object::HIDDEN);
            value.map_or(name.clone(), |value| format!("{name}={value}"))
        };
        let mut words = Vec::new();
        while let Ok((_, told)) = heard.recv() {
            words.push(match told {
                KindEvent::Page(objects, taken) => {
                    _ = taken.send(());
                    assert!(objects.iter().all(|o| o.str_at(&["kind"]).is_some_and(|k| &**k == "ConfigMap")));
                    format!("page {}", objects.iter().map(name).collect::<Vec<_>>().join(" "))
                }
                KindEvent::Listed(List { names, version, .. }) => format!("listed {} at {version:?}", names.len()),
                KindEvent::Put(object) => format!("put {} at {:?}", name(&object), version_of(&object)),
                KindEvent::Gone(object) => format!("gone {} at {:?}", name(&object), version_of(&object)),
                KindEvent::Progress(version) => format!("progress {version}"),
                KindEvent::Failed(_) => "failed".to_owned(),
                KindEvent::Forbidden(resource) => format!("forbidden {resource}"),
                KindEvent::Wanted | KindEvent::Unwanted | KindEvent::Absent | KindEvent::Lost | KindEvent::Every => {
                    "odd".to_owned()
                }
            });
        }
        words
    });
    task.await.unwrap();
    listening.await.unwrap()
}

#[tokio::test]
async fn lists_in_pages_watches_resumes_and_lists_again_after_a_failure() {
    let bookmark = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"30"}}"#;
    let script = vec![
        ("limit=200", 200, list("more", 10, &[object("a", 3), object("b", 4)])),
        ("continue=more", 200, list("", 10, &[object("c", 5)])),
        ("resourceVersion=10", 200, event("ADDED", &object("d", 12)) + &event("DELETED", &object("a", 20))),
        ("resourceVersion=20", 200, event("BOOKMARK", bookmark)),
        ("resourceVersion=30", 500, error(500)),
        ("limit=200", 200, list("", 30, &[])),
        ("resourceVersion=30", 200, event("MODIFIED", &object("b", 31)) + &event("ERROR", &error(410))),
        ("limit=200", 200, list("", 40, &[object("b", 31)])),
        ("resourceVersion=40", 410, error(410)),
        ("limit=200", 200, r#"{"metadata":{"resourceVersion":"50"},"items":null}"#.to_owned()),
        ("resourceVersion=50", 404, error(404)),
    ];
    let expected = [
        "page a b",
        "page c",
        "listed 3 at Some(10)",
        "put d at Some(12)",
        "gone a at Some(20)",
        "progress 30",
        "failed",
        "listed 0 at Some(30)",
        "put b at Some(31)",
        "failed",
        "page b",
        "listed 1 at Some(40)",
        "failed",
        "listed 0 at Some(50)",
    ];
    assert_eq!(told(script).await, expected);
}

#[tokio::test]
async fn what_may_not_be_read_is_tried_again() {
    let script = vec![
        ("limit=200", 403, error(403)),
        ("limit=200", 200, list("", 10, &[object("a", 3)])),
        ("resourceVersion=10", 403, error(403)),
        ("limit=200", 404, error(404)),
    ];
    let expected = ["forbidden configmaps", "page a", "listed 1 at Some(10)", "forbidden configmaps"];
    assert_eq!(told(script).await, expected);
}

#[tokio::test]
async fn what_resumes_goes_on_where_it_was() {
    let script = vec![
        ("limit=200", 200, list("", 10, &[])),
        ("resourceVersion=10", 200, event("ADDED", &object("a", 12)) + &event("ERROR", &error(500))),
        ("resourceVersion=12", 500, error(500)),
        ("resourceVersion=12", 200, event("DELETED", &object("a", 20)) + &event("ERROR", &error(410))),
        ("limit=200", 200, list("", 40, &[])),
        ("resourceVersion=40", 404, error(404)),
    ];
    let expected = [
        "listed 0 at Some(10)",
        "put a at Some(12)",
        "failed",
        "failed",
        "gone a at Some(20)",
        "failed",
        "listed 0 at Some(40)",
    ];
    assert_eq!(told_of(Place { resumes: true, ..place() }, script).await, expected);
}

#[tokio::test]
async fn values_are_passed_over_but_those_of_announcements() {
    let object = |name: &str, version: u64| {
        format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}},"data":{{"key":"value"}}}}"#)
    };
    let script = || {
        vec![
            ("limit=200", 200, list("", 10, &[object("a", 3)])),
            ("resourceVersion=10", 200, event("ADDED", &object("b", 12)) + &event("ERROR", &error(410))),
            ("limit=200", 404, error(404)),
        ]
    };
    assert_eq!(told(script()).await, ["page a", "listed 1 at Some(10)", "put b at Some(12)", "failed"]);
    let kept = told_of(Place { keeps_values: true, ..place() }, script()).await;
    assert_eq!(kept, ["page a=value", "listed 1 at Some(10)", "put b=value at Some(12)", "failed"]);
}

#[tokio::test]
async fn a_line_that_breaks_off_is_asked_for_again() {
    let whole = event("ADDED", &object("a", 12));
    let half = whole.get(..whole.len() / 2).unwrap().to_owned();
    let script = vec![
        ("limit=200", 200, list("", 10, &[])),
        ("resourceVersion=10", 200, half),
        ("resourceVersion=10", 200, whole),
        ("resourceVersion=12", 404, error(404)),
    ];
    assert_eq!(told(script).await, ["listed 0 at Some(10)", "put a at Some(12)"]);
}
