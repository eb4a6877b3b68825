//! What is around a workload: whatever a change of nothing but its replicas may reach, and some more, found in a tenth of
//! the time that it takes to say what is reached. Scalings of workloads that have nothing around them in common are apart.
//!
//! | navigation ([`crate::affected`]) | around a workload |
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

use suture_model::effects::group_name;
use suture_model::kinds::Kind;
use suture_model::navigate;
use suture_model::object::{Body, Key, Object};
use suture_model::references::references;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::{Str, Val};
use suture_specs::functions::Func;

use super::Relevance;
use crate::affected::Place;
use crate::analysis::Analysis;

/// Workloads whose scaling changes nothing but themselves: that of a StatefulSet may take claims along.
const AROUND: [&str; 2] = ["Deployment", "ReplicaSet"];
/// The functions by which an object is reached over a reference.
const REFERRING: [Func; 3] = [Func::Referrers, Func::ResolvesIn, Func::References];

/// What is around a workload: objects of one snapshot, by where they are in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Around(BTreeSet<usize>);

impl Around {
    /// Whether something is around both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }
}

/// What of invariants decides what is around a workload; found out once for all workloads of a snapshot.
#[derive(Debug)]
pub(super) struct Lookout {
    /// By kind, whether an object of it may be an instance that is reached over a reference.
    referred: RefCell<BTreeMap<Kind, bool>>,
    /// Whether namespaces may be reached by what is in them.
    namespaces: bool,
}

impl Lookout {
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
            let uses = &analysis.uses;
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
        let refers = |a: &Analysis| REFERRING.iter().any(|f| a.uses.funcs.contains(f)) && a.may_be(kind, &[]);
        let refers = analyses.iter().any(refers);
        self.referred.borrow_mut().insert(kind.clone(), refers);
        refers
    }
}

impl Relevance<'_> {
    /// What is around a workload; none where that cannot be said.
    pub(super) fn around(&self, workload: &Key) -> Option<Around> {
        let lookout = self.lookout.get_or_init(|| Lookout::of(self.snapshot, self.invariants)).as_ref()?;
        let state = State::new(self.snapshot);
        let workload = state.get(workload).filter(|workload| AROUND.iter().any(|kind| workload.key.kind.is(kind)))?;
        let mut walk = Walk::of(&state);
        walk.workload(workload);
        walk.kin(workload);
        walk.selecting(lookout.namespaces);
        walk.referring(workload, |kind| lookout.refers(kind, self.invariants));
        Some(walk.around)
    }
}

/// A walk around a workload.
struct Walk<'w> {
    state: &'w State<'w>,
    around: Around,
    /// The labels of pods and templates, with their namespaces.
    labels: BTreeSet<(Str, Val)>,
    /// The pods, in the order in which they were found.
    pods: Vec<&'w Arc<Object>>,
    /// What makes them, and all controllers above.
    makers: Vec<&'w Arc<Object>>,
    /// Where the pods, the makers, and the workloads are whose pods were looked for.
    known: [BTreeSet<usize>; 3],
}

impl<'w> Walk<'w> {
    fn of(state: &'w State<'w>) -> Self {
        let (around, labels, known) = (Around::default(), BTreeSet::new(), Default::default());
        Self { state, around, labels, pods: Vec::new(), makers: Vec::new(), known }
    }

    fn add(&mut self, object: &Arc<Object>) {
        self.around.0.insert(place(object));
    }

    /// The workload itself, what decides about its pods, and about those that it selects.
    fn workload(&mut self, workload: &'w Arc<Object>) {
        self.maker(workload);
        self.group(workload);
        let mut last: Option<&Object> = None;
        for pod in navigate::selected(self.state, workload) {
            self.pod(pod);
            // equals have one controller, if they have any
            if pod.controller().is_none() || last.is_none_or(|last| !equals(last, pod)) {
                self.group(pod);
            }
            last = Some(pod);
        }
    }

