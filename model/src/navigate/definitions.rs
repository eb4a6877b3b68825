//! Definitions of custom resources: their objects, and their scale.

use std::sync::Arc;

use crate::fields::defined_kind;
use crate::kinds::Kind;
use crate::object::Object;
use crate::state::State;

/// The definition of a kind, if the state holds it.
pub fn definition_of<'s>(state: &'s State, kind: &Kind) -> Option<&'s Arc<Object>> {
    let definitions = state.list(&Kind::new("apiextensions.k8s.io", "CustomResourceDefinition"), None);
    definitions.into_iter().find(|d| defined_kind(d).is_some_and(|k| k == *kind))
}

/// The objects of the kind that a CustomResourceDefinition defines.
pub fn instances<'s>(state: &'s State, definition: &Object) -> Vec<&'s Arc<Object>> {
    defined_kind(definition).map_or_else(Vec::new, |kind| state.list(&kind, None))
}

/// Where the scale subresource of a custom resource keeps its replicas: `specReplicasPath` of its version
/// (`apiextensions/v1/types.go`, `CustomResourceSubresourceScale`), or of any version that has one.
pub fn scale_path(state: &State, custom: &Object) -> Option<Vec<String>> {
    let definition = definition_of(state, &custom.key.kind)?;
    let versions = definition.val().items_at(&["spec", "versions"]);
    let own = versions.iter().find(|v| v.str_at(&["name"]).is_some_and(|n| *n == custom.version));
    let scale = ["subresources", "scale", "specReplicasPath"];
    let path = match own {
        Some(version) => version.str_at(&scale)?,
        None => {
            let all = definition.val().str_at(&["spec", "subresources", "scale", "specReplicasPath"]);
            versions.iter().find_map(|v| v.str_at(&scale)).or(all)?
        }
    };
    let parts: Vec<String> = path.split('.').filter(|p| !p.is_empty()).map(str::to_owned).collect();
    (!parts.is_empty()).then_some(parts)
}
