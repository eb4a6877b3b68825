//! Laws of verdicts, over random universes: what may not change them, and what they must say.
//!
//! `SUTURE_LAWS_CASES` says how many universes each law is tried on, `SUTURE_ORACLE_SEED` which ones.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it fails")]

mod universe;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::{Value, json};
use suture_checker::decision::{Decision, Finding, Verdict};
use suture_checker::engine::{Engine, Input, Settings};
use suture_model::change::{Change, Request, User};
use suture_model::effects::{DELETION_TIME, Memo, View, group, group_name};
use suture_model::futures::FateKind;
use suture_model::interpret::worlds;
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Val;
use universe::adapters::db;
use universe::focus::Focus;
use universe::invariants::Pool;
use universe::random::Random;
use universe::{Case, Size, changes, number, snapshot};

/// How many universes a law is tried on where nothing else is said.
const CASES: u64 = 150;
/// How many invariants an engine has.
const INVARIANTS: usize = 5;
/// How many changes of before are asked about again, once another one has landed.
const AGAIN: usize = 3;
/// How many changes a history has.
const HISTORY: usize = 20;

/// Calls `law` with so many random universes: a generator for what else is random, a case, and invariants for it.
fn for_all(salt: u64, mut law: impl FnMut(&mut Random, &Case, &[usize], &Pool)) {
    let pool = Pool::new();
    let seed = number("SUTURE_ORACLE_SEED", 1).wrapping_mul(1_000).wrapping_add(salt);
    for at in 0..number("SUTURE_LAWS_CASES", CASES) {
        let mut random = Random::new(seed, at);
        let case = Case::random(&mut random, &pool, Size::FULL);
        let mut invariants = vec![case.invariant];
        while invariants.len() < INVARIANTS {
            let another = pool.choose(&mut random);
            if !invariants.contains(&another) {
                invariants.push(another);
            }
        }
        law(&mut random, &case, &invariants, &pool);
    }
}

fn engine(invariants: &[usize], pool: &Pool) -> Engine {
    let invariants = invariants.iter().map(|at| pool.get(*at).clone()).collect();
    let settings = Settings { verbose: true, ..Settings::default() };
    Engine::new(invariants, settings).expect("the linked Z3 is the pinned one")
}

fn decide(engine: &mut Engine, snapshot: &Snapshot, in_flight: &[Request], change: &Change) -> Decision {
    let input = Input { snapshot, in_flight, change, time: Some("2026-11-01T12:00:00Z"), exemptions: &[] };
    engine.decide(&input)
}

/// A decision as it is printed, durations aside.
fn bytes(decision: &Decision) -> String {
    let mut json = serde_json::to_value(decision).expect("a decision is JSON");
    json.as_object_mut().expect("a map").remove("duration");
    serde_json::to_string_pretty(&json).expect("JSON is text")
}

