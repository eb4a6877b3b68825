//! Manifests as requests carry them: their name, their namespace, and what of them is written.

use crate::object::Key;
use crate::value::Val;

/// Fields of `metadata` that say nothing about what is written.
const BOOKKEEPING: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// An object without what the API server alone writes. An update that differs in nothing else stores nothing
/// (`apiserver/pkg/storage/etcd3/store.go`, `GuaranteedUpdate`).
pub fn substance(object: &Val) -> Val {
    BOOKKEEPING.iter().fold(object.clone(), |object, field| object.without_at(&["metadata", field]))
}

pub(super) fn with_namespace(manifest: &Val, target: &Key) -> Val {
    let named = manifest.at_some(&["metadata", "namespace"]).is_some();
    if target.ns.is_empty() || named {
        manifest.clone()
    } else {
        manifest.with_at(&["metadata", "namespace"], Val::Str(target.ns.clone()))
    }
}

/// A manifest with the name that `generateName` leads to, where it has none: the API server's is random, this one is
/// made of the request's uid.
pub(super) fn named(manifest: &Val, uid: &str) -> Val {
    let path = ["metadata", "name"];
    let prefix = manifest.str_at(&["metadata", "generateName"]);
    match (manifest.str_at(&path).filter(|n| !n.is_empty()), prefix) {
        (None, Some(prefix)) => {
            let suffix: String = uid.chars().filter(char::is_ascii_alphanumeric).take(5).collect();
            let suffix = if suffix.is_empty() { "new" } else { &suffix };
            manifest.with_at(&path, Val::str(format!("{prefix}{suffix}")))
        }
        _ => manifest.clone(),
    }
}
