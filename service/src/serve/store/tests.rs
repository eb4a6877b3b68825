//! The store equals a snapshot made from scratch, whatever happened, and no reader sees half of a change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use suture_model::value::Val;

use super::*;
use crate::bench::prng::Prng;
use crate::serve::policies::Policies;

fn store() -> Store {
    Store::new(Arc::new(Policies::default().load().wanting_nothing()))
}

fn pod(name: usize, app: usize, node: usize, version: usize) -> Object {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{name}","namespace":"n","uid":"u{name}-{version}",
            "resourceVersion":"{version}","labels":{{"app":"a{app}"}},
            "ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r{app}","uid":"r{app}","controller":true}}]}},
            "spec":{{"nodeName":"node{node}"}}}}"#
    );
    let val: Val = serde_json::from_str(&text).unwrap();
    Object::from_val(&val).unwrap()
}

fn key(name: usize) -> Key {
    Key::of("Pod", "n", &format!("p{name}"))
}

/// Everything that one can ask a snapshot, as text.
fn told(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for object in snapshot.iter() {
        text += &format!("{} {} {:?}\n", object.key, object.resource_version, object.val());
    }
    for at in 0..4 {
        let names = |found: Vec<&Arc<Object>>| found.iter().map(|o| o.key.to_string()).collect::<Vec<_>>();
        text += &format!("on {:?}\n", names(snapshot.pods_on(&format!("node{at}"))));
        text += &format!("usage {:?}\n", snapshot.usage(&format!("node{at}")));
        text += &format!("owned {:?}\n", names(snapshot.owned_by(&format!("r{at}"))));
        text += &format!("labelled {:?}\n", names(snapshot.labelled("n", &"app".into(), &format!("a{at}").into())));
    }
    text + &format!("unknown {:?}", snapshot.unknown())
}

#[test]
fn it_equals_a_snapshot_from_scratch_over_random_histories() {
    for seed in 0..20 {
        let mut random = Prng::new(seed);
        let store = store();
        let (pods, owners) = (Kind::new("", "Pod"), Kind::new("apps", "ReplicaSet"));
        store.write(vec![Change::Read(owners.clone(), Reading::Known), Change::Read(pods.clone(), Reading::Known)]);
        let mut model: BTreeMap<Key, Object> = BTreeMap::new();
        let mut held = Vec::new();
        for version in 1..200 {
            let mut changes = Vec::new();
            for _ in 0..=random.below(3) {
                let name = random.below(12);
                match random.below(10) {
                    0 | 1 => {
                        model.remove(&key(name));
                        changes.push(Change::Remove(key(name)));
                    }
                    2 => {
                        let kept: BTreeSet<Key> = (0..random.below(12)).map(key).collect();
                        model.retain(|key, _| kept.contains(key));
                        changes.push(Change::Retain(pods.clone(), kept));
                    }
                    3 if random.one_in(4) => {
                        let kind = if random.one_in(2) { &pods } else { &owners };
                        model.retain(|key, _| key.kind != *kind);
                        changes.push(Change::Forget(kind.clone()));
                        changes.push(Change::Read(kind.clone(), Reading::Known));
                    }
                    4 => changes.push(Change::Forget(owners.clone())),
                    _ => {
                        let object = pod(name, random.below(3), random.below(4), version);
                        model.insert(object.key.clone(), object.clone());
                        changes.push(Change::Put(store.shared(object)));
                    }
                }
            }
            store.write(changes);
            let mut scratch = Snapshot::default();
            model.values().for_each(|object| scratch.insert(object.clone()));
            let view = store.read();
            scratch.set_unknown(view.snapshot.unknown().clone());
            assert_eq!(told(&view.snapshot), told(&scratch), "seed {seed}, version {version}");
            assert_eq!(store.count(&pods), model.len(), "seed {seed}, version {version}");
            let owning = if model.is_empty() { Vec::new() } else { vec![&owners] };
            assert_eq!(view.owners().collect::<Vec<_>>(), owning, "seed {seed}, version {version}");
            let known = view.readings.get(&owners) == Some(&Reading::Known);
            assert!(model.is_empty() || known || view.snapshot.unknown().contains("ReplicaSet"), "seed {seed}");
            // some readers stay for long
            if random.one_in(40) {
                held.push(store.read());
            }
        }
    }
}

#[test]
fn other_adapters_keep_the_objects() {
    let store = store();
    store.write(vec![Change::Put(Arc::new(pod(1, 1, 1, 1)))]);
    let before = told(&store.read().snapshot);
    let mut policies = Policies::default();
    policies.put(
        serde_json::from_str(
            r#"{"apiVersion":"suture.dev/v1alpha1","kind":"ResourceAdapter","metadata":{"name":"x"},
                "spec":{"group":"x.io","kind":"X","replicas":"self.spec.size"}}"#,
        )
        .unwrap(),
    );
    let loaded = policies.load().wanting_nothing();
    assert_eq!(loaded.problems, []);
    store.write(vec![Change::Load(Arc::new(loaded))]);
    assert_eq!(told(&store.read().snapshot), before);
    assert_eq!(store.read().snapshot.adapters().stated_kinds().len(), 1);
}

