//! What is asked: a change and what is known beside it, what an expression may read of them, and the concrete clusters
//! that the change is judged in.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use elsa::map::FrozenBTreeMap;
use suture_encode::question::Inputs;
use suture_encode::scene::Preparations;
use suture_model::change::{Change, Request};
use suture_model::futures::Moment;
use suture_model::land::{TooManyInFlight, scenarios_within, without};
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_specs::about_locals::AboutLocals;
use suture_specs::compile::CompiledInvariant;
use suture_specs::error::EvalError;
use suture_specs::spec::{Exemption, OnUndecided};
use suture_specs::time::parse_timestamp;
use suture_specs::value::{MapKey, Value};

use crate::answer::Budget;

/// The steps that one decision may take outside of a webhook: about ten seconds.
const STEPS_OFFLINE: u64 = 400_000_000;

/// The same in a webhook, where nobody listens any more after two seconds.
pub const STEPS_WEBHOOK: u64 = 80_000_000;

/// How an engine works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What one question may cost.
    pub budget: Budget,
    /// What one decision may cost, in steps ([`suture_model::steps`]): one invariant takes half of it at most.
    pub steps: u64,
    /// Whether proved instances are listed too.
    pub verbose: bool,
    /// How many bytes of decisions are kept, and how many of answers of the solver.
    pub cache_bytes: usize,
    /// Whether a denial says what would have been allowed; costs a few decisions more.
    pub suggest: bool,
    /// Whether what is in flight may be refused yet by whoever decides about it: then each may land, and none excuses a
    /// change that breaks the same.
    pub unsure: bool,
    /// What becomes of a change that touches a custom resource which no adapter explains.
    pub unmodelled: OnUndecided,
}

impl Settings {
    /// As in a webhook.
    pub fn webhook() -> Self {
        Self { budget: Budget::WEBHOOK, steps: STEPS_WEBHOOK, ..Self::default() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            budget: Budget::OFFLINE,
            steps: STEPS_OFFLINE,
            verbose: false,
            cache_bytes: 8 << 20,
            suggest: true,
            unsure: false,
            unmodelled: OnUndecided::Allow,
        }
    }
}

/// What is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What the watch shows.
    pub snapshot: &'a Snapshot,
    /// Requests that were admitted and not seen yet, oldest first: all that may change a fact that the decision reads.
    pub in_flight: &'a [Request],
    /// The change.
    pub change: &'a Change,
    /// The clock, RFC 3339; without it no exemption is in force.
    pub time: Option<&'a str>,
    /// The exemptions.
    pub exemptions: &'a [Exemption],
}

impl Input<'_> {
    /// What the first request is about.
    pub(crate) fn target(&self) -> Key {
        self.change.requests.first().map_or_else(|| Key::of("Namespace", "", ""), |request| request.target.clone())
    }

    /// The uid that the answer has: that of the first request.
    pub(crate) fn uid(&self) -> String {
        self.change.requests.first().map(|request| request.uid.to_string()).unwrap_or_default()
    }

    /// Whether the invariant judges requests of this change's authors.
    pub(crate) fn is_bound_by(&self, compiled: &CompiledInvariant) -> bool {
        compiled.subjects.is_empty()
            || self.change.requests.iter().any(|r| compiled.subjects.iter().any(|s| s.covers(&r.user)))
    }

    /// An exemption in force that covers the instance for every author of the change.
    pub(crate) fn exemption(&self, compiled: &CompiledInvariant, key: &Key) -> Option<&Exemption> {
        if self.exemptions.is_empty() {
            return None;
        }
        // an exemption that cannot be dated is not in force
        let Some(Ok(now)) = self.time.map(parse_timestamp) else { return None };
        let name = key.to_string();
        self.exemptions.iter().find(|exemption| {
            let authors = self.change.requests.iter().map(|request| &request.user);
            exemption.spec.lifts(&compiled.name, &name, now, authors)
        })
    }
}

/// What an expression reads of the requests and the clock; without a request (an audit) its fields are empty.
pub(crate) fn expression_inputs(requests: &[Request], time: Option<&str>) -> Inputs {
    let time = time.ok_or_else(no_clock).and_then(parse_timestamp).map(Value::Timestamp);
    let all = requests.iter().map(|request| request_fields(Some(request))).collect();
    Inputs { request: request_fields(requests.first()), requests: Value::list(all), time }
}

/// What an expression reads of a request.
fn request_fields(request: Option<&Request>) -> Value {
    let text = |s: &str| Value::str(s);
    let user = request.map(|r| &r.user);
    let groups = user.map(|u| u.groups.iter().map(|g| text(g)).collect()).unwrap_or_default();
    let user = map([
        ("username", text(user.map_or("", |u| &u.username))),
        ("groups", Value::list(groups)),
        ("uid", text(user.map_or("", |u| &u.uid))),
    ]);
    let kind = map([
        ("group", text(request.map_or("", |r| &r.target.kind.group))),
        ("kind", text(request.map_or("", |r| &r.target.kind.kind))),
    ]);
    map([
        ("user", user),
        ("uid", text(request.map_or("", |r| &r.uid))),
        ("operation", text(request.map_or("", |r| r.operation.as_str()))),
        ("subresource", text(request.map_or("", |r| &r.subresource))),
        ("kind", kind),
        ("namespace", text(request.map_or("", |r| &r.target.ns))),
        ("name", text(request.map_or("", |r| &r.target.name))),
        ("dryRun", Value::Bool(request.is_some_and(|r| r.dry_run))),
        ("options", request.map_or(Value::Null, |r| Value::from(&r.told_options()))),
    ])
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries: BTreeMap<MapKey, Value> =
        entries.into_iter().filter_map(|(k, v)| Some((MapKey::from_value(&Value::str(k))?, v))).collect();
    Value::map(entries)
}

