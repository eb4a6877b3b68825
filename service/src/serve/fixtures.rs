//! Deciders that do as a review says, and reviews, for the tests of this folder.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_specs::spec::OnUndecided;

use super::answer::{Answer, Label};
use super::metrics::Metrics;
use super::review::AdmissionCall;
use super::router::Terms;
use super::workers::{Decider, Deciders, Limits, Workers};

/// What decides by the name of the object: `denied` is refused, `panics` panics, `waits` waits for the gate, all else is
/// allowed.
#[derive(Default)]
pub(super) struct Scripted {
    gate: Gate,
    /// Makes fail so often before one succeeds.
    pub(super) failing: AtomicUsize,
    /// How many deciders were made.
    pub(super) made: AtomicUsize,
}

#[derive(Default, Clone)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Scripted {
    /// Lets all that waits go.
    pub(super) fn open(&self) {
        *self.gate.0.0.lock().unwrap() = true;
        self.gate.0.1.notify_all();
    }
}

impl Deciders for Scripted {
    fn decider(&self) -> Box<dyn Decider> {
        let failing = self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(failing.is_err(), "scripted to fail");
        self.made.fetch_add(1, Ordering::SeqCst);
        Box::new(Script { gate: self.gate.clone() })
    }
}

struct Script {
    gate: Gate,
}

impl Decider for Script {
    fn decide(&mut self, asked: &AdmissionCall) -> Answer {
        match asked.text(&["name"]) {
            "denied" => Answer::refused(Label::Denied, 403, "no endpoint would be left\n- web is deleted"),
            "undecided" => Answer::refused(Label::Undecided, 403, "a kind was not read"),
            "panics" => panic!("scripted to panic"),
            "endless" => loop {
                suture_model::steps::count(1);
            },
            "waits" => {
                let (open, opened) = &*self.gate.0;
                drop(opened.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
                Answer::allowed()
            }
            _ => Answer::allowed(),
        }
    }
}

/// So many workers, by this script.
pub(super) fn workers(script: &Arc<Scripted>, workers: usize, queue_len_max: usize, metrics: &Metrics) -> Workers {
    Workers::start(script.clone(), Limits { workers, queue_len_max }, metrics.clone())
}

/// Terms that no test reaches by accident.
pub(super) fn terms(on_overload: OnUndecided) -> Terms {
    Terms { deadline: Duration::from_secs(20), margin: Duration::from_millis(100), on_overload }
}

/// A review of the deletion of a Deployment of this name.
pub(super) fn review(uid: &str, name: &str) -> Value {
    json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": uid,
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "name": name,
            "namespace": "shop",
            "operation": "DELETE",
            "userInfo": {"username": "ana"},
            "object": null,
            "oldObject": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"}},
            "dryRun": false,
            "options": {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}

/// Waits for what another thread is about to do.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = crate::clock::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what} does not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The value of a series in the text of metrics; zero when it is not there.
pub(super) fn series(metrics: &Metrics, name: &str) -> f64 {
    let text = metrics.text().unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0.0, |value| value.parse().unwrap())
}

/// An instant, for reviews that are read and not decided.
pub(super) fn instant() -> Instant {
    crate::clock::now()
}
