//! Expressions: those of the library with parts exchanged, and strings of tokens that only look like CEL.

use suture_model::ingest::parse_documents;
use suture_model::value::Val;
use suture_service::bench::prng::Prng;

use super::text;

/// What expressions are made of.
const TOKENS: [&str; 60] = [
    "p",
    "before",
    "now",
    "after",
    "params",
    "request",
    "time",
    "self",
    "o",
    "true",
    "false",
    "null",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "1u",
    "1.5",
    "1e308",
    "'a'",
    "\"\"",
    "r'\\\\'",
    "b'x'",
    "''''''",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ".",
    ".?",
    "[?",
    ",",
    ":",
    "?",
    " && ",
    " || ",
    "!",
    " == ",
    " != ",
    " < ",
    " in ",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    ".size()",
    ".filter(x, ",
    ".map(x, ",
    ".all(x, ",
    ".exists(i, x, ",
    ".at(now)",
    ".ready()",
    "before.pods",
    ".metadata.name",
    ".matches('(a+)+$')",
    "cel.bind(v, ",
    ".transformMap(k, v, ",
];

/// The expressions in documents of Suture's kinds.
pub fn of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for document in parse_documents(text, "seed").unwrap() {
        collect(document.val.at(&["spec"]).unwrap_or(&Val::Null), &mut found);
    }
    found
}

fn collect(val: &Val, found: &mut Vec<String>) {
    match val {
        Val::Str(text) if text.contains(['(', '.', '=']) => found.push(renamed(text)),
        Val::List(items) => items.iter().for_each(|item| collect(item, found)),
        Val::Map(map) => map.iter().for_each(|(_, value)| collect(value, found)),
        _ => {}
    }
}

/// The variables of all templates as the one of [`invariant`], so that their expressions compile on their own.
fn renamed(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        let word = c.is_ascii_alphanumeric();
        match words.last_mut().filter(|last| word && last.ends_with(|c: char| c.is_ascii_alphanumeric())) {
            Some(last) => last.push(c),
            None => words.push(c.to_string()),
        }
    }
    let variable = |word: &String| ["crd", "ns", "o", "pdb", "pvc", "svc"].contains(&word.as_str());
    words.iter().map(|word| if variable(word) { "p" } else { word.as_str() }).collect()
}

/// An expression of no great sense.
pub fn mutated(seeds: &[String], prng: &mut Prng) -> String {
    match prng.below(6) {
        0 => (0..1 + prng.below(40)).map(|_| *prng.pick(&TOKENS).unwrap()).collect(),
        1 => {
            let (depth, (open, close)) =
                (1 + prng.below(3_000), [("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("{'a': ", "}")][prng.below(5)]);
            open.repeat(depth) + "true" + &close.repeat(depth)
        }
        2 => vec!["true"; 1 + prng.below(2_000)].join([" && ", " || ", " ? true : ", " == "][prng.below(4)]),
        3 => text::mutated(prng.pick(seeds).unwrap(), prng),
        _ => {
            // halves of two, which often still parse
            let (left, right) = (prng.pick(seeds).unwrap().clone(), prng.pick(seeds).unwrap());
            let half = |text: &str, prng: &mut Prng| {
                text.char_indices().nth(prng.below(text.chars().count() + 1)).map_or(text.len(), |(at, _)| at)
            };
            let (from, to) = (half(&left, prng), half(right, prng));
            if prng.one_in(2) { left } else { format!("{}{}", &left[..from], &right[to..]) }
        }
    }
}

/// An invariant that requires an expression.
pub fn invariant(expression: &str) -> String {
    let document = Val::object([
        ("apiVersion", Val::str("suture.dev/v1alpha1")),
        ("kind", Val::str("Invariant")),
        ("metadata", Val::object([("name", Val::str("hostile"))])),
        (
            "spec",
            Val::object([
                ("forEach", Val::object([("var", Val::str("p")), ("kind", Val::str("Pod"))])),
                ("require", Val::list(vec![Val::object([("expression", Val::str(expression))])])),
            ]),
        ),
    ]);
    serde_json::to_string(&document).unwrap()
}
