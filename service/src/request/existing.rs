//! Whether what a flag names exists. A mistyped name must not read as "nothing happens, hence allowed".

use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_model::state::State;
use suture_specs::suggest::nearest;

use crate::failure::Failure;

/// The key of an object that exists, or of one of a kind that was not read.
pub(super) fn existing(key: Key, state: &State<'_>) -> Result<Key, Failure> {
    if state.get(&key).is_some() || state.base().unknown().contains(&key.kind.kind) {
        return Ok(key);
    }
    if !key.ns.is_empty() {
        namespace(state, &key.ns).map_err(Failure::invalid)?;
    }
    let others = state.list(&key.kind, (!key.ns.is_empty()).then_some(&*key.ns));
    let help = did_you_mean(&key.name, others.iter().map(|other| &*other.key.name));
    Err(Failure::invalid(format!("`{key}` does not exist in the state{help}")))
}

/// That a namespace exists, where the state has namespaces at all.
pub(super) fn namespace(state: &State<'_>, name: &str) -> Result<(), String> {
    let kind = Kind::new("", "Namespace");
    let all = state.list(&kind, None);
    let is_unread = state.base().unknown().contains(&kind.kind);
    if all.is_empty() || is_unread || all.iter().any(|namespace| &*namespace.key.name == name) {
        return Ok(());
    }
    let help = did_you_mean(name, all.iter().map(|namespace| &*namespace.key.name));
    Err(format!("namespace `{name}` does not exist in the state{help}"))
}

/// That the namespace of an object to be made exists, and is not being deleted (`apiserver/pkg/admission/plugin/namespace/
/// lifecycle`).
pub(super) fn in_existing_namespace(key: &Key, state: &State<'_>) -> Result<(), String> {
    if key.ns.is_empty() {
        return Ok(());
    }
    namespace(state, &key.ns)?;
    match state.get(&Key::of("Namespace", "", &key.ns)) {
        Some(namespace) if namespace.terminating() => {
            Err(format!("`{key}` cannot be created: namespace `{}` is being deleted", key.ns))
        }
        _ => Ok(()),
    }
}

fn did_you_mean<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
