//! Which instances a change can reach: the inverse of every navigation that an invariant uses in the future state.
//!
//! An instance whose readings are the same with and without the change has the same verdict; only the others are
//! judged. Each navigation is inverted over the objects that some scenario changes:
//!
//! | navigation | reached from a changed object |
//! |---|---|
//! | the object itself | itself |
//! | `selects`, `endpoints`, budgets | whatever selects a pod that the change touches, or a template that it may use |
//! | `podsOwnedBy` | the controllers above such a pod |
//! | `referrers`, `resolvesIn` | what it refers to, what refers to it |
//! | `ownersIn`, `wantedBy`, … | its owners and its dependents |
//! | `hostClaims`, `hostClaimants` | who claims what it claims |
//! | `instances` | the definition of its kind |
//! | `volume` | claim and volume of each other |
//! | `admittedNodes` | workloads whose node constraints match a changed node |
//! | lists of the state | every instance, if the list's kind changed |
//!
//! A node that changes reaches the workloads that have pods on it; a rollout elsewhere, under way before, that could
//! use the node as well is not judged again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use suture_model::deletion::{expected_to_go, followers};
use suture_model::kinds::Kind;
use suture_model::navigate;
use suture_model::object::{Body, Key, Object};
use suture_model::references::references;
use suture_model::scenario::Scenario;
use suture_model::state::State;
use suture_model::value::{Str, Val};
use suture_specs::functions::Func;

mod reads;
mod touch;
mod uses;

use crate::analysis::Analysis;
pub use reads::{ANY_GROUP, Reads};
pub(crate) use touch::Touch;
pub(crate) use uses::{Place, Uses};

/// Kinds that select pods, beside custom resources with an adapter.
const SELECTING: [&str; 9] = [
    "Service",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "Job",
];

/// Those of them that do nothing but select.
const SELECTING_ONLY: [&str; 3] = ["Service", "PodDisruptionBudget", "NetworkPolicy"];

/// Kinds over which instances are found that depend on pods, beside custom resources with an adapter.
const MAKING: [&str; 8] =
    ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob"];

/// Whether a change to an object of a built-in kind never leaves all pods alone ([`Impact::leaves_pods_alone`]).
pub fn concerns_pods(kind: &Kind) -> bool {
    ["Pod", "Node", "Namespace", "CustomResourceDefinition"].iter().chain(&SELECTING).any(|known| kind.is(known))
}

/// What pods have in common that differ in their header only: namespace and body, and whether they live.
pub type PodClass = (Str, *const Body, bool);

/// What this pod has in common with others.
pub fn pod_class(pod: &Object) -> PodClass {
    (pod.key.ns.clone(), Arc::as_ptr(&pod.body), pod.live())
}

/// The instances of an invariant that a change can reach.
pub struct Reached<'a> {
    /// Those that are reached for their own sake.
    pub keys: BTreeSet<Key>,
    /// One pod for all that are alike ([`PodClass`]) and are reached for what may become of them only, where the invariant
    /// reads nothing but who is there: mostly it is soon told that they hold.
    pub pod_classes: BTreeMap<PodClass, Arc<Object>>,
    /// One object of the snapshot for each constraint on nodes that a changed node may have met, or meets now: whatever
    /// has the same constraint is reached as well ([`Impact::of_node_constraint`]).
    pub admitting: Vec<&'a Arc<Object>>,
}

/// What a change touches, worked out once for all invariants.
pub struct Impact<'s, 'a> {
    before: &'s State<'a>,
    scenarios: Vec<&'s Scenario<'a>>,
    /// The kinds that have adapters.
    adapted: Vec<Kind>,
    /// The versions of each changed object.
    changed: BTreeMap<Key, Vec<Arc<Object>>>,
    /// Objects that go or stay with a changed one.
    followers: BTreeSet<Key>,
    /// Pods whose controller, node or own facts changed, and those beside them.
    pods: Vec<Arc<Object>>,
    pod_keys: Option<BTreeSet<Key>>,
    /// Whether the pods were looked for.
    looked: bool,
    pod_labels: BTreeSet<(Str, Val)>,
    controllers: BTreeSet<Key>,
    selecting: Option<BTreeSet<Key>>,
    referring: Option<Rc<BTreeSet<Key>>>,
    owners_and_dependents: Option<Rc<BTreeSet<Key>>>,
    admitting: Option<Admitting<'a>>,
}

