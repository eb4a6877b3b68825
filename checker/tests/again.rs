//! What was decided before is known as long as nothing that was read for it changes, and no longer.
#![expect(clippy::expect_used, clippy::panic, reason = "a test may stop where it fails")]

use std::sync::Arc;

use suture_checker::decision::{Decision, Outcome};
use suture_checker::engine::{Engine, Input, Settings};
use suture_model::change::{Change, Preconditions, Request, User};
use suture_model::ingest;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_specs::compile::compile_invariant;
use suture_specs::library::Library;
use suture_specs::spec::{Exemption, Spec, parse_specs};

const CLUSTER: &str = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: a, uid: c}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: a, uid: p}, spec: {volumes: [{name: v, configMap: {name: settings}}]},
  status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}
";
const REFERENCES: &str = "{template: references-resolve}";

fn specs(text: &str) -> Vec<Spec> {
    parse_specs(text, "test").expect("it parses")
}

fn engine(spec: &str, cache_bytes: usize) -> Engine {
    let parsed = specs(&format!("kind: Invariant\nmetadata: {{name: asked}}\nspec: {spec}\n"));
    let [Spec::Invariant(invariant)] = parsed.as_slice() else { panic!("{spec}") };
    let compiled = compile_invariant(invariant, &Library::shipped().expect("it compiles")).expect("it compiles");
    Engine::new(vec![Arc::new(compiled)], Settings { cache_bytes, ..Settings::default() }).expect("Z3 is new enough")
}

fn with(snapshot: &Snapshot, text: &str) -> Snapshot {
    let mut snapshot = snapshot.clone();
    ingest::ingest(&mut snapshot, text, "cluster").expect("it is a cluster");
    snapshot
}

fn cluster() -> Snapshot {
    with(&Snapshot::default(), CLUSTER)
}

/// The deletion of an object, under a uid.
fn deletion(snapshot: &Snapshot, key: Key, uid: &str) -> Request {
    let state = State::new(snapshot);
    let request = Request::delete(User::admin(), &state, key, None, Preconditions::default());
    Request { uid: uid.into(), ..request }
}

fn settings(snapshot: &Snapshot, uid: &str) -> Request {
    deletion(snapshot, Key::of("ConfigMap", "a", "settings"), uid)
}

fn decide(engine: &mut Engine, snapshot: &Snapshot, request: Request, exemptions: &[Exemption]) -> Decision {
    let change = Change::from(request);
    engine.decide(&Input { snapshot, in_flight: &[], change: &change, time: Some("2026-11-01T12:00:00Z"), exemptions })
}

#[test]
fn a_request_that_is_repeated_is_known() {
    let (before, mut engine) = (cluster(), engine(REFERENCES, 1 << 20));
    let first = decide(&mut engine, &before, settings(&before, "1"), &[]);
    assert_eq!((first.decision, first.effort.known), (Outcome::Denied, false));
    // something else happens
    let now = with(&before, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: b, uid: o}}");
    let again = decide(&mut engine, &now, settings(&now, "2"), &[]);
    assert_eq!((again.decision, again.effort.known, again.uid.as_str()), (Outcome::Denied, true, "2"));
    let told = |decision: &Decision| format!("{:#?}", decision.verdicts);
    assert_eq!(told(&first), told(&again));
}

#[test]
fn what_was_read_decides_anew_once_it_changes() {
    let (before, mut engine) = (cluster(), engine(REFERENCES, 1 << 20));
    let denied = decide(&mut engine, &before, settings(&before, "1"), &[]);
    assert_eq!(denied.decision, Outcome::Denied);
    // the pod is gone: nobody needs the settings any more
    let mut gone = before.clone();
    gone.remove(&Key::of("Pod", "a", "web"));
    let allowed = decide(&mut engine, &gone, settings(&gone, "2"), &[]);
    assert_eq!((allowed.decision, allowed.effort.known), (Outcome::Allowed, false));
    // and comes back, as another one
    let back = with(&gone, CLUSTER);
    let again = decide(&mut engine, &back, settings(&back, "3"), &[]);
    assert_eq!((again.decision, again.effort.known), (Outcome::Denied, false));
    // an older view has not seen any of it
    let older = decide(&mut engine, &before, settings(&before, "4"), &[]);
    assert_eq!((older.decision, older.effort.known), (Outcome::Denied, false));
}

#[test]
fn another_request_is_another_question() {
    let (before, mut engine) = (cluster(), engine(REFERENCES, 1 << 20));
    let mut known = |request: Request| decide(&mut engine, &before, request, &[]).effort.known;
    assert!(!known(settings(&before, "1")));
    let by = |name: &str| Request { user: User::named(name), ..settings(&before, "2") };
    assert!(!known(by("somebody")) && known(by("somebody")) && !known(by("else")));
    assert!(!known(Request { dry_run: true, ..settings(&before, "3") }));
    assert!(!known(settings(&before, "")), "it comes from no API server");
    let stale = Preconditions { resource_version: Some("0".into()), ..Preconditions::default() };
    assert!(!known(Request { preconditions: stale, ..settings(&before, "4") }));
}

#[test]
fn what_may_differ_from_one_request_to_the_next_is_never_known() {
    let before = cluster();
    let twice = |engine: &mut Engine, exemptions: &[Exemption]| {
        ["1", "2"].map(|uid| decide(engine, &before, settings(&before, uid), exemptions).effort.known)
    };
    let judging = |expression: &str| {
        format!("{{forEach: {{var: m, kind: ConfigMap}}, require: [{{expression: \"{expression}\"}}]}}")
    };
    assert_eq!(twice(&mut engine(&judging("m.existsIn(now)"), 1 << 20), &[]), [false, true]);
    for expression in ["request.uid != '2'", "time < timestamp('2027-01-01T00:00:00Z')"] {
        assert_eq!(twice(&mut engine(&judging(expression), 1 << 20), &[]), [false, false], "{expression}");
    }
    let exemption = "kind: Exemption\nmetadata: {name: e}\nspec: {invariant: other, instances: [ConfigMap/a/other], \
                     subjects: [{kind: User, name: u}], expires: '2026-12-01T00:00:00Z', reason: r}\n";
    let parsed = specs(exemption);
    let [Spec::Exemption(exemption)] = parsed.as_slice() else { panic!("{exemption}") };
    assert_eq!(twice(&mut engine(REFERENCES, 1 << 20), &[(**exemption).clone()]), [false, false]);
    let mut unread = before.clone();
    unread.remove(&Key::of("Pod", "a", "web"));
    unread.mark_unknown("Pod");
    let mut engine = engine(REFERENCES, 1 << 20);
    let twice = ["1", "2"].map(|uid| decide(&mut engine, &unread, settings(&unread, uid), &[]));
    assert_eq!(twice.map(|d| (d.decision, d.effort.known)), [(Outcome::Undecided, false); 2]);
}

#[test]
fn what_is_kept_is_bounded() {
    let maps: Vec<String> = (0..200).map(|at| format!("m{at}")).collect();
    let texts = maps.iter().map(|name| {
        format!("---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: b, uid: {name}}}}}\n")
    });
    let before = with(&cluster(), &texts.collect::<String>());
    let mut engine = engine(REFERENCES, 64 << 10);
    let mut known = |name: &str| {
        let request = deletion(&before, Key::of("ConfigMap", "b", name), "1");
        decide(&mut engine, &before, request, &[]).effort.known
    };
    assert!(maps.iter().all(|name| !known(name)));
    assert!(known("m199") && !known("m0"), "the oldest were dropped");
}
