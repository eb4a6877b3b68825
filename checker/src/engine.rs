//! The decision on a change: which instances it reaches, whether a future breaks one, and whether the change is to blame.
//!
//! For each instance: every scenario (subsets of what is in flight, prefixes of a batch) and every outage that its
//! invariant must survive is one problem. Most fold to a constant or have a plain witness; the others go to the solver
//! by way of a cache that isomorphic problems share. A witness counts only when the concrete interpreter reaches the
//! same violation ([`ReplayMismatch`](Undecided::Distrust) otherwise). A refuted instance that breaks without the change as
//! well, when the same has landed of what is in flight, is not the change's fault, unless the change makes it worse.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use suture_encode::analysis::Analysis;
use suture_encode::eval::Refusal;
use suture_encode::impact::{Impact, PodClass, Reached};
use suture_encode::outage::outages;
use suture_encode::problem::Label;
use suture_encode::question::{Judged, Question, encode, replay};
use suture_encode::scene::{Preparations, Scene};
use suture_encode::symmetry::blind_message;
use suture_encode::term::{Assignment, Bool};
use suture_model::change::{Change, Request};
use suture_model::effects::View;
use suture_model::futures::{FateKind, Faults, Moment, Outage};
use suture_model::interpret::Choice;
use suture_model::navigate::UnknownKind;
use suture_model::object::{Key, Object};
use suture_model::scenario::{Scenario, describe, scenarios, scenarios_within};
use suture_model::snapshot::{Facts, Snapshot};
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;
use suture_specs::functions::Worlds;
use suture_specs::spec::{Action, Exemption, Violations};

use crate::cache::Verdicts;
use crate::clock::Stopwatch;
use crate::decision::{Decision, Duration, Effort, Finding, Outcome, Verdict};
use crate::decision_cache::{CacheKey, DecisionCache, repeatable};
use crate::explain::{self, StepCache};
use crate::inputs::{self, binds, exempt, target_of, uid_of};
use crate::invariant_run::{DecisionContext, InvariantRun, NodeConstraintKey, SharedVerdict, lacks_nodes};
use crate::solve::{Answer, Budget};
use crate::version::{VersionError, z3_version};

/// How an engine works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What one question may cost.
    pub budget: Budget,
    /// Whether proved instances are listed too.
    pub verbose: bool,
    /// How many bytes of decisions are kept, and how many of answers of the solver.
    pub cache_bytes: usize,
    /// Whether a denial says what would have been allowed; costs a few decisions more.
    pub suggest: bool,
    /// Whether what is in flight may be refused yet by whoever decides about it: then each may land, and none excuses a
    /// change that breaks the same.
    pub unsure: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { budget: Budget::OFFLINE, verbose: false, cache_bytes: 8 << 20, suggest: true, unsure: false }
    }
}

/// What is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What the watch shows.
    pub snapshot: &'a Snapshot,
    /// Requests that were admitted and not seen yet, oldest first.
    pub in_flight: &'a [Request],
    /// The change.
    pub change: &'a Change,
    /// The clock, RFC 3339; without it no exemption is in force.
    pub time: Option<&'a str>,
    /// The exemptions.
    pub exemptions: &'a [Exemption],
}

/// Decides changes against a set of invariants.
pub struct Engine {
    /// The invariants, and what is known of each.
    analyses: Arc<[Analysis]>,
    settings: Settings,
    verdicts: Verdicts,
    decisions: DecisionCache,
    /// Whether no invariant can tell a request from its repetition.
    repeatable: bool,
    solver: &'static str,
    /// What the proofs of the instance at hand rely on.
    assumed: BTreeSet<String>,
    /// The invariants that do not bind the authors of the change at hand.
    unbound: BTreeSet<Str>,
    /// Which objects no question about the instance at hand tells from it.
    symmetry: SymmetryClass,
}

/// Objects that stand for the instance at hand in every question about it.
#[derive(Debug, Default)]
pub(crate) enum SymmetryClass {
    /// Nothing was asked yet.
    #[default]
    Unasked,
    /// These, the instance among them.
    Are(BTreeSet<Key>),
    /// Those with the same constraint on nodes: nothing else of them is read, and nothing happens to them.
    SameNodeConstraint,
    /// None.
    None,
}

/// What is judged.
#[derive(Clone, Copy, Debug, Default)]
struct Scope<'v> {
    /// Only these instances, by invariant and name; all that the change reaches when there are none.
    only: Option<&'v BTreeSet<(String, String)>>,
    /// Whether the first instance that is not proved ends it.
    first: bool,
    /// Whether nothing has followed the change yet: only what holds at every moment, and denies, is asked.
    at_first: bool,
    /// Whether only what is soon judged is judged: all else cuts it short.
    at_once: bool,
}

/// The concrete clusters that a change is judged in.
struct ScenarioSet<'a> {
    /// With the change, or a prefix of a batch.
    during: Vec<Scenario<'a>>,
    /// With all of it, where that is something else.
    after: Option<Vec<Scenario<'a>>>,
    /// Without it.
    baseline: Vec<Scenario<'a>>,
}

impl<'a> ScenarioSet<'a> {
    fn after(&self) -> &Vec<Scenario<'a>> {
        self.after.as_ref().unwrap_or(&self.during)
    }
}

