//! `ResourceAdapter`: what a custom resource means.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use suture_model::kinds::Kind;
use suture_model::value::Val;

use super::scalar::Cel;

/// Expressions over `self`, the custom resource.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceAdapterSpec {
    /// The API group of the custom resource.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// How many pods it wants.
    pub replicas: Option<Cel>,
    /// The labels of the pods it runs.
    pub selector: Option<Cel>,
    /// The labels of the claims it wants kept while it lives.
    pub claim_selector: Option<Cel>,
    /// A PodTemplateSpec or PodSpec; may be built as a map.
    pub template: Option<Cel>,
    /// The objects that its operator makes, and wants while it lives.
    pub children: Option<Listed<AdapterTarget>>,
    /// What it needs, or writes.
    pub references: Option<Listed<AdapterReference>>,
    /// Whether the pods of `selector` vote.
    pub quorum: Option<Cel>,
    /// What it scales.
    pub scale_target: Option<ScaleTarget>,
    /// The lowest and highest number that it may scale to: a list of two.
    pub replica_range: Option<Cel>,
    /// Whether deleting it deletes the claims of `claimSelector` or, without one, those that its StatefulSets make and that
    /// the pods of `selector` name.
    pub deletes_volumes: Option<Cel>,
    /// Whether deleting it deletes its children.
    pub cascades: Option<Cel>,
    /// What is left to its operator: sentences that every proof about such an object lists among its assumptions.
    #[serde(default)]
    pub assumes: Vec<String>,
    /// Whether what its operator does is not modelled, whatever else this says: changes of it are handled as those of a
    /// kind without adapter.
    #[serde(default)]
    pub unmodelled: bool,
}

impl ResourceAdapterSpec {
    /// The kind that it is for.
    pub fn for_kind(&self) -> Kind {
        Kind::new(&self.group, &self.kind)
    }
}

/// Entries, or one expression that gives a list of them.
#[derive(Clone, Debug)]
pub enum Listed<T> {
    /// Entries.
    Entries(Vec<T>),
    /// A CEL list of maps with the same fields.
    Expression(Cel),
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Val::deserialize(deserializer)? {
            Val::Str(s) => Ok(Self::Expression(Cel(s.to_string()))),
            val => from_val(&val).map(Self::Entries).map_err(D::Error::custom),
        }
    }
}

fn from_val<T: DeserializeOwned>(val: &Val) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(val)?)
}

impl<T: JsonSchema> JsonSchema for Listed<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("ListOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({
            "description": "Entries, or one CEL expression that gives a list of them.",
            "anyOf": [{"type": "array", "items": items}, {"type": "string"}]
        })
    }
}

/// An object named by an adapter. `kind` and `group` are names, or expressions if they speak of `self`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdapterTarget {
    /// The kind.
    pub kind: String,
    /// The API group, where the kind is ambiguous.
    pub group: Option<String>,
    /// The name: an expression; null or empty for none.
    pub name: Cel,
    /// The namespace: an expression; default that of the custom resource.
    pub namespace: Option<Cel>,
}

/// A reference of a custom resource.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdapterReference {
    /// The kind.
    pub kind: String,
    /// The API group, where the kind is ambiguous.
    pub group: Option<String>,
    /// The name: an expression; null or empty for none.
    pub name: Cel,
    /// The namespace: an expression; default that of the custom resource.
    pub namespace: Option<Cel>,
    /// Whether it reads or writes the object; default Read.
    #[serde(default)]
    pub access: Access,
    /// Whether it works without: an expression; default false.
    pub optional: Option<Cel>,
}

/// What a custom resource does with what it refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Access {
    /// It needs the object.
    #[default]
    Read,
    /// It writes the object.
    Write,
}

/// A scale target: its parts, or one expression that gives a map of them.
#[derive(Clone, Debug)]
pub enum ScaleTarget {
    /// Its parts.
    Parts(AdapterTarget),
    /// A CEL map `{kind, name, group, namespace}`.
    Expression(Cel),
}

impl<'de> Deserialize<'de> for ScaleTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Val::deserialize(deserializer)? {
            Val::Str(s) => Ok(Self::Expression(Cel(s.to_string()))),
            val => from_val(&val).map(Self::Parts).map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for ScaleTarget {
    fn schema_name() -> Cow<'static, str> {
        "ScaleTarget".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let parts = generator.subschema_for::<AdapterTarget>();
        json_schema!({"anyOf": [{"type": "string"}, parts]})
    }
}
