//! What a schema derived from types does not say: rules between fields, bounds, formats; and the status, common to all.
//!
//! Rules are CEL of the API server. A field that may be a text or a map has no type there and cannot be named in one.

use serde_json::{Map, Value as Json, json};
use suture_specs::spec::spent_schema;

use super::structural::structural;
use crate::grants::RECORDED_MAX;

/// How many violations a status lists.
pub const VIOLATIONS_MAX: usize = 20;
/// How many replicas a status lists.
pub const PODS_MAX: usize = 32;

/// Adds what is to be said about a kind's spec.
pub fn apply(kind: &str, spec: &mut Json) {
    for (path, more) in overlays(kind) {
        if let Some(node) = at(spec, path).and_then(Json::as_object_mut) {
            for (key, value) in more.as_object().into_iter().flatten() {
                node.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The node of a path such as `budgets[].window`.
fn at<'s>(schema: &'s mut Json, path: &str) -> Option<&'s mut Json> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(schema, |node, part| {
        let (name, item) = part.strip_suffix("[]").map_or((part, false), |name| (name, true));
        let found = node.get_mut("properties")?.get_mut(name)?;
        if item { found.get_mut("items") } else { Some(found) }
    })
}

fn rule(rule: &str, message: &str) -> Json {
    json!({"rule": rule, "message": message})
}

