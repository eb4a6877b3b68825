//! What no page may do, whatever the objects are called that it is about.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::{Doing, SCRIPT, SCRIPT_HASH, STYLE, STYLE_HASH, policy, report};
use crate::clock::Clock;
use crate::report::Report;

/// What a hostile name may try: to end an attribute, a text, a style or a comment, and to turn the direction of writing.
pub(super) const HOSTILE: &str =
    "\"'><script src=//evil>alert(1)</script></style></svg><img onerror=x>--><!--&lt;\u{202e}{{7*7}}";

fn example() -> Json {
    json!({
        "id": "R1", "time": "2026-11-01T12:00:00Z", "decision": "Denied", "uid": "u", "solver": "5", "proved": 3, "notWorse": 0,
        "duration": {"totalMicros": 8, "solverMicros": 2},
        "requests": [{"user": "ana", "groups": ["g"], "operation": "DELETE", "subresource": "scale", "object": "Pod/shop/a",
            "namespace": "shop", "dryRun": true, "text": "ana deletes Pod/shop/a"}],
        "unmodelled": ["Kafka"], "takenAsNone": ["Job"],
        "exempted": [{"invariant": "i", "instance": "Pod/shop/a", "exemption": "e", "expires": "t", "reason": "r"}],
        "verdicts": [{
            "invariant": "web-serves", "instance": "Service/shop/web", "outcome": "Refuted", "action": "Deny",
            "message": "only 0 of 2\n- step", "assumptions": ["PDB x holds"], "provedAgainst": {"Pod/shop/a": "7"},
            "nearestAllowed": ["once it is meant: kubectl annotate pod a", "scale it to 3"],
            "counterexample": {
                "steps": [{"effect": "ana deletes Pod/shop/a", "objects": ["Pod/shop/a"]}, {"effect": "it goes", "objects": ["Pod/shop/a", "Pod/shop/b"]}],
                "broken": "x >= 1 (only 0)", "replayed": true,
                "objects": [
                    {"name": "Service/shop/web", "before": "2 ready endpoints", "after": "0 ready endpoints"},
                    {"name": "Pod/shop/a", "before": "ready", "after": null},
                    {"name": "Pod/shop/b", "before": "ready", "after": "ready, being deleted", "goes": true},
                    {"name": "Pod/shop/c", "before": null, "after": "pending"},
                    {"name": "Node/n1", "before": "ready", "after": "ready"}
                ],
                "edges": [
                    {"from": "Service/shop/web", "to": "Pod/shop/a", "relation": "Selector", "before": true, "after": false},
                    {"from": "Service/shop/web", "to": "Pod/shop/c", "relation": "Selector", "before": false, "after": true},
                    {"from": "Pod/shop/a", "to": "Node/n1", "relation": "Node", "before": true, "after": false}
                ]
            }
        }, {
            "invariant": "other", "instance": "Pod/shop/a", "outcome": "Undecided", "action": "Deny", "reason": "spent",
            "message": "spent", "assumptions": [], "provedAgainst": {}, "nearestAllowed": []
        }]
    })
}

fn page(json: Json) -> String {
    let report: Report = serde_json::from_value(json).expect("a report");
    report::html(&report, Clock::parse("2026-11-01T12:00:00Z").expect("a time"), Some("../../"))
}

/// Every text that is free, replaced by a hostile one that still has the form which places it.
pub(super) fn hostile(json: Json, field: &str) -> Json {
    match json {
        Json::String(text) if ["decision", "outcome", "action", "relation"].contains(&field) => Json::String(text),
        Json::String(text) => Json::String(format!("{text}{HOSTILE}")),
        Json::Array(items) => items.into_iter().map(|item| hostile(item, field)).collect(),
        Json::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                let value = hostile(value, &name);
                let name = if field == "provedAgainst" { format!("{name}{HOSTILE}") } else { name };
                (name, value)
            })
            .collect(),
        other => other,
    }
}

/// The tags of a page in order, with the names of their attributes, as HTML's tokenizer finds them
/// (html.spec.whatwg.org, "Tokenization"): attribute values are quoted in all that maud writes.
pub(super) fn tags(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = rest.get(at..).unwrap_or_default();
        let (mut tag, mut quoted, mut end) = (String::new(), false, rest.len());
        for (at, letter) in rest.char_indices() {
            match letter {
                '"' => quoted = !quoted,
                '>' if !quoted => {
                    end = at + 1;
                    break;
                }
                letter if !quoted => tag.push(letter),
                _ => {}
            }
        }
        found.push(tag);
        rest = rest.get(end..).unwrap_or_default();
    }
    found
}

#[test]
fn hostile_names_are_text_and_nothing_else() {
    let (benign, hostile) = (page(example()), page(hostile(example(), "")));
    assert_eq!(tags(&hostile), tags(&benign), "no name makes an element or an attribute");
    // names are in all of: headings, pictures, tables, code, the exemption
    assert!(hostile.matches("&lt;script src=//evil&gt;").count() > 40, "{}", hostile.matches("&lt;script").count());
    assert!(!hostile.contains("<script") && !hostile.contains("<img"), "{hostile}");
    assert!(!hostile.contains('\u{202e}') && hostile.contains("\\u{202e}"), "the direction of writing stays");
    let (head, _) = hostile.split_once("</style>").expect("a style");
    assert!(!head.contains("evil>"), "nothing comes before the style's end but the title");
}

