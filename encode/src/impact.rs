//! Which instances a change can reach: the inverse of every navigation that an invariant uses in the future state.
//!
//! An instance whose readings are the same with and without the change has the same verdict; only the others are
//! judged. Each navigation is inverted over the objects that some scenario changes:
//!
//! | navigation | reached from a changed object |
//! |---|---|
//! | the object itself | itself |
//! | `selects`, `endpoints`, budgets | whatever selects a pod that the change touches, or a template that it may use |
//! | `podsMatching` of the `standingSelector` | whatever asks for a label that such a pod has |
//! | `selectedBy` | the pods, and what makes pods, that the selector of the changed object means |
//! | `cascaded` | the custom resources that list a touched object or pod among what their operator makes; those near it whose operator deletes claims |
//! | `podsOwnedBy` | the controllers above such a pod |
//! | `resolvesIn`, `target`, `targetWriters`, `scaled` | what refers to it, who else writes what it writes |
//! | `referrers`, `autoscalers` | what it refers to |
//! | `ownersIn`, `wantedBy`, … | its dependents |
//! | `mostWanted` | its owners and dependents, what it scales, and theirs |
//! | `hostClaims`, `hostClaimants` | who claims what it claims |
//! | `instances` | the definition of its kind |
//! | `volume` | claim and volume of each other |
//! | `admittedNodes` | pods, volumes and what makes pods, if a changed node has what they ask for in one state and not in another; of who asks no more than whether there are any, if a state has none; of who asks only where nodes are restricted, those that restrict them |
//! | `writers` | what it writes |
//! | `possibleNodes` | every instance, if a node or class changes in what decides; else what refers to it, and what follows pods |
//! | `unplaced` | what runs touched pods or refers to a touched object; if nodes, or pods that take room, change, whatever lacks pods |
//! | `preempted` | what the new pods of touched workloads preempt; if nodes, classes, budgets, defaults or pods that take room change, of all that lack pods |
//! | `rightsLost` | instances in the namespaces of the accounts that a changed role or binding means |
//! | `podsWanted` | instances in namespaces with a touched workload, of those that what is asked about selects; where pods and nodes alone change, with a touched DaemonSet |
//! | `selects`, `endpoints` of what a list has | every instance, if anything of that kind selects such a pod |
//! | evictions, which an invariant must survive | also what reads pods of a changed budget, or of one over a touched pod |
//! | lists of the state | every instance, if an object of the list's kind changed that it looks at (`analysis/guards.rs`); of a list of one namespace, its instances |
//!
//! Of whole lists those are left out that hold by what they are themselves ([`Analysis::holds_by_itself`]).
//!
//! A node that changes reaches the workloads that have pods on it, and those whose new pods a spread constraint places over
//! domains of which one may come or go (`domains.rs`). Where no more changes than which pods it takes from now on, it reaches
//! those of them that may make pods. To the new pods of others all nodes are the same; that a node comes, which is one more
//! place, is not judged for them. Of a DaemonSet whose rollout is done it reaches what is on that node.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use suture_model::fields::NodeConstraint;
use suture_model::futures::Faults;
use suture_model::kinds::{Kind, KindTraits};
use suture_model::navigate;
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::snapshot::lacking_kinds;
use suture_model::state::State;
use suture_model::steps;
use suture_model::value::Str;
use suture_specs::functions::Worlds;
use suture_specs::value::Value;

mod counted;
mod domains;
mod inverse;
mod listing;
mod pods;
mod room;
mod seeds;

use crate::analysis::{Analysis, Place};
use crate::relations::{Inverse, WORKLOAD};
use inverse::Admitting;
pub(crate) use pods::Touch;
pub use pods::{PodClass, pod_class};
use pods::{TouchedPods, matching};
use room::Changed;
use seeds::Seeds;

/// The instances of an invariant that a change can reach.
pub struct Reached<'s> {
    /// Those that are reached for their own sake; some of the pods may be among them.
    pub keys: BTreeSet<Key>,
    /// Pods of the cluster before that no scenario changes, each once and in the order of their keys: what may become of them
    /// differs.
    pub pods: Vec<&'s Arc<Object>>,
    /// One pod for all that are alike ([`PodClass`]) and are reached for what may become of them only, where the invariant
    /// reads nothing but who is there: mostly it is soon told that they hold.
    pub pod_classes: BTreeMap<PodClass, Arc<Object>>,
    /// The constraints on nodes that admit other nodes in one state than in another: whatever has one of them is reached
    /// as well ([`Impact::of_node_constraint`]).
    pub admitting: Vec<NodeConstraint>,
}

