//! Every form of answer, without a socket.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;

use super::*;
use crate::serve::active::Active;
use crate::serve::fixtures::{Scripted, review, series, terms, until, workers};
use crate::serve::in_flight_log::InFlightLog;

struct Webhook {
    script: Arc<Scripted>,
    metrics: Metrics,
    workers: Workers,
    router: Router,
}

/// One worker, and one that may wait.
fn webhook(terms: Terms) -> Webhook {
    let (script, metrics) = (Arc::new(Scripted::default()), Metrics::default());
    let own = workers(&Arc::new(Scripted::default()), 1, 1, &metrics);
    let workers = workers(&script, 1, 1, &metrics);
    let router = router([workers.clone(), own], terms, metrics.clone(), (None, None), Segments::default(), None);
    Webhook { script, metrics, workers, router }
}

impl Webhook {
    async fn send(&self, query: &str, body: impl Into<Body>) -> (StatusCode, Value) {
        let request = Request::post(format!("{}{query}", paths::PATH)).body(body.into()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let review: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&review["kind"], &review["apiVersion"]),
            (&"AdmissionReview".into(), &"admission.k8s.io/v1".into())
        );
        (status, review["response"].clone())
    }

    async fn judge(&self, uid: &str, name: &str) -> Value {
        let (status, response) = self.send("?timeout=10s", review(uid, name).to_string()).await;
        assert_eq!((status, response["uid"].as_str()), (StatusCode::OK, Some(uid)));
        response
    }

    /// Occupies the worker and the place in the queue.
    async fn fill(&self) -> [tokio::task::JoinHandle<()>; 2] {
        let waiting = |uid: &str| {
            let body = review(uid, "waits").to_string();
            let asked = self.router.clone().oneshot(Request::post(paths::PATH).body(Body::from(body)).unwrap());
            tokio::spawn(async move { assert_eq!(asked.await.unwrap().status(), StatusCode::OK) })
        };
        let first = waiting("first");
        until("the first request is at work", || series(&self.metrics, "suture_queue_wait_seconds_count") == 1.0).await;
        let second = waiting("second");
        until("the second one waits", || series(&self.metrics, "suture_queue_length") == 1.0).await;
        [first, second]
    }
}

#[tokio::test]
async fn what_a_cluster_needs_to_come_up_is_refused_only_for_what_was_shown() {
    let webhook = webhook(terms(OnUndecided::Deny));
    for (name, passes) in [("web", true), ("denied", false), ("undecided", true), ("panics", true)] {
        let body = Body::from(review("u-1", name).to_string());
        let request = Request::post(paths::path(None, Door::Essential)).body(body).unwrap();
        let response = webhook.router.clone().oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let response = &serde_json::from_slice::<Value>(&body).unwrap()["response"];
        assert_eq!(response["allowed"], passes, "{name}: {response}");
        let decided = ["web", "denied"].contains(&name);
        assert_eq!(response["warnings"].is_array(), !decided, "{name}: {response}");
        // elsewhere it does not pass
        assert_eq!(webhook.judge("u-2", name).await["allowed"], name == "web", "{name}");
    }
}

/// A review about one of Suture's own resources.
fn own_review(uid: &str, name: &str) -> Value {
    let mut review = review(uid, name);
    review["request"]["resource"] =
        serde_json::json!({"group": resources::GROUP, "version": "v1alpha1", "resource": "namespacedinvariants"});
    review
}

