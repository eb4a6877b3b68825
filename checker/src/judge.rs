//! The verdicts on all instances that a change reaches: each is judged in every scenario, unless the verdict on its class
//! is known.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use suture_encode::analysis::Analysis;
use suture_encode::impact::{Impact, Reached};
use suture_encode::scene::Preparations;
use suture_model::change::Request;
use suture_model::futures::Moment;
use suture_model::navigate::UnknownKind;
use suture_model::object::{Key, Object};
use suture_model::state::State;
use suture_model::steps;
use suture_model::value::Str;
use suture_specs::spec::Action;

use crate::blame::{Blame, blame};
use crate::cache::Verdicts;
use crate::decision::{Effort, Exempted, Finding, Outcome, Verdict};
use crate::explain::{self, StepCache};
use crate::instance::{InvariantRun, LastByItself, Undecided, judges};
use crate::prove::Proof;
use crate::request::{
    DecisionContext, Evicted, Input, NoScenarios, ScenarioSet, ScenarioSource, Settings, expression_inputs,
};
use crate::shares::Shares;
use crate::symmetry_memo::{ClassKey, ClassVerdict, SharedVerdict, SymmetryMemo};
use crate::unmodelled::Operators;

/// Once so many instances are refused the others are left out: people read the first few, and a deletion that thousands
/// of objects depend on is denied in the time of one that some do.
const REFUSALS_MAX: usize = 64;
/// A deletion that takes more objects along than these is first judged without them: to mark them takes a millisecond.
const FOLLOWERS_MAX: usize = 512;

/// What is judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope<'v> {
    /// Only these instances, by invariant and name; all that the change reaches when there are none.
    pub only: Option<&'v BTreeSet<(String, String)>>,
    /// Whether the first instance that is not proved ends it.
    pub first: bool,
    /// Whether nothing has followed the change yet: only what holds at every moment, and denies, is asked.
    pub at_first: bool,
    /// Which instances that is.
    pub instances: Instances<'v>,
    /// Whether all instances are judged, also of what is denied whatever more of them say.
    pub in_full: bool,
}

/// Which instances are judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Instances<'v> {
    /// Those that the change reaches.
    #[default]
    Reached,
    /// All that there are, where nothing is changed.
    All,
    /// This object, of whichever invariants it is one, where nothing is changed.
    Of(&'v Key),
}

/// What was found out about the instances that a change reaches.
#[derive(Default)]
pub(crate) struct Findings {
    pub verdicts: Vec<Verdict>,
    pub proved: u64,
    /// How many can break without the change too, and no worse with it.
    pub not_worse: u64,
    /// The instances that were not judged, since an exemption covers them.
    pub exempted: Vec<Exempted>,
    /// What the operators of the custom resources that the change touches are taken to do.
    pub operators: Operators,
    /// The invariants that took all their steps.
    pub overran: BTreeSet<Str>,
    /// Whether some were left out, since the change is denied whatever they say.
    pub cut_short: bool,
}

impl Findings {
    fn is_denied(&self) -> bool {
        self.verdicts.iter().any(|v| v.decides() == Outcome::Denied)
    }

    /// Whether nothing that was judged stands in the way.
    pub fn all_hold(&self) -> bool {
        self.verdicts.iter().all(|v| v.outcome.is_passed())
    }
}

/// Judges a change by a set of invariants.
pub(crate) struct Judge<'e> {
    pub analyses: &'e [Analysis],
    pub settings: &'e Settings,
    /// The invariants that do not bind the authors of the change.
    pub unbound: &'e BTreeSet<Str>,
    /// The invariants that get a small share of the steps.
    pub hurried: &'e BTreeSet<Str>,
    /// The invariant that is being judged.
    pub running: &'e RefCell<Option<Str>>,
    pub verdicts: &'e mut Verdicts,
    pub effort: Effort,
    /// How many steps each invariant took.
    pub taken: BTreeMap<Str, u64>,
}

