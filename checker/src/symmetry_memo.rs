//! Verdicts that stand for more than one instance of an invariant.
//!
//! An [`InstanceClass`] is judged by its representative. The rule by which the verdict is that of a member, too:
//! 1. Nothing that is read about the representative tells the two apart: [`InstanceClass::narrow`].
//! 2. Both meet the same in every scenario, or it does not matter: [`SymmetryMemo::is_of`].
//! 3. A refutation, as it is told, names no member: [`InstanceClass::shares`].
//!
//! | what is read of an object | key | members |
//! |---|---|---|
//! | whether it is there, and its constraint on nodes | kind and constraint | all objects with the key |
//! | whether it is there, of a pod whose owners and references stay | namespace, body, whether it is live | all pods with the key |
//! | of a pod that nothing names, what neither names nor nodes show | none | the pods that no question told from it |

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use suture_encode::class::Symmetric;
use suture_encode::impact::PodClass;
use suture_encode::question::Judged;
use suture_encode::scene::Scene;
use suture_model::annotations::CONFIRM_DELETE;
use suture_model::deletion::{Expected, takes_along};
use suture_model::effects::DELETION_TIME;
use suture_model::fields::NodeConstraint;
use suture_model::futures::Faults;
use suture_model::kinds::{Kind, KindTraits};
use suture_model::navigate::owner_object;
use suture_model::object::{Body, Key, Object};
use suture_model::references::{names_its_own, references};
use suture_model::scenario::Scenario;
use suture_model::state::State;

use crate::decision::Verdict;
use crate::explain;
use crate::instance::{Instance, InvariantRun, Violation, judges};

/// Instances that are judged by one of them.
#[derive(Debug)]
pub(crate) struct InstanceClass<'s> {
    /// The one that is judged.
    pub representative: &'s Arc<Object>,
    /// All that is read of a member, where that is little enough to look the class up by it.
    pub key: Option<Rc<ClassKey>>,
    /// The others.
    pub members: Members,
}

/// All that is read of the members of a class: their kind and their constraint on nodes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassKey(Kind, NodeConstraint);

/// The members of a class.
#[derive(Debug)]
pub(crate) enum Members {
    /// The representative alone.
    Alone,
    /// All objects with the key of the class, as far as they meet no other fate.
    WithKey,
    /// Those that no question tells from the representative; none was asked yet.
    Unasked,
    /// Those that are in each of these, as the representative is.
    Are(Vec<Symmetric>),
}

impl InstanceClass<'_> {
    /// Leaves out the members that a question tells from the representative.
    pub fn narrow(&mut self, scene: &Scene<'_, '_>) {
        let found = || {
            let found = scene.symmetric_entities(&self.representative.key);
            found.filter(|_| !scene.grain.identity && !scene.grain.nodes)
        };
        self.members = match std::mem::replace(&mut self.members, Members::Alone) {
            Members::Alone => Members::Alone,
            Members::WithKey if scene.encoded_groups().is_empty() => Members::WithKey,
            Members::WithKey => Members::Alone,
            Members::Unasked => found().map_or(Members::Alone, |found| Members::Are(vec![found])),
            Members::Are(mut known) => match found() {
                Some(found) => {
                    if !known.iter().any(|of| of.is(&found)) {
                        known.push(found);
                    }
                    Members::Are(known)
                }
                None => Members::Alone,
            },
        };
    }

    /// Whether a violation, as it is told, is one of each member as well.
    pub fn shares(&self, instance: &Instance<'_, '_>, violation: &Violation<'_, '_>) -> bool {
        match &self.members {
            Members::Alone | Members::Unasked => false,
            Members::WithKey => true,
            Members::Are(members) => {
                instance.run.analysis.footprint.blind_message && explain::names_none(violation, &common(members))
            }
        }
    }
}

/// The keys that all of these have.
fn common(members: &[Symmetric]) -> BTreeSet<Key> {
    let Some((first, others)) = members.split_first() else { return BTreeSet::new() };
    first.keys().filter(|key| others.iter().all(|other| other.has(key))).cloned().collect()
}

/// The verdict on the representative of a class.
#[derive(Debug)]
pub(crate) enum ClassVerdict {
    /// It holds, which relies on this.
    Proved(Vec<String>),
    /// It can break without the change too, and no worse with it. What is told of it names no member.
    NotWorse(Box<Verdict>),
    /// The change breaks it.
    Refuted(Box<Verdict>),
}