/// What was found out about the instances that a change reaches.
#[derive(Default)]
struct Findings {
    verdicts: Vec<Verdict>,
    proved: u64,
    /// Whether some were left out, since the change is denied whatever they say.
    cut_short: bool,
}

impl Findings {
    fn denied(&self) -> bool {
        self.verdicts.iter().any(|v| v.decides() == Outcome::Denied)
    }
}

/// Once so many instances are refused the others are left out: people read the first few, and a deletion that thousands
/// of objects depend on is denied in the time of one that some do.
const REFUSALS_MAX: usize = 64;
/// A deletion that takes more objects along than these is first judged without them: to mark them takes a millisecond.
const FOLLOWERS_MAX: usize = 512;

/// More instances are not judged at once: a few take some microseconds each where no pod is concerned.
const AT_ONCE_INSTANCES_MAX: u64 = 16;
/// Nor is a change that takes more objects along.
const AT_ONCE_FOLLOWERS_MAX: usize = 4;

/// Beyond so many instances nothing is suggested: each suggestion is a decision of its own.
const SUGGEST_INSTANCES_MAX: u64 = 256;

/// Why an instance is undecided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    /// The question cannot be encoded, or a kind was not read.
    #[error("{0}")]
    Refused(String),
    /// The solver's budget ran out.
    #[error("{0}")]
    Solver(String),
    /// The invariant's expression has no value in some future.
    #[error("the invariant cannot be evaluated in some future: {0}")]
    Fails(String),
    /// A counterexample that the concrete interpreter does not reach. A bug.
    #[error("distrust: the counterexample does not replay ({0})")]
    ReplayMismatch(String),
}

/// A violating future that replays.
pub(crate) struct Violation<'s, 'a> {
    /// The changes in flight, in words, that have not landed in it, if it takes that: the instance holds once they have.
    pub open: Vec<String>,
    pub question: Question<'s, 'a>,
    pub choices: Vec<Choice>,
    pub message: String,
    pub clause: usize,
}

/// What one scenario says about an instance.
enum Examined<'s, 'a> {
    Holds,
    Breaks(Box<Violation<'s, 'a>>),
    Unclear(Undecided),
}

impl Engine {
    /// An engine for these invariants.
    ///
    /// # Errors
    /// When the linked Z3 is too old.
    pub fn new(invariants: Vec<Arc<CompiledInvariant>>, settings: Settings) -> Result<Self, VersionError> {
        Self::of(Analysis::of_all(invariants).into(), settings)
    }

    /// An engine for invariants of which all is known that can be; engines share that.
    ///
    /// # Errors
    /// When the linked Z3 is too old.
    pub fn of(analyses: Arc<[Analysis]>, settings: Settings) -> Result<Self, VersionError> {
        let verdicts = Verdicts::new(settings.cache_bytes);
        Ok(Self {
            repeatable: repeatable(&analyses),
            analyses,
            decisions: DecisionCache::new(settings.cache_bytes),
            settings,
            verdicts,
            solver: z3_version()?,
            assumed: BTreeSet::new(),
            unbound: BTreeSet::new(),
            symmetry: SymmetryClass::Unasked,
        })
    }

    /// Decides a change that all invariants but those named bind: the ones that a grant leaves its subjects free of.
    pub fn decide_except(&mut self, input: &Input<'_>, unbound: BTreeSet<Str>) -> Decision {
        self.unbound = unbound;
        let decision = self.decide(input);
        self.unbound.clear();
        decision
    }

    /// Decides a change. What was decided before, from facts that are the same, is not found out again.
    pub fn decide(&mut self, input: &Input<'_>) -> Decision {
        if !self.repeatable || !input.exemptions.is_empty() {
            return self.decide_anew(input);
        }
        let watch = Stopwatch::start();
        let asked = CacheKey::of(input, &self.unbound);
        if let Some(known) = self.decisions.find(&asked, input.snapshot) {
            let duration = Duration { total_micros: watch.micros(), solver_micros: 0 };
            let effort = Effort { known: true, ..Effort::default() };
            return Decision { uid: uid_of(input), duration, effort, ..known };
        }
        let (decision, facts) = Facts::read_by(|| self.decide_anew(input));
        if let Some(facts) = facts {
            self.decisions.keep(asked, facts, input.snapshot, &decision);
        }
        decision
    }

    /// Forgets what was decided, so that a measurement of the same decision is one of all the work; what the solver
    /// answered is kept.
    pub fn forget(&mut self) {
        self.decisions = DecisionCache::new(self.settings.cache_bytes);
    }

    fn decide_anew(&mut self, input: &Input<'_>) -> Decision {
        let watch = Stopwatch::start();
        let mut effort = Effort::default();
        let mut found = self.judge_all(input, Scope::default(), &mut effort);
        let few = effort.instances <= SUGGEST_INSTANCES_MAX;
        if self.settings.suggest && few && found.verdicts.iter().any(|v| v.outcome == Finding::Refuted) {
            self.suggest(input, &mut found.verdicts);
        }
        self.decision(input, found, effort, &watch)
    }

