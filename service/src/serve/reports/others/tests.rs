//! Replicas that show their reports over TLS: one of them is asked, and tells what all have.

use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::sync::watch;

use super::*;
use crate::clock::Clock;
use crate::serve::metrics::Metrics;
use crate::serve::reports::api::tests::{Scripted, ask, report};
use crate::serve::reports::api::{Around, router, serve};
use crate::serve::reports::id::{Ids, ReportId};
use crate::serve::reports::store::{Bounds, ReportStore};
use crate::serve::tls::{Identity, Rules};

fn identity() -> Identity {
    let key = KeyPair::generate().unwrap();
    let chain = CertificateParams::new(vec!["suture".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    Identity { chain, key: key.serialize_pem() }
}

fn tls(identity: &Identity) -> Tls {
    _ = rustls::crypto::ring::default_provider().install_default();
    Tls::new(identity.clone(), None, Rules::default(), Metrics::default()).unwrap()
}

/// Replicas that know of each other.
struct Scene {
    there: watch::Sender<There>,
    tls: Tls,
    folders: Vec<TempDir>,
}

impl Scene {
    fn new() -> Self {
        Self { there: watch::channel(There::default()).0, tls: tls(&identity()), folders: Vec::new() }
    }

    /// A replica with these reports; what it serves by `shown` is where the others find it.
    fn replica(&mut self, name: &str, reports: &[(ReportId, &str)], shown: &Tls) -> Router {
        let folder = tempfile::tempdir().unwrap();
        let store = ReportStore::open(folder.path()).unwrap();
        self.folders.push(folder);
        let now = Clock::parse("2026-11-01T12:00:00Z").unwrap();
        let bounds = Bounds { bytes_max: 1 << 20, age_max: Duration::from_secs(3_600) };
        let made =
            |(id, namespace): &(ReportId, &str)| (*id, report(*id, namespace, &format!("Service/{namespace}/web")));
        store.put(&reports.iter().map(made).collect::<Vec<_>>(), bounds, now).unwrap();
        let others = Others { identity: name.to_owned(), there: self.there.subscribe(), tls: self.tls.clone() };
        let routes = router(store, Arc::new(Scripted), Around { others: Some(others), standings: None });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        self.tell(name, listener.local_addr().unwrap().to_string());
        tokio::spawn(serve(listener, shown.clone(), shown.clone(), routes.clone()));
        routes
    }

    fn tell(&self, name: &str, at: String) {
        self.there.send_modify(|there| drop(there.reports.insert(name.to_owned(), at)));
    }
}

async fn list(routes: &Router, query: &str, token: &str) -> Json {
    let (status, text) = ask(routes, &format!("/reports{query}"), Some(token)).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn ids(list: &Json) -> Vec<String> {
    list["reports"].as_array().unwrap().iter().map(|head| head["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn one_replica_tells_what_all_of_them_keep() {
    let now = Clock::parse("2026-11-01T12:00:00Z").unwrap();
    let made = Ids::after(None, "any");
    let all: Vec<(ReportId, &str)> =
        (0..9).map(|number| (made.next(now), if number % 3 == 2 { "bank" } else { "shop" })).collect();
    let part =
        |rest: usize| all.iter().enumerate().filter(|(at, _)| at % 2 == rest).map(|(_, one)| *one).collect::<Vec<_>>();
    let mut scene = Scene::new();
    let tls = scene.tls.clone();
    let first = scene.replica("suture-0", &part(0), &tls);
    let second = scene.replica("suture-1", &part(1), &tls);
    let newest: Vec<String> = all.iter().rev().map(|(id, _)| id.to_string()).collect();
    for routes in [&first, &second] {
        let whole = list(routes, "", "admin").await;
        assert_eq!((&whole["count"], ids(&whole), whole.get("silent")), (&json!(9), newest.clone(), None));
        // page by page, each once
        let (mut seen, mut before) = (Vec::new(), String::new());
        for _ in 0..5 {
            let page = list(routes, &format!("?limit=2{before}"), "admin").await;
            assert_eq!(page["count"], 9, "{page}");
            seen.extend(ids(&page));
            let Some(next) = page["next"].as_str() else { break };
            before = format!("&before={next}");
        }
        assert_eq!(seen, newest);
        assert_eq!(list(routes, "?namespace=bank", "admin").await["count"], 3);
        let mine = list(routes, "", "shop").await;
        assert!(mine["count"] == 6 && !mine.to_string().contains("bank"), "{mine}");
        let (_, page) = ask(routes, "/", Some("shop")).await;
        assert!(page.contains("data-count=\"6\"") && !page.contains(" keeps is not shown"), "{page}");
        for (id, namespace) in &all {
            for page in ["", "/page"] {
                let (status, text) = ask(routes, &format!("/reports/{id}{page}"), Some("shop")).await;
                assert_eq!(status, if *namespace == "shop" { 200 } else { 404 }, "{text}");
            }
        }
        assert_eq!(ask(routes, "/reports", Some("stranger")).await.0, 401);
    }
}

#[tokio::test]
async fn a_replica_that_cannot_be_asked_is_named_and_gets_no_token_if_it_is_none() {
    let id = Ids::after(None, "any").next(Clock::parse("2026-11-01T12:00:00Z").unwrap());
    let mut scene = Scene::new();
    let tls = scene.tls.clone();
    let routes = scene.replica("suture-0", &[(id, "shop")], &tls);
    // one with another certificate, one that is gone, and one that takes connections and says nothing
    let other = self::tls(&identity());
    _ = scene.replica("suture-1", &[], &other);
    scene.tell("suture-2", "127.0.0.1:1".to_owned());
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    scene.tell("suture-3", mute.local_addr().unwrap().to_string());
    let (report, its_page) = (format!("/reports/{id}"), format!("/reports/{id}/page"));
    let (listed, (_, page), found, absent, hidden) = tokio::join!(
        list(&routes, "", "shop"),
        ask(&routes, "/", Some("shop")),
        ask(&routes, &report, Some("shop")),
        ask(&routes, "/reports/0000000000001/page", Some("bank")),
        ask(&routes, &its_page, Some("bank")),
    );
    assert_eq!((&listed["count"], &listed["silent"]), (&json!(1), &json!(["suture-1", "suture-2", "suture-3"])));
    assert!(page.contains("what suture-1, suture-2, suture-3 keep is not shown: no answer."), "{page}");
    // what is here is there at once; what is not may be elsewhere, and hidden is as absent
    assert_eq!(found.0, 200);
    assert!(absent.0 == 404 && absent.1.contains("what suture-1, suture-2, suture-3 keep"), "{absent:?}");
    assert_eq!(hidden, absent);
}
