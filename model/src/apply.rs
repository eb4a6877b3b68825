//! The direct effect of one request on the objects, as the API server stores it; what follows is the effects' part.
//!
//! Sources: `apiserver/pkg/registry/generic/registry/store.go`, the `strategy.go` of each kind under `pkg/registry`,
//! `pkg/registry/core/pod/storage`. Validation is not modelled: what the API server would refuse for a field's sake is
//! applied, which judges more than can happen.

use crate::change::{Operation, Propagation, Request};
use crate::fields::{FOREGROUND, ORPHAN};
use crate::ingest::project;
use crate::kinds::KindTraits;
use crate::navigate::scale_path;
use crate::object::{Object, Owner, UNREAD};
use crate::state::State;
use crate::value::Val;

mod applied;
mod eviction;
mod write;

pub use applied::Applied;
use applied::contradiction;
pub use eviction::admits_evictions;
// until its callers name `fields`
pub(crate) use crate::fields::is_held;

/// Puts the direct effect of a request into a state. A dry run is judged as if it were none.
///
/// Where a request of an API server shows an object that the state lacks or has with another uid, the watch is behind
/// and the object is as the request shows it. Where a request deletes an object of a kind that was not read, there is one of
/// which nothing but its name is known.
pub fn apply(state: &mut State, request: &Request) -> Applied {
    let request = &request.clone().resolve(state);
    if let Some(shown) = newer(state, request).or_else(|| unread(state, request)) {
        state.put(shown);
    }
    match (request.operation, &*request.subresource) {
        (Operation::Create, "") => create(state, request),
        (Operation::Create, "eviction") => eviction::evict(state, request),
        (Operation::Create, "binding") => bind(state, request),
        (Operation::Update, "") => update(state, request, write::whole),
        (Operation::Update, "status") => update(state, request, write::status),
        (Operation::Update, "ephemeralcontainers") => update(state, request, write::ephemeral_containers),
        (Operation::Update, "resize") => update(state, request, write::resize),
        (Operation::Update, "finalize") => update(state, request, write::finalize),
        (Operation::Update, "scale") => scale(state, request),
        (Operation::Delete, "") => delete(state, request),
        (Operation::Connect, _) => Applied::nothing("a connection writes nothing"),
        (_, other) => Applied::nothing(format!("the subresource `{other}` changes nothing that a fact is about")),
    }
}

fn newer(state: &State, request: &Request) -> Option<Object> {
    let old = request.old.as_ref().filter(|_| !request.uid.is_empty())?;
    let uid = old.str_at(&["metadata", "uid"]).map_or("", |uid| uid);
    let known = state.get(&request.target).is_some_and(|there| *there.uid == *uid);
    if known { None } else { request.shown() }
}

/// The object that a request deletes, if its kind was not read: its uid is the one that objects name as their owner's.
fn unread(state: &State, request: &Request) -> Option<Object> {
    let target = &request.target;
    let is_unread = state.base().unknown().contains(&target.kind.kind) && state.get(target).is_none();
    if !is_unread || request.operation != Operation::Delete || !request.subresource.is_empty() {
        return None;
    }
    let is_it = |owner: &&Owner| owner.kind == target.kind && owner.name == target.name;
    let ns = Some(&target.ns).filter(|ns| !ns.is_empty());
    let objects = state.kinds().into_iter().flat_map(|kind| state.list(&kind, ns.map(|ns| &**ns)));
    let uid = objects.flat_map(|object| object.owners().iter().find(is_it)).map(|owner| owner.uid.clone()).next();
    let bare = Object::bare(target.clone());
    Some(Object { uid: uid.unwrap_or_default(), ..bare })
}

/// A live object of the same name refuses; one that is being deleted may be gone by then.
fn create(state: &mut State, request: &Request) -> Applied {
    if state.get(&request.target).is_some_and(|there| there.live()) {
        return Applied::nothing(format!("`{}` exists already", request.target));
    }
    let object = request.object.as_ref().ok_or("the request holds no object".to_owned());
    match object.and_then(|val| write::created(state, &request.target, val)) {
        Ok(object) => {
            state.put(object);
            Applied::done()
        }
        Err(why) => Applied::nothing(why),
    }
}

/// What an UPDATE writes: the old object, and the new one as the request holds it, make the object as it is stored.
type Write = fn(&State, &Object, &Val) -> Val;

