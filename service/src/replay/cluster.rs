//! The cluster that a log is replayed on: each write that was made is applied as it was stored.

use suture_model::apply::apply;
use suture_model::change::{Operation, Request};
use suture_model::ingest::project;
use suture_model::object::Object;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;

use super::event::{Stored, Write, is_of_object};
use super::report::Gap;

/// What a write is to the cluster as it is known.
#[derive(Debug)]
pub enum Standing {
    /// A write to be judged and then made: the request, and the object after it (none where that is gone).
    Made(Box<Request>, Option<Object>),
    /// A write that the cluster holds already, or something later.
    Known,
    /// A write that is made and cannot be judged, and why.
    Unclear(Gap, Box<Request>, Option<Object>),
}

/// What a write is to a cluster. `time` is when it was made.
pub fn standing(snapshot: &Snapshot, write: Write, time: &str) -> Standing {
    let Write { request, stored, needs_old } = write;
    let state = State::new(snapshot);
    let mut request = request.resolve(&state);
    let known = snapshot.get(&request.target);
    if known.is_some_and(|known| is_shown(known, &request, stored.as_ref())) {
        return Standing::Known;
    }
    if let (Some(known), true) = (known, needs_old && request.old.is_none()) {
        request.old = Some(known.to_val());
    }
    let after = match stored {
        Some(Stored::Object(val)) if is_of_object(&request.subresource) => Object::from_val(&project(&val)).ok(),
        Some(Stored::Gone(_)) => None,
        _ => match modelled(&state, &request, time) {
            Some(after) => after,
            None if needs_old && known.is_none() => return Standing::Unclear(Gap::NotInState, Box::new(request), None),
            None => {
                let as_is = known.map(|known| (**known).clone());
                return Standing::Unclear(Gap::NoEffect, Box::new(request), as_is);
            }
        },
    };
    let is_unread = snapshot.unknown().contains(&request.target.kind.kind);
    if needs_old && known.is_none() && !is_unread {
        return Standing::Unclear(Gap::NotInState, Box::new(request), after);
    }
    Standing::Made(Box::new(request), after)
}

/// Puts the object of a request into the cluster as it is after it.
pub fn put(snapshot: &mut Snapshot, request: &Request, after: Option<Object>) {
    let Some(object) = after else {
        snapshot.remove(&request.target);
        return;
    };
    let before = snapshot.get(&object.key).map(|before| before.node.clone());
    let names_node = !object.node.is_empty() && before.is_none_or(|node| node != object.node);
    let names_more = names_node || object.key.kind.is("PersistentVolumeClaim");
    let key = object.key.clone();
    snapshot.insert(object);
    if names_more {
        snapshot.complete_for(&key);
    }
}

/// Whether the cluster holds what a write stored, or something later: resourceVersions of one resource can be compared
/// (KEP-5504). A deletion is in the past if it was of another object of the name.
fn is_shown(known: &Object, request: &Request, stored: Option<&Stored>) -> bool {
    let version = |text: &str| text.parse::<u64>().ok();
    match stored {
        Some(Stored::Object(val)) if is_of_object(&request.subresource) => {
            let at = |field: &str| val.str_at(&["metadata", field]).cloned().unwrap_or_default();
            let stored = version(&at("resourceVersion"));
            version(&known.resource_version).zip(stored).is_some_and(|(known, stored)| known >= stored)
        }
        Some(Stored::Gone(Some(uid))) => !known.uid.is_empty() && **uid != *known.uid,
        _ => false,
    }
}

/// The object after a request as the model makes it (none where it is gone); `None` if the request has no effect.
fn modelled(state: &State<'_>, request: &Request, time: &str) -> Option<Option<Object>> {
    let mut after = state.clone();
    let applied = apply(&mut after, request);
    if !applied.effective {
        return None;
    }
    let deletes = request.operation == Operation::Delete || applied.evicted || !applied.deletions.is_empty();
    let there = after.get(&request.target);
    Some(match there {
        Some(object) if deletes => deleted(object, request, time),
        there => there.map(|object| (**object).clone()),
    })
}

/// What is left of an object that is deleted: what finalizers hold, and a pod that is given time to stop, whose kubelet deletes
/// it in the end (`apiserver/pkg/registry/rest/delete.go`, `BeforeDelete`; `pkg/registry/core/pod/strategy.go`,
/// `CheckGracefulDelete`).
fn deleted(object: &Object, request: &Request, time: &str) -> Option<Object> {
    let asked = request.options.int_at(&["gracePeriodSeconds"]);
    let grace = asked.or_else(|| object.val().int_at(&["spec", "terminationGracePeriodSeconds"])).unwrap_or(30);
    let stops = object.key.kind.is("Pod") && grace > 0 && !object.node.is_empty() && !object.finished();
    let is_held = object.finalizers().next().is_some();
    (is_held || stops).then(|| match object.terminating() {
        true => object.clone(),
        false => object.with_deletion(if time.is_empty() { "1970-01-01T00:00:00Z" } else { time }),
    })
}

#[cfg(test)]
mod tests;
