//! What writes leave.

use suture_model::change::User;
use suture_model::object::Key;
use suture_model::value::Val;

use super::*;

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"},
    "spec":{"nodeName":"node","containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}"#;

fn cluster() -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.insert(Object::from_val(&serde_json::from_str(POD).unwrap()).unwrap());
    snapshot.complete();
    snapshot
}

fn pod() -> Key {
    Key::of("Pod", "n", "a")
}

/// The pod after a request of which the log shows no answer.
fn after(snapshot: &mut Snapshot, request: Request) -> Option<Object> {
    let needs_old = request.operation != Operation::Create || request.subresource == "eviction";
    match standing(snapshot, Write { request, stored: None, needs_old }, "2026-11-01T12:00:00Z") {
        Standing::Made(request, after) => {
            put(snapshot, &request, after);
            snapshot.get(&pod()).map(|pod| (**pod).clone())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pod_is_given_time_to_stop_and_its_kubelet_deletes_it_in_the_end() {
    let mut snapshot = cluster();
    let deletion = Request::delete(User::named("ana"), &State::new(&snapshot), pod(), None, Default::default());
    let stopping = after(&mut snapshot, deletion.clone()).unwrap();
    assert!(stopping.terminating());
    let at_once = Val::object([("gracePeriodSeconds", Val::Int(0))]);
    assert!(after(&mut snapshot, Request { options: at_once, ..deletion }).is_none());
}

#[test]
fn an_eviction_is_a_deletion() {
    let mut snapshot = cluster();
    assert!(after(&mut snapshot, Request::evict(User::named("ana"), pod())).unwrap().terminating());
}

#[test]
fn a_later_version_is_not_put_back() {
    let snapshot = cluster();
    let stored = |version: &str| {
        let val: Val = serde_json::from_str(&POD.replace("\"5\"", version)).unwrap();
        let request = Request::update(User::named("ana"), &State::new(&snapshot), &val, "").unwrap();
        let write = Write { request, stored: Some(Stored::Object(val)), needs_old: true };
        standing(&snapshot, write, "")
    };
    assert!(matches!(stored("\"5\""), Standing::Known));
    assert!(matches!(stored("\"4\""), Standing::Known));
    assert!(matches!(stored("\"6\""), Standing::Made(..)));
}

#[test]
fn a_node_that_a_new_pod_names_is_there_and_one_that_was_taken_out_stays_away() {
    let mut snapshot = cluster();
    let node = Key::of("Node", "", "node");
    assert!(snapshot.get(&node).is_some());
    snapshot.remove(&node);
    let pod = |name: &str, on: &str| {
        let text = POD.replace("\"a\"", &format!("\"{name}\"")).replace("\"node\"", &format!("\"{on}\""));
        Object::from_val(&serde_json::from_str(&text).unwrap()).unwrap()
    };
    let request = Request::evict(User::named("ana"), super::tests::pod());
    put(&mut snapshot, &request, Some(pod("a", "node")));
    assert!(snapshot.get(&node).is_none(), "a pod that was there brings back no node");
    put(&mut snapshot, &request, Some(pod("b", "other")));
    assert!(snapshot.get(&Key::of("Node", "", "other")).is_some());
}
