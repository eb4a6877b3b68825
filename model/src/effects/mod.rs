//! Effects as declarations: for the pods of one workload, which fates each may meet and within which limits.
//!
//! | file | effect |
//! |---|---|
//! | `replicas` | ReplicaSet and ReplicationController scale-down, Deployment rollout (RollingUpdate, Recreate), replacement |
//! | `scaling` | what a Deployment that is scaled in the middle of a rollout leaves of its ready pods |
//! | `statefulset` | ordinals, partition, OrderedReady and Parallel, replacement |
//! | `daemonset` | rollout, nodes that come and go |
//! | `custom` | what an adapter says its operator does when `replicas` falls |
//! | `hazard` | deletion, eviction, taint, lost node: what may happen to a pod whatever its controller does |
//! | `template` | what new pods ask of nodes |
//! | `placement` | where new pods may go |
//! | `volumes` | where they may go for the sake of their volumes |
//! | `made` | changed bodies and new pods, worked out once |
//! | `coarse` | how many may be on nodes that fail, where it is not told where they go |
//!
//! A pod that a request removes is not counted by its controller's arithmetic: the controller may have used its whole
//! allowance before the request lands. The requests of a custom resource's operator are judged like any other, so that
//! what they remove counts for it. Over-approximations stand with each effect.

mod coarse;
mod custom;
mod daemonset;
mod foreign_pods;
mod hazard;
mod made;
mod placement;
mod replicas;
mod room;
mod scaling;
mod statefulset;
mod template;
mod volumes;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::deletion::{Expected, is_protected};
use crate::futures::{
    Count, Entity, Fate, FateKind, Group, Limit, LimitLabel, Linear, Moment, Outage, Place, Remains, SetId,
};
use crate::kinds::Kind;
use crate::navigate;
use crate::node_names::NodeNames;
use crate::object::{Body, Key, Object};
use crate::references::references;
use crate::scenario::Scenario;
use crate::state::State;
use crate::value::{Str, Val};

pub use coarse::calm;
pub use custom::{propagate_template, scaled_down};
pub use hazard::at_risk;
pub use made::Made;
pub use placement::{AntiAffinityPresence, Demand, NodeCache, NodeClasses, new_templates, node_classes};
pub use statefulset::{heirs, ordinal_labels};
pub(crate) use template::is_kept;

/// Built-in kinds that make pods and decide how many there are of them, and which go.
pub const DECIDING: [&str; 5] = ["ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "ReplicationController"];

/// Those that adopt pods which they select and nothing controls.
const ADOPTING: [&str; 4] = ["ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"];

/// More pods than these are not counted beside new ones on a node that has room for all that are new.
const BESIDE_MAX: i64 = 8;

/// How deep a chain of controllers is followed.
const CONTROLLER_DEPTH_MAX: usize = 8;

/// How finely a group is described.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct View {
    /// Which moments.
    pub moment: Moment,
    /// What failed.
    pub outage: Outage,
    /// Whether new pods are told apart by where they are placed.
    pub places: bool,
    /// Whether nodes that are alike share one place.
    pub merge_equivalent_nodes: bool,
    /// Whether new pods may go anywhere: more futures, cheaper to describe. A proof over them is a proof.
    pub coarse: bool,
}

/// The workload that decides about this object: the highest controller of a known kind, for a pod without one the custom
/// resource that selects it by its adapter, or the object itself.
pub fn group_name(state: &State<'_>, object: &Object) -> Key {
    let mut top = object.key.clone();
    let orphan = object.key.kind.is("Pod") && object.controller().is_none();
    if let Some(adopter) = orphan.then(|| adopter(state, object)).flatten() {
        return group_name(state, &adopter);
    }
    let mut at = object;
    for _ in 0..CONTROLLER_DEPTH_MAX {
        let above = match at.controller() {
            Some(owner) => state.by_uid(&owner.uid).filter(|o| o.key.kind == owner.kind),
            None => navigate::adopting_deployment(state, at),
        };
        let Some(next) = above else { break };
        let decides =
            DECIDING.iter().any(|k| next.key.kind.is(k)) || (top.kind.is("Pod") && custom::decides(state, next));
        if decides {
            top = next.key.clone();
        }
        at = next;
    }
    let undecided = top.kind.is("Pod") && object.key.kind.is("Pod");
    undecided.then(|| custom::decider(state, object)).flatten().unwrap_or(top)
}

