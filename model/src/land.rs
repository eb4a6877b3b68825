//! The concrete choices around a change: which changes in flight have landed, how far a batch has come, and the scenario
//! that each makes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::annotations::CONFIRM_DELETE;
use crate::apply::{admits_evictions, apply, is_held};
use crate::change::{Change, Operation, Preconditions, Propagation, Request, User};
use crate::controllers::deployment::most_pods;
use crate::controllers::pod_template::is_kept;
use crate::controllers::replicas::replicas;
use crate::deletion::{Cause, DeletionClosure, cascade, given_up};
use crate::effects::{may_move_pods, propagate_template, released, scaled_down};
use crate::futures::{Moment, Step};
use crate::kinds::KindTraits;
use crate::navigate;
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::value::{Str, Val};

/// In how many ways changes in flight may have landed at most; beyond it the question is refused, since each is a scenario.
/// Ten changes make so many where all have an effect; more may matter where some have none.
pub const SCENARIOS_MAX: usize = 1 << 10;
/// How many changes in flight are looked at: there is a bit for each.
const IN_FLIGHT_MAX: usize = 24;

/// Who evicts pods beside a change, in words: a step says that it deletes the pod.
const EVICTOR: &str = "an eviction";

const OWNERS: [&str; 2] = ["metadata", "ownerReferences"];

