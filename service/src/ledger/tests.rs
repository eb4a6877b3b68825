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

/// The pod with this resourceVersion.
fn versioned(uid: &str, version: u64) -> Snapshot {
    snapshot(&[&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: a, namespace: b, uid: {uid}, resourceVersion: '{version}'}}}}"
    )])
}

/// Whether a request, admitted when the watch showed `before`, is in flight when it shows `after` and has come to
/// `position`.
fn open(request: &Request, before: &Snapshot, after: &Snapshot, position: u64) -> bool {
    let mut ledger = Ledger::default();
    ledger.record(request, before, clock("2026-01-01T12:00:00Z"));
    let positions = BTreeMap::from([(Kind::new("", "Pod"), position)]);
    let sight = Sight { snapshot: after, progress: Progress::Positions(&positions) };
    ledger.observe(sight, clock("2026-01-01T12:00:10Z"));
    !ledger.requests().is_empty()
}

/// An update or deletion that the API server asked about when the pod had this version.
fn asked(operation: Operation, uid: &str, version: u64) -> Request {
    let state = versioned(uid, version);
    let pod = state.get(&key()).unwrap().to_val();
    let state = State::new(&state);
    match operation {
        Operation::Delete => Request::delete(User::admin(), &state, key(), None, Preconditions::default()),
        _ => Request::update(User::admin(), &state, &pod, "").unwrap(),
    }
}

#[test]
fn an_update_that_restarts_containers_ends_when_the_pod_is_not_ready() {
    let pod = |image: &str, ready: &str, version: u64| {
        snapshot(&[&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: a, namespace: b, uid: u, resourceVersion: '{version}'}}, spec: \
             {{containers: [{{name: c, image: {image}}}]}}, status: {{phase: Running, conditions: [{{type: Ready, status: \
             '{ready}'}}]}}}}"
        )])
    };
    let before = pod("old", "True", 3);
    let written = pod("new", "True", 3).get(&key()).unwrap().to_val();
    let update = Request::update(User::admin(), &State::new(&before), &written, "").unwrap();
    for (after, is_open) in [
        (pod("old", "True", 3), true),
        (pod("new", "True", 4), true),
        (pod("new", "False", 5), false),
        // another write came first, and the API server refuses this one
        (pod("old", "True", 4), false),
        (snapshot(&[]), false),
    ] {
        assert_eq!(open(&update, &before, &after, 5), is_open, "{:?}", after.get(&key()));
    }
    // of a pod that is not ready there is nothing to wait for
    let before = pod("old", "False", 3);
    let update = Request::update(User::admin(), &State::new(&before), &written, "").unwrap();
    assert!(!open(&update, &before, &pod("new", "False", 4), 4));
}

#[test]
fn an_update_ends_with_any_later_version_of_its_object() {
    let update = asked(Operation::Update, "u", 7);
    let before = versioned("u", 7);
    assert!(open(&update, &before, &before, 7), "nothing was shown");
    assert!(open(&update, &before, &before, 900), "others of its kind were, but its object has not changed");
    assert!(!open(&update, &before, &versioned("u", 8), 8), "it, or what came before it");
    assert!(!open(&update, &before, &snapshot(&[]), 9), "gone");
    let behind = versioned("u", 5);
    assert!(open(&update, &behind, &versioned("u", 6), 6), "the watch is behind what the request was for");
    assert!(open(&update, &snapshot(&[]), &snapshot(&[]), 6), "it has not even shown the object");
    assert!(!open(&update, &snapshot(&[]), &snapshot(&[]), 7), "it would have");
}

#[test]
fn a_deletion_ends_when_the_watch_has_passed_its_object() {
    let delete = asked(Operation::Delete, "u", 7);
    let before = versioned("u", 7);
    assert!(open(&delete, &before, &versioned("u", 8), 8), "changed, but there");
    assert!(!open(&delete, &before, &snapshot(&[]), 8));
    assert!(!open(&delete, &before, &snapshot(&[GOING]), 8));
    assert!(!open(&delete, &before, &versioned("v", 9), 9), "a successor");
    assert!(open(&delete, &versioned("t", 3), &versioned("t", 3), 3), "a predecessor: the watch is behind");
    assert!(open(&delete, &versioned("t", 3), &snapshot(&[]), 5), "the predecessor is gone, its object not shown yet");
}

