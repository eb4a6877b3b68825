//! What is around a workload: whatever a change of nothing but its replicas may reach, and some more, found in a tenth of
//! the time that it takes to say what is reached. Scalings of workloads that have nothing around them in common are apart.
//!
//! | navigation ([`crate::impact`]) | around a workload |
//! |---|---|
//! | the object itself, `podsOwnedBy`, pods | itself, the pods that it or its controllers own or select, and all their controllers |
//! | `ownersIn`, `wantedBy` | the owners of these pods and its own, and what the workload or a pod owns |
//! | `selects`, `endpoints`, budgets | whatever selects the labels of such a pod, or of a template above it |
//! | `referrers`, `resolvesIn` | what refers to it; and what it, a pod or a controller refers to, if that may be an instance |
//! | lists of a namespace that is an instance | the namespaces of these pods |
//! | any other list of workloads or pods; adapters; a definition of its kind | it cannot be said |
//!
//! Nothing else depends on how many pods a workload wants: no volume, host, node or definition changes, and no object is
//! related to others than before.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::kinds::Kind;
use suture_model::navigate;
use suture_model::object::{Body, Key, Object};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::{Str, Val};
use suture_specs::functions::Func;

use super::Relevance;
use crate::analysis::{Analysis, Place};
use crate::impact::{Touch, referred};

/// Workloads whose scaling changes nothing but themselves: that of a StatefulSet may take claims along.
const AROUND: [&str; 2] = ["Deployment", "ReplicaSet"];
/// The functions by which an object is reached over a reference.
const REFERRING: [Func; 3] = [Func::Referrers, Func::ResolvesIn, Func::References];

/// What is around a workload: objects of one snapshot, by where they are in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbourhood(BTreeSet<usize>);

impl Neighbourhood {
    /// Whether something is around both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }
}

/// What of invariants decides what is around a workload; found out once for all workloads of a snapshot.
#[derive(Debug)]
pub(super) struct ScaleScope {
    /// By kind, whether an object of it may be an instance that is reached over a reference.
    referred: RefCell<BTreeMap<Kind, bool>>,
    /// Whether namespaces may be reached by what is in them.
    namespaces: bool,
}

impl ScaleScope {
    /// For these invariants; none where any list of workloads or pods is read that leads to instances elsewhere.
    pub(super) fn of(snapshot: &Snapshot, analyses: &[Analysis]) -> Option<Self> {
        let state = State::new(snapshot);
        let defined = || {
            AROUND
                .iter()
                .filter_map(|kind| Kind::builtin(kind))
                .any(|kind| navigate::definition_of(&state, &kind).is_some())
        };
        if !snapshot.adapters().kinds().is_empty() || defined() {
            return None;
        }
        let counts = |kind: &str| kind == "Pod" || AROUND.contains(&kind);
        let mut namespaces = false;
        for analysis in analyses {
            let uses = &analysis.footprint.uses;
            let listed = uses.lists.iter().any(|kind| counts(&kind.kind)) || uses.named.iter().any(|kind| counts(kind));
            let within = || uses.within.iter().filter(|(kind, _)| counts(kind)).map(|(_, place)| *place);
            if uses.everything || listed || within().any(|place| place != Place::Named) {
                return None;
            }
            let namespace = || Kind::builtin("Namespace").is_some_and(|kind| analysis.may_be(&kind, &[]));
            namespaces |= within().next().is_some() && namespace();
        }
        Some(Self { referred: RefCell::default(), namespaces })
    }

    fn refers(&self, kind: &Kind, analyses: &[Analysis]) -> bool {
        if let Some(known) = self.referred.borrow().get(kind) {
            return *known;
        }
        let refers = |a: &Analysis| REFERRING.iter().any(|f| a.footprint.uses.funcs.contains(f)) && a.may_be(kind, &[]);
        let refers = analyses.iter().any(refers);
        self.referred.borrow_mut().insert(kind.clone(), refers);
        refers
    }
}

impl Relevance<'_> {
    /// What is around a workload; none where that cannot be said.
    pub(super) fn neighbourhood(&self, workload: &Key) -> Option<Neighbourhood> {
        let scale_scope = self.scale_scope.get_or_init(|| ScaleScope::of(self.snapshot, self.invariants)).as_ref()?;
        let state = State::new(self.snapshot);
        let workload = state.get(workload).filter(|workload| AROUND.iter().any(|kind| workload.key.kind.is(kind)))?;
        let mut touch = Touch::default();
        touch.object(&state, workload);
        touch.above(&state, workload);
        let makers = touch.controllers.iter().filter_map(|key| state.get(key)).chain([workload]);
        let mut neighbourhood = Neighbourhood::default();
        let mut members: Vec<&Arc<Object>> = touch.pods.iter().chain(makers).collect();
        members.retain(|member| neighbourhood.add(member));
        neighbourhood.add_owners_and_dependents(&state, workload, &members);
        neighbourhood.selecting(&state, &touch.labels, scale_scope.namespaces);
        neighbourhood.referring(&state, workload, &members, |kind| scale_scope.refers(kind, self.invariants));
        Some(neighbourhood)
    }
}

/// What is around a workload: its members are the pods that its scaling may touch, and what makes them.
impl Neighbourhood {
    /// Whether it was not there yet.
    fn add(&mut self, object: &Arc<Object>) -> bool {
        self.0.insert(place(object))
    }

    fn extend<'o>(&mut self, objects: impl IntoIterator<Item = &'o Arc<Object>>) {
        self.0.extend(objects.into_iter().map(place));
    }

    /// Owners and dependents of the workload and the pods.
    fn add_owners_and_dependents(&mut self, state: &State<'_>, workload: &Arc<Object>, members: &[&Arc<Object>]) {
        let owning = state.owns(&Kind::new("", "Pod"));
        let pods = members.iter().copied().filter(|member| member.key.kind.is("Pod"));
        for object in pods.chain([workload]) {
            let owners = object.owners().iter();
            self.extend(owners.filter_map(|owner| navigate::owner_object(state, object, owner)));
            if owning || !object.key.kind.is("Pod") {
                self.extend(state.owned_by(&object.uid));
            }
        }
    }

    /// Whatever selects one of the labels, and the namespaces where that may matter.
    fn selecting(&mut self, state: &State<'_>, labels: &BTreeSet<(Str, Val)>, namespaces: bool) {
        for (ns, labels) in labels {
            let selects = |object: &&Arc<Object>| {
                navigate::selector_of(state, object).is_some_and(|selector| selector.matches(labels))
            };
            self.extend(state.base().selecting(ns, labels).filter(selects));
            let namespace = namespaces.then(|| state.get(&Key::of("Namespace", "", ns)));
            self.extend(namespace.flatten());
        }
    }

    /// What refers to the workload, and what it and the other members refer to.
    fn referring(
        &mut self,
        state: &State<'_>,
        workload: &Arc<Object>,
        members: &[&Arc<Object>],
        may_be_instance: impl Fn(&Kind) -> bool,
    ) {
        self.extend(state.referrers(&workload.key));
        let mut seen: BTreeSet<(&Str, *const Body)> = BTreeSet::new();
        for object in members.iter().filter(|object| seen.insert((&object.key.ns, Arc::as_ptr(&object.body)))) {
            let referred = referred(state, object).into_iter().filter(|target| may_be_instance(&target.kind));
            self.extend(referred.filter_map(|target| state.get(&target)).collect::<Vec<_>>());
        }
    }
}

fn place(object: &Arc<Object>) -> usize {
    Arc::as_ptr(object) as usize
}
