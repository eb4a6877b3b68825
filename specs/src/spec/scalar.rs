//! Fields that may be written in more than one way: expressions and kinds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use suture_model::kinds::Kind;
use suture_model::value::Val;

/// The text of an expression. A number or a Boolean in YAML is the expression of that constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cel(pub String);

impl fmt::Display for Cel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Cel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Val::deserialize(deserializer)? {
            Val::Str(s) => Ok(Self(s.to_string())),
            Val::Int(i) => Ok(Self(i.to_string())),
            Val::Bool(b) => Ok(Self(b.to_string())),
            _ => Err(D::Error::custom("expected an expression")),
        }
    }
}

impl JsonSchema for Cel {
    fn schema_name() -> Cow<'static, str> {
        "Cel".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "A CEL expression.", "type": ["string", "integer", "boolean"]})
    }
}

/// The form of a Kubernetes label selector, for schemas only: its value is read as it stands.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "LabelSelector")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct LabelSelectorForm {
    /// Labels that must be there, with these values.
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    /// What else must hold of the labels; every entry.
    #[serde(default)]
    match_expressions: Vec<LabelExpressionForm>,
}

/// What must hold of one label.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "LabelExpression")]
#[expect(dead_code, reason = "only its schema is used")]
struct LabelExpressionForm {
    /// The label.
    key: String,
    /// In, NotIn, Exists or DoesNotExist.
    operator: String,
    /// The values of In and NotIn.
    #[serde(default)]
    values: Vec<String>,
}

/// A kind: `Pod`, or `{group, kind}` where the short form is ambiguous.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindRef {
    /// The group, where it is given.
    pub group: Option<String>,
    /// The kind.
    pub kind: String,
}

impl KindRef {
    /// The kind with its group: the one given, else that of the built-in kind of this name; `None` when it is neither.
    pub fn resolve(&self) -> Option<Kind> {
        match &self.group {
            Some(group) => Some(Kind::new(group, &self.kind)),
            None => Kind::builtin(&self.kind),
        }
    }

    /// Whether a kind is meant: any group when none is given and the kind is not built in.
    pub fn matches(&self, kind: &Kind) -> bool {
        *kind.kind == *self.kind
            && match &self.group {
                Some(group) => *kind.group == **group,
                None => kind.builtin_namespaced().is_some() || Kind::builtin(&self.kind).is_none(),
            }
    }
}

impl fmt::Display for KindRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

impl<'de> Deserialize<'de> for KindRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let val = Val::deserialize(deserializer)?;
        if let Val::Str(kind) = &val {
            return Ok(Self { group: None, kind: kind.to_string() });
        }
        let kind = val.str_at(&["kind"]).ok_or_else(|| D::Error::custom("expected a kind"))?;
        Ok(Self { group: val.str_at(&["group"]).map(ToString::to_string), kind: kind.to_string() })
    }
}

impl JsonSchema for KindRef {
    fn schema_name() -> Cow<'static, str> {
        "KindRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A kind, with its group where the short form is ambiguous.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"group": {"type": "string"}, "kind": {"type": "string"}},
                    "required": ["kind"],
                    "additionalProperties": false
                }
            ]
        })
    }
}
