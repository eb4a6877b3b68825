//! The fields of objects and their types: from the OpenAPI schemas of the built-in kinds, and for what Suture adds.
//!
//! int-or-string fields, quantities and schemas that preserve unknown fields are `any`; so is everything but `metadata`
//! of a kind that is not built in.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use suture_model::kinds::Kind;
use suture_model::value::Str;

use crate::ir::Type;

type Fields = BTreeMap<Str, Type>;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Schemas by name, and which schema a built-in kind has.
#[derive(Debug, Default, PartialEq)]
struct Registry {
    schemas: BTreeMap<Str, Fields>,
    kinds: BTreeMap<Kind, Str>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(build);

/// The type of a field; `None` when the type has no such field, `Any` when nothing is known of its fields.
pub fn field_type(base: &Type, field: &str) -> Option<Type> {
    match base {
        Type::Any | Type::Never => Some(Type::Any),
        Type::Map(key, value) => matches!(**key, Type::String | Type::Any | Type::Never).then(|| (**value).clone()),
        Type::Struct(name) => REGISTRY.schemas.get(name)?.get(field).cloned(),
        Type::Object(kind) => match field {
            "kind" | "apiVersion" => Some(Type::String),
            _ => match kind.as_ref().and_then(|k| REGISTRY.kinds.get(k)) {
                Some(schema) => REGISTRY.schemas.get(schema)?.get(field).cloned(),
                None if field == "metadata" => Some(Type::Struct(META.into())),
                None => Some(Type::Any),
            },
        },
        Type::Reference | Type::Owner | Type::HostClaim => {
            special(base).iter().find(|(name, _)| *name == field).map(|(_, ty)| ty.clone())
        }
        _ => None,
    }
}

/// The version of a built-in kind whose fields are known: the one in the name of its schema, `io.k8s.api.apps.v1.Deployment`.
pub fn schema_version(kind: &Kind) -> Option<&'static str> {
    REGISTRY.kinds.get(kind)?.rsplit('.').nth(1)
}