/// The controller that adopts a pod without one (`pkg/controller/controller_ref_manager.go`).
fn adopter(state: &State<'_>, pod: &Object) -> Option<Object> {
    ADOPTING.iter().find_map(|kind| {
        let candidates = state.selecting(&Kind::builtin(kind)?, &pod.key.ns, pod.labels());
        candidates.into_iter().find(|o| o.live() && adopts(state, o, pod)).map(|o| (**o).clone())
    })
}

/// The ReplicaSets that a Deployment controls or would adopt, in the order of their keys.
fn replica_sets_of(state: &State<'_>, deployment: &Object) -> Vec<Arc<Object>> {
    let own = |o: &&Arc<Object>| o.key.kind.is("ReplicaSet") && o.controller().is_some_and(|c| c.uid == deployment.uid);
    let mut sets: Vec<Arc<Object>> = state.owned_by(&deployment.uid).into_iter().filter(own).cloned().collect();
    if let Some(selector) = navigate::selector_of(state, deployment).filter(|s| deployment.live() && !s.is_empty()) {
        let free = state.making(&[Kind::new("apps", "ReplicaSet")], &deployment.key.ns, &selector).into_iter();
        sets.extend(
            free.filter(|o| navigate::adopting_deployment(state, o).is_some_and(|a| a.key == deployment.key)).cloned(),
        );
    }
    sets.sort_by(|a, b| a.key.cmp(&b.key));
    sets
}

/// Whether this controller would adopt this pod.
fn adopts(state: &State<'_>, controller: &Object, pod: &Object) -> bool {
    let matches = crate::navigate::selector_of(state, controller)
        .is_some_and(|selector| !selector.is_empty() && selector.matches(pod.labels()));
    matches && (!controller.key.kind.is("StatefulSet") || statefulset::ordinal(controller, pod).is_some())
}

/// A pod without its controller, where its labels are not the controller's any more: that releases it, and makes another
/// one (`pkg/controller/controller_ref_manager.go`, `ClaimObject`). A StatefulSet makes none under a name that is taken.
pub fn released(state: &State<'_>, pod: &Object) -> Option<Object> {
    let releases = |o: &&Arc<Object>| ["ReplicaSet", "ReplicationController"].iter().any(|kind| o.key.kind.is(kind));
    let controller = navigate::controller_of(state, pod).filter(releases).filter(|o| o.live())?;
    let selector = navigate::selector_of(state, controller).filter(|selector| !selector.is_empty())?;
    let is_out = pod.key.kind.is("Pod") && pod.live() && !selector.matches(pod.labels());
    is_out.then(|| pod.without_owner(&controller.uid))
}

/// The pods that a controller controls or would adopt, in the order of their names.
fn pods_of(state: &State<'_>, controller: &Object) -> Vec<Arc<Object>> {
    let pod = Kind::new("", "Pod");
    let own = |p: &Object| p.key.kind == pod && p.controller().is_some_and(|c| c.uid == controller.uid);
    let mut pods: Vec<Arc<Object>> = state.owned_by(&controller.uid).into_iter().filter(|p| own(p)).cloned().collect();
    if let Some(selector) = crate::navigate::selector_of(state, controller).filter(|s| !s.is_empty()) {
        let orphans = state
            .pods_matching(&controller.key.ns, &selector)
            .into_iter()
            .filter(|p| p.controller().is_none() && adopter(state, p).is_some_and(|a| a.key == controller.key));
        let owned = pods.len();
        pods.extend(orphans.cloned());
        if pods.len() > owned {
            pods.sort_by(|a, b| a.key.cmp(&b.key));
        }
    }
    pods.dedup_by(|a, b| Arc::ptr_eq(a, b));
    pods
}