impl Scenario<'_> {
    /// Lets one request take effect. False when the API server would not act on it.
    pub fn land(&mut self, request: &Request) -> bool {
        self.land_within(request, usize::MAX).effective
    }

    /// This scenario where somebody evicts these pods as well, right after what has landed; `None` where their budgets allow
    /// that not, or nothing would come of it. A budget's status is left as it was.
    pub fn beside_evictions(&self, pods: &BTreeSet<Key>) -> Option<Self> {
        if !admits_evictions(&self.state, pods) {
            return None;
        }
        let mut found = self.clone();
        for pod in pods {
            let user = User::named(EVICTOR);
            let deletion = Request::delete(user, &found.state, pod.clone(), None, Preconditions::default());
            if !found.land(&deletion) {
                return None;
            }
        }
        found.evicted.extend(pods.iter().cloned());
        Some(found)
    }

    /// [`Self::land`], with no more than `most` objects taken along by a deletion.
    fn land_within(&mut self, request: &Request, most: usize) -> Landing {
        for key in std::mem::take(&mut self.ended) {
            self.state.take(&key);
        }
        if is_its_controller(&self.state, request) {
            return Landing { effective: false, whole: true };
        }
        let old = self.state.get(&request.target).cloned();
        if let Some(pod) = old.as_ref().filter(|pod| request.restarts_pod() && request.is_about(pod)) {
            self.restarting.insert(pod.key.clone(), pod.uid.clone());
            if is_written(pod, request) {
                self.steps.push(Step { effect: describe(request), objects: vec![request.target.clone()] });
                return Landing { effective: true, whole: true };
            }
        }
        let applied = apply(&mut self.state, request);
        if !applied.effective {
            return Landing { effective: false, whole: true };
        }
        if let Some(workload) = self.state.get(&request.target).filter(|o| o.key.kind.has(KindTraits::has_scale)) {
            let wanted = most_pods(workload, replicas(workload));
            let most = self.most_wanted.entry(request.target.clone()).or_insert(wanted);
            *most = wanted.max(*most);
        }
        let written = old.zip(self.state.get(&request.target).cloned());
        if written.as_ref().is_some_and(|(old, new)| !is_kept(old, new)) {
            *self.template_changes.entry(request.target.clone()).or_default() += 1;
        }
        if written.as_ref().is_some_and(|(old, new)| self.ends_with(old, new)) {
            self.state.take(&request.target);
        }
        self.release(request, written.as_ref());
        let handed = written.as_ref().and_then(|(old, new)| propagate_template(&self.state, old, new));
        let lost = written.map_or_else(Vec::new, |(old, new)| match scaled_down(self, &old, &new) {
            Some((set, scaled)) => given_up(&self.state, &set, &scaled),
            None => given_up(&self.state, &old, &new),
        });
        let before: BTreeSet<Key> = self.in_deletion_closure.keys().cloned().collect();
        self.removed.extend(applied.deletions.iter().map(|(key, _)| key.clone()));
        let ends = |key: &Key| self.state.get(key).is_some_and(|o| o.finalizers().next().is_none());
        if request.options.int_at(&["gracePeriodSeconds"]) == Some(0) {
            let ended = applied.deletions.iter().map(|(key, _)| key).filter(|key| ends(key));
            self.ended_at_once.extend(ended.cloned());
        }
        let deleted = applied.deletions.iter().filter(|(key, propagation)| {
            key.kind.builtin_namespaced().is_none() && *propagation == Propagation::Background && ends(key)
        });
        self.ended = deleted.map(|(key, _)| key.clone()).collect();
        let whole = cascade(&mut self.state, &applied.deletions, &lost, &mut self.in_deletion_closure, most);
        self.steps.push(Step { effect: describe(request), objects: vec![request.target.clone()] });
        if let Some(workload) = handed {
            let effect = format!("the operator of {} hands on the new template", request.target);
            self.steps.push(Step { effect, objects: vec![workload.key.clone()] });
            *self.template_changes.entry(workload.key.clone()).or_default() += 1;
            self.state.put(workload);
        }
        let steps = one_after_the_other(&self.in_deletion_closure, &before);
        self.steps.extend(steps);
        Landing { effective: true, whole }
    }

    /// Releases a pod that was written, if its controller does. What a controller is told by another request, such as a
    /// scaling, it may do before it sees the pods that were to be released; what happens to pods it sees in its order.
    fn release(&mut self, request: &Request, written: Option<&(Arc<Object>, Arc<Object>)>) {
        if !request.target.kind.is("Pod") {
            for (key, owners) in std::mem::take(&mut self.released) {
                let pod = self.state.get(&key).filter(|pod| pod.live());
                let owned = pod.map(|pod| with_owners(pod, owners.clone()));
                if !tells_controllers(&self.state, &key, owned.as_ref(), request) {
                    self.released.insert(key, owners);
                    continue;
                }
                self.counted.remove(&key);
                if let Some(pod) = owned {
                    self.state.put(pod);
                }
            }
        }
        if let Some((old, pod, free)) = written.and_then(|(old, pod)| Some((old, pod, released(&self.state, pod)?))) {
            let controllers = [old, pod].map(|pod| pod.controller().map(|owner| owner.uid.clone()));
            if let [Some(before), Some(now)] = controllers
                && before == now
            {
                self.counted.insert(pod.key.clone(), now);
            }
            self.released.insert(pod.key.clone(), pod.val().at(&OWNERS).cloned().unwrap_or_default());
            self.state.put(free);
        }
    }

    /// Whether a write takes the last finalizer of an object that a request before it deleted: that completes the deletion
    /// (`apiserver/pkg/registry/generic/registry/store.go`, `ShouldDeleteDuringUpdate`). A pod may be given time to stop.
    fn ends_with(&self, old: &Object, new: &Object) -> bool {
        let asked = self.in_deletion_closure.get(&new.key).is_some_and(|(cause, _)| *cause == Cause::Requested);
        asked && !new.key.kind.is("Pod") && is_held(old) && !is_held(new)
    }
}

/// A pod with these owner references.
fn with_owners(pod: &Object, owners: Val) -> Object {
    pod.map_body(|val| val.with_at(&OWNERS, owners))
}

/// Whether a request may tell the controllers of a pod anything but what becomes of pods: it is about what owns the pod, which may
/// go with that, or about what may move it. A controller of other pods moves those; what is above both may move the one for the
/// other.
fn tells_controllers(state: &State<'_>, pod: &Key, owned: Option<&Object>, request: &Request) -> bool {
    let target = &request.target;
    let is_beside = |pod: &Object| {
        let above = navigate::all_above(state, pod);
        let above_target = || state.get(target).map(|target| navigate::all_above(state, target)).unwrap_or_default();
        above.contains(target) || !above.is_disjoint(&above_target())
    };
    let moves = may_move_pods(state, target, &pod.ns)
        && (!target.kind.has(KindTraits::decides) || owned.is_some_and(is_beside));
    moves || owned.is_some_and(|pod| navigate::is_below(state, pod, target))
}

