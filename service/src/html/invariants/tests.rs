//! The page of invariants is a page like the others; its plots say what its tables say.

use serde_json::{Value as Json, json};

use super::*;
use crate::html::policy;
use crate::html::tests::{HOSTILE, heard, hostile, loads_nothing, tags};

fn example() -> Json {
    let none = || vec![json!({"denied": 0, "undecided": 0, "warned": 0}); 24];
    let mut busy = none();
    busy[23] = json!({"denied": 3, "undecided": 1, "warned": 0});
    busy[5] = json!({"denied": 0, "undecided": 0, "warned": 2});
    json!({
        "span": "24h", "since": "2026-10-31T13:00:00Z", "stepSecs": 3600, "silent": ["suture-1"],
        "invariants": [
            {"name": "calm", "loaded": true, "action": "Audit", "violations": [], "decisions": none()},
            {"name": "broken", "loaded": true, "problem": "no such field", "decisions": none()},
            {"name": "blind", "loaded": true, "action": "Deny", "unread": "Pods are not read", "unclear": "not read", "decisions": none()},
            {"name": "busy", "loaded": true, "action": "Deny", "violations": [["Pod/shop/a", "it is down"]], "decisions": busy},
            {"name": "gone", "decisions": none()},
        ],
    })
}

fn page(board: Json) -> String {
    super::html(&serde_json::from_value(board).unwrap(), "../")
}

#[test]
fn it_says_how_each_stands_and_what_needs_somebody_first() {
    let page = page(example());
    heard(&page);
    loads_nothing(&page);
    assert!(!page.contains("<script") && page.contains(&policy(Doing::Nothing)));
    for said in [
        "Does not compile</span> broken",
        "<p>no such field</p>",
        "Not ready</span> blind",
        "Not known: not read",
        "Denies</span> busy",
        "<code>Pod/shop/a</code>: it is down",
        "3 denied, 1 undecided, 2 warned",
        "<title>2026-11-01 12:00 UTC: 3 denied, 1 undecided, 0 warned</title>",
        "<th scope=\"row\">2026-10-31 18:00 UTC</th><td>0</td><td>0</td><td>2</td>",
        "<th scope=\"row\">calm</th><td><span class=\"badge good\">Audits</span></td><td><p>none</p></td>",
        "Not loaded</span> gone",
        "what suture-1 keeps is not shown",
        "href=\"?span=7d\"",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let places: Vec<usize> =
        ["> broken", "> blind", "> busy", "> gone", ">calm"].map(|name| page.find(name).unwrap()).to_vec();
    assert!(places.is_sorted(), "{places:?}");
    // three quarters of the highest bar are denials, which stand at its foot; each part there is has a height
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 1);
    assert!(page.contains("<rect class=\"denied\" x=\"231\" width=\"8\" y=\"12\" height=\"34\">"), "{page}");
    assert!(page.contains("<rect class=\"undecided\" x=\"231\" width=\"8\" y=\"0\" height=\"12\">"), "{page}");
    assert!(page.contains("<rect class=\"warned\" x=\"51\" width=\"8\" y=\"23\" height=\"23\">"), "{page}");
}

#[test]
fn names_are_text_and_nothing_else() {
    let benign = page(example());
    let mut board = example();
    for line in board["invariants"].as_array_mut().unwrap() {
        for field in ["name", "problem", "unread", "unclear", "violations"] {
            let value = line[field].take();
            if value.is_null() {
                line.as_object_mut().unwrap().remove(field);
            } else {
                line[field] = hostile(value, field);
            }
        }
    }
    board["silent"] = json!([HOSTILE]);
    let page = page(board);
    assert!(page.matches("&lt;script src=//evil&gt;").count() > 9, "{page}");
    let sorted = |page: &str| {
        let mut all = tags(page);
        all.sort();
        all
    };
    assert_eq!(sorted(&page), sorted(&benign), "no name makes an element or an attribute");
    assert!(!page.contains('\u{202e}') && !page.contains("<script"), "{page}");
}
