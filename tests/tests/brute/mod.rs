//! The verdict by brute force: every scenario, every outage, every choice of fates, each judged by the concrete
//! evaluator. Shares with the checker what the model declares (scenarios, groups, fates, limits) and nothing that crate
//! `encode` does with it: no slicing to reached instances, no classes, no equal nodes, no folding, no solver.

pub mod enumerate;
pub mod shrink;
mod truth;
pub mod unread;

use std::collections::BTreeMap;
use std::sync::Arc;

use suture_checker::decision::Finding;
use suture_checker::engine::{Engine, Input, Settings};
use suture_checker::solve::Budget;
use suture_model::snapshot::Snapshot;
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::Violations;

use enumerate::Before;
pub use truth::{TIME, Truth, Unfit};

use crate::universe::Case;
use crate::universe::invariants::Pool;

/// The two verdicts on one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The instance.
    pub instance: String,
    /// By brute force.
    pub truth: Truth,
    /// What is so without the change, too.
    pub before: Before,
    /// Whether every request that leaves it breakable is to blame.
    pub strict: bool,
    /// By the checker; `None` when it does not name the instance, which counts as proved or not worse.
    pub found: Option<Finding>,
    /// Why the checker is undecided, or how it refutes.
    pub reason: String,
}

impl Compared {
    /// Whether the checker is wrong. Undecided is not, only counted, unless the checker found a counterexample that does
    /// not replay.
    ///
    /// `Strict` blames the requests that reach an instance: one that is breakable with and without a request that does
    /// not reach it says nothing of the request.
    pub fn differs(&self) -> bool {
        if self.strict && self.before.broken && self.found.is_none() {
            return false;
        }
        match (self.truth, self.found.unwrap_or(Finding::Proved)) {
            (_, Finding::Undecided) => self.reason.starts_with("distrust"),
            (Truth::Proved, Finding::Proved)
            | (Truth::NotWorse, Finding::NotWorse)
            | (Truth::Refuted, Finding::Refuted) => false,
            // a change that does not reach an instance leaves it as it can be
            (Truth::NotWorse, Finding::Proved) => self.found.is_some(),
            (Truth::Fails, Finding::Proved) if self.before.fails => self.found.is_some(),
            (Truth::Fails | Truth::Refuted, Finding::Proved)
            | (Truth::Proved | Truth::Fails | Truth::Refuted, Finding::NotWorse)
            | (Truth::Proved | Truth::NotWorse | Truth::Fails, Finding::Refuted) => true,
        }
    }
}

/// An engine for each invariant of a pool, made when it is first used.
pub struct Engines {
    engines: BTreeMap<usize, Engine>,
}

impl Engines {
    /// None yet.
    pub fn new() -> Self {
        Self { engines: BTreeMap::new() }
    }

    /// The checker's findings on a case: by instance, with the reason or message.
    pub fn check(&mut self, case: &Case, pool: &Pool) -> BTreeMap<String, (Finding, String)> {
        self.check_in(case, &case.snapshot(), pool).into_iter().collect()
    }

    /// The checker's findings on the change of a case in this cluster: more than one on an instance that a request is about,
    /// if others are undecided.
    pub fn check_in(&mut self, case: &Case, snapshot: &Snapshot, pool: &Pool) -> Vec<(String, (Finding, String))> {
        let engine =
            self.engines.entry(case.invariant).or_insert_with(|| engine(vec![pool.get(case.invariant).clone()]));
        let input =
            Input { snapshot, in_flight: &case.in_flight, change: &case.change, time: Some(TIME), exemptions: &[] };
        let verdicts = engine.decide(&input).verdicts.into_iter();
        verdicts.map(|v| (v.instance, (v.outcome, v.reason.unwrap_or(v.message + &v.assumptions.join("; "))))).collect()
    }
}

/// An engine that says all it knows and whose budget is no concern.
pub fn engine(invariants: Vec<Arc<CompiledInvariant>>) -> Engine {
    let budget = Budget { rlimit: 2_000_000, deadline_ms: 60_000 };
    let settings = Settings { budget, verbose: true, suggest: false, ..Settings::default() };
    Engine::new(invariants, settings).expect("the linked Z3 is the pinned one")
}

/// Both verdicts on every instance of a case.
pub fn compare(case: &Case, pool: &Pool, engines: &mut Engines, worlds_max: u64) -> Result<Vec<Compared>, Unfit> {
    let truth = enumerate::truth(case, pool.get(case.invariant), worlds_max)?;
    let found = engines.check(case, pool);
    let mut all: Vec<Compared> = Vec::new();
    let strict = pool.get(case.invariant).violations == Violations::Strict;
    for (instance, (truth, before)) in &truth {
        let (found, reason) = found.get(instance).map_or((None, String::new()), |(f, r)| (Some(*f), r.clone()));
        let (instance, truth, before) = (instance.clone(), *truth, *before);
        all.push(Compared { instance, truth, before, strict, found, reason });
    }
    for (instance, (finding, reason)) in found {
        if !truth.contains_key(&instance) {
            // brute force sees all instances there are: one that only the checker sees must be harmless
            let (truth, found) = (Truth::Proved, Some(finding));
            all.push(Compared { instance, truth, before: Before::default(), strict, found, reason });
        }
    }
    Ok(all)
}
