//! Loads the generated cluster and times decisions on it: each shipped template alone, then all of them together, then the
//! invariants that a user has who chooses none.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use suture_checker::audit::{self, Audits};
use suture_checker::decision::{Decision, Outcome};
use suture_checker::engine::{Engine, Input, Settings};
use suture_model::change::{Change, Request};
use suture_model::ingest;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::{Str, Val};
use suture_specs::compile::CompiledInvariant;

use super::cluster::{self, Inventory, Size};
use super::prng::Prng;
use super::requests::{self, ALL, HARD, Touch};
use crate::clock::now;
use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::policy::Policy;

/// What is to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The cluster.
    pub size: Size,
    /// Decisions for each template.
    pub requests: usize,
}

/// A template's measurement ends after this time, however many decisions it made.
const TEMPLATE_MS_MAX: u64 = 3_000;
/// That of all templates together.
const TOGETHER_MS_MAX: u64 = 60_000;
/// The rows of all templates together: with requests of every kind, and with those that take most to decide.
const ALL_ROW: &str = "all";
const HARD_ROW: &str = "all, hard";
/// The same by the invariants of the default profile.
const DEFAULT_ROW: &str = "baseline";
const DEFAULT_HARD_ROW: &str = "baseline, hard";
/// A cluster that has nothing to draw from after so many attempts has nothing of the kind.
const DRAWS_MAX: usize = 100;
/// Objects that are generated, then loaded, at a time: only loading is timed.
const CHUNK_LEN: usize = 1_000;

/// The whole result.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bench {
    /// Nodes.
    pub nodes: usize,
    /// Pods.
    pub pods: usize,
    /// Objects of all kinds.
    pub objects: usize,
    /// The seed.
    pub seed: u64,
    /// From manifests to an indexed snapshot.
    pub load_millis: u64,
    /// Resident memory of the process after loading, in KiB.
    pub resident_kib: Option<u64>,
    /// The same at the end, caches and solver included.
    pub resident_end_kib: Option<u64>,
    /// Each template alone, then, if there are several, all of them together and the default profile.
    pub templates: Vec<Row>,
    /// What is violated in the cluster as it is, by all of them, if there are several.
    pub audit: Option<Audit>,
}

/// An audit of the whole cluster.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// How long it took.
    pub millis: u64,
    /// The same once something else had changed in the cluster.
    pub again_millis: u64,
    /// Instances that hold.
    pub holding: u64,
    /// Instances that do not, or of which it is not known.
    pub others: usize,
}

/// What was measured for one set of invariants.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The template, or which of them.
    pub template: String,
    /// How many invariants judged each request.
    pub invariants: usize,
    /// Decisions.
    pub requests: usize,
    /// Decisions per second.
    pub per_second: u64,
    /// Decisions that did not need the solver.
    pub without_solver: Spread,
    /// Decisions that did.
    pub with_solver: Spread,
    /// All of them.
    pub every: Spread,
    /// The share of the former, in percent.
    pub share_without_solver: f64,
    /// Problems that a cached verdict answered.
    pub cache_hits: u64,
    /// The same requests asked again, once something else had changed in the cluster.
    pub again: Spread,
    /// How many of them were known.
    pub known_again: u64,
    /// Instances judged.
    pub instances: u64,
    /// Decisions by outcome.
    pub outcomes: Outcomes,
    /// The request whose decision took longest.
    pub slowest: String,
    /// Decisions by what was asked for.
    pub by_request: BTreeMap<String, Spread>,
}

/// How long decisions took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// How many.
    pub count: usize,
    /// The median.
    pub p50_micros: u64,
    /// 99 of 100 are no slower.
    pub p99_micros: u64,
    /// The slowest.
    pub max_micros: u64,
}

/// Decisions by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcomes {
    /// Allowed, also with a warning.
    pub allowed: u64,
    /// Denied.
    pub denied: u64,
    /// Undecided.
    pub undecided: u64,
}

