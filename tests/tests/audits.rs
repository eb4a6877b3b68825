//! An audit that looks at what changed since the last one finds what one finds that looks at everything, which finds what each
//! object is by plain evaluation: over histories of random clusters, for the invariants that brute force is asked about.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it fails")]

mod universe;

use suture_checker::audit::{Audit, Audits};
use suture_checker::decision::Finding;
use suture_checker::engine::STEPS_WEBHOOK;
use suture_encode::question::{Inputs, Judged, replay};
use suture_model::ingest::objects;
use suture_model::object::Key;
use suture_model::scenario::Scenario;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Val;
use suture_specs::compile::CompiledInvariant;
use suture_specs::error::EvalError;
use suture_specs::functions::Worlds;
use suture_specs::value::Value;

use universe::cluster::cluster;
use universe::invariants::Pool;
use universe::random::Random;
use universe::{Case, Size, changes, number};

/// Histories, if `SUTURE_AUDIT_CASES` does not say.
const CASES: u64 = 1_500;
/// Audits in each, after the first.
const AUDITS: usize = 4;

/// What was found: of which instances what, and how many hold.
type Told = (Vec<(String, Finding, String)>, u64);

fn told(audits: &Audits) -> Told {
    let verdicts = audits.each().flat_map(Audit::verdicts);
    let verdicts = verdicts.map(|v| (v.instance.clone(), v.outcome, v.message.clone())).collect();
    (verdicts, audits.each().map(Audit::proved).sum())
}

/// What one snapshot has otherwise than the other, as a person can read it.
fn changes_between(old: &Snapshot, snapshot: &Snapshot) -> String {
    let keys = snapshot.objects_changed_since(old).unwrap_or_default();
    let line = |of: &Snapshot, key: &Key| match of.get(key) {
        Some(object) => serde_json::to_string(&object.to_val()).unwrap_or_default(),
        None => "nothing".to_owned(),
    };
    keys.iter().map(|key| format!("{key}\n  was {}\n  is  {}\n", line(old, key), line(snapshot, key))).collect()
}

/// The objects of which an invariant does not hold, by plain evaluation, and how many hold.
fn evaluated(compiled: &CompiledInvariant, snapshot: &Snapshot) -> (Vec<String>, u64) {
    let state = State::new(snapshot);
    let (request, time) = (Value::from(&Val::Null), Err(EvalError::invalid("the time is not known")));
    let inputs = Inputs { request, requests: Value::list(Vec::new()), time };
    let (mut others, mut holding) = (Vec::new(), 0);
    for object in snapshot.iter() {
        if !compiled.for_each.matches(object, snapshot.adapters().as_ref()) || !compiled.matches.admits(object) {
            continue;
        }
        match replay(compiled, object, &inputs, Worlds { before: &state, now: &state }, None) {
            Judged::Holds => holding += 1,
            Judged::Violated { .. } | Judged::Fails(_) => others.push(object.key.to_string()),
        }
    }
    (others, holding)
}

/// The cluster a little later: after requests, or with objects that came, went or became others behind everybody's back.
fn later(random: &mut Random, case: &Case, pool: &Pool, snapshot: &Snapshot) -> Snapshot {
    let mut later = snapshot.clone();
    let focus = pool.focus(case.invariant);
    for turn in 0..=random.below(3) {
        let now = later.clone();
        let state = State::new(&now);
        match random.below(4) {
            0 => {
                let keys: Vec<Key> = now.iter().map(|object| object.key.clone()).collect();
                if !keys.is_empty() {
                    later.remove(random.pick(&keys));
                }
            }
            1 => {
                let mut other = cluster(random, focus, Size::FULL.smaller());
                // whose owners have other uids here
                other.retain(|val| val.at(&["metadata", "ownerReferences"]).is_none());
                if let Some(val) = (!other.is_empty()).then(|| random.pick(&other)) {
                    let val = case.fitting(val, turn);
                    objects(&val).unwrap_or_default().into_iter().for_each(|object| later.insert(object));
                }
            }
            _ => {
                let request = changes::request(random, &state, focus);
                let mut landed = Scenario::observed(&now);
                landed.land(&request);
                for (key, object) in landed.state.delta() {
                    match object {
                        Some(object) => later.insert(object.as_ref().clone()),
                        None => drop(later.remove(key)),
                    }
                }
            }
        }
    }
    later
}

#[test]
fn what_changed_is_all_that_an_audit_looks_at_again() {
    let pool = Pool::new();
    let (seed, cases) = (number("SUTURE_AUDIT_SEED", 1), number("SUTURE_AUDIT_CASES", CASES));
    let (mut audited, mut violated, mut moved) = (0, 0, 0);
    for at in 0..cases {
        let mut random = Random::new(seed, at);
        let case = Case::random(&mut random, &pool, Size::FULL);
        let compiled = pool.get(case.invariant);
        let mut snapshot = case.snapshot();
        let (mut audits, mut old) = (Audits::of([compiled.clone()]), snapshot.clone());
        let mut before = None;
        for _ in 0..=AUDITS {
            audits.audit(&snapshot, None, STEPS_WEBHOOK, |_| true);
            let mut anew = Audits::of([compiled.clone()]);
            anew.audit(&snapshot, None, STEPS_WEBHOOK, |_| true);
            let (found, all) = (told(&audits), told(&anew));
            assert_eq!(
                found,
                all,
                "case {at} of seed {seed}: {}\n{}",
                case.describe(&pool),
                changes_between(&old, &snapshot)
            );
            let (others, holding) = evaluated(compiled, &snapshot);
            let told: Vec<&String> = all.0.iter().map(|(instance, ..)| instance).collect();
            assert_eq!(told, others.iter().collect::<Vec<_>>(), "case {at} of seed {seed}");
            // what the kind alone leaves out is not counted
            assert!(all.1 <= holding, "case {at} of seed {seed}");
            audited += 1;
            violated += usize::from(found.0.iter().any(|(_, outcome, _)| *outcome == Finding::Refuted));
            moved += usize::from(before.replace(found.clone()).is_some_and(|before| before != found));
            old = snapshot;
            snapshot = later(&mut random, &case, &pool, &old);
        }
    }
    println!(
        "{audited} audits, {violated} with violations, {moved} found something else than the one before; seed {seed}"
    );
    assert!(violated > 0 && moved > 0);
}
