//! Objects of a suite: how they are named, and how they are written anew with other uids.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Kind, namespace and name.
pub(super) fn key(object: &Value) -> [String; 4] {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = text("/apiVersion").rsplit_once('/').map_or_else(String::new, |(group, _)| group.to_owned());
    [group, text("/kind"), text("/metadata/namespace"), text("/metadata/name")]
}

/// Whether a reference in a suite names an object.
pub(super) fn names(reference: &Value, object: &Value) -> bool {
    let [group, kind, namespace, name] = key(object);
    let (of_group, of_kind) = match &reference["kind"] {
        Value::Object(both) => (both["group"].as_str(), both["kind"].as_str()),
        kind => (reference["group"].as_str(), kind.as_str()),
    };
    of_kind == Some(&kind)
        && of_group.is_none_or(|of| of == group)
        && reference["namespace"].as_str().unwrap_or_default() == namespace
        && reference["name"] == name.as_str()
}

/// An object without what the API server gives itself, its owners by their new uids.
pub(super) fn renewed(object: &Value, uids: &BTreeMap<String, Value>) -> Value {
    let mut body = mapped(object, uids);
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            metadata.remove(field);
        }
    }
    body
}

/// A value with new uids for old ones, wherever they are.
pub(super) fn mapped(value: &Value, uids: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => uids.get(text).cloned().unwrap_or_else(|| value.clone()),
        Value::Array(items) => items.iter().map(|item| mapped(item, uids)).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, item)| (name.clone(), mapped(item, uids))).collect::<Map<_, _>>())
        }
        _ => value.clone(),
    }
}
