//! Mutations that keep the syntax: fields of another type, missing, doubled, misnamed, or with the values of others.

use suture_model::ingest::parse_documents;
use suture_model::value::{Str, Val};
use suture_service::bench::prng::Prng;

/// The documents of a text, some of their fields mutated, as JSON.
pub fn mutated(seed: &str, prng: &mut Prng) -> String {
    let documents = parse_documents(seed, "seed").unwrap();
    let mutate = |val: &Val, prng: &mut Prng| {
        let fields = count(val);
        let mut changed = val.clone();
        for _ in 0..=prng.below(3) {
            let mut left = prng.below(fields);
            let donor = part(val, &mut prng.below(fields)).cloned().unwrap_or_default();
            changed = at(&changed, &mut left, &donor, prng);
        }
        serde_json::to_string(&changed).unwrap()
    };
    let texts: Vec<String> = documents.iter().map(|document| mutate(&document.val, prng)).collect();
    texts.join("\n---\n")
}

/// The state of a suite, as a text of its own.
pub fn states(suite: &str) -> Option<String> {
    let documents = parse_documents(suite, "suite").unwrap();
    let state = documents.first()?.val.items_at(&["spec", "state"]).to_vec();
    let list = Val::object([("apiVersion", Val::str("v1")), ("kind", Val::str("List")), ("items", Val::list(state))]);
    serde_json::to_string(&list).ok()
}

/// How many values a value has within it, itself included.
fn count(val: &Val) -> usize {
    1 + match val {
        Val::List(items) => items.iter().map(count).sum(),
        Val::Map(map) => map.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    }
}

/// The value at a position of the walk that `count` counts.
fn part<'v>(val: &'v Val, left: &mut usize) -> Option<&'v Val> {
    if *left == 0 {
        return Some(val);
    }
    *left -= 1;
    match val {
        Val::List(items) => items.iter().find_map(|item| part(item, left)),
        Val::Map(map) => map.iter().find_map(|(_, value)| part(value, left)),
        _ => None,
    }
}

/// The value with the one at a position mutated.
fn at(val: &Val, left: &mut usize, donor: &Val, prng: &mut Prng) -> Val {
    if *left == 0 {
        *left = usize::MAX;
        return mutation(val, donor, prng);
    }
    if *left == usize::MAX {
        return val.clone();
    }
    *left -= 1;
    match val {
        Val::List(items) => Val::list(items.iter().map(|item| at(item, left, donor, prng)).collect()),
        Val::Map(map) => Val::map(map.iter().map(|(key, value)| (key.clone(), at(value, left, donor, prng))).collect()),
        other => other.clone(),
    }
}

fn mutation(val: &Val, donor: &Val, prng: &mut Prng) -> Val {
    match (prng.below(6), val) {
        (0, Val::List(items)) => {
            // doubled, or without one of its items
            let mut items = items.to_vec();
            let index = prng.below(items.len().max(1));
            if prng.one_in(2) {
                items.extend(items.clone());
            } else if index < items.len() {
                items.remove(index);
            }
            Val::list(items)
        }
        (0, Val::Map(map)) => {
            let left = prng.below(map.len().max(1));
            let kept = map.iter().enumerate().filter(|(index, _)| *index != left);
            Val::map(kept.map(|(_, (key, value))| (key.clone(), value.clone())).collect())
        }
        (1, Val::Map(map)) => {
            let renamed = prng.below(map.len().max(1));
            let misnamed = |(index, (key, value)): (usize, (&Str, &Val))| {
                let key = if index == renamed { Str::from(format!("{key}x")) } else { key.clone() };
                (key, value.clone())
            };
            Val::map(map.iter().enumerate().map(misnamed).collect())
        }
        (1 | 2, _) => donor.clone(),
        (3, Val::Str(text)) => Val::str(format!("{text}{text}/{text}")),
        (3 | 4, _) => scalar(prng),
        _ => nested(val, 1 + prng.below(80)),
    }
}

/// A value that nobody expects.
fn scalar(prng: &mut Prng) -> Val {
    match prng.below(14) {
        0 => Val::Null,
        1 => Val::Bool(true),
        2 => Val::Int(-1),
        3 => Val::Int(i64::MAX),
        4 => Val::Int(i64::MIN),
        5 => Val::Float(1e300),
        6 => Val::str(""),
        7 => Val::str("100%"),
        8 => Val::str("-9999999999999%"),
        9 => Val::str("9999999999999999999999Ei"),
        10 => Val::str("1e-999999999"),
        11 => Val::list(Vec::new()),
        12 => Val::map(Vec::new()),
        _ => Val::str("\u{0}\u{202e}/../*".repeat(1 + prng.below(50))),
    }
}

fn nested(val: &Val, depth: usize) -> Val {
    (0..depth).fold(
        val.clone(),
        |inner, level| {
            if level % 2 == 0 { Val::list(vec![inner]) } else { Val::object([("a", inner)]) }
        },
    )
}
