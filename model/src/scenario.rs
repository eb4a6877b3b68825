//! One concrete cluster from which effects start: data, and what is read off it. `land` makes one of a request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::deletion::DeletionClosure;
use crate::futures::Step;
use crate::object::{Key, Object};
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::value::{Str, Val};

/// One concrete cluster from which effects start.
#[derive(Clone, Debug)]
pub struct Scenario<'a> {
    /// The cluster, with everything that leaves marked.
    pub state: State<'a>,
    /// Which changes in flight have landed, a bit for each.
    pub landed: u32,
    /// What leaves, and why.
    pub in_deletion_closure: DeletionClosure,
    /// What has happened so far, for the report.
    pub steps: Vec<Step>,
    /// Pods that a request removes (deletion, eviction), which controllers did not account for.
    pub removed: BTreeSet<Key>,
    /// Pods that somebody evicts beside the change, as an invariant may have to survive.
    pub evicted: BTreeSet<Key>,
    /// Pods that requests remove at once: their deletion leaves no grace period, as a kubelet's once containers have stopped.
    pub(crate) ended_at_once: BTreeSet<Key>,
    /// Custom resources that are gone by the next request: it deleted them, and nothing holds them.
    pub(crate) ended: Vec<Key>,
    /// Pods that their controllers release since a write, with the owner references that it left them.
    pub(crate) released: BTreeMap<Key, Val>,
    /// Those that their controllers may have counted before.
    pub(crate) counted: BTreeMap<Key, Str>,
    /// Pods whose containers restart for what requests changed in place, with their uids.
    pub(crate) restarting: BTreeMap<Key, Str>,
    /// How often requests gave a workload another template.
    pub template_changes: BTreeMap<Key, i64>,
    /// The most pods that a workload wanted at a time, its surge included, of those that requests wrote.
    pub(crate) most_wanted: BTreeMap<Key, i64>,
    /// What the changes in flight that have landed left otherwise than the watch shows it.
    pub(crate) left_by_landed: Arc<BTreeMap<Key, Option<Arc<Object>>>>,
}

impl<'a> Scenario<'a> {
    /// The observed cluster, nothing in flight.
    pub fn observed(snapshot: &'a Snapshot) -> Self {
        Self {
            state: State::new(snapshot),
            landed: 0,
            in_deletion_closure: DeletionClosure::new(),
            steps: Vec::new(),
            removed: BTreeSet::new(),
            evicted: BTreeSet::new(),
            ended_at_once: BTreeSet::new(),
            ended: Vec::new(),
            released: BTreeMap::new(),
            counted: BTreeMap::new(),
            restarting: BTreeMap::new(),
            template_changes: BTreeMap::new(),
            most_wanted: BTreeMap::new(),
            left_by_landed: Arc::default(),
        }
    }

    /// That of these scenarios without the change with which this one, with it, is compared: the same has landed there of what is
    /// in flight. Where what is in flight may be refused yet, nothing of it has landed without the change, and there is but one.
    pub fn counterpart<'s>(&self, without: &'s [Self]) -> Option<&'s Self> {
        without.iter().find(|other| other.landed == self.landed || without.len() == 1)
    }

    /// The objects about which two scenarios of one snapshot differ. What depends on no other object has the same futures in both.
    pub fn differences(&self, other: &Self) -> BTreeSet<Key> {
        // what a request wrote as it was concerns it all the same
        let mut found = differing(self.state.delta(), other.state.delta());
        found.extend(differing(&self.in_deletion_closure, &other.in_deletion_closure));
        found.extend(self.removed.symmetric_difference(&other.removed).cloned());
        found.extend(self.ended_at_once.symmetric_difference(&other.ended_at_once).cloned());
        let ended = |here: &Self, there: &Self| {
            here.ended.iter().filter(|key| !there.ended.contains(key)).cloned().collect::<Vec<_>>()
        };
        found.extend(ended(self, other).into_iter().chain(ended(other, self)));
        found.extend(differing(&self.released, &other.released));
        found.extend(differing(&self.counted, &other.counted));
        found.extend(differing(&self.restarting, &other.restarting));
        found.extend(differing(&self.template_changes, &other.template_changes));
        found.extend(differing(&self.most_wanted, &other.most_wanted));
        found
    }

    /// A workload before the change, as its controller has gone by it: as what is in flight left it where its status says
    /// that the controller has seen that, which a watch would show a little later; else as the watch shows it.
    pub fn seen_by_its_controller(&self, key: &Key) -> Option<&Arc<Object>> {
        let landed = self.left_by_landed.get(key).and_then(Option::as_ref).filter(|object| object.observed());
        landed.or_else(|| self.state.base().get(key))
    }

    /// Whether the containers of a pod restart for what requests changed in place: it is not ready for a while.
    pub fn restarts(&self, pod: &Object) -> bool {
        self.restarting.get(&pod.key).is_some_and(|uid| *uid == pod.uid)
    }

    /// Whether there ever was such an object: the watch shows it, or a request that landed made it or took it away. What
    /// was never made is nothing to be kept.
    pub fn ever_existed(&self, key: &Key) -> bool {
        self.state.get(key).is_some()
            || self.state.base().get(key).is_some()
            || self.steps.iter().any(|step| step.objects.contains(key))
    }

    /// The pods that a controller of this uid had, and releases since a write.
    pub fn released_from<'s>(&'s self, uid: &'s str) -> impl Iterator<Item = &'s Key> {
        self.counted.iter().filter(move |(_, controller)| ***controller == *uid).map(|(key, _)| key)
    }
}

/// The keys under which two maps have something else.
fn differing<V: PartialEq>(one: &BTreeMap<Key, V>, other: &BTreeMap<Key, V>) -> BTreeSet<Key> {
    let differs = |key: &&Key| one.get(*key) != other.get(*key);
    one.keys().chain(other.keys()).filter(differs).cloned().collect()
}
