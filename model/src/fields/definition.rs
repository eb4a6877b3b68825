//! What a CustomResourceDefinition defines: a kind, and its versions.

use crate::kinds::Kind;
use crate::object::Object;
use crate::value::Str;

/// The kind that a CustomResourceDefinition defines.
pub fn defined_kind(definition: &Object) -> Option<Kind> {
    let group = definition.val().str_at(&["spec", "group"])?;
    Some(Kind::new(group, definition.val().str_at(&["spec", "names", "kind"])?))
}

/// The versions that a CustomResourceDefinition serves.
pub fn served_versions(definition: &Object) -> Vec<Str> {
    let versions = definition.val().items_at(&["spec", "versions"]).iter();
    let served = versions.filter(|v| v.bool_at(&["served"]) == Some(true));
    let mut names: Vec<Str> = served.filter_map(|v| v.str_at(&["name"])).cloned().collect();
    if let Some(only) = definition.val().str_at(&["spec", "version"]).filter(|_| names.is_empty()) {
        names.push(only.clone());
    }
    names
}
