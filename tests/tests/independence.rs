//! Decisions beside what is in flight: those entries that may change no fact which a decision reads change no verdict.
//!
//! Histories are random: requests are entered one after the other, the watch shows some of them in between, and a request is
//! decided at the end, once beside all that is in flight and once beside what the ledger finds by facts.
//! `SUTURE_INDEPENDENCE_CASES` says how many histories are tried, `SUTURE_ORACLE_SEED` which ones.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it fails")]

mod universe;

use std::cell::RefCell;
use std::collections::BTreeSet;

use suture_checker::decision::{Decision, Finding};
use suture_checker::engine::{Engine, Settings};
use suture_model::change::{Change, Operation, Preconditions, Request, User};
use suture_model::ingest::ingest;
use suture_model::kinds::KindTraits;
use suture_model::land::SCENARIOS_MAX;
use suture_model::snapshot::{Facts, Snapshot};
use suture_model::state::State;
use suture_model::value::Val;
use suture_service::decide::{Question, decide};
use suture_service::grants::History;
use suture_service::input::Source;
use suture_service::ledger::{Ledger, Progress, Sight};
use suture_service::policy::{Documents, Policy};
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::Violations;
use suture_tests::in_parts;
use universe::invariants::Pool;
use universe::random::Random;
use universe::{Case, Size, changes, number};

/// How many histories are tried where nothing else is said.
const CASES: u64 = 200;
/// In how many histories at most it is looked for one that is decided otherwise.
const LOOKED_MAX: u64 = 1_600;
/// Histories that were decided otherwise: their seeds and numbers.
const KNOWN: [(u64, u64); 1] = [(37, 825)];
/// How many requests of a history are in flight or shown.
const STEPS: usize = 6;
/// How many are in flight at most: each doubles the work of deciding beside all.
const OPEN_MAX: usize = 4;
/// In how many ways they may have landed where that is to be too many for some invariants.
const WAYS_FEW: usize = 2;
/// How many invariants an engine has.
const INVARIANTS: usize = 6;

/// A claim with its volume.
const CLAIM: &str = "
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: a, uid: c}, spec: {volumeName: v}, status: {phase: Bound}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: v, uid: v}, spec: {persistentVolumeReclaimPolicy: Retain, claimRef: {namespace: a, name: data, uid: c}}, status: {phase: Bound}}
";
/// That its data may be had again.
const RECOVERABLE: &str =
    "{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: kept}, spec: {template: data-recoverable}}";

/// A cluster, what is in flight, and a request.
struct Moment {
    snapshot: Snapshot,
    ledger: Ledger,
    change: Change,
    policy: Policy,
    told: String,
}

/// What is not proved, with what was found. Left out is what has no value in some future: beside all that is in flight more
/// instances are reached, by what is in flight alone, and such a one is undecided whatever the request does.
type Found = BTreeSet<(String, String, Finding)>;

fn found(decision: &Decision) -> Found {
    let has_value = |reason: &str| !reason.contains("cannot be evaluated in some future");
    let decided = decision.verdicts.iter().filter(|v| v.reason.as_deref().is_none_or(has_value));
    let open = decided.filter(|v| v.outcome != Finding::Proved);
    open.map(|v| (v.invariant.clone(), v.instance.clone(), v.outcome)).collect()
}

impl Moment {
    fn random(random: &mut Random, pool: &Pool) -> Self {
        let case = Case::random(random, pool, Size::FULL);
        let chosen: BTreeSet<usize> =
            [case.invariant].into_iter().chain((1..INVARIANTS).map(|_| pool.choose(random))).collect();
        // a strict invariant blames a request for what others do to an instance that they reach together
        let strict = |invariant: &CompiledInvariant| invariant.violations == Violations::Strict;
        let invariants: Vec<_> = chosen.iter().map(|at| pool.get(*at).clone()).filter(|i| !strict(i)).collect();
        let focus = pool.focus(case.invariant);
        let (mut snapshot, mut ledger) = (case.snapshot(), Ledger::default());
        let mut told = case.describe(pool);
        for _ in 0..STEPS {
            let state = State::new(&snapshot);
            let request = changes::request(random, &state, focus);
            if random.chance(70) && ledger.entries().count() < OPEN_MAX {
                told.push_str(&format!("\nenters {}", suture_model::land::describe(&request)));
                ledger.record(&request, &snapshot, None);
            } else {
                told.push_str(&format!("\nshows {}", suture_model::land::describe(&request)));
                let shown = show(&mut snapshot, &request);
                ledger.observe(Sight { snapshot: &snapshot, progress: Progress::Written(&shown) }, None);
            }
        }
        let change = Change::from(changes::request(random, &State::new(&snapshot), focus));
        let change_told = change.requests.iter().map(suture_model::land::describe).collect::<Vec<_>>();
        told.push_str(&format!("\ndecides {change_told:?}"));
        let (adapters, documents) = (snapshot.adapters().clone(), std::sync::Arc::default());
        let (exemptions, grants) = (Vec::new(), suture_service::grants::Grants::default());
        let [written_adapters, defined_adapters] = [(); 2].map(|()| [].into());
        let policy = Policy { invariants, adapters, written_adapters, defined_adapters, exemptions, grants, documents };
        Self { policy, snapshot, ledger, change, told }
    }