#[track_caller]
fn same(case: &Case, pool: &Pool, what: &str, one: &str, other: &str) {
    if one != other {
        let differs = one.lines().zip(other.lines()).find(|(a, b)| a != b);
        panic!("{what}: {differs:?}\n{}\n{one}\n--- and\n{other}", case.describe(pool));
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    for_all(1, |_, case, invariants, pool| {
        let decided = || decide(&mut engine(invariants, pool), &case.snapshot(), &case.in_flight, &case.change);
        same(case, pool, "the second time", &bytes(&decided()), &bytes(&decided()));
    });
}

#[test]
fn the_order_of_objects_does_not_matter() {
    for_all(2, |random, case, invariants, pool| {
        let straight = decide(&mut engine(invariants, pool), &case.snapshot(), &case.in_flight, &case.change);
        let mut objects = case.objects.clone();
        random.shuffle(&mut objects);
        let shuffled = decide(&mut engine(invariants, pool), &snapshot(&objects), &case.in_flight, &case.change);
        same(case, pool, "shuffled", &bytes(&straight), &bytes(&shuffled));
    });
}

/// Verdicts by invariant and instance: what was found and what is said.
fn by_instance(decision: &Decision) -> BTreeMap<(&str, &str), (Finding, &str)> {
    decision.verdicts.iter().map(|v| ((&*v.invariant, &*v.instance), (v.outcome, &*v.message))).collect()
}

#[test]
fn an_unrelated_object_changes_nothing() {
    for_all(3, |random, case, invariants, pool| {
        let plain = decide(&mut engine(invariants, pool), &case.snapshot(), &case.in_flight, &case.change);
        let unrelated = [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "far", "namespace": "far", "uid": "far"}}),
            json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "far", "namespace": "far", "uid": "far"}, "spec": {"size": 1}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "far", "namespace": "far", "uid": "far"}}),
        ];
        let mut objects = case.objects.clone();
        objects.push(Val::from(random.pick::<Value>(&unrelated)));
        let more = decide(&mut engine(invariants, pool), &snapshot(&objects), &case.in_flight, &case.change);
        let (plain, mut more) = (by_instance(&plain), by_instance(&more));
        more.retain(|(_, instance), _| !instance.ends_with("/far/far"));
        same(case, pool, "with an unrelated object", &format!("{plain:#?}"), &format!("{more:#?}"));
    });
}

/// The cluster after a change, some time later: what was deleted is gone or about to be.
fn applied(random: &mut Random, snapshot: &Snapshot, change: &Change) -> Snapshot {
    let mut scenario = Scenario::observed(snapshot);
    for request in &change.requests {
        scenario.land(request);
    }
    let mut next = snapshot.clone();
    for (key, object) in scenario.state.delta() {
        match object {
            Some(object) if object.in_deletion_closure && random.chance(60) => drop(next.remove(key)),
            Some(object) if object.in_deletion_closure => {
                next.insert(Object { in_deletion_closure: false, ..object.with_deletion(DELETION_TIME) });
            }
            Some(object) => next.insert((**object).clone()),
            None => drop(next.remove(key)),
        }
    }
    next.complete();
    next
}

#[test]
fn what_is_cached_is_what_would_be_found_anew() {
    let histories = number("SUTURE_LAWS_CASES", CASES).div_ceil(10);
    let pool = Pool::new();
    let (mut known, mut again) = (0, 0);
    for at in 0..histories {
        let mut random = Random::new(number("SUTURE_ORACLE_SEED", 1).wrapping_mul(1_000).wrapping_add(4), at);
        let case = Case::random(&mut random, &pool, Size::FULL);
        let invariants: Vec<usize> =
            (0..INVARIANTS).map(|_| pool.choose(&mut random)).collect::<BTreeSet<_>>().into_iter().collect();
        let mut kept = engine(&invariants, &pool);
        let mut now = case.snapshot();
        let mut asked: Vec<Change> = Vec::new();
        for step in 0..HISTORY {
            let focus = if random.chance(50) { pool.focus(invariants[0]) } else { Focus::Pods };
            let change = Change::from(changes::request(&mut random, &State::new(&now), focus));
            let cached = decide(&mut kept, &now, &[], &change);
            let anew = decide(&mut engine(&invariants, &pool), &now, &[], &change);
            same(&case, &pool, &format!("history {at}, step {step}"), &bytes(&cached), &bytes(&anew));
            now = applied(&mut random, &now, &change);
            asked.push(change);
            for change in (0..AGAIN).map(|_| random.pick(&asked)) {
                let cached = decide(&mut kept, &now, &[], change);
                let anew = decide(&mut engine(&invariants, &pool), &now, &[], change);
                same(&case, &pool, &format!("history {at}, after step {step}"), &bytes(&cached), &bytes(&anew));
                known += usize::from(cached.effort.known);
                again += 1;
            }
        }
    }
    println!("{known} of {again} decisions were known");
    assert!(known > again / 20, "{known} of {again} were known");
}

