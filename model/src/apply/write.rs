//! What a write leaves in storage: defaults, and the fields that the API server takes from the old object.

use crate::ingest::project;
use crate::kinds::{Kind, KindTraits};
use crate::navigate::definition_of;
use crate::object::{Key, Object};
use crate::state::State;
use crate::value::{Str, Val};

/// How deep a schema is followed.
const SCHEMA_DEPTH_MAX: usize = 64;

/// Fields of `metadata` that only the API server sets.
const SYSTEM_META: [&str; 2] = ["deletionTimestamp", "deletionGracePeriodSeconds"];

/// A new object: with a uid of its own, in no deletion, and without a status where only the subresource writes one.
///
/// A uid that the manifest brings along is kept unless an object has or had it, so that an object made anew is another.
pub(super) fn created(state: &State, key: &Key, manifest: &Val) -> Result<Object, String> {
    let mut val = defaulted(state, key, &project(manifest));
    for field in SYSTEM_META {
        val = val.without_at(&["metadata", field]);
    }
    let version = val.str_at(&["apiVersion"]).map_or("", |v| v.rsplit('/').next().unwrap_or(""));
    if has_status_subresource(state, &key.kind, version) && !key.kind.is("Node") {
        val = val.without_at(&["status"]);
    }
    if key.kind.is("Pod") {
        val = val.with_at(&["status", "phase"], Val::str("Pending"));
    }
    let mut object = Object::from_val(&val).map_err(|error| error.to_string())?;
    let used = state.by_uid(&object.uid).is_some() || state.base().by_uid(&object.uid).is_some();
    if object.uid.is_empty() || used {
        object.uid = new_uid(state, key);
    }
    object.key = key.clone();
    object.resource_version = "".into();
    Ok(object)
}

/// `new:Kind/namespace/name`, with a prime for each time that it was made before.
fn new_uid(state: &State, key: &Key) -> Str {
    let mut uid = format!("new:{key}");
    while state.by_uid(&uid).is_some() || state.base().by_uid(&uid).is_some() {
        uid.push('\'');
    }
    uid.into()
}

/// The whole object is written, except its status where that has a subresource.
pub(super) fn whole(state: &State, old: &Object, new: &Val) -> Val {
    let mut val = defaulted(state, &old.key, new);
    if has_status_subresource(state, &old.key.kind, &old.version) {
        val = carry(&val, old, &["status"]);
    }
    if old.key.kind.is("Pod") && val.at_some(&["spec", "nodeName"]).is_none() {
        val = carry(&val, old, &["spec", "nodeName"]);
    }
    next_generation(old.val(), &kept(&val, old))
}

/// The status is written, and of built-in kinds the metadata too: their status strategies put the old spec back, and little
/// else (`pkg/registry/*/*/strategy.go`, `PrepareForUpdate`: a Deployment keeps its labels, a pod its owners). Of custom
/// resources and their definitions the old metadata stays (`apimachinery/pkg/apis/meta/v1/helpers.go`,
/// `ResetObjectMetaForStatus`).
pub(super) fn status(_: &State, old: &Object, new: &Val) -> Val {
    let kind = &old.key.kind;
    let mut val = old.to_val();
    val = put(&val, &["status"], new.at_some(&["status"]));
    let resets = kind.builtin_namespaced().is_none() || kind.is("CustomResourceDefinition");
    let keeps = |field: &str| {
        resets || (field == "labels" && kind.is("Deployment")) || (field == "ownerReferences" && kind.is("Pod"))
    };
    for field in ["labels", "annotations", "ownerReferences", "finalizers"].into_iter().filter(|field| !keeps(field)) {
        val = put(&val, &["metadata", field], new.at_some(&["metadata", field]));
    }
    val
}

/// Only the ephemeral containers of a pod are written.
pub(super) fn ephemeral_containers(_: &State, old: &Object, new: &Val) -> Val {
    put(&old.to_val(), &["spec", "ephemeralContainers"], new.at_some(&["spec", "ephemeralContainers"]))
}

/// Only the resources of a pod and of its containers are written (`pkg/registry/core/pod/strategy.go`,
/// `podResizeStrategy`); the containers are taken as they come.
pub(super) fn resize(_: &State, old: &Object, new: &Val) -> Val {
    let mut val = old.to_val();
    for field in ["containers", "initContainers", "resources"] {
        let path = ["spec", field];
        val = put(&val, &path, new.at_some(&path).or_else(|| old.val().at_some(&path)));
    }
    val
}

/// Only the finalizers in the spec of a Namespace are written.
pub(super) fn finalize(_: &State, old: &Object, new: &Val) -> Val {
    put(&old.to_val(), &["spec", "finalizers"], new.at_some(&["spec", "finalizers"]))
}

/// With what the API server carries over: uid and creation (they are the old one's where the new one has none), and the
/// deletion, which no write starts or stops (`apiserver/pkg/registry/rest/update.go`, `BeforeUpdate`).
fn kept(val: &Val, old: &Object) -> Val {
    let mut val = val.clone();
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        if val.str_at(&["metadata", field]).is_none_or(|text| text.is_empty()) {
            val = carry(&val, old, &["metadata", field]);
        }
    }
    for field in SYSTEM_META {
        val = carry(&val, old, &["metadata", field]);
    }
    val
}

