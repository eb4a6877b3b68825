//! JSON merge patches, by RFC 7386: null takes a field away, an object is merged, anything else replaces.

use crate::value::{Str, Val};

/// What a merge patch makes of a value.
pub fn merge_patch(target: &Val, patch: &Val) -> Val {
    let Val::Map(patch) = patch else { return patch.clone() };
    let mut entries: Vec<(Str, Val)> =
        target.entries().filter(|(key, _)| patch.get(key).is_none()).map(|(k, v)| (k.clone(), v.clone())).collect();
    for (key, value) in patch.iter().filter(|(_, value)| !value.is_null()) {
        entries.push((key.clone(), merge_patch(target.get(key).unwrap_or(&Val::Null), value)));
    }
    Val::map(entries)
}
