//! Which pods belong to which workload: control, adoption and release.

use std::sync::Arc;

use super::parents::{CONTROLLER_DEPTH_MAX, decider, decides};
use crate::controllers::statefulset;
use crate::controllers::statefulset::ordinal_labels;
use crate::kinds::{Kind, KindTraits};
use crate::navigate;
use crate::object::{Key, Object};
use crate::state::State;

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
        let is_above = next.key.kind.has(KindTraits::decides) || (top.kind.is("Pod") && decides(state, next));
        if is_above {
            top = next.key.clone();
        }
        at = next;
    }
    let undecided = top.kind.is("Pod") && object.key.kind.is("Pod");
    undecided.then(|| decider(state, object)).flatten().unwrap_or(top)
}

/// The controller that adopts a pod without one (`pkg/controller/controller_ref_manager.go`).
fn adopter(state: &State<'_>, pod: &Object) -> Option<Object> {
    Kind::adopting().iter().find_map(|kind| {
        let candidates = state.selecting(kind, &pod.key.ns, pod.labels());
        candidates.into_iter().find(|o| o.live() && adopts(state, o, pod)).map(|o| (**o).clone())
    })
}

/// The ReplicaSets that a Deployment controls or would adopt, in the order of their keys.
pub fn replica_sets_of(state: &State<'_>, deployment: &Object) -> Vec<Arc<Object>> {
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

/// Whether this controller would adopt this pod if nothing controls it.
pub fn adopts(state: &State<'_>, controller: &Object, pod: &Object) -> bool {
    let matches = navigate::selector_of(state, controller)
        .is_some_and(|selector| !selector.is_empty() && selector.matches(pod.labels()));
    matches && (!controller.key.kind.is("StatefulSet") || statefulset::pod_ordinal(controller, &pod.key.name).is_some())
}

/// A pod without its controller, where its labels are not the controller's any more: that releases it, and makes another
/// one (`pkg/controller/controller_ref_manager.go`, `ClaimObject`). A StatefulSet makes none under a name that is taken.
pub fn released(state: &State<'_>, pod: &Object) -> Option<Object> {
    let releases = |o: &&Arc<Object>| o.key.kind.has(KindTraits::replaces_released);
    let controller = navigate::controller_of(state, pod).filter(releases).filter(|o| o.live())?;
    let selector = navigate::selector_of(state, controller).filter(|selector| !selector.is_empty())?;
    let is_out = pod.key.kind.is("Pod") && pod.live() && !selector.matches(pod.labels());
    is_out.then(|| pod.without_owner(&controller.uid))
}

/// Whether what happens to an object may make pods of a namespace come or go, apart from what goes with it: not what pods only
/// name, what is in another namespace, or a custom resource that no adapter explains.
pub fn may_move_pods(state: &State<'_>, key: &Key, ns: &str) -> bool {
    let is_elsewhere = !key.ns.is_empty() && *key.ns != *ns || key.kind.is("Namespace") && *key.name != *ns;
    match key.kind.traits() {
        Some(traits) => traits.moves_pods() && !is_elsewhere,
        None => state.base().adapters().kinds().contains(&key.kind),
    }
}

/// The pods that a controller controls or would adopt, in the order of their names.
pub fn pods_of(state: &State<'_>, controller: &Object) -> Vec<Arc<Object>> {
    let pod = Kind::new("", "Pod");
    let own = |p: &Object| p.key.kind == pod && p.controller().is_some_and(|c| c.uid == controller.uid);
    let mut pods: Vec<Arc<Object>> = state.owned_by(&controller.uid).into_iter().filter(|p| own(p)).cloned().collect();
    if let Some(selector) = navigate::selector_of(state, controller).filter(|s| !s.is_empty()) {
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

/// The StatefulSet that would make a pod under the name of this one, which is not its own: it cannot as long as this one is there.
pub fn namesake<'s>(state: &'s State<'_>, pod: &Object) -> Option<&'s Arc<Object>> {
    let (name, ordinal) = pod.key.name.rsplit_once('-')?;
    statefulset::ordinal(ordinal)?;
    let set = state.get(&Key::of("StatefulSet", &pod.key.ns, name))?;
    pod.controller().is_none_or(|owner| owner.uid != set.uid).then_some(set)
}

/// The StatefulSets that make another pod under the name of one of these, with the labels that this one got for it, once it
/// has gone, although it is not the set's (any more).
pub fn heirs<'s>(state: &'s State<'_>, pods: &[&Arc<Object>]) -> Vec<&'s Arc<Object>> {
    // pods of one body have these labels or none has
    let alike = pods.chunk_by(|a, b| Arc::ptr_eq(&a.body, &b.body));
    let named = alike.filter(|pods| pods.first().is_some_and(|pod| ordinal_labels(pod.labels()).next().is_some()));
    let heir = |pod: &&Arc<Object>| namesake(state, pod).filter(|_| pod.controller().is_some());
    named.flatten().filter_map(heir).collect()
}