/// With `metadata.generation` as the API server counts it: one more when the spec changes. What has none gets none.
pub(super) fn next_generation(old: &Val, new: &Val) -> Val {
    let path = ["metadata", "generation"];
    let Some(generation) = old.int_at(&path) else { return new.clone() };
    let spec = |val: &Val| val.at(&["spec"]).map(|spec| spec.without_at(&["nodeName"]));
    let next = if spec(old) == spec(new) { generation } else { generation.saturating_add(1) };
    let shown = new.int_at(&path).filter(|shown| *shown > next).unwrap_or(next);
    new.with_at(&path, Val::Int(shown))
}

fn defaulted(state: &State, key: &Key, val: &Val) -> Val {
    // `pkg/apis/apps/v1/defaults.go`, `pkg/apis/core/v1/defaults.go`
    let replicated = key.kind.has(KindTraits::has_scale);
    let path = ["spec", "replicas"];
    if replicated && val.at_some(&path).is_none() {
        return val.with_at(&path, Val::Int(1));
    }
    let version = val.str_at(&["apiVersion"]).map_or("", |v| v.rsplit('/').next().unwrap_or(""));
    schema(state, key, version).map_or_else(|| val.clone(), |schema| with_defaults(val, schema, SCHEMA_DEPTH_MAX))
}

/// The structural schema of a version of a custom resource, if the state holds its definition.
fn schema<'s>(state: &'s State, key: &Key, version: &str) -> Option<&'s Val> {
    let builtin = key.kind.builtin_namespaced().is_some() && !is_custom_group(&key.kind);
    let definition = if builtin { None } else { definition_of(state, &key.kind) }?;
    let versions = definition.val().items_at(&["spec", "versions"]);
    let own = versions.iter().find(|v| v.str_at(&["name"]).is_some_and(|n| **n == *version))?;
    own.at_some(&["schema", "openAPIV3Schema"])
}

/// With the defaults of a structural schema, also within those (`apiextensions-apiserver/pkg/apiserver/schema/defaulting/
/// algorithm.go`, `Default`): for fields that are not there, or null and not nullable.
fn with_defaults(val: &Val, schema: &Val, depth: usize) -> Val {
    let Some(depth) = depth.checked_sub(1) else { return val.clone() };
    let default = |val: Option<&Val>, schema: &Val| {
        let lacks = val.is_none_or(|val| val.is_null() && schema.bool_at(&["nullable"]) != Some(true));
        schema.at_some(&["default"]).filter(|_| lacks).cloned()
    };
    match val {
        Val::Map(_) => {
            let properties = schema.at_some(&["properties"]);
            let listed = properties.into_iter().flat_map(Val::entries);
            let made = listed.filter_map(|(key, schema)| Some((key, default(val.get(key), schema)?)));
            let whole = made.fold(val.clone(), |val, (key, default)| val.with(key, default));
            let others = schema.at_some(&["additionalProperties"]);
            whole.entries().fold(whole.clone(), |all, (key, own)| {
                let listed = properties.and_then(|properties| properties.get(key));
                let Some(schema) = listed.or(others) else { return all };
                let next = default(Some(own), schema).unwrap_or_else(|| own.clone());
                all.with(key, with_defaults(&next, schema, depth))
            })
        }
        Val::List(items) => {
            let Some(schema) = schema.at_some(&["items"]) else { return val.clone() };
            let each = items.iter().map(|item| default(Some(item), schema).unwrap_or_else(|| item.clone()));
            Val::list(each.map(|item| with_defaults(&item, schema, depth)).collect())
        }
        _ => val.clone(),
    }
}

/// With the old object's field in place of its own.
fn carry(val: &Val, old: &Object, path: &[&str]) -> Val {
    put(val, path, old.at(path).filter(|v| !v.is_null()).as_ref())
}

fn put(val: &Val, path: &[&str], value: Option<&Val>) -> Val {
    match value {
        Some(value) => val.with_at(path, value.clone()),
        None => val.without_at(path),
    }
}

/// Whether the status of a kind is written through its subresource only. A Node's status comes with its creation, and
/// a custom resource has the subresource if its definition says so (`apiextensions/v1`, `CustomResourceSubresources`).
fn has_status_subresource(state: &State, kind: &Kind, version: &str) -> bool {
    if kind.builtin_namespaced().is_some() && !is_custom_group(kind) {
        return true;
    }
    let Some(definition) = definition_of(state, kind) else { return is_custom_group(kind) };
    let versions = definition.val().items_at(&["spec", "versions"]);
    let own = versions.iter().find(|v| v.str_at(&["name"]).is_some_and(|n| **n == *version));
    let old_place = definition.val().at_some(&["spec", "subresources", "status"]).is_some();
    old_place || own.is_some_and(|v| v.at_some(&["subresources", "status"]).is_some())
}

/// Kinds known from the start that are defined by definitions which every cluster ships with a status subresource.
fn is_custom_group(kind: &Kind) -> bool {
    matches!(&*kind.group, "gateway.networking.k8s.io" | "snapshot.storage.k8s.io")
}
