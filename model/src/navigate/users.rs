//! Who uses an object now, and whether what an object names is there.

use std::sync::Arc;

use super::owners::{controller_of, leaves_with_controller};
use super::storage::{goes_with_pod, wants_claim};
use super::template::{finished, is_spent};
use super::{UnknownKind, known};
use crate::cascade::expected_to_go;
use crate::kinds::{Kind, KindTraits};
use crate::object::{Key, Object};
use crate::references::{Reference, references};
use crate::state::State;
use crate::value::Str;

/// The live objects that need `target` now, in the order of their keys.
///
/// By reference; for a claim also StatefulSets by ordinal, custom resources by claim selector, and workloads whose
/// template names it although they want no pods at the moment. Left out: what is leaving or terminating, what goes with
/// its controller, the pod that takes the claim along when its StatefulSet scales down or that owns it, what is finished
/// (a finished pod mounts nothing, though pvc-protection lets its claim wait for it: `pvc_protection_controller.go`,
/// `podUsesPVC`), and ReplicaSets at 0 that have a controller.
pub fn live_referrers<'s>(state: &'s State, target: &Object) -> Vec<&'s Arc<Object>> {
    let mut found = users(state, target);
    // the collector takes a claim after the pod that owns it; a request may at any moment
    let follows =
        |pod: &Object| !target.in_deletion_closure && target.owners().iter().any(|owner| owner.uid == pod.uid);
    found.retain(|o| !(o.key.kind.is("Pod") && follows(o)));
    found
}

/// [`live_referrers`], the pods that own the target among them.
fn users<'s>(state: &'s State, target: &Object) -> Vec<&'s Arc<Object>> {
    let is_claim = target.key.kind.is("PersistentVolumeClaim");
    let adapters = state.base().adapters().as_ref();
    let by_name = state.referrers(&target.key).into_iter().filter(|o| {
        references(o, adapters)
            .iter()
            .any(|r| r.target.means(&target.key) && !r.write && (is_claim || (r.needed && !r.optional)))
    });
    let mut found: Vec<&Arc<Object>> = by_name.collect();
    if is_claim {
        found.extend(claimants(state, target));
    }
    found.retain(|o| stays_in_use(state, o) && !(is_spent(o) && controller_of(state, o).is_some()));
    if is_claim {
        found.retain(|o| !goes_with_pod(state, o, target));
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found.dedup_by(|a, b| a.key == b.key);
    found
}

/// The StatefulSets and custom resources that want a claim without naming it.
fn claimants<'s>(state: &'s State, claim: &Object) -> Vec<&'s Arc<Object>> {
    let ns = Some(&*claim.key.ns);
    let sets = state.list(&Kind::new("apps", "StatefulSet"), ns).into_iter();
    let mut found: Vec<&Arc<Object>> = sets.filter(|set| wants_claim(set, &claim.key.name)).collect();
    for kind in state.base().adapters().kinds() {
        found.extend(state.list(&kind, ns).into_iter().filter(|custom| {
            let facts = state.adapter(custom);
            facts.is_some_and(|f| f.claim_selector.as_ref().is_some_and(|s| s.matches(claim.labels())))
        }));
    }
    found
}

/// Whether a claim that is being deleted stays for the time being, since a pod on a node uses it that stays as well
/// (`pkg/controller/volume/pvcprotection/pvc_protection_controller.go`, `isBeingUsed`). That such a pod may go by its
/// controller's doing is left aside.
pub fn is_protected(state: &State, claim: &Object) -> bool {
    let by_controller = |finalizer: &Str| &**finalizer == "kubernetes.io/pvc-protection";
    let pods = || users(state, claim).into_iter().filter(|user| user.key.kind.is("Pod"));
    claim.terminating()
        && claim.key.kind.is("PersistentVolumeClaim")
        && claim.finalizers().any(by_controller)
        && pods().any(|pod| !pod.node.is_empty())
}

/// Whether an object is there to stay, and at work: it goes neither with its controller nor after it.
pub fn stays_in_use(state: &State, object: &Object) -> bool {
    object.live() && !finished(object) && !leaves_with_controller(state, object) && !expected_to_go(state, object)
}

/// The kinds that were not read and of which an object might use `target`: while there are any, an empty answer of
/// [`live_referrers`] proves nothing.
pub fn unread_users(state: &State, target: &Object) -> Vec<Str> {
    let unknown = state.base().unknown();
    if !target.key.kind.is("PersistentVolumeClaim") {
        return unknown.iter().cloned().collect();
    }
    let custom = state.base().adapters().kinds();
    // a claim is mounted by pods
    let users = |kind: &Str| {
        KindTraits::named(kind).is_some_and(KindTraits::runs_pods) || custom.iter().any(|c| c.kind == *kind)
    };
    unknown.iter().filter(|kind| users(kind)).cloned().collect()
}

/// Whether what a reference names is there to stay, with the keys it asks for.
///
/// Every live namespace has a ServiceAccount `default` (`pkg/controller/serviceaccount/serviceaccounts_controller.go`).
///
/// # Errors
/// When it is not there, and objects of that kind were not read.
pub fn resolves(state: &State, reference: &Reference) -> Result<bool, UnknownKind> {
    let target = &reference.target;
    if is_made_again(target) {
        let namespace = state.get(&Key::of("Namespace", "", &target.ns));
        return Ok(namespace.is_none_or(|ns| ns.live()));
    }
    match state.resolve(target) {
        Some(found) => Ok(found.live() && reference.keys.iter().all(|key| has_key(found, key))),
        None => known(state, &target.kind).map(|()| false),
    }
}

/// Whether this is an object that every live namespace has: deleted, it is made again at once. Every pod names the root
/// certificate (`pkg/controller/certificates/rootcacertpublisher/publisher.go`).
pub fn is_made_again(target: &Key) -> bool {
    (target.kind.is("ServiceAccount") && &*target.name == "default")
        || (target.kind.is("ConfigMap") && &*target.name == "kube-root-ca.crt")
}

/// Whether a Secret or ConfigMap has a key.
fn has_key(object: &Object, key: &str) -> bool {
    ["data", "binaryData", "stringData"].iter().any(|part| object.val().at(&[part, key]).is_some())
}