    /// A claim is deleted while it is in flight that its volume is to be reclaimed: that changes the volume alone, which the
    /// decision finds by its name.
    fn of_one_object() -> Self {
        let mut snapshot = Snapshot::default();
        ingest(&mut snapshot, CLAIM, "cluster").expect("it is a cluster");
        let volume =
            snapshot.iter().find(|object| object.key.kind.is("PersistentVolume")).expect("a volume").key.clone();
        let claim = snapshot.iter().find(|object| object.key.kind.is("PersistentVolumeClaim")).expect("a claim");
        let state = State::new(&snapshot);
        let policy = Val::object([("persistentVolumeReclaimPolicy", Val::str("Delete"))]);
        let reclaims = Val::object([("spec", policy)]);
        let (admin, mut ledger) = (User::admin(), Ledger::default());
        let update = Request::patch(admin.clone(), &state, volume, &reclaims, "").expect("there is a volume");
        ledger.record(&update, &snapshot, None);
        let delete = Request::delete(admin, &state, claim.key.clone(), None, Preconditions::default());
        let change = Change::from(delete);
        let source = Source { name: "policy".to_owned(), text: RECOVERABLE.to_owned() };
        let policy = Documents::read(&[source]).expect("it is an invariant").compile().expect("it compiles");
        Self { snapshot, ledger, change, policy, told: String::new() }
    }

    /// What is decided beside the writers of facts, and how many were taken into account. It begins beside what writes the
    /// object of the oldest request in flight, whether that matters or not.
    fn decide(&self, writers: impl Fn(&Facts) -> Facts) -> (Found, usize) {
        let taken = RefCell::new(BTreeSet::new());
        let select = |facts: &Facts| {
            let found: Vec<_> = self.ledger.writers(&writers(facts), self.snapshot.last_event()).cloned().collect();
            taken.borrow_mut().extend(found.iter().map(|entry| entry.order));
            found
        };
        let oldest = self.ledger.entries().next();
        let likely = Facts::read_by(|| oldest.map(|entry| self.snapshot.get(&entry.request.target).is_some())).1;
        let decision = self.decide_beside(&select, &likely, SCENARIOS_MAX);
        (found(&decision), taken.into_inner().len())
    }

    /// What is decided where no more than these ways to land are told apart, and the invariants for which those are too few;
    /// none of it where that says nothing of any.
    fn decide_in_ways(&self, ways_max: usize) -> Option<(Found, BTreeSet<String>)> {
        let select = |facts: &Facts| self.ledger.writers(facts, self.snapshot.last_event()).cloned().collect();
        let decision = self.decide_beside(&select, &Facts::default(), ways_max);
        let is_crowded = |reason: &String| reason.contains("changes are in flight and touch this");
        let crowded = decision.verdicts.iter().filter(|verdict| verdict.reason.as_ref().is_some_and(is_crowded));
        let crowded: BTreeSet<String> = crowded.map(|verdict| verdict.invariant.clone()).collect();
        (crowded.len() < self.policy.invariants.len()).then(|| (found(&decision), crowded))
    }

    /// What is decided beside all that is in flight.
    fn decide_beside_all(&self) -> Found {
        found(&self.decide_beside(&|_| self.ledger.entries().cloned().collect(), &Facts::default(), SCENARIOS_MAX))
    }

    fn decide_beside(
        &self,
        writers: &dyn Fn(&Facts) -> Vec<suture_service::ledger::Entry>,
        likely_reads: &Facts,
        ways_max: usize,
    ) -> Decision {
        let settings = Settings { suggest: false, ..Settings::default() };
        let mut engine =
            Engine::new(self.policy.invariants.clone(), settings).expect("the linked Z3 is the pinned one");
        let question = Question {
            snapshot: &self.snapshot,
            change: &self.change,
            writers,
            ways_max,
            hopes: false,
            likely_reads,
            counted: &[],
            history: &History::default(),
            time: None,
            unread: &[],
        };
        decide(&self.policy, Some(&mut engine), &question).decision
    }
}

/// Lets the watch show what a request does, and says which objects that writes.
fn show(snapshot: &mut Snapshot, request: &Request) -> Vec<suture_model::object::Key> {
    let mut state = State::new(snapshot);
    suture_model::apply::apply(&mut state, request);
    let delta = state.delta().clone();
    for (key, object) in &delta {
        match object {
            Some(object) => snapshot.insert_shared(object.clone()),
            None => drop(snapshot.remove(key)),
        }
    }
    delta.into_keys().collect()
}

