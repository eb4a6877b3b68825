//! One invariant's instances in the scenarios of a change, and what was found out about some of them that goes for
//! others: pods that no question tells apart, and objects of which only the constraint on nodes is read.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use suture_encode::analysis::Analysis;
use suture_encode::question::{Inputs, Judged, Question};
use suture_encode::scene::Preparations;
use suture_model::deletion::{Expected, expected_to_go, takes_along};
use suture_model::effects::DELETION_TIME;
use suture_model::futures::{Fate, FateKind, Faults};
use suture_model::kinds::{Kind, KindTraits};
use suture_model::navigate::owner_object;
use suture_model::object::{Key, Object};
use suture_model::references::{names_its_own, references};
use suture_model::scenario::Scenario;
use suture_model::snapshot::constraint_of;
use suture_model::state::State;
use suture_model::value::Val;

use crate::decision::Verdict;
use crate::engine::{Input, Instance, SymmetryClass};
use crate::explain::StepCache;

/// What all invariants are judged with.
pub(crate) struct DecisionContext<'s, 'a> {
    pub input: &'s Input<'s>,
    pub inputs: Inputs,
    pub before: &'s State<'a>,
    pub preparations: Preparations,
    pub step_cache: StepCache,
}

/// What was found out about an instance.
#[derive(Clone, Debug)]
pub(crate) enum SharedVerdict {
    /// It holds.
    Proved {
        /// What the proof relies on.
        assumed: Vec<String>,
        /// Whether it holds in every scenario, whether the instance stays, terminates or is gone.
        holds_if_deleted: bool,
    },
    /// The change breaks it.
    Refuted(Box<Verdict>),
}

/// Objects of a kind with the same constraint on nodes.
pub(crate) type NodeConstraintKey = (Kind, Val);

/// The instances of one invariant, judged one after the other.
pub(crate) struct InvariantRun<'s, 'a> {
    pub common: &'s DecisionContext<'s, 'a>,
    pub analysis: &'s Analysis,
    /// With the change.
    pub with: &'s [Scenario<'a>],
    /// Without it.
    pub baseline: &'s [Scenario<'a>],
    /// Whether pods that differ in their names only may stand for one another.
    blind: bool,
    /// By instance, for pods.
    pods: BTreeMap<Key, Arc<SharedVerdict>>,
    by_nodes: BTreeMap<NodeConstraintKey, Arc<SharedVerdict>>,
    expected: Expected<'s, 'a>,
    quiet: OnceCell<bool>,
}

