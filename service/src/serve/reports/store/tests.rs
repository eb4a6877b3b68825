//! Reports are bounded, found again after a restart, and listed page by page.

use serde_json::json;

use super::*;
use crate::serve::reports::head::NO_NAMESPACE;
use crate::serve::reports::id::Ids;

fn report(user: &str, namespace: &str, decision: &str) -> Report {
    serde_json::from_value(json!({
        "decision": decision, "uid": "u", "solver": "", "proved": 0, "notWorse": 0, "time": "t", "message": "m".repeat(500),
        "requests": [{"user": user, "operation": "DELETE", "object": format!("Pod/{namespace}/a"), "namespace": namespace, "text": "t"}],
        "verdicts": [{"invariant": "kept", "instance": "Service/web/s", "outcome": "Refuted", "action": "Deny", "message": "",
            "assumptions": [], "provedAgainst": {}, "nearestAllowed": []}],
    }))
    .unwrap()
}

fn at(text: &str) -> Clock {
    Clock::parse(text).unwrap()
}

const WIDE: Bounds = Bounds { bytes_max: u64::MAX, age_max: Duration::from_secs(1 << 30) };

#[test]
fn reports_survive_a_restart_and_are_listed_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let (ids, noon) = (Ids::after(None, "a"), at("2026-11-01T12:00:00Z"));
    let mut kept = Vec::new();
    let store = ReportStore::open(folder.path()).unwrap();
    for number in 0..25 {
        let (user, decision) =
            (if number % 2 == 0 { "ana" } else { "bob" }, if number < 20 { "Denied" } else { "Warned" });
        let id = ids.next(noon.later(&format!("{number}m")).unwrap());
        store.put(&[(id, report(user, "shop", decision))], WIDE, noon).unwrap();
        kept.push(id);
    }
    drop(store);
    assert!(matches!(ReportStore::open_existing(&folder.path().join("none")), Err(StoreError::Missing(_))));
    let store = ReportStore::open_existing(folder.path()).unwrap();
    assert_eq!(store.last().unwrap(), kept.last().copied());
    assert!(kept.iter().all(|id| store.get(*id).unwrap().is_some()));

    let now = noon.later("25m").unwrap();
    let understood =
        |filter: &serde_json::Value| serde_json::from_value::<Filter>(filter.clone()).unwrap().understood(now);
    let list = |filter: serde_json::Value, may_see: &dyn Fn(&Head) -> bool| {
        store.list(&understood(&filter).unwrap(), may_see).unwrap()
    };
    let all = |_: &Head| true;
    let (mut before, mut seen) = (None, Vec::new());
    loop {
        let page = list(json!({"limit": 10, "before": before}), &all);
        assert_eq!(page.count, 25);
        seen.extend(page.reports.iter().map(|head| head.id.clone()));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    let newest_first: Vec<String> = kept.iter().rev().map(ToString::to_string).collect();
    assert_eq!(seen, newest_first, "each once");
    for (filter, count) in [
        (json!({"user": "ana"}), 13),
        (json!({"user": "nobody"}), 0),
        (json!({"invariant": "kept", "namespace": "shop"}), 25),
        (json!({"namespace": "web"}), 25),
        (json!({"namespace": "other"}), 0),
        (json!({"namespace": NO_NAMESPACE}), 0),
        (json!({"decision": "Warned"}), 5),
        (
            json!({"user": "", "invariant": " ", "namespace": "", "decision": "", "since": "", "until": "", "before": ""}),
            25,
        ),
        (json!({"since": "15m"}), 15),
        (json!({"since": "1d", "until": "0s"}), 25),
        (json!({"since": "2026-11-01 12:20"}), 5),
        (json!({"until": "2026-11-01T12:20"}), 20),
        (json!({"since": "2026-11-02"}), 0),
        (json!({"since": "2026-11-01T12:10:00Z", "until": "2026-11-01T12:20:00Z"}), 10),
        (json!({"decision": "Denied", "user": "bob", "since": "2026-11-01T12:18:00Z"}), 1),
    ] {
        assert_eq!(list(filter.clone(), &all).count, count, "{filter}");
    }
    assert_eq!(list(json!({}), &|head| head.user == "bob").count, 12, "who may not see is not told how many there are");
    for wrong in [
        json!({"since": "yesterday"}),
        json!({"since": "-2h"}),
        json!({"until": "99999999999d"}),
        json!({"before": "x"}),
    ] {
        assert!(understood(&wrong).is_err(), "{wrong}");
    }
    let filter = json!({"user": "a&b=c #é", "decision": "Denied", "since": "2h", "limit": 3});
    let query = understood(&filter).unwrap().query(Some(&seen[4]));
    assert_eq!(query, format!("?user=a%26b%3Dc+%23%C3%A9&decision=Denied&since=2h&limit=3&before={}", seen[4]));
}

#[test]
fn the_oldest_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let (ids, noon) = (Ids::after(None, "a"), at("2026-11-01T12:00:00Z"));
    let store = ReportStore::open(folder.path()).unwrap();
    let one = serde_json::to_vec(&report("ana", "shop", "Denied")).unwrap().len() as u64;
    let bounds = Bounds { bytes_max: 10 * one, age_max: Duration::from_secs(3600) };
    let made: Vec<ReportId> = (0..30).map(|_| ids.next(noon)).collect();
    let mut dropped = 0;
    for part in made.chunks(4) {
        let batch: Vec<_> = part.iter().map(|id| (*id, report("ana", "shop", "Denied"))).collect();
        let kept = store.put(&batch, bounds, noon).unwrap();
        assert!(kept.bytes <= bounds.bytes_max, "{kept:?}");
        dropped += kept.dropped;
    }
    assert_eq!(dropped, 20);
    let found: Vec<bool> = made.iter().map(|id| store.get(*id).unwrap().is_some()).collect();
    assert_eq!(found, (0..30).map(|at| at >= 20).collect::<Vec<_>>());
    let later = noon.later("2h").unwrap();
    let kept = store.put(&[(ids.next(later), report("ana", "shop", "Denied"))], bounds, later).unwrap();
    assert_eq!((kept.reports, kept.dropped), (1, 10), "those of an hour ago are too old");
    assert_eq!(kept.bytes, one);
}