/// What follows a request, in steps: each after the one that tells why its own object goes. What left `before` is told.
fn one_after_the_other(in_deletion_closure: &DeletionClosure, before: &BTreeSet<Key>) -> Vec<Step> {
    let mut by_object: BTreeMap<&Key, BTreeMap<Cause, Vec<Key>>> = BTreeMap::new();
    let mut following: BTreeSet<&Key> = BTreeSet::new();
    for (key, (cause, because)) in
        in_deletion_closure.iter().filter(|(key, (_, because))| !before.contains(*key) && *key != because)
    {
        by_object.entry(because).or_default().entry(*cause).or_default().push(key.clone());
        following.insert(key);
    }
    let mut open: VecDeque<Key> = by_object.keys().filter(|key| !following.contains(*key)).copied().cloned().collect();
    let mut steps = Vec::new();
    while let Some(because) = open.pop_front() {
        for (cause, objects) in by_object.remove(&because).into_iter().flatten() {
            open.extend(objects.iter().filter(|key| by_object.contains_key(*key)).cloned());
            let goes = if in_deletion_closure.contains_key(&because) { "goes" } else { "gives up ordinals" };
            steps.push(Step { effect: format!("{because} {goes}: {}", cause.text()), objects });
        }
    }
    steps
}

/// Whether a request is the deletion of an object by the controller that runs it: one of the futures of what set it going,
/// and no change to them.
fn is_its_controller(state: &State<'_>, request: &Request) -> bool {
    let account = request.user.username.strip_prefix("system:serviceaccount:kube-system:");
    let Some(account) = account.filter(|_| request.operation == Operation::Delete && request.subresource.is_empty())
    else {
        return false;
    };
    let target = &request.target.kind;
    let controller = state.get(&request.target).and_then(|object| navigate::controller_of(state, object));
    let removes = |traits: &KindTraits| traits.removes.iter().any(|(kind, name)| target.is(kind) && *name == account);
    controller.is_some_and(|owner| owner.key.kind.has(removes))
}

/// Whether an object is a later version than the one that a request writes.
fn is_written(object: &Object, request: &Request) -> bool {
    let version = |text: &Str| text.parse::<u64>().ok();
    let then = request.old.as_ref().and_then(|old| old.str_at(&["metadata", "resourceVersion"])).and_then(version);
    version(&object.resource_version).zip(then).is_some_and(|(now, then)| now > then)
}

/// What came of a request.
struct Landing {
    /// Whether the API server acts on it.
    effective: bool,
    /// Whether all that it takes along is marked.
    whole: bool,
}

/// What a request does, in words.
pub fn describe(request: &Request) -> String {
    let verb = match (request.operation, request.subresource.as_str()) {
        (Operation::Create, "eviction") => "evicts",
        (Operation::Create, "binding") => "binds",
        (Operation::Create, _) => "creates",
        (Operation::Update, "scale") => "scales",
        (Operation::Update, _) => "updates",
        (Operation::Delete, _) => "deletes",
        (Operation::Connect, _) => "connects to",
    };
    let extent = match request.replicas() {
        Some(replicas) if request.subresource == "scale" => format!(" to {replicas}"),
        _ => String::new(),
    };
    format!("{} {verb} {}{extent}", request.user.username, request.target)
}

/// Changes in flight may have landed in more ways than are told apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{count} changes are in flight and touch this, and may have landed in more than the {max} ways that are told apart"
)]
pub struct TooManyInFlight {
    /// How many changes.
    pub count: usize,
    /// How many ways at most.
    pub max: usize,
}