    /// Decides a change that leaves all pods alone and that few instances depend on, if all of them hold without a
    /// question to Z3: in well under a millisecond. `None` when there is more to it.
    pub fn decide_at_once(&mut self, input: &Input<'_>) -> Option<Decision> {
        let watch = Stopwatch::start();
        let mut effort = Effort::default();
        let scope = Scope { first: true, at_once: true, ..Scope::default() };
        let found = self.judge_all(input, scope, &mut effort);
        let all_hold = !found.cut_short && found.verdicts.iter().all(|v| v.outcome == Finding::Proved);
        all_hold.then(|| self.decision(input, found, effort, &watch))
    }

    /// What was found, as it is told.
    fn decision(&self, input: &Input<'_>, found: Findings, effort: Effort, watch: &Stopwatch) -> Decision {
        let Findings { mut verdicts, proved, cut_short } = found;
        explain::finish(&mut verdicts);
        let decision = verdicts.iter().map(Verdict::decides).max().unwrap_or(Outcome::Allowed);
        if !self.settings.verbose {
            verdicts.retain(|v| v.outcome != Finding::Proved);
        }
        Decision {
            decision,
            uid: uid_of(input),
            duration: Duration { total_micros: watch.micros(), solver_micros: effort.solver_micros },
            solver: self.solver.to_owned(),
            proved,
            verdicts,
            cut_short,
            effort,
        }
    }

    /// What is violated in the cluster as it is.
    pub fn audit(&mut self, snapshot: &Snapshot, time: Option<&str>) -> Decision {
        let watch = Stopwatch::start();
        let state = State::new(snapshot);
        let inputs = inputs::of(None, time);
        let mut verdicts = Vec::new();
        let mut proved = 0;
        for analysis in self.analyses.clone().iter() {
            let compiled = &analysis.compiled;
            for key in Impact::new(&state, []).of_kinds(analysis, None) {
                let Some(object) = state.get(&key).filter(|o| judges(compiled, o)) else { continue };
                match replay(compiled, object, &inputs, Worlds { before: &state, now: &state }) {
                    Judged::Holds => proved += 1,
                    Judged::Violated { clause, message, .. } => {
                        verdicts.push(explain::violated_now(compiled, object, clause, &message));
                    }
                    Judged::Fails(why) => {
                        verdicts.push(explain::undecided(compiled, &key, &Undecided::Fails(why)));
                    }
                }
            }
        }
        explain::finish(&mut verdicts);
        Decision {
            decision: verdicts.iter().map(Verdict::decides).max().unwrap_or(Outcome::Allowed),
            uid: String::new(),
            duration: Duration { total_micros: watch.micros(), solver_micros: 0 },
            solver: self.solver.to_owned(),
            proved,
            verdicts,
            cut_short: false,
            effort: Effort::default(),
        }
    }

    /// The verdicts on all instances that the change reaches.
    ///
    /// A deletion that takes very many objects along is looked at in two steps: first what can happen before anything
    /// follows it, which decides most of them, since such a deletion is mostly refused for its own sake.
    fn judge_all(&mut self, input: &Input<'_>, scope: Scope<'_>, effort: &mut Effort) -> Findings {
        let in_flight = inputs::in_flight(input, &self.analyses);
        let admitted = if self.settings.unsure { &[] } else { in_flight.as_slice() };
        let within = |change: Option<&Change>, most| {
            let in_flight = if change.is_some() { in_flight.as_slice() } else { admitted };
            scenarios_within(input.snapshot, in_flight, change, Moment::During, most)
        };
        let change = Some(input.change);
        let most = if scope.at_once { AT_ONCE_FOLLOWERS_MAX } else { FOLLOWERS_MAX };
        let (during, whole) = match within(change, most) {
            Ok(found) => found,
            Err(error) => return self.refused(input, &error.to_string()),
        };
        if scope.at_once && !whole {
            return Findings { cut_short: true, ..Findings::default() };
        }
        let (baseline, known) = within(None, FOLLOWERS_MAX).unwrap_or_default();
        if !whole && known {
            let at_first = within(change, 0).map(|(at_first, _)| at_first).unwrap_or_default();
            let given = ScenarioSet { during: at_first, after: None, baseline: baseline.clone() };
            let mut found = self.judge_in(input, Scope { at_first: true, ..scope }, &given, effort);
            if found.denied() {
                // what is proved so far is proved of the beginning only
                found.verdicts.retain(|v| v.outcome == Finding::Refuted);
                return Findings { proved: 0, cut_short: true, ..found };
            }
        }
        let entire = |change, found, whole: bool| {
            if whole { found } else { within(change, usize::MAX).map(|(all, _)| all).unwrap_or_default() }
        };
        let (during, baseline) = (entire(change, during, whole), entire(None, baseline, known));
        // a single request has no states in between
        let single = input.change.requests.len() == 1;
        let ends = || scenarios(input.snapshot, &in_flight, change, Moment::After).unwrap_or_default();
        let given = ScenarioSet { during, after: (!single).then(ends), baseline };
        self.judge_in(input, scope, &given, effort)
    }

    /// Every invariant is undecided for the same reason.
    fn refused(&self, input: &Input<'_>, why: &str) -> Findings {
        let key = target_of(input);
        let undecided =
            |analysis: &Analysis| explain::undecided(&analysis.compiled, &key, &Undecided::Refused(why.to_owned()));
        Findings { verdicts: self.analyses.iter().map(undecided).collect(), ..Findings::default() }
    }

