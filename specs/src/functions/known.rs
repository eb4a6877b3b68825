//! What a function has to know before it answers: kinds that were read, adapters that have a value.

use std::sync::Arc;

use suture_model::adapter::AdapterFacts;
use suture_model::kinds::{Kind, KindTraits};
use suture_model::navigate::{self, known};
use suture_model::object::{Key, Object};
use suture_model::state::State;

use crate::error::EvalError;

/// What an adapter says of a custom resource.
pub(super) type Facts = Arc<AdapterFacts>;

/// The error of the first of these kinds that was not read.
pub(super) fn all_known(state: &State, kinds: &[&str]) -> Result<(), EvalError> {
    each_known(state, || kinds.iter().map(|kind| Kind::new("", kind)))
}

/// [`all_known`]; most clusters were read as a whole, and then nobody asks which kinds these are.
fn each_known<K: IntoIterator<Item = Kind>>(state: &State, kinds: impl FnOnce() -> K) -> Result<(), EvalError> {
    match state.base().unknown().is_empty() {
        true => Ok(()),
        false => kinds().into_iter().try_for_each(|kind| Ok(known(state, &kind)?)),
    }
}

/// The error of the first kind that plays this role and was not read.
pub(super) fn with_known(state: &State, role: impl Fn(&KindTraits) -> bool) -> Result<(), EvalError> {
    each_known(state, || Kind::with(role))
}

/// The error of the first kind that may make pods and was not read: a built-in one, or one that has an adapter.
pub(super) fn makers_known(state: &State) -> Result<(), EvalError> {
    with_known(state, KindTraits::makes_pods)?;
    adapted_known(state)
}

/// The error of the first kind that has an adapter and was not read.
pub(super) fn adapted_known(state: &State) -> Result<(), EvalError> {
    each_known(state, || state.base().adapters().kinds())
}

/// What the adapter says; its own failures are errors here.
pub(super) fn adapter(state: &State, o: &Object) -> Result<Option<Facts>, EvalError> {
    let facts = state.adapter(o);
    match facts.as_ref().and_then(|f| f.errors.first()) {
        Some(error) => Err(EvalError::invalid(format!("adapter of {}: {error}", o.key))),
        None => Ok(facts),
    }
}

/// That no custom resource which may speak of this object, by one of these fields of its adapter, leaves open what it says: one in the
/// same namespace, or in none.
pub(super) fn told_by_all(state: &State, told: &Key, fields: &[&str]) -> Result<(), EvalError> {
    let is_told = |error: &&String| fields.iter().any(|field| error.starts_with(field));
    for (custom, facts) in navigate::failing_adapters(state, &told.ns) {
        if let Some(error) = facts.errors.iter().find(is_told) {
            return Err(EvalError::invalid(format!("adapter of {custom}: {error}")));
        }
    }
    Ok(())
}
