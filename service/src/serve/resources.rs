//! Suture's own kinds as CustomResourceDefinitions, generated from the Rust types that read them.
//!
//! Their `spec` is the JSON schema of `suture_specs::spec`, brought into the structural form that Kubernetes asks for;
//! `overlay` adds what a schema derived from types does not say; `status` is the same for all.

use serde_json::{Map, Value as Json, json};
use suture_specs::spec::json_schemas;

pub mod admission;
mod overlay;
pub mod structural;

/// One of Suture's kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The kind.
    pub kind: &'static str,
    /// Its plural.
    pub plural: &'static str,
    /// Short names for kubectl.
    pub short: &'static [&'static str],
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// What it is, in one line.
    description: &'static str,
    /// Columns of `kubectl get` before those of the status: name and path.
    columns: &'static [(&'static str, &'static str)],
}

/// One of Suture's own objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceName {
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ResourceName {
    /// The resource that an invariant of this name comes from, if it comes from one: that of a NamespacedInvariant has its
    /// namespace before it.
    pub fn of_invariant(name: &str) -> Self {
        match name.rsplit_once('/') {
            Some((ns, name)) => {
                Self { kind: "NamespacedInvariant".to_owned(), namespace: Some(ns.to_owned()), name: name.to_owned() }
            }
            None => Self { kind: "Invariant".to_owned(), namespace: None, name: name.to_owned() },
        }
    }

    /// The resource that a grant comes from, if it comes from one.
    pub fn of_grant(name: &str) -> Self {
        Self { kind: "OperatorGrant".to_owned(), namespace: None, name: name.to_owned() }
    }

    /// `Kind/name` or `Kind/namespace/name`.
    pub fn label(&self) -> String {
        let Self { kind, namespace, name } = self;
        match namespace {
            Some(ns) => format!("{kind}/{ns}/{name}"),
            None => format!("{kind}/{name}"),
        }
    }
}

/// The API group.
pub const GROUP: &str = "suture.dev";
/// The only version.
pub const VERSION: &str = "v1alpha1";

/// Suture's kinds. A Suite is a file beside specs, not an object of a cluster.
pub const RESOURCES: [Resource; 6] = [
    Resource {
        kind: "Invariant",
        plural: "invariants",
        short: &["inv"],
        namespaced: false,
        description: "What must hold in every future of the cluster.",
        columns: &[("Template", ".spec.template"), ("Action", ".status.action")],
    },
    Resource {
        kind: "NamespacedInvariant",
        plural: "namespacedinvariants",
        short: &["ninv"],
        namespaced: true,
        description: "What must hold in every future of its own namespace, the only one that it sees.",
        columns: &[("Template", ".spec.template"), ("Action", ".status.action")],
    },
    Resource {
        kind: "InvariantTemplate",
        plural: "invarianttemplates",
        short: &["invt"],
        namespaced: false,
        description: "An invariant with parameters, which Invariants name.",
        columns: &[],
    },
    Resource {
        kind: "ResourceAdapter",
        plural: "resourceadapters",
        short: &["adapter"],
        namespaced: false,
        description: "What a custom resource means: its pods, claims, references and children.",
        columns: &[("Group", ".spec.group"), ("Of", ".spec.kind")],
    },
    Resource {
        kind: "OperatorGrant",
        plural: "operatorgrants",
        short: &["grant"],
        namespaced: false,
        description: "What binds one operator: where it may write, what it may take away, which invariants judge it.",
        columns: &[("Action", ".status.action")],
    },
    Resource {
        kind: "Exemption",
        plural: "exemptions",
        short: &["exempt"],
        namespaced: false,
        description: "A broken glass: instances of an invariant that somebody may break until a given time.",
        columns: &[("Invariant", ".spec.invariant"), ("Expires", ".spec.expires")],
    },
];

/// The definitions, in the order of [`RESOURCES`].
pub fn definitions() -> Vec<Json> {
    let schemas = json_schemas();
    RESOURCES.iter().filter_map(|resource| Some(definition(resource, schemas.get(resource.kind)?))).collect()
}

fn definition(resource: &Resource, schema: &Json) -> Json {
    let Resource { kind, plural, short, namespaced, description, columns } = resource;
    let mut spec = structural::structural(schema);
    overlay::apply(kind, &mut spec);
    let root = json!({
        "description": description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "The API version: suture.dev/v1alpha1."},
            "kind": {"type": "string", "description": format!("The kind: {kind}.")},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": overlay::status(kind),
        },
    });
    let own = columns.iter().map(|(name, path)| json!({"name": name, "type": "string", "jsonPath": path}));
    let standing = ["Ready", "Enforced", "Violated"].map(|condition| {
        json!({
            "name": condition,
            "type": "string",
            "jsonPath": format!(".status.conditions[?(@.type=='{condition}')].status"),
        })
    });
    let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    let why = json!({
        "name": "Reason",
        "type": "string",
        "priority": 1,
        "jsonPath": ".status.conditions[?(@.type=='Ready')].message",
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{GROUP}"),
            "labels": {"app.kubernetes.io/name": "suture"},
        },
        "spec": {
            "group": GROUP,
            "scope": if *namespaced { "Namespaced" } else { "Cluster" },
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
                "shortNames": short,
                "categories": ["suture"],
            },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": root},
                "subresources": {"status": {}},
                "additionalPrinterColumns": own.chain(standing).chain([age, why]).collect::<Vec<Json>>(),
            }],
        },
    })
}

/// Schemas for editors, by file name: a whole document of each kind, with what is common to all.
pub fn editor_schemas() -> Map<String, Json> {
    let named = |(kind, schema): (&'static str, Json)| {
        let mut schema = schema;
        let definitions = schema.as_object_mut().and_then(|s| s.remove("$defs")).unwrap_or_else(|| json!({}));
        if let Some(spec) = schema.as_object_mut() {
            spec.remove("$schema");
        }
        let document = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": kind,
            "type": "object",
            "required": ["kind", "metadata", "spec"],
            "properties": {
                "apiVersion": {"const": format!("{GROUP}/{VERSION}")},
                "kind": {"const": kind},
                "metadata": {"type": "object", "required": ["name"]},
                "spec": schema,
                "status": {"type": "object"},
            },
            "additionalProperties": false,
            "$defs": definitions,
        });
        (format!("{}.json", kind.to_lowercase()), document)
    };
    json_schemas().into_iter().map(named).collect()
}

#[cfg(test)]
mod tests;