impl Reached<'_> {
    /// These instances, for their own sake.
    pub fn of(keys: BTreeSet<Key>) -> Self {
        Self { keys, pods: Vec::new(), pod_classes: BTreeMap::new(), admitting: Vec::new() }
    }
}

/// What a change touches, worked out once for all invariants.
pub struct Impact<'s, 'a> {
    seeds: Seeds<'s, 'a>,
    /// The kinds that have adapters.
    adapted: Vec<Kind>,
    /// Pods whose controller, node or own facts changed, and those beside them; none until they were looked for.
    touch: Touch,
    /// Whether the pods were looked for.
    looked: bool,
    /// Whether those were that a budget of theirs has beside them.
    looked_at_budgets: bool,
    found: Found<'s>,
    admitting: Option<Rc<Admitting>>,
    /// The kinds of the objects that some state has.
    kinds: OnceCell<BTreeSet<Kind>>,
}

/// What was found by what is touched, as far as it was asked.
#[derive(Default)]
struct Found<'s> {
    touched_pods: Option<Rc<TouchedPods<'s>>>,
    selecting: Option<Rc<BTreeSet<Key>>>,
    selected: Option<Rc<BTreeSet<Key>>>,
    referrers: Option<Rc<BTreeSet<Key>>>,
    referred_to: Option<Rc<BTreeSet<Key>>>,
    dependents: Option<Rc<BTreeSet<Key>>>,
}

/// Which kinds may be instances, each asked for once.
struct MayBe<'i> {
    analysis: &'i Analysis,
    adapted: &'i [Kind],
    asked: Vec<(Kind, bool)>,
}

impl MayBe<'_> {
    fn of(&mut self, kind: &Kind) -> bool {
        match self.asked.iter().find(|(known, _)| known == kind) {
            Some((_, may)) => *may,
            None => {
                let may = self.analysis.may_be(kind, self.adapted);
                self.asked.push((kind.clone(), may));
                may
            }
        }
    }

    /// Those of these keys.
    fn among<'k>(&mut self, keys: impl IntoIterator<Item = &'k Key>) -> impl Iterator<Item = Key> {
        let is_one = move |key: &&Key| {
            steps::walk();
            self.of(&key.kind)
        };
        keys.into_iter().filter(is_one).cloned()
    }
}