/// Workloads whose node constraints match a changed node, before or after.
struct Admitting<'a> {
    /// One of the objects of each constraint, for all that have it.
    pod_class: Vec<&'a Arc<Object>>,
    /// Custom resources.
    adapted: BTreeSet<Key>,
}

impl<'s, 'a> Impact<'s, 'a> {
    /// The surface of a change that leads to these scenarios, and of what it is compared with: it may undo what is in
    /// flight.
    pub fn new(before: &'s State<'a>, scenarios: impl IntoIterator<Item = &'s Scenario<'a>>) -> Self {
        let scenarios: Vec<&Scenario<'a>> = scenarios.into_iter().collect();
        let mut versions: BTreeMap<Key, Vec<Arc<Object>>> = BTreeMap::new();
        for scenario in &scenarios {
            for (key, now) in scenario.state.delta() {
                let here = before.get(key);
                let same = match (here, now) {
                    (Some(here), Some(now)) => Arc::ptr_eq(here, now),
                    (None, None) => true,
                    _ => false,
                };
                if same {
                    continue;
                }
                let all = versions.entry(key.clone()).or_insert_with(|| here.into_iter().cloned().collect());
                if let Some(now) = now
                    && !all.iter().any(|known| Arc::ptr_eq(known, now))
                {
                    all.push(now.clone());
                }
            }
        }
        let mut impact = Self {
            before,
            scenarios,
            adapted: before.base().adapters().kinds(),
            changed: versions,
            followers: BTreeSet::new(),
            pods: Vec::new(),
            pod_keys: None,
            looked: false,
            pod_labels: BTreeSet::new(),
            controllers: BTreeSet::new(),
            selecting: None,
            referring: None,
            owners_and_dependents: None,
            admitting: None,
        };
        impact.follow();
        impact.follow_pods();
        impact
    }

    /// The keys of all changed objects.
    pub fn changed(&self) -> impl Iterator<Item = &Key> {
        self.changed.keys()
    }

    /// Whether no pod meets another fate, or is selected by others, and no kind of object and no node comes or goes.
    pub fn leaves_pods_alone(&mut self) -> bool {
        self.touch_pods();
        let concerns = |kind: &Kind| concerns_pods(kind) || self.adapted.contains(kind);
        self.pods.is_empty() && self.pod_labels.is_empty() && !self.touched().any(|key| concerns(&key.kind))
    }