impl<'e> Judge<'e> {
    /// The verdicts on all instances that the change reaches. Where there are no scenarios, no invariant is decided.
    pub fn all(&mut self, input: &Input<'_>, scope: Scope<'_>) -> Findings {
        self.in_steps(input, scope).unwrap_or_else(|error| {
            let (target, why) = (input.target(), Undecided::Refused(error.to_string()));
            let undecided = |analysis: &Analysis| explain::undecided(&analysis.compiled, &target, &why);
            Findings { verdicts: self.analyses.iter().map(undecided).collect(), ..Findings::default() }
        })
    }

    /// A deletion that takes very many objects along is looked at in two steps: first what can happen before anything
    /// follows it, which decides most of them, since such a deletion is mostly refused for its own sake.
    fn in_steps(&mut self, input: &Input<'_>, scope: Scope<'_>) -> Result<Findings, NoScenarios> {
        let in_flight: Vec<&Request> = input.in_flight.iter().collect();
        let source = ScenarioSource { input, in_flight: &in_flight, unsure: self.settings.unsure };
        if !matches!(scope.instances, Instances::Reached) {
            let (baseline, _) = source.baseline(usize::MAX)?;
            let set = ScenarioSet { during: baseline.clone(), at_once: None, after: None, baseline };
            return Ok(self.in_scenarios(source, scope, &set));
        }
        let (during, whole) = source.during(FOLLOWERS_MAX)?;
        let (baseline, known) = source.baseline(FOLLOWERS_MAX)?;
        if !whole && known && !scope.in_full {
            let (at_first, _) = source.during(0)?;
            let at_once = source.at_once(0)?;
            let set = ScenarioSet { during: at_first, at_once, after: None, baseline: baseline.clone() };
            let mut found = self.in_scenarios(source, Scope { at_first: true, ..scope }, &set);
            if found.is_denied() {
                // what is proved so far is proved of the beginning only
                found.verdicts.retain(|v| v.outcome == Finding::Refuted);
                return Ok(Findings { proved: 0, not_worse: 0, cut_short: true, ..found });
            }
        }
        let during = if whole { during } else { source.during(usize::MAX)?.0 };
        let baseline = if known { baseline } else { source.baseline(usize::MAX)?.0 };
        // a single request has no states in between
        let single = input.change.requests.len() == 1;
        let after = if single { None } else { Some(source.after()?) };
        let at_once = source.at_once(usize::MAX)?;
        Ok(self.in_scenarios(source, scope, &ScenarioSet { during, at_once, after, baseline }))
    }

    /// The verdicts on all instances that these scenarios reach.
    fn in_scenarios(&mut self, source: ScenarioSource<'_>, scope: Scope<'_>, set: &ScenarioSet<'_>) -> Findings {
        let ScenarioSource { input, in_flight, .. } = source;
        let before = State::new(input.snapshot);
        let touched = set.during.iter().chain(set.after.iter().flatten());
        let mut found = Findings { operators: Operators::of(&before, touched), ..Findings::default() };
        let mut impact = Impact::new(&before, &set.during, &set.baseline);
        let inputs = expression_inputs(&input.change.requests, input.time);
        let (preparations, replayed) = (Preparations::default(), RefCell::default());
        let (evicted, named) = (Evicted::default(), RefCell::default());
        let context =
            DecisionContext { input, in_flight, inputs, before: &before, preparations, evicted, replayed, named };
        let told = StepCache::default();
        let (analyses, running, mut shares) =
            (self.analyses, self.running, Shares::new(self.settings.steps, self.hurried));
        let is_own = |analysis: &&Analysis| analysis.compiled.namespaced.is_some();
        let wide = analyses.iter().filter(|analysis| !is_own(analysis));
        for analysis in wide.chain(analyses.iter().filter(is_own)) {
            if !self.asks(analysis, &context, scope) {
                continue;
            }
            let with = set.at(analysis.compiled.hold);
            let run = InvariantRun { context: &context, analysis, with, baseline: &set.baseline };
            let memo = SymmetryMemo::new(run);
            let little = shares.hurried();
            let mut judged = InvariantJudge {
                judge: self,
                run,
                memo,
                scope,
                told: &told,
                found: &mut found,
                little,
                began: 0,
                is_spent: false,
                by_itself: LastByItself::default(),
            };
            running.replace(Some(analysis.compiled.name.clone()));
            let left = steps::left();
            let judged = shares.within(&analysis.compiled, || judged.all(&mut impact));
            *self.taken.entry(analysis.compiled.name.clone()).or_default() += left.saturating_sub(steps::left());
            running.take();
            if judged.is_break() {
                break;
            }
        }
        found
    }

