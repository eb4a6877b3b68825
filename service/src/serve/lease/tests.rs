//! Who holds the Lease, and when it decides, before an API server that has nothing else.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use tower::service_fn;

use super::*;
use crate::serve::in_flight_log::InFlightLog;

const LANDING: Duration = Duration::from_secs(60);

/// Holds one Lease, as an API server does.
#[derive(Clone, Default)]
struct Server {
    lease: Arc<Mutex<Option<Value>>>,
    version: Arc<AtomicU64>,
    down: Arc<AtomicBool>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |call: Request<Body>| {
            let server = server.clone();
            async move {
                let method = call.method().as_str().to_owned();
                let body = call.into_body().collect().await?.to_bytes();
                let (code, answer) = server.answer(&method, serde_json::from_slice(&body).ok());
                let answer = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(answer?)
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, method: &str, body: Option<Value>) -> (u16, Value) {
        let failed = |code: u16| {
            (code, json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "no", "code": code}))
        };
        if self.down.load(Ordering::SeqCst) {
            return failed(503);
        }
        let mut lease = self.lease.lock().unwrap();
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        match (method, lease.as_ref(), body) {
            ("GET", Some(held), _) => (200, held.clone()),
            ("GET", None, _) | ("PUT", None, _) => failed(404),
            ("POST", Some(_), _) => failed(409),
            ("PUT", Some(held), Some(new)) if version(held) != version(&new) => failed(409),
            (_, _, Some(mut new)) => {
                let next = self.version.fetch_add(1, Ordering::SeqCst) + 1;
                new["metadata"]["resourceVersion"] = json!(next.to_string());
                *lease = Some(new.clone());
                (200, new)
            }
            _ => failed(400),
        }
    }

    fn candidate(&self, identity: &str) -> Candidate {
        let active = Active::default();
        let followers = Followers::of(Arc::new(InFlightLog::lasting(60)), active.clone(), identity);
        let own = Candidacy { identity: identity.to_owned(), address: "127.0.0.1:1".to_owned(), landing: LANDING };
        Candidate::new(self.client(), "suture-system", own, active, followers, watch::channel(0).0)
    }

    fn followers(&self) -> String {
        said(self.lease.lock().unwrap().as_ref().unwrap(), FOLLOWERS)
    }

    fn edit(&self, pointer: &str, value: Value) {
        let mut lease = self.lease.lock().unwrap();
        let lease = lease.as_mut().unwrap();
        *lease.pointer_mut(pointer).unwrap() = value;
        lease["metadata"]["resourceVersion"] = json!((self.version.fetch_add(1, Ordering::SeqCst) + 1).to_string());
    }
}

impl Candidate {
    /// As if so much time had passed since it saw the Lease change.
    fn wait(&mut self, time: Duration) {
        self.seen = self.seen.take().map(|(version, since)| (version, since.checked_sub(time).unwrap()));
    }

    fn settle(&self) {
        self.active.settle(now());
    }

    /// As if it had written the Lease with these names.
    async fn name(&mut self, names: &BTreeSet<String>) {
        self.try_hold(names).await.unwrap();
    }

    /// What it says, as if no time had passed since its last renewal.
    fn state(&self) -> String {
        self.active.stretch();
        self.active.check().err().unwrap_or_else(|| "active".to_owned())
    }
}

#[test]
fn times_have_six_decimals() {
    assert_eq!(micro_time("2026-11-21T14:00:00Z"), "2026-11-21T14:00:00.000000Z");
    assert_eq!(micro_time("2026-11-21T14:00:00.5Z"), "2026-11-21T14:00:00.500000Z");
    assert_eq!(micro_time("2026-11-21T14:00:00.123456789Z"), "2026-11-21T14:00:00.123456Z");
}

#[tokio::test]
async fn who_stands_by_takes_over_only_when_the_lease_was_not_renewed_and_waits_for_what_may_land() {
    let server = Server::default();
    let (mut first, mut second) = (server.candidate("a"), server.candidate("b"));
    first.attempt().await;
    assert!(first.state().contains("just become active"), "nobody was there before");
    first.settle();
    assert_eq!(first.state(), "active");
    second.attempt().await;
    assert!(second.state().contains("`a` is active"));
    let address = second.leader().borrow().clone().unwrap().address;
    assert_eq!(address, "127.0.0.1:1");
    second.wait(LEASE * 2);
    first.attempt().await;
    second.attempt().await;
    assert!(second.state().contains("`a` is active"), "it was renewed");
    second.wait(LEASE * 2);
    second.attempt().await;
    assert!(second.state().contains("may still land"));
    first.attempt().await;
    assert!(first.state().contains("`b` is active"));
}