impl<'s, 'a> Impact<'s, 'a> {
    /// The impact of a change that leads to some scenarios, compared with those without it: with the same in flight landed, or
    /// with nothing where there is but one.
    pub fn new(before: &'s State<'a>, with: &'s [Scenario<'a>], without: &'s [Scenario<'a>]) -> Self {
        let mut impact = Self {
            seeds: Seeds::new(before, with, without),
            adapted: before.base().adapters().kinds(),
            touch: Touch::default(),
            looked: false,
            looked_at_budgets: false,
            found: Found::default(),
            admitting: None,
            kinds: OnceCell::new(),
        };
        impact.follow_pods();
        impact
    }

    /// The keys of all changed objects.
    pub fn changed(&self) -> impl Iterator<Item = &Key> {
        self.seeds.changed.keys()
    }

    /// A kind that was not read, if the change, which is about these objects, may reach an instance because of an object of
    /// it: one that is such an object, or that is found over pods.
    pub fn unread<'k>(&'k self, analysis: &Analysis, targets: impl Iterator<Item = &'k Key> + Clone) -> Option<Str> {
        let unread = self.seeds.before.base().unknown();
        if unread.is_empty() {
            return None;
        }
        let touched: BTreeSet<&Kind> = self.seeds.touched().chain(targets.clone()).map(|key| &key.kind).collect();
        let not_seen = targets.filter(|key| !self.seeds.changed.contains_key(key));
        let moved: BTreeSet<&Kind> = self.seeds.moved().chain(not_seen.map(|key| &key.kind)).collect();
        let reads = &analysis.footprint.beside_instance;
        // what only selects pods makes none come or go
        let moves = |traits: &KindTraits| traits.concerns_pods() && !traits.only_selects_pods();
        let pods = |kind: &Kind| kind.has(moves) || self.adapted.contains(kind);
        // nothing in a namespace owns what is in none
        let owns = |kind: &Kind, name: &str| {
            let global = KindTraits::named(name).is_some_and(|traits| !traits.namespaced);
            moved.contains(kind) && !(global && kind.builtin_namespaced() == Some(true))
        };
        let is_read = |kind: &Kind, name: &str| {
            reads.any
                || (reads.owners && owns(kind, name))
                || reads.kinds.iter().any(|known| known.kind == kind.kind)
                || (reads.pods && pods(kind))
                || ((reads.adapted || reads.customs) && kind.builtin_namespaced().is_none())
        };
        let is_touched = |name: &str| touched.iter().any(|kind| is_read(kind, name));
        let concerns_pods = reads.pods && touched.iter().any(|kind| pods(kind));
        let instance = |name: &str| self.may_be_instance(analysis, name);
        let leads = |name: &str| {
            let decides = KindTraits::named(name).is_some_and(KindTraits::decides_which_pods)
                || self.adapted.iter().any(|kind| *kind.kind == *name);
            let itself = || touched.iter().any(|kind| *kind.kind == *name);
            let taken = || self.seeds.takes_along(name);
            (instance(name) && (is_touched(name) || itself() || taken())) || (concerns_pods && decides)
        };
        unread.iter().find(|name| leads(name)).cloned()
    }

    /// A kind that was not read, if an object of it may be an instance of the invariant.
    pub fn unread_instances(&self, analysis: &Analysis) -> Option<Str> {
        self.seeds.before.base().unknown().iter().find(|name| self.may_be_instance(analysis, name)).cloned()
    }

    fn may_be_instance(&self, analysis: &Analysis, kind: &str) -> bool {
        analysis.compiled.for_each.kinds.iter().any(|kinds| kinds.may_be(kind, &self.adapted))
    }

    /// Whether an object of such a kind may meet other fates, or be made.
    fn touches(&self, kind: impl Fn(&Kind) -> bool) -> bool {
        (!self.touch.labels.is_empty() && kind(&Kind::new("", "Pod")))
            || self.seeds.touched().any(|key| kind(&key.kind))
    }

    /// The same, where only objects matter that the invariant looks at in a list of that kind.
    fn touches_listed(&self, analysis: &Analysis, kind: impl Fn(&Kind) -> bool) -> bool {
        let params = Value::from(&analysis.compiled.params);
        let states: Vec<&State<'_>> = self.seeds.states().collect();
        let is_looked_at = |key: &Key| {
            let mut versions = self.seeds.versions(key).iter();
            versions.any(|version| analysis.footprint.looks_at(version, &params, &states))
        };
        (!self.touch.labels.is_empty() && kind(&Kind::new("", "Pod")))
            || self.seeds.touched().any(|key| kind(&key.kind) && is_looked_at(key))
    }

    /// The namespaces in which an object of a kind may meet other fates, or be made.
    fn namespaces_of(&self, kind: &str) -> BTreeSet<Str> {
        if kind == WORKLOAD {
            return counted::by_workloads(&self.seeds, &self.touch, &self.adapted);
        }
        let is = |key: &&Key| *key.kind.kind == *kind;
        let mut found: BTreeSet<Str> = self.seeds.touched().filter(is).map(|key| key.ns.clone()).collect();
        if kind == "Pod" {
            found.extend(self.touch.labels.iter().map(|(ns, _)| ns.clone()));
        }
        found
    }

    /// The namespaces in which an object of a kind selects pods that may meet other fates, or be made; of one that is in flight
    /// it is not looked up what it selects.
    fn namespaces_selecting(&mut self, kind: &str) -> BTreeSet<Str> {
        let selecting = self.selecting();
        let keys = selecting.iter().chain(self.seeds.in_flight()).filter(|key| *key.kind.kind == *kind);
        keys.map(|key| key.ns.clone()).collect()
    }

    /// The namespaces in which workloads may want another number of pods, of those that objects of a kind select, or of any.
    fn namespaces_counting(&mut self, selecting: Option<&Str>) -> BTreeSet<Str> {
        // what is in flight may have made or taken what selects and counts them
        let is_place_or_pod = |key: &Key| key.kind.is("Node") || key.kind.is("Pod");
        let as_they_were = self.seeds.touched().chain(self.seeds.in_flight()).all(is_place_or_pod);
        match selecting {
            _ if as_they_were => counted::by_nodes_and_pods(&self.seeds, &self.touch, selecting),
            Some(kind) => self.namespaces_selecting(kind),
            None => self.namespaces_of(WORKLOAD),
        }
    }

    /// What the pods that the change may touch own: it goes with them.
    fn follow_pods(&mut self) {
        if self.seeds.states().any(|state| state.owns(&Kind::new("", "Pod"))) {
            self.touch_pods();
            let pods = &self.touch.pods;
            let owned = self.seeds.states().flat_map(|state| pods.iter().flat_map(|pod| state.owned_by(&pod.uid)));
            let owned: BTreeSet<Key> = owned.map(|object| object.key.clone()).collect();
            self.seeds.followers.extend(owned);
        }
    }

    /// Looks for the pods that the change may touch.
    fn touch_pods(&mut self) {
        if !std::mem::replace(&mut self.looked, true) {
            self.touch = Touch::of(&self.seeds);
            // found without the pods
            self.found = Found::default();
        }
    }

    /// Looks for the pods that the change may touch beside these faults: those that may be evicted, or may not, since it touches
    /// others under the same budget, and those that are spread over what is left; and for all that goes with them.
    fn touch_pods_under(&mut self, faults: Faults) {
        self.touch_pods();
        let mut found = self.touch.spreading(&self.seeds, faults.nodes);
        if faults.evictions > 0 && !std::mem::replace(&mut self.looked_at_budgets, true) {
            self.touch.budgets(&self.seeds);
            found = true;
        }
        if found {
            if self.seeds.states().any(|state| state.owns(&Kind::new("", "Pod"))) {
                let owned = inverse::below(&self.seeds, &self.touch.pods);
                self.seeds.followers.extend(owned);
            }
            self.found = Found::default();
        }
    }

    /// The instances of an invariant that the change can reach, in the order of their names.
    pub fn instances(&mut self, analysis: &Analysis) -> BTreeSet<Key> {
        let Reached { mut keys, pods, pod_classes, admitting } = self.reached(analysis);
        keys.extend(pods.into_iter().map(|pod| pod.key.clone()));
        keys.extend(self.pods_of_classes(|known| pod_classes.contains_key(known)));
        for constraint in admitting {
            let found = self.of_node_constraint(&constraint, analysis).into_iter().flatten();
            keys.extend(found.map(|object| object.key.clone()));
        }
        keys
    }

    /// The instances of an invariant among the objects of the snapshot with this constraint on nodes, as far as they are
    /// not changed, kind by kind in the order of their names. There may be thousands: where their kind is all that makes
    /// them instances, no more than one is looked at.
    pub fn of_node_constraint(&self, constraint: &NodeConstraint, analysis: &Analysis) -> Vec<Vec<&'a Arc<Object>>> {
        let base = self.seeds.before.base();
        let for_each = &analysis.compiled.for_each;
        let matches = |object: &Arc<Object>| for_each.matches(object, base.adapters().as_ref());
        let changed: BTreeSet<*const Object> = self.seeds.changed.values().flatten().map(Arc::as_ptr).collect();
        let mut found = base.constrained(constraint, |kind| analysis.may_be(kind, &self.adapted));
        for pod_class in &mut found {
            let all = for_each.selector.is_none().then(|| pod_class.first().is_some_and(|first| matches(first)));
            pod_class.retain(|object| match self.seeds.before.may_differ(object) {
                true => {
                    !self.seeds.changed.contains_key(&object.key)
                        && self.seeds.versions(&object.key).iter().any(matches)
                }
                false => !changed.contains(&Arc::as_ptr(object)) && all.unwrap_or_else(|| matches(object)),
            });
        }
        found
    }

    /// [`Self::instances`], those aside that are reached for their constraint on nodes only: they may be very many. Where
    /// no step is left there may be others among them.
    pub fn reached(&mut self, analysis: &Analysis) -> Reached<'s> {
        if !self.may_have_instances(analysis) {
            return Reached::of(BTreeSet::new());
        }
        let Analysis { compiled, footprint, .. } = analysis;
        let of_pods = analysis.may_be(&Kind::new("", "Pod"), &self.adapted);
        if of_pods || footprint.uses.pods() {
            self.touch_pods_under(compiled.faults);
        }
        let mut keys: BTreeSet<Key> = BTreeSet::new();
        let adapted = self.adapted.clone();
        let mut may_be = MayBe { analysis, adapted: &adapted, asked: Vec::new() };
        keys.extend(may_be.among(self.seeds.touched().chain(self.seeds.in_flight())));
        let mut touched = Rc::default();
        if of_pods && !footprint.reads_presence_only {
            touched = self.touched_pods();
            keys.extend(touched.changed.iter().cloned());
        }
        for inverse in &footprint.uses.inverses {
            self.add_inverse(*inverse, &mut may_be, &mut keys);
        }
        if footprint.uses.volume_nodes {
            keys.extend(inverse::volumes(&self.seeds));
            keys.extend(self.admitting().claims(self.seeds.before, footprint));
        }
        if footprint.uses.standing {
            keys.extend(may_be.among(&self.standing()));
        }
        self.add_listed(analysis, &mut keys);
        let adapters = self.seeds.before.base().adapters();
        let matches = |object: &Arc<Object>| compiled.for_each.matches(object, adapters.as_ref());
        keys.retain(|key| {
            steps::count(1);
            let mut is_one = || may_be.of(&key.kind) && self.seeds.versions(key).iter().any(matches);
            // nobody asks about them then
            steps::check().is_err() || is_one()
        });
        let by_nodes = footprint.uses.inverses.contains(&Inverse::Nodes);
        let admitting = if by_nodes { self.admitting().constraints(footprint) } else { Vec::new() };
        let mut pod_classes = BTreeMap::new();
        if of_pods && footprint.reads_presence_only {
            let others = self.touch.pods.iter().filter(|pod| !self.seeds.changed.contains_key(&pod.key));
            for pod in others {
                pod_classes.entry(pod_class(pod)).or_insert_with(|| pod.clone());
            }
            pod_classes.retain(|_, pod| matches(pod));
        }
        Reached { keys, pods: matching(&touched.unchanged, matches), pod_classes, admitting }
    }

    /// Whether some state has an object of a kind that may be an instance.
    fn may_have_instances(&self, analysis: &Analysis) -> bool {
        let is_there = |kind: &Kind| self.seeds.states().any(|state| state.has_kind(kind));
        analysis.kinds(&self.adapted).is_none_or(|kinds| kinds.iter().any(is_there))
    }

    /// Adds what a change reaches by one inverse; objects that it changes are reached anyway.
    fn add_inverse(&mut self, inverse: Inverse, may_be: &mut MayBe<'_>, keys: &mut BTreeSet<Key>) {
        match inverse {
            // lists, and whatever reads anything, are looked at as a whole
            Inverse::Itself | Inverse::Lists | Inverse::Everything | Inverse::Nothing => {}
            Inverse::Selecting => keys.extend(may_be.among(self.selecting().iter())),
            Inverse::Budgets => {
                keys.extend(may_be.among(self.selecting().iter()));
                for ns in inverse::scaled(&self.seeds) {
                    keys.extend(self.open_of_kinds(may_be.analysis, Some(&ns), |_| true));
                }
            }
            Inverse::Selected => keys.extend(may_be.among(self.selected().iter())),
            Inverse::Deleting => keys.extend(may_be.among(&inverse::deleting(&self.seeds, &self.touch))),
            Inverse::Controllers => keys.extend(may_be.among(&self.touch.controllers)),
            Inverse::Referrers => keys.extend(may_be.among(self.referrers().iter())),
            Inverse::Referred => keys.extend(may_be.among(self.referred_to().iter())),
            Inverse::Written => keys.extend(may_be.among(&inverse::written(&self.seeds))),
            Inverse::Dependents => keys.extend(may_be.among(self.dependents().iter())),
            Inverse::Wanting => keys.extend(may_be.among(&inverse::wanting(&self.seeds))),
            Inverse::Hosts => keys.extend(inverse::claimants(&self.seeds)),
            Inverse::Definitions => keys.extend(inverse::definitions(&self.seeds)),
            Inverse::Volumes => keys.extend(inverse::volumes(&self.seeds)),
            Inverse::Rights => {
                for ns in inverse::entitled(&self.seeds) {
                    keys.extend(self.open_of_kinds(may_be.analysis, ns.as_deref(), |_| true));
                }
            }
            Inverse::Placement => {
                if self.seeds.moves_places() {
                    keys.extend(self.open_of_kinds(may_be.analysis, None, |_| true));
                    return;
                }
                keys.extend(may_be.among(self.referrers().iter().chain(&*self.referred_to())));
                keys.extend(may_be.among(&inverse::volumes(&self.seeds)));
                if self.touches(|kind| kind.has(KindTraits::runs_pods) || self.adapted.contains(kind)) {
                    let before = self.seeds.before;
                    keys.extend(may_be.among(before.base().following().into_iter().map(|object| &object.key)));
                }
            }
            Inverse::Room => keys.extend(self.of_room(may_be)),
            Inverse::Preemption => match room::preempted(&self.seeds, &self.touch) {
                Some(found) => keys.extend(may_be.among(&found)),
                None => keys.extend(self.open_of_kinds(may_be.analysis, None, |_| true)),
            },
            Inverse::Nodes => keys.extend(self.admitting().adapted.iter().cloned()),
        }
    }

    /// What may find no place any more: what runs touched pods, what refers to a touched object, and, where nodes change or
    /// pods that take room, whatever lacks pods.
    fn of_room(&mut self, may_be: &mut MayBe<'_>) -> BTreeSet<Key> {
        let mut found: BTreeSet<Key> = may_be.among(&self.touch.controllers).collect();
        found.extend(may_be.among(self.referrers().iter().chain(&*self.referred_to())));
        found.extend(may_be.among(&inverse::volumes(&self.seeds)));
        match room::changed(&self.seeds) {
            Changed::Pods(pods) if pods.is_empty() => {}
            Changed::Pods(pods) => {
                found.extend(may_be.among(&room::meaning(&self.seeds, &pods)));
            }
            Changed::Room if !may_be.analysis.footprint.uses.lost_nodes => {
                let is_kept = |kind: &Kind| lacking_kinds().contains(kind);
                let others = self.open_of_kinds(may_be.analysis, None, |kind| !is_kept(kind));
                found.extend(may_be.among(&room::lacking(&self.seeds, &others)));
            }
            // which have their pods may lack some once nodes are gone
            Changed::Room | Changed::Everything => found.extend(self.open_of_kinds(may_be.analysis, None, |_| true)),
        }
        found
    }

    /// Adds the instances that read a list of the state which has something else in it.
    fn add_listed(&mut self, analysis: &Analysis, keys: &mut BTreeSet<Key>) {
        let uses = &analysis.footprint.uses;
        let listed = uses.lists.iter().any(|kind| self.touches_listed(analysis, |k| k == kind))
            || uses.named.iter().any(|name| {
                let workloads = || **name == *WORKLOAD && !self.namespaces_of(name).is_empty();
                self.touches_listed(analysis, |k| *k.kind == **name) || workloads()
            });
        let selects = uses.selecting.iter().any(|kind| !self.namespaces_selecting(kind).is_empty());
        if listed || selects || (uses.everything && !self.seeds.changed.is_empty()) {
            keys.extend(self.open_of_kinds(analysis, None, |_| true));
        }
        let mut listed: Vec<(BTreeSet<Str>, Place)> =
            uses.within.iter().map(|(kind, place)| (self.namespaces_of(kind), *place)).collect();
        listed.extend(uses.selected.iter().map(|(kind, place)| (self.namespaces_selecting(kind), *place)));
        let counted = uses.counted.iter();
        listed.extend(counted.map(|(kind, place)| (self.namespaces_counting(kind.as_ref()), *place)));
        let mut listing: BTreeMap<usize, BTreeSet<Str>> = BTreeMap::new();
        for (namespaces, place) in listed {
            for ns in namespaces {
                match place {
                    Place::Own => keys.extend(self.open_of_kinds(analysis, Some(&ns), |_| true)),
                    Place::Named => drop(keys.insert(Key::of("Namespace", "", &ns))),
                    Place::Listed(at) => drop(listing.entry(at).or_default().insert(ns)),
                }
            }
        }
        for (at, namespaces) in listing {
            let all = self.open_of_kinds(analysis, None, |_| true);
            keys.extend(listing::listing(&self.seeds, analysis, all, at, &namespaces));
        }
    }

    /// What may mean a touched pod, or one that a touched template makes, by what stands of its selector; what is changed itself
    /// is reached anyway.
    fn standing(&self) -> BTreeSet<Key> {
        let before = self.seeds.before;
        let meaning = self.touch.labels.iter().flat_map(|(ns, labels)| navigate::may_stand_for(before, ns, labels));
        meaning.map(|object| object.key.clone()).collect()
    }

    /// The pods that may meet other fates.
    fn touched_pods(&mut self) -> Rc<TouchedPods<'s>> {
        self.found.touched_pods.get_or_insert_with(|| Rc::new(TouchedPods::of(&self.seeds, &self.touch.pods))).clone()
    }

    fn selecting(&mut self) -> Rc<BTreeSet<Key>> {
        self.found.selecting.get_or_insert_with(|| Rc::new(inverse::selecting(&self.seeds, &self.touch))).clone()
    }

    fn selected(&mut self) -> Rc<BTreeSet<Key>> {
        self.found.selected.get_or_insert_with(|| Rc::new(inverse::selected(&self.seeds))).clone()
    }

    fn referrers(&mut self) -> Rc<BTreeSet<Key>> {
        self.found.referrers.get_or_insert_with(|| Rc::new(inverse::referrers(&self.seeds))).clone()
    }

    fn referred_to(&mut self) -> Rc<BTreeSet<Key>> {
        self.found.referred_to.get_or_insert_with(|| Rc::new(inverse::referred_to(&self.seeds, &self.touch))).clone()
    }

    fn dependents(&mut self) -> Rc<BTreeSet<Key>> {
        self.found.dependents.get_or_insert_with(|| Rc::new(inverse::dependents(&self.seeds, &self.touch))).clone()
    }

    fn admitting(&mut self) -> Rc<Admitting> {
        self.admitting.get_or_insert_with(|| Rc::new(Admitting::of(&self.seeds))).clone()
    }

    /// The names of the pods that the change may touch and that are like some.
    pub fn pods_of_classes(&self, some: impl Fn(&PodClass) -> bool) -> BTreeSet<Key> {
        self.touch.pods.iter().filter(|pod| some(&pod_class(pod))).map(|pod| pod.key.clone()).collect()
    }

    /// All objects of the invariant's kinds.
    pub fn of_kinds(&self, analysis: &Analysis, ns: Option<&str>) -> BTreeSet<Key> {
        self.of_some_kinds(analysis, ns, |_| true, |_| true)
    }

    /// This object, if it is one of them.
    pub fn of_key(&self, analysis: &Analysis, key: &Key) -> BTreeSet<Key> {
        let adapters = self.seeds.before.base().adapters();
        let is_one = |object: &&Arc<Object>| analysis.compiled.for_each.matches(object, adapters.as_ref());
        let object = self.seeds.before.get(key).filter(is_one);
        object.map(|object| object.key.clone()).into_iter().collect()
    }

    /// Those objects of some of the invariant's kinds that do not hold in every future by what they are themselves.
    fn open_of_kinds(&self, analysis: &Analysis, ns: Option<&str>, some: impl Fn(&Kind) -> bool) -> BTreeSet<Key> {
        let worlds = Worlds { before: self.seeds.before, now: self.seeds.before };
        let is_as_it_was = |object: &Arc<Object>| !self.seeds.scenarios().any(|state| state.may_differ(object));
        let is_open = |object: &Arc<Object>| !(is_as_it_was(object) && analysis.holds_by_itself(object, worlds));
        self.of_some_kinds(analysis, ns, some, is_open)
    }

    /// Those of the objects of some of the invariant's kinds that are changed, or of which something else holds.
    fn of_some_kinds(
        &self,
        analysis: &Analysis,
        ns: Option<&str>,
        some: impl Fn(&Kind) -> bool,
        is_open: impl Fn(&Arc<Object>) -> bool,
    ) -> BTreeSet<Key> {
        let adapters = self.seeds.before.base().adapters();
        let all = || {
            let known = self.kinds.get_or_init(|| self.seeds.states().flat_map(State::kinds).collect());
            known.iter().filter(|kind| analysis.may_be(kind, &self.adapted)).cloned().collect::<Vec<_>>()
        };
        let kinds = analysis.kinds(&self.adapted).unwrap_or_else(|| Cow::Owned(all()));
        let mut found = Vec::new();
        for kind in kinds.iter().filter(|kind| some(kind)) {
            let matches = |o: &&Arc<Object>| analysis.compiled.for_each.matches(o, adapters.as_ref());
            let here = self.seeds.before.list(kind, ns).into_iter().filter(matches).filter(|object| is_open(object));
            let changed = self.seeds.scenarios().flat_map(|state| {
                let keys = state.changed_keys(kind).filter(|key| ns.is_none_or(|ns| *key.ns == *ns));
                keys.filter_map(|key| state.get(key))
            });
            found.extend(here.chain(changed.filter(matches)).map(|object| object.key.clone()));
        }
        // sorted once
        found.into_iter().collect()
    }
}
