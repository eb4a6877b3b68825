//! Deletions that very many objects depend on: denied for their own sake before what follows is looked at, and otherwise
//! judged in full.
#![expect(clippy::expect_used, clippy::panic, reason = "a test may stop where it fails")]

use std::fmt::Write;
use std::sync::Arc;

use suture_checker::decision::{Decision, Finding, Outcome};
use suture_checker::engine::{Engine, Input, Settings};
use suture_model::change::{Change, Preconditions, Propagation, Request, User};
use suture_model::ingest;
use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_specs::compile::{CompiledInvariant, compile_invariant};
use suture_specs::library::Library;
use suture_specs::spec::{Spec, parse_specs};

/// More than are looked at before the others.
const MANY: usize = 700;

fn invariant(name: &str, spec: &str) -> Arc<CompiledInvariant> {
    let text = format!("apiVersion: suture.dev/v1alpha1\nkind: Invariant\nmetadata: {{name: {name}}}\nspec: {spec}\n");
    let specs = parse_specs(&text, name).expect("it parses");
    let [Spec::Invariant(invariant)] = specs.as_slice() else { panic!("{text}") };
    let library = Library::shipped().expect("the shipped library compiles");
    Arc::new(compile_invariant(invariant, &library).expect("it compiles"))
}

/// A definition with so many custom resources in a namespace, each of which owns a ConfigMap.
fn cluster(customs: usize) -> Snapshot {
    owned_by(customs, |at| at)
}

/// A definition with so many custom resources, and as many ConfigMaps, each owned by the custom resource of this number.
fn owned_by(customs: usize, owner: impl Fn(usize) -> usize) -> Snapshot {
    let mut text = String::from(
        "{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: a}}\n---\n\
         {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: apps.x.io, uid: crd}, \
         spec: {group: x.io, names: {kind: App, plural: apps}, versions: [{name: v1, served: true, storage: true}]}}\n",
    );
    for at in 0..customs {
        let owner = owner(at);
        let owner = format!("ownerReferences: [{{apiVersion: x.io/v1, kind: App, name: x{owner}, uid: x{owner}}}]");
        let app = format!("{{apiVersion: x.io/v1, kind: App, metadata: {{name: x{at}, namespace: a, uid: x{at}}}}}");
        let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{at}, namespace: a, {owner}}}}}");
        write!(text, "---\n{app}\n---\n{map}\n").expect("text takes text");
    }
    let mut snapshot = Snapshot::default();
    ingest::ingest(&mut snapshot, &text, "cluster").expect("it is a cluster");
    snapshot
}

fn delete(snapshot: &Snapshot, key: Key, how: Option<Propagation>, invariants: &[Arc<CompiledInvariant>]) -> Decision {
    let mut engine = Engine::new(invariants.to_vec(), Settings::default()).expect("z3 is recent");
    let state = State::new(snapshot);
    let change = Change::from(Request::delete(User::admin(), &state, key, how, Preconditions::default()));
    engine.decide(&Input { snapshot, in_flight: &[], change: &change, time: None, exemptions: &[] })
}

fn definition() -> Key {
    Key::of("CustomResourceDefinition", "", "apps.x.io")
}

fn refuted(decision: &Decision) -> Vec<&str> {
    let found = decision.verdicts.iter().filter(|v| v.outcome == Finding::Refuted);
    found.map(|v| &*v.instance).collect()
}

/// ConfigMaps stay, whatever happens.
fn maps_stay() -> Arc<CompiledInvariant> {
    invariant("maps-stay", "{forEach: {var: m, kind: ConfigMap}, require: [{expression: m.liveIn(now)}]}")
}

#[test]
fn a_definition_with_many_instances_is_denied_for_its_own_sake() {
    let kept = invariant("kept", "{template: crd-without-instances}");
    let decision = delete(&cluster(MANY), definition(), None, &[kept.clone(), maps_stay()]);
    assert_eq!(decision.decision, Outcome::Denied);
    assert_eq!(refuted(&decision), ["CustomResourceDefinition/apps.x.io"]);
    assert!(decision.cut_short);
    // with fewer, all is looked at
    let decision = delete(&cluster(3), definition(), None, &[kept, maps_stay()]);
    assert_eq!(refuted(&decision).len(), 4);
    assert!(!decision.cut_short);
}

#[test]
fn what_follows_a_deletion_is_judged_where_nothing_else_denies_it() {
    let decision = delete(&cluster(MANY), definition(), None, &[maps_stay()]);
    assert_eq!(decision.decision, Outcome::Denied);
    assert!(decision.cut_short && !refuted(&decision).is_empty() && refuted(&decision).len() < MANY);
    // what is never denied is all judged
    let warned = "{action: Warn, forEach: {var: m, kind: ConfigMap}, require: [{expression: m.liveIn(now)}]}";
    let decision = delete(&cluster(MANY), definition(), None, &[invariant("warned", warned)]);
    assert_eq!((decision.decision, refuted(&decision).len()), (Outcome::Warned, MANY));
    assert!(!decision.cut_short);
    let apps = "{forEach: {var: o, kind: ConfigMap}, require: [{expression: o.existsIn(before)}]}";
    let decision = delete(&cluster(MANY), definition(), None, &[invariant("there", apps)]);
    assert_eq!((decision.decision, decision.proved), (Outcome::Allowed, MANY as u64));
}

#[test]
fn orphans_are_not_taken_for_lost() {
    let app = Key::new(Kind::new("x.io", "App"), "a", "x1");
    let snapshot = owned_by(MANY, |_| 1);
    let decision = delete(&snapshot, app.clone(), None, &[maps_stay()]);
    assert_eq!(decision.decision, Outcome::Denied);
    let decision = delete(&snapshot, app, Some(Propagation::Orphan), &[maps_stay()]);
    assert_eq!(decision.decision, Outcome::Allowed);
}
