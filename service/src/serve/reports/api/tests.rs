//! A reader sees the reports of his namespaces, and of the others not that they are there.

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::{Value as Json, json};
use tower::ServiceExt;

use super::*;
use crate::clock::Clock;
use crate::report::Report;
use crate::serve::near_audit::Nearly;
use crate::serve::reports::access::Reader;
use crate::serve::reports::board::{Board, Line, Standing};
use crate::serve::reports::id::{Ids, ReportId};
use crate::serve::reports::store::Bounds;

/// When reports were made.
const NOON: &str = "2026-11-01T12:00:00Z";

/// Tokens are names; `admin` may read all, others the namespace that they are called like.
pub(in crate::serve::reports) struct Scripted;

#[async_trait::async_trait]
impl Authority for Scripted {
    async fn known(&self, token: &str) -> Result<Option<Reader>, String> {
        match token {
            "stranger" => Ok(None),
            "broken" => Err("no route to host".to_owned()),
            name => Ok(Some(serde_json::from_value(json!({"username": name})).unwrap())),
        }
    }

    async fn may_read(&self, reader: &Reader, namespace: &str) -> Result<bool, String> {
        let name = serde_json::to_value(reader).unwrap()["username"].as_str().unwrap().to_owned();
        Ok(name == "admin" || (!namespace.is_empty() && name == namespace))
    }
}

pub(in crate::serve::reports) fn report(id: ReportId, namespace: &str, instance: &str) -> Report {
    serde_json::from_value(json!({
        "id": id.to_string(), "time": "2026-11-01T12:00:00Z", "decision": "Denied", "uid": "u", "solver": "", "proved": 0, "notWorse": 0,
        "requests": [{"user": format!("system:serviceaccount:{namespace}:op"), "operation": "DELETE", "object": format!("Pod/{namespace}/{namespace}-pod"),
            "namespace": namespace, "text": format!("op deletes Pod/{namespace}/{namespace}-pod")}],
        "verdicts": [{"invariant": "kept", "instance": instance, "outcome": "Refuted", "action": "Deny", "message": "m",
            "assumptions": [], "provedAgainst": {}, "nearestAllowed": []}],
    }))
    .unwrap()
}

