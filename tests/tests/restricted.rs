//! Workloads with the same constraint on nodes, or with none, are judged once for all; each must fare as it does alone, also those that
//! go already, or that the change takes along.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it fails")]

mod universe;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use suture_checker::decision::{Decision, Finding};
use suture_checker::engine::{Engine, Input, Settings};
use suture_model::change::{Change, Preconditions, Propagation, Request, User};
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Val;
use suture_specs::compile::{CompiledInvariant, compile_invariant};
use suture_specs::library::Library;
use suture_specs::spec::{Spec, parse_specs};
use universe::invariants::Pool;
use universe::snapshot;

const FAMILY: &str = "selector-keeps-matches";

/// Invariants of which a workload's way to go decides: broken by those that go already, too.
const STRICT: [&str; 2] = [
    "o.liveIn(now) || o.admittedNodes(before).size() > 9",
    "o.existsIn(now) && o.at(now).admittedNodes(now).size() > 0",
];

fn strict(expression: &str, hold: &str) -> Arc<CompiledInvariant> {
    let text = format!(
        "apiVersion: suture.dev/v1alpha1\nkind: Invariant\nmetadata: {{name: strict}}\nspec:\n  hold: {hold}\n  \
         violations: Strict\n  forEach: {{var: o, kinds: [Deployment, ReplicaSet, StatefulSet]}}\n  \
         require: [{{expression: \"{expression}\", message: it goes}}]\n"
    );
    let specs = parse_specs(&text, "strict").expect("it parses");
    let [Spec::Invariant(invariant)] = specs.as_slice() else { panic!("{text}") };
    Arc::new(compile_invariant(invariant, &Library::shipped().expect("it compiles")).expect("it compiles"))
}

/// A workload, and what its fate depends on.
struct Workload {
    object: Value,
    beside: Vec<Value>,
}

impl Workload {
    fn key(&self) -> Key {
        let text = |path: &str| self.object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        Key::of(text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    }
}

fn set(kind: &str, ns: &str, name: &str, more: Value) -> Value {
    let mut meta = json!({"name": name, "namespace": ns, "uid": format!("{kind}-{ns}-{name}")});
    meta.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"run": name}},
        "template": {"metadata": {"labels": {"run": name}}, "spec": {"nodeSelector": {"disk": "ssd"}}}});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec})
}

/// The same, whatever node it may be on.
fn free(mut object: Value) -> Value {
    object["spec"]["template"]["spec"] = json!({});
    object
}

/// Workloads that stay, that go already for each of the reasons there are, and that a change may take along.
fn workloads() -> Vec<Workload> {
    let owned = |name: &str| {
        json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name,
            "uid": format!("Deployment-a-{name}"), "controller": true}]})
    };
    let dying = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x.io/wait"]});
    let namespace = |name: &str, more: Value| {
        let mut meta = json!({"name": name, "uid": name});
        meta.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    };
    let alone = |object: Value| Workload { object, beside: Vec::new() };
    let plain = |name: &str| set("Deployment", "a", name, json!({}));
    let with = |object: Value, beside: Value| Workload { object, beside: vec![beside] };
    vec![
        alone(plain("d1")),
        alone(plain("d2")),
        alone(plain("owner")),
        alone(set("Deployment", "a", "dying", dying.clone())),
        with(set("ReplicaSet", "a", "kept", owned("d1")), plain("d1")),
        alone(set("ReplicaSet", "a", "lost", owned("nobody"))),
        with(set("ReplicaSet", "a", "follows", owned("dying")), set("Deployment", "a", "dying", dying.clone())),
        with(set("ReplicaSet", "a", "taken", owned("owner")), plain("owner")),
        with(set("StatefulSet", "going", "s1", json!({})), namespace("going", dying.clone())),
        with(set("StatefulSet", "b", "s2", json!({})), namespace("b", json!({}))),
        alone(free(plain("f1"))),
        alone(free(plain("f2"))),
        alone(free(set("Deployment", "a", "free-dying", dying))),
        // at 0, with a controller: it makes no more pods
        with(free(set("ReplicaSet", "a", "spent", owned("f1"))), free(plain("f1"))),
        alone(free(set("ReplicaSet", "a", "idle", json!({})))),
        with(free(set("ReplicaSet", "a", "free-taken", owned("owner"))), plain("owner")),
    ]
}