#[tokio::test]
async fn suture_s_own_resources_wait_for_no_decision_and_are_never_refused_unjudged() {
    let webhook = webhook(terms(OnUndecided::Deny));
    let waiting = webhook.fill().await;
    let send = |name: &'static str| {
        let text = own_review("u-1", name).to_string();
        // one of unknown length may be large, and waits for those
        let request = Request::post(paths::path(None, Door::Resources)).header(CONTENT_LENGTH, text.len());
        webhook.router.clone().oneshot(request.body(Body::from(text)).unwrap())
    };
    let answer = async |response: Response| {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<Value>(&body).unwrap()["response"].clone()
    };
    // all workers are busy, and no place is left to wait
    assert_eq!(webhook.judge("u-2", "web").await["status"]["code"], 429);
    let allowed = answer(send("web").await.unwrap()).await;
    assert_eq!((&allowed["allowed"], allowed["warnings"].is_array()), (&true.into(), false), "{allowed}");
    assert_eq!(answer(send("denied").await.unwrap()).await["allowed"], false, "what does not compile is refused");
    let panicked = answer(send("panics").await.unwrap()).await;
    assert_eq!((&panicked["allowed"], panicked["warnings"].is_array()), (&true.into(), true), "{panicked}");
    webhook.script.open();
    for waiting in waiting {
        waiting.await.unwrap();
    }
}

#[tokio::test]
async fn requests_are_allowed_and_denied() {
    let webhook = webhook(terms(OnUndecided::Deny));
    let allowed = webhook.judge("u-1", "web").await;
    assert_eq!((&allowed["allowed"], &allowed["auditAnnotations"]["decision"]), (&true.into(), &"allowed".into()));
    let denied = webhook.judge("u-2", "denied").await;
    assert_eq!((&denied["allowed"], &denied["status"]["code"]), (&false.into(), &403.into()));
    assert_eq!(denied["status"]["message"], "no endpoint would be left\n- web is deleted");
    assert_eq!(series(&webhook.metrics, "suture_decisions_total{outcome=\"allowed\"}"), 1.0);
    assert_eq!(series(&webhook.metrics, "suture_decisions_total{outcome=\"denied\"}"), 1.0);
    assert_eq!(series(&webhook.metrics, "suture_decision_duration_seconds_count"), 2.0);
}

/// What is logged, as far as a test reads it.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_is_denied_is_logged_with_its_request() {
    for (level, plain) in [("info", false), ("debug", true)] {
        let lines = Lines::default();
        let writer = lines.clone();
        let logs = tracing_subscriber::fmt::layer().json().with_writer(move || writer.clone());
        let logs = logs.with_filter(tracing_subscriber::EnvFilter::new(level));
        let _logging = tracing::subscriber::set_default(tracing_subscriber::registry().with(logs));
        // another test's thread may have asked a moment ago whether anybody listens
        tracing::callsite::rebuild_interest_cache();
        let webhook = webhook(terms(OnUndecided::Deny));
        webhook.judge("u-1", "web").await;
        webhook.judge("u-2", "denied").await;
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let said = |uid: &str, name: &str| {
            let about = |line: &&str| line.contains("answered") && line.contains(&format!("\"uid\":\"{uid}\""));
            text.lines().any(|line| about(&line) && line.contains(&format!("\"name\":\"{name}\"")))
        };
        assert!(said("u-2", "denied"), "{level}: {text}");
        assert_eq!(said("u-1", "web"), plain, "{level}: {text}");
    }
}

#[tokio::test]
async fn malformed_bodies_get_a_review_that_refuses() {
    let webhook = webhook(terms(OnUndecided::Allow));
    let whole = review("u-1", "web").to_string();
    let cut = whole[..whole.len() / 2].to_owned();
    for (body, uid) in [(cut.as_str(), "u-1"), ("", ""), ("nonsense", ""), ("[1, 2]", ""), ("{}", "")] {
        let (status, response) = webhook.send("", body.to_owned()).await;
        assert_eq!((status, &response["allowed"]), (StatusCode::BAD_REQUEST, &false.into()), "{body}");
        assert_eq!((&response["uid"], &response["status"]["code"]), (&uid.into(), &400.into()), "{body}");
    }
    let other = whole.replace("AdmissionReview", "TokenReview");
    let (status, response) = webhook.send("", other).await;
    assert_eq!((status, &response["allowed"], &response["uid"]), (StatusCode::OK, &false.into(), &"u-1".into()));
    assert_eq!(series(&webhook.metrics, "suture_decisions_total{outcome=\"invalid\"}"), 6.0);
}