    /// A kind that was not read, if the change, which is about these objects, may reach an instance because of an object of
    /// it: one that is such an object, or that is found over pods.
    pub fn unread<'k>(&'k self, analysis: &Analysis, targets: impl Iterator<Item = &'k Key> + Clone) -> Option<Str> {
        let unread = self.before.base().unknown();
        if unread.is_empty() {
            return None;
        }
        let touched: BTreeSet<&Kind> = self.touched().chain(targets.clone()).map(|key| &key.kind).collect();
        // what is new has no dependents yet
        let comes_or_goes =
            |(key, versions): &(&Key, &Vec<Arc<Object>>)| self.before.get(key).is_some() && stays_differently(versions);
        let moved = self.changed.iter().filter(comes_or_goes).map(|(key, _)| key).chain(&self.followers);
        let not_seen = targets.filter(|key| !self.changed.contains_key(key));
        let moved: BTreeSet<&Kind> = moved.chain(not_seen).map(|key| &key.kind).collect();
        let reads = Reads::beside_instance(&analysis.compiled);
        // what only selects pods makes none come or go
        let selects_only = |kind: &Kind| SELECTING_ONLY.iter().any(|known| kind.is(known));
        let pods = |kind: &Kind| (concerns_pods(kind) && !selects_only(kind)) || self.adapted.contains(kind);
        let is_read = |kind: &Kind| {
            reads.any
                || (reads.owners && moved.contains(kind))
                || reads.kinds.iter().any(|known| known.kind == kind.kind)
                || (reads.pods && pods(kind))
                || ((reads.adapted || reads.customs) && kind.builtin_namespaced().is_none())
        };
        let is_touched = touched.iter().any(|kind| is_read(kind));
        let concerns_pods = reads.pods && touched.iter().any(|kind| pods(kind));
        let instance = |name: &str| analysis.compiled.for_each.kinds.iter().any(|k| k.may_be(name, &self.adapted));
        let leads = |name: &str| {
            let makes_pods = MAKING.contains(&name) || self.adapted.iter().any(|kind| *kind.kind == *name);
            let itself = || touched.iter().any(|kind| *kind.kind == *name);
            (instance(name) && (is_touched || itself())) || (concerns_pods && makes_pods)
        };
        unread.iter().find(|name| leads(name)).cloned()
    }

    /// The states to look in: what the watch shows, and every scenario.
    fn states(&self) -> impl Iterator<Item = &State<'a>> {
        std::iter::once(self.before).chain(self.scenarios.iter().map(|s| &s.state))
    }

    /// The keys of all objects but pods that may meet other fates than without the change, and of some pods.
    fn touched(&self) -> impl Iterator<Item = &Key> {
        self.changed().chain(&self.followers)
    }

    /// The keys of the pods that may.
    fn pod_keys(&mut self) -> &BTreeSet<Key> {
        self.pod_keys.get_or_insert_with(|| self.pods.iter().map(|pod| pod.key.clone()).collect())
    }

    /// One of those pods for all that differ in their header only.
    fn distinct_pods(&self) -> impl Iterator<Item = &Arc<Object>> {
        let mut seen: BTreeSet<(&Str, *const Body)> = BTreeSet::new();
        self.pods.iter().filter(move |pod| seen.insert((&pod.key.ns, Arc::as_ptr(&pod.body))))
    }

    /// Whether an object of such a kind may meet other fates, or be made.
    fn touches(&self, kind: impl Fn(&Kind) -> bool) -> bool {
        (!self.pod_labels.is_empty() && kind(&Kind::new("", "Pod"))) || self.touched().any(|key| kind(&key.kind))
    }

    /// The namespaces in which an object of a kind may meet other fates, or be made.
    fn namespaces_of(&self, kind: &str) -> BTreeSet<Str> {
        let mut found: BTreeSet<Str> =
            self.touched().filter(|key| *key.kind.kind == *kind).map(|key| key.ns.clone()).collect();
        if kind == "Pod" {
            found.extend(self.pod_labels.iter().map(|(ns, _)| ns.clone()));
        }
        found
    }

    /// Objects that go or stay with a changed one: the followers of what changed in what decides that.
    fn follow(&mut self) {
        // the dependents of what a cascade takes along are changed themselves
        let taken = |key: &Key, versions: &[Arc<Object>]| {
            self.before.delta().is_empty()
                && versions.len() > 1
                && versions.iter().zip(versions.iter().skip(1)).all(|(a, b)| Arc::ptr_eq(&a.body, &b.body))
                && self.scenarios.iter().any(|s| s.in_deletion_closure.contains_key(key))
        };
        // what goes takes along what it says itself, and a StatefulSet that stays gives claims up; of a namespace, all that is
        // in it goes anyway
        let says = |key: &Key, versions: &[Arc<Object>]| {
            let is_another = versions.iter().zip(versions.iter().skip(1)).any(|(a, b)| !Arc::ptr_eq(&a.body, &b.body));
            let goes = |state: &State<'_>, o: &Arc<Object>| !o.live() || expected_to_go(state, o);
            let leads = !key.kind.is("Pod") && !key.kind.is("Node") && !key.kind.is("Namespace");
            let ends = || self.states().any(|state| state.get(key).is_some_and(|o| goes(state, o)));
            leads && is_another && (key.kind.is("StatefulSet") || ends())
        };
        let leading = self.changed.iter().filter(|(key, v)| (stays_differently(v) && !taken(key, v)) || says(key, v));
        let mut open: Vec<Arc<Object>> = leading.flat_map(|(_, v)| v).cloned().collect();
        let mut found: BTreeSet<Key> = BTreeSet::new();
        while let Some(leader) = open.pop() {
            for state in self.states() {
                for key in followers(state, &leader) {
                    if let Some(follower) = state.get(&key).filter(|_| found.insert(key)) {
                        open.push(follower.clone());
                    }
                }
            }
        }
        self.followers = found;
    }

    /// What the pods that the change may touch own: it goes with them.
    fn follow_pods(&mut self) {
        if self.states().any(|state| state.owns(&Kind::new("", "Pod"))) {
            self.touch_pods();
            let owned = self.states().flat_map(|state| self.pods.iter().flat_map(|pod| state.owned_by(&pod.uid)));
            let owned: BTreeSet<Key> = owned.map(|object| object.key.clone()).collect();
            self.followers.extend(owned);
        }
    }

    /// The pods that the change may touch, existing or to be made, and the controllers above them.
    fn touch_pods(&mut self) {
        if std::mem::replace(&mut self.looked, true) {
            return;
        }
        let mut touch = Touch::default();
        // where a scenario differs in pods and nodes only, the same workloads and selectors decide about every pod; all
        // versions of those that changed are looked at as the cluster was
        let decides = |key: &Key| !(key.kind.is("Pod") || key.kind.is("Node"));
        let scenarios = self.scenarios.iter().map(|scenario| &scenario.state);
        let others = scenarios.filter(|state| state.delta().keys().any(decides));
        for state in std::iter::once(self.before).chain(others) {
            for versions in self.changed.values() {
                for (at, object) in versions.iter().enumerate() {
                    // a mark alone makes no difference
                    let known = |v: &&Arc<Object>| Arc::ptr_eq(&v.body, &object.body) && v.node == object.node;
                    if !versions.iter().take(at).any(|v| known(&v)) {
                        touch.object(state, object);
                    }
                }
            }
            for object in self.followers.iter().filter_map(|key| state.get(key)) {
                touch.object(state, object);
            }
        }
        self.pod_labels = touch.labels;
        self.controllers = touch.controllers;
        self.pods = touch.pods;
        // found without the pods
        (self.referring, self.owners_and_dependents) = (None, None);
    }

    /// The instances of an invariant that the change can reach, in the order of their names.
    pub fn instances(&mut self, analysis: &Analysis) -> BTreeSet<Key> {
        let Reached { mut keys, pod_classes, admitting } = self.reached(analysis);
        keys.extend(self.pods_of_classes(|known| pod_classes.contains_key(known)));
        for object in admitting {
            keys.extend(
                self.of_node_constraint(object, analysis).into_iter().flatten().map(|object| object.key.clone()),
            );
        }
        keys
    }

    /// The instances of an invariant among the objects that are constrained to nodes as this one of the snapshot, as far
    /// as they are not changed, kind by kind in the order of their names. There may be thousands: where their kind is all
    /// that makes them instances, no more than one is looked at.
    pub fn of_node_constraint(&self, object: &Object, analysis: &Analysis) -> Vec<Vec<&'a Arc<Object>>> {
        let base = self.before.base();
        let for_each = &analysis.compiled.for_each;
        let matches = |object: &Arc<Object>| for_each.matches(object, base.adapters().as_ref());
        let changed: BTreeSet<*const Object> = self.changed.values().flatten().map(Arc::as_ptr).collect();
        let mut found = base.restricted_as(object, |kind| analysis.may_be(kind, &self.adapted));
        for pod_class in &mut found {
            let all = for_each.selector.is_none().then(|| pod_class.first().is_some_and(|first| matches(first)));
            pod_class.retain(|object| match self.before.may_differ(object) {
                true => !self.changed.contains_key(&object.key) && self.versions(&object.key).iter().any(matches),
                false => !changed.contains(&Arc::as_ptr(object)) && all.unwrap_or_else(|| matches(object)),
            });
        }
        found
    }

    /// [`Self::instances`], those aside that are reached for their constraint on nodes only: they may be very many.
    pub fn reached(&mut self, analysis: &Analysis) -> Reached<'a> {
        let Analysis { compiled, uses, .. } = analysis;
        let of_pods = analysis.may_be(&Kind::new("", "Pod"), &self.adapted);
        if of_pods || uses.pods() {
            self.touch_pods();
        }
        let adapted = self.adapted.clone();
        let mut asked: Vec<(Kind, bool)> = Vec::new();
        let mut may_be = |key: &&Key| match asked.iter().find(|(kind, _)| *kind == key.kind) {
            Some((_, may)) => *may,
            None => {
                let may = analysis.may_be(&key.kind, &adapted);
                asked.push((key.kind.clone(), may));
                may
            }
        };
        let mut reached: BTreeSet<Key> = BTreeSet::new();
        reached.extend(self.changed.keys().filter(&mut may_be).cloned());
        reached.extend(self.followers.iter().filter(&mut may_be).cloned());
        if of_pods && !analysis.reads_presence_only {
            reached.extend(self.pod_keys().iter().cloned());
        }
        let any = |funcs: &[Func]| funcs.iter().any(|f| uses.funcs.contains(f));
        if any(&[Func::Selects, Func::Endpoints, Func::DisruptionsWhenSettled, Func::WantedReplicas, Func::HasSelector])
        {
            reached.extend(self.selecting().iter().filter(&mut may_be).cloned());
        }
        if any(&[Func::PodsOwnedBy]) {
            reached.extend(self.controllers.iter().filter(&mut may_be).cloned());
        }
        if any(&[Func::Referrers, Func::ResolvesIn, Func::References]) {
            reached.extend(self.referring().iter().filter(&mut may_be).cloned());
        }
        if any(&[Func::OwnersIn, Func::UnresolvedOwners, Func::WantedBy, Func::Parents]) {
            reached.extend(self.owners_and_dependents().iter().filter(&mut may_be).cloned());
        }
        if any(&[Func::HostClaims, Func::HostClaimants]) {
            reached.extend(self.claimants());
        }
        if any(&[Func::Instances]) {
            let kinds: BTreeSet<&Kind> = self.touched().map(|k| &k.kind).collect();
            let defined = kinds.iter().flat_map(|k| self.states().filter_map(|s| navigate::definition_of(s, k)));
            reached.extend(defined.map(|d| d.key.clone()));
        }
        if any(&[Func::Volume]) || uses.volume_nodes {
            reached.extend(self.volumes(uses.volume_nodes));
        }
        if any(&[Func::AdmittedNodes]) {
            self.find_admitting();
            reached.extend(self.admitting.iter().flat_map(|admitting| &admitting.adapted).cloned());
        }
        let listed = uses.lists.iter().any(|kind| self.touches(|k| k == kind))
            || uses.named.iter().any(|name| self.touches(|k| *k.kind == **name));
        if listed || (uses.everything && !self.changed.is_empty()) {
            reached.extend(self.of_kinds(analysis, None));
        }
        if any(&[Func::DisruptionsWhenSettled]) {
            for ns in self.scaled() {
                reached.extend(self.of_kinds(analysis, Some(&ns)));
            }
        }
        for (kind, place) in &uses.within {
            for ns in self.namespaces_of(kind) {
                match place {
                    Place::Own => reached.extend(self.of_kinds(analysis, Some(&ns))),
                    Place::Named => drop(reached.insert(Key::of("Namespace", "", &ns))),
                    Place::Other => reached.extend(self.of_kinds(analysis, None)),
                }
            }
        }
        let adapters = self.before.base().adapters();
        let matches = |object: &Arc<Object>| compiled.for_each.matches(object, adapters.as_ref());
        let may_be = |kind: &Kind| analysis.may_be(kind, &self.adapted);
        reached.retain(|key| may_be(&key.kind) && self.versions(key).iter().any(matches));
        let admitting = self.admitting.iter().filter(|_| any(&[Func::AdmittedNodes]));
        let admitting = admitting.flat_map(|admitting| &admitting.pod_class).copied().collect();
        let mut pod_classes = BTreeMap::new();
        if of_pods && analysis.reads_presence_only {
            let others = self.pods.iter().filter(|pod| !self.changed.contains_key(&pod.key));
            for pod in others {
                pod_classes.entry(pod_class(pod)).or_insert_with(|| pod.clone());
            }
            pod_classes.retain(|_, pod| matches(pod));
        }
        Reached { keys: reached, pod_classes, admitting }
    }

    /// The names of the pods that the change may touch and that are like some.
    pub fn pods_of_classes(&self, some: impl Fn(&PodClass) -> bool) -> BTreeSet<Key> {
        self.pods.iter().filter(|pod| some(&pod_class(pod))).map(|pod| pod.key.clone()).collect()
    }

    /// All objects of the invariant's kinds.
    pub fn of_kinds(&self, analysis: &Analysis, ns: Option<&str>) -> BTreeSet<Key> {
        let adapters = self.before.base().adapters();
        let mut found = BTreeSet::new();
        for state in self.states() {
            for kind in state.kinds().into_iter().filter(|kind| analysis.may_be(kind, &self.adapted)) {
                let instances = state.list(&kind, ns).into_iter();
                let instances = instances.filter(|o| analysis.compiled.for_each.matches(o, adapters.as_ref()));
                found.extend(instances.map(|o| o.key.clone()));
            }
        }
        found
    }

    /// An object as each state has it, as far as they differ.
    fn versions(&self, key: &Key) -> &[Arc<Object>] {
        match self.changed.get(key) {
            Some(versions) => versions,
            None => self.before.get(key).map_or(&[], std::slice::from_ref),
        }
    }

    /// All versions of what may meet other fates, pods that are beside changed ones aside.
    fn touched_versions(&self) -> impl Iterator<Item = &Arc<Object>> {
        let others = self.followers.iter().filter_map(|key| self.before.get(key));
        self.changed.values().flatten().chain(others)
    }

    /// Whatever selects a touched pod or template. An object that selects otherwise than before is changed itself.
    fn selecting(&mut self) -> &BTreeSet<Key> {
        if self.selecting.is_none() {
            let mut found = self.controllers.clone();
            let mut kinds: Vec<Kind> = SELECTING.iter().filter_map(|k| Kind::builtin(k)).collect();
            kinds.extend(self.before.base().adapters().kinds());
            for (ns, labels) in &self.pod_labels {
                for object in self.before.selecting_any(&kinds, ns, labels) {
                    if navigate::selector_of(self.before, object).is_some_and(|s| s.matches(labels)) {
                        found.insert(object.key.clone());
                    }
                }
            }
            self.selecting = Some(found);
        }
        self.selecting.get_or_insert_with(BTreeSet::new)
    }

    /// What refers to a touched object, and what a touched object, or a pod that a touched workload makes, refers to.
    fn referring(&mut self) -> Rc<BTreeSet<Key>> {
        let found = self.referring.take().unwrap_or_else(|| Rc::new(self.find_referring()));
        self.referring.insert(found).clone()
    }

    fn find_referring(&self) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        for key in self.changed().chain(&self.followers) {
            for state in self.states() {
                found.extend(state.referrers(key).into_iter().map(|o| o.key.clone()));
            }
        }
        let makers = self.controllers.iter().filter_map(|key| self.before.get(key));
        let mut seen: BTreeSet<(&Str, *const Body)> = BTreeSet::new();
        for object in self.touched_versions().chain(self.distinct_pods()).chain(makers) {
            if !seen.insert((&object.key.ns, Arc::as_ptr(&object.body))) {
                continue;
            }
            found.extend(referred(self.before, object));
        }
        found
    }

    /// Owners and dependents of touched objects.
    fn owners_and_dependents(&mut self) -> Rc<BTreeSet<Key>> {
        let found = self.owners_and_dependents.take().unwrap_or_else(|| Rc::new(self.find_owners_and_dependents()));
        self.owners_and_dependents.insert(found).clone()
    }

    fn find_owners_and_dependents(&self) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        for state in self.states() {
            for object in self.touched_versions().chain(self.distinct_pods()) {
                let owners = object.owners().iter().filter_map(|o| navigate::owner_object(state, object, o));
                found.extend(owners.map(|o| o.key.clone()));
                let children = state.adapter(object).and_then(|f| f.children.clone()).unwrap_or_default();
                found.extend(children.iter().filter_map(|c| state.resolve(c)).map(|c| c.key.clone()));
                found.extend(children);
            }
            let pods = if state.owns(&Kind::new("", "Pod")) { self.pods.as_slice() } else { &[] };
            for object in self.touched_versions().chain(pods) {
                found.extend(state.owned_by(&object.uid).into_iter().map(|o| o.key.clone()));
            }
        }
        found
    }

    /// Who claims a host that a changed object claims.
    fn claimants(&self) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        let relevant = ["Ingress", "HTTPRoute", "Gateway", "IngressClass"];
        for (key, versions) in self.changed.iter().filter(|(key, _)| relevant.iter().any(|k| key.kind.is(k))) {
            let routes = key.kind.is("Ingress") || key.kind.is("HTTPRoute");
            for state in self.states() {
                if !routes {
                    // a class or gateway changes what its routes claim
                    for kind in ["Ingress", "HTTPRoute"].iter().filter_map(|k| Kind::builtin(k)) {
                        found.extend(state.list(&kind, None).into_iter().map(|o| o.key.clone()));
                    }
                    continue;
                }
                for object in versions {
                    for claim in navigate::host_claims(state, object) {
                        let others = navigate::host_rivals(state, &claim);
                        found.extend(others.into_iter().map(|o| o.key.clone()));
                    }
                }
            }
        }
        found
    }

    /// Claims and volumes of each other; with `nodes`, also the claims of volumes that only some nodes have.
    fn volumes(&self, nodes: bool) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        for object in self.touched_versions() {
            for state in self.states() {
                if object.key.kind.is("PersistentVolumeClaim") {
                    found.extend(navigate::volume(state, object).map(|v| v.key.clone()));
                } else if object.key.kind.is("PersistentVolume") {
                    found.extend(navigate::claim_of(state, object).map(|c| c.key.clone()));
                    found.extend(state.referrers(&object.key).into_iter().map(|o| o.key.clone()));
                }
            }
        }
        let relabelled = if nodes { self.relabelled_nodes() } else { Vec::new() };
        if !relabelled.is_empty() {
            let volumes = self.before.volumes_with_affinity().into_iter();
            let admitting =
                volumes.filter(|volume| relabelled.iter().any(|node| navigate::volume_admits(volume, node)));
            found.extend(admitting.filter_map(|v| navigate::claim_of(self.before, v)).map(|c| c.key.clone()));
        }
        found
    }

    /// The namespaces in which pods are made by custom resources whose definition changes, and with it their scale.
    fn scaled(&self) -> BTreeSet<Str> {
        let definitions = self.changed.iter().filter(|(key, _)| key.kind.is("CustomResourceDefinition"));
        let kinds: BTreeSet<Kind> =
            definitions.flat_map(|(_, v)| v).filter_map(|d| navigate::defined_kind(d)).collect();
        let mut found = BTreeSet::new();
        for state in self.states() {
            for custom in kinds.iter().flat_map(|kind| state.list(kind, None)) {
                let pods = state.owned_by(&custom.uid).into_iter().filter(|o| o.key.kind.is("Pod"));
                found.extend(pods.map(|pod| pod.key.ns.clone()));
                found.extend(state.adapter(custom).is_some().then(|| custom.key.ns.clone()));
            }
        }
        found
    }

    /// All versions of the nodes that change in labels, or in whether they stay: no other is admitted otherwise.
    fn relabelled_nodes(&self) -> Vec<&Arc<Object>> {
        let nodes = self.changed.iter().filter(|(key, versions)| key.kind.is("Node") && relabelled(versions));
        nodes.flat_map(|(_, versions)| versions).collect()
    }

    /// Looks for the workloads whose node constraints match a changed node.
    fn find_admitting(&mut self) {
        if self.admitting.is_none() {
            let mut found = Admitting { pod_class: Vec::new(), adapted: BTreeSet::new() };
            let nodes = self.relabelled_nodes();
            if !nodes.is_empty() {
                let admits = |object: &Object| {
                    navigate::pod_spec(self.before, object).is_some_and(|spec| {
                        navigate::restricts_nodes(&spec)
                            && nodes.iter().any(|n| suture_model::selector::node_matches(&spec, n))
                    })
                };
                // objects of one constraint admit alike
                found.pod_class = self.before.base().restricting().filter(|o| admits(o)).collect();
                let adapted = self.before.base().adapters().kinds();
                let adapted = adapted.iter().flat_map(|k| self.before.list(k, None));
                found.adapted = adapted.filter(|o| admits(o)).map(|o| o.key.clone()).collect();
            }
            self.admitting = Some(found);
        }
    }
}