/// The group of this name: its pods, their fates and limits.
pub fn group(scenario: &Scenario<'_>, name: &Key, view: &View) -> Group {
    let state = &scenario.state;
    let mut builder = Builder::new(scenario, view, name.clone());
    let Some(mut object) = state.get(name).cloned() else { return builder.finish() };
    if builder.after() && builder.expected.surely_goes(&object) {
        // it makes no pods any more
        object = Arc::new(Object { in_deletion_closure: true, ..(*object).clone() });
    }
    if name.kind.is("Deployment") {
        replicas::deployment(&mut builder, &object);
    } else if name.kind.is("ReplicaSet") || name.kind.is("ReplicationController") {
        replicas::replica_set(&mut builder, &object);
    } else if name.kind.is("StatefulSet") {
        statefulset::stateful_set(&mut builder, &object);
    } else if name.kind.is("DaemonSet") {
        daemonset::daemon_set(&mut builder, &object);
    } else if state.adapter(&object).is_some() && !name.kind.is("Pod") {
        custom::custom_resource(&mut builder, &object);
    } else {
        builder.passive(&object);
    }
    builder.finish()
}

/// The fates of an object that is no pod: what happens to it whatever its controller does.
pub fn own(scenario: &Scenario<'_>, key: &Key, view: &View) -> Group {
    let mut builder = Builder::new(scenario, view, key.clone());
    if let Some(object) = scenario.state.get(key).cloned() {
        builder.passive(&object);
    }
    builder.finish()
}

/// The fates of an existing pod whose node fails, by those that it may meet where none does (`Builder::fate_of`).
pub fn when_down(scenario: &Scenario<'_>, pod: &Entity) -> Vec<Fate> {
    let down = |o: &Arc<Object>| scenario.made.body(FateKind::Stays, o, |o| o.with_ready(false));
    let unready = || pod.object.as_ref().filter(|o| o.ready()).map(down);
    let down = |fate: &Fate| {
        let remains = match fate.kind {
            FateKind::Stays => unready().map_or(Remains::Itself, Remains::Changed),
            FateKind::BecomesReady => Remains::Itself,
            _ => fate.remains.clone(),
        };
        Fate { remains, ..fate.clone() }
    };
    pod.fates.iter().map(down).collect()
}

/// An unready pod that stays must not be counted as ready: its staying is renamed to losing readiness.
fn mark_unready(entity: &mut Entity) {
    if entity.fates.iter().any(|fate| fate.kind == FateKind::Stays) {
        let fates = Rc::make_mut(&mut entity.fates).iter_mut();
        fates.filter(|fate| fate.kind == FateKind::Stays).for_each(|fate| fate.kind = FateKind::LosesReadiness);
    }
}

/// What a pod's own circumstances allow, before its controller does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It stays unless its controller removes it.
    Kept,
    /// It may go, whatever its controller does.
    AtRisk,
    /// A request has removed it.
    Removed,
}

/// All that decides the fates of an existing object.
struct Case {
    body: *const Body,
    is_pod: bool,
    standing: Standing,
    in_deletion_closure: bool,
    removable: bool,
    /// Whether it is a claim that its users keep from going.
    protected: bool,
    /// Whether its node fails.
    down: bool,
    /// Whether its node is failing already, and it ready.
    fails: bool,
}

impl Case {
    fn same(&self, other: &Self) -> bool {
        let flags = |c: &Self| (c.is_pod, c.standing, c.in_deletion_closure, c.removable, c.protected, c.down, c.fails);
        std::ptr::eq(self.body, other.body) && flags(self) == flags(other)
    }
}

/// Collects the entities and limits of a group.
struct Builder<'s, 'a> {
    scenario: &'s Scenario<'a>,
    view: &'s View,
    group: Group,
    name: Key,
    sets: u32,
    templates: Vec<template::Template>,
    placed: Vec<(Key, SetId, usize)>,
    /// Whether what is requested has to do with the workload, as far as new pods may need a place.
    caused_by_request: bool,
    /// How many of the workload's pods there are at most at one time, terminating ones left aside; `None` if not told.
    max_live_pods: Option<i64>,
    expected: Expected<'s, 'a>,
    /// Whether pods of a body are expected to go, worked out once: it depends on owners and namespace only.
    going: RefCell<BTreeMap<(Str, *const Body), bool>>,
    /// The last one that was asked for.
    last_going: RefCell<Option<(Str, *const Body, bool)>>,
    /// The last existing object that was described: the next one mostly is its equal.
    last: RefCell<Option<(Case, Entity)>>,
}

