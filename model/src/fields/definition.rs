//! What a CustomResourceDefinition defines: a kind, and its versions.

use crate::kinds::Kind;
use crate::object::Object;
use crate::value::{Str, Val};

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

/// What a CustomResourceDefinition says of the scale of a version, or of any version where it does not have that one: a map
/// with `specReplicasPath` and `labelSelectorPath` (`apiextensions/v1/types.go`, `CustomResourceSubresourceScale`).
pub fn defined_scale<'o>(definition: &'o Object, version: &str) -> Option<&'o Val> {
    let versions = definition.val().items_at(&["spec", "versions"]);
    let scale = |of: &'o Val| of.at_some(&["subresources", "scale"]);
    match versions.iter().find(|v| v.str_at(&["name"]).is_some_and(|name| **name == *version)) {
        Some(own) => scale(own),
        None => {
            versions.iter().find_map(scale).or_else(|| definition.val().at_some(&["spec", "subresources", "scale"]))
        }
    }
}

/// The names of a path of fields, such as `.spec.replicas`.
pub fn path_names(path: &str) -> Vec<String> {
    path.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
