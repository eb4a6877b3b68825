//! Kinds come and go while the process runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use axum::body::Body;
use axum::http::{Request, Response};
use tower::service_fn;

use super::*;

/// An API server with pods, which serves the kind X of x.io, too, as long as `defined`.
fn server(defined: Arc<AtomicBool>) -> Client {
    let service = service_fn(move |call: Request<kube::client::Body>| {
        let defined = defined.load(Ordering::SeqCst);
        async move {
            let address = call.uri().to_string();
            let path = call.uri().path().to_owned();
            let resource = |name: &str, kind: &str| {
                format!(
                    r#"{{"resources":[{{"name":"{name}","kind":"{kind}","verbs":["list","watch"]}},
                    {{"name":"{name}/status","kind":"{kind}","verbs":["get"]}}]}}"#
                )
            };
            let (status, body) = match &*path {
                "/api/v1" => (200, resource("pods", "Pod")),
                "/apis/x.io" if defined => (
                    200,
                    r#"{"versions":[{"groupVersion":"x.io/v1"}],"preferredVersion":{"groupVersion":"x.io/v1"}}"#
                        .to_owned(),
                ),
                "/apis/x.io/v1" if defined => (200, resource("xs", "X")),
                "/api/v1/pods" | "/apis/x.io/v1/xs" if address.contains("watch=true") => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    if defined || path == "/api/v1/pods" { (200, String::new()) } else { (404, not_found()) }
                }
                "/api/v1/pods" => (200, r#"{"metadata":{"resourceVersion":"5"},"items":[]}"#.to_owned()),
                "/apis/x.io/v1/xs" if defined => (200, r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#.to_owned()),
                _ => (404, not_found()),
            };
            Ok::<_, std::convert::Infallible>(Response::builder().status(status).body(Body::from(body)).unwrap())
        }
    });
    Client::new(service, "default")
}

fn not_found() -> String {
    r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"NotFound","code":404}"#.to_owned()
}

/// Waits until this is told, in a word, of this kind.
fn until(told: &Receiver<(Kind, KindEvent)>, kind: &Kind, word: &str) {
    loop {
        let (of, said) = told.recv_timeout(Duration::from_secs(10)).unwrap();
        let said = format!("{said:?}");
        if of == *kind && said.starts_with(word) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_are_followed_as_they_are_wanted_and_served() {
    let defined = Arc::new(AtomicBool::new(false));
    let (events, told) = channel();
    let nudge = Arc::new(Notify::new());
    let (again, receiver) = watch::channel(0);
    let kinds = Kinds::new(server(defined.clone()), events, nudge.clone(), receiver);
    let (pods, custom) = (Kind::new("", "Pod"), Kind::new("x.io", "X"));
    let both = Wanted { kinds: BTreeSet::from([pods.clone(), custom.clone()]), every: false };
    let (want, wanted) = watch::channel(both);
    let running = tokio::spawn(kinds.run(wanted));
    tokio::task::spawn_blocking(move || {
        until(&told, &custom, "Wanted");
        until(&told, &custom, "Absent");
        until(&told, &pods, "Listed");
        defined.store(true, Ordering::SeqCst);
        nudge.notify_one();
        until(&told, &custom, "Listed");
        defined.store(false, Ordering::SeqCst);
        until(&told, &custom, "Lost");
        until(&told, &custom, "Absent");
        again.send_modify(|times| *times += 1);
        until(&told, &pods, "Listed");
        want.send_replace(Wanted { kinds: BTreeSet::from([custom.clone()]), every: false });
        until(&told, &pods, "Unwanted");
    })
    .await
    .unwrap();
    running.abort();
}

#[tokio::test]
async fn which_kinds_there_are_is_not_known_where_the_groups_are_not_listed() {
    let (events, _told) = channel();
    let kinds = Kinds::new(server(Arc::default()), events, Arc::default(), watch::channel(0).1);
    assert!(kinds.all().await.is_err());
}
