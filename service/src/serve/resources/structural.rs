//! From the JSON schema of a type to the structural schema that a CustomResourceDefinition carries.
//!
//! Structural means: every node says its type, nothing is referred to, and what may be written in several ways says so with
//! an extension (`apiextensions-apiserver/pkg/apiserver/schema/structural.go`). A field that is a text or something else
//! keeps its description and is checked by admission, with the same reader as files.

use serde_json::{Map, Value as Json, json};

const FREE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// What each of several texts means, until it is added to the description.
const CHOICES: &str = "choices";

/// The structural form of a schema with its `$defs`.
pub fn structural(schema: &Json) -> Json {
    let definitions = schema.get("$defs").cloned().unwrap_or(Json::Null);
    Json::Object(node(schema, &definitions))
}

fn node(schema: &Json, definitions: &Json) -> Map<String, Json> {
    let mut out = raw(schema, definitions);
    if let Some(Json::String(choices)) = out.remove(CHOICES) {
        let own = out.get("description").and_then(Json::as_str).map_or_else(String::new, |own| format!("{own} "));
        out.insert("description".to_owned(), json!(format!("{own}{choices}")));
    }
    out
}

/// The node, what its choices mean still apart from its description.
fn raw(schema: &Json, definitions: &Json) -> Map<String, Json> {
    let mut out = Map::new();
    if let Some(description) = schema.get("description") {
        out.insert("description".to_owned(), description.clone());
    }
    if let Some(referred) = referred(schema, definitions) {
        merge(&mut out, raw(referred, definitions));
        return out;
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(alternatives) = schema.get(keyword).and_then(Json::as_array) {
            merge(&mut out, either(alternatives, definitions));
            return out;
        }
    }
    let types: Vec<&str> = types(schema).into_iter().filter(|ty| *ty != "null").collect();
    match types.as_slice() {
        ["object"] => merge(&mut out, object(schema, definitions)),
        ["array"] => {
            let items = schema.get("items").map_or_else(Map::new, |items| node(items, definitions));
            let items = if items.is_empty() { free() } else { items };
            merge(&mut out, pairs([("type", json!("array")), ("items", Json::Object(items))]));
        }
        [one] => merge(&mut out, scalar(one, schema)),
        // the constant of an expression may be written as a number; as a Boolean only between quotes
        several if several.contains(&"integer") && several.contains(&"string") => {
            merge(&mut out, pairs([(INT_OR_STRING, json!(true))]));
        }
        _ => merge(&mut out, free()),
    }
    out
}

/// Several forms: one and null, texts to choose from, or forms that only admission can tell apart.
fn either(alternatives: &[Json], definitions: &Json) -> Map<String, Json> {
    let some: Vec<&Json> = alternatives.iter().filter(|a| types(a) != ["null"]).collect();
    if let [one] = some.as_slice() {
        return raw(one, definitions);
    }
    let texts: Option<Vec<Json>> = some.iter().map(|a| texts(a)).collect::<Option<Vec<_>>>().map(|t| t.concat());
    match texts {
        Some(texts) => {
            let each = some.iter().filter_map(|a| Some((a.get("const")?.as_str()?, a.get("description")?.as_str()?)));
            let each: Vec<String> = each.map(|(text, says)| format!("{text}: {}", lowered(says))).collect();
            let mut out = pairs([("type", json!("string")), ("enum", Json::Array(texts))]);
            if !each.is_empty() {
                out.insert(CHOICES.to_owned(), json!(each.join(" ")));
            }
            out
        }
        None => free(),
    }
}

fn object(schema: &Json, definitions: &Json) -> Map<String, Json> {
    let mut out = pairs([("type", json!("object"))]);
    if let Some(properties) = schema.get("properties").and_then(Json::as_object) {
        let each = properties.iter().map(|(name, inner)| (name.clone(), Json::Object(node(inner, definitions))));
        out.insert("properties".to_owned(), Json::Object(each.collect()));
    }
    if let Some(required) = schema.get("required") {
        out.insert("required".to_owned(), required.clone());
    }
    if !out.contains_key("properties") {
        match schema.get("additionalProperties").filter(|inner| inner.is_object()) {
            Some(inner) => {
                let inner = Json::Object(node(inner, definitions));
                out.insert("additionalProperties".to_owned(), inner);
            }
            None => merge(&mut out, free()),
        }
    }
    out
}

fn scalar(ty: &str, schema: &Json) -> Map<String, Json> {
    let mut out = pairs([("type", json!(ty))]);
    if ty == "integer" {
        out.insert("format".to_owned(), json!("int64"));
    }
    for keyword in ["minimum", "maximum", "enum"] {
        if let Some(value) = schema.get(keyword) {
            // `0.0` of a schema derived from an unsigned integer
            let whole = value.as_f64().filter(|n| ty == "integer" && n.fract() == 0.0);
            #[expect(clippy::cast_possible_truncation, reason = "it has no fraction, and bounds are small")]
            let value = whole.map_or_else(|| value.clone(), |n| json!(n as i64));
            out.insert(keyword.to_owned(), value);
        }
    }
    out
}

/// The texts that an alternative allows, if it allows nothing else.
fn texts(alternative: &Json) -> Option<Vec<Json>> {
    match (alternative.get("const"), alternative.get("enum").and_then(Json::as_array)) {
        (Some(one), _) if one.is_string() => Some(vec![one.clone()]),
        (None, Some(several)) => Some(several.clone()),
        _ => None,
    }
}

fn referred<'s>(schema: &'s Json, definitions: &'s Json) -> Option<&'s Json> {
    let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
    definitions.get(name)
}

fn types(schema: &Json) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(one)) => vec![one],
        Some(Json::Array(several)) => several.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}

fn free() -> Map<String, Json> {
    pairs([(FREE, json!(true))])
}

fn pairs<const N: usize>(entries: [(&str, Json); N]) -> Map<String, Json> {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Adds entries; those that are there stay.
fn merge(out: &mut Map<String, Json>, more: Map<String, Json>) {
    for (key, value) in more {
        out.entry(key).or_insert(value);
    }
}

fn lowered(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// What keeps a schema from being structural, with the path of each place.
pub fn problems(schema: &Json) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, "", &mut found);
    found
}

fn check(schema: &Json, path: &str, found: &mut Vec<String>) {
    let Some(fields) = schema.as_object() else {
        return found.push(format!("{path}: not a schema"));
    };
    let extended = [FREE, INT_OR_STRING].iter().any(|key| fields.get(*key) == Some(&Json::Bool(true)));
    if !fields.get("type").is_some_and(Json::is_string) && !extended {
        found.push(format!("{path}: no type"));
    }
    for key in ["$ref", "$defs", "definitions", "nullable", "const", "patternProperties", "title", "default"] {
        if fields.contains_key(key) {
            found.push(format!("{path}: `{key}`"));
        }
    }
    if fields.contains_key("properties") && fields.contains_key("additionalProperties") {
        found.push(format!("{path}: both `properties` and `additionalProperties`"));
    }
    for (name, inner) in fields.get("properties").and_then(Json::as_object).into_iter().flatten() {
        check(inner, &format!("{path}.{name}"), found);
        // `metadata` is the API server's
        if inner.get("description").is_none() && name != "metadata" {
            found.push(format!("{path}.{name}: no description"));
        }
    }
    for (key, sign) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(inner) = fields.get(key) {
            check(inner, &format!("{path}{sign}"), found);
        }
    }
}
