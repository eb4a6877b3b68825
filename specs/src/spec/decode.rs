//! Decoding a value strictly: it is checked against the JSON schema of its type first, so that every error has a path.

use std::collections::VecDeque;

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use suture_model::value::Val;

use super::error::{Origin, SpecError};

/// So many parts of a schema are looked at for a field: some refer to themselves.
const PLACES_MAX: usize = 256;

/// The value as the type, or all that is wrong with it.
pub(super) fn decode<T: DeserializeOwned + JsonSchema>(
    val: &Val,
    path: &str,
    origin: &Origin,
) -> Result<T, Vec<SpecError>> {
    let schema = schema_for!(T).to_value();
    let definitions = schema.get("$defs").cloned().unwrap_or(Json::Null);
    let mut check = Check { schema: &schema, definitions: &definitions, origin, errors: Vec::new() };
    check.value(val, &schema, path);
    if !check.errors.is_empty() {
        return Err(check.errors);
    }
    let json = serde_json::to_value(val).unwrap_or(Json::Null);
    serde_json::from_value(json).map_err(|error| {
        let text = error.to_string();
        let text = text.split(" at line").next().unwrap_or_default();
        vec![SpecError::new(origin, path, text.to_lowercase())]
    })
}

/// The first place, the nearest to the root, at which a schema of a spec has a field.
pub(super) fn where_it_belongs(schema: &Json, field: &str) -> Option<String> {
    let definitions = schema.get("$defs").unwrap_or(&Json::Null);
    let mut open = VecDeque::from([(schema, "spec".to_owned())]);
    let mut looked_at = 0;
    while let Some((schema, path)) = open.pop_front() {
        looked_at += 1;
        let reference = schema.get("$ref").and_then(Json::as_str).and_then(|name| name.rsplit('/').next());
        let schema = reference.and_then(|name| definitions.get(name)).unwrap_or(schema);
        let properties = schema.get("properties").and_then(Json::as_object);
        if properties.is_some_and(|properties| properties.contains_key(field)) {
            return Some(path);
        }
        if looked_at > PLACES_MAX {
            return None;
        }
        for (name, inner) in properties.into_iter().flatten() {
            open.push_back((inner, format!("{path}.{name}")));
        }
        open.extend(schema.get("items").map(|items| (items, format!("{path}[]"))));
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let alternatives = schema.get(keyword).and_then(Json::as_array).into_iter().flatten();
            open.extend(alternatives.map(|alternative| (alternative, path.clone())));
        }
    }
    None
}

struct Check<'s> {
    schema: &'s Json,
    definitions: &'s Json,
    origin: &'s Origin,
    errors: Vec<SpecError>,
}

impl<'s> Check<'s> {
    fn resolve(&self, schema: &'s Json) -> &'s Json {
        let Some(reference) = schema.get("$ref").and_then(Json::as_str) else { return schema };
        let name = reference.rsplit('/').next().unwrap_or_default();
        self.definitions.get(name).unwrap_or(schema)
    }

    fn value(&mut self, val: &Val, schema: &'s Json, path: &str) {
        let schema = self.resolve(schema);
        for keyword in ["anyOf", "oneOf"] {
            if let Some(alternatives) = schema.get(keyword).and_then(Json::as_array) {
                return self.alternatives(val, alternatives, path);
            }
        }
        if let Some(allowed) = schema.get("enum").and_then(Json::as_array) {
            return self.allowed(val, allowed.iter().filter_map(Json::as_str).collect(), path);
        }
        let types = types_of(schema);
        if !types.is_empty() && !types.iter().any(|ty| is_of(val, ty)) {
            return self.mismatch(val, &types, path);
        }
        match val {
            Val::Map(_) => self.map(val, schema, path),
            Val::List(items) => {
                if let Some(of) = schema.get("items") {
                    for (i, item) in items.iter().enumerate() {
                        self.value(item, of, &format!("{path}[{i}]"));
                    }
                }
            }
            Val::Int(i) if *i < 0 && schema.get("minimum").and_then(Json::as_f64) == Some(0.0) => {
                self.errors.push(SpecError::new(self.origin, path, format!("`{i}` is negative")));
            }
            _ => {}
        }
    }

    fn map(&mut self, val: &Val, schema: &'s Json, path: &str) {
        let properties = schema.get("properties").and_then(Json::as_object);
        let closed = schema.get("additionalProperties") == Some(&Json::Bool(false));
        let others = schema.get("additionalProperties").filter(|s| s.is_object());
        for (key, inner) in val.entries() {
            let place = format!("{path}.{key}");
            match (properties.and_then(|p| p.get(&**key)), others) {
                (Some(schema), _) | (None, Some(schema)) => self.value(inner, schema, &place),
                (None, None) if closed => {
                    let known: Vec<&str> = properties.into_iter().flat_map(|p| p.keys().map(String::as_str)).collect();
                    let error = SpecError::unknown_field(self.origin, path, key, known);
                    let is_slip = error.help.as_ref().is_some_and(|help| help.starts_with("did you mean"));
                    let belongs = if is_slip { None } else { where_it_belongs(self.schema, key) };
                    self.errors.push(match belongs.filter(|place| *place != path) {
                        Some(place) => error.helped(format!("`{key}` belongs under `{place}`")),
                        None => error,
                    });
                }
                (None, None) => {}
            }
        }
        for required in schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str) {
            if val.get(required).is_none_or(Val::is_null) {
                self.errors.push(SpecError::new(self.origin, path, format!("`{required}` is missing")));
            }
        }
    }

