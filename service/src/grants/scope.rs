//! Where an operator may write: namespaces, kinds, and whose objects.

use std::sync::Arc;

use suture_model::apply::apply;
use suture_model::change::{Operation, Request};
use suture_model::kinds::Kind;
use suture_model::navigate::{known, owner_object};
use suture_model::state::State;
use suture_specs::globs::glob_matches;
use suture_specs::spec::{GroupKind, Scope};

use super::grant::{Grant, GrantQuestion};

/// Controllers nest no deeper than this; a longer chain is a cycle or no controller's work.
const OWNERS_MAX: usize = 16;

/// Groups and resources that no webhook of Suture sees, see `serve/configuration.rs`.
const NEVER_SEEN: [&str; 4] = ["coordination.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io"];

/// The first request of a grant's subjects that lies outside its scope, or of which that cannot be told.
pub(super) fn outside<'a>(grant: &Grant, asked: &GrantQuestion<'a>) -> Option<(Result<String, String>, &'a Request)> {
    let scope = grant.spec.scope.as_ref()?;
    // what is in flight has been asked for and may be there: an owner that was just made counts
    let mut stored = State::new(asked.snapshot);
    for request in asked.in_flight {
        apply(&mut stored, request);
    }
    for request in &asked.change.requests {
        let judged = grant.covers(&request.user) && is_write(request);
        if judged && let Some(finding) = judge(scope, request, &stored) {
            return Some((finding, request));
        }
        apply(&mut stored, request);
    }
    None
}

fn is_write(request: &Request) -> bool {
    let kind = &request.target.kind;
    let unseen = NEVER_SEEN.contains(&&*kind.group) || kind.is("Event") || request.subresource == "token";
    request.operation != Operation::Connect && !unseen
}

fn judge(scope: &Scope, request: &Request, stored: &State<'_>) -> Option<Result<String, String>> {
    let target = &request.target;
    if request.operation == Operation::Delete && !apply(&mut stored.clone(), request).effective {
        // a deletion that contradicts its preconditions, or of what is not there, writes nothing
        return None;
    }
    let refuse = |why: String| Some(Ok(format!("{} writes {target}, {why}", request.user.username)));
    if let Some(namespaces) = &scope.namespaces {
        let ns = if target.kind.is("Namespace") { &target.name } else { &target.ns };
        if !namespaces.iter().any(|glob| glob_matches(glob, ns)) {
            let place = if ns.is_empty() { "no namespace".to_owned() } else { format!("namespace {ns}") };
            return refuse(format!("which is in {place}; its grant is for {}", namespaces.join(", ")));
        }
    }
    if let Some(kinds) = &scope.kinds
        && !kinds.iter().any(|kind| same(kind, &target.kind))
    {
        return refuse(format!("a {}; its grant is for {}", full(&target.kind), listed(kinds)));
    }
    let owners = scope.owners.as_ref()?;
    if request.operation == Operation::Create && request.subresource.is_empty() {
        return None;
    }
    // the operator writes the custom resource itself, its status and its finalizers, but does not delete it
    if request.operation == Operation::Update && owners.iter().any(|kind| same(kind, &target.kind)) {
        return None;
    }
    match controlled(owners, request, stored) {
        Ok(true) => None,
        Ok(false) => refuse(format!("which no {} of its namespace controls", listed(owners))),
        Err(why) => Some(Err(why)),
    }
}

/// Whether one of these kinds, in the same namespace, controls the object as it was, directly or through others.
fn controlled(owners: &[GroupKind], request: &Request, stored: &State<'_>) -> Result<bool, String> {
    let shown = request.shown().map(Arc::new);
    let Some(mut at) = shown.or_else(|| stored.get(&request.target).cloned()) else { return Ok(false) };
    for _ in 0..OWNERS_MAX {
        let Some(owner) = at.controller().cloned() else { return Ok(false) };
        match owner_object(stored, &at, &owner) {
            // an owner without a namespace is not of the same one
            Some(above) if above.key.ns == request.target.ns => {
                if owners.iter().any(|kind| same(kind, &above.key.kind)) {
                    return Ok(true);
                }
                at = above.clone();
            }
            Some(_) => return Ok(false),
            None => {
                return known(stored, &owner.kind).map(|()| false).map_err(|unknown| unknown.to_string());
            }
        }
    }
    Ok(false)
}

fn same(given: &GroupKind, kind: &Kind) -> bool {
    given.kind == *kind.kind && given.group == *kind.group
}

fn full(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.kind.to_string() } else { format!("{} of {}", kind.kind, kind.group) }
}

fn listed(kinds: &[GroupKind]) -> String {
    let names: Vec<String> = kinds.iter().map(|kind| full(&Kind::new(&kind.group, &kind.kind))).collect();
    names.join(", ")
}
