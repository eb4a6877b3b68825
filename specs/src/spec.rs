//! The kinds of `suture.dev/v1alpha1`: their types, and reading them from YAML with errors that name the place.
//!
//! The JSON schema that editors get is derived from these types, and is also what a document is checked against.

use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use suture_model::ingest::parse_documents;
use suture_model::value::{Str, Val};

mod adapter;
mod codes;
mod decode;
mod error;
mod invariant;
mod places;
mod policy;
mod repair;
mod scalar;
mod spent;
mod subject;
mod suite;

pub use adapter::{Access, AdapterReference, AdapterTarget, Listed, ResourceAdapterSpec, ScaleTarget};
pub use codes::{CODES, Code, find_code};
pub use error::{Origin, SpecError};
pub use invariant::{
    Action, ForEach, Hold, InvariantSpec, InvariantTemplateSpec, Match, OnUndecided, ParamType, Parameter, Profile,
    ProfileInvariant, Profiles, Requirement, Under, Violations,
};
pub use policy::{Budget, ExemptionSpec, GrantInvariants, GroupKind, OperatorGrantSpec, Scope};
pub use scalar::{Cel, KindRef};
pub use spent::{ObjectName, ScaledWorkload, SpentEntry, TakenObject, spent_in, spent_of, spent_schema};
pub use subject::{Subject, SubjectKind};
pub use suite::{
    As, Case, Expect, FileOrInline, NamedRef, ObjectRef, Observation, Preconditions, Propagation, Step, SuiteSpec, Verb,
};

/// The API version of every kind here.
pub const API_VERSION: &str = "suture.dev/v1alpha1";

/// One document: its name, its spec, and where it stands.
#[derive(Clone, Debug)]
pub struct Resource<S> {
    /// `metadata.name`.
    pub name: Str,
    /// `metadata.namespace`, of namespaced kinds.
    pub namespace: Option<Str>,
    /// `metadata.labels`, as a map value.
    pub labels: Val,
    /// The spec.
    pub spec: S,
    /// What the cluster says of it; null where it says nothing.
    pub status: Val,
    /// Where it was read.
    pub origin: Origin,
}

impl<S> Resource<S> {
    /// What tells it from all others of its kind, and a NamespacedInvariant from every Invariant: its name, in a namespace
    /// `namespace/name`.
    pub fn qualified_name(&self) -> Str {
        self.namespace.as_ref().map_or_else(|| self.name.clone(), |ns| format!("{ns}/{}", self.name).into())
    }
}

/// An `Invariant`, or a `NamespacedInvariant`, which has a namespace.
pub type Invariant = Resource<InvariantSpec>;
/// An `InvariantTemplate`.
pub type InvariantTemplate = Resource<InvariantTemplateSpec>;
/// A `ResourceAdapter`.
pub type ResourceAdapter = Resource<ResourceAdapterSpec>;
/// An `OperatorGrant`.
pub type OperatorGrant = Resource<OperatorGrantSpec>;
/// An `Exemption`.
pub type Exemption = Resource<ExemptionSpec>;
/// A `Suite`.
pub type Suite = Resource<SuiteSpec>;

/// A document of any of our kinds.
#[derive(Clone, Debug)]
pub enum Spec {
    /// An invariant; with a namespace, a NamespacedInvariant.
    Invariant(Box<Invariant>),
    /// A template.
    InvariantTemplate(Box<InvariantTemplate>),
    /// What a custom resource means.
    ResourceAdapter(Box<ResourceAdapter>),
    /// What binds an operator.
    OperatorGrant(Box<OperatorGrant>),
    /// A broken glass.
    Exemption(Box<Exemption>),
    /// Tests.
    Suite(Box<Suite>),
}

/// The fields of `metadata`: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go (ObjectMeta).
const METADATA: [&str; 15] = [
    "name",
    "namespace",
    "labels",
    "annotations",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "selfLink",
];

/// How often what is wrong is left out of a document: a wrong field at its top hides the others there.
const REPAIRS_MAX: usize = 8;

