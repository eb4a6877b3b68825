//! The objects from which everything is found that a change reaches: those that some scenario changes, and those that go
//! or stay with them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::deletion::{Expected, followers, may_take_along};
use suture_model::kinds::{Kind, KindTraits, TakesAlong};
use suture_model::navigate;
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::state::State;
use suture_model::value::Str;

/// What a change changes, and what goes or stays with it.
pub(super) struct Seeds<'s, 'a> {
    pub before: &'s State<'a>,
    scenarios: Vec<&'s Scenario<'a>>,
    /// Each state with the change, and that without it which it is compared with.
    compared: Vec<(&'s State<'a>, &'s State<'a>)>,
    /// The versions of what only what is in flight changes: it is the same with the change and without.
    in_flight: BTreeMap<Key, Vec<Arc<Object>>>,
    /// The versions of each changed object.
    pub changed: BTreeMap<Key, Vec<Arc<Object>>>,
    /// Those of the changed objects that some state does not have.
    absent: BTreeSet<Key>,
    /// Objects that go or stay with a changed one.
    pub followers: BTreeSet<Key>,
}

impl<'s, 'a> Seeds<'s, 'a> {
    /// Of a change that leads to these scenarios, and of those that they are compared with. What is in flight makes no difference
    /// where it has landed in both.
    pub fn new(before: &'s State<'a>, with: &'s [Scenario<'a>], without: &'s [Scenario<'a>]) -> Self {
        let landed = without.iter().filter(|scenario| scenario.landed != 0);
        let scenarios: Vec<&Scenario<'a>> = with.iter().chain(landed).collect();
        let (mut changed, mut absent) = versions(before, &scenarios);
        let (mut in_flight, compared) = (BTreeMap::new(), compared(with, without));
        if let Some(own) = compared.as_deref().and_then(differences) {
            (changed, in_flight) = changed.into_iter().partition(|(key, _)| own.contains(key));
            absent.retain(|key| own.contains(key));
            for key in own {
                changed.entry(key).or_insert_with_key(|key| before.get(key).into_iter().cloned().collect());
            }
        }
        let compared = match compared {
            Some(compared) => compared.into_iter().map(|(with, without)| (&with.state, &without.state)).collect(),
            None => with.iter().map(|scenario| (&scenario.state, before)).collect(),
        };
        let mut seeds = Self { before, scenarios, compared, in_flight, changed, absent, followers: BTreeSet::new() };
        seeds.followers = seeds.find_followers();
        seeds
    }

    /// The keys of what only what is in flight changes. What leads from one of them to an object that is as it was is looked up
    /// in each state; what leads to one of them may be looked up in the state before, which does not have it so.
    pub fn in_flight(&self) -> impl Iterator<Item = &Key> {
        self.in_flight.keys()
    }

    /// Each state with the change, and that without it which it is compared with.
    pub fn compared(&self) -> impl Iterator<Item = (&'s State<'a>, &'s State<'a>)> {
        self.compared.iter().copied()
    }

    /// The states to look in: what the watch shows, and every scenario.
    pub fn states(&self) -> impl Iterator<Item = &State<'a>> {
        std::iter::once(self.before).chain(self.scenarios())
    }

    /// Every scenario.
    pub fn scenarios(&self) -> impl Iterator<Item = &State<'a>> {
        self.scenarios.iter().map(|scenario| &scenario.state)
    }

    /// Whether some scenario may have an object of the snapshot otherwise.
    pub fn may_differ(&self, object: &Arc<Object>) -> bool {
        self.states().any(|state| state.may_differ(object))
    }

    /// One of the scenarios.
    pub fn first(&self) -> Option<&'s Scenario<'a>> {
        self.scenarios.first().copied()
    }

    /// The keys of all objects but pods that may meet other fates than without the change, and of some pods.
    pub fn touched(&self) -> impl Iterator<Item = &Key> {
        self.changed.keys().chain(&self.followers)
    }

    /// All versions of what may meet other fates, pods that are beside changed ones aside.
    pub fn touched_versions(&self) -> impl Iterator<Item = &Arc<Object>> {
        let others = self.followers.iter().filter_map(|key| self.before.get(key));
        self.changed.values().flatten().chain(others)
    }

    /// An object as each state has it, as far as they differ.
    pub fn versions(&self, key: &Key) -> &[Arc<Object>] {
        match self.changed.get(key).or_else(|| self.in_flight.get(key)) {
            Some(versions) => versions,
            None => self.before.get(key).map_or(&[], std::slice::from_ref),
        }
    }

    /// Whether an object that changes is there in each state.
    fn stays(&self, key: &Key) -> bool {
        self.changed.contains_key(key) && self.states().all(|state| state.get(key).is_some())
    }

    /// Whether an object is not there in each state, or differs so from one to another.
    pub fn differs(&self, key: &Key, differ: impl Fn(&Object, &Object) -> bool) -> bool {
        let versions = self.versions(key);
        !self.stays(key) || versions.iter().zip(versions.iter().skip(1)).any(|(a, b)| differ(a, b))
    }

    /// The kinds of what comes or goes, or may follow what does.
    pub fn moved(&self) -> impl Iterator<Item = &Kind> {
        let moved = self.changed.iter().filter(|(key, versions)| self.comes_or_goes(key, versions)).map(|(key, _)| key);
        moved.chain(&self.followers).map(|key| &key.kind)
    }

    /// Whether an object that was there stays differently. What is new has no dependents yet.
    fn comes_or_goes(&self, key: &Key, versions: &[Arc<Object>]) -> bool {
        self.before.get(key).is_some() && self.stays_differently(key, versions)
    }

    /// Whether objects of a kind that was not read may go along with what the change touches, although they do not name it as
    /// an owner.
    pub fn takes_along(&self, kind: &str) -> bool {
        let takes = |object: &Arc<Object>, goes| may_take_along(self.before, object, goes, kind);
        let changed = self.changed.iter().any(|(key, versions)| {
            let goes = self.comes_or_goes(key, versions);
            versions.iter().any(|object| (goes && takes(object, true)) || takes(object, false))
        });
        changed || self.followers.iter().filter_map(|key| self.before.get(key)).any(|object| takes(object, true))
    }

    /// Whether the live nodes that this holds of are others in one state than in another.
    pub fn differs_in_nodes(&self, holds: impl Fn(&Object) -> bool) -> bool {
        self.nodes().any(|(key, versions)| {
            let is_among = |node: &Arc<Object>| node.live() && holds(node);
            let first = versions.first().is_some_and(is_among);
            (first && self.absent.contains(key)) || versions.iter().any(|node| is_among(node) != first)
        })
    }

    /// Whether a node comes or goes, or has other labels: for any other change nodes are admitted as they were.
    pub fn relabels_nodes(&self) -> bool {
        self.nodes().any(|(key, versions)| {
            let same = |a: &Object, b: &Object| a.labels() == b.labels() && a.live() == b.live();
            self.absent.contains(key) || !versions.iter().zip(versions.iter().skip(1)).all(|(a, b)| same(a, b))
        })
    }

    /// Whether a node comes, goes or changes in what decides which pods it may take, or a class in where it provides volumes.
    pub fn moves_places(&self) -> bool {
        self.moves("Node", &[&["spec", "taints"], &["spec", "unschedulable"], &["status", "allocatable"]])
            || self.changes_classes()
    }

    /// Whether a class changes in where it provides volumes.
    pub fn changes_classes(&self) -> bool {
        self.moves("StorageClass", &[&["allowedTopologies"]])
    }

    /// Whether a node comes, goes or changes in what decides whether DaemonSets want a pod on it (`pkg/controller/daemon/
    /// daemon_controller.go`, `NodeShouldRunDaemonPod`): they run on one that is cordoned.
    pub fn moves_daemons(&self) -> bool {
        self.moves("Node", &[&["spec", "taints"]])
    }

    /// Whether an object of a kind comes, goes, or changes in its labels or these fields.
    fn moves(&self, kind: &str, paths: &[&[&str]]) -> bool {
        let same = |a: &Object, b: &Object| {
            a.live() == b.live()
                && a.labels() == b.labels()
                && paths.iter().all(|path| a.val().at(path) == b.val().at(path))
        };
        let moves = |versions: &[Arc<Object>]| match versions.split_first() {
            Some((first, rest)) if !rest.is_empty() => !rest.iter().all(|other| same(first, other)),
            _ => true,
        };
        self.touched().filter(|key| key.kind.is(kind)).any(|key| self.absent.contains(key) || moves(self.versions(key)))
    }

    /// The nodes that are changed.
    pub fn nodes(&self) -> impl Iterator<Item = (&Key, &Vec<Arc<Object>>)> {
        let kind = Kind::new("", "Node");
        self.changed.range(Key::new(kind.clone(), "", "")..).take_while(move |(key, _)| key.kind == kind)
    }

    /// Whether the states differ in what decides whether the dependents of a changed object stay.
    fn stays_differently(&self, key: &Key, versions: &[Arc<Object>]) -> bool {
        let Some((first, rest)) = versions.split_first() else { return false };
        let same = |o: &Arc<Object>| {
            o.live() == first.live()
                && o.uid == first.uid
                && o.owners() == first.owners()
                && o.finalizers().eq(first.finalizers())
        };
        self.absent.contains(key) || !rest.iter().all(same)
    }

    /// Objects that go or stay with a changed one: the followers of what changed in what decides that.
    fn find_followers(&self) -> BTreeSet<Key> {
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
            let goes = |state: &State<'_>, o: &Arc<Object>| !o.live() || Expected::at_worst(state).goes(o);
            let elsewhere = |t: &KindTraits| matches!(t.takes_along, TakesAlong::Contents | TakesAlong::Pods);
            let leads = !key.kind.is("Pod") && !key.kind.has(elsewhere);
            let ends = || self.states().any(|state| state.get(key).is_some_and(|o| goes(state, o)));
            leads && is_another && (key.kind.has(|t| t.takes_along == TakesAlong::Claims) || ends())
        };
        let leading =
            self.changed.iter().filter(|(key, v)| (self.stays_differently(key, v) && !taken(key, v)) || says(key, v));
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
        found
    }
}