    /// The workload that decides about an object, and the pods that this one owns or selects.
    fn group(&mut self, object: &Object) {
        let Some(decider) = self.state.get(&group_name(self.state, object)) else { return };
        let [_, _, deciders] = &mut self.known;
        if decider.key.kind.is("Pod") || !deciders.insert(place(decider)) {
            return;
        }
        self.maker(decider);
        for child in self.state.owned_by(&decider.uid) {
            self.template(child);
        }
        let owned = navigate::pods_owned_by(self.state, decider).into_iter();
        for pod in owned.chain(navigate::selected(self.state, decider)) {
            self.pod(pod);
        }
    }

    /// What makes pods, and its controllers.
    fn maker(&mut self, maker: &'w Arc<Object>) {
        let mut next = Some(maker);
        while let Some(maker) = next {
            let [_, makers, _] = &mut self.known;
            if !makers.insert(place(maker)) {
                break;
            }
            self.add(maker);
            self.template(maker);
            self.makers.push(maker);
            next = navigate::controller_of(self.state, maker);
        }
    }

    fn pod(&mut self, pod: &'w Arc<Object>) {
        let [pods, ..] = &mut self.known;
        if !pods.insert(place(pod)) {
            return;
        }
        self.add(pod);
        if self.pods.last().is_none_or(|last| !equals(last, pod)) {
            self.labels.insert((pod.key.ns.clone(), pod.labels().clone()));
            if let Some(controller) = navigate::controller_of(self.state, pod) {
                self.maker(controller);
            }
        }
        self.pods.push(pod);
    }

    fn template(&mut self, maker: &Object) {
        if let Some(labels) = navigate::template_labels(self.state, maker) {
            self.labels.insert((maker.key.ns.clone(), labels));
        }
    }

    /// Owners and dependents.
    fn kin(&mut self, workload: &'w Arc<Object>) {
        let owning = self.state.owns(&Kind::new("", "Pod"));
        for object in self.pods.clone().into_iter().chain([workload]) {
            for owner in object.owners().iter().filter_map(|owner| navigate::owner_object(self.state, object, owner)) {
                self.add(owner);
            }
            if owning || !object.key.kind.is("Pod") {
                self.state.owned_by(&object.uid).into_iter().for_each(|dependent| self.add(dependent));
            }
        }
    }

    /// Whatever selects one of the labels, and the namespaces where that may matter.
    fn selecting(&mut self, namespaces: bool) {
        for (ns, labels) in std::mem::take(&mut self.labels) {
            for object in self.state.base().selecting(&ns, &labels) {
                if navigate::selector_of(self.state, object).is_some_and(|selector| selector.matches(&labels)) {
                    self.add(object);
                }
            }
            let namespace = if namespaces { self.state.get(&Key::of("Namespace", "", &ns)) } else { None };
            namespace.into_iter().for_each(|namespace| self.add(namespace));
        }
    }

    /// What refers to the workload, and what it and its pods refer to.
    fn referring(&mut self, workload: &'w Arc<Object>, may_be_instance: impl Fn(&Kind) -> bool) {
        self.state.referrers(&workload.key).into_iter().for_each(|referrer| self.add(referrer));
        let adapters = self.state.base().adapters().as_ref();
        let mut seen: BTreeSet<(&Str, *const Body)> = BTreeSet::new();
        for object in self.pods.clone().into_iter().chain(self.makers.clone()) {
            if !seen.insert((&object.key.ns, Arc::as_ptr(&object.body))) {
                continue;
            }
            let referred = references(object, adapters).into_iter().map(|reference| reference.target);
            for target in referred.filter(|target| may_be_instance(&target.kind)) {
                self.state.get(&target).into_iter().for_each(|object| self.add(object));
            }
            if object.key.kind.is("StatefulSet") {
                let here = self.state.list(&Kind::new("", "PersistentVolumeClaim"), Some(&object.key.ns)).into_iter();
                let made = here.filter(|claim| navigate::claim_ordinal(object, &claim.key.name).is_some());
                made.for_each(|claim| self.add(claim));
            }
        }
    }
}

fn place(object: &Arc<Object>) -> usize {
    Arc::as_ptr(object) as usize
}

/// Whether two pods differ in their header only.
fn equals(a: &Object, b: &Object) -> bool {
    a.key.ns == b.key.ns && Arc::ptr_eq(&a.body, &b.body)
}