impl<'s, 'a> Builder<'s, 'a> {
    fn new(scenario: &'s Scenario<'a>, view: &'s View, name: Key) -> Self {
        let group = Group { name: Some(name.clone()), ..Group::default() };
        Self {
            scenario,
            view,
            group,
            name,
            sets: 0,
            templates: Vec::new(),
            placed: Vec::new(),
            caused_by_request: false,
            max_live_pods: None,
            expected: Expected::new(&scenario.state),
            going: RefCell::default(),
            last_going: RefCell::default(),
            last: RefCell::default(),
        }
    }

    fn state(&self) -> &'s State<'a> {
        &self.scenario.state
    }

    fn after(&self) -> bool {
        self.view.moment == Moment::After
    }

    /// A new set of entities.
    fn set(&mut self) -> SetId {
        self.sets += 1;
        SetId(self.sets)
    }

    fn limit(&mut self, label: LimitLabel, any_of: Vec<Linear>) {
        self.group.limits.push(Limit { label, any_of });
    }

    /// The circumstances of an existing pod.
    fn standing(&self, pod: &Object) -> Standing {
        if pod.in_deletion_closure && self.scenario.removed.contains(&pod.key) {
            return Standing::Removed;
        }
        let follows = || match pod.key.kind.is("Pod") {
            true => self.pod_goes(pod),
            false => self.expected.goes(pod) || self.follows_pods(pod),
        };
        if pod.in_deletion_closure || (self.on_unhealthy_node(pod) && hazard::at_risk(self.state(), pod)) || follows() {
            Standing::AtRisk
        } else {
            Standing::Kept
        }
    }

    /// Whether a pod is on a node that is not plainly well.
    fn on_unhealthy_node(&self, pod: &Object) -> bool {
        self.scenario.made.on_unhealthy_node(self.state(), pod)
    }

    /// Whether all owners of an object are pods that may go, whoever makes them go: the garbage collector takes it along
    /// (`pkg/controller/garbagecollector/garbagecollector.go`, `attemptToDeleteItem`). That it goes no earlier than they do
    /// is left aside.
    fn follows_pods(&self, object: &Object) -> bool {
        let owners = object.owners();
        !owners.is_empty()
            && owners.iter().all(|owner| owner.kind.is("Pod"))
            && owners.iter().all(|owner| {
                let Some(pod) = navigate::owner_object(self.state(), object, owner) else { return true };
                let group = group(self.scenario, &group_name(self.state(), pod), self.view);
                let mut entity = group.entities.iter().filter(|entity| entity.key() == Some(&pod.key));
                entity.any(|entity| entity.fates.iter().any(|fate| !STAY.contains(&fate.kind)))
            })
    }

    /// Whether a pod goes anyway, which is the same for those of a body in a namespace.
    fn pod_goes(&self, object: &Object) -> bool {
        let body = Arc::as_ptr(&object.body);
        if let Some((ns, known, going)) = &*self.last_going.borrow()
            && Arc::ptr_eq(ns, &object.key.ns)
            && std::ptr::eq(*known, body)
        {
            return *going;
        }
        let key = (object.key.ns.clone(), body);
        let known = self.going.borrow().get(&key).copied();
        let going = known.unwrap_or_else(|| {
            let going = self.expected.goes(object);
            self.going.borrow_mut().insert(key, going);
            going
        });
        self.last_going.replace(Some((object.key.ns.clone(), body, going)));
        going
    }

    /// An object that no effect of this group touches, except what happens to it whatever its controller does.
    fn passive(&mut self, object: &Arc<Object>) {
        let entity = self.existing(object, &[], false);
        self.group.entities.push(entity);
    }

