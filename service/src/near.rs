//! What is one fault, or one request that the API server would take, away from breaking in the cluster as it is.
//!
//! Faults: one node fails, or one zone; and none, by what controllers may do anyway. Requests: every one of one step
//! ([`crate::one_step`]), whoever may send it. What is violated already is left to the audit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use suture_checker::decision::{Finding, Verdict};
use suture_checker::engine::{Engine, Settings};
use suture_checker::version::VersionError;
use suture_model::change::{Change, User};
use suture_model::futures::Faults;
use suture_model::object::{Key, Object};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::Violations;

use crate::clock::Clock;
use crate::one_step::side::Side;
use crate::one_step::{Covered, Kind, Step, steps};
use crate::policy::Policy;

/// Of a whole cluster, one answer may take what it takes: nobody waits for it in time.
const STEPS: u64 = u64::MAX / 4;

/// What brings an instance down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// Nothing but what may happen anyway.
    None,
    /// One node fails.
    Node,
    /// One zone fails.
    Zone,
}

/// An instance that a fault breaks.
#[derive(Clone, Debug, Serialize)]
pub struct ByFault {
    /// Which fault.
    pub fault: Fault,
    /// How it breaks.
    pub verdict: Verdict,
}

/// An instance that requests break.
#[derive(Clone, Debug, Serialize)]
pub struct ByRequest {
    /// How many requests of one step do.
    pub count: u64,
    /// The one that changes least, in words.
    pub smallest: String,
    /// How that breaks it.
    pub verdict: Verdict,
    /// How much that changes.
    #[serde(skip)]
    pub size: (Kind, u64, String),
}

/// What is one step away from breaking.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Near {
    /// By a fault, in the order of invariants and instances.
    pub faults: Vec<ByFault>,
    /// By a request, in the same order.
    pub requests: Vec<ByRequest>,
    /// How many requests of each kind were judged.
    pub covered: Covered,
    /// Of how many objects.
    pub objects: u64,
    /// How many instances could not be decided under a fault, and how many requests.
    pub undecided: u64,
}

/// Looks one step ahead. `violated` says which instances, by invariant and name, are broken already; `look` is told of each
/// object that is looked at.
///
/// # Errors
/// When the linked Z3 is too old.
pub fn look_ahead(
    policy: &Policy,
    snapshot: &Snapshot,
    time: Option<Clock>,
    violated: &BTreeSet<(String, String)>,
    mut look: impl FnMut(&str),
) -> Result<Near, VersionError> {
    let mut near = Near::default();
    look("faults");
    let mut faults = UnderFaults::new(policy, Settings { steps: STEPS, ..Settings::default() })?;
    (near.faults, near.undecided) = faults.broken(snapshot, time, violated, None);
    let mut side = Side::new(policy)?;
    let state = State::new(snapshot);
    let mut found = Broken::new();
    for object in snapshot.iter() {
        look(&object.key.to_string());
        near.objects += 1;
        let of_object = by_requests(&mut side, &state, object, time, violated);
        near.undecided += of_object.undecided;
        for (kind, count) in of_object.covered {
            *near.covered.entry(kind).or_default() += count;
        }
        of_object.broken.into_iter().for_each(|(at, by)| note(&mut found, at, by));
    }
    near.requests = found.into_values().collect();
    Ok(near)
}

/// Instances that requests break, by invariant and name.
type Broken = BTreeMap<(String, String), ByRequest>;

/// What requests of one step on one object do.
#[derive(Debug, Default)]
pub struct OfObject {
    /// What they break.
    pub broken: Broken,
    /// How many requests of each kind were judged.
    pub covered: Covered,
    /// How many of them could not be decided.
    pub undecided: u64,
}

/// Asks a policy for every request of one step on an object. `violated` says which instances are broken already.
pub fn by_requests(
    side: &mut Side<'_>,
    state: &State<'_>,
    object: &Object,
    time: Option<Clock>,
    violated: &BTreeSet<(String, String)>,
) -> OfObject {
    let mut found = OfObject::default();
    for step in steps(state, object, &User::admin()) {
        let (by, Step { kind, request, .. }) = (step.by(), step);
        *found.covered.entry(kind).or_default() += 1;
        let words = request.describe();
        let change = Change::from(request);
        let decision = side.decide(state.base(), &change, time);
        found.undecided += u64::from(decision.verdicts.iter().any(|verdict| verdict.outcome == Finding::Undecided));
        let refuted = decision.verdicts.into_iter().filter(|verdict| verdict.outcome == Finding::Refuted);
        for verdict in refuted {
            let at = (verdict.invariant.clone(), verdict.instance.clone());
            if !violated.contains(&at) {
                let size = (kind, by, words.clone());
                note(&mut found.broken, at, ByRequest { count: 1, smallest: words.clone(), verdict, size });
            }
        }
    }
    found
}

/// Adds requests that break an instance to those that are known.
fn note(found: &mut Broken, at: (String, String), new: ByRequest) {
    match found.get_mut(&at) {
        None => drop(found.insert(at, new)),
        Some(known) => {
            let count = known.count + new.count;
            if new.size < known.size {
                *known = new;
            }
            known.count = count;
        }
    }
}

/// A policy as if its invariants had to survive one fault, or none.
pub struct UnderFaults([(Fault, Engine); 3]);

impl UnderFaults {
    /// Of which nothing was asked yet.
    ///
    /// # Errors
    /// When the linked Z3 is too old.
    pub fn new(policy: &Policy, settings: Settings) -> Result<Self, VersionError> {
        let settings = Settings { suggest: false, ..settings };
        let engine =
            |nodes, zones| Engine::new(under(policy, Faults { nodes, zones, ..Faults::default() }), settings.clone());
        Ok(Self([(Fault::None, engine(0, 0)?), (Fault::Node, engine(1, 0)?), (Fault::Zone, engine(0, 1)?)]))
    }

    /// What breaks of what is not `violated` already, in the order of invariants and instances, and how many instances could
    /// not be decided: of all, or of one object.
    pub fn broken(
        &mut self,
        snapshot: &Snapshot,
        time: Option<Clock>,
        violated: &BTreeSet<(String, String)>,
        one: Option<&Key>,
    ) -> (Vec<ByFault>, u64) {
        let (mut found, mut undecided, mut known) = (Vec::new(), 0, BTreeSet::new());
        let time = time.map(|time| time.to_string());
        for (fault, engine) in &mut self.0 {
            let decision = match one {
                Some(key) => engine.foresee_one(snapshot, time.as_deref(), key),
                None => engine.foresee(snapshot, time.as_deref()),
            };
            for verdict in decision.verdicts {
                let at = (verdict.invariant.clone(), verdict.instance.clone());
                match verdict.outcome {
                    Finding::Refuted if violated.contains(&at) || !known.insert(at) => {}
                    Finding::Refuted => found.push(ByFault { fault: *fault, verdict }),
                    Finding::Undecided => undecided += 1,
                    Finding::Proved | Finding::NotWorse => {}
                }
            }
        }
        let place = |by: &ByFault| (by.verdict.invariant.clone(), by.verdict.instance.clone(), by.fault);
        found.sort_by_key(place);
        (found, undecided)
    }
}

/// The invariants as if they had to survive these faults, and nobody were excused.
fn under(policy: &Policy, faults: Faults) -> Vec<Arc<CompiledInvariant>> {
    let under = |invariant: &Arc<CompiledInvariant>| {
        Arc::new(CompiledInvariant { faults, violations: Violations::Strict, ..(**invariant).clone() })
    };
    policy.invariants.iter().map(under).collect()
}