    /// Whether an invariant is asked about a change.
    fn asks(&self, analysis: &Analysis, context: &DecisionContext<'_, '_>, scope: Scope<'_>) -> bool {
        let DecisionContext { input, inputs, .. } = context;
        let compiled = &analysis.compiled;
        let asked = scope.only.is_none_or(|only| only.iter().any(|(invariant, _)| *invariant == *compiled.name));
        asked
            && input.is_bound_by(compiled)
            && !self.unbound.contains(&compiled.name)
            && !analysis.never_applies_to(inputs)
            && (!scope.at_first || (compiled.hold != Moment::After && compiled.action == Action::Deny))
    }
}

/// Judges the instances of one invariant, one after the other. It breaks off where what was found suffices: more would not
/// make another decision of it.
struct InvariantJudge<'j, 'e, 's, 'a> {
    judge: &'j mut Judge<'e>,
    run: InvariantRun<'s, 'a>,
    memo: SymmetryMemo<'s, 'a>,
    scope: Scope<'j>,
    told: &'j StepCache,
    found: &'j mut Findings,
    /// What it may take without having overrun, where the answer is due before it is done.
    little: u64,
    /// What was left when it began; nothing before that.
    began: u64,
    /// Whether it was told to be undecided, since no step is left.
    is_spent: bool,
    /// Of those that no scenario changes.
    by_itself: LastByItself<'s>,
}

impl<'s, 'a> InvariantJudge<'_, '_, 's, 'a> {
    /// Judges all instances that the change reaches.
    fn all(&mut self, impact: &mut Impact<'s, 'a>) -> ControlFlow<()> {
        self.began = steps::left();
        let Reached { mut keys, mut pods, pod_classes, admitting } = match self.scope.instances {
            Instances::Reached => impact.reached(self.run.analysis),
            Instances::All => Reached::of(impact.of_kinds(self.run.analysis, None)),
            Instances::Of(key) => Reached::of(impact.of_key(self.run.analysis, key)),
        };
        let exposed = self.memo.exposed(&pod_classes);
        if !exposed.is_empty() {
            keys.extend(impact.pods_of_classes(|known| exposed.contains(known)));
        }
        // what lies elsewhere is no instance, and nothing that could be undecided
        if let Some(ns) = &self.run.compiled().namespaced {
            keys.retain(|key| key.ns == *ns);
            pods.retain(|pod| pod.key.ns == *ns);
        }
        let reached: BTreeSet<*const Object> = match admitting.is_empty() {
            true => BTreeSet::new(),
            false => {
                let of_keys = keys.iter().filter_map(|key| self.run.context.before.get(key));
                of_keys.chain(pods.iter().copied()).map(Arc::as_ptr).collect()
            }
        };
        let mut pods = pods.into_iter().peekable();
        for key in &keys {
            while let Some(pod) = pods.next_if(|pod| pod.key < *key) {
                self.reached(&pod.key, Some(pod))?;
            }
            let pod = pods.next_if(|pod| pod.key == *key);
            self.reached(key, pod)?;
        }
        pods.try_for_each(|pod| self.reached(&pod.key, Some(pod)))?;
        if self.is_spent {
            return ControlFlow::Continue(());
        }
        for constraint in admitting {
            if self.overran() {
                return ControlFlow::Continue(());
            }
            for mut same_constraint in impact.of_node_constraint(&constraint, self.run.analysis) {
                same_constraint.retain(|object| !reached.contains(&Arc::as_ptr(object)));
                self.same_constraint(&same_constraint)?;
                self.suffices()?;
            }
        }
        self.unread(impact);
        ControlFlow::Continue(())
    }

