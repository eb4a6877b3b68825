//! Derives the table of fields from the types of k8s-openapi, which come from Kubernetes' own OpenAPI document.

use std::{env, fs};

use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value as Json;

use super::*;

/// Where the table is, from this crate.
const FILE: &str = "src/cel/schema/fields.txt";

#[test]
fn the_table_is_what_the_types_say() {
    let derived = derive();
    if env::var_os("SUTURE_WRITE_FIELDS").is_some() {
        fs::write(FILE, write(&derived)).unwrap();
    }
    let table = fs::read_to_string(FILE).unwrap();
    assert_eq!(read(&table), derived, "set SUTURE_WRITE_FIELDS to write {FILE} anew");
    assert_eq!(write(&derived), table);
}

fn derive() -> Registry {
    let mut registry = Registry::default();
    let mut generator = SchemaGenerator::default();
    register_kinds(&mut generator, &mut registry.kinds);
    let definitions = generator.definitions().clone();
    for (name, schema) in &definitions {
        let Some(properties) = schema.get("properties").and_then(Json::as_object) else { continue };
        let fields =
            properties.iter().map(|(field, schema)| (Str::from(field.as_str()), type_of(schema, &definitions)));
        registry.schemas.insert(name.as_str().into(), fields.collect());
    }
    registry
}

fn write(registry: &Registry) -> String {
    let mut table = String::new();
    for (kind, schema) in &registry.kinds {
        table += &format!("kind {} {schema}\n", kind.kind);
    }
    for (schema, fields) in &registry.schemas {
        table += &format!("{schema}\n");
        for (field, ty) in fields {
            table += &format!(" {field} {}\n", write_type(ty));
        }
    }
    table
}

fn write_type(ty: &Type) -> String {
    match ty {
        Type::List(items) => format!("list {}", write_type(items)),
        Type::Map(_, values) => format!("map {}", write_type(values)),
        Type::Struct(name) => format!("struct {name}"),
        Type::String => "string".to_owned(),
        Type::Int => "int".to_owned(),
        Type::Double => "double".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Timestamp => "timestamp".to_owned(),
        _ => "any".to_owned(),
    }
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