#[test]
fn a_page_loads_and_runs_nothing() {
    let page = page(example());
    loads_nothing(&page);
    assert!(!page.contains("<script") && !page.contains("<form"), "{page}");
    assert!(page.contains(&format!("content=\"{}\"", policy(Doing::Nothing))), "{page}");
    assert!(!STYLE.contains("url(") && !STYLE.contains('<'));
    assert!(policy(Doing::Nothing).starts_with("default-src 'none'; style-src 'sha256-"), "{}", policy(Doing::Nothing));
    assert!(!policy(Doing::Nothing).contains("script-src") && !policy(Doing::Sending).contains("script-src"));
}

/// Nothing is brought from elsewhere, and no attribute is a script or a style.
pub(super) fn loads_nothing(page: &str) {
    for tag in tags(page) {
        let name = tag.trim_start_matches(['<', '/']).split([' ', '\n']).next().unwrap_or_default();
        assert!(!["link", "img", "iframe", "object", "embed", "image", "use", "base"].contains(&name), "{tag}");
        assert!(!tag.contains(" style=") && !tag.contains(" on") && !tag.contains(" src="), "{tag}");
    }
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("@import"), "{page}");
}

/// The hash is of exactly what stands between the tags.
#[cfg(feature = "serve")]
#[test]
fn the_style_and_the_script_are_those_that_the_policy_admits() {
    use base64::Engine;
    let hash = |text: &str| {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(digest))
    };
    assert_eq!(STYLE_HASH, hash(STYLE), "STYLE_HASH in service/src/html.rs");
    assert_eq!(SCRIPT_HASH, hash(SCRIPT), "SCRIPT_HASH in service/src/html.rs");
    assert!(page(example()).contains(&format!("<style>{STYLE}</style>")));
}

#[test]
fn a_page_can_be_heard_and_walked_through() {
    let page = page(example());
    heard(&page);
    assert_eq!(tags(&page).iter().filter(|tag| tag.starts_with("<svg ")).count(), 2);
    assert!(page.contains("<a href=\"../../\">All reports</a>"));
}

/// Elements are closed, there is one of those that a page has once, headings do not skip a level, tables say what they are,
/// and what is referred to is there.
pub(super) fn heard(page: &str) {
    let tags = tags(page);
    let opened = |name: &str| {
        tags.iter().filter(|tag| *tag == &format!("<{name}") || tag.starts_with(&format!("<{name} "))).count()
    };
    let closed = |name: &str| tags.iter().filter(|tag| *tag == &format!("</{name}")).count();
    for element in [
        "html", "header", "main", "footer", "section", "figure", "svg", "g", "path", "table", "tr", "th", "ul", "ol",
        "li", "dl", "form", "div", "select", "option", "datalist", "label", "button", "nav", "span", "a", "tbody",
        "thead", "td",
    ] {
        assert_eq!(opened(element), closed(element), "{element}");
    }
    assert_eq!((opened("main"), opened("header"), opened("footer"), opened("h1")), (1, 1, 1, 1));
    // headings do not skip a level
    let levels = tags.iter().filter_map(|tag| tag.strip_prefix("<h")?.chars().next()?.to_digit(10));
    let levels: Vec<u32> = levels.collect();
    assert!(levels.windows(2).all(|pair| matches!(pair, [a, b] if b <= &(a + 1))), "{levels:?}");
    assert!(
        tags.iter()
            .filter(|tag| tag.starts_with("<svg"))
            .all(|tag| tag.contains("role=") && tag.contains("aria-labelledby="))
    );
    assert_eq!(tags.iter().filter(|tag| tag.starts_with("<th ")).count(), opened("th"), "each header says of what");
    assert_eq!(opened("table"), opened("caption"));
    // ids are there once, and what is referred to is there
    let values = |attribute: &str| {
        let begin = format!(" {attribute}=\"");
        let parts = page.split(&begin).skip(1);
        parts
            .filter_map(|part| part.split('"').next())
            .flat_map(str::split_whitespace)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let ids: BTreeSet<String> = values("id").into_iter().collect();
    assert_eq!(ids.len(), values("id").len());
    for refers in ["aria-labelledby", "aria-describedby", "for", "list"] {
        assert!(values(refers).iter().all(|id| ids.contains(id)), "{refers}: {ids:?}");
    }
    for input in tags.iter().filter(|tag| ["<input", "<select"].iter().any(|name| tag.starts_with(name))) {
        assert!(input.contains(" id=") || input.contains(" type="), "{input}");
    }
    let labels = values("for");
    assert_eq!(labels.len(), opened("label"), "each label is of a field");
}

#[test]
fn what_is_lost_is_said_in_words() {
    let page = page(example());
    let (before, after) = page.split_once("id=\"after-1-title\"").expect("two pictures");
    let before = before.split_once("id=\"before-1-title\"").expect("two pictures").1;
    assert!(!before.contains("✕") && !before.contains("Pod/shop/c"), "nothing has happened yet: {before}");
    for said in [
        "Pod/shop/a: ✕ gone",
        "Pod/shop/b: ✕ goes",
        "Pod/shop/c: + new, pending",
        "✕ selects",
        "! 0 ready endpoints",
        "Service/shop/web selects Pod/shop/a no more",
    ] {
        assert!(after.contains(said), "{said}");
    }
}