/// The fields of a type, for messages; empty when it has none, or any.
pub fn fields_of(base: &Type) -> Vec<String> {
    let names = |fields: &Fields| fields.keys().map(ToString::to_string).collect();
    match base {
        Type::Struct(name) => REGISTRY.schemas.get(name).map_or_else(Vec::new, names),
        Type::Object(Some(kind)) => {
            let schema = REGISTRY.kinds.get(kind).and_then(|name| REGISTRY.schemas.get(name));
            schema.map_or_else(Vec::new, names)
        }
        Type::Reference | Type::Owner | Type::HostClaim => {
            special(base).into_iter().map(|(name, _)| name.to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

fn special(base: &Type) -> Vec<(&'static str, Type)> {
    match base {
        Type::Reference => vec![
            ("kind", Type::String),
            ("group", Type::String),
            ("namespace", Type::String),
            ("name", Type::String),
            ("optional", Type::Bool),
            ("needed", Type::Bool),
            ("write", Type::Bool),
            ("via", Type::String),
            ("keys", Type::list(Type::String)),
            ("ports", Type::list(Type::String)),
        ],
        Type::Owner => vec![
            ("kind", Type::String),
            ("group", Type::String),
            ("name", Type::String),
            ("uid", Type::String),
            ("controller", Type::Bool),
        ],
        Type::HostClaim => vec![("class", Type::String), ("host", Type::String), ("path", Type::String)],
        _ => Vec::new(),
    }
}

/// What k8s-openapi derives from Kubernetes' own OpenAPI document, in short: `the_table_is_what_the_types_say` makes it.
/// To derive it at the start of every program would take as much memory as thousands of objects.
const TABLE: &str = include_str!("schema/fields.txt");

/// Reads the table, and adds what Suture has beside it.
fn build() -> Registry {
    let mut registry = read(TABLE);
    let user = [("username", Type::String), ("uid", Type::String), ("groups", Type::list(Type::String))];
    let kind = [("group", Type::String), ("kind", Type::String)];
    let request = [
        ("uid", Type::String),
        ("user", Type::Struct("request.user".into())),
        ("operation", Type::String),
        ("kind", Type::Struct("request.kind".into())),
        ("subresource", Type::String),
        ("namespace", Type::String),
        ("name", Type::String),
        ("dryRun", Type::Bool),
        ("options", Type::Any),
    ];
    let fields = |list: &[(&str, Type)]| list.iter().map(|(n, t)| (Str::from(*n), t.clone())).collect::<Fields>();
    registry.schemas.insert("request".into(), fields(&request));
    registry.schemas.insert("request.user".into(), fields(&user));
    registry.schemas.insert("request.kind".into(), fields(&kind));
    registry
}

/// Reads a table: after the name of each schema its fields, indented, with their types; after `kind` a built-in kind and
/// the name of its schema.
fn read(table: &str) -> Registry {
    let mut registry = Registry::default();
    let mut schema: Option<&mut Fields> = None;
    for line in table.lines() {
        match line.split_once(' ') {
            Some(("", field)) => {
                if let (Some(fields), Some((name, ty))) = (schema.as_deref_mut(), field.split_once(' ')) {
                    fields.insert(name.into(), read_type(ty));
                }
            }
            Some((_, kind)) => {
                let kind = kind.split_once(' ').and_then(|(kind, name)| Some((Kind::builtin(kind)?, name.into())));
                registry.kinds.extend(kind);
            }
            None => schema = Some(registry.schemas.entry(line.into()).or_default()),
        }
    }
    registry
}

fn read_type(text: &str) -> Type {
    match text.split_once(' ') {
        Some(("list", items)) => Type::list(read_type(items)),
        Some(("map", values)) => Type::map(Type::String, read_type(values)),
        Some(("struct", name)) => Type::Struct(name.into()),
        _ => match text {
            "string" => Type::String,
            "int" => Type::Int,
            "double" => Type::Double,
            "bool" => Type::Bool,
            "timestamp" => Type::Timestamp,
            _ => Type::Any,
        },
    }
}

#[cfg(test)]
mod derived;

#[cfg(test)]
mod tests {
    use super::*;

    fn path(kind: &str, path: &str) -> Option<String> {
        let mut ty = Type::object(kind);
        for field in path.split('.') {
            ty = match field_type(&ty, field)? {
                Type::List(item) if !path.ends_with(field) => *item,
                other => other,
            };
        }
        Some(ty.to_string())
    }

    #[test]
    fn built_in_kinds_have_types() {
        for (kind, fields, expected) in [
            ("Pod", "spec.containers.image", "string"),
            ("Pod", "spec.containers", "list<Container>"),
            ("Pod", "metadata.labels", "map<string, string>"),
            ("Pod", "metadata.creationTimestamp", "timestamp"),
            ("Pod", "spec.containers.resources.requests", "map<string, any>"),
            ("Pod", "kind", "string"),
            ("Deployment", "spec.replicas", "int"),
            ("Deployment", "spec.strategy.rollingUpdate.maxUnavailable", "any"),
            ("Deployment", "spec.template.spec", "PodSpec"),
            ("StatefulSet", "spec.volumeClaimTemplates.metadata.name", "string"),
            ("PodDisruptionBudget", "spec.minAvailable", "any"),
            ("Service", "spec.ports.targetPort", "any"),
            ("Service", "spec.selector", "map<string, string>"),
            ("CustomResourceDefinition", "spec.versions.served", "bool"),
            ("APIService", "spec.service.name", "string"),
            ("VolumeSnapshot", "metadata.name", "string"),
            ("VolumeSnapshot", "status.readyToUse", "any"),
        ] {
            assert_eq!(path(kind, fields).as_deref(), Some(expected), "{kind} {fields}");
        }
        assert_eq!(path("Pod", "spec.replicas"), None);
        assert_eq!(path("Pod", "metadata.nmae"), None);
    }
}
