//! Merging a manifest, or a patch, into the object that is there.

use suture_model::change::merge_patch;
use suture_model::value::{Str, Val};

use super::structure::{Lists, Structure, keys_of};

/// The object with all that a manifest says; what it leaves out stays. Null is as good as left out.
pub(super) fn merge(live: &Val, manifest: &Val, structure: &Structure<'_>) -> Val {
    match (live, manifest) {
        (Val::Map(old), Val::Map(new)) if !structure.is_atomic() => {
            let kept = old.iter().filter(|(key, _)| new.get(key).is_none()).map(|(k, v)| (k.clone(), v.clone()));
            let written = new.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| {
                let merged = old.get(key).map(|old| merge(old, value, &structure.field(key)));
                (key.clone(), merged.unwrap_or_else(|| value.clone()))
            });
            Val::map(kept.chain(written).collect())
        }
        (Val::List(old), Val::List(new)) => {
            let all: Vec<&Val> = old.iter().chain(new.iter()).collect();
            match structure.lists(&all) {
                Lists::Atomic => manifest.clone(),
                Lists::Set => {
                    let added = new.iter().filter(|item| !old.contains(item));
                    Val::list(old.iter().chain(added).cloned().collect())
                }
                Lists::Keyed(keys) => keyed(old, new, &keys, |old, new| Some(merge(old, new, &structure.item()))),
            }
        }
        _ => manifest.clone(),
    }
}

/// The old items with the new ones merged into them by their keys, then those that were not there. What `of_both` makes
/// nothing of goes.
fn keyed(old: &[Val], new: &[Val], keys: &[&str], of_both: impl Fn(&Val, &Val) -> Option<Val>) -> Val {
    let find = |items: &'_ [Val], item: &Val| items.iter().position(|i| keys_of(i, keys) == keys_of(item, keys));
    let merged = old.iter().filter_map(|item| match find(new, item).and_then(|at| new.get(at)) {
        Some(new) => of_both(item, new),
        None => Some(item.clone()),
    });
    let added = new.iter().filter(|item| find(old, item).is_none()).filter_map(|item| of_both(&Val::Null, item));
    Val::list(merged.chain(added).collect())
}

/// The directives of a strategic merge patch begin like this; but for `$patch: delete` none is understood.
const DIRECTIVE: &str = "$";

/// The object as `kubectl patch` leaves it: by a strategic merge patch, and where the kind has none
/// (`apimachinery/pkg/util/strategicpatch`), a custom resource, by a JSON merge patch.
///
/// # Errors
/// At a directive that is not understood.
pub fn strategic_patch(live: &Val, patch: &Val, structure: &Structure<'_>, custom: bool) -> Result<Val, String> {
    if custom {
        return Ok(merge_patch(live, patch));
    }
    match directive(patch) {
        Some(key) => Err(format!("the directive `{key}` of a strategic merge patch is not supported")),
        None => Ok(patched(live, patch, structure)),
    }
}

fn directive(patch: &Val) -> Option<&Str> {
    match patch {
        Val::Map(map) => map.iter().find_map(|(key, value)| {
            let deletes = &**key == "$patch" && value.as_str().is_some_and(|text| &**text == "delete");
            if key.starts_with(DIRECTIVE) && !deletes { Some(key) } else { directive(value) }
        }),
        Val::List(items) => items.iter().find_map(directive),
        _ => None,
    }
}

fn patched(live: &Val, patch: &Val, structure: &Structure<'_>) -> Val {
    match (live, patch) {
        (Val::Map(_) | Val::Null, Val::Map(new)) => {
            let old = |key: &str| live.get(key).unwrap_or(&Val::Null);
            let kept = live.entries().filter(|(key, _)| new.get(key).is_none()).map(|(k, v)| (k.clone(), v.clone()));
            let written = new.iter().filter(|(_, value)| !value.is_null());
            let written = written.map(|(key, value)| (key.clone(), patched(old(key), value, &structure.field(key))));
            Val::map(kept.chain(written).collect())
        }
        (Val::List(_) | Val::Null, Val::List(new)) => {
            let all: Vec<&Val> = live.items().iter().chain(new.iter()).collect();
            match structure.lists(&all) {
                Lists::Atomic => patch.clone(),
                Lists::Set => {
                    let added = new.iter().filter(|item| !live.items().contains(item));
                    Val::list(live.items().iter().chain(added).cloned().collect())
                }
                Lists::Keyed(keys) => keyed(live.items(), new, &keys, |old, new| match new.get("$patch") {
                    Some(_) => None,
                    None => Some(patched(old, new, &structure.item())),
                }),
            }
        }
        _ => patch.clone(),
    }
}