    /// The verdicts on all instances that these scenarios reach.
    fn judge_in(
        &mut self,
        input: &Input<'_>,
        scope: Scope<'_>,
        given: &ScenarioSet<'_>,
        effort: &mut Effort,
    ) -> Findings {
        let before = State::new(input.snapshot);
        let mut found = Findings::default();
        let in_flight = given.baseline.iter().filter(|scenario| scenario.landed != 0);
        let mut impact = Impact::new(&before, given.during.iter().chain(in_flight));
        if scope.at_once && !impact.leaves_pods_alone() {
            return Findings { cut_short: true, ..found };
        }
        let common = DecisionContext {
            input,
            inputs: inputs::of(input.change.requests.first(), input.time),
            before: &before,
            preparations: Preparations::default(),
            step_cache: StepCache::default(),
        };
        for analysis in self.analyses.clone().iter() {
            let compiled = &analysis.compiled;
            let asked = scope.only.is_none_or(|only| only.iter().any(|o| *o.0 == *compiled.name));
            if !asked || !binds(compiled, input) || self.unbound.contains(&compiled.name) {
                continue;
            }
            if scope.at_first && (compiled.hold != Moment::During || compiled.action != Action::Deny) {
                continue;
            }
            let with = if compiled.hold == Moment::During { &given.during } else { given.after() };
            let Reached { mut keys, pod_classes, admitting } = impact.reached(analysis);
            let many = keys.len() as u64 + effort.instances > AT_ONCE_INSTANCES_MAX || !admitting.is_empty();
            if scope.at_once && many {
                return Findings { cut_short: true, ..found };
            }
            let mut run = InvariantRun::new(&common, analysis, with, &given.baseline);
            let exposed: BTreeSet<&PodClass> =
                pod_classes.iter().filter(|(_, pod)| !run.trivially_holds(pod)).map(|(class, _)| class).collect();
            if !exposed.is_empty() {
                keys.extend(impact.pods_of_classes(|known| exposed.contains(known)));
            }
            for key in &keys {
                if asks(scope, compiled, key) {
                    self.judge_next(&mut run, key, None, &mut found, effort);
                }
                if self.suffices(&mut found, scope) {
                    return found;
                }
            }
            let reached: BTreeSet<*const Object> = match admitting.is_empty() {
                true => BTreeSet::new(),
                false => keys.iter().filter_map(|key| before.get(key)).map(Arc::as_ptr).collect(),
            };
            for object in admitting {
                for mut same_constraint in impact.of_node_constraint(object, analysis) {
                    same_constraint.retain(|object| !reached.contains(&Arc::as_ptr(object)));
                    self.judge_same_constraint(&mut run, &same_constraint, scope, &mut found, effort);
                    if self.suffices(&mut found, scope) {
                        return found;
                    }
                }
            }
            let undecided = |v: &Verdict| v.outcome == Finding::Undecided && *v.invariant == *compiled.name;
            let targets = input.change.requests.iter().map(|request| &request.target);
            if !found.verdicts.iter().any(undecided)
                && let Some(unread) = impact.unread(analysis, targets)
            {
                let why = Undecided::Refused(UnknownKind(unread).to_string());
                found.verdicts.push(explain::undecided(compiled, &target_of(input), &why));
            }
        }
        found
    }