#[test]
fn a_kind_is_unknown_until_it_is_read() {
    let store = store();
    let kind = Kind::new("", "Pod");
    store.write(vec![
        Change::Read(Kind::new("apps", "ReplicaSet"), Reading::Known),
        Change::Read(kind.clone(), Reading::Unknown("not listed yet".to_owned())),
    ]);
    assert!(store.read().snapshot.unknown().contains("Pod"));
    assert_eq!(store.read().unread(), ["Pod: not listed yet"]);
    store.write(vec![Change::Read(kind.clone(), Reading::Known), Change::Put(Arc::new(pod(1, 1, 1, 1)))]);
    assert!(store.read().snapshot.unknown().is_empty());
    store.write(vec![Change::Forget(kind)]);
    assert!(store.read().snapshot.is_empty());
    assert!(store.read().unread().is_empty());
}

#[test]
fn readers_see_changes_whole() {
    let store = Arc::new(store());
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (store, stop) = (store.clone(), stop.clone());
            thread::spawn(move || {
                let mut seen = 0_u32;
                while !stop.load(Ordering::Relaxed) {
                    let view = store.read();
                    let versions: BTreeSet<_> = view.snapshot.iter().map(|o| o.resource_version.clone()).collect();
                    assert!(versions.len() <= 1, "a change was seen in part: {versions:?}");
                    seen += 1;
                }
                seen
            })
        })
        .collect();
    for version in 1..300 {
        store.write((0..8).map(|name| Change::Put(Arc::new(pod(name, 1, 1, version)))).collect());
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.join().unwrap() > 0);
    }
}

#[test]
fn what_is_not_held_is_let_go() {
    let store = store();
    for version in 1..20_000 {
        store.write(vec![Change::Put(store.shared(pod(version % 8, version, 1, version)))]);
    }
    let kept = store.writer().interner.len();
    assert!(kept < 3 * LEFT_OVER_MAX, "{kept} parts are kept for 8 pods");
}

#[test]
fn a_kind_that_a_policy_begins_to_read_is_unknown_at_once() {
    let store = store();
    let loaded = Policies::default().load();
    assert!(loaded.wanted.kinds.contains(&Kind::new("", "Namespace")));
    store.write(vec![Change::Load(Arc::new(loaded))]);
    assert!(store.read().snapshot.unknown().contains("Namespace"));
    store.write(vec![Change::Read(Kind::new("", "Namespace"), Reading::Known)]);
    assert!(!store.read().snapshot.unknown().contains("Namespace"));
    // the watch of a policy before it ends late
    store.write(vec![Change::Forget(Kind::new("", "Namespace"))]);
    assert!(store.read().snapshot.unknown().contains("Namespace"));
}

#[test]
fn a_kind_that_may_not_be_read_is_unknown_and_not_waited_for() {
    let store = store();
    let widgets = Kind::new("example.com", "Widget");
    let forbidden = || Reading::Forbidden("widgets.example.com".to_owned());
    store.write(vec![Change::Read(widgets.clone(), forbidden())]);
    assert!(store.read().snapshot.unknown().contains("Widget"));
    assert_eq!(store.read().unread(), Vec::<String>::new());
    // without this no decision is sound
    store.write(vec![Change::Read(Kind::new("", "Namespace"), forbidden())]);
    assert!(store.read().unread()[0].contains("suture.dev/aggregate-to-read=true"));
    store.write(vec![Change::Read(Kind::new("", "Namespace"), Reading::Known), Change::Read(widgets, Reading::Known)]);
    assert!(store.read().snapshot.unknown().is_empty());
}

#[test]
fn a_kind_that_a_definition_alone_explains_is_unknown_only_as_an_owner() {
    let store = store();
    let sets = Kind::new("apps", "ReplicaSet");
    let mut loaded = Policies::default().load().wanting_nothing();
    loaded.beside.insert(sets.clone());
    store.write(vec![Change::Load(Arc::new(loaded))]);
    store.write(vec![Change::Read(sets, Reading::Forbidden("replicasets.apps".to_owned()))]);
    assert!(!store.read().snapshot.unknown().contains("ReplicaSet"));
    store.write(vec![Change::Put(Arc::new(pod(1, 1, 1, 1)))]);
    assert!(store.read().snapshot.unknown().contains("ReplicaSet"));
}

#[test]
fn an_owner_of_a_kind_that_was_not_listed_is_not_gone() {
    let store = store();
    store.write(vec![Change::Put(Arc::new(pod(1, 1, 1, 1)))]);
    assert!(store.read().snapshot.unknown().contains("ReplicaSet"));
    assert_eq!(store.read().unread().len(), 1, "not ready before it is listed");
    store.write(vec![Change::Remove(key(1))]);
    assert_eq!(store.read().unheard().count(), 1, "wanted, though what it owned is gone");
    store.write(vec![Change::Read(Kind::new("apps", "ReplicaSet"), Reading::Known)]);
    assert!(store.read().snapshot.unknown().is_empty());
    assert!(store.read().unread().is_empty());
}