/// The scenarios with the change applied: every subset of the changes in flight has landed, and (During) every prefix
/// of a batch, (`AtOnce`) every one that does not end between two deletions, (After) the whole of it. Without a change: the
/// subsets alone.
///
/// # Errors
/// When changes in flight may have landed in more than [`SCENARIOS_MAX`] ways.
pub fn scenarios<'a>(
    snapshot: &'a Snapshot,
    in_flight: &[&Request],
    change: Option<&Change>,
    moment: Moment,
) -> Result<Vec<Scenario<'a>>, TooManyInFlight> {
    scenarios_within(snapshot, in_flight, change, moment, usize::MAX).map(|(all, _)| all)
}

/// [`scenarios`], with no more than `most` objects taken along by the deletions of one request, and whether that is all.
/// A truncated closure is still sound for During: each of its states also occurs on the way to the full closure.
///
/// # Errors
/// When changes in flight may have landed in more than [`SCENARIOS_MAX`] ways.
pub fn scenarios_within<'a>(
    snapshot: &'a Snapshot,
    in_flight: &[&Request],
    change: Option<&Change>,
    moment: Moment,
    most: usize,
) -> Result<(Vec<Scenario<'a>>, bool), TooManyInFlight> {
    let proven = change.map_or(0, |change| proven(in_flight, change));
    let (starts, mut whole) = starts(snapshot, in_flight, proven, most, SCENARIOS_MAX)?;
    let Some(change) = change else { return Ok((starts, whole)) };
    let mut all = Vec::new();
    let last = change.requests.len();
    for mut start in starts {
        for (at, request) in change.requests.iter().enumerate() {
            whole &= start.land_within(request, most).whole;
            let counts = match moment {
                Moment::During => true,
                Moment::AtOnce => !change.goes_with_next(at),
                Moment::After => false,
            };
            if counts || at + 1 == last {
                all.push(start.clone());
            }
        }
    }
    Ok((all, whole))
}

/// What a change is compared with: the clusters without it, for each subset of the changes in flight. A confirmation that it
/// takes back (`confirm-delete`) is taken back there as well: to take one back is free, and what was let through for its sake
/// is no new breakage.
///
/// # Errors
/// When changes in flight may have landed in more than [`SCENARIOS_MAX`] ways.
pub fn without<'a>(
    snapshot: &'a Snapshot,
    in_flight: &[&Request],
    change: &Change,
    most: usize,
) -> Result<(Vec<Scenario<'a>>, bool), TooManyInFlight> {
    let (mut starts, whole) = starts(snapshot, in_flight, 0, most, SCENARIOS_MAX)?;
    let written = || change.requests.iter().filter(|request| request.operation == Operation::Update);
    for start in &mut starts {
        let confirmed = written().filter_map(|request| start.state.get(&request.target));
        let confirmed: Vec<Arc<Object>> = confirmed.filter(|object| navigate::is_confirmed(object)).cloned().collect();
        if confirmed.is_empty() {
            continue;
        }
        let mut end = start.state.clone();
        for request in &change.requests {
            apply(&mut end, request);
        }
        let taken_back = |object: &&Arc<Object>| {
            end.get(&object.key).is_some_and(|now| now.uid == object.uid && !navigate::is_confirmed(now))
        };
        for object in confirmed.iter().filter(taken_back) {
            start.state.put(object.map_body(|val| val.without_at(&["metadata", "annotations", CONFIRM_DELETE])));
        }
    }
    Ok((starts, whole))
}

/// A scenario for each subset of the changes in flight that may have landed, those that have for certain among them, and
/// whether they mark all that is taken along; no more than `ways_max`.
fn starts<'a>(
    snapshot: &'a Snapshot,
    in_flight: &[&Request],
    proven: u32,
    most: usize,
    ways_max: usize,
) -> Result<(Vec<Scenario<'a>>, bool), TooManyInFlight> {
    let too_many = || TooManyInFlight { count: in_flight.len(), max: ways_max };
    if in_flight.len() > IN_FLIGHT_MAX {
        return Err(too_many());
    }
    let (mut all, mut whole) = (vec![Scenario::observed(snapshot)], true);
    for (at, landed) in in_flight.iter().enumerate() {
        let bit = 1 << at;
        let mut with = Vec::new();
        for start in &all {
            let mut start = start.clone();
            let landing = start.land_within(landed, most);
            // a change without effect is the same scenario as the one where it has not landed
            if landing.effective {
                start.landed |= bit;
                whole &= landing.whole;
                with.push(start);
            }
        }
        if proven & bit != 0 {
            all.clear();
        }
        all.extend(with);
        if all.len() > ways_max {
            return Err(too_many());
        }
    }
    for start in all.iter_mut().filter(|start| start.landed != 0) {
        start.left_by_landed = Arc::new(start.state.delta().clone());
    }
    Ok((all, whole))
}