/// The names of our kinds.
pub const KINDS: [&str; 7] =
    ["Invariant", "NamespacedInvariant", "InvariantTemplate", "ResourceAdapter", "OperatorGrant", "Exemption", "Suite"];

/// Reads all documents of a text; every one must be of one of our kinds.
///
/// # Errors
/// All that is wrong with it, document by document.
pub fn parse_specs(text: &str, file: &str) -> Result<Vec<Spec>, Vec<SpecError>> {
    let (specs, errors) = parse_what_is_right(text, file);
    if errors.is_empty() { Ok(specs) } else { Err(errors) }
}

/// The documents of a text, without what is wrong in them, and all that is wrong. One that is malformed hides no other, and
/// what is wrong in a document hides nothing else in it.
pub fn parse_what_is_right(text: &str, file: &str) -> (Vec<Spec>, Vec<SpecError>) {
    let (mut specs, mut errors) = (Vec::new(), Vec::new());
    let parts = match parse_documents(text, file) {
        Ok(documents) => vec![(Str::from(text), Ok(documents))],
        Err(error) => match separated(text) {
            several if several.len() > 1 => {
                several.into_iter().map(|part| (Str::from(&*part), parse_documents(&part, file))).collect()
            }
            _ => vec![(Str::from(text), Err(error))],
        },
    };
    for (text, part) in parts {
        match part {
            Ok(documents) => {
                for document in documents {
                    let line = Some(document.line);
                    let origin = Origin { file: file.into(), line, text: text.clone(), ..Origin::default() };
                    specs.extend(parse_rest(document.val, origin, &mut errors));
                }
            }
            Err(error) => {
                let (file, line) = (error.file.as_str().into(), Some(error.line));
                let origin = Origin { file, line, text: text.clone(), ..Origin::default() };
                errors.push(SpecError::malformed(&origin, error.column, error.message, error.help));
            }
        }
    }
    (specs, errors)
}

/// A document, without what is wrong in it if something is; `None` where nothing is left of it.
fn parse_rest(mut val: Val, mut origin: Origin, errors: &mut Vec<SpecError>) -> Option<Spec> {
    for _ in 0..REPAIRS_MAX {
        let more = match parse_spec(&val, origin.clone()) {
            Ok(spec) => return Some(spec),
            Err(more) => more,
        };
        let wrong = more.iter().map(|error| error.path.as_str()).collect();
        let rest = repair::without(&val, &wrong);
        errors.extend(more.into_iter().filter(|error| !error.may_follow));
        let (less, left_out) = rest?;
        origin.left_out.extend(left_out);
        val = less;
    }
    None
}