    /// The alternative whose type fits, checked in full; unit variants of an enum are alternatives with constants.
    fn alternatives(&mut self, val: &Val, alternatives: &'s [Json], path: &str) {
        let mut flat = Vec::new();
        self.flatten(alternatives, &mut flat);
        let constants: Vec<&str> = flat.iter().flat_map(|a| constants_of(a)).collect();
        let types: Vec<&str> = flat.iter().filter(|a| constants_of(a).is_empty()).flat_map(|a| types_of(a)).collect();
        let fitting = flat.iter().find(|a| constants_of(a).is_empty() && types_of(a).iter().any(|ty| is_of(val, ty)));
        match fitting {
            Some(schema) => self.value(val, schema, path),
            None if !constants.is_empty() => self.allowed(val, constants, path),
            None => self.mismatch(val, &types, path),
        }
    }

    fn flatten(&self, alternatives: &'s [Json], flat: &mut Vec<&'s Json>) {
        for alternative in alternatives {
            let schema = self.resolve(alternative);
            match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Json::as_array) {
                Some(inner) => self.flatten(inner, flat),
                None => flat.push(schema),
            }
        }
    }

    fn allowed(&mut self, val: &Val, allowed: Vec<&str>, path: &str) {
        let found = val.as_str();
        if found.is_some_and(|s| allowed.contains(&&**s)) {
            return;
        }
        let names: Vec<String> = allowed.iter().map(|a| format!("`{a}`")).collect();
        let message = match found {
            Some(text) => format!("`{text}` is not one of {}", names.join(", ")),
            None => format!("expected one of {}, found {}", names.join(", "), name_of(val)),
        };
        let error = SpecError::new(self.origin, path, message);
        self.errors.push(match found {
            Some(text) => error.suggesting(text, allowed),
            None => error,
        });
    }

    fn mismatch(&mut self, val: &Val, types: &[&str], path: &str) {
        let mut names: Vec<&str> = types.iter().filter(|t| **t != "null").map(|t| english(t)).collect();
        names.dedup();
        let message = format!("expected {}, found {}", names.join(" or "), name_of(val));
        self.errors.push(SpecError::new(self.origin, path, message));
    }
}

/// The strings that an enum, or one variant of it, allows.
fn constants_of(schema: &Json) -> Vec<&str> {
    let several = schema.get("enum").and_then(Json::as_array).into_iter().flatten();
    several.chain(schema.get("const")).filter_map(Json::as_str).collect()
}

fn types_of(schema: &Json) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(one)) => vec![one],
        Some(Json::Array(several)) => several.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(val: &Val, ty: &str) -> bool {
    match ty {
        "null" => val.is_null(),
        "boolean" => matches!(val, Val::Bool(_)),
        "integer" => val.as_int().is_some(),
        "number" => matches!(val, Val::Int(_) | Val::Float(_)),
        "string" => matches!(val, Val::Str(_)),
        "array" => matches!(val, Val::List(_)),
        "object" => matches!(val, Val::Map(_)),
        _ => false,
    }
}

fn english(ty: &str) -> &str {
    match ty {
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "a list",
        "object" => "a map",
        other => other,
    }
}

fn name_of(val: &Val) -> &'static str {
    match val {
        Val::Null => "nothing",
        Val::Bool(_) => "a Boolean",
        Val::Int(_) => "an integer",
        Val::Float(_) => "a number",
        Val::Str(_) => "a string",
        Val::List(_) => "a list",
        Val::Map(_) => "a map",
    }
}