/// Each scenario with the change, and the one without it that it is compared with; `None` where one has none.
fn compared<'s, 'a>(
    with: &'s [Scenario<'a>],
    without: &'s [Scenario<'a>],
) -> Option<Vec<(&'s Scenario<'a>, &'s Scenario<'a>)>> {
    with.iter().map(|scenario| Some((scenario, scenario.counterpart(without)?))).collect()
}

/// The objects about which scenarios that are compared differ, and the nodes in flight that have other room by that; `None`
/// where all that any of them changes may matter: a change in no namespace may matter to objects anywhere, those in flight
/// among them.
fn differences(compared: &[(&Scenario<'_>, &Scenario<'_>)]) -> Option<BTreeSet<Key>> {
    let mut found: BTreeSet<Key> = compared.iter().flat_map(|(with, without)| with.differences(without)).collect();
    if found.iter().any(|key| key.ns.is_empty()) {
        return None;
    }
    let nodes = compared.iter().flat_map(|(with, without)| {
        let states = [&with.state, &without.state];
        let in_flight = move |node: &Key| states.iter().any(|state| state.delta().contains_key(node));
        found.iter().flat_map(move |key| with_other_room(key, states)).filter(in_flight)
    });
    let nodes: BTreeSet<Key> = nodes.collect();
    found.extend(nodes);
    Some(found)
}