    /// Judges an instance that is reached for its own sake, which is this pod of the cluster before, if that is given.
    fn reached(&mut self, key: &Key, pod: Option<&'s Arc<Object>>) -> ControlFlow<()> {
        if self.overran() {
            return ControlFlow::Continue(());
        }
        if self.asks(key) {
            self.instance(key, pod, None);
        }
        self.suffices()
    }

    /// Whether no step is left: the invariant has taken its share of the decision, or the answer is due. Then it is undecided,
    /// and its other instances are left out.
    fn overran(&mut self) -> bool {
        let (spent, compiled) = (steps::check().is_err(), self.run.compiled());
        if spent && !self.is_spent {
            self.is_spent = true;
            let (late, taken) = (steps::ended(), self.began.saturating_sub(steps::left()));
            let why = if late { Undecided::Late } else { Undecided::Overran };
            let target = self.run.context.input.target();
            self.found.verdicts.push(explain::undecided(compiled, &target, &why));
            // whoever took the time is to blame for it, and not those that come after
            if !late || taken > self.little {
                self.found.overran.insert(compiled.name.clone());
            }
        }
        spent
    }

    /// Adds that the invariant is undecided where it reads a kind that was not read, unless that was said.
    fn unread(&mut self, impact: &Impact<'_, '_>) {
        let (compiled, input) = (self.run.compiled(), self.run.context.input);
        let undecided = |v: &Verdict| v.outcome == Finding::Undecided && *v.invariant == *compiled.name;
        let targets = input.change.requests.iter().map(|request| &request.target);
        if !self.found.verdicts.iter().any(undecided)
            && let Some(unread) = impact.unread(self.run.analysis, targets)
        {
            let why = Undecided::Refused(UnknownKind(unread).to_string());
            self.found.verdicts.push(explain::undecided(compiled, &input.target(), &why));
        }
    }

