//! Adapters for kinds that have none, from what Kubernetes itself declares: the scale of their definition.

use suture_model::fields::{defined_kind, defined_scale, path_names};
use suture_model::kinds::Kind;
use suture_model::object::Object;
use suture_model::value::{Str, Val};

use crate::spec::{Origin, ResourceAdapter, Spec, parse_spec};

/// The kind that an object defines, where it is a definition that says something of its scale.
pub fn scaled_kind(object: &Object) -> Option<Kind> {
    defined(object).map(|adapter| adapter.spec.for_kind())
}

/// What a CustomResourceDefinition says of its kind: where an object of it keeps the number of its pods, and their selector.
/// None where it has no scale. What its operator does beside is not modelled.
pub fn defined(definition: &Object) -> Option<ResourceAdapter> {
    if !definition.key.kind.is("CustomResourceDefinition") {
        return None;
    }
    let kind = defined_kind(definition)?;
    let versions = definition.val().items_at(&["spec", "versions"]).iter();
    let stored = versions.filter(|version| version.bool_at(&["storage"]) == Some(true));
    let stored = stored.filter_map(|version| version.str_at(&["name"])).next();
    let scale = defined_scale(definition, stored.map_or("", |name| name))?;
    let field = |path| {
        let names = path_names(scale.str_at(&[path])?);
        (!names.is_empty()).then(|| Val::str(format!("self.{}", names.join("."))))
    };
    let mut spec: Vec<(Str, Val)> = vec![
        ("group".into(), Val::Str(kind.group)),
        ("kind".into(), Val::Str(kind.kind)),
        ("unmodelled".into(), Val::Bool(true)),
    ];
    spec.extend(field("specReplicasPath").map(|text| ("replicas".into(), text)));
    spec.extend(field("labelSelectorPath").map(|text| ("selector".into(), text)));
    let document = Val::object([
        ("apiVersion", Val::str("suture.dev/v1alpha1")),
        ("kind", Val::str("ResourceAdapter")),
        ("metadata", Val::object([("name", Val::Str(definition.key.name.clone()))])),
        ("spec", Val::map(spec)),
    ]);
    match parse_spec(&document, Origin::named(&definition.key.to_string())) {
        Ok(Spec::ResourceAdapter(adapter)) => Some(*adapter),
        _ => None,
    }
}