fn update(state: &mut State, request: &Request, write: Write) -> Applied {
    let Some(old) = state.get(&request.target).cloned() else {
        return Applied::nothing(format!("`{}` does not exist", request.target));
    };
    let Some(new) = &request.object else { return Applied::nothing("the request holds no object") };
    let asked = new.str_at(&["metadata", "uid"]).map_or("", |u| u);
    let stored = request.old.as_ref().and_then(|o| o.str_at(&["metadata", "uid"])).map_or(&*old.uid, |u| u);
    if !asked.is_empty() && !stored.is_empty() && asked != stored {
        return Applied::nothing(format!("`{}` has another uid than the one written", request.target));
    }
    let written = write(state, &old, &project(new));
    let written = new.get(UNREAD).map_or_else(|| written.clone(), |unread| written.with(UNREAD, unread.clone()));
    match Object::from_val(&written) {
        Ok(object) => {
            store(state, &old, Object { key: old.key.clone(), in_deletion_closure: old.in_deletion_closure, ..object })
        }
        Err(error) => Applied::nothing(error.to_string()),
    }
}

/// Stores an updated object, or completes its deletion if it was only held by finalizers (`store.go`,
/// `ShouldDeleteDuringUpdate`). A pod that is given time to stop is not held by finalizers only.
fn store(state: &mut State, old: &Object, new: Object) -> Applied {
    let stopping = new.val().int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) > 0;
    if new.terminating() && is_held(old) && !is_held(&new) && !stopping {
        state.take(&old.key);
        return Applied::deleting(old.key.clone(), None);
    }
    state.put(new);
    Applied::done()
}

/// Sets the replicas. In a Scale the field is left out when it is 0 (`k8s.io/api/autoscaling/v1/types.go`).
fn scale(state: &mut State, request: &Request) -> Applied {
    let Some(old) = state.get(&request.target).cloned() else {
        return Applied::nothing(format!("`{}` does not exist", request.target));
    };
    let Some(path) = replicas_path(state, &old) else {
        return Applied::nothing(format!("`{}` has no scale", request.target));
    };
    let replicas = request.replicas().unwrap_or(0);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let scaled = old.map_body(|body| write::next_generation(body, &body.with_at(&path, Val::Int(replicas))));
    state.put(scaled);
    Applied::done()
}

/// Whether an object has the scale subresource.
pub fn has_scale(state: &State, object: &Object) -> bool {
    replicas_path(state, object).is_some()
}

/// Where an object keeps the replicas that its scale subresource sets: as its adapter says, else its definition, else
/// where nearly every kind does, if it has a number there.
fn replicas_path(state: &State, object: &Object) -> Option<Vec<String>> {
    let usual = || Some(vec!["spec".to_owned(), "replicas".to_owned()]);
    if object.key.kind.has(KindTraits::has_scale) {
        return usual();
    }
    let adapted = state.adapter(object).and_then(|facts| facts.replicas_path.clone());
    let has_number = || object.val().int_at(&["spec", "replicas"]).and_then(|_| usual());
    adapted.or_else(|| scale_path(state, object)).or_else(has_number)
}

/// Assigns a pod to a node, once (`pkg/registry/core/pod/storage/storage.go`, `setPodNodeAndMetadata`).
fn bind(state: &mut State, request: &Request) -> Applied {
    let Some(pod) = state.get(&request.target).cloned() else {
        return Applied::nothing(format!("`{}` does not exist", request.target));
    };
    if pod.terminating() {
        return Applied::nothing(format!("`{}` is being deleted", request.target));
    }
    if !pod.node.is_empty() {
        return Applied::nothing(format!("`{}` is assigned to node `{}` already", request.target, pod.node));
    }
    let node = request.object.as_ref().and_then(|b| b.str_at(&["target", "name"])).filter(|n| !n.is_empty());
    let Some(node) = node.cloned() else { return Applied::nothing("the binding names no node") };
    state.put(Object { node, ..(*pod).clone() });
    Applied::done()
}

fn delete(state: &State, request: &Request) -> Applied {
    let Some(object) = state.get(&request.target) else {
        return Applied::nothing(format!("`{}` does not exist", request.target));
    };
    match contradiction(object, request) {
        Some(why) => Applied::nothing(why),
        None => Applied::deleting(request.target.clone(), request.propagation.or_else(|| by_default(object))),
    }
}

/// What becomes of an object's dependents where a deletion does not say (`apiserver/pkg/registry/generic/registry/store.go`,
/// `shouldOrphanDependents`, `shouldDeleteDependents`): what its finalizers say, or else they stay if it is a Job or a
/// ReplicationController (`pkg/registry/batch/job/strategy.go`, `pkg/registry/core/replicationcontroller/strategy.go`,
/// `DefaultGarbageCollectionPolicy`); those of others are collected after it. kubectl always says.
fn by_default(object: &Object) -> Option<Propagation> {
    let said = object.finalizers().find_map(|finalizer| match &**finalizer {
        ORPHAN => Some(Propagation::Orphan),
        FOREGROUND => Some(Propagation::Foreground),
        _ => None,
    });
    said.or_else(|| object.key.kind.has(KindTraits::orphans_by_default).then_some(Propagation::Orphan))
}

#[cfg(test)]
mod tests;
