//! Which pods somebody may evict beside a change so that the answer to a question is another one.
//!
//! Those are the pods that the question read, those above what it read by owner references, and those that use what is being
//! deleted. Of pods that it does not tell apart one stands for all. That evicted pods leave room, or a node to others that
//! may not be beside them, is not looked at.

use std::collections::BTreeSet;

use suture_model::navigate::owner_object;
use suture_model::object::{Key, Object};
use suture_model::references::names_its_own;
use suture_model::state::State;

use crate::scene::Scene;

/// In how many ways pods are evicted in one scenario for one question; more is refused.
pub const EVICTIONS_MAX: usize = 4096;

/// More evictions than are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are more than {EVICTIONS_MAX} different ways to evict so many pods")]
pub struct TooManyEvictions;

/// The pods of which each may be evicted next, given the scene of a question with all that it read.
pub fn evictable(scene: &Scene<'_, '_>) -> BTreeSet<Key> {
    let state = scene.state();
    let (mut found, mut others) = (BTreeSet::new(), scene.owned_read.clone());
    others.extend(scene.grain.instance_key.clone());
    for encoded in scene.encoded_groups() {
        for class in &encoded.classes {
            let entities = class.entities.iter().filter_map(|at| encoded.group.entities.get(*at));
            let here = entities.filter_map(|entity| state.get(entity.key()?));
            let mut is_stood_for = false;
            for object in here {
                if !object.key.kind.is("Pod") {
                    others.insert(object.key.clone());
                } else if may_be_evicted(object) {
                    let is_like_others = !has_its_own(state, object);
                    if !(is_like_others && is_stood_for) {
                        found.insert(object.key.clone());
                    }
                    is_stood_for |= is_like_others;
                }
            }
        }
    }
    found.extend(pods_that_keep(state, others));
    found
}

/// Whether an eviction makes any difference: the pod is not on its way out already.
fn may_be_evicted(pod: &Object) -> bool {
    pod.live() && !pod.in_deletion_closure
}

/// Whether something goes, or may go, with this pod alone.
fn has_its_own(state: &State<'_>, pod: &Object) -> bool {
    names_its_own(pod) || !state.owned_by(&pod.uid).is_empty()
}

/// The pods with which some of these objects go, or without which they may go.
fn pods_that_keep(state: &State<'_>, objects: BTreeSet<Key>) -> BTreeSet<Key> {
    let (mut looked, mut found) = (objects.clone(), BTreeSet::new());
    let mut open: Vec<Key> = objects.into_iter().collect();
    while let Some(key) = open.pop() {
        // the instance may be gone already
        let Some(object) = state.get(&key) else { continue };
        let users = if object.live() { Vec::new() } else { state.referrers(&object.key) };
        let owners = object.owners().iter().filter_map(|owner| owner_object(state, object, owner));
        for above in owners.chain(users).filter(|above| looked.insert(above.key.clone())) {
            if !above.key.kind.is("Pod") {
                open.push(above.key.clone());
            } else if may_be_evicted(above) {
                found.insert(above.key.clone());
            }
        }
    }
    found
}
