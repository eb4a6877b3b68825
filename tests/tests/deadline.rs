//! Random large and deep objects, from eight clients at once: each gets its answer by its deadline, and no decision goes on
//! for long after that, whatever it is about. In a fixed time (`SUTURE_HOSTILE_SECONDS`), as the webhook decides.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what the test itself gets wrong may end it")]
#![expect(clippy::disallowed_methods, reason = "the test is about time")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_checker::decision::Effort;
use suture_model::kinds::Kind;
use suture_service::bench::measure::{resident_kib, resident_peak_kib};
use suture_service::bench::prng::Prng;
use suture_service::serve::answer::Answer;
use suture_service::serve::in_flight_log::InFlightLog;
use suture_service::serve::judge::{JudgePool, Replicas, SharedState};
use suture_service::serve::metrics::Metrics;
use suture_service::serve::policies::Policies;
use suture_service::serve::review::{self, AdmissionCall, Unreadable};
use suture_service::serve::store::{Change, Reading, Store};
use suture_service::serve::workers::{Decider, Deciders, Limits, Workers};
use suture_specs::spec::{OnUndecided, Profile};

mod lists;

use lists::{Long, cluster, merge};

/// How long it lasts when `SUTURE_HOSTILE_SECONDS` does not say.
const SECONDS: u64 = 10;
/// Clients at once.
const CLIENTS: u64 = 8;
/// Threads that decide.
const WORKERS: usize = 2;
/// When an answer is due, as `suture serve` has it.
const DEADLINE: Duration = Duration::from_millis(1_500);
/// How much later an answer, and the end of its decision, may be.
const LATE_MAX: Duration = Duration::from_millis(50);
/// Items of the longest lists.
const ITEMS_MAX: f64 = 10_000.0;
/// Bytes of the largest objects: what an API server takes.
const BYTES_MAX: usize = 3 << 20;

/// How late the latest decision ended, and what it was about.
type Latest = Arc<Mutex<(Duration, String)>>;

/// Judges, and notes how late each decision ends.
struct Timed {
    judges: JudgePool,
    latest: Latest,
}

struct TimedJudge {
    judge: Box<dyn Decider>,
    latest: Latest,
}

impl Deciders for Timed {
    fn decider(&self) -> Box<dyn Decider> {
        Box::new(TimedJudge { judge: self.judges.decider(), latest: self.latest.clone() })
    }
}

impl Decider for TimedJudge {
    fn decide(&mut self, asked: &AdmissionCall) -> Answer {
        let answer = self.judge.decide(asked);
        let late = Instant::now().saturating_duration_since(asked.deadline);
        let mut latest = self.latest.lock().unwrap();
        if late > latest.0 {
            let text = |path: &str| asked.text(&[path]).to_owned();
            let kind = asked.text(&["kind", "kind"]);
            *latest = (
                late,
                format!("{} {kind}/{}, {} bytes: {:?}", text("operation"), text("name"), asked.bytes, answer.effort),
            );
        }
        answer
    }
}

/// The strict profile before a cluster of which everything was read.
fn judges() -> JudgePool {
    let mut policies = Policies::of_files(Some(Profile::Strict), &[], &[]).unwrap();
    let loaded = policies.load();
    let snapshot = cluster(loaded.policy.adapters.clone());
    let kinds: Vec<Kind> = loaded.wanted.kinds.iter().cloned().collect();
    let store = Arc::new(Store::new(Arc::new(loaded)));
    let known = kinds.iter().map(|kind| Change::Read(kind.clone(), Reading::Known));
    let objects: Vec<Change> = snapshot.iter().map(|object| Change::Put(object.clone())).collect();
    store.write(known.chain(objects).chain([Change::Every]).collect());
    JudgePool(Arc::new(SharedState::new(store, Arc::new(InFlightLog::lasting(60)), Replicas::Audit)))
}