    /// The entity of an existing object; `removable` when its controller may remove it.
    fn existing(&self, object: &Arc<Object>, sets: &[SetId], removable: bool) -> Entity {
        let standing = self.standing(object);
        let case = Case {
            body: Arc::as_ptr(&object.body),
            is_pod: object.key.kind.is("Pod"),
            standing,
            in_deletion_closure: object.in_deletion_closure,
            removable,
            protected: is_protected(self.state(), object),
            down: self.is_down(object),
            fails: object.ready() && self.on_unhealthy_node(object) && hazard::on_failing_node(self.state(), object),
        };
        let mut last = self.last.borrow_mut();
        let known = last.as_ref().filter(|(known, _)| known.same(&case)).map(|(_, like)| like);
        let (known_sets, fates) = match known {
            Some(like) => (Some(&like.sets), like.fates.clone()),
            None => (None, Rc::new(self.fates_of(object, &case))),
        };
        let known_sets = known_sets.filter(|known| ***known == *sets).cloned();
        let sets = known_sets.unwrap_or_else(|| Rc::new(sets.to_vec()));
        let entity = Entity { object: Some(object.clone()), count: 1, sets, fates };
        if known.is_none_or(|like| !Rc::ptr_eq(&like.sets, &entity.sets)) {
            *last = Some((case, entity.clone()));
        }
        entity
    }

    /// The fates of an existing object.
    fn fates_of(&self, object: &Arc<Object>, case: &Case) -> Vec<Fate> {
        let Case { is_pod, standing, removable, .. } = *case;
        if case.protected {
            return vec![self.fate_of(object, case.down, FateKind::Stays)];
        }
        let finished = self.after();
        let mut kinds: Vec<FateKind> = Vec::new();
        let stays = match standing {
            Standing::Kept => !(object.terminating() && finished),
            // after the closure is done, only a finalizer of its own keeps an object that leaves
            Standing::AtRisk => {
                !(finished
                    && (object.in_deletion_closure
                        || (object.terminating() && !is_pod)
                        || self.expected.surely_goes(object)))
            }
            Standing::Removed => false,
        };
        if stays {
            kinds.push(FateKind::Stays);
            if is_pod && !object.ready() && !object.terminating() && !hazard::finished(object) {
                kinds.push(FateKind::BecomesReady);
            }
            if is_pod && (case.fails || (object.ready() && object.gate_shut())) {
                kinds.push(FateKind::LosesReadiness);
            }
        }
        if removable || standing != Standing::Kept || object.terminating() {
            let held = object.finalizers().next().is_some();
            if !object.terminating() && (!finished || held) {
                kinds.push(FateKind::Terminating);
            }
            kinds.push(FateKind::Gone);
        }
        kinds.into_iter().map(|kind| self.fate_of(object, case.down, kind)).collect()
    }

    /// Whether a pod's node fails.
    fn is_down(&self, pod: &Object) -> bool {
        let failing = &self.view.outage.nodes;
        !failing.is_empty() && !pod.node.is_empty() && failing.contains(&pod.node)
    }

    fn fate_of(&self, object: &Arc<Object>, down: bool, kind: FateKind) -> Fate {
        let remains = match kind {
            FateKind::Gone | FateKind::NotMade => Remains::Nothing,
            FateKind::Terminating => self.changed(kind, object, |o| o.with_deletion(DELETION_TIME)),
            FateKind::Stays if down && object.ready() => self.changed(kind, object, |o| o.with_ready(false)),
            FateKind::BecomesReady if !down => self.changed(kind, object, |o| o.with_ready(true)),
            FateKind::LosesReadiness => self.changed(kind, object, |o| o.with_ready(false)),
            _ => Remains::Itself,
        };
        Fate { kind, place: None, remains }
    }

    fn changed(&self, kind: FateKind, object: &Arc<Object>, change: impl FnOnce(&Object) -> Object) -> Remains {
        Remains::Changed(self.scenario.made.body(kind, object, change))
    }

