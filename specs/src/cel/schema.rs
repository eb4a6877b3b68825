//! The fields of objects and their types: from the OpenAPI schemas of the built-in kinds, and for what Suture adds.
//!
//! int-or-string fields, quantities and schemas that preserve unknown fields are `any`; so is everything but `metadata`
//! of a kind that is not built in.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value as Json;
use suture_model::kinds::Kind;
use suture_model::value::Str;

use crate::ir::Type;

type Fields = BTreeMap<Str, Type>;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Schemas by name, and which schema a built-in kind has.
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

/// Makes the registry from the schemas that k8s-openapi derives from Kubernetes' own OpenAPI document.
fn build() -> Registry {
    let mut registry = Registry { schemas: BTreeMap::new(), kinds: BTreeMap::new() };
    let mut generator = SchemaGenerator::default();
    register_kinds(&mut generator, &mut registry.kinds);
    let definitions = generator.definitions().clone();
    for (name, schema) in &definitions {
        let Some(properties) = schema.get("properties").and_then(Json::as_object) else { continue };
        let fields =
            properties.iter().map(|(field, schema)| (Str::from(field.as_str()), type_of(schema, &definitions)));
        registry.schemas.insert(name.as_str().into(), fields.collect());
    }
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

fn register<K: JsonSchema>(kind: &str, generator: &mut SchemaGenerator, kinds: &mut BTreeMap<Kind, Str>) {
    generator.subschema_for::<K>();
    if let Some(kind) = Kind::builtin(kind) {
        kinds.insert(kind, Str::from(&*K::schema_name()));
    }
}

fn register_kinds(g: &mut SchemaGenerator, kinds: &mut BTreeMap<Kind, Str>) {
    register::<api::core::v1::Node>("Node", g, kinds);
    register::<api::core::v1::Namespace>("Namespace", g, kinds);
    register::<api::core::v1::Pod>("Pod", g, kinds);
    register::<api::core::v1::Service>("Service", g, kinds);
    register::<api::core::v1::PersistentVolumeClaim>("PersistentVolumeClaim", g, kinds);
    register::<api::core::v1::PersistentVolume>("PersistentVolume", g, kinds);
    register::<api::core::v1::ConfigMap>("ConfigMap", g, kinds);
    register::<api::core::v1::Secret>("Secret", g, kinds);
    register::<api::core::v1::ServiceAccount>("ServiceAccount", g, kinds);
    register::<api::core::v1::ResourceQuota>("ResourceQuota", g, kinds);
    register::<api::core::v1::LimitRange>("LimitRange", g, kinds);
    register::<api::core::v1::ReplicationController>("ReplicationController", g, kinds);
    register::<api::core::v1::PodTemplate>("PodTemplate", g, kinds);
    register::<api::apps::v1::Deployment>("Deployment", g, kinds);
    register::<api::apps::v1::ReplicaSet>("ReplicaSet", g, kinds);
    register::<api::apps::v1::StatefulSet>("StatefulSet", g, kinds);
    register::<api::apps::v1::DaemonSet>("DaemonSet", g, kinds);
    register::<api::apps::v1::ControllerRevision>("ControllerRevision", g, kinds);
    register::<api::batch::v1::Job>("Job", g, kinds);
    register::<api::batch::v1::CronJob>("CronJob", g, kinds);
    register::<api::discovery::v1::EndpointSlice>("EndpointSlice", g, kinds);
    register::<api::networking::v1::Ingress>("Ingress", g, kinds);
    register::<api::networking::v1::IngressClass>("IngressClass", g, kinds);
    register::<api::networking::v1::NetworkPolicy>("NetworkPolicy", g, kinds);
    register::<api::policy::v1::PodDisruptionBudget>("PodDisruptionBudget", g, kinds);
    register::<api::autoscaling::v2::HorizontalPodAutoscaler>("HorizontalPodAutoscaler", g, kinds);
    register::<api::storage::v1::StorageClass>("StorageClass", g, kinds);
    register::<api::storage::v1::VolumeAttachment>("VolumeAttachment", g, kinds);
    register::<api::storage::v1::CSIDriver>("CSIDriver", g, kinds);
    register::<api::scheduling::v1::PriorityClass>("PriorityClass", g, kinds);
    register::<api::node::v1::RuntimeClass>("RuntimeClass", g, kinds);
    register::<api::coordination::v1::Lease>("Lease", g, kinds);
    register::<api::rbac::v1::Role>("Role", g, kinds);
    register::<api::rbac::v1::ClusterRole>("ClusterRole", g, kinds);
    register::<api::rbac::v1::RoleBinding>("RoleBinding", g, kinds);
    register::<api::rbac::v1::ClusterRoleBinding>("ClusterRoleBinding", g, kinds);
    register::<apiextensions::CustomResourceDefinition>("CustomResourceDefinition", g, kinds);
    register::<apiregistration::APIService>("APIService", g, kinds);
    register::<api::admissionregistration::v1::ValidatingWebhookConfiguration>(
        "ValidatingWebhookConfiguration",
        g,
        kinds,
    );
    register::<api::admissionregistration::v1::MutatingWebhookConfiguration>("MutatingWebhookConfiguration", g, kinds);
    register::<api::admissionregistration::v1::ValidatingAdmissionPolicy>("ValidatingAdmissionPolicy", g, kinds);
    register::<api::admissionregistration::v1::ValidatingAdmissionPolicyBinding>(
        "ValidatingAdmissionPolicyBinding",
        g,
        kinds,
    );
}

fn type_of(schema: &Json, definitions: &serde_json::Map<String, Json>) -> Type {
    if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return match definitions.get(name) {
            Some(target) if target.get("properties").is_some() => Type::Struct(name.into()),
            Some(target) if target.get("$ref").is_none() => type_of(target, definitions),
            _ => Type::Any,
        };
    }
    if let Some([only]) = schema.get("allOf").and_then(Json::as_array).map(Vec::as_slice) {
        return type_of(only, definitions);
    }
    let format = schema.get("format").and_then(Json::as_str).unwrap_or_default();
    match schema.get("type").and_then(Json::as_str) {
        Some("string") if format == "date-time" => Type::Timestamp,
        Some("string") => Type::String,
        Some("integer") => Type::Int,
        Some("number") => Type::Double,
        Some("boolean") => Type::Bool,
        Some("array") => Type::list(schema.get("items").map_or(Type::Any, |items| type_of(items, definitions))),
        Some("object") => match schema.get("additionalProperties") {
            Some(values @ Json::Object(_)) => Type::map(Type::String, type_of(values, definitions)),
            _ => Type::Any,
        },
        _ => Type::Any,
    }
}

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
