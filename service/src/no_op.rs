//! Requests by which no decision can change, now or later: nothing is stored, or nothing of what is stored is read.

use suture_encode::analysis::annotations::Annotations;
use suture_encode::analysis::footprint::Footprint;
use suture_model::change::{Operation, Request, substance};
use suture_model::ingest::project;
use suture_model::object::UNREAD;
use suture_model::value::{Str, Val};
use suture_specs::spec::Violations;

use crate::policy::Policy;

/// Subresources whose writes change facts (`model/src/apply.rs`).
pub const WRITING: [&str; 8] =
    ["", "status", "scale", "eviction", "binding", "ephemeralcontainers", "resize", "finalize"];
/// Subresources whose requests carry the whole object.
const WHOLE: [&str; 4] = ["", "status", "ephemeralcontainers", "resize"];

/// The fields that a policy reads: a request that changes none of them is a no-op.
#[derive(Debug)]
pub struct RelevantFields {
    annotations: Annotations,
    /// Whether an invariant blames whoever leaves an instance broken, also with a write that changes nothing.
    strict: bool,
}

impl RelevantFields {
    /// Of a policy's invariants.
    pub fn of(policy: &Policy) -> Self {
        let modelled = suture_model::annotations::MODELLED.map(Str::from);
        let all = policy.invariants.iter().map(|invariant| Footprint::of(invariant).annotations);
        let annotations = all.reduce(Annotations::join).unwrap_or(Annotations::Named([].into())).and(modelled);
        Self { annotations, strict: policy.invariants.iter().any(|i| i.violations == Violations::Strict) }
    }

    /// Whether a request leaves every fact as it is: what it changes is not known to Suture, or read by nothing.
    pub fn is_no_op(&self, request: &Request, policy: &Policy) -> bool {
        if self.strict || !may_be_no_op(request) {
            return false;
        }
        // an adapter may read anything of its kind's objects
        let adapted = || policy.adapters.kinds().contains(&request.target.kind);
        match (&request.old, &request.object) {
            (Some(_), Some(new)) if new.get(UNREAD).is_some() => false,
            (Some(old), Some(new)) => !adapted() && self.facts(old) == self.facts(new),
            _ => false,
        }
    }

    /// An object as far as anything of it is read.
    fn facts(&self, object: &Val) -> Val {
        let object = project(&substance(object));
        let Some(Val::Map(all)) = object.at(&["metadata", "annotations"]) else { return object };
        let read = all.iter().filter(|(key, _)| self.annotations.contains(key));
        let read: Vec<_> = read.map(|(key, value)| (key.clone(), value.clone())).collect();
        match read.as_slice() {
            [] => object.without_at(&["metadata", "annotations"]),
            _ => object.with_at(&["metadata", "annotations"], Val::map(read)),
        }
    }
}

/// Whether there are requests like this one that are no-ops.
pub fn may_be_no_op(request: &Request) -> bool {
    request.operation == Operation::Update && WHOLE.contains(&&*request.subresource)
}

/// Whether the API server stores anything that a fact is about.
pub fn writes(request: &Request) -> bool {
    if request.operation == Operation::Connect || !WRITING.contains(&&*request.subresource) {
        return false;
    }
    match (request.operation, &request.object, &request.old) {
        (Operation::Update, Some(new), Some(old)) => substance(new) != substance(old),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