/// The documents of a text, each after so many empty lines that its lines have their numbers.
fn separated(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_end() == "---" {
            parts.push("\n".repeat(number + 1));
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Reads one document from its value, such as one given inline in a suite.
///
/// # Errors
/// All that is wrong with it.
pub fn parse_spec(val: &Val, origin: Origin) -> Result<Spec, Vec<SpecError>> {
    let name = val.str_at(&["metadata", "name"]).cloned().unwrap_or_default();
    let kind = val.str_at(&["kind"]).cloned().unwrap_or_default();
    parse_named(val, origin).map_err(|mut errors| {
        errors.iter_mut().for_each(|error| error.document = Some((kind.clone(), name.clone())));
        errors
    })
}

fn parse_named(val: &Val, origin: Origin) -> Result<Spec, Vec<SpecError>> {
    let kind = header(val, &origin).map_err(|e| vec![e])?;
    match &*kind {
        "Invariant" => resource(val, origin, false).map(|r| Spec::Invariant(Box::new(r))),
        "NamespacedInvariant" => resource(val, origin, true).map(|r| Spec::Invariant(Box::new(r))),
        "InvariantTemplate" => resource(val, origin, false).map(|r| Spec::InvariantTemplate(Box::new(r))),
        "ResourceAdapter" => resource(val, origin, false).map(|r| Spec::ResourceAdapter(Box::new(r))),
        "OperatorGrant" => resource(val, origin, false).map(|r| Spec::OperatorGrant(Box::new(r))),
        "Exemption" => resource(val, origin, false).map(|r| Spec::Exemption(Box::new(r))),
        "Suite" => resource(val, origin, false)
            .and_then(|r: Suite| suite::check(&r.spec, &r.origin).map(|()| r))
            .map(|r| Spec::Suite(Box::new(r))),
        other => {
            let message = format!("`{other}` is no kind of {API_VERSION}");
            Err(vec![SpecError::new(&origin, "kind", message).suggesting(&other, KINDS)])
        }
    }
}

/// Whether a document claims to be of our API group.
pub fn is_ours(val: &Val) -> bool {
    val.str_at(&["apiVersion"]).is_some_and(|v| v.starts_with("suture.dev/"))
}

fn header(val: &Val, origin: &Origin) -> Result<Str, SpecError> {
    for (key, _) in val.entries() {
        if !["apiVersion", "kind", "metadata", "spec", "status"].contains(&&**key) {
            let known = ["apiVersion", "kind", "metadata", "spec", "status"];
            let error = SpecError::unknown_field(origin, "", key, known);
            let fields = val.str_at(&["kind"]).and_then(|kind| json_schemas().remove(&**kind));
            let belongs = fields.and_then(|schema| decode::where_it_belongs(&schema, key));
            return Err(match belongs {
                Some(place) => error.helped(format!("`{key}` belongs under `{place}`")),
                None => error,
            });
        }
    }
    let version = val.str_at(&["apiVersion"]);
    // a suite's example may leave the version out: there is only one
    if let Some(version) = version.filter(|v| &***v != API_VERSION) {
        let message = format!("`{version}` is not `{API_VERSION}`");
        return Err(SpecError::new(origin, "apiVersion", message));
    }
    val.str_at(&["kind"]).cloned().ok_or_else(|| SpecError::new(origin, "kind", "`kind` is missing".to_owned()))
}

fn resource<S: DeserializeOwned + JsonSchema>(
    val: &Val,
    origin: Origin,
    namespaced: bool,
) -> Result<Resource<S>, Vec<SpecError>> {
    let Some(name) = val.str_at(&["metadata", "name"]).cloned() else {
        return Err(vec![SpecError::new(&origin, "metadata.name", "`metadata.name` is missing".to_owned())]);
    };
    let metadata = val.get("metadata").into_iter().flat_map(Val::entries);
    let unknown = metadata.filter(|(key, _)| !METADATA.contains(&&***key));
    let unknown: Vec<SpecError> =
        unknown.map(|(key, _)| SpecError::unknown_field(&origin, "metadata", key, METADATA)).collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let namespace = val.str_at(&["metadata", "namespace"]).cloned().filter(|ns| !ns.is_empty());
    if namespaced && namespace.is_none() {
        let message = "a NamespacedInvariant needs `metadata.namespace`".to_owned();
        return Err(vec![SpecError::new(&origin, "metadata", message)]);
    }
    let Some(spec) = val.get("spec") else {
        return Err(vec![SpecError::new(&origin, "spec", "`spec` is missing".to_owned())]);
    };
    let spec = decode::decode(spec, "spec", &origin)?;
    let labels = val.at(&["metadata", "labels"]).cloned().unwrap_or_default();
    let status = val.get("status").cloned().unwrap_or_default();
    Ok(Resource { name, namespace: namespace.filter(|_| namespaced), labels, spec, status, origin })
}

/// The JSON schema of every kind, by its name: what editors check documents against, and what CRDs carry as `spec`.
pub fn json_schemas() -> BTreeMap<&'static str, serde_json::Value> {
    BTreeMap::from([
        ("Invariant", schema_for!(InvariantSpec).to_value()),
        ("NamespacedInvariant", schema_for!(InvariantSpec).to_value()),
        ("InvariantTemplate", schema_for!(InvariantTemplateSpec).to_value()),
        ("ResourceAdapter", schema_for!(ResourceAdapterSpec).to_value()),
        ("OperatorGrant", schema_for!(OperatorGrantSpec).to_value()),
        ("Exemption", schema_for!(ExemptionSpec).to_value()),
        ("Suite", schema_for!(SuiteSpec).to_value()),
    ])
}