    /// A new pod of this name from a template; it bears the labels that its predecessor got for its name.
    fn new_pod(&self, template: &template::Template, name: &str) -> made::New {
        let owner = self.state().get(&self.name).map(AsRef::as_ref);
        let before = || self.state().get(&Key::of("Pod", &self.name.ns, name));
        let before = self.name.kind.is("StatefulSet").then(before).flatten();
        let labels: Vec<(&str, &Val)> = before.into_iter().flat_map(|pod| ordinal_labels(pod.labels())).collect();
        self.scenario.made.pod(template, &self.name, owner, name, &labels)
    }

    /// The fates of a pod that a controller may make from this template (an index from [`Self::template`]).
    fn new_fates(&self, template: usize, name: &str, may_lack: bool) -> Vec<Fate> {
        let Some(template) = self.templates.get(template) else { return Vec::new() };
        let mut fates = Vec::new();
        if may_lack {
            fates.push(Fate { kind: FateKind::NotMade, place: None, remains: Remains::Nothing });
        }
        let pod = self.new_pod(template, name);
        let made = |kind, place, pod| Fate { kind, place, remains: Remains::New(pod) };
        fates.push(made(FateKind::NewUnready, None, pod.unready.clone()));
        // where no node admits them, a limit says so: a proof may rely on it
        if !self.wants_places() || !template.admits_any() {
            fates.push(made(FateKind::NewReady, None, pod.ready));
            return fates;
        }
        for (at, place) in self.group.places.iter().enumerate() {
            if !template.admits(at) {
                continue;
            }
            let node = place.nodes.first().cloned().unwrap_or_else(|| "".into());
            fates.push(made(FateKind::NewReady, Some(at), Arc::new(pod.on(node, !place.down))));
        }
        fates
    }

    fn wants_places(&self) -> bool {
        self.view.places || self.after() || !self.view.outage.nodes.is_empty()
    }

    /// Registers the template of new pods; call [`Self::place`] once all are registered.
    fn template(&mut self, template: &Val) -> usize {
        self.template_of(template, false)
    }

    /// [`Self::template`] of pods that may wait for something beside nodes.
    fn template_of(&mut self, template: &Val, waits: bool) -> usize {
        let known = self.templates.iter().position(|t| *t.val() == *template && t.waits == waits);
        known.unwrap_or_else(|| {
            self.templates.push(template::Template { waits, ..template::Template::new(template, &self.name.ns) });
            self.templates.len() - 1
        })
    }

    /// Whether what is requested has to do with this workload: it, what makes its pods, these pods and their nodes, and
    /// what decides about them.
    fn is_touched(&self, pods: &[&Arc<Object>]) -> bool {
        let delta = self.state().delta();
        if delta.is_empty() {
            return false;
        }
        let base = self.state().base();
        let made = self.state().get(&self.name).map_or_else(Vec::new, |o| self.state().owned_by(&o.uid));
        let uids: BTreeSet<&Str> =
            made.iter().map(|o| &o.uid).chain(self.state().get(&self.name).map(|o| &o.uid)).collect();
        let is_own = |key: &Key| {
            let owners = base.get(key).map_or(&[][..], |o| o.owners());
            *key == self.name || owners.iter().any(|owner| uids.contains(&owner.uid))
        };
        let on_changed =
            |pod: &&Arc<Object>| delta.contains_key(&pod.key) || delta.contains_key(&Key::global("Node", &pod.node));
        // the cheap ones first
        made.iter().any(|o| delta.contains_key(&o.key))
            || pods.iter().any(on_changed)
            || delta.keys().any(is_own)
            || self.state().get(&self.name).is_some_and(|o| custom::is_asked(self.state(), o))
            || self.names_changed(pods)
    }