pub(in crate::serve::reports) async fn ask(routes: &Router, path: &str, token: Option<&str>) -> (StatusCode, String) {
    let request = Request::get(path);
    let request = match token {
        Some(token) => request.header("authorization", format!("Bearer {token}")),
        None => request,
    };
    let response = routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    (status, String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

/// Four reports, and how they are asked for.
struct Kept {
    made: Vec<(ReportId, Report)>,
    routes: Router,
    _folder: tempfile::TempDir,
}

impl Kept {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = ReportStore::open(folder.path()).unwrap();
        let (ids, now) = (Ids::after(None, "a"), Clock::parse(NOON).unwrap());
        let made: Vec<(ReportId, Report)> = [
            ("shop", "Service/shop/web"),
            ("bank", "Service/bank/vault"),
            ("bank", "Service/shop/web"),
            ("", "Node/n1"),
        ]
        .into_iter()
        .map(|(namespace, instance)| {
            let id = ids.next(now);
            (id, report(id, namespace, instance))
        })
        .collect();
        let bounds = Bounds { bytes_max: 1 << 20, age_max: Duration::from_secs(60) };
        store.put(&made, bounds, now).unwrap();
        let routes = router(store, Arc::new(Scripted), Around::default());
        Self { made, routes, _folder: folder }
    }

    fn id(&self, number: usize) -> String {
        self.made[number].0.to_string()
    }
}

#[tokio::test]
async fn who_shows_no_token_gets_nothing() {
    let kept = Kept::new();
    let (routes, of) = (&kept.routes, |number: usize| kept.id(number));
    for (token, status) in [(None, 401), (Some("stranger"), 401), (Some(""), 401), (Some("broken"), 503)] {
        for path in
            ["/reports".to_owned(), "/".to_owned(), format!("/reports/{}", of(0)), format!("/reports/{}/page", of(0))]
        {
            let (found, text) = ask(routes, &path, token).await;
            assert_eq!(found.as_u16(), status, "{path} {token:?}: {text}");
            assert!(!text.contains("shop") && !text.contains("no route"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_reader_sees_his_namespaces_in_lists_counts_and_reports() {
    let kept = Kept::new();
    let (routes, of) = (kept.routes.clone(), |number: usize| kept.id(number));
    let now = Clock::parse(NOON).unwrap();
    let list = async |token: &str, query: &str| {
        let (status, text) = ask(&routes, &format!("/reports{query}"), Some(token)).await;
        assert_eq!(status, 200, "{text}");
        let page: Json = serde_json::from_str(&text).unwrap();
        let ids = page["reports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|head| head["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>();
        (page["count"].as_u64().unwrap(), ids, text)
    };
    let (count, ids, _) = list("admin", "").await;
    assert_eq!((count, ids), (4, vec![of(3), of(2), of(1), of(0)]));
    let (count, ids, text) = list("shop", "").await;
    assert_eq!((count, ids), (2, vec![of(2), of(0)]), "{text}");
    assert!(!text.contains("bank") && text.contains("Service/shop/web"), "{text}");
    // what matches a filter is not told of what he may not see
    assert_eq!(list("shop", "?namespace=bank").await.0, 0);
    assert_eq!(list("shop", "?user=system:serviceaccount:bank:op").await.0, 0);
    assert_eq!(list("shop", "?user=system:serviceaccount:shop:op").await.0, 1);
    assert_eq!(list("admin", "?user=system:serviceaccount:bank:op").await.0, 2);
    assert_eq!(list("other", "").await.0, 0);
    assert_eq!(list("admin", "?namespace=bank&limit=1").await.1, [of(2)]);
    assert_eq!(list("admin", &format!("?namespace=bank&limit=1&before={}", of(2))).await.1, [of(1)]);
    assert_eq!(ask(&routes, "/reports?color=red", Some("admin")).await.0, 400);
    assert_eq!(ask(&routes, "/reports?since=x", Some("admin")).await.0, 400);

    for (token, number, status) in
        [("admin", 1, 200), ("shop", 0, 200), ("shop", 1, 404), ("shop", 2, 200), ("shop", 3, 404), ("other", 0, 404)]
    {
        for page in ["", "/page"] {
            let (found, text) = ask(&routes, &format!("/reports/{}{page}", of(number)), Some(token)).await;
            assert_eq!(found.as_u16(), status, "{token} {number}{page}: {text}");
            assert!(token != "shop" || !text.contains("bank"), "{text}");
        }
    }
    // the page of the list shows and counts the same
    let (status, page) = ask(&routes, "/?user=&decision=Denied", Some("shop")).await;
    assert!(status == 200 && page.contains("data-count=\"2\""), "{page}");
    assert!(
        page.contains(&format!("href=\"reports/{}/page\"", of(2))) && page.contains("an object in another namespace"),
        "{page}"
    );
    assert!(!page.contains("bank") && !page.contains(&of(1)), "{page}");
    let (_, page) = ask(&routes, "/?namespace=bank", Some("shop")).await;
    assert!(
        page.contains("data-count=\"0\"") && page.matches("bank").count() == 4,
        "only in the form and its links: {page}"
    );
    let (status, page) = ask(&routes, "/?since=%3Cb%3E", Some("admin")).await;
    assert!(status == 400 && page.contains("&lt;b&gt;") && page.contains("href=\"./\""), "{page}");
    let absent = ask(&routes, &format!("/reports/{}", ReportId::first_at(now)), Some("shop")).await;
    assert_eq!(absent, ask(&routes, &format!("/reports/{}", of(1)), Some("shop")).await, "hidden is as absent");
    assert_eq!(ask(&routes, "/reports/..", Some("admin")).await.0, 400);
    let (_, page) = ask(&routes, &format!("/reports/{}/page", of(2)), Some("shop")).await;
    assert!(page.contains("an object in another namespace"), "{page}");
}

#[tokio::test]
async fn a_list_names_no_namespace_that_its_reader_may_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = ReportStore::open(folder.path()).unwrap();
    let now = Clock::parse(NOON).unwrap();
    let id = Ids::after(None, "a").next(now);
    let mut made = serde_json::to_value(report(id, "shop", "Service/shop/web")).unwrap();
    let verdict = made["verdicts"][0].clone();
    // more instances than a head names, the last one elsewhere
    let instances = (0..20).map(|number| format!("Pod/shop/p{number:02}")).chain(["Pod/zoo/lion".to_owned()]);
    made["verdicts"] = instances
        .map(|instance| {
            let mut verdict = verdict.clone();
            verdict["instance"] = instance.into();
            verdict
        })
        .collect();
    let bounds = Bounds { bytes_max: 1 << 20, age_max: Duration::from_secs(60) };
    store.put(&[(id, serde_json::from_value(made).unwrap())], bounds, now).unwrap();
    let routes = router(store, Arc::new(Scripted), Around::default());
    for path in ["/", "/reports"] {
        assert!(ask(&routes, path, Some("admin")).await.1.contains("zoo"), "{path}");
        let (status, text) = ask(&routes, path, Some("shop")).await;
        assert!(status == 200 && text.contains("Pod/shop") && !text.contains("zoo"), "{path}: {text}");
    }
}

#[tokio::test]
async fn the_board_names_and_counts_what_its_reader_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = ReportStore::open(folder.path()).unwrap();
    let (ids, now) = (Ids::after(None, "a"), Clock::now());
    let made = ["shop", "bank", "bank"].map(|namespace| {
        let id = ids.next(now);
        (id, report(id, namespace, &format!("Service/{namespace}/web")))
    });
    let bounds = Bounds { bytes_max: 1 << 20, age_max: Duration::from_secs(60) };
    store.put(&made, bounds, now).unwrap();
    let violated = ["Pod/shop/a", "Pod/bank/b", "Node/n1"].map(|name| (name.to_owned(), format!("{name} is down")));
    let near = [("Pod/shop/c", "ana deletes Service/bank/web"), ("Pod/bank/d", "one node fails")]
        .map(|(instance, step)| (instance.to_owned(), step.to_owned()));
    let standing = |name: &str, violations: &[(String, String)]| Standing {
        name: name.to_owned(),
        loaded: true,
        violations: Some(violations.to_vec()),
        nearly: Some(Nearly { instances: near.to_vec(), complete: true }),
        ..Standing::default()
    };
    let standings = vec![standing("kept", &violated), standing("bank/own", &violated[1..2]), standing("shop/own", &[])];
    let (_known, standings) = tokio::sync::watch::channel(standings);
    let routes = router(store, Arc::new(Scripted), Around { others: None, standings: Some(standings) });
    let board = async |token: &str| {
        let (status, text) = ask(&routes, "/invariants", Some(token)).await;
        assert_eq!(status, 200, "{text}");
        let board: Board = serde_json::from_str(&text).unwrap();
        let line = |line: &Line| {
            let denied = line.decisions.iter().map(|counts| counts.denied).sum::<u64>();
            (line.standing.name.clone(), line.standing.violations.as_ref().unwrap().len(), denied)
        };
        (board.invariants.iter().map(line).collect::<Vec<_>>(), text)
    };
    let of = |name: &str, violations: usize, denied: u64| (name.to_owned(), violations, denied);
    assert_eq!(board("admin").await.0, [of("bank/own", 1, 0), of("kept", 3, 3), of("shop/own", 0, 0)]);
    let (lines, text) = board("shop").await;
    assert_eq!(lines, [of("kept", 1, 1), of("shop/own", 0, 0)]);
    assert!(!text.contains("bank") && !text.contains("n1"), "{text}");
    assert!(text.contains("Pod/shop/c") && text.contains("another namespace"), "{text}");
    assert_eq!(board("other").await.0, [of("kept", 0, 0)]);
    let (status, page) = ask(&routes, "/invariants/page?span=7d", Some("shop")).await;
    assert!(
        status == 200 && page.contains("Pod/shop/a") && !page.contains("bank") && page.contains("href=\"../\""),
        "{page}"
    );
    for (path, token, status) in [
        ("/invariants?span=1y", Some("shop"), 400),
        ("/invariants/page", None, 401),
        ("/invariants", Some("stranger"), 401),
    ] {
        assert_eq!(ask(&routes, path, token).await.0.as_u16(), status, "{path}");
    }
}