    /// Judges objects of one kind that are reached for the constraint on nodes that they share, until what was found
    /// suffices.
    fn judge_same_constraint<'s, 'a>(
        &mut self,
        run: &mut InvariantRun<'s, 'a>,
        same_constraint: &[&'s Arc<Object>],
        scope: Scope<'_>,
        found: &mut Findings,
        effort: &mut Effort,
    ) {
        let (compiled, input) = (&run.analysis.compiled, run.common.input);
        let node_constraint = same_constraint.first().and_then(|object| run.node_constraint(object));
        let all = compiled.matches.is_every() && compiled.namespaced.is_none() && input.exemptions.is_empty();
        let mut like: Option<Arc<SharedVerdict>> = None;
        for object in same_constraint.iter().filter(|object| asks(scope, compiled, &object.key)) {
            let key = &object.key;
            let is_judged = || all || (judges(compiled, object) && !exempt(compiled, key, input));
            match &like {
                Some(like) if is_judged() && run.goes_for(like, object) => {
                    self.count(run, key, like, found, effort);
                }
                _ => {
                    self.judge_next(run, key, Some((object, node_constraint.as_ref())), found, effort);
                    like = node_constraint.as_ref().and_then(|node_constraint| run.of_node_constraint(node_constraint));
                }
            }
            if self.suffices(found, scope) {
                return;
            }
        }
    }

    /// Judges an instance, unless what was found out about another one goes for it as well. Of one that is reached for
    /// its constraint on nodes, the object and its mark are known.
    fn judge_next<'s, 'a>(
        &mut self,
        run: &mut InvariantRun<'s, 'a>,
        key: &Key,
        known: Option<(&'s Arc<Object>, Option<&NodeConstraintKey>)>,
        found: &mut Findings,
        effort: &mut Effort,
    ) {
        let compiled = &run.analysis.compiled;
        if exempt(compiled, key, run.common.input) {
            return;
        }
        if let Some(like) = run.of_equals(key) {
            return self.count(run, key, &like, found, effort);
        }
        let object = known.map(|(object, _)| object).or_else(|| run.find(key));
        let Some(object) = object.filter(|object| judges(compiled, object)) else { return };
        let node_constraint = match known {
            Some((_, node_constraint)) => node_constraint.map(Cow::Borrowed),
            None => run.node_constraint(object).map(Cow::Owned),
        };
        let like = node_constraint.as_deref().and_then(|node_constraint| run.of_node_constraint(node_constraint));
        if let Some(like) = like.filter(|like| run.goes_for(like, object)) {
            return self.count(run, key, &like, found, effort);
        }
        effort.instances += 1;
        self.assumed.clear();
        self.symmetry = run.symmetry(object, node_constraint.as_deref());
        let instance = run.instance(object);
        let class_verdict = match self.judge(&instance, run.with, run.baseline, effort) {
            Ok(None) => {
                found.proved += 1;
                let assumed: Vec<String> = std::mem::take(&mut self.assumed).into_iter().collect();
                if self.settings.verbose {
                    found.verdicts.push(explain::proved(compiled, key, assumed.clone()));
                }
                let holds_if_deleted =
                    matches!(self.symmetry, SymmetryClass::SameNodeConstraint) && run.holds_if_deleted(&instance);
                Some(SharedVerdict::Proved { assumed, holds_if_deleted })
            }
            Ok(Some(mut violation)) => {
                violation.open = self.open(&instance, run.with, violation.question.scene.scenario, effort);
                let verdict = explain::refuted(&instance, &violation);
                let like = self.applies_to_class(&instance, &violation);
                let class_verdict = like.then(|| SharedVerdict::Refuted(Box::new(verdict.clone())));
                found.verdicts.push(verdict);
                class_verdict
            }
            Err(why) => {
                found.verdicts.push(explain::undecided(compiled, key, &why));
                None
            }
        };
        if let Some(class_verdict) = class_verdict {
            run.share(
                &instance,
                std::mem::take(&mut self.symmetry),
                node_constraint.map(Cow::into_owned),
                class_verdict,
            );
        }
    }

    /// Counts an instance that fares like another one.
    fn count(
        &self,
        run: &InvariantRun<'_, '_>,
        key: &Key,
        like: &SharedVerdict,
        found: &mut Findings,
        effort: &mut Effort,
    ) {
        effort.instances += 1;
        match like {
            SharedVerdict::Proved { assumed, .. } => {
                found.proved += 1;
                if self.settings.verbose {
                    found.verdicts.push(explain::proved(&run.analysis.compiled, key, assumed.clone()));
                }
            }
            SharedVerdict::Refuted(verdict) => {
                found.verdicts.extend(run.find(key).map(|object| explain::same_as(verdict, object)));
            }
        }
    }

    /// Whether what was found is enough: more would not make another decision of it.
    fn suffices(&self, found: &mut Findings, scope: Scope<'_>) -> bool {
        if scope.first && found.verdicts.iter().any(|v| v.outcome != Finding::Proved) {
            return true;
        }
        let many = found.verdicts.len() >= REFUSALS_MAX && !self.settings.verbose;
        let refusals = || found.verdicts.iter().filter(|v| v.decides() == Outcome::Denied).count();
        found.cut_short = many && refusals() >= REFUSALS_MAX;
        found.cut_short
    }

    /// Whether a violation, as it is told, is one of each mate as well.
    fn applies_to_class(&self, instance: &Instance<'_, '_>, violation: &Violation<'_, '_>) -> bool {
        let symmetry = match &self.symmetry {
            SymmetryClass::Are(symmetry) => symmetry,
            SymmetryClass::SameNodeConstraint => return true,
            SymmetryClass::Unasked | SymmetryClass::None => return false,
        };
        blind_message(instance.compiled) && explain::names_none(violation, &symmetry.iter().collect())
    }

    /// The changes in flight that have not landed in a scenario, if the instance holds where all have.
    fn open<'s, 'a>(
        &mut self,
        instance: &Instance<'s, 'a>,
        with: &'s [Scenario<'a>],
        broken: &Scenario<'a>,
        effort: &mut Effort,
    ) -> Vec<String> {
        let most = with.iter().max_by_key(|scenario| scenario.landed.count_ones()).map_or(0, |most| most.landed);
        let missing = most & !broken.landed;
        let at = with.iter().filter(|s| s.landed == broken.landed).position(|s| std::ptr::eq(s, broken));
        let landed = at.and_then(|at| with.iter().filter(|s| s.landed == most).nth(at)).filter(|_| missing != 0);
        let Some(landed) = landed else { return Vec::new() };
        if landed.ever_existed(&instance.object.key)
            && !matches!(self.examine(instance, landed, None, effort), Examined::Holds)
        {
            return Vec::new();
        }
        let in_flight = inputs::in_flight(instance.common.input, &self.analyses).into_iter().enumerate();
        in_flight.filter(|(at, _)| missing & (1 << at) != 0).map(|(_, request)| describe(request)).collect()
    }

    /// The violation that the change is to blame for, if there is one: what breaks when certain changes in flight have
    /// landed is compared with what would break then without the change.
    fn judge<'s, 'a>(
        &mut self,
        instance: &Instance<'s, 'a>,
        with: &'s [Scenario<'a>],
        baseline: &'s [Scenario<'a>],
        effort: &mut Effort,
    ) -> Result<Option<Box<Violation<'s, 'a>>>, Undecided> {
        let mut unclear = None;
        for scenario in with.iter().filter(|scenario| scenario.ever_existed(&instance.object.key)) {
            let violation = match self.examine(instance, scenario, None, effort) {
                Examined::Holds => continue,
                Examined::Breaks(violation) => violation,
                Examined::Unclear(why) => {
                    unclear = unclear.or(Some(why));
                    continue;
                }
            };
            if instance.compiled.violations == Violations::Strict {
                return Ok(Some(violation));
            }
            // where what is in flight may be refused yet, nothing of it has landed without the change
            let same = |without: &&Scenario<'a>| without.landed == scenario.landed || baseline.len() == 1;
            let Some(without) = baseline.iter().find(same).filter(|without| without.ever_existed(&instance.object.key))
            else {
                return Ok(Some(violation));
            };
            let before = match self.examine(instance, without, None, effort) {
                Examined::Holds => return Ok(Some(violation)),
                Examined::Unclear(why) => return Err(why),
                Examined::Breaks(_) if instance.compiled.degree.is_none() => continue,
                Examined::Breaks(before) => before,
            };
            // broken before: the change is to blame only if it can make it worse than it could become without
            let worst = self.worst(instance, without, &before, effort)?;
            match self.examine(instance, scenario, Some(worst), effort) {
                Examined::Holds => {}
                Examined::Breaks(violation) => return Ok(Some(violation)),
                Examined::Unclear(why) => unclear = unclear.or(Some(why)),
            }
        }
        unclear.map_or(Ok(None), Err)
    }

    /// The greatest degree over the violating futures of a scenario, of which one is known.
    fn worst(
        &mut self,
        instance: &Instance<'_, '_>,
        scenario: &Scenario<'_>,
        known: &Violation<'_, '_>,
        effort: &mut Effort,
    ) -> Result<i64, Undecided> {
        let Some(mut worst) = known.degree(instance) else { return Ok(i64::MIN) };
        loop {
            match self.examine(instance, scenario, Some(worst), effort) {
                Examined::Holds => return Ok(worst),
                Examined::Unclear(why) => return Err(why),
                Examined::Breaks(violation) => match violation.degree(instance) {
                    Some(degree) if degree > worst => worst = degree,
                    _ => return Ok(worst),
                },
            }
        }
    }

    /// Whether some future of one scenario, under some outage, violates the instance.
    fn examine<'s, 'a>(
        &mut self,
        instance: &Instance<'s, 'a>,
        scenario: &'s Scenario<'a>,
        worse_than: Option<i64>,
        effort: &mut Effort,
    ) -> Examined<'s, 'a> {
        let faults = instance.compiled.faults;
        // where new pods are placed does not always matter: most proofs hold wherever they are
        if instance.compiled.hold == Moment::After || faults != Faults::default() {
            if matches!(self.outages(instance, scenario, worse_than, true, effort), Examined::Holds) {
                return Examined::Holds;
            }
        } else {
            let question = match instance.question(scenario, Outage::default(), true) {
                Ok(question) => question,
                Err(why) => return Examined::Unclear(why),
            };
            self.note(instance, &question);
            if lacks_nodes(&question) {
                return Examined::Unclear(unread_nodes());
            }
            match self.answer(instance, question, worse_than, effort) {
                Examined::Breaks(violation) if violation.ignores_places() => {}
                Examined::Unclear(Undecided::Fails(_)) => {}
                examined => return examined,
            }
        }
        self.outages(instance, scenario, worse_than, false, effort)
    }

    /// [`Self::examine`] with new pods placed precisely, or (`coarse`) anywhere: then only a proof counts.
    fn outages<'s, 'a>(
        &mut self,
        instance: &Instance<'s, 'a>,
        scenario: &'s Scenario<'a>,
        worse_than: Option<i64>,
        coarse: bool,
        effort: &mut Effort,
    ) -> Examined<'s, 'a> {
        let question = match instance.question(scenario, Outage::default(), coarse) {
            Ok(question) => question,
            Err(why) => return Examined::Unclear(why),
        };
        self.note(instance, &question);
        let possible = match outages(&question.scene, instance.compiled.faults) {
            Ok(possible) => possible,
            Err(error) => return Examined::Unclear(Undecided::Refused(error.to_string())),
        };
        let mut unclear = None;
        let mut first = Some(question);
        for outage in possible {
            let question = match first.take_if(|_| outage == Outage::default()) {
                Some(question) => Ok(question),
                None => instance.question(scenario, outage, coarse),
            };
            let examined = match question {
                Ok(question) if lacks_nodes(&question) => Examined::Unclear(unread_nodes()),
                Ok(question) if coarse => self.proves(&question, worse_than, effort),
                Ok(question) => self.answer(instance, question, worse_than, effort),
                Err(why) => Examined::Unclear(why),
            };
            match examined {
                Examined::Holds => {}
                Examined::Unclear(why) if coarse => return Examined::Unclear(why),
                Examined::Unclear(why) => unclear = unclear.or(Some(why)),
                breaks => return breaks,
            }
        }
        unclear.map_or(Examined::Holds, Examined::Unclear)
    }

    /// Notes which objects a question takes for the instance's equals.
    fn note(&mut self, instance: &Instance<'_, '_>, question: &Question<'_, '_>) {
        if matches!(self.symmetry, SymmetryClass::None) {
            return;
        }
        let scene = &question.scene;
        if matches!(self.symmetry, SymmetryClass::SameNodeConstraint) {
            if !scene.encoded_groups().is_empty() {
                self.symmetry = SymmetryClass::None;
            }
            return;
        }
        let found =
            scene.symmetric_entities(&instance.object.key).filter(|_| !scene.grain.identity && !scene.grain.nodes);
        self.symmetry = match (std::mem::take(&mut self.symmetry), found) {
            (SymmetryClass::Unasked, Some(found)) => SymmetryClass::Are(found.into_iter().cloned().collect()),
            (SymmetryClass::Are(known), Some(found)) => {
                let found: BTreeSet<&Key> = found.into_iter().collect();
                SymmetryClass::Are(known.into_iter().filter(|key| found.contains(key)).collect())
            }
            _ => SymmetryClass::None,
        };
    }

    /// Whether a question about more futures than there are has no violation among them.
    fn proves<'s, 'a>(
        &mut self,
        question: &Question<'s, 'a>,
        worse_than: Option<i64>,
        effort: &mut Effort,
    ) -> Examined<'s, 'a> {
        let goal = Bool::or([question.problem.goal.clone(), question.fails.clone()]);
        if worse_than.is_some() && !goal.is_false() {
            return Examined::Unclear(Undecided::Refused("a degree is compared precisely".to_owned()));
        }
        match self.solve(question, goal, effort) {
            Answer::Unsat { core } => {
                self.rely(question, &core);
                Examined::Holds
            }
            _ => Examined::Unclear(Undecided::Refused("new pods must be placed precisely".to_owned())),
        }
    }

    /// Notes what a proof relies on.
    fn rely(&mut self, question: &Question<'_, '_>, core: &[Label]) {
        let relied = core.iter().filter_map(|label| question.meaning(*label));
        self.assumed.extend(relied.map(ToString::to_string));
    }

    /// Answers one question, and replays what the solver found.
    fn answer<'s, 'a>(
        &mut self,
        instance: &Instance<'s, 'a>,
        mut question: Question<'s, 'a>,
        worse_than: Option<i64>,
        effort: &mut Effort,
    ) -> Examined<'s, 'a> {
        if let Some(bound) = worse_than {
            let worse = question.degree.as_ref().map(|degree| degree.exceeds(bound, &question.problem.vars));
            match worse {
                Some(Ok(worse)) => question.problem.goal = Bool::and([question.problem.goal.clone(), worse]),
                Some(Err(error)) => return Examined::Unclear(Undecided::Refused(error.to_string())),
                // without a violation there is no degree to compare
                None => return Examined::Holds,
            }
        }
        match self.solve(&question, question.problem.goal.clone(), effort) {
            Answer::Sat(solution) => Self::confirm(instance, question, &solution),
            Answer::Unknown(reason) => Examined::Unclear(Undecided::Solver(reason.to_string())),
            Answer::Unsat { core } => {
                self.rely(&question, &core);
                if question.fails.is_false() {
                    return Examined::Holds;
                }
                match self.solve(&question, question.fails.clone(), effort) {
                    Answer::Unsat { .. } => Examined::Holds,
                    Answer::Unknown(reason) => Examined::Unclear(Undecided::Solver(reason.to_string())),
                    Answer::Sat(solution) => Examined::Unclear(instance.failure(&question, &solution)),
                }
            }
        }
    }

    /// Solves a question's futures for a goal: by folding, by a plain witness, from the cache, or with the solver.
    fn solve(&mut self, question: &Question<'_, '_>, goal: Bool, effort: &mut Effort) -> Answer {
        let problem = question.with_goal(goal);
        let watch = Stopwatch::start();
        let answer = self.verdicts.solve(&problem, self.settings.budget, effort);
        effort.solver_micros = effort.solver_micros.saturating_add(watch.micros());
        answer
    }

    /// A violation, if the concrete interpreter sees one in the solution; the smallest one that can be had cheaply.
    fn confirm<'s, 'a>(
        instance: &Instance<'s, 'a>,
        question: Question<'s, 'a>,
        solution: &Assignment,
    ) -> Examined<'s, 'a> {
        let calm = explain::minimize_counterexample(&question, solution);
        for solution in calm.iter().chain([solution]) {
            let (choices, world) = match question.world(solution) {
                Ok(found) => found,
                Err(error) => return Examined::Unclear(Undecided::ReplayMismatch(error.to_string())),
            };
            for (encoded, choice) in question.scene.encoded_groups().iter().zip(&choices) {
                if let Some(limit) = suture_model::interpret::broken_limit(&encoded.group, choice) {
                    return Examined::Unclear(Undecided::ReplayMismatch(format!(
                        "breaks the limit that {}",
                        limit.label
                    )));
                }
            }
            if let Judged::Violated { clause, message, .. } = instance.replay(&world) {
                return Examined::Breaks(Box::new(Violation { open: Vec::new(), question, choices, message, clause }));
            }
        }
        Examined::Unclear(Undecided::ReplayMismatch("the concrete evaluator finds no violation".to_owned()))
    }

    /// Adds to each refuted verdict what would have been allowed. A variant that breaks the same is soon left.
    fn suggest(&mut self, input: &Input<'_>, verdicts: &mut [Verdict]) {
        let refuted = verdicts.iter().filter(|v| v.outcome == Finding::Refuted);
        let first: BTreeSet<(String, String)> =
            refuted.take(1).map(|v| (v.invariant.clone(), v.instance.clone())).collect();
        let mut allowed = Vec::new();
        for (text, variant) in explain::variants(input) {
            let change = Change { requests: vec![variant] };
            let input = Input { change: &change, ..*input };
            let same = Scope { only: Some(&first), first: true, ..Scope::default() };
            let all = Scope { first: true, ..Scope::default() };
            let mut holds = |scope| {
                let judged = self.judge_all(&input, scope, &mut Effort::default());
                judged.verdicts.iter().all(|v| v.outcome == Finding::Proved)
            };
            if holds(same) && holds(all) {
                allowed.push(text);
                break;
            }
        }
        for verdict in verdicts.iter_mut().filter(|v| v.outcome == Finding::Refuted) {
            verdict.nearest_allowed.clone_from(&allowed);
        }
    }
}

