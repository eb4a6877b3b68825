//! From text to objects: YAML or JSON, one object or many, as `kubectl get` prints them and people write them.
//!
//! Whatever the text, reading it takes time and memory in proportion to its length: aliases expand to little more than
//! what is written, nesting and size are bounded, and nothing of a Secret's or ConfigMap's values is kept.

use crate::object::{Object, ObjectError};
use crate::snapshot::Snapshot;
use crate::value::{Str, Val};

mod fault;
mod json;
mod passing;
mod project;
mod tree;
mod yaml;

use fault::Fault;
pub use fault::IngestError;
pub use passing::{Blanked, Passed, Passing};
pub use project::{hidden, is_dropped, project};
pub use tree::NESTING_MAX;

/// Texts longer than this are refused: a cluster of 150,000 pods prints as less.
pub const TEXT_MAX_BYTES: usize = 1 << 30;
/// Lists within Lists are followed no deeper.
const LISTS_MAX: usize = 4;

/// One document of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its value, always a map.
    pub val: Val,
    /// The line on which it starts, from 1.
    pub line: usize,
}

/// The documents of a text, in order: JSON if it starts like JSON, else YAML. Empty documents are skipped, a list of
/// maps counts as so many documents. `file` is named in errors.
///
/// # Errors
/// At the first document that is malformed, too large, or no map.
pub fn parse_documents(text: &str, file: &str) -> Result<Vec<Document>, IngestError> {
    parse(text).map_err(|fault| fault.within(file))
}

fn parse(text: &str) -> Result<Vec<Document>, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > TEXT_MAX_BYTES {
        return Err(
            Fault::at(1, format!("larger than {} MiB", TEXT_MAX_BYTES >> 20)).helped("split it into several files")
        );
    }
    let allowance = tree::Allowance::of(text);
    // a map or list in braces may be JSON or YAML; JSON that is broken is told by its first quote
    let values = if json::looks_like(text) {
        match json::parse(text, &allowance) {
            Ok(values) => values,
            Err(fault) if json::must_be(text) => return Err(fault),
            Err(_) => yaml::parse(text, &tree::Allowance::of(text))?,
        }
    } else {
        yaml::parse(text, &allowance)?
    };
    let mut documents = Vec::with_capacity(values.len());
    for (val, line) in values {
        match val {
            Val::Null => {}
            Val::Map(_) => documents.push(Document { val, line }),
            Val::List(items) => {
                for item in items.iter().filter(|item| !item.is_null()) {
                    documents.push(Document { val: map_at(item.clone(), line)?, line });
                }
            }
            other => return Err(not_a_map(&other, line)),
        }
    }
    Ok(documents)
}

fn map_at(val: Val, line: usize) -> Result<Val, Fault> {
    if matches!(val, Val::Map(_)) { Ok(val) } else { Err(not_a_map(&val, line)) }
}

fn not_a_map(val: &Val, line: usize) -> Fault {
    let what = match val {
        Val::List(_) => "a list within a list",
        Val::Str(_) => "a string",
        Val::Bool(_) => "a Boolean",
        _ => "a number",
    };
    Fault::at(line, format!("expected a map, found {what}")).helped("an object starts with `apiVersion:` and `kind:`")
}

/// Puts the objects of a text into a snapshot and says how many they were. The header of a dump marks its unknown
/// kinds; Lists are taken apart.
///
/// # Errors
/// At the first document that is malformed or no object; those before it are in the snapshot.
pub fn ingest(snapshot: &mut Snapshot, text: &str, file: &str) -> Result<usize, IngestError> {
    let mut count = 0;
    for Document { val, line } in parse_documents(text, file)? {
        let fault = |message: String| Fault::at(line, message).within(file);
        if is_header(&val) {
            for kind in unknown_kinds(&val).map_err(fault)? {
                snapshot.mark_unknown(&kind);
            }
            continue;
        }
        for object in objects(&val).map_err(|error| fault(error.to_string()))? {
            snapshot.insert(object);
            count += 1;
        }
    }
    Ok(count)
}

/// The objects of a manifest as a snapshot keeps them: itself, or the items of a List.
///
/// # Errors
/// When it, or one of the items, is no object.
pub fn objects(manifest: &Val) -> Result<Vec<Object>, ObjectError> {
    manifests(manifest).iter().map(|manifest| Object::from_val(&project(manifest))).collect()
}

/// The manifests that a manifest stands for: the items of a List (of kind `List`, or `PodList` and the like, whose
/// items may leave out what the List says of all), else itself.
pub fn manifests(manifest: &Val) -> Vec<Val> {
    let mut found = Vec::new();
    take_apart(manifest, LISTS_MAX, &mut found);
    found
}

fn take_apart(manifest: &Val, depth: usize, found: &mut Vec<Val>) {
    let of = manifest.str_at(&["kind"]).and_then(|kind| kind.strip_suffix("List"));
    let (Some(of), Some(Val::List(items)), Some(depth)) = (of, manifest.get("items"), depth.checked_sub(1)) else {
        found.push(manifest.clone());
        return;
    };
    for item in items.iter().filter(|item| !item.is_null()) {
        let mut item = item.clone();
        if !of.is_empty() && matches!(item, Val::Map(_)) {
            for (field, value) in [("kind", Some(Val::str(of))), ("apiVersion", manifest.get("apiVersion").cloned())] {
                if let Some(value) = value.filter(|_| item.at_some(&[field]).is_none()) {
                    item = item.with(field, value);
                }
            }
        }
        take_apart(&item, depth, found);
    }
}

fn is_header(val: &Val) -> bool {
    val.str_at(&["kind"]).is_some_and(|kind| &**kind == "SnapshotHeader")
        && val.str_at(&["apiVersion"]).is_some_and(|version| version.starts_with("suture.dev/"))
}

fn unknown_kinds(header: &Val) -> Result<Vec<Str>, String> {
    match header.at_some(&["unknown"]) {
        None => Ok(Vec::new()),
        Some(Val::List(kinds)) => {
            let names: Option<Vec<Str>> = kinds.iter().map(|kind| kind.as_str().cloned()).collect();
            names.ok_or_else(|| "`unknown` of a snapshot's header is not a list of kinds".to_owned())
        }
        Some(_) => Err("`unknown` of a snapshot's header is not a list of kinds".to_owned()),
    }
}

#[cfg(test)]
mod tests;