/// In how many ways changes in flight may have landed before a change, if that are no more than these, and no more than
/// [`SCENARIOS_MAX`].
///
/// # Errors
/// When there are more.
pub fn ways_to_land(
    snapshot: &Snapshot,
    in_flight: &[&Request],
    change: &Change,
    ways_max: usize,
) -> Result<usize, TooManyInFlight> {
    let ways_max = ways_max.min(SCENARIOS_MAX);
    starts(snapshot, in_flight, proven(in_flight, change), 0, ways_max).map(|(all, _)| all.len())
}

/// An object before a request and after it.
pub type Versions = (Option<Arc<Object>>, Option<Arc<Object>>);

/// The objects that a request changes as it lands, as they are before it and after it, whatever of these in flight
/// has landed before it.
///
/// # Errors
/// When changes in flight may have landed in more than [`SCENARIOS_MAX`] ways.
pub fn changes(
    snapshot: &Snapshot,
    in_flight: &[&Request],
    request: &Request,
) -> Result<Vec<Versions>, TooManyInFlight> {
    let mut changed = Vec::new();
    for start in starts(snapshot, in_flight, 0, usize::MAX, SCENARIOS_MAX)?.0 {
        let mut end = start.clone();
        end.land(request);
        let keys: BTreeSet<&Key> = start.state.delta().keys().chain(end.state.delta().keys()).collect();
        for key in keys {
            let versions = (start.state.get(key).cloned(), end.state.get(key).cloned());
            let is_same = |(before, after): (&Arc<Object>, &Arc<Object>)| Arc::ptr_eq(before, after);
            if !versions.0.as_ref().zip(versions.1.as_ref()).is_some_and(is_same) {
                changed.push(versions);
            }
        }
        // the controller that releases it may count it yet, which another request tells
        let released = end.released.iter().filter(|(key, owners)| start.released.get(*key) != Some(*owners));
        changed.extend(released.filter_map(|(key, owners)| {
            let owned = with_owners(end.state.get(key)?, owners.clone());
            Some((start.state.get(key).cloned(), Some(Arc::new(owned))))
        }));
        let restarting = end.restarting.keys().filter_map(|key| start.state.get(key));
        changed.extend(restarting.map(|pod| (Some(pod.clone()), Some(pod.clone()))));
    }
    Ok(changed)
}

/// Those of the creations in flight that have landed for certain, a bit for each: what a change writes names their object as
/// an owner by its uid, which its author can know from the answer to the creation or from a watch only.
fn proven(in_flight: &[&Request], change: &Change) -> u32 {
    let uid_of = |object: &Val| object.str_at(&["metadata", "uid"]).filter(|uid| !uid.is_empty()).cloned();
    let written = change.requests.iter().filter_map(|request| request.object.as_ref());
    let owners = written.flat_map(|object| object.items_at(&["metadata", "ownerReferences"]));
    let named: BTreeSet<Str> = owners.filter_map(|owner| owner.str_at(&["uid"]).cloned()).collect();
    let is_named = |request: &Request| {
        let made = request.object.as_ref().filter(|_| request.operation == Operation::Create);
        made.and_then(uid_of).is_some_and(|uid| named.contains(&uid))
    };
    // more are refused by `starts`
    let each = in_flight.iter().take(IN_FLIGHT_MAX).enumerate().filter(|(_, request)| is_named(request));
    each.fold(0, |bits, (at, _)| bits | (1 << at))
}

#[cfg(test)]
mod tests;