/// Which members meet the same as the representative.
#[derive(Clone, Debug)]
enum Sharing<'s> {
    /// Those in each of these that differ from it in their headers only: what may become of either was part of the questions.
    SameBody(&'s Arc<Object>, Vec<Symmetric>),
    /// Those that nothing happens to: nothing happens to the representative, either.
    Unaffected,
    /// Those that no scenario changes: the verdict is the same whether they stay, terminate or are gone.
    WhateverBecomes,
}

/// A verdict, and whose it is.
#[derive(Debug)]
pub(crate) struct SharedVerdict<'s> {
    pub verdict: ClassVerdict,
    sharing: Sharing<'s>,
}

/// The verdicts on the classes of one invariant's instances.
pub(crate) struct SymmetryMemo<'s, 'a> {
    run: InvariantRun<'s, 'a>,
    /// Whether pods that differ in their names only may stand for one another.
    blind: bool,
    by_key: BTreeMap<Rc<ClassKey>, Rc<SharedVerdict<'s>>>,
    /// By the body of the members, where the class has no key.
    by_body: BTreeMap<*const Body, Vec<Rc<SharedVerdict<'s>>>>,
    expected: Expected<'s, 'a>,
    quiet: OnceCell<bool>,
}

impl<'s, 'a> SymmetryMemo<'s, 'a> {
    /// Nothing is known yet.
    pub fn new(run: InvariantRun<'s, 'a>) -> Self {
        Self {
            run,
            // faults tell nodes apart, and what else is on them
            blind: run.compiled().faults == Faults::default() && run.analysis.footprint.blind_to_identity,
            by_key: BTreeMap::new(),
            by_body: BTreeMap::new(),
            expected: Expected::at_worst(run.context.before),
            quiet: OnceCell::new(),
        }
    }

    /// All that is read of an object, if that is its constraint on nodes.
    pub fn key_of(&self, object: &Object) -> Option<Rc<ClassKey>> {
        let kind = &object.key.kind;
        let alone = self.run.compiled().faults == Faults::default() && self.run.analysis.reads_nodes_only(kind);
        let alone = alone && self.run.context.before.adapter(object).is_none();
        let constraint = alone.then(|| NodeConstraint::of(object)).flatten();
        constraint.map(|constraint| Rc::new(ClassKey(kind.clone(), constraint)))
    }

    /// Who may stand for an object with this key, before anything is asked about it.
    pub fn class_of(&self, object: &'s Arc<Object>, key: Option<Rc<ClassKey>>) -> InstanceClass<'s> {
        let members = match key {
            Some(_) => Members::WithKey,
            None if self.blind && may_have_equals(object) && !self.is_named(object) => Members::Unasked,
            None => Members::Alone,
        };
        InstanceClass { representative: object, key, members }
    }

    /// Whether something refers to an object by its name, in some scenario or before: the same for all invariants that are
    /// judged in these scenarios.
    fn is_named(&self, object: &Arc<Object>) -> bool {
        let context = self.run.context;
        let at = (self.run.with.as_ptr(), Arc::as_ptr(object));
        if let Some(known) = context.named.borrow().get(&at) {
            return *known;
        }
        let mut states = std::iter::once(context.before).chain(self.run.scenarios().map(|scenario| &scenario.state));
        let is_named = states.any(|state| !state.referrers(&object.key).is_empty());
        context.named.borrow_mut().insert(at, is_named);
        is_named
    }

    /// The verdict on the class of this object of the cluster before, if it is a member of one without a key.
    pub fn of_member(&self, object: &Arc<Object>) -> Option<Rc<SharedVerdict<'s>>> {
        let alike = self.by_body.get(&Arc::as_ptr(&object.body))?;
        let shared = alike.iter().find(|shared| self.is_of(shared, object))?;
        let is_there = || self.run.context.before.get(&object.key).is_some_and(|here| Arc::ptr_eq(here, object));
        (is_there() && !self.is_named(object)).then(|| shared.clone())
    }