fn node(name: &str, disk: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name, "labels": {"disk": disk}}})
}

fn cluster<'w>(nodes: &[Value], workloads: impl Iterator<Item = &'w Workload>) -> Snapshot {
    let mut objects: BTreeMap<String, Value> = BTreeMap::new();
    let all = workloads.flat_map(|w| std::iter::once(&w.object).chain(&w.beside)).chain(nodes);
    for object in all {
        objects.insert(format!("{} {}", object["kind"], object["metadata"]["uid"]), object.clone());
    }
    snapshot(&objects.values().map(Val::from).collect::<Vec<_>>())
}

/// A node loses its label or goes; alone, or with a workload's owner or a namespace.
fn changes(snapshot: &Snapshot) -> Vec<Change> {
    let state = State::new(snapshot);
    let label = json!({"metadata": {"labels": {"disk": "tape"}}});
    let node = || Key::of("Node", "", "n1");
    let relabel = Request::patch(User::admin(), &state, node(), &Val::from(&label), "").expect("a patch");
    let delete = |key: Key, how| Request::delete(User::admin(), &state, key, how, Preconditions::default());
    let owner = || Key::of("Deployment", "a", "owner");
    let of = |requests: &[Request]| Change { requests: requests.to_vec() };
    vec![
        of(std::slice::from_ref(&relabel)),
        of(&[delete(node(), None)]),
        of(&[delete(owner(), None), relabel.clone()]),
        of(&[delete(owner(), Some(Propagation::Foreground)), delete(node(), None)]),
        of(&[delete(owner(), Some(Propagation::Orphan)), relabel.clone()]),
        of(&[delete(Key::of("Namespace", "", "b"), None), relabel]),
    ]
}

/// How an instance fares; it is not among the verdicts of what does not reach it.
fn outcome(decision: &Decision, key: &Key) -> Option<Finding> {
    let name = key.to_string();
    decision.verdicts.iter().find(|v| v.instance == name).map(|v| v.outcome)
}

#[test]
fn workloads_of_one_constraint_fare_as_each_alone() {
    let pool = Pool::new();
    let shipped = pool.by_family()[FAMILY].iter().map(|at| pool.get(*at).clone()).collect::<Vec<_>>();
    let strict = STRICT.iter().flat_map(|text| ["During", "After"].map(|hold| strict(text, hold)));
    let invariants: Vec<Arc<CompiledInvariant>> = shipped.into_iter().chain(strict).collect();
    let workloads = workloads();
    let (mut proved, mut refuted) = (0, 0);
    for others in [Some("ssd"), Some("tape"), None] {
        let nodes: Vec<Value> = std::iter::once(node("n1", "ssd")).chain(others.map(|disk| node("n2", disk))).collect();
        let all = cluster(&nodes, workloads.iter());
        for (at, change) in changes(&all).iter().enumerate() {
            for invariant in &invariants {
                let decide = |snapshot: &Snapshot, change: &Change| {
                    let settings = Settings { verbose: true, ..Settings::default() };
                    let mut engine = Engine::new(vec![invariant.clone()], settings).expect("a recent Z3");
                    engine.decide(&Input { snapshot, in_flight: &[], change, time: None, exemptions: &[] })
                };
                let together = decide(&all, change);
                for workload in &workloads {
                    // what the change is about has to be there
                    let touched = workloads.iter().filter(|w| *w.key().name == *"owner" || *w.key().ns == *"b");
                    let snapshot = cluster(&nodes, touched.chain([workload]));
                    let alone = decide(&snapshot, &changes(&snapshot)[at]);
                    let key = workload.key();
                    let (here, there) = (outcome(&together, &key), outcome(&alone, &key));
                    assert_eq!(here, there, "{key}, change {at}, the other node is {others:?}: {together:#?}");
                    proved += usize::from(here == Some(Finding::Proved));
                    refuted += usize::from(here == Some(Finding::Refuted));
                }
            }
        }
    }
    println!("{proved} proved and {refuted} refuted alike");
    assert!(proved > 0 && refuted > 0, "too little was tried");
}
