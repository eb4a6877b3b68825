//! What is left of a document whose fields are wrong: so that its other mistakes are told with them.

use std::collections::BTreeSet;

use suture_model::value::Val;

/// A document without what is wrong, by paths, and what was left out; `None` if that cannot be.
pub(super) fn without(val: &Val, wrong: &BTreeSet<&str>) -> Option<(Val, Vec<String>)> {
    let mut left_out = Vec::new();
    let less = rest(val, "", wrong, &mut left_out);
    // a document is needed, and so is its name
    let is_kept = !left_out.iter().any(|path| matches!(path.as_str(), "kind" | "metadata" | "metadata.name" | "spec"));
    (is_kept && !left_out.is_empty()).then_some((less, left_out))
}

fn rest(val: &Val, path: &str, wrong: &BTreeSet<&str>, left_out: &mut Vec<String>) -> Val {
    let keep = |inner: &Val, place: String, left_out: &mut Vec<String>| {
        if wrong.contains(place.as_str()) {
            left_out.push(place);
            return None;
        }
        let is_within = wrong.range(place.as_str()..).next().is_some_and(|path| path.starts_with(&place));
        Some(if is_within { rest(inner, &place, wrong, left_out) } else { inner.clone() })
    };
    match val {
        Val::Map(map) => {
            let entries = map.iter().filter_map(|(key, inner)| {
                let place = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
                Some((key.clone(), keep(inner, place, left_out)?))
            });
            Val::map(entries.collect())
        }
        Val::List(items) => {
            let items = (0..).zip(items.iter());
            Val::list(items.filter_map(|(i, item)| keep(item, format!("{path}[{i}]"), left_out)).collect())
        }
        other => other.clone(),
    }
}

/// The path in the document as it was written, of a path in what is left of it.
pub(super) fn as_written(path: &str, left_out: &[String]) -> String {
    let mut written = String::new();
    for part in path.split_inclusive(['[', ']']) {
        match part.strip_suffix(']').and_then(|index| index.parse::<usize>().ok()) {
            Some(index) if written.ends_with('[') => {
                let is_gone = |i: usize| left_out.contains(&format!("{written}{i}]"));
                let original = (0..).filter(|i| !is_gone(*i)).nth(index).unwrap_or(index);
                written.push_str(&format!("{original}]"));
            }
            _ => written.push_str(part),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_what_was_left_out() {
        let left_out = ["spec.a[0]".to_owned(), "spec.a[2]".to_owned(), "spec.a[3].b[0]".to_owned()];
        for (path, written) in [
            ("spec.a[0].b", "spec.a[1].b"),
            ("spec.a[1].b[0].c", "spec.a[3].b[1].c"),
            ("spec.a[2]", "spec.a[4]"),
            ("spec.x[2]", "spec.x[2]"),
        ] {
            assert_eq!(as_written(path, &left_out), written);
        }
    }
}