/// Measures the templates of a policy, or some of them, and, if they are several, the invariants of the default profile.
///
/// # Errors
/// When the engine does not start.
pub fn run(
    plan: Plan,
    policy: &Policy,
    profile: &[Arc<CompiledInvariant>],
    only: &[String],
    progress: &Progress,
) -> Result<Bench, Failure> {
    let chosen = |i: &&Arc<CompiledInvariant>| only.is_empty() || only.iter().any(|name| **name == *i.name);
    let templates: Vec<&Arc<CompiledInvariant>> = policy.invariants.iter().filter(chosen).collect();
    let (snapshot, inventory, loading) = load(Snapshot::new(policy.adapters.clone()), plan.size, progress);
    let resident_kib = resident_kib();
    let mut rows = Vec::new();
    for invariant in &templates {
        let name = &invariant.name;
        progress.say(name);
        let touches = requests::touching(name);
        rows.push(measure(plan, name, touches, vec![(*invariant).clone()], &snapshot, &inventory)?);
    }
    let mut audit = None;
    if templates.len() > 1 {
        let all: Vec<Arc<CompiledInvariant>> = templates.into_iter().cloned().collect();
        for (name, touches, invariants) in [
            (ALL_ROW, ALL, &*all),
            (HARD_ROW, HARD, &*all),
            (DEFAULT_ROW, ALL, profile),
            (DEFAULT_HARD_ROW, HARD, profile),
        ] {
            progress.say(name);
            rows.push(measure(plan, name, touches, invariants.to_vec(), &snapshot, &inventory)?);
        }
        progress.say("audit");
        audit = Some(audited(all, &snapshot)?);
    }
    Ok(Bench {
        nodes: plan.size.nodes,
        pods: plan.size.pods,
        objects: snapshot.len(),
        seed: plan.size.seed,
        load_millis: u64::try_from(loading.as_millis()).unwrap_or(u64::MAX),
        resident_kib,
        resident_end_kib: self::resident_kib(),
        templates: rows,
        audit,
    })
}

fn audited(invariants: Vec<Arc<CompiledInvariant>>, snapshot: &Snapshot) -> Result<Audit, Failure> {
    let (mut audits, steps) = (Audits::of(invariants), Settings::default().steps);
    let millis = |took: Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let clock = now();
    audits.audit(snapshot, None, steps, |_| true);
    let first = millis(clock.elapsed());
    let moved = moved(snapshot)?;
    let clock = now();
    audits.audit(&moved, None, steps, |_| true);
    Ok(Audit {
        millis: first,
        again_millis: millis(clock.elapsed()),
        holding: audits.each().map(audit::Audit::proved).sum(),
        others: audits.each().flat_map(audit::Audit::verdicts).count(),
    })
}

/// Generates the cluster and loads it into an empty snapshot, and says how long loading took.
pub fn load(mut snapshot: Snapshot, size: Size, progress: &Progress) -> (Snapshot, Inventory, Duration) {
    let mut loading = Duration::ZERO;
    let mut chunk = Vec::with_capacity(CHUNK_LEN);
    progress.say("loading");
    let inventory = cluster::generate(size, &mut |manifest| {
        chunk.push(manifest);
        if chunk.len() == CHUNK_LEN {
            loading += insert(&mut snapshot, &mut chunk);
        }
    });
    loading += insert(&mut snapshot, &mut chunk);
    let clock = now();
    snapshot.complete();
    (snapshot, inventory, loading + clock.elapsed())
}

fn insert(snapshot: &mut Snapshot, chunk: &mut Vec<Val>) -> Duration {
    // every object of an API server's answer is decoded on its own: nothing is shared before it is loaded
    let manifests: Vec<Val> = chunk.drain(..).map(|manifest| unshared(&manifest)).collect();
    let clock = now();
    for manifest in manifests {
        for object in ingest::objects(&manifest).unwrap_or_default() {
            snapshot.insert(object);
        }
    }
    clock.elapsed()
}

fn unshared(val: &Val) -> Val {
    match val {
        Val::Str(text) => Val::str(&**text),
        Val::List(items) => Val::list(items.iter().map(unshared).collect()),
        Val::Map(map) => Val::map(map.iter().map(|(key, value)| (Str::from(&**key), unshared(value))).collect()),
        other => other.clone(),
    }
}

fn measure(
    plan: Plan,
    name: &str,
    touches: &[Touch],
    invariants: Vec<Arc<CompiledInvariant>>,
    snapshot: &Snapshot,
    inventory: &Inventory,
) -> Result<Row, Failure> {
    let count = invariants.len();
    let millis = if count > 1 { TOGETHER_MS_MAX } else { TEMPLATE_MS_MAX };
    let mut engine = Engine::new(invariants, Settings::webhook()).map_err(Failure::invalid)?;
    let state = State::new(snapshot);
    let moved = moved(snapshot)?;
    let mut prng = Prng::new(plan.size.seed);
    let mut tally = Tally::default();
    let started = now();
    while tally.decisions() < plan.requests && started.elapsed() < Duration::from_millis(millis) {
        let draws = (0..DRAWS_MAX).find_map(|_| requests::draw(touches, &state, inventory, &mut prng));
        let Some((touch, request)) = draws else { break };
        let change = Change::from(request);
        let clock = now();
        let input = Input { snapshot, in_flight: &[], change: &change, time: None, exemptions: &[] };
        let decision = engine.decide(&input);
        tally.add(touch, &change, &decision, clock.elapsed());
        let clock = now();
        let again = engine.decide(&Input { snapshot: &moved, ..input });
        tally.add_again(&again, clock.elapsed());
        // the same may be drawn again, and is to be measured as new
        engine.forget();
    }
    Ok(tally.row(name, count))
}

