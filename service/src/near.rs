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
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::Violations;

use crate::clock::Clock;
use crate::one_step::side::Side;
use crate::one_step::{Covered, Kind, Step, steps};
use crate::policy::Policy;

/// A survey may take what it takes: nobody waits for an answer in time.
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
    size: (Kind, u64, String),
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
    by_faults(policy, snapshot, time, violated, &mut near)?;
    let mut side = Side::new(policy)?;
    let (state, user) = (State::new(snapshot), User::admin());
    let mut found: BTreeMap<(String, String), ByRequest> = BTreeMap::new();
    for object in snapshot.iter() {
        look(&object.key.to_string());
        near.objects += 1;
        for Step { kind, by, request } in steps(&state, object, &user) {
            *near.covered.entry(kind).or_default() += 1;
            let words = request.describe();
            let change = Change::from(request);
            let decision = side.decide(snapshot, &change, time);
            near.undecided += u64::from(decision.verdicts.iter().any(|verdict| verdict.outcome == Finding::Undecided));
            let refuted = decision.verdicts.into_iter().filter(|verdict| verdict.outcome == Finding::Refuted);
            for verdict in refuted {
                let at = (verdict.invariant.clone(), verdict.instance.clone());
                if !violated.contains(&at) {
                    let size = (kind, by, words.clone());
                    note(&mut found, at, ByRequest { count: 1, smallest: words.clone(), verdict, size });
                }
            }
        }
    }
    near.requests = found.into_values().collect();
    Ok(near)
}

fn note(found: &mut BTreeMap<(String, String), ByRequest>, at: (String, String), new: ByRequest) {
    match found.get_mut(&at) {
        None => drop(found.insert(at, new)),
        Some(known) => {
            let count = known.count + 1;
            if new.size < known.size {
                *known = new;
            }
            known.count = count;
        }
    }
}

fn by_faults(
    policy: &Policy,
    snapshot: &Snapshot,
    time: Option<Clock>,
    violated: &BTreeSet<(String, String)>,
    near: &mut Near,
) -> Result<(), VersionError> {
    let kinds = [
        (Fault::None, Faults::default()),
        (Fault::Node, Faults { nodes: 1, zones: 0 }),
        (Fault::Zone, Faults { nodes: 0, zones: 1 }),
    ];
    let mut known = violated.clone();
    for (fault, faults) in kinds {
        let settings = Settings { steps: STEPS, suggest: false, ..Settings::default() };
        let mut engine = Engine::new(under(policy, faults), settings)?;
        let time = time.map(|time| time.to_string());
        for verdict in engine.foresee(snapshot, time.as_deref()).verdicts {
            let at = (verdict.invariant.clone(), verdict.instance.clone());
            match verdict.outcome {
                Finding::Refuted if known.insert(at) => near.faults.push(ByFault { fault, verdict }),
                Finding::Undecided => near.undecided += 1,
                Finding::Refuted | Finding::Proved | Finding::NotWorse => {}
            }
        }
    }
    near.faults.sort_by(|a, b| {
        (&a.verdict.invariant, &a.verdict.instance, a.fault).cmp(&(&b.verdict.invariant, &b.verdict.instance, b.fault))
    });
    Ok(())
}

/// The invariants as if they had to survive these faults, and nobody were excused.
fn under(policy: &Policy, faults: Faults) -> Vec<Arc<CompiledInvariant>> {
    let under = |invariant: &Arc<CompiledInvariant>| {
        Arc::new(CompiledInvariant { faults, violations: Violations::Strict, ..(**invariant).clone() })
    };
    policy.invariants.iter().map(under).collect()
}
