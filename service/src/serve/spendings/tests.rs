//! What stands in the status of a grant, and who knows of it, before an API server that has nothing else.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use axum::http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use suture_model::kinds::Kind;
use suture_model::object::Key;
use tower::service_fn;

use super::*;
use crate::grants::{Spent, Taken};
use crate::serve::policies::Policies;

const GRANT: &str = "bot";

/// The part of an API server that has one grant: its version moves on with each write, and a write to another one is refused.
#[derive(Default)]
struct Server {
    status: Value,
    version: u64,
    /// How often somebody else writes first.
    overtaken: usize,
    down: bool,
    writes: usize,
}

impl Server {
    fn grant(&self) -> Value {
        json!({"apiVersion": "suture.dev/v1alpha1", "kind": "OperatorGrant",
            "metadata": {"name": GRANT, "resourceVersion": self.version.to_string()}, "spec": {}, "status": self.status})
    }

    fn answer(&mut self, method: &Method, body: &[u8]) -> (StatusCode, Value) {
        if self.down {
            let failure = json!({"kind": "Status", "code": 500, "reason": "InternalError", "message": "down"});
            return (StatusCode::INTERNAL_SERVER_ERROR, failure);
        }
        if method == Method::PATCH {
            if self.overtaken > 0 {
                self.overtaken -= 1;
                self.version += 1;
            }
            let patch: Value = serde_json::from_slice(body).unwrap();
            if patch["metadata"]["resourceVersion"] != json!(self.version.to_string()) {
                let conflict = json!({"kind": "Status", "code": 409, "reason": "Conflict", "message": "changed"});
                return (StatusCode::CONFLICT, conflict);
            }
            self.version += 1;
            self.writes += 1;
            self.status["spent"] = patch["status"]["spent"].clone();
        }
        (StatusCode::OK, self.grant())
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Server>>);

impl Shared {
    fn with<R>(&self, run: impl FnOnce(&mut Server) -> R) -> R {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn client(&self) -> Client {
        let shared = self.clone();
        let service = service_fn(move |call: Request<Body>| {
            let shared = shared.clone();
            async move {
                let (parts, body) = call.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let (status, json) = shared.with(|server| server.answer(&parts.method, &body));
                let body = Body::from(json.to_string().into_bytes());
                Ok::<_, std::convert::Infallible>(Response::builder().status(status).body(body).unwrap())
            }
        });
        Client::new(service, "default")
    }

    /// The names of what its status says was taken.
    fn taken(&self) -> Vec<String> {
        let entries = self.with(|server| server.status["spent"].clone());
        let objects =
            entries.as_array().into_iter().flatten().flat_map(|entry| entry["taken"].as_array().unwrap().clone());
        objects.map(|taken| taken["object"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// A replica of its own, with what it knows.
struct Replica {
    log: Arc<InFlightLog>,
    spendings: Spendings,
}

impl Replica {
    fn start(server: &Shared) -> Self {
        let mut policies = Policies::default();
        let grant = json!({"apiVersion": "suture.dev/v1alpha1", "kind": "OperatorGrant", "metadata": {"name": GRANT},
            "spec": {"subjects": [{"kind": "User", "name": GRANT}],
                     "budgets": [{"verb": "delete", "kind": "ConfigMap", "max": 2, "window": "1h"}]}});
        policies.put(serde_json::from_value(grant).unwrap());
        let store = Arc::new(Store::new(Arc::new(policies.load())));
        let log = Arc::new(InFlightLog::lasting(60));
        let spendings = Spendings::start(&server.client(), log.clone(), store);
        let replica = Self { log, spendings };
        replica.watches(server);
        replica
    }

    /// The watch shows what stands there.
    fn watches(&self, server: &Shared) {
        let grant = server.with(|server| server.grant());
        take_over(&self.log, &serde_json::from_value(grant).unwrap());
    }

    /// As a judge and the webhook do.
    async fn delete(&self, name: &str) -> Result<(), String> {
        let spent = spent(name);
        let adopted = self.log.history().adopted();
        self.log.spend(std::slice::from_ref(&spent), Clock::now());
        self.spendings.record(vec![Spending { spent, adopted, order: None }]).await
    }

    fn knows(&self, name: &str) -> bool {
        self.log.history().has(&spent(name), 0)
    }
}

fn spent(name: &str) -> Spent {
    let key = Key::new(Kind::new("", "ConfigMap"), "shop", name);
    let taken = Taken { key, uid: format!("uid-{name}").as_str().into(), group: None };
    Spent {
        grant: GRANT.into(),
        requests: vec![format!("request-{name}").as_str().into()],
        taken: BTreeSet::from([taken]),
        scaled: BTreeMap::new(),
        dry_run: false,
    }
}

#[tokio::test]
async fn what_is_spent_stands_in_the_status_and_is_known_after_a_restart() {
    let server = Shared::default();
    let replica = Replica::start(&server);
    replica.delete("one").await.unwrap();
    assert_eq!(server.taken(), ["one"]);
    // the conditions of the status are written as well
    server.with(|server| server.overtaken = 2);
    replica.delete("two").await.unwrap();
    assert_eq!(server.taken(), ["one", "two"]);
    // the same again says nothing new
    let writes = server.with(|server| server.writes);
    replica.delete("two").await.unwrap();
    assert_eq!(server.with(|server| server.writes), writes);

    let again = Replica::start(&server);
    assert!(again.knows("one") && again.knows("two"));
    again.delete("three").await.unwrap();
    assert_eq!(server.taken(), ["one", "two", "three"]);
}

#[tokio::test]
async fn who_did_not_know_all_tries_again() {
    let server = Shared::default();
    let (one, other) = (Replica::start(&server), Replica::start(&server));
    one.delete("zero").await.unwrap();
    other.watches(&server);
    one.delete("first").await.unwrap();
    let why = other.delete("second").await.unwrap_err();
    assert!(why.contains("more was taken away"), "{why}");
    assert!(other.knows("first") && !other.knows("second"));
    assert_eq!(server.taken(), ["zero", "first"]);
    other.delete("second").await.unwrap();
    assert_eq!(server.taken(), ["zero", "first", "second"]);
    // what the watch shows between decision and record is as new
    let spent = spent("third");
    let adopted = one.log.history().adopted();
    one.log.spend(std::slice::from_ref(&spent), Clock::now());
    one.watches(&server);
    one.spendings.record(vec![Spending { spent, adopted, order: None }]).await.unwrap_err();
    assert!(!one.knows("third"));
    assert_eq!(server.taken(), ["zero", "first", "second"]);
}

#[tokio::test]
async fn what_cannot_be_recorded_is_taken_back() {
    let server = Shared::default();
    let replica = Replica::start(&server);
    server.with(|server| server.down = true);
    replica.delete("one").await.unwrap_err();
    assert!(!replica.knows("one"));
    server.with(|server| {
        server.down = false;
        server.status = json!({"spent": [{"at": "yesterday"}]});
    });
    let why = replica.delete("two").await.unwrap_err();
    assert!(why.contains("status.spent[0].at"), "{why}");
    server.with(|server| server.overtaken = usize::MAX);
    server.with(|server| server.status = json!({}));
    let why = replica.delete("three").await.unwrap_err();
    assert!(why.contains("again and again"), "{why}");
    server.with(|server| server.overtaken = 0);
    replica.delete("four").await.unwrap();
    assert_eq!(server.taken(), ["four"]);
}

#[tokio::test]
async fn many_are_written_together_and_none_is_lost() {
    let server = Shared::default();
    let replica = Arc::new(Replica::start(&server));
    let names: Vec<String> = (0..40).map(|number| format!("n{number:02}")).collect();
    let all = names.iter().map(|name| replica.delete(name));
    for recorded in join_all(all).await {
        recorded.unwrap();
    }
    let taken: BTreeSet<String> = server.taken().into_iter().collect();
    assert_eq!(taken, names.into_iter().collect());
    assert!(server.with(|server| server.writes) < 10);
}

#[tokio::test]
async fn what_no_window_reaches_is_left_out() {
    let server = Shared::default();
    let entry = json!({"at": "2020-01-01T00:00:00Z", "requests": ["r"],
        "taken": [{"object": {"kind": "ConfigMap", "namespace": "shop", "name": "old"}, "uid": "u"}], "scaled": []});
    server.with(|server| server.status = json!({"spent": [entry]}));
    let replica = Replica::start(&server);
    replica.delete("new").await.unwrap();
    assert_eq!(server.taken(), ["new"]);
}