/// One instance with what is needed to ask about it.
pub(crate) struct Instance<'s, 'a> {
    pub common: &'s DecisionContext<'s, 'a>,
    pub compiled: &'s CompiledInvariant,
    pub object: &'s Arc<Object>,
}

impl<'s, 'a> Instance<'s, 'a> {
    /// Whether another object is judged too, and differs from the instance in its header only.
    pub fn is_judged_as(&self, other: &Key) -> bool {
        let before = self.common.before.get(&self.object.key);
        let same = |(a, b): (&Arc<Object>, &Arc<Object>)| Arc::ptr_eq(&a.body, &b.body) && judges(self.compiled, a);
        other.ns == self.object.key.ns && self.common.before.get(other).zip(before).is_some_and(same)
    }

    fn question(
        &self,
        scenario: &'s Scenario<'a>,
        outage: Outage,
        coarse: bool,
    ) -> Result<Question<'s, 'a>, Undecided> {
        let view = View { moment: self.compiled.hold, outage, places: !coarse, merge_equivalent_nodes: true, coarse };
        let start = |grain| {
            Scene::new(
                self.common.before,
                scenario,
                view.clone(),
                self.compiled.faults,
                grain,
                &self.common.preparations,
            )
        };
        encode(self.compiled, self.object, &self.common.inputs, &start).map_err(|refusal| match refusal {
            Refusal::Unknown(why) => Undecided::Refused(why),
            other => Undecided::Refused(other.to_string()),
        })
    }

