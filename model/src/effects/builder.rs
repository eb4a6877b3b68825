//! Collects the entities and limits of a group: the second stratum, what controllers do with the pods that the first one
//! lets stay.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;

use super::memo::{Memo, NewPod};
use super::parents::is_asked;
use super::scheduling::template::Template;
use super::survival::{Survival, Survivals};
use crate::controllers::statefulset::ordinal_labels;
use crate::deletion::is_protected;
use crate::fields::has_deadline;
use crate::futures::{Entity, Fate, FateKind, Group, Limit, LimitLabel, Linear, Moment, Outage, Remains, SetId};
use crate::kinds::{Kind, KindTraits};
use crate::navigate;
use crate::object::{Body, Key, Object};
use crate::references::references;
use crate::scenario::Scenario;
use crate::state::State;
use crate::value::{Str, Val};

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
    /// Whether pods of controllers that are not modelled are taken to be made anew.
    pub remade: bool,
}

/// All that decides the fates of an existing object.
struct Case {
    body: *const Body,
    is_pod: bool,
    survival: Survival,
    in_deletion_closure: bool,
    removable: bool,
    /// Whether it is a claim that its users keep from going.
    protected: bool,
    /// Whether its node fails.
    down: bool,
    /// Whether it stops being ready for good.
    fails: bool,
    /// Whether its containers restart.
    restarts: bool,
}

impl Case {
    fn same(&self, other: &Self) -> bool {
        let node = |c: &Self| (c.down, c.fails, c.restarts);
        let flags = |c: &Self| (c.is_pod, c.survival, c.in_deletion_closure, c.removable, c.protected, node(c));
        std::ptr::eq(self.body, other.body) && flags(self) == flags(other)
    }
}

/// New pods of one set, which the scheduler is to place: their maker, the set, their template.
pub type Asked = (Key, SetId, usize);

/// Collects the entities and limits of a group.
pub struct Builder<'s, 'a> {
    /// The stratum below.
    pub survivals: Survivals<'s, 'a>,
    /// The scenario.
    pub scenario: &'s Scenario<'a>,
    /// How finely the group is described.
    pub view: &'s View,
    /// What was collected so far.
    pub group: Group,
    /// The group's name.
    pub name: Key,
    sets: u32,
    /// The templates of new pods.
    pub templates: Vec<Template>,
    /// The new pods that the scheduler is to place.
    pub placed: Vec<Asked>,
    /// Whether what is requested has to do with the workload, as far as new pods may need a place.
    pub caused_by_request: bool,
    /// How many of the workload's pods there are at most at one time, terminating ones left aside; `None` if not told.
    pub max_live_pods: Option<i64>,
    /// The last existing object that was described: the next one mostly is its equal.
    last: RefCell<Option<(Case, Entity)>>,
}

impl<'s, 'a> Builder<'s, 'a> {
    /// A group of this name in which there is nothing yet.
    pub fn new(scenario: &'s Scenario<'a>, memo: &'s Memo, view: &'s View, name: Key) -> Self {
        let group = Group { name: Some(name.clone()), ..Group::default() };
        Self {
            survivals: Survivals::new(scenario, memo),
            scenario,
            view,
            group,
            name,
            sets: 0,
            templates: Vec::new(),
            placed: Vec::new(),
            caused_by_request: false,
            max_live_pods: None,
            last: RefCell::default(),
        }
    }

    /// The concrete cluster.
    pub fn state(&self) -> &'s State<'a> {
        &self.scenario.state
    }

    /// Whether the group is described once all has settled.
    pub fn after(&self) -> bool {
        self.view.moment == Moment::After
    }

    /// A new set of entities.
    pub fn set(&mut self) -> SetId {
        self.sets += 1;
        SetId(self.sets)
    }

    /// Adds a limit.
    pub fn limit(&mut self, label: LimitLabel, any_of: Vec<Linear>) {
        self.group.limits.push(Limit { label, any_of });
    }

    /// Asks the scheduler for places of the new pods of a set.
    pub fn schedule(&mut self, maker: Key, set: SetId, template: usize) {
        self.placed.push((maker, set, template));
    }

    /// What becomes of an existing pod whatever its controller does.
    pub fn survival(&self, pod: &Object) -> Survival {
        self.survivals.of(pod)
    }

    /// An object that no effect of this group touches, except what happens to it whatever its controller does.
    pub fn passive(&mut self, object: &Arc<Object>) {
        let entity = self.existing(object, &[], false);
        self.group.entities.push(entity);
    }

