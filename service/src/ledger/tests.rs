//! What ends a change in flight.

use suture_model::change::{Preconditions, User};
use suture_model::ingest;
use suture_model::state::State;
use suture_model::value::Val;

use super::*;

fn snapshot(texts: &[&str]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for text in texts {
        ingest::ingest(&mut snapshot, text, "state").unwrap();
    }
    snapshot
}

fn clock(text: &str) -> Option<Clock> {
    Some(Clock::parse(text).unwrap())
}

const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b, uid: u}}";
const OTHER: &str = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b, uid: v}}";
const GOING: &str =
    "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b, uid: u, deletionTimestamp: '2026-01-01T00:00:00Z'}}";

fn key() -> Key {
    Key::of("Pod", "b", "a")
}

/// Whether the request, admitted over the pod (or without it), is in flight after the watch has shown something.
fn in_flight(request: &Request, before: &Snapshot, shown: &[Key], after: &Snapshot) -> bool {
    let mut ledger = Ledger::default();
    ledger.record(request, before, None);
    ledger.observe(Sight { snapshot: after, progress: Progress::Written(shown) }, None);
    !ledger.requests().is_empty()
}

#[test]
fn a_deletion_ends_when_its_object_is_gone_or_going() {
    let there = snapshot(&[POD]);
    let delete = Request::delete(User::admin(), &State::new(&there), key(), None, Preconditions::default());
    for request in [delete, Request::evict(User::admin(), key())] {
        assert!(in_flight(&request, &there, &[], &there));
        assert!(in_flight(&request, &there, &[key()], &there), "shown, but still there");
        assert!(!in_flight(&request, &there, &[], &snapshot(&[])));
        assert!(!in_flight(&request, &there, &[key()], &snapshot(&[OTHER])), "another object of that name");
        assert!(!in_flight(&request, &there, &[key()], &snapshot(&[GOING])));
    }
}

#[test]
fn a_write_ends_when_its_object_is_shown() {
    let (there, none) = (snapshot(&[POD]), snapshot(&[]));
    let label = Val::object([("metadata", Val::object([("labels", Val::object([("x", Val::str("y"))]))]))]);
    let patch = Request::patch(User::admin(), &State::new(&there), key(), &label, "").unwrap();
    assert!(in_flight(&patch, &there, &[], &there));
    assert!(!in_flight(&patch, &there, &[key()], &there));
    assert!(!in_flight(&patch, &there, &[], &none), "written and gone");
    let manifest = State::new(&there).get(&key()).unwrap().to_val();
    let create = Request::create(User::admin(), &State::new(&none), &manifest).unwrap();
    assert!(in_flight(&create, &none, &[], &none), "it may still come");
    assert!(!in_flight(&create, &none, &[key()], &there));
}

#[test]
fn a_change_is_not_in_flight_for_ever_and_a_dry_run_never() {
    let there = snapshot(&[POD]);
    let evict = Request::evict(User::admin(), key());
    let mut ledger = Ledger::default();
    ledger.record(&evict, &there, clock("2026-01-01T12:00:00Z"));
    ledger.observe(Sight { snapshot: &there, progress: Progress::Written(&[]) }, clock("2026-01-01T12:05:00Z"));
    assert_eq!(ledger.requests().len(), 1);
    ledger.observe(Sight { snapshot: &there, progress: Progress::Written(&[]) }, clock("2026-01-01T12:05:01Z"));
    assert_eq!(ledger.requests().len(), 0);
    ledger.record(&Request { dry_run: true, ..evict }, &there, None);
    assert_eq!(ledger.requests().len(), 0);
}
