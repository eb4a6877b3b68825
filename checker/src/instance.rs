//! One instance of an invariant: what is asked about it, and how it fares in one concrete future.

use std::rc::Rc;
use std::sync::Arc;

use suture_encode::analysis::Analysis;
use suture_encode::eval::Refusal;
use suture_encode::outage::failing_max;
use suture_encode::question::{Judged, Question, encode, replay};
use suture_encode::scene::Scene;
use suture_encode::term::Assignment;
use suture_model::effects::View;
use suture_model::futures::{FateKind, Faults, Outage};
use suture_model::interpret::{Choice, realize};
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::state::State;
use suture_specs::compile::CompiledInvariant;
use suture_specs::functions::Worlds;

use crate::request::DecisionContext;

/// Why an instance is undecided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    /// The question cannot be encoded, or a kind was not read.
    #[error("{0}")]
    Refused(String),
    /// What the invariant may cost of a decision is spent.
    #[error(
        "it takes too long: what it may cost of one decision is spent before all that the change reaches is looked at"
    )]
    Overran,
    /// Nobody waits for the decision any longer.
    #[error("there is no time left: the answer is due before all that the change reaches is looked at")]
    Late,
    /// What the invariant may cost of an audit is spent.
    #[error("it takes too long: what it may cost of an audit is spent before all its instances are looked at")]
    AuditOverran,
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

/// One invariant in the scenarios of a change.
#[derive(Clone, Copy)]
pub(crate) struct InvariantRun<'s, 'a> {
    pub context: &'s DecisionContext<'s, 'a>,
    pub analysis: &'s Analysis,
    /// With the change.
    pub with: &'s [Scenario<'a>],
    /// Without it.
    pub baseline: &'s [Scenario<'a>],
}

impl<'s, 'a> InvariantRun<'s, 'a> {
    /// The invariant.
    pub fn compiled(&self) -> &'s CompiledInvariant {
        &self.analysis.compiled
    }

    /// With the change and without it.
    pub fn scenarios(&self) -> impl Iterator<Item = &'s Scenario<'a>> + use<'s, 'a> {
        self.with.iter().chain(self.baseline)
    }

    /// The object of this name, as it was before or else as a scenario has it.
    pub fn find(&self, key: &Key) -> Option<&'s Arc<Object>> {
        self.context.before.get(key).or_else(|| self.with.iter().find_map(|scenario| scenario.state.get(key)))
    }

    /// Whether no scenario changes an object, though some may take it away.
    pub fn is_as_it_was(&self, object: &Arc<Object>) -> bool {
        self.scenarios().all(|scenario| {
            let here = || scenario.state.get(&object.key);
            !scenario.state.may_differ(object) || here().is_none_or(|here| Arc::ptr_eq(&here.body, &object.body))
        })
    }

    /// Whether such an object holds in every future by what it is itself ([`Analysis::holds_by_itself`]).
    pub fn holds_by_itself(&self, object: &Arc<Object>) -> bool {
        let before = self.context.before;
        self.analysis.holds_by_itself(object, Worlds { before, now: before })
    }

    /// The same of one that some scenario changes: with each of its versions.
    pub fn holds_by_itself_changed(&self, object: &Arc<Object>) -> bool {
        let before = self.context.before;
        let mut versions: Vec<&Arc<Object>> = Vec::new();
        for version in self.scenarios().filter_map(|scenario| scenario.state.get(&object.key)).chain([object]) {
            if !versions.iter().any(|known| Arc::ptr_eq(&known.body, &version.body)) {
                versions.push(version);
            }
        }
        let worlds = Worlds { before, now: before };
        versions.into_iter().all(|version| self.analysis.holds_by_itself_as(object, version, worlds))
    }

    /// What is asked about one object.
    pub fn instance(self, object: &'s Arc<Object>) -> Instance<'s, 'a> {
        Instance { run: self, object }
    }
}

/// Whether the last object that was looked at holds by itself: mostly the next one is its equal.
#[derive(Debug, Default)]
pub(crate) struct LastByItself<'s>(Option<(&'s Arc<Object>, bool)>);

impl<'s> LastByItself<'s> {
    /// Whether this one does, as `find` finds unless it is the equal of the last one.
    pub fn holds(&mut self, object: &'s Arc<Object>, find: impl FnOnce() -> bool) -> bool {
        let is_equal = |of: &Object| of.key.kind == object.key.kind && Arc::ptr_eq(&of.body, &object.body);
        let holds = self.0.filter(|(known, _)| is_equal(known)).map_or_else(find, |(_, holds)| holds);
        self.0 = Some((object, holds));
        holds
    }
}

/// Whether an object is an instance that the invariant judges; a NamespacedInvariant judges those of its namespace.
pub(crate) fn judges(compiled: &CompiledInvariant, object: &Object) -> bool {
    compiled.matches.admits(object) && compiled.namespaced.as_ref().is_none_or(|ns| *ns == object.key.ns)
}