#[tokio::test]
async fn bodies_that_are_too_large_are_refused_by_name() {
    let webhook = webhook(terms(OnUndecided::Allow));
    let mut large = review("u-1", "web");
    large["request"]["oldObject"]["data"] = "x".repeat(BODY_MAX_BYTES).into();
    let (status, response) = webhook.send("", large.to_string()).await;
    assert_eq!((status, &response["uid"], &response["allowed"]), (StatusCode::OK, &"u-1".into(), &false.into()));
    assert_eq!(
        (&response["status"]["code"], &response["status"]["reason"]),
        (&413.into(), &"RequestEntityTooLarge".into())
    );
    let (status, _) = webhook.send("", " ".repeat(BODY_MAX_BYTES + 1)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn the_largest_objects_are_judged() {
    let webhook = webhook(terms(OnUndecided::Deny));
    let mut large = review("u-1", "denied");
    large["request"]["oldObject"]["data"] = "x".repeat(3 << 20).into();
    let (status, response) = webhook.send("", large.to_string()).await;
    assert_eq!((status, &response["status"]["code"]), (StatusCode::OK, &403.into()));
}

#[tokio::test]
async fn a_full_queue_sheds_at_once_as_declared() {
    for (declared, allowed) in [(OnUndecided::Deny, false), (OnUndecided::Warn, true), (OnUndecided::Allow, true)] {
        let webhook = webhook(terms(declared));
        let waiting = webhook.fill().await;
        let shed = webhook.judge("third", "web").await;
        assert_eq!((&shed["allowed"], &shed["auditAnnotations"]["decision"]), (&allowed.into(), &"shed".into()));
        if !allowed {
            assert_eq!(shed["status"]["code"], 429);
            assert_eq!(shed["status"]["details"]["retryAfterSeconds"], 1);
        }
        assert_eq!(series(&webhook.metrics, "suture_shed_total"), 1.0);
        webhook.script.open();
        for waiting in waiting {
            waiting.await.unwrap();
        }
        assert_eq!(webhook.judge("fourth", "web").await["auditAnnotations"]["decision"], "allowed");
    }
}

#[tokio::test]
async fn what_is_shed_is_answered_by_its_uid_without_being_read() {
    let webhook = webhook(terms(OnUndecided::Deny));
    let waiting = webhook.fill().await;
    let (status, shed) = webhook.send("", r#"{"request":{"uid":"u-9","object":"#).await;
    assert_eq!((status, &shed["uid"], &shed["status"]["code"]), (StatusCode::OK, &"u-9".into(), &429.into()));
    let (status, lost) = webhook.send("", "{").await;
    assert_eq!((status, &lost["allowed"]), (StatusCode::BAD_REQUEST, &false.into()));
    webhook.script.open();
    for waiting in waiting {
        waiting.await.unwrap();
    }
}

#[tokio::test]
async fn a_panic_is_answered_and_its_worker_replaced() {
    let webhook = webhook(terms(OnUndecided::Deny));
    for round in 1..=3 {
        let failed = webhook.judge("u-1", "panics").await;
        assert_eq!((&failed["allowed"], &failed["status"]["code"]), (&false.into(), &500.into()));
        assert_eq!(series(&webhook.metrics, "suture_panics_total"), f64::from(round));
        assert_eq!(webhook.judge("u-2", "web").await["allowed"], true);
    }
    assert_eq!(webhook.script.made.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn an_overrun_is_answered_in_time_and_its_worker_replaced() {
    let webhook = webhook(Terms { margin: Duration::from_millis(800), ..terms(OnUndecided::Deny) });
    let began = now();
    let (status, late) = webhook.send("?timeout=1s", review("u-1", "waits").to_string()).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!((status, &late["status"]["code"]), (StatusCode::OK, &504.into()));
    assert_eq!(series(&webhook.metrics, "suture_overruns_total"), 1.0);
    // the gate is still shut: only another worker can answer
    assert_eq!(webhook.judge("u-2", "web").await["allowed"], true);
    assert_eq!(series(&webhook.metrics, "suture_workers_replaced_total"), 1.0);
    assert_eq!(webhook.workers.alive(), Ok(()));
    webhook.script.open();
}

#[test]
fn an_answer_is_due_within_the_timeout_and_never_later_than_ours() {
    let terms =
        Terms { deadline: Duration::from_secs(2), margin: Duration::from_millis(200), on_overload: OnUndecided::Deny };
    let arrived = now();
    let due = |query: Option<&str>| terms.due(arrived, query).saturating_duration_since(arrived).as_millis();
    assert_eq!(due(None), 2_000);
    assert_eq!(due(Some("timeout=30s")), 2_000);
    assert_eq!(due(Some("timeout=1s")), 800);
    assert_eq!(due(Some("timeout=100ms")), 0);
    assert_eq!(due(Some("timeout=nonsense")), 2_000);
}

#[tokio::test]
async fn nothing_else_is_served() {
    let webhook = webhook(terms(OnUndecided::Deny));
    let asked = |request: Request| webhook.router.clone().oneshot(request);
    let status = asked(Request::get(paths::PATH).body(Body::empty()).unwrap()).await.unwrap().status();
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    let status = asked(Request::post("/other").body(Body::empty()).unwrap()).await.unwrap().status();
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn who_does_not_know_the_address_is_not_answered() {
    let Webhook { metrics, workers, .. } = webhook(terms(OnUndecided::Deny));
    let segments = Segments::default();
    let crews = [workers.clone(), workers];
    let router = super::router(crews, terms(OnUndecided::Deny), metrics.clone(), (None, None), segments.clone(), None);
    let known = paths::derived("a key", 7);
    segments.set(known.clone(), Vec::new());
    let mut statuses = Vec::new();
    for segment in [None, Some("0123456789abcdef0123456789abcdef"), Some(&*known)] {
        // a body that never comes is not waited for
        let body = Body::from_stream(futures::stream::pending::<io::Result<axum::body::Bytes>>());
        let body = if segment == Some(&*known) { Body::from(review("u-1", "web").to_string()) } else { body };
        let request = Request::post(paths::path(segment, Door::Decide)).body(body).unwrap();
        statuses.push(router.clone().oneshot(request).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [404, 404, 200]);
    assert_eq!(series(&metrics, "suture_strangers_total"), 2.0);
}

#[tokio::test]
async fn yes_goes_out_in_the_term_of_the_lease_in_which_it_was_decided() {
    let Webhook { metrics, workers, .. } = webhook(terms(OnUndecided::Allow));
    let active = Active::held();
    let followers = Some(Followers::of(Arc::new(InFlightLog::lasting(60)), active.clone(), "a"));
    let (large, segments) = (Arc::new(Semaphore::new(1)), Segments::default());
    let handler = WebhookHandler {
        own: workers.clone(),
        workers,
        terms: terms(OnUndecided::Allow),
        metrics,
        large,
        followers,
        spendings: None,
        segments,
        disclosure: None,
        door: Door::Decide,
    };
    let confirm =
        |term: Option<u64>| handler.confirm(Answer { term, ..Answer::allowed() }, now() + Duration::from_secs(60));
    let term = active.term();
    assert!(confirm(Some(term)).await.allowed);
    let other = confirm(Some(term + 1)).await;
    assert_eq!((other.allowed, other.code), (false, 503));
    active.leave();
    assert!(!confirm(Some(term)).await.allowed);
    assert!(confirm(None).await.allowed, "any replica may answer that");
}
