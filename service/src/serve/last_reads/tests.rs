//! What a decision is likely to read.

use suture_model::change::{Preconditions, User};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;

use super::*;

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n",
    "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"set","uid":"u","controller":true}]}}"#;

fn deletion(key: Key) -> Request {
    let snapshot = Snapshot::default();
    Request::delete(User::admin(), &State::new(&snapshot), key, None, Preconditions::default())
}

#[test]
fn the_last_decision_about_the_object_counts_and_else_that_about_its_controller() {
    let (known, snapshot) = (LastReads::default(), Snapshot::default());
    let facts = |name: &str| Facts::read_by(|| snapshot.get(&Key::of("ConfigMap", "n", name)).is_some()).1;
    let creation = Request::create(User::admin(), &State::new(&snapshot), &serde_json::from_str(POD).unwrap()).unwrap();
    assert!(known.likely(&creation).is_empty());
    known.note(&deletion(Key::of("ReplicaSet", "n", "set")), &facts("of-the-controller"));
    known.note(&deletion(Key::of("ReplicaSet", "elsewhere", "set")), &facts("of-another"));
    assert_eq!(*known.likely(&creation), facts("of-the-controller"));
    known.note(&creation, &facts("first"));
    known.note(&creation, &facts("last"));
    assert_eq!(*known.likely(&creation), facts("last"));
    known.note(&creation, &Facts::default());
    assert_eq!(*known.likely(&creation), facts("last"), "a decision that read nothing tells nothing");
    assert!(known.likely(&deletion(Key::of("Pod", "n", "q"))).is_empty());
}
