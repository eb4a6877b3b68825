//! One invariant's instances in the scenarios of a change, and what was found out about some of them that goes for
//! others: pods that no question tells apart, and objects of which only the constraint on nodes is read.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use suture_encode::analysis::Analysis;
use suture_encode::question::{Inputs, Judged, Question};
use suture_encode::scene::Preparations;
use suture_model::cascade::{Expected, expected_to_go};
use suture_model::effects::DELETION_TIME;
use suture_model::futures::{Fate, FateKind, Faults};
use suture_model::kinds::Kind;
use suture_model::navigate::owner_object;
use suture_model::object::{Key, Object};
use suture_model::references::{names_its_own, references};
use suture_model::scenario::Scenario;
use suture_model::snapshot::constraint_of;
use suture_model::state::State;
use suture_model::value::Val;

use crate::decision::Verdict;
use crate::engine::{Input, Instance, Mates};
use crate::explain::Told;

/// What all invariants are judged with.
pub(crate) struct Common<'s, 'a> {
    pub input: &'s Input<'s>,
    pub inputs: Inputs,
    pub before: &'s State<'a>,
    pub preparations: Preparations,
    pub told: Told,
}

/// What was found out about an instance.
#[derive(Clone, Debug)]
pub(crate) enum Settled {
    /// It holds.
    Proved {
        /// What the proof relies on.
        assumed: Vec<String>,
        /// Whether it holds in every scenario, whether the instance stays, terminates or is gone.
        wherever: bool,
    },
    /// The change breaks it.
    Refuted(Box<Verdict>),
}

/// Objects of a kind with the same constraint on nodes.
pub(crate) type Mark = (Kind, Val);

/// The instances of one invariant, judged one after the other.
pub(crate) struct Round<'s, 'a> {
    pub common: &'s Common<'s, 'a>,
    pub analysis: &'s Analysis,
    /// With the change.
    pub with: &'s [Scenario<'a>],
    /// Without it.
    pub baseline: &'s [Scenario<'a>],
    /// Whether pods that differ in their names only may stand for one another.
    blind: bool,
    /// By instance, for pods.
    pods: BTreeMap<Key, Arc<Settled>>,
    by_nodes: BTreeMap<Mark, Arc<Settled>>,
    expected: Expected<'s, 'a>,
    quiet: OnceCell<bool>,
}

impl<'s, 'a> Round<'s, 'a> {
    pub fn new(
        common: &'s Common<'s, 'a>,
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
    pub fn mark(&self, object: &Object) -> Option<Mark> {
        let kind = &object.key.kind;
        let alone = self.analysis.compiled.faults == Faults::default() && self.analysis.reads_nodes_only(kind);
        let constraint = constraint_of(object).filter(|_| alone && self.common.before.adapter(object).is_none());
        constraint.map(|constraint| (kind.clone(), constraint))
    }

    /// Who may stand for an object, before anything is asked about it.
    pub fn mates(&self, object: &Object, mark: Option<&Mark>) -> Mates {
        match mark {
            Some(_) => Mates::ByNodes,
            None if self.blind && may_have_mates(object) => Mates::Unasked,
            None => Mates::None,
        }
    }

    /// What was found out about this pod's equals.
    pub fn of_equals(&self, key: &Key) -> Option<Arc<Settled>> {
        self.pods.get(key).cloned()
    }

    /// What was found out about an object with this mark.
    pub fn of_marked(&self, mark: &Mark) -> Option<Arc<Settled>> {
        self.by_nodes.get(mark).cloned()
    }

    /// Whether what was found out about an object with its mark goes for this one.
    pub fn goes_for(&self, settled: &Settled, object: &Arc<Object>) -> bool {
        match settled {
            // whether it is on its way out or not
            Settled::Proved { wherever: true, .. } => self.is_same(object),
            _ => self.stays_as_it_is(object),
        }
    }

    /// Whether an instance holds in every scenario as it is, while it terminates, and when it is gone: all that can happen
    /// to those of which no more is read.
    pub fn holds_wherever(&self, instance: &Instance<'_, '_>) -> bool {
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
    pub fn is_secure(&self, pod: &Arc<Object>) -> bool {
        // no other pod takes the name of one of these
        let unnamed = pod.controller().is_some_and(|owner| UNNAMED.iter().any(|kind| owner.kind.is(kind)));
        let alone = self.blind && self.analysis.reads_standing_only && unnamed && self.is_same(pod);
        alone
            && self.with.iter().all(|scenario| all_named_stay(&scenario.state, pod))
            && self.holds_wherever(&self.instance(pod))
    }

    /// Notes what was found out about an instance for those that every question took for its equals.
    pub fn settle(&mut self, instance: &Instance<'_, '_>, mates: Mates, mark: Option<Mark>, found: Settled) {
        match (mates, mark) {
            (Mates::Are(mates), _) => {
                let found = Arc::new(found);
                let mates = mates.into_iter().filter(|key| instance.is_judged_as(key));
                self.pods.extend(mates.map(|key| (key, found.clone())));
            }
            (Mates::ByNodes, Some(mark)) if self.stays_as_it_is(instance.object) => {
                self.by_nodes.insert(mark, Arc::new(found));
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

/// Controllers that make pods under names of their own making.
const UNNAMED: [&str; 3] = ["ReplicaSet", "DaemonSet", "Job"];

/// Kinds whose objects take along more than their dependents ([`takes_along`]).
const LEADERS: [&str; 5] =
    ["Namespace", "CustomResourceDefinition", "StatefulSet", "PersistentVolumeClaim", "ServiceAccount"];

/// Whether all that a pod names as owner, or refers to, is there or not in all that follows on a state: the claims of
/// pods may come and go with them.
fn all_named_stay(state: &State<'_>, pod: &Object) -> bool {
    let stays = |named: &Arc<Object>| {
        named.live() && !named.key.kind.is("Pod") && !named.has_pod_as_owner() && !expected_to_go(state, named)
    };
    let mut owners = pod.owners().iter();
    let mut referred = references(pod, state.base().adapters().as_ref()).into_iter().map(|reference| reference.target);
    owners.all(|owner| owner_object(state, pod, owner).is_none_or(stays))
        && referred.all(|key| !key.kind.is("PersistentVolumeClaim") && state.meant(&key).is_none_or(stays))
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

/// Whether more than what names an object of a kind as its owner may go with it; of what goes with a node, pods, each is
/// marked.
fn takes_along(state: &State<'_>, kind: &Kind) -> bool {
    LEADERS.iter().any(|leader| kind.is(leader)) || state.base().adapters().kinds().contains(kind)
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
    let mut entities = scene.coded().iter().flat_map(|coded| &coded.group.entities);
    !scene.view.coarse
        && scene.state().base().unknown().contains("Node")
        && entities.any(|entity| entity.fates.iter().any(is_new))
}
