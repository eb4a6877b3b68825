//! Who uses an object now, and whether what an object names is there.

use std::sync::Arc;

use super::claims::goes_with_pod;
use super::known::{UnknownKind, known};
use super::owners::controller_of;
use crate::fields::{is_spent, wants_claim};
use crate::kinds::{Kind, KindTraits};
use crate::object::{Key, Object};
use crate::references::{Reference, references};
use crate::state::State;
use crate::value::Str;

/// Those of the objects that need `target` that stay, in the order of their keys
/// ([`live_referrers`](crate::deletion::live_referrers)), the pods that own it among them.
pub(crate) fn users<'s>(state: &'s State, target: &Object, stays: &dyn Fn(&Object) -> bool) -> Vec<&'s Arc<Object>> {
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
    found.retain(|o| stays(o) && !(is_spent(o) && controller_of(state, o).is_some()));
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

/// The live objects that write what this names, as their adapters say, in the order of their keys.
pub fn writers<'s>(state: &'s State, target: &Key) -> Vec<&'s Arc<Object>> {
    let adapters = state.base().adapters().as_ref();
    let same = |named: &Key| named.means(target) || target.means(named);
    // nothing but an adapter says of a reference that it is written
    let writes =
        |o: &Object| adapters.facts(o).is_some_and(|facts| facts.references.iter().any(|r| r.write && same(&r.target)));
    state.referrers(target).into_iter().filter(|o| o.live() && writes(o)).collect()
}

/// The kinds that were not read and of which an object might use `target`: while there are any, an empty answer of
/// [`live_referrers`](crate::deletion::live_referrers) proves nothing.
pub fn unread_users(state: &State, target: &Object) -> Vec<Str> {
    let custom = state.base().adapters().kinds();
    // a claim is mounted by pods
    let is_claim = target.key.kind.is("PersistentVolumeClaim");
    let may = |traits: &KindTraits| if is_claim { traits.runs_pods() } else { traits.refers };
    let users = |kind: &&Str| KindTraits::named(kind).is_some_and(may) || custom.iter().any(|c| c.kind == **kind);
    state.base().unknown().iter().filter(users).cloned().collect()
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