/// An object with one or two long lists, some of it nested deep.
fn object(lists: &[Long], prng: &mut Prng) -> Value {
    let long = |prng: &mut Prng| {
        let length = ITEMS_MAX.powf(prng.below(1_000) as f64 / 1_000.0).round() as usize;
        let long = prng.pick(lists).unwrap();
        (long.of)(length)
    };
    let mut object = long(prng);
    if prng.one_in(2) {
        let other = long(prng);
        if other["kind"] == object["kind"] {
            merge(&mut object, other);
        }
    }
    for _ in 0..prng.below(3) {
        let part = *prng.pick(&["spec", "metadata", "status", "data", "rules", "webhooks", "x"]).unwrap();
        // most are as deep as can be read
        let most = if prng.one_in(4) { 400 } else { 100 };
        let deep = nested(prng.below(most), prng);
        match object.get_mut(part).and_then(Value::as_object_mut) {
            Some(map) => {
                drop(map.insert(
                    prng.pick(&["x", "labels", "template", "selector", "containers"]).unwrap().to_string(),
                    deep,
                ))
            }
            None => object[part] = deep,
        }
    }
    object
}

fn nested(depth: usize, prng: &mut Prng) -> Value {
    let wide = prng.below(20);
    (0..depth).fold(json!("x"), |inner, level| match level % 3 {
        0 => json!([inner]),
        1 => json!({"a": inner}),
        _ => json!({"a": inner, "b": vec![level; wide]}),
    })
}

/// A review of a write of it; `None` where an API server would not take its length.
fn asked(uid: u64, lists: &[Long], prng: &mut Prng) -> Option<String> {
    let object = object(lists, prng);
    let old = if prng.one_in(3) { self::object(lists, prng) } else { object.clone() };
    let text = |part: &str| object[part].as_str().map(str::to_owned);
    let (api, kind) = (text("apiVersion")?, text("kind")?);
    let (group, version) = api.split_once('/').unwrap_or(("", &api));
    let mut old = old;
    // of what is asked for, whatever it was
    for part in ["apiVersion", "kind"] {
        old[part] = object[part].clone();
    }
    old["metadata"]["name"] = object["metadata"]["name"].clone();
    let (operation, object, old) = match prng.below(4) {
        0 => ("DELETE", Value::Null, old),
        1 => ("CREATE", object, Value::Null),
        _ => ("UPDATE", object, old),
    };
    let known = if object.is_null() { &old } else { &object };
    let request = json!({"uid": uid.to_string(), "operation": operation, "dryRun": true,
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
        "name": known["metadata"]["name"], "namespace": known["metadata"].get("namespace").unwrap_or(&Value::Null),
        "userInfo": {"username": format!("eve-{}", prng.below(3))}, "object": object, "oldObject": old});
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
    (review.len() <= 2 * BYTES_MAX).then_some(review)
}

/// What was seen of all answers.
#[derive(Default)]
struct Seen {
    /// By how much answers were late, what was asked, and what it took.
    latest: (Duration, String, Effort),
    took: Vec<Duration>,
    labels: BTreeMap<&'static str, usize>,
    /// Why something was undecided.
    reasons: BTreeMap<&'static str, usize>,
}

/// How much later than it asked for a thread wakes up that has nothing to do: what the machine does beside this.
fn oversleeping(done: Arc<AtomicBool>) -> thread::JoinHandle<Duration> {
    const NAP: Duration = Duration::from_millis(5);
    thread::spawn(move || {
        let mut most = Duration::ZERO;
        while !done.load(Ordering::Acquire) {
            let began = Instant::now();
            thread::sleep(NAP);
            most = most.max(began.elapsed().saturating_sub(NAP));
        }
        most
    })
}

