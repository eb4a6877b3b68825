//! The list is a page like the others, whatever those are called that it names.

use serde_json::{Value as Json, json};

use super::*;
use crate::clock::Clock;
use crate::html::tests::{HOSTILE, heard, hostile, loads_nothing, tags};
use crate::html::{SCRIPT, policy};

fn example() -> Json {
    let head = |number: u32, decision: &str| {
        json!({
            "id": format!("000000000000{number}"), "time": "2026-11-01T12:00:00.123456Z", "decision": decision, "user": "ana",
            "text": "ana deletes Pod/shop/a", "object": "Pod/shop/a", "namespaces": ["shop"], "invariants": ["web-serves", "other"],
            "instances": ["Service/shop/web"], "bytes": 100,
        })
    };
    json!({"count": 7, "next": "0000000000001", "reports": [head(3, "Denied"), head(2, "Warned"), head(1, "Undecided")]})
}

fn asked(filter: Json) -> Filter {
    let filter: Filter = serde_json::from_value(filter).unwrap();
    filter.understood(Clock::parse("2026-11-01T12:00:00Z").unwrap()).unwrap()
}

fn page(listed: Json, filter: &Filter) -> String {
    super::html(&serde_json::from_value(listed).unwrap(), filter)
}

#[test]
fn it_says_who_asked_for_what_when_and_what_stood_in_the_way() {
    let filter = asked(json!({"user": "ana", "decision": "Denied", "limit": 3}));
    let page = page(example(), &filter);
    heard(&page);
    loads_nothing(&page);
    for said in [
        "<time datetime=\"2026-11-01T12:00:00.123456Z\">2026-11-01 12:00:00 UTC</time>",
        "<span class=\"badge bad\">Denied</span>",
        "<span class=\"badge warn\">Undecided</span>",
        "<a href=\"reports/0000000000003/page\">ana deletes Pod/shop/a</a>",
        "7 reports, the newest first; 3 are shown",
        "<code>web-serves</code>",
        // what was asked for stays in the form, and in the links
        "name=\"user\" value=\"ana\"",
        "<option value=\"Denied\" selected>Denied</option>",
        "href=\"?user=ana&amp;decision=Denied&amp;limit=3&amp;before=0000000000001\">Older",
        "href=\"?user=ana&amp;decision=Denied&amp;since=24h&amp;limit=3\">24 hours",
        "data-count=\"7\" data-newest=\"0000000000003\"",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    // links lead on behind whatever prefix
    let links = page.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    assert!(links.into_iter().all(|link| !link.starts_with('/') && !link.contains(':')), "{page}");
}

#[test]
fn names_are_text_and_nothing_else() {
    let benign = page(example(), &asked(json!({"user": "a", "namespace": "b", "invariant": "c"})));
    let mut listed = example();
    for head in listed["reports"].as_array_mut().unwrap() {
        for field in ["user", "text", "object", "namespaces", "invariants"] {
            head[field] = hostile(head[field].take(), field);
        }
    }
    let page = page(listed, &asked(json!({"user": HOSTILE, "namespace": HOSTILE, "invariant": HOSTILE})));
    assert_eq!(tags(&page), tags(&benign), "no name makes an element or an attribute");
    assert!(page.matches("&lt;script src=//evil&gt;").count() > 15, "{page}");
    assert!(!page.contains('\u{202e}'), "the direction of writing stays");
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains(&format!("<script>{SCRIPT}</script>")) && !SCRIPT.contains("</"));
}

#[test]
fn an_older_page_runs_nothing() {
    let older = asked(json!({"before": "0000000000009"}));
    let page = page(example(), &older);
    heard(&page);
    assert!(!page.contains("<script") && page.contains("Newest"), "{page}");
    assert!(page.contains(&format!("content=\"{}\"", policy(Doing::Sending))), "{page}");
    let newest = super::html(&Page::default(), &Filter::default());
    heard(&newest);
    assert!(newest.contains("There is no such report") && !newest.contains("Older"), "{newest}");
    assert!(newest.contains(&format!("content=\"{}\"", policy(Doing::Following))), "{newest}");
}