fn random(seed: u64, at: u64) -> Random {
    Random::new(seed.wrapping_mul(1_000).wrapping_add(9), at)
}

/// Which histories are tried.
fn seed() -> u64 {
    number("SUTURE_ORACLE_SEED", 1)
}

/// What the histories were about.
#[derive(Default)]
struct Tried {
    kept: usize,
    left_out: usize,
    refuted: usize,
    /// How many were decided for some invariants alone.
    in_parts: usize,
    /// What requests in flight did with autoscalers.
    autoscalers: BTreeSet<Operation>,
}

impl Tried {
    /// Decides a history beside all, beside what matters, and where few ways to land are told apart.
    fn add(&mut self, seed: u64, at: u64, pool: &Pool) {
        let moment = Moment::random(&mut random(seed, at), pool);
        let all = moment.decide_beside_all();
        let (some, taken) = moment.decide(Facts::clone);
        assert_eq!(all, some, "history {at} of seed {seed}: beside all, and beside what matters\n{}", moment.told);
        if let Some((alone, crowded)) = moment.decide_in_ways(WAYS_FEW) {
            // beside more that is in flight more is undecided
            let undecided: BTreeSet<_> = all.iter().chain(&alone).filter(|(.., f)| *f == Finding::Undecided).collect();
            let is_open = |(invariant, instance, _): &&(String, String, Finding)| {
                crowded.contains(invariant) || undecided.iter().any(|(i, o, _)| i == invariant && o == instance)
            };
            let decided = |found: &Found| -> Found { found.iter().filter(|one| !is_open(one)).cloned().collect() };
            assert_eq!(
                decided(&all),
                decided(&alone),
                "history {at} of seed {seed}: without {crowded:?}\n{}",
                moment.told
            );
            self.in_parts += usize::from(!crowded.is_empty());
        }
        self.kept += taken;
        self.left_out += moment.ledger.entries().count() - taken;
        self.refuted += usize::from(all.iter().any(|(_, _, finding)| *finding == Finding::Refuted));
        let entries = moment.ledger.entries().map(|entry| &entry.request);
        let about = entries.filter(|request| request.target.kind.has(KindTraits::scales));
        self.autoscalers.extend(about.map(|request| request.operation));
    }

    fn join(mut self, other: Self) -> Self {
        self.kept += other.kept;
        self.left_out += other.left_out;
        self.refuted += other.refuted;
        self.in_parts += other.in_parts;
        self.autoscalers.extend(other.autoscalers);
        self
    }
}

#[test]
fn what_may_change_nothing_that_is_read_changes_no_verdict() {
    let pool = Pool::new();
    let cases = number("SUTURE_INDEPENDENCE_CASES", CASES);
    let parts = in_parts(|first, steps| {
        let mut tried = Tried::default();
        (0..cases).skip(first).step_by(steps).for_each(|at| tried.add(seed(), at, &pool));
        tried
    });
    let Tried { kept, left_out, refuted, in_parts, autoscalers } =
        parts.into_iter().fold(Tried::default(), Tried::join);
    println!("independence: {kept} entries taken into account, {left_out} left out, {refuted} requests denied");
    println!("independence: {in_parts} decided for some invariants alone, in {WAYS_FEW} ways");
    assert!(kept > 0 && left_out > 0 && refuted > 0 && in_parts > 0, "too little was tried");
    assert_eq!(autoscalers, [Operation::Create, Operation::Update, Operation::Delete].into(), "of autoscalers");
}

#[test]
fn histories_that_were_decided_otherwise_are_not() {
    let pool = Pool::new();
    KNOWN.iter().for_each(|(seed, at)| Tried::default().add(*seed, *at, &pool));
}

#[test]
fn a_key_that_is_not_noted_is_noticed() {
    let differs = |moment: &Moment, keep: fn(&Facts, &Facts) -> Facts| {
        let keys: Vec<_> = moment.snapshot.iter().map(|object| object.key.clone()).collect();
        let of_objects = Facts::read_by(|| keys.iter().filter(|key| moment.snapshot.get(key).is_some()).count()).1;
        moment.decide_beside_all() != moment.decide(|read| keep(read, &of_objects)).0
    };
    // who reads an object mostly finds it by an index, and what changes it mostly changes a key of one
    assert!(differs(&Moment::of_one_object(), Facts::without), "the key of an object makes no difference");
    // what comes under a key where nothing was found
    let pool = Pool::new();
    let without_indexes = |read: &Facts, of_objects: &Facts| read.without(&read.without(of_objects));
    let mut histories = 0..LOOKED_MAX;
    let noticed = histories.find(|at| differs(&Moment::random(&mut random(seed(), *at), &pool), without_indexes));
    println!("independence: without the keys of indexes, history {noticed:?} is decided otherwise");
    assert!(noticed.is_some(), "no history is decided otherwise without the keys of indexes");
}
