//! What a webhook leaves out: a change in flight that is not relevant to a request changes no verdict on it.
//!
//! `SUTURE_RELEVANCE_CASES` says how many universes are tried, `SUTURE_ORACLE_SEED` which ones.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it fails")]

mod universe;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use suture_checker::decision::{Decision, Finding};
use suture_checker::engine::{Engine, Input, Settings};
use suture_encode::analysis::Analysis;
use suture_encode::relevance::Relevance;
use suture_model::adapter::NoAdapters;
use suture_model::change::{Change, Request, User};
use suture_model::kinds::Kind;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::Violations;
use universe::invariants::Pool;
use universe::random::Random;
use universe::{Case, Size, changes, number};

/// How many universes are tried where nothing else is said.
const CASES: u64 = 400;
/// How many changes are in flight at most.
const IN_FLIGHT_MAX: usize = 3;
/// How many invariants an engine has.
const INVARIANTS: usize = 6;

fn decide(engine: &mut Engine, snapshot: &Snapshot, in_flight: &[Request], change: &Change) -> Decision {
    engine.decide(&Input { snapshot, in_flight, change, time: None, exemptions: &[] })
}

fn told(request: &Request) -> String {
    let written = request.object.as_ref().map(|object| format!(": {}", serde_json::to_string(object).expect("JSON")));
    format!("{}{}", suture_model::land::describe(request), written.unwrap_or_default())
}

/// What is not proved, with what was found.
fn found(decision: &Decision) -> BTreeSet<(&str, &str, Finding)> {
    let open = decision.verdicts.iter().filter(|v| v.outcome != Finding::Proved);
    open.map(|v| (&*v.invariant, &*v.instance, v.outcome)).collect()
}

/// Writes of what others may refer to.
fn referents() -> impl Iterator<Item = Request> {
    let review = |operation: &str, kind: &str, name: &str| {
        let mut object = json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"name": name, "namespace": "a", "uid": format!("uid of {kind} {name}")}, "data": {"k": "dg=="}});
        let mut request = json!({"uid": format!("{operation} {kind} {name}"), "operation": operation, "name": name,
            "kind": {"group": "", "version": "v1", "kind": kind}, "namespace": "a",
            "userInfo": {"username": "ana"}});
        if operation != "CREATE" {
            request["oldObject"] = object.clone();
        }
        if operation != "DELETE" {
            object["data"]["more"] = json!("dg==");
            request["object"] = object;
        }
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        Request::from_review(&serde_json::from_value(review).expect("a value")).expect("a request")
    };
    let all = [
        ("CREATE", "ConfigMap", "made"),
        ("CREATE", "ConfigMap", "plain"),
        ("CREATE", "Secret", "s1"),
        ("UPDATE", "ConfigMap", "c1"),
        ("UPDATE", "ConfigMap", "plain"),
        ("DELETE", "ConfigMap", "c1"),
        ("DELETE", "Secret", "s1"),
        ("DELETE", "Secret", "other"),
    ];
    all.into_iter().map(move |(operation, kind, name)| review(operation, kind, name))
}

/// Scalings of every workload, up and down.
fn scalings(state: &State<'_>) -> Vec<Request> {
    let kinds = ["Deployment", "ReplicaSet", "StatefulSet"].iter().filter_map(|kind| Kind::builtin(kind));
    let workloads = kinds.flat_map(|kind| state.list(&kind, None));
    workloads
        .flat_map(|workload| [0, 4].map(|to| Request::scale(User::admin(), state, workload.key.clone(), to)))
        .collect()
}

/// How many pairs are seen to be apart without a look at what they reach. They are.
fn count_apart(relevance: &Relevance<'_>, requests: &[Request]) -> u64 {
    let mut apart = 0;
    for (a, b) in requests.iter().flat_map(|a| requests.iter().map(move |b| (a, b))) {
        if relevance.apart(a, b) {
            apart += 1;
            let reach = |request, other| [relevance.reach(&[], request), relevance.reach(&[other], request)];
            let (of_a, of_b) = (reach(a, b), reach(b, a));
            let meet = of_a.iter().any(|one| of_b.iter().any(|other| one.meets(other)));
            assert!(!meet, "{} and {} are not apart: {of_a:?}, {of_b:?}", told(a), told(b));
        }
    }
    apart
}