/// What an object, or a pod that it makes, refers to.
pub(crate) fn referred(state: &State<'_>, object: &Object) -> BTreeSet<Key> {
    let claims = Kind::new("", "PersistentVolumeClaim");
    let references = references(object, state.base().adapters().as_ref());
    let resolve = |key: &Key| state.resolve(key).map(|o| o.key.clone());
    let mut found: BTreeSet<Key> = references.iter().filter_map(|r| resolve(&r.target)).collect();
    found.extend(references.into_iter().map(|r| r.target));
    if object.key.kind.is("StatefulSet") {
        let here = state.list(&claims, Some(&object.key.ns));
        let made = here.into_iter().filter(|c| navigate::claim_ordinal(object, &c.key.name).is_some());
        found.extend(made.map(|c| c.key.clone()));
    }
    if let Some(selector) = state.adapter(object).and_then(|f| f.claim_selector.clone()) {
        let kept = state.matching(&claims, &object.key.ns, &selector);
        found.extend(kept.into_iter().map(|c| c.key.clone()));
    }
    found
}

/// Whether the versions of a node differ in labels, or in whether it stays.
fn relabelled(versions: &[Arc<Object>]) -> bool {
    let Some((first, rest)) = versions.split_first() else { return false };
    rest.is_empty() || rest.iter().any(|o| o.labels() != first.labels() || o.live() != first.live())
}

/// Whether these versions differ in what decides whether dependents stay.
fn stays_differently(versions: &[Arc<Object>]) -> bool {
    let Some((first, rest)) = versions.split_first() else { return false };
    let same = |o: &Arc<Object>| {
        o.live() == first.live()
            && o.uid == first.uid
            && o.owners() == first.owners()
            && o.finalizers().eq(first.finalizers())
    };
    rest.is_empty() || !rest.iter().all(same)
}