    /// How it fares in one concrete future.
    pub fn replay(&self, now: &State<'_>) -> Judged {
        replay(self.compiled, self.object, &self.common.inputs, Worlds { before: self.common.before, now })
    }

    fn failure(&self, question: &Question<'s, 'a>, solution: &Assignment) -> Undecided {
        let Ok((_, world)) = question.world(solution) else {
            return Undecided::ReplayMismatch("the solution does not decode".to_owned());
        };
        match self.replay(&world) {
            Judged::Fails(why) => Undecided::Fails(why),
            _ => Undecided::Fails("an expression has no value".to_owned()),
        }
    }
}

impl Violation<'_, '_> {
    /// Whether new pods are ready in it that nothing was asked about a place for.
    fn ignores_places(&self) -> bool {
        let groups = self.question.scene.encoded_groups().iter().zip(&self.choices);
        let entities = groups.flat_map(|(encoded, choice)| encoded.group.entities.iter().zip(choice));
        let mut fates = entities.flat_map(|(entity, numbers)| entity.fates.iter().zip(numbers));
        self.question.scene.view.coarse && fates.any(|(fate, number)| fate.kind == FateKind::NewReady && *number > 0)
    }

    fn degree(&self, instance: &Instance<'_, '_>) -> Option<i64> {
        let groups: Vec<_> =
            self.question.scene.encoded_groups().iter().map(|c| &*c.group).zip(&self.choices).collect();
        let world =
            suture_model::interpret::realize(self.question.scene.scenario, &self.question.scene.view.outage, &groups);
        match instance.replay(&world) {
            Judged::Violated { degree, .. } => degree,
            _ => None,
        }
    }
}

fn unread_nodes() -> Undecided {
    Undecided::Refused(UnknownKind("Node".into()).to_string())
}

/// Whether an object is an instance that the invariant judges; a NamespacedInvariant judges those of its namespace.
pub(crate) fn judges(compiled: &CompiledInvariant, object: &Object) -> bool {
    compiled.matches.admits(object) && compiled.namespaced.as_ref().is_none_or(|ns| *ns == object.key.ns)
}

/// Whether this instance is among those that are asked about.
fn asks(scope: Scope<'_>, compiled: &CompiledInvariant, key: &Key) -> bool {
    scope.only.is_none_or(|only| only.contains(&(compiled.name.to_string(), key.to_string())))
}
