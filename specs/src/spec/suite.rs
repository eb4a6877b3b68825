//! `Suite`: tests beside specs.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use suture_model::value::Val;

use super::error::{Origin, SpecError};
use super::invariant::Profile;
use super::scalar::KindRef;

/// Invariants, a state, and what becomes of requests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SuiteSpec {
    /// Where the story comes from: a link, or text.
    pub source: Option<String>,
    /// The profile of shipped templates that is judged beside `invariants`; default none.
    pub profile: Option<Profile>,
    /// Invariants and templates: files, or inline objects; the shipped library is always loaded.
    #[serde(default)]
    pub invariants: Vec<FileOrInline>,
    /// Adapters: files, or inline objects.
    #[serde(default)]
    pub adapters: Vec<FileOrInline>,
    /// OperatorGrants and Exemptions: files, or inline objects.
    #[serde(default)]
    pub policies: Vec<FileOrInline>,
    /// The state: files, or inline objects.
    #[serde(default)]
    pub state: Vec<FileOrInline>,
    /// Kinds that were not read.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// The clock; default the newest timestamp in the state.
    pub time: Option<String>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// A file, or an object.
#[derive(Clone, Debug, PartialEq)]
pub enum FileOrInline {
    /// A path relative to the suite.
    File(String),
    /// An object.
    Inline(Val),
}

impl<'de> Deserialize<'de> for FileOrInline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Val::deserialize(deserializer)? {
            Val::Str(path) => Ok(Self::File(path.to_string())),
            object @ Val::Map(_) => Ok(Self::Inline(object)),
            _ => Err(D::Error::custom("expected a file or an object")),
        }
    }
}

impl JsonSchema for FileOrInline {
    fn schema_name() -> Cow<'static, str> {
        "FileOrInline".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "A file, or an object.", "anyOf": [{"type": "string"}, {"type": "object"}]})
    }
}

/// A case: a state and steps.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// Objects added to the state, or put in place of those of the same kind, namespace and name.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub set: Vec<Val>,
    /// Objects taken out of the state.
    #[serde(default)]
    pub unset: Vec<ObjectRef>,
    /// The steps, in order; an allowed one is in flight for the next one.
    pub steps: Vec<Step>,
}

/// The name of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectRef {
    /// The kind.
    pub kind: KindRef,
    /// The API group, where the kind is ambiguous.
    pub group: Option<String>,
    /// The namespace, of namespaced kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// The name of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamedRef {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// One step: exactly one of the verbs, and what is expected.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// Who sends it; default `kubernetes-admin` of `system:masters`.
    #[serde(rename = "as")]
    pub as_: Option<As>,
    /// CREATE of this manifest.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub create: Option<Val>,
    /// UPDATE with this manifest.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub update: Option<Val>,
    /// UPDATE of this object by a merge patch.
    pub patch: Option<ObjectRef>,
    /// The merge patch.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub with: Option<Val>,
    /// The subresource that `patch` or `update` writes.
    pub subresource: Option<String>,
    /// DELETE of this object.
    pub delete: Option<ObjectRef>,
    /// How `delete` treats dependents.
    pub propagation_policy: Option<Propagation>,
    /// What `delete` asks of the object; a contradiction means no effect.
    pub preconditions: Option<Preconditions>,
    /// UPDATE of the scale subresource of this object.
    pub scale: Option<ObjectRef>,
    /// The replicas that `scale` sets.
    pub replicas: Option<i64>,
    /// CREATE of `pods/eviction`.
    pub evict: Option<NamedRef>,
    /// CREATE of `pods/binding`.
    pub bind: Option<NamedRef>,
    /// The node of `bind`.
    pub node: Option<String>,
    /// An AdmissionReview: a file, or inline.
    pub review: Option<FileOrInline>,
    /// Several requests judged together, in order.
    pub batch: Option<Vec<Step>>,
    /// No request: the watch shows this, and time passes.
    pub observe: Option<Observation>,
    /// What becomes of it.
    pub expect: Option<Expect>,
    /// The names of invariants that must be among the broken ones.
    #[serde(default)]
    pub by: Vec<String>,
    /// Instances that must be among the broken ones.
    #[serde(default)]
    pub instances: Vec<String>,
    /// Parts of the message.
    #[serde(default)]
    pub contains: Vec<String>,
}

/// What the watch shows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Observation {
    /// Objects that appeared or changed.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub set: Vec<Val>,
    /// Objects that are gone.
    #[serde(default)]
    pub unset: Vec<ObjectRef>,
    /// How much time passed, `30s`.
    pub after: Option<String>,
}

/// What a deletion asks of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<String>,
    /// Its resourceVersion.
    pub resource_version: Option<String>,
}

/// How a deletion treats dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Propagation {
    /// The garbage collector deletes them later.
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// What becomes of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Expect {
    /// Admitted.
    Allowed,
    /// Refused.
    Denied,
    /// Admitted with a warning.
    Warned,
    /// Nothing could be decided.
    Undecided,
}

/// A user: a name, or name, groups and uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct As {
    /// The user name.
    pub username: String,
    /// The groups, when given.
    pub groups: Option<Vec<String>>,
    /// The uid, when given.
    pub uid: Option<String>,
}

impl<'de> Deserialize<'de> for As {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let val = Val::deserialize(deserializer)?;
        if let Val::Str(name) = &val {
            return Ok(Self { username: name.to_string(), groups: None, uid: None });
        }
        let username = val.str_at(&["username"]).ok_or_else(|| D::Error::custom("expected a user name"))?.to_string();
        let groups =
            val.get("groups").map(|g| g.items().iter().filter_map(Val::as_str).map(ToString::to_string).collect());
        Ok(Self { username, groups, uid: val.str_at(&["uid"]).map(ToString::to_string) })
    }
}