    /// The entity of an existing object; `removable` when its controller may remove it.
    pub fn existing(&self, object: &Arc<Object>, sets: &[SetId], removable: bool) -> Entity {
        self.surviving(object, self.survival(object), sets, removable)
    }

    /// [`Self::existing`] of an object of which it is known what becomes of it.
    pub fn surviving(&self, object: &Arc<Object>, survival: Survival, sets: &[SetId], removable: bool) -> Entity {
        let case = Case {
            body: Arc::as_ptr(&object.body),
            is_pod: object.key.kind.is("Pod"),
            survival,
            in_deletion_closure: object.in_deletion_closure,
            removable,
            protected: is_protected(self.state(), object),
            down: self.is_down(object),
            fails: self.survivals.fails(object),
            restarts: self.survivals.restarts(object),
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
        let Case { is_pod, survival, removable, .. } = *case;
        if case.protected {
            return vec![self.fate_of(object, case.down, FateKind::Stays)];
        }
        let settled = self.after();
        let mut kinds: Vec<FateKind> = Vec::new();
        let in_the_end = if settled { self.survivals.once_settled(object, survival) } else { survival };
        if in_the_end != Survival::Goes {
            kinds.push(FateKind::Stays);
            if is_pod && !object.ready() && !object.terminating() && !object.finished() {
                kinds.push(FateKind::BecomesReady);
            }
            if is_pod && (case.fails || (case.restarts && !settled)) {
                kinds.push(FateKind::LosesReadiness);
            }
            // its controller makes another one in its place by then
            if has_deadline(object) && !(settled && object.controller().is_some()) {
                kinds.push(FateKind::Ends);
            }
        }
        if removable || survival != Survival::Stays || object.terminating() {
            let held = object.finalizers().next().is_some();
            if !object.terminating() && (!settled || held) {
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
            FateKind::Ends => self.changed(kind, object, Object::failed),
            FateKind::Stays | FateKind::BecomesReady | FateKind::NewUnready | FateKind::NewReady => Remains::Itself,
        };
        let was_ready = || matches!(kind, FateKind::BecomesReady) || (kind == FateKind::Stays && object.ready());
        let place = (down && self.view.coarse && was_ready()).then_some(DOWN);
        Fate { kind, place, remains }
    }

    fn changed(&self, kind: FateKind, object: &Arc<Object>, change: impl FnOnce(&Object) -> Object) -> Remains {
        Remains::Changed(self.survivals.memo.body(kind, object, change))
    }

    /// A new pod of this name from a template; it bears the labels that its predecessor got for its name.
    pub fn new_pod(&self, template: &Template, name: &str) -> NewPod {
        let owner = self.state().get(&self.name).map(AsRef::as_ref);
        let before = || self.state().get(&Key::of("Pod", &self.name.ns, name));
        let before = self.name.kind.is("StatefulSet").then(before).flatten();
        let labels: Vec<(&str, &Val)> = before.into_iter().flat_map(|pod| ordinal_labels(pod.labels())).collect();
        self.survivals.memo.pod(template, &self.name, owner, name, &labels)
    }

    /// The fates of a pod that a controller may make from this template (an index from [`Self::template`]).
    pub fn new_fates(&self, template: usize, name: &str, may_lack: bool) -> Vec<Fate> {
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

    /// Whether it matters where new pods are.
    pub fn wants_places(&self) -> bool {
        self.view.places || self.after() || !self.view.outage.nodes.is_empty()
    }

    /// Registers the template of new pods; call `scheduling::place` once all are registered.
    pub fn template(&mut self, template: &Val) -> usize {
        self.template_of(template, false)
    }

    /// [`Self::template`] of pods that may wait for something beside nodes.
    pub fn template_of(&mut self, template: &Val, waits: bool) -> usize {
        let known = self.templates.iter().position(|t| t.val == *template && t.waits == waits);
        known.unwrap_or_else(|| {
            self.templates.push(Template { waits, ..Template::new(template, &self.name.ns) });
            self.templates.len() - 1
        })
    }

    /// Whether what is requested has to do with this workload: it, what makes its pods, these pods and their nodes, and
    /// what decides about them. To cordon a node has nothing to do with a DaemonSet, nor have labels that it does not ask for.
    pub fn is_touched(&self, pods: &[&Arc<Object>]) -> bool {
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
        let daemons = self.state().get(&self.name).filter(|workload| workload.key.kind.is("DaemonSet"));
        let matters = |key: &&Key| {
            let same = base.get(key).zip(self.state().get(key));
            let Some((set, (old, new))) = daemons.zip(same) else { return true };
            navigate::matters_to_daemon_set(self.state(), set, old, new)
        };
        let nodes = self.state().changed_keys(&Kind::new("", "Node")).filter(matters);
        let nodes: BTreeSet<&Str> = nodes.map(|key| &key.name).collect();
        let on_changed = |pod: &&Arc<Object>| nodes.contains(&pod.node) || delta.contains_key(&pod.key);
        // the cheap ones first
        made.iter().any(|o| delta.contains_key(&o.key))
            || pods.iter().any(on_changed)
            || delta.keys().any(is_own)
            || self.state().get(&self.name).is_some_and(|o| is_asked(self.state(), o))
            || self.names_changed(pods)
    }

    /// Whether what a pod names is among what is requested.
    fn names_changed(&self, pods: &[&Arc<Object>]) -> bool {
        let is_named = |key: &&Key| !(key.kind.is("Pod") || key.kind.is("Node") || key.kind.has(KindTraits::decides));
        let changed: Vec<&Key> = self.state().delta().keys().filter(is_named).collect();
        // equals stand together, and name the same
        let each = pods.chunk_by(|a, b| Arc::ptr_eq(&a.body, &b.body)).filter_map(|equals| equals.first());
        let names = |pod: &&Arc<Object>| {
            let mut named = references(pod, self.state().base().adapters().as_ref()).into_iter();
            named.any(|reference| changed.iter().any(|key| reference.target.means(key)))
        };
        !changed.is_empty() && each.into_iter().any(names)
    }

    /// Takes back what controllers do: existing objects meet what becomes of them whatever their controller does, and
    /// nothing is made.
    pub fn undo_controllers(&mut self) {
        let existing: Vec<Arc<Object>> = self.group.entities.drain(..).filter_map(|entity| entity.object).collect();
        self.group.limits.clear();
        self.placed.clear();
        self.max_live_pods = None;
        existing.iter().for_each(|object| self.passive(object));
    }

    /// All entities are described.
    pub fn described(self) -> Described<'s, 'a> {
        Described(self)
    }

    /// Puts these entities into a new set and returns it; `None` when there are none.
    pub fn gather(&mut self, entities: &[usize]) -> Option<SetId> {
        if entities.is_empty() {
            return None;
        }
        let set = self.set();
        for at in entities {
            if let Some(entity) = self.group.entities.get_mut(*at) {
                Rc::make_mut(&mut entity.sets).push(set);
            }
        }
        Some(set)
    }
}

/// The output of this stratum: all entities of a group, with what their controllers do. The scheduler's limits are written over
/// it, and no controller reads them.
pub struct Described<'s, 'a>(Builder<'s, 'a>);

impl<'s, 'a> Deref for Described<'s, 'a> {
    type Target = Builder<'s, 'a>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Described<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Described<'_, '_> {
    /// The group, once all limits are written down.
    pub fn group(self) -> Group {
        self.0.group
    }
}

/// With a coarse view, the place of pods that were ready when their node failed.
pub const DOWN: usize = 1;

/// The deletionTimestamp of a pod that an effect removes; only its presence matters.
pub const DELETION_TIME: &str = "1970-01-01T00:00:00Z";

/// An unready pod that stays must not be counted as ready: its staying is renamed to losing readiness.
pub fn mark_unready(entity: &mut Entity) {
    if entity.fates.iter().any(|fate| fate.kind == FateKind::Stays) {
        let fates = Rc::make_mut(&mut entity.fates).iter_mut();
        fates.filter(|fate| fate.kind == FateKind::Stays).for_each(|fate| fate.kind = FateKind::LosesReadiness);
    }
}

/// The fates of an existing pod whose node fails, by those that it may meet where none does (`Builder::fate_of`).
pub fn when_down(memo: &Memo, pod: &Entity) -> Vec<Fate> {
    let down = |o: &Arc<Object>| memo.body(FateKind::Stays, o, |o| o.with_ready(false));
    let unready = || pod.object.as_ref().filter(|o| o.ready()).map(down);
    let down = |fate: &Fate| {
        let remains = match fate.kind {
            FateKind::Stays => unready().map_or(Remains::Itself, Remains::Changed),
            FateKind::BecomesReady => Remains::Itself,
            FateKind::LosesReadiness
            | FateKind::Ends
            | FateKind::Terminating
            | FateKind::Gone
            | FateKind::NotMade
            | FateKind::NewUnready
            | FateKind::NewReady => fate.remains.clone(),
        };
        let place = if remains == fate.remains { fate.place } else { Some(DOWN) };
        Fate { remains, place, ..fate.clone() }
    };
    pod.fates.iter().map(down).collect()
}