#[test]
fn what_is_left_out_changes_no_verdict() {
    let pool = Pool::new();
    let seed = number("SUTURE_ORACLE_SEED", 1).wrapping_mul(1_000).wrapping_add(9);
    let (mut kept, mut left_out, mut refuted, mut at_once, mut apart) = (0, 0, 0, 0, 0);
    for at in 0..number("SUTURE_RELEVANCE_CASES", CASES) {
        let mut random = Random::new(seed, at);
        let case = Case::random(&mut random, &pool, Size::FULL);
        let chosen: BTreeSet<usize> =
            [case.invariant].into_iter().chain((1..INVARIANTS).map(|_| pool.choose(&mut random))).collect();
        // a strict invariant blames a request for what others do to an instance that they reach together
        let strict = |invariant: &CompiledInvariant| invariant.violations == Violations::Strict;
        let invariants: Vec<_> = chosen.iter().map(|at| pool.get(*at).clone()).filter(|i| !strict(i)).collect();
        let analyses = Analysis::of_all(invariants.iter().cloned());
        let settings = Settings { suggest: false, ..Settings::default() };
        let mut engine = Engine::new(invariants, settings).expect("the linked Z3 is the pinned one");
        let snapshot = case.snapshot();
        let state = State::new(&snapshot);
        let focus = pool.focus(case.invariant);
        let in_flight: Vec<Request> =
            (0..=random.below(IN_FLIGHT_MAX)).map(|_| changes::request(&mut random, &state, focus)).collect();
        let change = Change::from(changes::request(&mut random, &state, focus));
        let relevance = Relevance::new(&snapshot, &analyses);
        let relevant = relevance.select(&in_flight, &change.requests[0]);
        let matter: Vec<Request> = relevant.places.iter().map(|at| in_flight[*at].clone()).collect();
        for (at, other) in in_flight.iter().enumerate().filter(|(at, _)| !relevant.places.contains(at)) {
            assert!(
                !relevance.concerns(&relevant, other),
                "{at} would matter if it came later\n{}",
                case.describe(&pool)
            );
        }
        let (all, some) =
            (decide(&mut engine, &snapshot, &in_flight, &change), decide(&mut engine, &snapshot, &matter, &change));
        let plain = snapshot.with_adapters(Arc::new(NoAdapters));
        let known: Vec<Request> = in_flight.iter().chain(&change.requests).cloned().chain(referents()).collect();
        apart += count_apart(&Relevance::new(&plain, &analyses), &known);
        count_apart(&relevance, &known);
        // nor does it matter how much time is taken
        let input = Input { snapshot: &snapshot, in_flight: &matter, change: &change, time: None, exemptions: &[] };
        if engine.decide_at_once(&input).is_some() {
            assert_eq!(found(&some), BTreeSet::new(), "{at} is allowed at once\n{}", case.describe(&pool));
            at_once += 1;
        }
        if found(&all) != found(&some) {
            let open =
                [&all, &some].map(|d| d.verdicts.iter().filter(|v| v.outcome != Finding::Proved).collect::<Vec<_>>());
            let (all, some) = (found(&all), found(&some));
            let told: Vec<_> = in_flight.iter().chain(&change.requests).map(told).collect();
            panic!(
                "universe {at}: {all:#?} with all of {told:#?}, {some:#?} with {:?}\n{open:#?}\n{}",
                relevant.places,
                case.describe(&pool)
            );
        }
        kept += matter.len();
        left_out += in_flight.len() - matter.len();
        refuted += usize::from(all.verdicts.iter().any(|v| v.outcome == Finding::Refuted));
    }
    println!(
        "relevance: {kept} changes in flight kept, {left_out} left out, {apart} pairs apart at once, {refuted} requests \
         denied, {at_once} at once"
    );
    assert!(kept > 0 && left_out > 0 && apart > 0 && refuted > 0 && at_once > 0, "too little was tried");
}

#[test]
fn scalings_that_are_apart_reach_nothing_in_common() {
    let pool = Pool::new();
    let all = Analysis::of_all((0..pool.len()).map(|at| pool.get(at).clone()));
    let seed = number("SUTURE_ORACLE_SEED", 1).wrapping_mul(1_000).wrapping_add(10);
    let (mut pairs, mut apart) = (0, 0);
    for at in 0..number("SUTURE_RELEVANCE_CASES", CASES) {
        let mut random = Random::new(seed, at);
        // what two universes call alike is related in more ways than one would make it
        let cases = [0; 2].map(|_| Case::random(&mut random, &pool, Size::FULL));
        let objects = cases.map(|case| case.objects).concat();
        let snapshot = universe::snapshot(&objects).with_adapters(Arc::new(NoAdapters));
        let scalings = scalings(&State::new(&snapshot));
        // each alone, where none keeps the others from being told apart
        for analysis in (0..INVARIANTS).map(|_| &all[random.below(all.len())]) {
            let analysis = std::slice::from_ref(analysis);
            apart += count_apart(&Relevance::new(&snapshot, analysis), &scalings);
            pairs += scalings.len() * scalings.len();
        }
    }
    println!("relevance: {apart} of {pairs} pairs of scalings are apart");
    assert!(apart > 0, "too little was tried");
}