impl JsonSchema for As {
    fn schema_name() -> Cow<'static, str> {
        "As".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A user name, or a name with groups and uid.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {
                        "username": {"type": "string"},
                        "groups": {"type": "array", "items": {"type": "string"}},
                        "uid": {"type": "string"}
                    },
                    "required": ["username"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

/// The verb of a step, with what it takes.
#[derive(Clone, Copy, Debug)]
pub enum Verb<'s> {
    /// CREATE.
    Create(&'s Val),
    /// UPDATE.
    Update(&'s Val),
    /// UPDATE by a merge patch.
    Patch(&'s ObjectRef, &'s Val),
    /// DELETE.
    Delete(&'s ObjectRef),
    /// Scale to so many replicas.
    Scale(&'s ObjectRef, i64),
    /// Evict a pod.
    Evict(&'s NamedRef),
    /// Bind a pod to a node.
    Bind(&'s NamedRef, &'s str),
    /// An AdmissionReview.
    Review(&'s FileOrInline),
    /// Several requests.
    Batch(&'s [Step]),
    /// No request.
    Observe(&'s Observation),
}

impl Step {
    /// Its verb.
    ///
    /// # Errors
    /// When it has none or several, or the verb lacks what it takes; the message says which.
    pub fn verb(&self) -> Result<Verb<'_>, String> {
        let all: [(&str, Option<Option<Verb>>, &str); 10] = [
            ("create", self.create.as_ref().map(|v| Some(Verb::Create(v))), ""),
            ("update", self.update.as_ref().map(|v| Some(Verb::Update(v))), ""),
            ("patch", self.patch.as_ref().map(|o| self.with.as_ref().map(|w| Verb::Patch(o, w))), "with"),
            ("delete", self.delete.as_ref().map(|o| Some(Verb::Delete(o))), ""),
            ("scale", self.scale.as_ref().map(|o| self.replicas.map(|n| Verb::Scale(o, n))), "replicas"),
            ("evict", self.evict.as_ref().map(|p| Some(Verb::Evict(p))), ""),
            ("bind", self.bind.as_ref().map(|p| self.node.as_deref().map(|n| Verb::Bind(p, n))), "node"),
            ("review", self.review.as_ref().map(|r| Some(Verb::Review(r))), ""),
            ("batch", self.batch.as_ref().map(|b| Some(Verb::Batch(b))), ""),
            ("observe", self.observe.as_ref().map(|o| Some(Verb::Observe(o))), ""),
        ];
        let found: Vec<_> = all.into_iter().filter_map(|(name, verb, needs)| Some((name, verb?, needs))).collect();
        match found.as_slice() {
            [(_, Some(verb), _)] => Ok(*verb),
            [(name, None, needs)] => Err(format!("`{name}` needs `{needs}`")),
            [] => {
                Err("a step needs one of `create`, `update`, `patch`, `delete`, `scale`, `evict`, `bind`, `review`, \
                       `batch`, `observe`"
                    .to_owned())
            }
            [(a, ..), (b, ..), ..] => Err(format!("a step has one verb, this has `{a}` and `{b}`")),
        }
    }
}

/// What the types do not say: one verb a step, and what stands beside it.
pub(super) fn check(spec: &SuiteSpec, origin: &Origin) -> Result<(), Vec<SpecError>> {
    let mut errors = Vec::new();
    for (c, case) in spec.cases.iter().enumerate() {
        for (s, step) in case.steps.iter().enumerate() {
            let path = format!("spec.cases[{c}].steps[{s}]");
            check_step(step, &path, false, &mut |path, message| {
                errors.push(SpecError::new(origin, path, message));
            });
        }
    }
    if let Some(time) = &spec.time
        && let Err(error) = crate::time::parse_timestamp(time)
    {
        errors.push(SpecError::new(origin, "spec.time", error.to_string()));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn check_step(step: &Step, path: &str, inner: bool, report: &mut dyn FnMut(&str, String)) {
    let verb = match step.verb() {
        Ok(verb) => verb,
        Err(message) => return report(path, message),
    };
    let asked = step.expect.is_some() || !step.by.is_empty() || !step.instances.is_empty() || !step.contains.is_empty();
    match verb {
        Verb::Observe(observation) => {
            if asked {
                report(path, "`observe` is no request: nothing can be expected of it".to_owned());
            }
            if let Some(Err(error)) = observation.after.as_deref().map(crate::time::parse_duration) {
                report(&format!("{path}.observe.after"), error.to_string());
            }
        }
        Verb::Batch(steps) => {
            for (i, step) in steps.iter().enumerate() {
                check_step(step, &format!("{path}.batch[{i}]"), true, report);
            }
        }
        _ => {}
    }
    if inner && asked {
        report(path, "what is expected stands beside `batch`, not in its steps".to_owned());
    } else if !inner && !asked && !matches!(verb, Verb::Observe(_)) {
        report(path, "`expect` is missing".to_owned());
    }
    if step.expect == Some(Expect::Allowed) && (!step.by.is_empty() || !step.instances.is_empty()) {
        report(path, "nothing is broken by a step that is Allowed: `by` and `instances` make no sense".to_owned());
    }
    if step.propagation_policy.is_some() && step.delete.is_none() {
        report(path, "`propagationPolicy` stands beside `delete`".to_owned());
    }
}