    /// Whether what a pod names is among what is requested.
    fn names_changed(&self, pods: &[&Arc<Object>]) -> bool {
        let is_named = |key: &&Key| !["Pod", "Node"].iter().chain(&DECIDING).any(|kind| key.kind.is(kind));
        let changed: Vec<&Key> = self.state().delta().keys().filter(is_named).collect();
        // equals stand together, and name the same
        let each = pods.chunk_by(|a, b| Arc::ptr_eq(&a.body, &b.body)).filter_map(|equals| equals.first());
        let names = |pod: &&Arc<Object>| {
            let mut named = references(pod, self.state().base().adapters().as_ref()).into_iter();
            named.any(|reference| changed.iter().any(|key| reference.target.means(key)))
        };
        !changed.is_empty() && each.into_iter().any(names)
    }

    /// Works out where pods of the registered templates may be placed beside these; `most` bounds how many there may be.
    fn place<'p>(&mut self, pods: impl IntoIterator<Item = &'p Arc<Object>>, most: i64) {
        if !self.wants_places() || self.templates.is_empty() {
            return;
        }
        if self.view.coarse {
            self.group.places = vec![Place { nodes: NodeNames::default(), down: false }];
            if !self.view.outage.nodes.is_empty() {
                // a pod that was ready when its node failed has counted for its controller
                self.group.places.push(Place { nodes: NodeNames::default(), down: true });
            }
            let places = self.group.places.len();
            self.templates.iter_mut().for_each(|t| t.anywhere(places));
        } else {
            let ns = self.name.ns.clone();
            let pods: Vec<&Arc<Object>> = pods.into_iter().collect();
            self.caused_by_request = self.is_touched(&pods);
            // where few are there, it is looked at whether there is room for one more
            let present = i64::try_from(pods.len()).unwrap_or(i64::MAX);
            let most = if present <= BESIDE_MAX { most.saturating_add(present) } else { most };
            let anti_affinity = AntiAffinityPresence::of(pods.into_iter());
            self.group.quiescent = self.after() && self.caused_by_request;
            self.group.caused_by_request = self.caused_by_request;
            let demand = Demand {
                anti_affinity,
                most,
                quiescent: self.group.quiescent,
                caused_by_request: self.caused_by_request,
            };
            self.group.places = placement::places(self.scenario, &ns, &mut self.templates, demand, self.view);
        }
    }

    fn finish(mut self) -> Group {
        if self.view.coarse {
            coarse::write_limits(&mut self);
        } else {
            placement::write_limits(&mut self);
        }
        self.group
    }
}

/// The deletionTimestamp of a pod that an effect removes; only its presence matters.
pub const DELETION_TIME: &str = "1970-01-01T00:00:00Z";

/// `set` counted over these fates, at any place.
fn count(set: SetId, fates: &[FateKind]) -> Count {
    Count { set, fates: fates.to_vec(), places: None }
}

/// The sum of these counts is at most `bound`.
fn at_most(counts: Vec<Count>, bound: i64) -> Linear {
    Linear { terms: counts.into_iter().map(|c| (1, c)).collect(), at_most: bound }
}

/// The sum of these counts is at least `bound`.
fn at_least(counts: Vec<Count>, bound: i64) -> Linear {
    Linear { terms: counts.into_iter().map(|c| (-1, c)).collect(), at_most: -bound }
}

/// An integer or percentage of `of`, as Deployments, StatefulSets and DaemonSets read it
/// (`apimachinery/pkg/util/intstr`, `GetScaledValueFromIntOrPercent`).
fn scaled(value: Option<&Val>, of: i64, round_up: bool, default: &str) -> i64 {
    let text: Str = match value {
        Some(Val::Int(i)) => return *i,
        Some(Val::Str(s)) => s.clone(),
        _ => default.into(),
    };
    let Some(percent) = text.strip_suffix('%').and_then(|p| p.parse::<i64>().ok()) else {
        return text.parse().unwrap_or(0);
    };
    let product = of.saturating_mul(percent);
    if round_up { product.saturating_add(99).div_euclid(100) } else { product.div_euclid(100) }
}

/// Fates in which an existing pod is there still.
const STAY: [FateKind; 3] = [FateKind::Stays, FateKind::BecomesReady, FateKind::LosesReadiness];

/// Fates in which an existing pod is not there to serve any more.
const LOST: [FateKind; 2] = [FateKind::Terminating, FateKind::Gone];

#[cfg(test)]
mod tests;