/// The error of an expression that asks for a clock where there is none.
fn no_clock() -> EvalError {
    EvalError::invalid("the time is not known")
}

/// Why there are no scenarios to judge a change in. Nothing would be wrong in none of them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoScenarios {
    #[error(transparent)]
    TooManyInFlight(#[from] TooManyInFlight),
    /// What the change proves to have landed cannot land.
    #[error(
        "the change names an owner whose creation is in flight, but that creation has no effect on the cluster as it is"
    )]
    Contradictory,
}

/// What scenarios are made of.
#[derive(Clone, Copy)]
pub(crate) struct ScenarioSource<'i> {
    pub input: &'i Input<'i>,
    /// The changes in flight that matter.
    pub in_flight: &'i [&'i Request],
    /// Whether they may be refused yet ([`Settings::unsure`]).
    pub unsure: bool,
}

impl<'i> ScenarioSource<'i> {
    /// The scenarios with the change, or a prefix of a batch, with at most so many objects taken along, and whether that
    /// is all of them.
    pub fn during(&self, followers_max: usize) -> Result<(Vec<Scenario<'i>>, bool), NoScenarios> {
        self.with_change(Moment::During, followers_max)
    }

    /// The scenarios with the change, or a prefix of a batch that does not end between two deletions, with at most so many
    /// objects taken along; none where that is the same as [`Self::during`].
    pub fn at_once(&self, followers_max: usize) -> Result<Option<Vec<Scenario<'i>>>, NoScenarios> {
        let change = self.input.change;
        let is_other = (0..change.requests.len()).any(|at| change.goes_with_next(at));
        is_other.then(|| self.with_change(Moment::AtOnce, followers_max).map(|(all, _)| all)).transpose()
    }

    /// The scenarios with the whole change.
    pub fn after(&self) -> Result<Vec<Scenario<'i>>, NoScenarios> {
        self.with_change(Moment::After, usize::MAX).map(|(all, _)| all)
    }

    fn with_change(&self, moment: Moment, followers_max: usize) -> Result<(Vec<Scenario<'i>>, bool), NoScenarios> {
        let Input { snapshot, change, .. } = *self.input;
        let found = scenarios_within(snapshot, self.in_flight, Some(change), moment, followers_max)?;
        // a batch of nothing needs none
        if found.0.is_empty() && !change.requests.is_empty() {
            return Err(NoScenarios::Contradictory);
        }
        Ok(found)
    }

    /// The scenarios without the change, like [`Self::during`].
    pub fn baseline(&self, followers_max: usize) -> Result<(Vec<Scenario<'i>>, bool), NoScenarios> {
        let Input { snapshot, change, .. } = *self.input;
        let in_flight = if self.unsure { &[] } else { self.in_flight };
        Ok(without(snapshot, in_flight, change, followers_max)?)
    }
}

/// The concrete clusters that a change is judged in.
pub(crate) struct ScenarioSet<'a> {
    /// With the change, or a prefix of a batch.
    pub during: Vec<Scenario<'a>>,
    /// The same without the states between two deletions of a batch, where there are some.
    pub at_once: Option<Vec<Scenario<'a>>>,
    /// With all of it, where that is something else.
    pub after: Option<Vec<Scenario<'a>>>,
    /// Without it.
    pub baseline: Vec<Scenario<'a>>,
}

impl<'a> ScenarioSet<'a> {
    /// With the change, as an invariant looks at it that must hold then.
    pub fn at(&self, moment: Moment) -> &[Scenario<'a>] {
        match moment {
            Moment::During => &self.during,
            Moment::AtOnce => self.at_once.as_ref().unwrap_or(&self.during),
            Moment::After => self.after.as_ref().unwrap_or(&self.during),
        }
    }
}

/// What all invariants are judged with.
pub(crate) struct DecisionContext<'s, 'a> {
    pub input: &'s Input<'s>,
    /// The changes in flight that matter.
    pub in_flight: &'s [&'s Request],
    pub inputs: Inputs,
    pub before: &'s State<'a>,
    pub preparations: Preparations,
    pub evicted: Evicted<'a>,
    /// What replays in the scenarios' own states found out for all instances.
    pub replayed: RefCell<AboutLocals>,
    /// Whether something refers to an object in some scenarios, by where these and it are in memory.
    pub named: RefCell<BTreeMap<(*const Scenario<'a>, *const Object), bool>>,
}

/// The scenarios with evictions that were asked for so far, by where the one without them is in memory.
#[derive(Default)]
pub(crate) struct Evicted<'a>(FrozenBTreeMap<(usize, BTreeSet<Key>), Box<Option<Scenario<'a>>>>);

impl<'a> Evicted<'a> {
    /// A scenario where somebody evicts these pods as well; `None` where that is not admitted.
    pub fn from(&self, scenario: &Scenario<'a>, pods: &BTreeSet<Key>) -> Option<&Scenario<'a>> {
        let key = (std::ptr::from_ref(scenario) as usize, pods.clone());
        let known = self.0.get(&key);
        known.unwrap_or_else(|| self.0.insert(key, Box::new(scenario.beside_evictions(pods)))).as_ref()
    }
}