    /// The verdict on the class with a key.
    pub fn of_class(&self, key: &ClassKey) -> Option<Rc<SharedVerdict<'s>>> {
        self.by_key.get(key).cloned()
    }

    /// Whether a verdict on its class is that of this object, too.
    pub fn is_of(&self, shared: &SharedVerdict<'s>, member: &Arc<Object>) -> bool {
        match &shared.sharing {
            Sharing::SameBody(representative, members) => {
                member.key.ns == representative.key.ns
                    && Arc::ptr_eq(&member.body, &representative.body)
                    && judges(self.run.compiled(), member)
                    && members.iter().all(|members| members.has(&member.key))
            }
            Sharing::Unaffected => self.stays_as_it_is(member),
            Sharing::WhateverBecomes => self.is_same(member),
        }
    }

    /// Notes the verdict on a representative for its class.
    pub fn share(&mut self, class: InstanceClass<'s>, verdict: ClassVerdict) {
        let InstanceClass { representative, key, members } = class;
        let before = self.run.context.before;
        match (members, key) {
            (Members::Are(members), _) if before.get(&representative.key).is_some() => {
                let shared = SharedVerdict { verdict, sharing: Sharing::SameBody(representative, members) };
                self.by_body.entry(Arc::as_ptr(&representative.body)).or_default().push(Rc::new(shared));
            }
            (Members::WithKey, Some(key)) if self.stays_as_it_is(representative) => {
                let holds = matches!(verdict, ClassVerdict::Proved(_));
                let sharing = match holds && self.holds_if_deleted(&self.run.instance(representative)) {
                    true => Sharing::WhateverBecomes,
                    false => Sharing::Unaffected,
                };
                self.by_key.insert(key, Rc::new(SharedVerdict { verdict, sharing }));
            }
            (Members::Are(_) | Members::WithKey | Members::Alone | Members::Unasked, _) => {}
        }
    }

    /// The classes of pods whose members may fail to hold: those of the others are proved by plain evaluation of one.
    pub fn exposed<'k>(&self, pods: &'k BTreeMap<PodClass, Arc<Object>>) -> BTreeSet<&'k PodClass> {
        pods.iter().filter(|(_, pod)| !self.trivially_holds(pod)).map(|(class, _)| class).collect()
    }

    /// Whether nothing that may become of a pod, or of one of its class, can break the invariant, as plain evaluation tells:
    /// it reads nothing but who is there, all whom the pod names stay in every scenario, and it holds with the pod and
    /// without.
    fn trivially_holds(&self, pod: &Arc<Object>) -> bool {
        // no other pod takes the name of one of these
        let unnamed = pod.controller().is_some_and(|owner| owner.kind.has(KindTraits::generates_names));
        let present = self.blind && self.run.analysis.footprint.reads_presence_only;
        let alone = present && unnamed && may_have_equals(pod) && self.is_same(pod);
        alone
            && self.run.with.iter().all(|scenario| all_named_stay(&scenario.state, pod))
            && self.holds_if_deleted(&self.run.instance(pod))
    }

    /// Whether an instance holds in every scenario as it is, while it terminates, and when it is gone: all that can happen
    /// to those of which no more is read.
    fn holds_if_deleted(&self, instance: &Instance<'_, '_>) -> bool {
        let holds = |now: &State<'_>| instance.replay(now) == Judged::Holds;
        self.run.with.iter().all(|scenario| {
            let (mut terminating, mut gone) = (scenario.state.clone(), scenario.state.clone());
            terminating.put(instance.object.with_deletion(DELETION_TIME));
            gone.take(&instance.object.key);
            [&scenario.state, &terminating, &gone].into_iter().all(holds)
        })
    }

    /// Whether an object of the cluster before is the same in every scenario; it may go all the same. No look is taken at
    /// the object: there may be thousands.
    fn is_same(&self, object: &Arc<Object>) -> bool {
        !self.run.scenarios().any(|scenario| scenario.state.may_differ(object))
    }

    /// Whether nothing may happen to it, either.
    fn stays_as_it_is(&self, object: &Arc<Object>) -> bool {
        object.live()
            && !object.has_pod_as_owner()
            && self.is_same(object)
            && !self.expected.goes(object)
            && (self.is_quiet() || !self.run.scenarios().any(|s| Expected::at_worst(&s.state).goes(object)))
    }

    fn is_quiet(&self) -> bool {
        let before = self.run.context.before;
        *self.quiet.get_or_init(|| self.run.scenarios().all(|scenario| is_quiet(scenario, before)))
    }
}

/// Whether all that a pod names as owner, or refers to, is there or not in all that follows on a state: the claims of
/// pods may come and go with them.
fn all_named_stay(state: &State<'_>, pod: &Object) -> bool {
    let stays = |named: &Arc<Object>| {
        named.live() && !named.key.kind.is("Pod") && !named.has_pod_as_owner() && !Expected::at_worst(state).goes(named)
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
/// after them, or they confirm their deletion by their uid.
pub(crate) fn may_have_equals(object: &Object) -> bool {
    let confirms = object.annotation(CONFIRM_DELETE).is_some();
    object.key.kind.is("Pod") && !object.has_pod_as_owner() && !names_its_own(object) && !confirms
}