/// One instance with what is needed to ask about it.
#[derive(Clone, Copy)]
pub(crate) struct Instance<'s, 'a> {
    pub run: InvariantRun<'s, 'a>,
    pub object: &'s Arc<Object>,
}

impl<'s, 'a> Instance<'s, 'a> {
    /// Whether some future of a scenario under an outage violates it. With new pods placed precisely, or (`coarse`)
    /// anywhere.
    pub fn question(
        &self,
        scenario: &'s Scenario<'a>,
        outage: Outage,
        coarse: bool,
    ) -> Result<Question<'s, 'a>, Undecided> {
        self.ask(scenario, outage, coarse, |scene| scene)
    }

    /// The faults that are looked at in a scenario: nodes do not fail beside evictions.
    pub fn faults(&self, scenario: &Scenario<'a>) -> Faults {
        let faults = self.run.compiled().faults;
        if scenario.evicted.is_empty() { faults } else { faults.without_outages() }
    }

    /// [`Self::question`] in more futures than there are, for a proof: whichever nodes fail and, with `rest_open`, with any
    /// number of the pods that many workloads have. `None` where it cannot be put so.
    pub fn in_more_futures(&self, scenario: &'s Scenario<'a>, rest_open: bool) -> Option<Question<'s, 'a>> {
        let faults = self.faults(scenario);
        let nodes = failing_max(&scenario.state, faults);
        let question = self.ask(scenario, Outage::default(), true, |scene| {
            let scene = if rest_open { scene.leaving_rest_open() } else { scene };
            if faults.lose_nodes() { scene.whichever_fails(nodes) } else { scene }
        });
        let mut question = question.ok()?;
        (!faults.lose_nodes() || question.bound_failing(faults) == Ok(true)).then_some(question)
    }

    fn ask(
        &self,
        scenario: &'s Scenario<'a>,
        outage: Outage,
        coarse: bool,
        finish: impl Fn(Scene<'s, 'a>) -> Scene<'s, 'a>,
    ) -> Result<Question<'s, 'a>, Undecided> {
        let InvariantRun { context, .. } = self.run;
        let compiled = self.run.compiled();
        let remade = compiled.remade;
        let view =
            View { moment: compiled.hold, outage, places: !coarse, merge_equivalent_nodes: true, coarse, remade };
        let start = |grain| {
            let view = view.clone();
            finish(Scene::new(context.before, scenario, view, self.faults(scenario), grain, &context.preparations))
        };
        encode(compiled, self.object, &context.inputs, &start).map_err(|refusal| match refusal {
            Refusal::Unknown(why) => Undecided::Refused(why),
            other => Undecided::Refused(other.to_string()),
        })
    }

    /// How it fares in one concrete future.
    pub fn replay(&self, now: &State<'_>) -> Judged {
        let DecisionContext { inputs, before, replayed, .. } = self.run.context;
        // others are nowhere else in memory than where the next one will be
        let kept =
            self.run.scenarios().any(|scenario| std::ptr::eq(&raw const scenario.state, now)).then_some(replayed);
        replay(self.run.compiled(), self.object, inputs, Worlds { before, now }, kept)
    }

    /// Why its invariant has no value in a future.
    pub fn failure(&self, question: &Question<'s, 'a>, solution: &Assignment) -> Undecided {
        let Ok((_, world)) = question.world(solution) else {
            return Undecided::ReplayMismatch("the solution does not decode".to_owned());
        };
        match self.replay(&world) {
            Judged::Fails(why) => Undecided::Fails(why),
            Judged::Holds | Judged::Violated { .. } => Undecided::Fails("an expression has no value".to_owned()),
        }
    }
}

/// A violating future that replays.
pub(crate) struct Violation<'s, 'a> {
    /// The changes in flight, in words, that have not landed in it, if it takes that: the instance holds once they have.
    pub open: Vec<String>,
    pub question: Rc<Question<'s, 'a>>,
    pub choices: Vec<Choice>,
    pub message: String,
    pub clause: usize,
}

impl Violation<'_, '_> {
    /// Whether new pods are ready in it that nothing was asked about a place for.
    pub fn ignores_places(&self) -> bool {
        let groups = self.question.scene.encoded_groups().iter().zip(&self.choices);
        let entities = groups.flat_map(|(encoded, choice)| encoded.group.entities.iter().zip(choice));
        let mut fates = entities.flat_map(|(entity, numbers)| entity.fates.iter().zip(numbers));
        self.question.scene.view.coarse && fates.any(|(fate, number)| fate.kind == FateKind::NewReady && *number > 0)
    }

    /// How badly it breaks the instance, where the invariant says so and it has a value.
    pub fn degree(&self, instance: &Instance<'_, '_>) -> Option<i64> {
        let scene = &self.question.scene;
        let groups: Vec<_> = scene.encoded_groups().iter().map(|c| &*c.group).zip(&self.choices).collect();
        match instance.replay(&realize(scene.scenario, &scene.view.outage, &groups)) {
            Judged::Violated { degree, .. } => degree,
            Judged::Holds | Judged::Fails(_) => None,
        }
    }
}