    /// Judges objects of one kind that are reached for the constraint on nodes that they share.
    fn same_constraint(&mut self, objects: &[&'s Arc<Object>]) -> ControlFlow<()> {
        let (compiled, input) = (self.run.compiled(), self.run.context.input);
        let class_key = objects.first().and_then(|object| self.memo.key_of(object));
        let all = compiled.matches.is_every() && compiled.namespaced.is_none() && input.exemptions.is_empty();
        let mut shared: Option<Rc<SharedVerdict<'s>>> = None;
        for object in objects {
            let key = &object.key;
            if !self.asks(key) {
                continue;
            }
            let is_judged = || all || (judges(compiled, object) && input.exemption(compiled, key).is_none());
            match &shared {
                Some(shared) if is_judged() && self.memo.is_of(shared, object) => self.count(key, &shared.verdict),
                Some(_) | None => {
                    self.instance(key, Some(object), class_key.clone());
                    shared = class_key.as_ref().and_then(|class_key| self.memo.of_class(class_key));
                }
            }
            self.suffices()?;
        }
        ControlFlow::Continue(())
    }

    /// Judges an instance, which is this object with this key of its class as far as that is known, unless the verdict on its class
    /// is.
    fn instance(&mut self, key: &Key, object: Option<&'s Arc<Object>>, class_key: Option<Rc<ClassKey>>) {
        let (run, compiled) = (self.run, self.run.compiled());
        if let Some(exemption) = run.context.input.exemption(compiled, key) {
            let judged = run.find(key).is_some_and(|object| judges(compiled, object));
            let exempted = judged.then(|| Exempted::of(&compiled.name, &key.to_string(), exemption));
            self.found.exempted.extend(exempted);
            return;
        }
        let Some(object) = object.or_else(|| run.find(key)).filter(|object| judges(compiled, object)) else { return };
        if let Some(shared) = self.memo.of_member(object) {
            return self.count(key, &shared.verdict);
        }
        if self.holds_by_itself(object) {
            return self.count(key, &ClassVerdict::Proved(Vec::new()));
        }
        let class_key = class_key.or_else(|| self.memo.key_of(object));
        let shared = class_key.as_ref().and_then(|class_key| self.memo.of_class(class_key));
        if let Some(shared) = shared.filter(|shared| self.memo.is_of(shared, object)) {
            return self.count(key, &shared.verdict);
        }
        self.judge.effort.instances += 1;
        let instance = run.instance(object);
        let class = self.memo.class_of(object, class_key);
        let Judge { verdicts, settings, effort, .. } = &mut *self.judge;
        let mut proof = Proof::new(instance, class, verdicts, settings.budget, effort);
        let violation = blame(&mut proof);
        let Proof { class, assumed, .. } = proof;
        match violation {
            Ok(Blame::Holds) => {
                let verdict = ClassVerdict::Proved(assumed.into_iter().collect());
                self.add(key, &verdict);
                self.memo.share(class, verdict);
            }
            Ok(Blame::NotWorse(violation)) => {
                let verdict = explain::not_worse(&instance, &violation, class.shares(&instance, &violation));
                let verdict = ClassVerdict::NotWorse(Box::new(verdict));
                self.add(key, &verdict);
                self.memo.share(class, verdict);
            }
            Ok(Blame::Change(violation)) => {
                let verdict = explain::refuted(&instance, &violation, self.told);
                if class.shares(&instance, &violation) {
                    self.memo.share(class, ClassVerdict::Refuted(Box::new(verdict.clone())));
                }
                self.found.verdicts.push(verdict);
            }
            // whatever failed then failed for that
            Err(_) if self.overran() => {}
            Err(why) => self.found.verdicts.push(explain::undecided(compiled, key, &why)),
        }
    }

    /// Whether an object holds in every future by what it is itself.
    fn holds_by_itself(&mut self, object: &'s Arc<Object>) -> bool {
        match self.run.is_as_it_was(object) {
            true => self.by_itself.holds(object, || self.run.holds_by_itself(object)),
            false => self.run.holds_by_itself_changed(object),
        }
    }

    /// Counts an instance that fares as its class does.
    fn count(&mut self, key: &Key, verdict: &ClassVerdict) {
        self.judge.effort.instances += 1;
        self.add(key, verdict);
    }

    /// Adds the verdict on its class for an instance.
    fn add(&mut self, key: &Key, verdict: &ClassVerdict) {
        match verdict {
            ClassVerdict::Proved(assumed) => {
                self.found.proved += 1;
                if self.judge.settings.verbose {
                    self.found.verdicts.push(explain::proved(self.run.compiled(), key, assumed.clone()));
                }
            }
            ClassVerdict::NotWorse(verdict) => {
                self.found.not_worse += 1;
                if self.judge.settings.verbose {
                    let version = self.run.find(key).map_or("", |object| &object.resource_version);
                    self.found.verdicts.push(explain::same_as(verdict, key, version));
                }
            }
            ClassVerdict::Refuted(verdict) => {
                let version = self.run.find(key).map_or("", |object| &object.resource_version);
                self.found.verdicts.push(explain::same_as(verdict, key, version));
            }
        }
    }

    /// Whether this instance is among those that are asked about.
    fn asks(&self, key: &Key) -> bool {
        let named = || (self.run.compiled().name.to_string(), key.to_string());
        self.scope.only.is_none_or(|only| only.contains(&named()))
    }

    /// Breaks off where what was found suffices.
    fn suffices(&mut self) -> ControlFlow<()> {
        if self.scope.first && !self.found.all_hold() {
            return ControlFlow::Break(());
        }
        let verdicts = &self.found.verdicts;
        let in_full = self.judge.settings.verbose || !matches!(self.scope.instances, Instances::Reached);
        let many = verdicts.len() >= REFUSALS_MAX && !in_full;
        let refusals = || verdicts.iter().filter(|v| v.decides() == Outcome::Denied).count();
        self.found.cut_short = many && refusals() >= REFUSALS_MAX;
        match self.found.cut_short {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