/// The nodes on which an object may have other room taken with the change than without: that of a pod, and those of the pods of
/// what makes pods and may give some up. Where no request has to do with a node, every workload finds room on it
/// (`effects/scheduling/classifier.rs`, `judged`); where one has, it matters to what is on that node.
fn with_other_room(key: &Key, [with, without]: [&State<'_>; 2]) -> BTreeSet<Key> {
    let (now, was) = (with.get(key), without.get(key));
    let said = |maker: &Arc<Object>| (maker.live(), maker.val().get("spec").cloned());
    let gives_up = |was: &&Arc<Object>| key.kind.has(KindTraits::decides) && now.map(said) != Some(said(was));
    let pods = match key.kind.is("Pod") {
        true => now.into_iter().chain(was).collect(),
        false => was.filter(gives_up).map_or_else(Vec::new, |was| navigate::pods_owned_by(without, was)),
    };
    let nodes: BTreeSet<&Str> = pods.into_iter().map(|pod| &pod.node).filter(|node| !node.is_empty()).collect();
    // what is in flight about the node is found by this
    let there = nodes.into_iter().filter_map(|node| without.get(&Key::global("Node", node)));
    there.map(|node| node.key.clone()).collect()
}

/// The versions of each object that a scenario has otherwise than the state before.
type Versions = BTreeMap<Key, Vec<Arc<Object>>>;

/// These versions, and which of the objects some state does not have.
fn versions(before: &State<'_>, scenarios: &[&Scenario<'_>]) -> (Versions, BTreeSet<Key>) {
    let (mut versions, mut absent) = (Versions::new(), BTreeSet::new());
    for (key, now) in scenarios.iter().flat_map(|scenario| scenario.state.delta()) {
        let here = before.get(key);
        let same = match (here, now) {
            (Some(here), Some(now)) => Arc::ptr_eq(here, now),
            (None, None) => true,
            _ => false,
        };
        if same {
            continue;
        }
        if here.is_none() || now.is_none() {
            absent.insert(key.clone());
        }
        let all = versions.entry(key.clone()).or_insert_with(|| here.into_iter().cloned().collect());
        if let Some(now) = now
            && !all.iter().any(|known| Arc::ptr_eq(known, now))
        {
            all.push(now.clone());
        }
    }
    (versions, absent)
}