#[tokio::test]
async fn one_whose_copy_the_lease_names_decides_at_once_and_comes_first() {
    let server = Server::default();
    let (mut first, mut copied, mut other) = (server.candidate("a"), server.candidate("b"), server.candidate("c"));
    first.attempt().await;
    let name = copied.followers.process().to_owned();
    server.edit("/metadata/annotations/suture.dev~1followers", json!(format!("x/1,{name}")));
    for candidate in [&mut copied, &mut other] {
        candidate.attempt().await;
        candidate.wait(LEASE + RENEW_EVERY);
    }
    other.attempt().await;
    assert!(other.state().contains("`a` is active"));
    copied.attempt().await;
    assert_eq!(copied.state(), "active");
}

#[tokio::test]
async fn another_process_of_the_same_name_is_another_replica() {
    let server = Server::default();
    let (mut first, mut again) = (server.candidate("a"), server.candidate("a"));
    first.attempt().await;
    again.attempt().await;
    assert!(again.state().contains("`a` is active"));
    again.wait(LEASE * 2);
    again.attempt().await;
    assert!(again.state().contains("may still land"));
}

#[tokio::test]
async fn a_lease_that_was_given_back_is_taken_at_once() {
    let server = Server::default();
    let (mut first, mut second) = (server.candidate("a"), server.candidate("b"));
    first.attempt().await;
    second.attempt().await;
    first.hand_over().await;
    second.attempt().await;
    assert!(second.state().contains("just become active"), "nothing was in flight: {}", second.state());
}

#[tokio::test]
async fn a_lease_that_was_given_back_is_for_those_that_have_a_copy() {
    let server = Server::default();
    let (mut first, mut copied, mut other) = (server.candidate("a"), server.candidate("b"), server.candidate("c"));
    let names = BTreeSet::from([copied.followers.process().to_owned()]);
    first.name(&names).await;
    assert!(server.followers().is_empty(), "nobody, by the write that takes it");
    first.attempt().await;
    first.settle();
    first.name(&names).await;
    assert!(!server.followers().is_empty());
    first.hand_over().await;
    other.attempt().await;
    assert!(other.state().contains("no replica is active"));
    copied.attempt().await;
    assert_eq!(copied.state(), "active");
}

#[tokio::test]
async fn a_lease_is_not_given_back_before_what_another_one_admitted_has_landed() {
    let server = Server::default();
    let (mut first, mut second, mut third) = (server.candidate("a"), server.candidate("b"), server.candidate("c"));
    first.attempt().await;
    for candidate in [&mut second, &mut third] {
        candidate.attempt().await;
        candidate.wait(LEASE * 2);
    }
    second.attempt().await;
    assert!(second.state().contains("may still land"));
    second.hand_over().await;
    third.attempt().await;
    assert!(third.state().contains("`b` is active"));
    third.wait(LEASE * 2);
    third.attempt().await;
    assert!(third.state().contains("may still land"));
}

#[tokio::test]
async fn a_lease_that_was_taken_without_an_answer_is_held_as_it_was_taken() {
    let server = Server::default();
    let (mut first, mut copied) = (server.candidate("a"), server.candidate("b"));
    first.attempt().await;
    let name = copied.followers.process().to_owned();
    server.edit("/metadata/annotations/suture.dev~1followers", json!(name));
    copied.attempt().await;
    copied.wait(LEASE * 2);
    // the write goes through, and its answer is not waited for
    copied.try_hold(&BTreeSet::new()).await.unwrap();
    copied.written = None;
    copied.attempt().await;
    assert_eq!(copied.state(), "active");
}

#[tokio::test]
async fn a_holder_goes_on_after_an_outage_and_after_somebody_edited_the_lease() {
    let server = Server::default();
    let mut holder = server.candidate("a");
    holder.attempt().await;
    holder.settle();
    server.down.store(true, Ordering::SeqCst);
    holder.attempt().await;
    assert_eq!(holder.state(), "active", "until its time is up");
    server.down.store(false, Ordering::SeqCst);
    holder.attempt().await;
    server.edit("/spec/renewTime", json!("2026-11-21T14:00:00.000000Z"));
    holder.attempt().await;
    assert_eq!(holder.state(), "active");
    *server.lease.lock().unwrap() = None;
    holder.attempt().await;
    holder.attempt().await;
    assert_eq!(holder.state(), "active", "deleted, and made anew by the same");
}

#[tokio::test]
async fn a_lease_that_was_deleted_is_not_taken_before_its_holder_has_stopped() {
    let server = Server::default();
    let (mut first, mut second) = (server.candidate("a"), server.candidate("b"));
    first.attempt().await;
    second.attempt().await;
    *server.lease.lock().unwrap() = None;
    second.attempt().await;
    assert!(server.lease.lock().unwrap().is_none());
    second.wait(LEASE * 2);
    second.attempt().await;
    assert!(second.state().contains("may still land"));
}