/// The same cluster after an event that no request has anything to do with.
fn moved(snapshot: &Snapshot) -> Result<Snapshot, Failure> {
    let unrelated = Val::object([
        ("apiVersion", Val::str("v1")),
        ("kind", Val::str("ConfigMap")),
        ("metadata", Val::object([("name", Val::str("unrelated")), ("namespace", Val::str("unrelated"))])),
    ]);
    let mut moved = snapshot.clone();
    for object in ingest::objects(&unrelated).map_err(Failure::invalid)? {
        moved.insert(object);
    }
    Ok(moved)
}

#[derive(Default)]
struct Tally {
    without_solver: Vec<u64>,
    with_solver: Vec<u64>,
    again: Vec<u64>,
    known_again: u64,
    cache_hits: u64,
    instances: u64,
    outcomes: Outcomes,
    slowest: (Duration, String),
    by_request: BTreeMap<Touch, Vec<u64>>,
}

impl Tally {
    fn decisions(&self) -> usize {
        self.without_solver.len() + self.with_solver.len()
    }

    fn add(&mut self, touch: Touch, change: &Change, decision: &Decision, took: Duration) {
        if took > self.slowest.0 {
            self.slowest = (took, change.requests.iter().map(Request::describe).collect());
        }
        let micros = micros(took);
        let times = if decision.effort.solved == 0 { &mut self.without_solver } else { &mut self.with_solver };
        times.push(micros);
        self.by_request.entry(touch).or_default().push(micros);
        self.cache_hits += decision.effort.cached;
        self.instances += decision.effort.instances;
        match decision.decision {
            Outcome::Allowed | Outcome::Warned => self.outcomes.allowed += 1,
            Outcome::Denied => self.outcomes.denied += 1,
            Outcome::Undecided => self.outcomes.undecided += 1,
        }
    }

    fn add_again(&mut self, decision: &Decision, took: Duration) {
        self.again.push(micros(took));
        self.known_again += u64::from(decision.effort.known);
    }

    fn row(self, name: &str, invariants: usize) -> Row {
        let requests = self.decisions();
        let micros: u64 = self.without_solver.iter().chain(&self.with_solver).sum();
        let per_second = (requests as u64).saturating_mul(1_000_000).checked_div(micros).unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "a share in percent, of a few hundred decisions")]
        let share = self.without_solver.len() as f64 * 100.0 / requests.max(1) as f64;
        Row {
            template: name.to_owned(),
            invariants,
            requests,
            per_second,
            share_without_solver: (share * 10.0).round() / 10.0,
            every: spread(self.without_solver.iter().chain(&self.with_solver).copied().collect()),
            without_solver: spread(self.without_solver),
            with_solver: spread(self.with_solver),
            cache_hits: self.cache_hits,
            again: spread(self.again),
            known_again: self.known_again,
            instances: self.instances,
            outcomes: self.outcomes,
            slowest: self.slowest.1,
            by_request: self
                .by_request
                .into_iter()
                .map(|(touch, times)| (format!("{touch:?}"), spread(times)))
                .collect(),
        }
    }
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

fn spread(mut micros: Vec<u64>) -> Spread {
    micros.sort_unstable();
    // the smallest time that so many percent do not exceed
    let at = |percent: usize| {
        let rank = (micros.len() * percent).div_ceil(100).saturating_sub(1);
        micros.get(rank).copied().unwrap_or(0)
    };
    Spread { count: micros.len(), p50_micros: at(50), p99_micros: at(99), max_micros: at(100) }
}

/// The resident memory of this process, where the system tells (`VmRSS` of proc(5)).
pub fn resident_kib() -> Option<u64> {
    status_kib("VmRSS:")
}

/// The most memory that was resident so far (`VmHWM` of proc(5)).
pub fn resident_peak_kib() -> Option<u64> {
    status_kib("VmHWM:")
}

fn status_kib(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
