//! What one fault, or one request that the API server would take, breaks of what holds now: looked at object by object, round
//! and round, by the replica that audits, with the time that is left over ([`crate::near`]).
//!
//! What is found of an object stands until the object is looked at again, or is gone. A round over a large cluster takes
//! hours; what changed meanwhile is seen in the next one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suture_checker::decision::Verdict;
use suture_checker::engine::{Engine, STEPS_WEBHOOK, Settings};
use suture_checker::version::VersionError;
use suture_model::object::{Key, Object};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;

use super::resources::ResourceName;
use super::store::Store;
use crate::clock::{Clock, now};
use crate::near::{Fault, UnderFaults, by_requests};
use crate::one_step::side::Side;
use crate::policy::Policy;

/// How long it looks at a time, or for one object.
const LOOK_FOR: Duration = Duration::from_millis(25);
/// It pauses so many times as long as it took: a fortieth of a processor.
const PAUSE_FACTOR: u32 = 40;
/// The keys of so many objects are taken from the cluster at a time.
const QUEUE_LEN: usize = 256;
/// What is found of no more than so many instances is kept: of a cluster where more are one step away, a part is told.
const FOUND_MAX: usize = 16_384;
/// What is kept of decisions and answers from one request to the next: they are about different objects.
const CACHE_BYTES: usize = 256 << 10;

/// An instance that holds now, and what breaks it.
#[derive(Debug)]
struct Found {
    invariant: String,
    instance: String,
    /// How much is to happen for it: a fault alone, or by how much the request changes something.
    size: u64,
    step: String,
}

/// What is one step away from violating an invariant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nearly {
    /// The instances, each with the smallest step.
    pub instances: Vec<(String, String)>,
    /// Whether all objects were looked at; else there may be others.
    pub complete: bool,
}

/// Looks, and remembers what was found.
#[derive(Default)]
pub struct NearAudit {
    /// By what is asked, and the load that it is of.
    asked: Option<(u64, Questions)>,
    /// The objects to look at next.
    queue: VecDeque<Key>,
    /// The last one that was taken from the cluster; none at the beginning of a round.
    last: Option<Key>,
    /// What was found, by the object that was looked at.
    found: BTreeMap<Key, Vec<Found>>,
    /// How many rounds are done.
    rounds: u64,
    /// When it looked last, and how long that took.
    looked: Option<(Instant, Duration)>,
}

/// The questions of one policy.
struct Questions {
    requests: Engine,
    faults: UnderFaults,
}

impl Questions {
    fn of(policy: &Policy) -> Result<Self, VersionError> {
        let settings =
            Settings { steps: STEPS_WEBHOOK, suggest: false, cache_bytes: CACHE_BYTES, ..Settings::default() };
        let faults = UnderFaults::new(policy, settings.clone())?;
        Ok(Self { requests: Engine::new(policy.invariants.clone(), settings)?, faults })
    }
}

impl NearAudit {
    /// Looks for a while, if it is time to; whether it did. `violated` says which instances are violated already.
    ///
    /// # Errors
    /// When the linked Z3 is too old.
    pub fn look(
        &mut self,
        store: &Store,
        violated: impl FnOnce() -> BTreeSet<(String, String)>,
    ) -> Result<bool, VersionError> {
        let pause = |(ended, took): (Instant, Duration)| now().saturating_duration_since(ended) < took * PAUSE_FACTOR;
        if self.looked.is_some_and(pause) {
            return Ok(false);
        }
        let (began, view, violated) = (now(), store.read(), violated());
        let (generation, policy) = (view.loaded.generation, &view.loaded.policy);
        let mut questions = match self.asked.take() {
            Some((of, known)) if of == generation => known,
            _ => {
                // nothing that was found is about these invariants
                *self = Self::default();
                Questions::of(policy)?
            }
        };
        let state = State::new(&view.snapshot);
        let mut side = Side::with(policy, questions.requests.clone());
        let within = || now().saturating_duration_since(began) < LOOK_FOR;
        while within() {
            let Some(key) = self.next(&view.snapshot) else { break };
            let found = match view.snapshot.get(&key) {
                Some(object) => of_object(&mut side, &mut questions.faults, &state, object, &violated),
                None => Vec::new(),
            };
            self.note(key, found);
        }
        self.asked = Some((generation, questions));
        self.looked = Some((now(), now().saturating_duration_since(began)));
        Ok(true)
    }

    /// What is one step away from violating each of these invariants.
    pub fn all<'n>(&self, names: impl Iterator<Item = &'n ResourceName>) -> BTreeMap<ResourceName, Nearly> {
        let mut nearly: BTreeMap<ResourceName, Nearly> =
            names.map(|name| (name.clone(), Nearly { complete: self.rounds > 0, ..Nearly::default() })).collect();
        let mut smallest: BTreeMap<(&str, &str), (u64, &str)> = BTreeMap::new();
        for Found { invariant, instance, size, step } in self.found.values().flatten() {
            let step = (*size, &**step);
            smallest.entry((invariant, instance)).and_modify(|known| *known = step.min(*known)).or_insert(step);
        }
        for ((invariant, instance), (_, step)) in smallest {
            if let Some(of) = nearly.get_mut(&ResourceName::of_invariant(invariant)) {
                of.instances.push((instance.to_owned(), step.to_owned()));
            }
        }
        nearly
    }

    /// How often all objects were looked at.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The next object. At the end of a round there is none, and what was found of those that are gone goes.
    fn next(&mut self, snapshot: &Snapshot) -> Option<Key> {
        if self.queue.is_empty() {
            let is_after = |object: &&Arc<Object>| self.last.as_ref().is_none_or(|last| object.key > *last);
            self.queue = snapshot.iter().filter(is_after).take(QUEUE_LEN).map(|object| object.key.clone()).collect();
            self.last = self.queue.back().cloned();
            if self.queue.is_empty() {
                self.rounds += 1;
                self.found.retain(|key, _| snapshot.get(key).is_some());
            }
        }
        self.queue.pop_front()
    }

    fn note(&mut self, key: Key, found: Vec<Found>) {
        self.found.remove(&key);
        let count = || self.found.values().map(Vec::len).sum::<usize>();
        if !found.is_empty() && count() + found.len() <= FOUND_MAX {
            self.found.insert(key, found);
        }
    }
}

/// What one fault breaks, if this object is an instance, and what a request of one step on it does.
fn of_object(
    side: &mut Side<'_>,
    faults: &mut UnderFaults,
    state: &State<'_>,
    object: &Object,
    violated: &BTreeSet<(String, String)>,
) -> Vec<Found> {
    let time = Some(Clock::now());
    let found = |Verdict { invariant, instance, .. }: Verdict, size: u64, step: String| Found {
        invariant,
        instance,
        size,
        step,
    };
    let (by_faults, _) = faults.broken(state.base(), time, violated, Some(&object.key));
    let by_faults = by_faults.into_iter().map(|by| found(by.verdict, 0, step_of(by.fault).to_owned()));
    let of_requests = by_requests(side, state, object, time, violated).broken;
    let of_requests = of_requests.into_values().map(|by| found(by.verdict, by.size.1, by.smallest));
    by_faults.chain(of_requests).collect()
}

fn step_of(fault: Fault) -> &'static str {
    match fault {
        Fault::None => "what may happen anyway",
        Fault::Node => "one node fails",
        Fault::Zone => "one zone fails",
    }
}

#[cfg(test)]
mod tests;
