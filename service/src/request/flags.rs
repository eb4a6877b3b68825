//! The requests of `--scale`, `--evict`, `--patch` and `--label`.

use suture_model::apply::has_scale;
use suture_model::change::{Request, User};
use suture_model::object::Key;
use suture_model::state::State;
use suture_model::value::Val;

use super::existing::existing;
use super::fields::{valid, with_structure};
use crate::failure::Failure;
use crate::manifest;
use crate::names::Names;

/// `KIND/NS/NAME=N`.
pub(super) fn scale(text: &str, state: &State<'_>, names: &Names, user: &User) -> Result<Request, Failure> {
    let (name, number) = text.rsplit_once('=').unwrap_or((text, ""));
    let Ok(replicas) = number.parse::<i32>() else {
        return Err(Failure::invalid(format!("`{text}` is not KIND/NAMESPACE/NAME=REPLICAS")));
    };
    if replicas < 0 {
        return Err(Failure::invalid(format!("`{text}`: replicas cannot be negative")));
    }
    let key = existing(names.key(name).map_err(Failure::invalid)?, state)?;
    if state.get(&key).is_some_and(|object| !has_scale(state, object)) {
        return Err(Failure::invalid(format!("`{key}` has no scale: {} cannot be scaled", key.kind)));
    }
    Ok(Request::scale(user.clone(), state, key, i64::from(replicas)))
}

/// `NS/POD`, `POD` in the namespace given, or `pod/NS/POD`.
pub(super) fn evict(text: &str, state: &State<'_>, ns: Option<&str>, user: &User) -> Result<Request, Failure> {
    let key = match (text.split('/').collect::<Vec<_>>().as_slice(), ns) {
        ([name], Some(ns)) if !name.is_empty() => Key::of("Pod", ns, name),
        ([ns, name], _) if !ns.is_empty() && !name.is_empty() => Key::of("Pod", ns, name),
        (["po" | "pod" | "pods" | "Pod", ns, name], _) => Key::of("Pod", ns, name),
        _ => return Err(Failure::invalid(format!("`{text}` is not NAMESPACE/POD"))),
    };
    Ok(Request::evict(user.clone(), existing(key, state)?))
}

/// `KIND/NS/NAME=JSON`.
pub(super) fn patch(text: &str, state: &State<'_>, names: &Names, user: &User) -> Result<Request, Failure> {
    let form = || Failure::invalid(format!("`{text}` is not KIND/NAMESPACE/NAME=JSON"));
    let (name, patch) = text.split_once('=').ok_or_else(form)?;
    let invalid = |error: &dyn std::fmt::Display| Failure::invalid(format!("--patch {name}: {error}"));
    let patch: Val = serde_json::from_str(patch).map_err(|error| invalid(&error))?;
    if !matches!(patch, Val::Map(_)) {
        return Err(invalid(&"the patch is no JSON object"));
    }
    let key = existing(names.key(name).map_err(Failure::invalid)?, state)?;
    let live = state.get(&key).ok_or_else(|| invalid(&format!("`{key}` was not read")))?;
    let custom = key.kind.builtin_namespaced().is_none();
    let patched =
        with_structure(live, state, |structure| manifest::strategic_patch(&live.to_val(), &patch, &structure, custom));
    let patched = patched.map_err(|error| invalid(&error))?;
    valid(&key.kind, &live.version, &patch).map_err(|error| invalid(&error))?;
    Request::update(user.clone(), state, &patched, "").map_err(|error| invalid(&error))
}

/// `KIND/NS/NAME=key=value`, or `KIND/NS/NAME=key-` to take it away.
pub(super) fn label(text: &str, state: &State<'_>, names: &Names, user: &User) -> Result<Request, Failure> {
    let form =
        || Failure::invalid(format!("`{text}` is not KIND/NAMESPACE/NAME=KEY=VALUE or KIND/NAMESPACE/NAME=KEY-"));
    let (name, label) = text.split_once('=').ok_or_else(form)?;
    let (label, value) = match (label.split_once('='), label.strip_suffix('-')) {
        (Some((label, value)), _) => (label, Val::str(value)),
        (None, Some(label)) => (label, Val::Null),
        (None, None) => return Err(form()),
    };
    if label.is_empty() {
        return Err(form());
    }
    let key = existing(names.key(name).map_err(Failure::invalid)?, state)?;
    let patch = Val::object([("metadata", Val::object([("labels", Val::object([(label, value)]))]))]);
    Request::patch(user.clone(), state, key, &patch, "").map_err(Failure::invalid)
}
