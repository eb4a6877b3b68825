//! What becomes of threads that cannot be made, are stuck, or are not needed any more.

use std::sync::Weak;

use super::*;
use crate::serve::fixtures::{Scripted, review, series, until, workers};
use crate::serve::review::read;

fn asked(name: &str, due: Duration) -> AdmissionCall {
    let body = review("u-1", name).to_string();
    read(body.as_bytes(), now(), now() + due).unwrap()
}

/// The same in another namespace.
fn asked_in(namespace: &str, name: &str, due: Duration) -> AdmissionCall {
    let mut body = review("u-2", name);
    body["request"]["namespace"] = namespace.into();
    read(body.to_string().as_bytes(), now(), now() + due).unwrap()
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn one_namespace_leaves_a_worker_to_others() {
    let (script, metrics) = (Arc::new(Scripted::default()), Metrics::default());
    let workers = workers(&script, 2, 64, &metrics);
    let slow: Vec<_> = (0..4)
        .map(|_| {
            let workers = workers.clone();
            tokio::spawn(async move { workers.ask(asked("waits", LONG)).await })
        })
        .collect();
    until("one is being decided, and the others wait", || series(&metrics, "suture_queue_length") == 3.0).await;
    for _ in 0..3 {
        assert!(workers.ask(asked_in("elsewhere", "web", LONG)).await.unwrap().allowed);
    }
    assert_eq!(series(&metrics, "suture_queue_wait_seconds_count"), 4.0, "only one of them was begun");
    script.open();
    for answer in slow {
        assert!(answer.await.unwrap().unwrap().allowed);
    }
}

#[tokio::test]
async fn a_decider_that_cannot_be_made_is_tried_again() {
    let (script, metrics) = (Arc::new(Scripted::default()), Metrics::default());
    script.failing.store(3, Ordering::SeqCst);
    let workers = workers(&script, 1, 4, &metrics);
    assert!(workers.ask(asked("web", LONG)).await.unwrap().allowed);
    assert_eq!(series(&metrics, "suture_panics_total"), 3.0);
}

#[tokio::test]
async fn when_too_many_are_stuck_only_a_restart_helps() {
    let (script, metrics) = (Arc::new(Scripted::default()), Metrics::default());
    let workers = workers(&script, 2, 64, &metrics);
    assert_eq!(workers.alive(), Ok(()));
    let began = now();
    for at in 0.. {
        if workers.alive().is_err() || began.elapsed() > LONG {
            break;
        }
        let late = workers.ask(asked_in(&format!("ns-{at}"), "waits", Duration::from_millis(5))).await;
        assert_eq!(late.unwrap_err(), Unanswered::Overrun);
    }
    assert_eq!(workers.alive(), Err(format!("{STUCK_MAX} workers are stuck")));
    script.open();
    until("they come back", || workers.alive().is_ok()).await;
    assert!(workers.ask(asked("web", LONG)).await.unwrap().allowed);
}

#[tokio::test]
async fn a_decision_that_nobody_waits_for_is_abandoned() {
    let (script, metrics) = (Arc::new(Scripted::default()), Metrics::default());
    let workers = workers(&script, 1, 4, &metrics);
    for _ in 0..3 {
        let late = workers.ask(asked("endless", Duration::from_millis(20))).await;
        assert_eq!(late.unwrap_err(), Unanswered::Overrun);
        // there is one thread
        assert!(workers.ask(asked("web", LONG)).await.unwrap().allowed);
    }
    assert_eq!(script.made.load(Ordering::SeqCst), 4, "another thread takes the place of each");
    assert_eq!(series(&metrics, "suture_panics_total"), 0.0);
    assert_eq!(workers.alive(), Ok(()));
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_is_not_decided() {
    let (script, metrics) = (Arc::new(Scripted::default()), Metrics::default());
    let workers = workers(&script, 1, 4, &metrics);
    let first = tokio::spawn({
        let workers = workers.clone();
        async move { workers.ask(asked("waits", LONG)).await }
    });
    until("the worker is at work", || series(&metrics, "suture_queue_wait_seconds_count") == 1.0).await;
    let late = workers.ask(asked("panics", Duration::from_millis(10))).await;
    assert_eq!(late.unwrap_err(), Unanswered::Overrun);
    script.open();
    assert!(first.await.unwrap().unwrap().allowed);
    assert!(workers.ask(asked("web", LONG)).await.unwrap().allowed);
    assert_eq!(series(&metrics, "suture_panics_total"), 0.0);
    assert_eq!(series(&metrics, "suture_workers_replaced_total"), 0.0);
}

#[tokio::test]
async fn what_would_wait_too_long_is_shed_when_it_comes_and_nothing_where_nobody_waits() {
    let (script, metrics) = (Arc::new(Scripted::default()), Metrics::default());
    let workers = workers(&script, 1, 64, &metrics);
    let crew = workers.owner.crew.clone();
    crew.decision_micros.store(1_000_000, Ordering::Relaxed);
    let in_time = |waiting: usize, seconds: u64| crew.admit(waiting, now() + Duration::from_secs(seconds)).is_ok();
    assert!(in_time(0, 0), "measured anew by what comes first");
    assert!(in_time(3, 5) && !in_time(5, 5) && in_time(5, 10));
    assert!(!in_time(64, 1_000), "the queue is full");
    assert_eq!(series(&metrics, "suture_shed_total"), 2.0);
    crew.took(Duration::ZERO);
    assert!(in_time(5, 5), "it goes faster by now");
    let known = crew.decision_micros.load(Ordering::Relaxed);
    assert!(workers.ask(asked("web", LONG)).await.unwrap().allowed);
    assert!(crew.decision_micros.load(Ordering::Relaxed) < known, "a decision is measured");
}

#[tokio::test]
async fn the_threads_end_with_the_last_handle() {
    let (script, metrics) = (Arc::new(Scripted::default()), Metrics::default());
    let workers = workers(&script, 3, 4, &metrics);
    assert!(workers.ask(asked("web", LONG)).await.unwrap().allowed);
    let crew: Weak<Crew> = Arc::downgrade(&workers.owner.crew);
    drop(workers.clone());
    assert!(workers.ask(asked("web", LONG)).await.unwrap().allowed);
    drop(workers);
    until("all threads end", || crew.strong_count() == 0).await;
}
