//! How the parts of an object are put together when it is applied: which lists are merged by keys, and which maps are
//! replaced as a whole.
//!
//! Sources: `x-kubernetes-list-type`, `x-kubernetes-list-map-keys` and `x-kubernetes-map-type` in Kubernetes' OpenAPI
//! document, and those of a custom resource's definition. What says nothing is an atomic list or a granular map.

use suture_model::kinds::Kind;
use suture_model::value::{Str, Val};

/// The structure of a part of an object.
#[derive(Clone, Copy, Debug)]
pub struct Structure<'s> {
    of: Of<'s>,
    /// The name of the field that holds the part, or whose items do; empty for the object itself.
    field: &'s str,
    /// Whether it is an item of that field.
    is_item: bool,
}

#[derive(Clone, Copy, Debug)]
enum Of<'s> {
    /// A built-in kind. Its fields of one name have one structure, but for `ports`.
    BuiltIn { is_service: bool },
    /// A custom resource: the schema of the part, if its definition is known.
    Custom(Option<&'s Val>),
}

/// What becomes of two lists.
pub(super) enum Lists<'s> {
    /// The new one counts.
    Atomic,
    /// Both sets of values.
    Set,
    /// Items of the same keys are merged.
    Keyed(Vec<&'s str>),
}

impl<'s> Structure<'s> {
    /// The structure of a kind; `definition` is that of a custom resource in this version, if it is known.
    pub fn of(kind: &Kind, definition: Option<&'s Val>, version: &str) -> Self {
        let of = if kind.builtin_namespaced().is_some() {
            Of::BuiltIn { is_service: kind.is("Service") }
        } else {
            let versions = definition.map_or(&[][..], |d| d.items_at(&["spec", "versions"]));
            let own = versions.iter().find(|v| v.str_at(&["name"]).is_some_and(|name| **name == *version));
            Of::Custom(own.and_then(|v| v.at_some(&["schema", "openAPIV3Schema"])))
        };
        Self { of, field: "", is_item: false }
    }

    /// The structure of a field.
    pub(super) fn field(self, name: &'s str) -> Self {
        let of = match self.of {
            // the metadata of all objects is alike
            Of::Custom(_) if self.field.is_empty() && name == "metadata" => Of::BuiltIn { is_service: false },
            Of::Custom(schema) => Of::Custom(schema.and_then(|schema| {
                schema.at_some(&["properties", name]).or_else(|| schema.at_some(&["additionalProperties"]))
            })),
            built_in @ Of::BuiltIn { .. } => built_in,
        };
        Self { of, field: name, is_item: false }
    }

    /// The structure of the items of a list.
    pub(super) fn item(self) -> Self {
        let of = match self.of {
            Of::Custom(schema) => Of::Custom(schema.and_then(|schema| schema.at_some(&["items"]))),
            built_in @ Of::BuiltIn { .. } => built_in,
        };
        Self { of, is_item: true, ..self }
    }

    /// Whether a map is replaced as a whole.
    pub(super) fn is_atomic(self) -> bool {
        match self.of {
            Of::Custom(schema) => says(schema, "x-kubernetes-map-type", "atomic"),
            Of::BuiltIn { .. } if self.is_item => false,
            Of::BuiltIn { .. } => matches!(
                self.field,
                "selector"
                    | "nodeSelector"
                    | "podSelector"
                    | "namespaceSelector"
                    | "labelSelector"
                    | "objectSelector"
                    | "scopeSelector"
                    | "requiredDuringSchedulingIgnoredDuringExecution"
                    | "required"
                    | "roleRef"
                    | "scaleTargetRef"
                    | "secretKeyRef"
                    | "configMapKeyRef"
                    | "fieldRef"
                    | "resourceFieldRef"
            ),
        }
    }

    /// What becomes of two lists with these items.
    pub(super) fn lists(self, items: &[&Val]) -> Lists<'s> {
        let keys: Vec<&str> = match self.of {
            Of::Custom(schema) if says(schema, "x-kubernetes-list-type", "set") => return Lists::Set,
            Of::Custom(schema) if says(schema, "x-kubernetes-list-type", "map") => {
                let keys = schema.map_or(&[][..], |schema| schema.items_at(&["x-kubernetes-list-map-keys"]));
                keys.iter().filter_map(|key| key.as_str()).map(|key| &**key).collect()
            }
            Of::Custom(_) => Vec::new(),
            Of::BuiltIn { .. } if self.field == "finalizers" => return Lists::Set,
            Of::BuiltIn { is_service } => built_in_keys(self.field, is_service, items).to_vec(),
        };
        let named = |item: &&Val| keys.first().is_some_and(|key| item.get(key).is_some());
        if items.iter().all(named) && !keys.is_empty() { Lists::Keyed(keys) } else { Lists::Atomic }
    }
}

fn says(schema: Option<&Val>, extension: &str, value: &str) -> bool {
    schema.and_then(|schema| schema.str_at(&[extension])).is_some_and(|found| &**found == value)
}

/// The keys of a built-in list; none where it is atomic.
fn built_in_keys(field: &str, is_service: bool, items: &[&Val]) -> &'static [&'static str] {
    match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "secrets"
        | "resourceClaims"
        | "claims"
        | "schedulingGates"
        | "webhooks"
        | "matchConditions"
        | "variables" => &["name"],
        "ports" if is_service => &["port", "protocol"],
        "ports" if items.iter().any(|item| item.get("containerPort").is_some()) => &["containerPort", "protocol"],
        "volumeMounts" => &["mountPath"],
        "volumeDevices" => &["devicePath"],
        "hostAliases" => &["ip"],
        "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
        "conditions" | "addresses" => &["type"],
        "ownerReferences" => &["uid"],
        _ => &[],
    }
}

/// The value of a key of an item, with its default.
pub(super) fn key_of(item: &Val, key: &str) -> Val {
    let default = || if key == "protocol" { Val::str("TCP") } else { Val::Null };
    item.get(key).cloned().unwrap_or_else(default)
}

/// What tells an item of a keyed list from the others.
pub(super) fn keys_of(item: &Val, keys: &[&str]) -> Vec<(Str, Val)> {
    let mut keys: Vec<(Str, Val)> = keys.iter().map(|key| (Str::from(*key), key_of(item, key))).collect();
    keys.sort();
    keys
}
