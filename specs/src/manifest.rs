//! What is wrong with the manifest of a built-in kind, as the API server finds it when kubectl asks for strict validation
//! (`apimachinery/pkg/runtime/serializer/json`, `fieldValidation=Strict`): fields that do not exist, and values of another
//! type. What a field must be beyond its type (required, positive, one of a few) is not known here, except that replicas
//! are not negative.

use std::fmt;

use suture_model::kinds::{Kind, KindTraits};
use suture_model::value::Val;

use crate::cel::{field_type, fields_of, schema_version};
use crate::ir::Type;
use crate::suggest::nearest;

/// Directives of a strategic merge patch begin like this.
const DIRECTIVE: &str = "$";

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The field, `spec.template.spec.containers[0].image`.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

/// `path: message`.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// What is wrong with a manifest, or with a patch of an object of this kind, in the order of the fields. Nothing is said of
/// kinds that are not built in, and of versions other than the one whose fields are known.
pub fn mistakes(kind: &Kind, version: &str, manifest: &Val) -> Vec<Mistake> {
    if schema_version(kind).is_none_or(|known| known != version) {
        return Vec::new();
    }
    let mut found = Vec::new();
    check(manifest, &Type::Object(Some(kind.clone())), "", &mut found);
    let replicas = manifest.int_at(&["spec", "replicas"]).filter(|replicas| *replicas < 0);
    if let Some(replicas) = replicas.filter(|_| kind.has(KindTraits::has_scale)) {
        found.push(Mistake { path: "spec.replicas".to_owned(), message: format!("{replicas} is negative") });
    }
    found
}

fn check(val: &Val, ty: &Type, path: &str, found: &mut Vec<Mistake>) {
    let mut wrong = |expected: &str| {
        let message = format!("expected {expected}, found {}", described(val));
        found.push(Mistake { path: path.to_owned(), message });
    };
    match (ty, val) {
        (Type::Any, _) | (_, Val::Null) => {}
        (Type::Object(_) | Type::Struct(_) | Type::Map(..), Val::Map(_)) => fields(val, ty, path, found),
        (Type::Object(_) | Type::Struct(_) | Type::Map(..), _) => wrong("a map"),
        (Type::List(items), Val::List(all)) => {
            for (index, item) in all.iter().enumerate() {
                check(item, items, &format!("{path}[{index}]"), found);
            }
        }
        (Type::List(_), _) => wrong("a list"),
        (Type::String | Type::Timestamp, Val::Str(_)) | (Type::Int, Val::Int(_)) | (Type::Bool, Val::Bool(_)) => {}
        (Type::Double, Val::Int(_) | Val::Float(_)) => {}
        (Type::String | Type::Timestamp, _) => wrong("a string"),
        (Type::Int, _) => wrong("an integer"),
        (Type::Bool, _) => wrong("a Boolean"),
        (Type::Double, _) => wrong("a number"),
        _ => {}
    }
}

fn fields(val: &Val, ty: &Type, path: &str, found: &mut Vec<Mistake>) {
    for (field, value) in val.entries().filter(|(field, _)| !field.starts_with(DIRECTIVE)) {
        let inner = if path.is_empty() { field.to_string() } else { format!("{path}.{field}") };
        match field_type(ty, field) {
            Some(ty) => check(value, &ty, &inner, found),
            None => {
                let known = fields_of(ty);
                let near = nearest(field, known.iter().map(String::as_str));
                let help = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                found.push(Mistake { path: inner, message: format!("unknown field `{field}`{help}") });
            }
        }
    }
}

fn described(val: &Val) -> String {
    match val {
        Val::Null => "null".to_owned(),
        Val::Bool(value) => format!("the Boolean {value}"),
        Val::Int(value) => format!("the number {value}"),
        Val::Float(value) => format!("the number {value}"),
        Val::Str(text) => format!("the string `{}`", text.chars().take(40).collect::<String>()),
        Val::List(_) => "a list".to_owned(),
        Val::Map(_) => "a map".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: &str, version: &str, manifest: &str) -> Vec<String> {
        let manifest: Val = serde_saphyr::from_str(manifest).unwrap();
        let kind = Kind::builtin(kind).unwrap_or_else(|| Kind::new("example.org", kind));
        mistakes(&kind, version, &manifest).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unknown_and_ill_typed_fields_are_told() {
        let manifest = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, creationTimestamp: null, labels: {app: 1}}
spec:
  replcas: 3
  replicas: '3'
  paused: 'no'
  strategy: {rollingUpdate: {maxSurge: 25%}}
  template:
    spec:
      containers:
      - {name: web, image: i, ports: [{containerPort: http}], resources: {limits: {cpu: 1, memory: 1Gi}}}
      - web
      volumes: {name: a}
";
        let expected = [
            "metadata.labels.app: expected a string, found the number 1",
            "spec.paused: expected a Boolean, found the string `no`",
            "spec.replcas: unknown field `replcas`; did you mean `replicas`?",
            "spec.replicas: expected an integer, found the string `3`",
            "spec.template.spec.containers[0].ports[0].containerPort: expected an integer, found the string `http`",
            "spec.template.spec.containers[1]: expected a map, found the string `web`",
            "spec.template.spec.volumes: expected a list, found a map",
        ];
        assert_eq!(said("Deployment", "v1", manifest), expected);
        assert_eq!(said("StatefulSet", "v1", "spec: {replicas: -1}"), ["spec.replicas: -1 is negative"]);
    }

    #[test]
    fn other_versions_and_custom_kinds_are_left_alone() {
        assert_eq!(said("HorizontalPodAutoscaler", "v1", "spec: {targetCPUUtilizationPercentage: 80}"), [""; 0]);
        assert_eq!(said("HorizontalPodAutoscaler", "v2", "spec: {metrics: []}"), [""; 0]);
        assert_eq!(said("Db", "v1", "spec: {x: 1}"), [""; 0]);
        assert_eq!(said("Pod", "v1", "spec: {containers: [{$patch: delete, name: a}]}"), [""; 0]);
    }
}
