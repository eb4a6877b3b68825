//! Definitions of custom resources: their objects, and their scale.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::fields::{defined_kind, defined_scale, path_names};
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

/// The definitions that say where the scales of such custom resources are: of these objects, and of the controllers of pods.
pub fn definitions_of_scales<'s>(
    state: &'s State,
    objects: impl Iterator<Item = &'s Arc<Object>>,
) -> Vec<&'s Arc<Object>> {
    let kind = |object: &'s Arc<Object>| match object.key.kind.is("Pod") {
        true => object.controller().map(|controller| &controller.kind),
        false => Some(&object.key.kind),
    };
    let customs: BTreeSet<&Kind> = objects.filter_map(kind).filter(|kind| kind.traits().is_none()).collect();
    customs.into_iter().filter_map(|kind| definition_of(state, kind)).collect()
}

/// Where the scale subresource of a custom resource keeps its replicas.
pub fn scale_path(state: &State, custom: &Object) -> Option<Vec<String>> {
    let scale = defined_scale(definition_of(state, &custom.key.kind)?, &custom.version)?;
    let names = path_names(scale.str_at(&["specReplicasPath"])?);
    (!names.is_empty()).then_some(names)
}
