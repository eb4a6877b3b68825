//! What a request does, with what it changes from what to what.

use suture_model::change::{Operation, Request};
use suture_model::land::describe;
use suture_model::state::State;
use suture_model::value::Val;

/// More changed fields than these are only counted.
const FIELDS_MAX: usize = 3;
/// A longer value is not shown.
const VALUE_MAX_CHARS: usize = 48;
/// Parts of a path below which a value may be a secret: that it changes is said, and not what it is.
const HIDDEN: [&str; 7] = ["env", "args", "command", "annotations", "data", "stringData", "binaryData"];
/// What is not looked into: the API server writes it.
const HEADER: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
/// What a request may change of the metadata.
const METADATA: [&str; 4] = ["labels", "annotations", "ownerReferences", "finalizers"];
/// What a controller takes where `spec.replicas` is left out (`pkg/apis/apps/v1/defaults.go`).
pub(crate) const REPLICAS_DEFAULT: i64 = 1;

/// The request in words: what an update changes, and from which number an object is scaled.
pub fn describe_changes(request: &Request, before: &State<'_>) -> String {
    let plain = describe(request);
    if request.operation != Operation::Update {
        return plain;
    }
    let stored = before.get(&request.target).map(|object| object.to_val());
    let (Some(old), Some(new)) = (request.old.as_ref().or(stored.as_ref()), request.object.as_ref()) else {
        return plain;
    };
    if request.subresource == "scale" {
        return match (old.int_at(&["spec", "replicas"]), request.replicas()) {
            (Some(from), Some(to)) if from != to => {
                format!("{} scales {} from {from} to {to}", request.user.username, request.target)
            }
            _ => plain,
        };
    }
    let changes = changes(old, new, &request.subresource);
    let told = changes.iter().take(FIELDS_MAX).cloned().collect::<Vec<_>>().join(", ");
    match changes.len() {
        0 => plain,
        count if count > FIELDS_MAX => format!("{plain}: {told} and {} more fields", count - FIELDS_MAX),
        _ => format!("{plain}: {told}"),
    }
}

/// The fields that differ, the number of replicas first.
fn changes(old: &Val, new: &Val, subresource: &str) -> Vec<String> {
    let mut found = Vec::new();
    let empty = Val::Null;
    let mut compare = |path: &[&str]| {
        let parts = path.iter().map(|part| (*part).to_owned()).collect();
        compare(old.at(path).unwrap_or(&empty), new.at(path).unwrap_or(&empty), parts, &mut found);
    };
    if !subresource.is_empty() {
        compare(&[subresource]);
    } else {
        let fields = new.entries().chain(old.entries().filter(|(name, _)| new.get(name).is_none()));
        for (field, _) in fields.filter(|(name, _)| !HEADER.contains(&&***name)) {
            compare(&[field]);
        }
        METADATA.iter().for_each(|field| compare(&["metadata", field]));
    }
    found.sort_by_key(|difference| difference.path != ["spec", "replicas"]);
    found.iter().map(Difference::text).collect()
}

/// A value that differs; `Null` is none.
struct Difference {
    path: Vec<String>,
    old: Val,
    new: Val,
}

impl Difference {
    fn text(&self) -> String {
        let Self { path, old, new } = self;
        let shown = path.iter().filter(|part| *part != "spec" && *part != "metadata");
        let name = shown.map(String::as_str).collect::<Vec<_>>().join(".").replace(".[", "[");
        let left_out = if new.is_null() { ", since it is left out" } else { "" };
        let hidden = path.iter().any(|part| HIDDEN.contains(&part.as_str()));
        if path == &["spec", "replicas"] {
            let number = |val: &Val| val.as_int().unwrap_or(REPLICAS_DEFAULT);
            return format!("{name} {} → {}{left_out}", number(old), number(new));
        }
        match (value(old), value(new)) {
            (Some(old), Some(new)) if !hidden => format!("{name} {old} → {new}"),
            _ if new.is_null() => format!("{name} left out"),
            _ if old.is_null() => format!("{name} added"),
            _ => format!("{name} changed"),
        }
    }
}

/// A short value as text; nothing of what is long, or has parts.
fn value(val: &Val) -> Option<String> {
    let text = match val {
        Val::Null => "none".to_owned(),
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Str(text) => text.to_string(),
        _ => return None,
    };
    (text.chars().count() <= VALUE_MAX_CHARS).then_some(text)
}

fn compare(old: &Val, new: &Val, path: Vec<String>, found: &mut Vec<Difference>) {
    if old == new {
        return;
    }
    let below = |part: String| path.iter().cloned().chain([part]).collect::<Vec<_>>();
    let empty = Val::Null;
    // a set of labels is told label by label, however many there were
    let labels = path.last().is_some_and(|part| part == "labels");
    let is_map = |val: &Val| val.entries().len() > 0 || (labels && val.is_null());
    if is_map(old) && is_map(new) {
        for (key, new) in new.entries() {
            compare(old.get(key).unwrap_or(&empty), new, below(key.to_string()), found);
        }
        for (key, old) in old.entries().filter(|(key, _)| new.get(key).is_none()) {
            compare(old, &empty, below(key.to_string()), found);
        }
        return;
    }
    let named = |val: &Val| -> Option<Vec<(String, Val)>> {
        let items = val.items().iter();
        items.map(|item| Some((item.str_at(&["name"])?.to_string(), item.clone()))).collect()
    };
    match (named(old), named(new)) {
        (Some(olds), Some(news)) if !olds.is_empty() && !news.is_empty() => {
            let find = |of: &[(String, Val)], name: &str| of.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
            for (name, new) in &news {
                compare(&find(&olds, name).unwrap_or_default(), new, below(format!("[{name}]")), found);
            }
            for (name, old) in olds.iter().filter(|(name, _)| find(&news, name).is_none()) {
                compare(old, &empty, below(format!("[{name}]")), found);
            }
        }
        _ => found.push(Difference { path, old: old.clone(), new: new.clone() }),
    }
}

#[cfg(test)]
mod tests;