fn subjects(path: &'static str, item: &'static str) -> [(&'static str, Json); 3] {
    let namespaced =
        rule("!has(self.__namespace__) || self.kind == 'ServiceAccount'", "only a ServiceAccount has a namespace");
    let name = match item {
        "subjects[]" => "subjects[].name",
        _ => "name",
    };
    [
        (path, json!({"maxItems": 256})),
        (item, json!({"x-kubernetes-validations": [namespaced]})),
        (name, json!({"minLength": 1, "maxLength": 512})),
    ]
}

fn overlays(kind: &str) -> Vec<(&'static str, Json)> {
    let mut found = match kind {
        "Invariant" | "NamespacedInvariant" => invariant(),
        "InvariantTemplate" => vec![
            ("description", json!({"minLength": 1})),
            ("require", json!({"minItems": 1, "maxItems": 64})),
            ("forEach", json!({"anyOf": [{"required": ["kind"]}, {"required": ["kinds"]}]})),
        ],
        "ResourceAdapter" => vec![
            ("group", json!({"minLength": 1, "maxLength": 253})),
            ("kind", json!({"minLength": 1, "maxLength": 63})),
        ],
        "OperatorGrant" => grant(),
        "Exemption" => vec![
            ("invariant", json!({"minLength": 1})),
            ("instances", json!({"maxItems": 1024})),
            ("expires", json!({"format": "date-time", "maxLength": 64})),
            ("reason", json!({"minLength": 1})),
        ],
        _ => Vec::new(),
    };
    if matches!(kind, "Invariant" | "NamespacedInvariant" | "OperatorGrant" | "Exemption") {
        found.extend(subjects("subjects", "subjects[]"));
    }
    if kind == "OperatorGrant" {
        found.push(("subjects", json!({"minItems": 1})));
    }
    found
}

fn invariant() -> Vec<(&'static str, Json)> {
    let own = "has(self.forEach) || has(self.__let__) || has(self.degree)";
    let rules = json!([
        rule("has(self.template) != has(self.require)", "an invariant has exactly one of `template` and `require`"),
        rule(
            &format!("!has(self.template) || !({own})"),
            "`forEach`, `let` and `degree` are the template's: leave them out, or leave out `template`",
        ),
        rule("has(self.template) || has(self.forEach)", "without a template an invariant needs `forEach`"),
        rule("has(self.template) || !has(self.params)", "only a template has `params`"),
    ]);
    vec![
        ("", json!({"x-kubernetes-validations": rules})),
        ("template", json!({"minLength": 1, "maxLength": 253})),
        ("require", json!({"minItems": 1, "maxItems": 64})),
        ("forEach", json!({"anyOf": [{"required": ["kind"]}, {"required": ["kinds"]}]})),
    ]
}

fn grant() -> Vec<(&'static str, Json)> {
    let positive = rule("duration(self) > duration('0s')", "a window is a time such as 30s, 10m or 1h");
    let either = rule("has(self.max) != has(self.percent)", "a budget has exactly one of `max` and `percent`");
    vec![
        ("budgets", json!({"maxItems": 64})),
        (
            "budgets[]",
            json!({
                "x-kubernetes-validations": [either],
                "oneOf": [{"required": ["verb", "kind", "max"]}, {"required": ["disrupt", "percent"]}],
            }),
        ),
        ("budgets[].verb", json!({"enum": ["delete"]})),
        ("budgets[].percent", json!({"maximum": 100})),
        (
            "budgets[].window",
            json!({
                "maxLength": 32,
                "pattern": "^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+$",
                "x-kubernetes-validations": [positive],
            }),
        ),
    ]
}

fn described(ty: &str, description: &str) -> Json {
    if ty == "integer" {
        json!({"type": ty, "format": "int64", "description": description})
    } else {
        json!({"type": ty, "description": description})
    }
}

/// The status of a kind: the same for all, but that what judges requests says what it does.
pub fn status(kind: &str) -> Json {
    let mut status = object(
        "How it stands; written by Suture.",
        &[],
        [
            ("observedGeneration", described("integer", "The generation that the conditions are about.")),
            (
                "conditions",
                json!({
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": condition(),
                    "description": "Ready: every replica has loaded it. Compiled: it means something. Enforced: requests \
                                    are judged by it. InTime: it takes no more of a decision than it may. Violated: an \
                                    instance is violated in the cluster as it is.",
                }),
            ),
            ("violations", violations()),
            (
                "byPod",
                json!({
                    "type": "array",
                    "maxItems": PODS_MAX,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["pod"],
                    "items": replica(),
                    "description": "What each replica of Suture says.",
                }),
            ),
        ],
    );
    let does = json!({
        "type": "string",
        "enum": ["Deny", "Warn", "Audit"],
        "description": "What becomes of a request that it refuses: what it says itself, else its template, else Deny.",
    });
    let judges = matches!(kind, "Invariant" | "NamespacedInvariant" | "OperatorGrant");
    let properties = status.get_mut("properties").and_then(Json::as_object_mut);
    if let Some(properties) = properties.filter(|_| judges) {
        properties.insert("action".to_owned(), does);
        if kind == "OperatorGrant" {
            properties.insert("spent".to_owned(), spent());
        }
    }
    status
}

/// What was spent of a grant's budgets.
fn spent() -> Json {
    let mut spent = structural(&spent_schema());
    if let Some(spent) = spent.as_object_mut() {
        let description = "What its subjects took of its budgets, oldest first, as long as a window reaches it.";
        spent.insert("description".to_owned(), json!(description));
        spent.insert("maxItems".to_owned(), json!(RECORDED_MAX));
    }
    spent
}

/// A condition, as in `metav1.Condition`.
fn condition() -> Json {
    object(
        "One aspect of its standing.",
        &["type", "status", "lastTransitionTime", "reason", "message"],
        [
            ("type", described("string", "Ready, Compiled, Enforced, InTime or Violated.")),
            (
                "status",
                json!({"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it is so."}),
            ),
            ("observedGeneration", described("integer", "The generation that this is said of.")),
            (
                "lastTransitionTime",
                json!({"type": "string", "format": "date-time", "description": "Since when it is so."}),
            ),
            ("reason", described("string", "Why, in one word.")),
            ("message", described("string", "Why, for a person.")),
        ],
    )
}

/// What the last audit found.
fn violations() -> Json {
    let violation = object(
        "An instance that is violated in the cluster as it is.",
        &["instance"],
        [
            ("instance", described("string", "The instance: Kind/namespace/name.")),
            ("message", described("string", "What is broken.")),
        ],
    );
    object(
        "What is violated now, as the last audit found it.",
        &["total"],
        [
            ("total", described("integer", "How many instances are violated.")),
            (
                "first",
                json!({
                    "type": "array",
                    "maxItems": VIOLATIONS_MAX,
                    "items": violation,
                    "description": format!("Up to {VIOLATIONS_MAX} of them."),
                }),
            ),
            ("audited", json!({"type": "string", "format": "date-time", "description": "When it was looked at."})),
        ],
    )
}

/// An entry of `byPod`.
fn replica() -> Json {
    object(
        "What one replica of Suture says.",
        &["pod", "observedGeneration", "compiled", "ready"],
        [
            ("pod", described("string", "The replica.")),
            ("observedGeneration", described("integer", "The generation that it has loaded.")),
            ("compiled", described("boolean", "Whether it compiles.")),
            ("ready", described("boolean", "Whether all that it reads is listed.")),
            ("enforced", described("boolean", "Whether requests are judged by it.")),
            ("inTime", described("boolean", "Whether it takes no more of a decision than it may.")),
            ("message", described("string", "What is wrong.")),
            ("reported", json!({"type": "string", "format": "date-time", "description": "When it said so."})),
        ],
    )
}

fn object<const N: usize>(description: &str, required: &[&str], properties: [(&str, Json); N]) -> Json {
    let properties: Map<String, Json> = properties.into_iter().map(|(name, node)| (name.to_owned(), node)).collect();
    if required.is_empty() {
        json!({"type": "object", "description": description, "properties": properties})
    } else {
        json!({"type": "object", "description": description, "required": required, "properties": properties})
    }
}