#[test]
fn every_refutation_was_replayed_and_says_what_breaks() {
    for_all(5, |_, case, invariants, pool| {
        let decision = decide(&mut engine(invariants, pool), &case.snapshot(), &case.in_flight, &case.change);
        for verdict in decision.verdicts.iter().filter(|v| v.outcome == Finding::Refuted) {
            let counterexample = verdict.counterexample.as_ref();
            let told = counterexample.is_some_and(|c| c.replayed && !c.broken.is_empty() && !c.steps.is_empty());
            assert!(told, "{verdict:#?}\n{}", case.describe(pool));
            assert!(!verdict.message.is_empty() && verdict.message.lines().count() <= 10, "{}", verdict.message);
        }
    });
}

/// The namespaces that a refutation speaks of: of its instance, its steps, its message, and what it was proved against.
fn namespaces(verdict: &Verdict, change: &Change, in_flight: &[Request]) -> BTreeSet<String> {
    let steps = verdict.counterexample.iter().flat_map(|c| &c.steps).flat_map(|s| s.objects.iter().chain([&s.effect]));
    let texts = steps.chain([&verdict.instance, &verdict.message]).chain(verdict.proved_against.keys());
    let mut found = BTreeSet::new();
    for word in texts.flat_map(|text| text.split(|c: char| c.is_whitespace() || c == ',' || c == ';')) {
        match *word.split('/').collect::<Vec<_>>() {
            [_, ns, _] => drop(found.insert(ns.to_owned())),
            ["Namespace", name] => drop(found.insert(name.to_owned())),
            _ => {}
        }
    }
    found.extend(change.requests.iter().chain(in_flight).map(|r| r.target.ns.to_string()));
    found
}

#[test]
fn the_facts_that_an_explanation_names_still_refute() {
    for_all(6, |_, case, invariants, pool| {
        let decision = decide(&mut engine(invariants, pool), &case.snapshot(), &case.in_flight, &case.change);
        for verdict in decision.verdicts.iter().filter(|v| v.outcome == Finding::Refuted) {
            let kept = namespaces(verdict, &case.change, &case.in_flight);
            let objects: Vec<Val> = case
                .objects
                .iter()
                .filter(|o| o.str_at(&["metadata", "namespace"]).is_none_or(|ns| kept.contains(&**ns)))
                .cloned()
                .collect();
            let again = decide(&mut engine(invariants, pool), &snapshot(&objects), &case.in_flight, &case.change);
            let found = by_instance(&again).get(&(&*verdict.invariant, &*verdict.instance)).map(|(f, _)| *f);
            assert_eq!(found, Some(Finding::Refuted), "{verdict:#?}\n{}", case.describe(pool));
        }
    });
}

