//! Whose pods may find no place any more, or may be preempted: the inverse of questions about places.

use std::collections::BTreeSet;
use std::sync::Arc;

use suture_model::effects::not_ready;
use suture_model::kinds::KindTraits;
use suture_model::navigate;
use suture_model::object::{Key, Object};
use suture_model::placement::{self, Lacking};
use suture_model::state::State;

use super::pods::Touch;
use super::seeds::Seeds;

/// What a change does to places.
pub(super) enum Changed {
    /// These pods go or are others; they matter to those whose affinity or spreading means them.
    Pods(Vec<Arc<Object>>),
    /// Nodes have other room, or other pods.
    Room,
    /// What pods ask for.
    Everything,
}

/// What the change does to places that matters to workloads which it is not about.
pub(super) fn changed(seeds: &Seeds<'_, '_>) -> Changed {
    // a class that is as it was to pods is none that pods are placed by otherwise; with a namespace goes what is in it
    let decides = |key: &Key| match key.kind.is("Namespace") {
        true => seeds.before.get(key).is_none() || is_relabelled(seeds.versions(key)),
        false => key.kind.has(KindTraits::decides_requests) && differs(seeds.versions(key)),
    };
    if seeds.touched().any(decides) {
        return Changed::Everything;
    }
    let pods: BTreeSet<&Key> = seeds.touched().filter(|key| key.kind.is("Pod")).collect();
    let takes_room = pods.iter().any(|key| comes(seeds, key));
    if takes_room || changes_nodes(seeds) {
        return Changed::Room;
    }
    let meant = pods.into_iter().flat_map(|key| seeds.versions(key)).filter(|pod| !pod.node.is_empty());
    Changed::Pods(meant.cloned().collect())
}

/// Whether objects differ in their labels.
fn is_relabelled(versions: &[Arc<Object>]) -> bool {
    versions.iter().zip(versions.iter().skip(1)).any(|(a, b)| a.labels() != b.labels())
}

/// Whether objects differ in anything but their metadata, or in their labels.
fn differs(versions: &[Arc<Object>]) -> bool {
    let Some((first, rest)) = versions.split_first() else { return true };
    let content = |o: &Object| (o.live(), o.labels().clone(), o.val().without_at(&["metadata"]));
    rest.is_empty() || rest.iter().any(|other| content(other) != content(first))
}

/// Whether a node comes, goes, or changes in what it takes.
fn changes_nodes(seeds: &Seeds<'_, '_>) -> bool {
    let is_ready = |node: &Arc<Object>| not_ready(node);
    let recovers = |versions: &[Arc<Object>]| {
        versions.split_first().is_some_and(|(first, rest)| rest.iter().any(|other| is_ready(other) != is_ready(first)))
    };
    seeds.moves_places() || seeds.touched().any(|key| key.kind.is("Node") && recovers(seeds.versions(key)))
}

/// What asks by affinity or spreading for something of one of these pods, as far as it may.
pub(super) fn meaning(seeds: &Seeds<'_, '_>, pods: &[Arc<Object>]) -> BTreeSet<Key> {
    let mut distinct: Vec<&Arc<Object>> = pods.iter().collect();
    distinct.dedup_by(|a, b| a.key.ns == b.key.ns && Arc::ptr_eq(&a.body, &b.body));
    let mut found = BTreeSet::new();
    for (state, pod) in seeds.states().flat_map(|state| distinct.iter().map(move |pod| (state, pod))) {
        let related = state.related_to(&pod.key.ns, pod.labels()).into_iter();
        found.extend(related.filter(|object| placement::may_mean(state, object, pod)).map(|object| object.key.clone()));
    }
    found
}

/// What may want more pods than are placed as it asks once the change has landed: of the kinds of which that is kept, and of
/// some other objects those that do.
pub(super) fn lacking(seeds: &Seeds<'_, '_>, others: &BTreeSet<Key>) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    for state in seeds.scenarios() {
        let lacking = Lacking::new(state);
        found.extend(lacking.kept().keys().cloned());
        let lacks = |key: &&Key| state.get(key).is_some_and(|object| lacking.has(object));
        found.extend(others.iter().filter(lacks).cloned());
    }
    found
}

/// The workloads, and pods, that the new pods of touched workloads may preempt; `None` where that is not known.
pub(super) fn preempted(seeds: &Seeds<'_, '_>, touch: &Touch) -> Option<BTreeSet<Key>> {
    let mut found = BTreeSet::new();
    let all = !matches!(changed(seeds), Changed::Pods(_)) || seeds.touched().any(|key| decides_who_goes(seeds, key));
    let touched: BTreeSet<&Key> = seeds.touched().chain(&touch.controllers).collect();
    for state in seeds.states() {
        let touched = touched.iter().filter_map(|key| state.get(key));
        let touched: Vec<&Arc<Object>> = touched.filter(|object| navigate::is_workload(state, object)).collect();
        let others = if all { preempting(state) } else { Vec::new() };
        for workload in touched.into_iter().chain(others) {
            found.extend(placement::preempted_by(state, workload).ok()?);
        }
    }
    Some(found)
}

/// Whether a change of an object that makes no pods decides whom others preempt: a budget that comes, goes or says something
/// else, or a class that pods may have. What the status of a budget says follows from pods.
fn decides_who_goes(seeds: &Seeds<'_, '_>, key: &Key) -> bool {
    if key.kind.is("PodDisruptionBudget") {
        return seeds.differs(key, |a, b| a.live() != b.live() || a.val().get("spec") != b.val().get("spec"));
    }
    let may_be = |class: &Arc<Object>| seeds.states().any(|state| navigate::may_be_priority(state, class));
    key.kind.is("PriorityClass") && seeds.versions(key).iter().any(may_be)
}

/// Whether a pod takes room with the change that it does not take without.
fn comes(seeds: &Seeds<'_, '_>, key: &Key) -> bool {
    let placed = |state: &'_ State<'_>| state.get(key).filter(|pod| !pod.node.is_empty()).cloned();
    let takes_more = |pod: &Object, before: &Object| before.val().get("spec") != pod.val().get("spec");
    seeds.compared().any(|(with, without)| {
        let (now, before) = (placed(with), placed(without));
        now.is_some_and(|now| before.is_none_or(|before| before.node != now.node || takes_more(&now, &before)))
    })
}

/// What may preempt others and may lack pods.
fn preempting<'s>(state: &'s State<'_>) -> Vec<&'s Arc<Object>> {
    placement::lacking_may_outrank(state, &Lacking::new(state), i64::MIN)
}
