//! Rounds over a small cluster.

use std::sync::Arc;

use serde_json::json;
use suture_model::ingest::Passed;

use super::*;
use crate::serve::policies::Policies;
use crate::serve::store::{Change, Reading};

/// An invariant that a ConfigMap satisfies as long as it has a label.
fn store() -> (Store, ResourceName) {
    let mut policies = Policies::default();
    let invariant = r#"{"apiVersion":"suture.dev/v1alpha1","kind":"Invariant","metadata":{"name":"named","uid":"u"},
        "spec":{"forEach":{"var":"map","kind":"ConfigMap"},"require":[{"expression":"!map.liveIn(now) || map.at(now).?metadata.?labels.orValue({}).size() > 0"}]}}"#;
    policies.put(serde_json::from_str(invariant).unwrap());
    let loaded = policies.load();
    assert_eq!(loaded.problems, []);
    let name = ResourceName::of_invariant(&loaded.policy.invariants[0].name);
    let kinds = loaded.wanted.kinds.clone();
    let store = Store::new(Arc::new(loaded));
    store.write(kinds.into_iter().map(|kind| Change::Read(kind, Reading::Known)).collect());
    (store, name)
}

fn config_map(name: &str, labels: serde_json::Value) -> Arc<Object> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a", "labels": labels}});
    let Passed(val) = serde_json::from_value(map).unwrap();
    Arc::new(Object::from_val(&val).unwrap())
}

/// Looks until all objects were looked at so many times.
fn after(near: &mut NearAudit, rounds: u64, store: &Store, violated: &BTreeSet<(String, String)>) {
    while near.rounds() < rounds {
        near.looked = None;
        assert!(near.look(store, || violated.clone()).unwrap());
    }
}

fn told(near: &NearAudit, name: &ResourceName) -> Vec<(String, String)> {
    near.all(std::iter::once(name)).remove(name).unwrap().instances
}

#[test]
fn what_one_request_breaks_is_told_until_it_is_gone() {
    let (store, name) = store();
    let maps = [config_map("one", json!({"a": "b"})), config_map("two", json!({"a": "b", "c": "d"}))];
    store.write(maps.into_iter().map(Change::Put).collect());
    let (mut near, none) = (NearAudit::default(), BTreeSet::new());
    assert!(!near.all(std::iter::once(&name))[&name].complete);
    after(&mut near, 1, &store, &none);
    let found = told(&near, &name);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == "ConfigMap/a/one" && found[0].1.contains("updates ConfigMap/a/one"), "{found:?}");
    assert!(near.all(std::iter::once(&name))[&name].complete);
    // it pauses, and what it knows stays
    assert!(!near.look(&store, BTreeSet::new).unwrap());
    let gone = Key::of("ConfigMap", "a", "one");
    store.write(vec![Change::Remove(gone), Change::Put(config_map("two", json!({"c": "d"})))]);
    assert_eq!(told(&near, &name), found);
    after(&mut near, 2, &store, &none);
    let found = told(&near, &name);
    assert!(found.len() == 1 && found[0].0 == "ConfigMap/a/two", "{found:?}");
}

#[test]
fn what_is_violated_already_is_not_one_step_away_from_it() {
    let (store, name) = store();
    store.write(vec![Change::Put(config_map("one", json!({"a": "b"})))]);
    let violated = BTreeSet::from([("named".to_owned(), "ConfigMap/a/one".to_owned())]);
    let mut near = NearAudit::default();
    after(&mut near, 1, &store, &violated);
    assert_eq!(told(&near, &name), []);
}

#[test]
fn other_invariants_begin_anew() {
    let (store, name) = store();
    store.write(vec![Change::Put(config_map("one", json!({"a": "b"})))]);
    let (mut near, none) = (NearAudit::default(), BTreeSet::new());
    after(&mut near, 1, &store, &none);
    assert_eq!(told(&near, &name).len(), 1);
    let mut policies = Policies::default();
    let generation = store.read().loaded.generation;
    while policies.load().generation <= generation {}
    store.write(vec![Change::Load(Arc::new(policies.load()))]);
    near.looked = None;
    assert!(near.look(&store, BTreeSet::new).unwrap());
    assert_eq!(near.found.len(), 0, "what was found of invariants that are gone");
}