#[test]
fn a_creation_ends_with_the_uid_that_it_was_given() {
    let manifest = versioned("u", 7).get(&key()).unwrap().to_val();
    let none = snapshot(&[]);
    let create = Request::create(User::admin(), &State::new(&none), &manifest).unwrap();
    assert!(open(&create, &none, &none, 900), "it may still come");
    assert!(open(&create, &none, &versioned("v", 8), 8), "another one of that name");
    assert!(!open(&create, &none, &versioned("u", 8), 8));
}

#[test]
fn an_eviction_that_names_no_uid_stays_for_a_while() {
    let there = versioned("u", 7);
    let evict = Request::evict(User::admin(), key());
    let positions = BTreeMap::from([(Kind::new("", "Pod"), 9)]);
    let none = snapshot(&[]);
    let sight = Sight { snapshot: &none, progress: Progress::Positions(&positions) };
    let mut ledger = Ledger::default();
    ledger.record(&evict, &there, clock("2026-01-01T12:00:00Z"));
    ledger.observe(sight, clock("2026-01-01T12:00:05Z"));
    assert_eq!(ledger.requests().len(), 1, "its pod may be one that the watch has not shown");
    assert_eq!(ledger.observe(sight, clock("2026-01-01T12:00:06Z")), [0]);
}

#[test]
fn a_binding_that_names_its_pod_ends_when_the_watch_shows_that_on_a_node() {
    let bound = |uid: &str, node: &str| {
        snapshot(&[&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: a, namespace: b, uid: {uid}, resourceVersion: '8'}}, spec: {{{node}}}}}"
        )])
    };
    let (waits, there) = (bound("u", ""), bound("u", "nodeName: n"));
    let bind = Request::bind(User::admin(), key(), "n");
    let named =
        Request { preconditions: Preconditions { uid: Some("u".into()), ..Preconditions::default() }, ..bind.clone() };
    let at = |request: &Request, before: &Snapshot, after: &Snapshot| {
        let mut ledger = Ledger::default();
        ledger.record(request, before, clock("2026-01-01T12:00:00Z"));
        let positions = BTreeMap::from([(Kind::new("", "Pod"), 9)]);
        let sight = Sight { snapshot: after, progress: Progress::Positions(&positions) };
        ledger.observe(sight, clock("2026-01-01T12:00:01Z"));
        !ledger.requests().is_empty()
    };
    assert!(at(&bind, &waits, &there), "its pod may be one that the watch has not shown");
    assert!(!at(&named, &waits, &there));
    assert!(at(&named, &waits, &waits));
    assert!(!at(&named, &waits, &bound("v", "")), "its pod is gone");
    assert!(at(&named, &bound("t", ""), &bound("t", "nodeName: m")), "its pod is not shown yet");
    assert!(at(&named, &snapshot(&[]), &snapshot(&[])), "nor here");
    assert!(!at(&named, &waits, &snapshot(&[])), "gone");
}

#[test]
fn a_repetition_takes_the_place_of_the_one_before() {
    let there = versioned("u", 7);
    let evict = Request::evict(User::admin(), key());
    let update = asked(Operation::Update, "u", 7);
    let mut ledger = Ledger::default();
    ledger.record(&evict, &there, None);
    ledger.record(&evict, &there, None);
    assert_eq!(ledger.requests().len(), 1);
    ledger.record(&update, &there, None);
    ledger.record(&update, &there, None);
    assert_eq!(ledger.requests().len(), 3, "each update may land");
    ledger.record_at(1_000, &evict, &there, None);
    assert_eq!(ledger.requests().len(), 4, "what all replicas see keeps its order");
    ledger.withdraw(1_000);
    assert_eq!(ledger.requests().len(), 3);
}
