//! What would have been allowed in place of a refused request.

use suture_model::annotations::CONFIRM_DELETE;
use suture_model::change::{Change, Operation, Propagation, Request};
use suture_model::object::{Key, Object};
use suture_model::state::State;
use suture_model::value::Val;
use suture_specs::compile::CompiledInvariant;
use suture_specs::functions::Func;
use suture_specs::spec::Action;

use crate::request::Input;

/// An object with more dependents than these is not tried without them: each becomes a thing of its own then.
const ORPHANS_MAX: usize = 32;
/// How many variants of a refused request are tried.
const VARIANTS_MAX: i64 = 6;

/// What to say of the nearest request that is allowed.
pub(crate) fn nearest_allowed(input: &Input<'_>, mut is_allowed: impl FnMut(&Input<'_>) -> bool) -> Option<String> {
    let allowed = variants(input).into_iter().find(|(_, variant)| {
        let change = Change { requests: vec![variant.clone()] };
        is_allowed(&Input { change: &change, ..*input })
    });
    allowed.map(|(text, _)| text)
}

/// What says of an instance that it is meant to go, where that lets the invariant pass over it.
pub(crate) fn confirmation(compiled: &CompiledInvariant, object: &Object) -> Option<String> {
    let denies = compiled.action == Action::Deny;
    if !denies || !compiled.functions.contains(&Func::Meant) || object.uid.is_empty() {
        return None;
    }
    let Key { kind, ns, name } = &object.key;
    let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
    let ns = if ns.is_empty() { String::new() } else { format!(" -n {ns}") };
    let (resource, uid) = (kind.kind.to_lowercase(), &object.uid);
    Some(format!("once it is meant: kubectl annotate {resource}{group} {name}{ns} {CONFIRM_DELETE}={uid}"))
}

/// Requests near a refused one, nearest first, each with what to say if it is allowed.
fn variants(input: &Input<'_>) -> Vec<(String, Request)> {
    let [request] = input.change.requests.as_slice() else { return Vec::new() };
    let mut found = Vec::new();
    if request.operation == Operation::Delete && request.propagation != Some(Propagation::Orphan) {
        let state = State::new(input.snapshot);
        let dependents = state.get(&request.target).map_or(0, |o| state.owned_by(&o.uid).len());
        if (1..=ORPHANS_MAX).contains(&dependents) {
            let orphan = Request { propagation: Some(Propagation::Orphan), ..request.clone() };
            found.push(("delete it with propagationPolicy Orphan".to_owned(), orphan));
        }
    }
    if request.subresource == "scale" {
        let asked = request.object.as_ref().and_then(|o| o.int_at(&["spec", "replicas"])).unwrap_or(0);
        for replicas in asked.saturating_add(1)..=asked.saturating_add(VARIANTS_MAX) {
            let object = request.object.clone().unwrap_or_default().with_at(&["spec", "replicas"], Val::Int(replicas));
            found.push((format!("scale it to {replicas}"), Request { object: Some(object), ..request.clone() }));
        }
    }
    found
}