impl<'s, 'a> InvariantRun<'s, 'a> {
    pub fn new(
        common: &'s DecisionContext<'s, 'a>,
        analysis: &'s Analysis,
        with: &'s [Scenario<'a>],
        baseline: &'s [Scenario<'a>],
    ) -> Self {
        Self {
            common,
            analysis,
            with,
            baseline,
            // faults tell nodes apart, and what else is on them
            blind: analysis.compiled.faults == Faults::default() && analysis.blind_to_identity,
            pods: BTreeMap::new(),
            by_nodes: BTreeMap::new(),
            expected: Expected::new(common.before),
            quiet: OnceCell::new(),
        }
    }

    /// The object of this name, as it was before or else as a scenario has it.
    pub fn find(&self, key: &Key) -> Option<&'s Arc<Object>> {
        let (before, with) = (self.common.before, self.with);
        before.get(key).or_else(|| with.iter().find_map(|scenario| scenario.state.get(key)))
    }

    /// What is asked about one object.
    pub fn instance(&self, object: &'s Arc<Object>) -> Instance<'s, 'a> {
        Instance { common: self.common, compiled: &self.analysis.compiled, object }
    }

    /// Its constraint on nodes, if nothing else of the object is read.
    pub fn node_constraint(&self, object: &Object) -> Option<NodeConstraintKey> {
        let kind = &object.key.kind;
        let alone = self.analysis.compiled.faults == Faults::default() && self.analysis.reads_nodes_only(kind);
        let constraint = constraint_of(object).filter(|_| alone && self.common.before.adapter(object).is_none());
        constraint.map(|constraint| (kind.clone(), constraint))
    }

    /// Who may stand for an object, before anything is asked about it.
    pub fn symmetry(&self, object: &Object, node_constraint: Option<&NodeConstraintKey>) -> SymmetryClass {
        match node_constraint {
            Some(_) => SymmetryClass::SameNodeConstraint,
            None if self.blind && may_have_mates(object) => SymmetryClass::Unasked,
            None => SymmetryClass::None,
        }
    }

    /// What was found out about this pod's equals.
    pub fn of_equals(&self, key: &Key) -> Option<Arc<SharedVerdict>> {
        self.pods.get(key).cloned()
    }

    /// What was found out about an object with this mark.
    pub fn of_node_constraint(&self, node_constraint: &NodeConstraintKey) -> Option<Arc<SharedVerdict>> {
        self.by_nodes.get(node_constraint).cloned()
    }

    /// Whether what was found out about an object with its mark goes for this one.
    pub fn goes_for(&self, class_verdict: &SharedVerdict, object: &Arc<Object>) -> bool {
        match class_verdict {
            // whether it is on its way out or not
            SharedVerdict::Proved { holds_if_deleted: true, .. } => self.is_same(object),
            _ => self.stays_as_it_is(object),
        }
    }

    /// Whether an instance holds in every scenario as it is, while it terminates, and when it is gone: all that can happen
    /// to those of which no more is read.
    pub fn holds_if_deleted(&self, instance: &Instance<'_, '_>) -> bool {
        let holds = |now: &State<'_>| instance.replay(now) == Judged::Holds;
        self.with.iter().all(|scenario| {
            let (mut terminating, mut gone) = (scenario.state.clone(), scenario.state.clone());
            terminating.put(instance.object.with_deletion(DELETION_TIME));
            gone.take(&instance.object.key);
            [&scenario.state, &terminating, &gone].into_iter().all(holds)
        })
    }

    /// Whether nothing that may become of a pod can break the invariant, as plain evaluation tells: it reads nothing but
    /// who is there, all whom the pod names stay in every scenario, and it holds with the pod and without.
    pub fn trivially_holds(&self, pod: &Arc<Object>) -> bool {
        // no other pod takes the name of one of these
        let unnamed = pod.controller().is_some_and(|owner| owner.kind.has(KindTraits::generates_names));
        let alone = self.blind && self.analysis.reads_presence_only && unnamed && self.is_same(pod);
        alone
            && self.with.iter().all(|scenario| all_named_stay(&scenario.state, pod))
            && self.holds_if_deleted(&self.instance(pod))
    }

    /// Notes what was found out about an instance for those that every question took for its equals.
    pub fn share(
        &mut self,
        instance: &Instance<'_, '_>,
        symmetry: SymmetryClass,
        node_constraint: Option<NodeConstraintKey>,
        found: SharedVerdict,
    ) {
        match (symmetry, node_constraint) {
            (SymmetryClass::Are(symmetry), _) => {
                let found = Arc::new(found);
                let symmetry = symmetry.into_iter().filter(|key| instance.is_judged_as(key));
                self.pods.extend(symmetry.map(|key| (key, found.clone())));
            }
            (SymmetryClass::SameNodeConstraint, Some(node_constraint)) if self.stays_as_it_is(instance.object) => {
                self.by_nodes.insert(node_constraint, Arc::new(found));
            }
            _ => {}
        }
    }

    /// Whether an object of the cluster before is the same in every scenario; it may go all the same. No look is taken at
    /// the object: there may be thousands.
    fn is_same(&self, object: &Arc<Object>) -> bool {
        !self.with.iter().chain(self.baseline).any(|scenario| scenario.state.may_differ(object))
    }

    /// Whether nothing may happen to it, either.
    fn stays_as_it_is(&self, object: &Arc<Object>) -> bool {
        let scenarios = || self.with.iter().chain(self.baseline);
        object.live()
            && !object.has_pod_as_owner()
            && self.is_same(object)
            && !self.expected.goes(object)
            && (self.is_quiet() || !scenarios().any(|scenario| expected_to_go(&scenario.state, object)))
    }

    fn is_quiet(&self) -> bool {
        let mut scenarios = self.with.iter().chain(self.baseline);
        *self.quiet.get_or_init(|| scenarios.all(|scenario| is_quiet(scenario, self.common.before)))
    }
}

/// Whether all that a pod names as owner, or refers to, is there or not in all that follows on a state: the claims of
/// pods may come and go with them.
fn all_named_stay(state: &State<'_>, pod: &Object) -> bool {
    let stays = |named: &Arc<Object>| {
        named.live() && !named.key.kind.is("Pod") && !named.has_pod_as_owner() && !expected_to_go(state, named)
    };
    let mut owners = pod.owners().iter();
    let mut referred = references(pod, state.base().adapters().as_ref()).into_iter().map(|reference| reference.target);
    owners.all(|owner| owner_object(state, pod, owner).is_none_or(stays))
        && referred.all(|key| !key.kind.is("PersistentVolumeClaim") && state.resolve(&key).is_none_or(stays))
}

/// Whether no namespace and no owner comes or goes in a scenario: what is not changed there itself goes if it did before.
fn is_quiet(scenario: &Scenario<'_>, before: &State<'_>) -> bool {
    scenario.state.delta().iter().all(|(key, now)| {
        let Some(was) = before.get(key) else { return false };
        let same = |now: &Arc<Object>| now.live() && now.uid == was.uid && now.owners() == was.owners();
        let stays = was.live() && now.as_ref().is_some_and(same);
        stays || (!takes_along(before, &key.kind) && before.owned_by(&was.uid).is_empty())
    })
}

/// Whether there may be objects that nothing tells from this one: pods, unless pods are what they name, or what is named
/// after them.
fn may_have_mates(object: &Object) -> bool {
    object.key.kind.is("Pod") && !object.has_pod_as_owner() && !names_its_own(object)
}

/// Whether a question places new pods on nodes that were not read.
pub(crate) fn lacks_nodes(question: &Question<'_, '_>) -> bool {
    let scene = &question.scene;
    let is_new = |fate: &Fate| matches!(fate.kind, FateKind::NewUnready | FateKind::NewReady);
    let mut entities = scene.encoded_groups().iter().flat_map(|encoded| &encoded.group.entities);
    !scene.view.coarse
        && scene.state().base().unknown().contains("Node")
        && entities.any(|entity| entity.fates.iter().any(is_new))
}