#[test]
fn any_pods_that_a_custom_resource_selects_may_go_when_it_wants_fewer() {
    let pool = Pool::new();
    let mut tried = 0;
    for at in 0..20 * number("SUTURE_LAWS_CASES", CASES) {
        let mut random = Random::new(number("SUTURE_ORACLE_SEED", 1).wrapping_mul(1_000).wrapping_add(8), at);
        let case = Case::about(&mut random, 0, Focus::Pods, Size::FULL);
        let snapshot = case.snapshot();
        let state = State::new(&snapshot);
        for custom in
            state.list(&db(), None).into_iter().filter(|o| o.live() && o.val().at(&["spec", "replicas"]).is_some())
        {
            let facts = state.adapter(custom).expect("it has an adapter");
            let workload =
                state.owned_by(&custom.uid).into_iter().any(|o| !o.key.kind.is("Pod")) || facts.children.is_some();
            let decided =
                |p: &&Object| p.live() && !suture_model::fields::finished(p) && group_name(&state, p) == custom.key;
            let selector = facts.selector.as_ref().expect("it has a selector");
            let pods = state.pods_matching(&custom.key.ns, selector).into_iter().map(|p| &**p);
            let mut pods: Vec<&Key> = pods.filter(decided).map(|p| &p.key).collect();
            if workload || pods.is_empty() {
                continue;
            }
            tried += 1;
            random.shuffle(&mut pods);
            let (stay, go) = pods.split_at(random.below(pods.len()));
            let mut scenario = Scenario::observed(&snapshot);
            scenario.land(&Request::scale(User::admin(), &state, custom.key.clone(), stay.len() as i64));
            let group = group(&scenario, &Memo::default(), &custom.key, &View::default());
            let mut found = false;
            let _ = worlds(&group, &mut |choice| {
                let is_gone = |key: &Key| {
                    let entity = group.entities.iter().zip(choice).find(|(e, _)| e.key() == Some(key));
                    entity.is_some_and(|(e, n)| e.fates.iter().zip(n).any(|(f, n)| f.kind == FateKind::Gone && *n == 1))
                };
                found |= go.iter().all(|key| is_gone(key)) && !stay.iter().any(|key| is_gone(key));
                if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert!(found, "{} cannot lose {go:?} and keep {stay:?}\n{}", custom.key, case.describe(&pool));
        }
    }
    assert!(tried > 0, "no custom resource runs pods by itself");
}

#[test]
fn proofs_name_what_they_rely_on() {
    let mut assumed: BTreeMap<String, usize> = BTreeMap::new();
    let mut proofs = 0;
    for_all(7, |_, case, invariants, pool| {
        let decision = decide(&mut engine(invariants, pool), &case.snapshot(), &case.in_flight, &case.change);
        for verdict in decision.verdicts.iter().filter(|v| v.outcome == Finding::Proved) {
            proofs += 1;
            for assumption in &verdict.assumptions {
                assert!(!assumption.is_empty(), "{verdict:#?}");
                *assumed.entry(assumption.clone()).or_default() += 1;
            }
        }
    });
    println!("{proofs} proofs rely on {} assumptions, such as", assumed.len());
    for (assumption, times) in assumed.iter().take(8) {
        println!("  {times} times: {assumption}");
    }
    assert!(!assumed.is_empty(), "no proof relies on anything");
}

#[test]
fn a_proof_says_that_no_node_admits_new_pods() {
    let pool = Pool::new();
    let set = |kind: &str, name: &str, owner: Value, more: Value| {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "a", "uid": name, "ownerReferences": owner},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"run": "w"}}, "strategy": {"rollingUpdate": {"maxUnavailable": 0}},
                "template": {"metadata": {"labels": {"run": "w", "app": "x"}}, "spec": more}}})
    };
    let owned = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}]);
    let objects = [
        set("Deployment", "w", json!([]), json!({})),
        set("ReplicaSet", "w-1", owned("Deployment", "w"), json!({})),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a", "uid": "p", "labels": {"run": "w", "app": "x"},
            "ownerReferences": owned("ReplicaSet", "w-1")}, "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "a", "uid": "s"}, "spec": {"selector": {"app": "x"}}}),
    ];
    let snapshot = snapshot(&objects.each_ref().map(Val::from));
    let invariant = pool.by_family()["service-keeps-endpoints"][0];
    let found = |constraint: Value| {
        let template =
            json!({"spec": {"template": {"metadata": {"labels": {"app": "y"}}, "spec": {"nodeSelector": constraint}}}});
        let key = Key::of("Deployment", "a", "w");
        let request =
            Request::patch(User::admin(), &State::new(&snapshot), key, &Val::from(&template), "").expect("a patch");
        let decision = decide(&mut engine(&[invariant], &pool), &snapshot, &[], &Change::from(request));
        let [verdict] = decision.verdicts.as_slice() else { panic!("{decision:#?}") };
        (verdict.outcome, verdict.assumptions.clone())
    };
    let (outcome, assumed) = found(json!({"disk": "tape"}));
    assert_eq!(outcome, Finding::Proved);
    assert!(assumed.contains(&"no node admits new pods of Deployment/a/w".to_owned()), "{assumed:?}");
    assert_eq!(found(json!({"kubernetes.io/hostname": "n1"})).0, Finding::Refuted);
}
