//! Claims and volumes: what a claim is bound to, and which pod it goes with.

use std::sync::Arc;

use super::owners::controller_of;
use crate::controllers::statefulset::pod_ordinal;
use crate::fields::{claim_ordinal, gives_up};
use crate::object::{Key, Object};
use crate::state::State;

/// Whether a claim goes with this pod: their StatefulSet gives up the ordinal of both.
pub fn goes_with_pod(state: &State, pod: &Object, claim: &Object) -> bool {
    pod.key.ns == claim.key.ns
        && controller_of(state, pod).is_some_and(|set| {
            gives_up(set, &claim.key.name) && claim_ordinal(set, &claim.key.name) == pod_ordinal(set, &pod.key.name)
        })
}

/// The volume that a claim is bound to: the one it names, else the one that names it by uid
/// (`pkg/controller/volume/persistentvolume/pv_controller.go`, `syncBoundClaim`, `IsVolumeBoundToClaim`).
pub fn volume<'s>(state: &'s State, claim: &Object) -> Option<&'s Arc<Object>> {
    if let Some(name) = claim.val().str_at(&["spec", "volumeName"]).filter(|n| !n.is_empty()) {
        return state.get(&Key::of("PersistentVolume", "", name)).filter(|v| names_claim(v, claim, false));
    }
    state.claimed_by(&claim.key).into_iter().find(|v| names_claim(v, claim, true))
}

/// The claims that have a volume: the one that it is bound to, if it exists, or while it is bound to none those that name it.
pub fn claims_of<'s>(state: &'s State, volume: &Object) -> Vec<&'s Arc<Object>> {
    let bound = volume.val().at_some(&["spec", "claimRef"]).is_some();
    let claim =
        volume.val().str_at(&["spec", "claimRef", "namespace"]).zip(volume.val().str_at(&["spec", "claimRef", "name"]));
    let claim = claim.and_then(|(ns, name)| state.get(&Key::of("PersistentVolumeClaim", ns, name)));
    let named = if bound { Vec::new() } else { state.referrers(&volume.key) };
    let claims = claim.into_iter().chain(named).filter(|claim| claim.key.kind.is("PersistentVolumeClaim"));
    claims.filter(|claim| names_claim(volume, claim, bound)).collect()
}

/// Whether a volume's claimRef is this claim; a volume without one may still become the claim's unless `strict`.
fn names_claim(volume: &Object, claim: &Object, strict: bool) -> bool {
    let Some(reference) = volume.val().at_some(&["spec", "claimRef"]) else { return !strict };
    let uid = reference.str_at(&["uid"]).map_or("", |u| u);
    reference.str_at(&["namespace"]).is_some_and(|ns| *ns == claim.key.ns)
        && reference.str_at(&["name"]).is_some_and(|n| *n == claim.key.name)
        && (uid.is_empty() || claim.uid.is_empty() || *uid == *claim.uid)
}