#[test]
fn no_decision_goes_on_beyond_its_deadline() {
    let told = std::env::var("SUTURE_HOSTILE_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds = told.unwrap_or(SECONDS);
    let (latest, metrics) = (Latest::default(), Metrics::default());
    let timed = Timed { judges: judges(), latest: latest.clone() };
    let limits = Limits { workers: WORKERS, queue_len_max: 256 };
    let workers = Workers::start(Arc::new(timed), limits, metrics.clone());
    let start = resident_kib().unwrap_or(0);
    let (seen, end) = (Arc::new(Mutex::new(Seen::default())), Instant::now() + Duration::from_secs(seconds));
    let (done, one_by_one) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(())));
    let oversleeping = oversleeping(done.clone());
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (workers, runtime, seen) = (workers.clone(), runtime.clone(), seen.clone());
            let one_by_one = one_by_one.clone();
            thread::spawn(move || {
                let (lists, mut prng) = (lists::all(), Prng::new(0x5eed ^ client));
                for turn in 0.. {
                    if Instant::now() >= end {
                        return;
                    }
                    // the clients are no part of what is measured, and one thread reads what comes
                    let reading = one_by_one.lock().unwrap();
                    let Some(body) = asked(turn * CLIENTS + client, &lists, &mut prng) else { continue };
                    let about = format!("{} bytes, {}", body.len(), head(&body));
                    let arrived = Instant::now();
                    let call = review::read(body.as_bytes(), arrived, arrived + DEADLINE);
                    drop((reading, body));
                    one(&runtime, &workers, call, about, &seen);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    done.store(true, Ordering::Release);
    let overslept = oversleeping.join().unwrap();
    let Seen { latest: (late, about, effort), mut took, labels, reasons } = std::mem::take(&mut *seen.lock().unwrap());
    took.sort();
    let at = |part: usize| took.get(took.len().saturating_sub(1) * part / 100).copied().unwrap_or_default();
    let (ended, ended_about) = latest.lock().unwrap().clone();
    let (peak, count) = (resident_peak_kib().unwrap_or(0), took.len());
    println!("{count} requests in {seconds} s at {CLIENTS} clients: {labels:?}, undecided for {reasons:?}");
    println!("took p50 {:?}, p99 {:?}, at most {:?}, of {DEADLINE:?}", at(50), at(99), at(100));
    println!("answers were late by {late:?} at most: {about}, {effort:?}");
    println!("decisions ended {ended:?} after their deadline at most: {ended_about}");
    println!("a thread that slept woke up {overslept:?} late at most");
    println!("resident at the start {} MiB, at most {} MiB", start >> 10, peak >> 10);
    assert!(count > 0 && !labels.contains_key("panicked"), "{labels:?}");
    // where nobody asked for it the machine may do anything beside
    let most = if told.is_some() { LATE_MAX + overslept } else { Duration::MAX };
    assert!(late <= most, "an answer was late by {late:?}: {about}");
    assert!(ended <= most, "a decision ended {ended:?} after its deadline: {ended_about}");
}

/// Asks once, and notes what came of it.
fn one(
    runtime: &tokio::runtime::Runtime,
    workers: &Workers,
    call: Result<AdmissionCall, Unreadable>,
    about: String,
    seen: &Mutex<Seen>,
) {
    let Ok(call) = call else {
        *seen.lock().unwrap().labels.entry("unreadable").or_default() += 1;
        return;
    };
    let arrived = call.arrived;
    let answer = match runtime.block_on(workers.ask(call)) {
        Ok(answer) => answer,
        Err(why) => Answer::unjudged(why, OnUndecided::Deny),
    };
    let (took, label, effort) = (arrived.elapsed(), answer.label.as_str(), answer.effort);
    let mut seen = seen.lock().unwrap();
    for reason in &answer.undecided {
        *seen.reasons.entry(reason).or_default() += 1;
    }
    seen.took.push(took);
    *seen.labels.entry(label).or_default() += 1;
    let late = took.saturating_sub(DEADLINE);
    if late > seen.latest.0 {
        seen.latest = (late, about, effort);
    }
}

/// What is asked, without its objects.
fn head(body: &str) -> String {
    let review: Value = serde_json::from_str(body).unwrap_or_default();
    let request = &review["request"];
    format!("{} {}/{}", request["operation"], request["kind"]["kind"], request["name"])
}
