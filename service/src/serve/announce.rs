//! Replicas that decide at the same time: each request is announced by a write, and decided by what was announced before.
//!
//! An announcement is a ConfigMap in Suture's own namespace. etcd gives all of them one order, their resourceVersions;
//! a replica decides when its watch has shown its own announcement, with every earlier one as in flight, and none of the
//! later ones: those who made them see this one.
//!
//! | an announcement goes | and then others |
//! |---|---|
//! | when its request is denied: marked, then deleted | forget it when they see the mark |
//! | when the watch of its replica has shown its request, or its time is up: deleted | keep it until their own watch has shown the request, which may be later |
//!
//! Announcements outlive a replica that is killed: whoever starts reads them before it reads anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};
use suture_model::change::{Operation, Preconditions, Propagation, Request, User};
use suture_model::ingest::project;
use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_model::value::{Str, Val};
use tokio::runtime::Handle;

use super::api::{brief, send};
use super::in_flight_log::InFlightLog;
use super::kind_events::{KindEvent, List, name_of, version_of};
use super::store::{Store, View};
use super::watch::Place;
use crate::clock::{Clock, now};

/// The label of announcements.
const LABEL: &str = "suture.dev/announcement";
/// The annotation of those whose request was denied.
const DENIED: &str = "suture.dev/denied";
/// An announcement is no longer than this: a ConfigMap holds 1 MiB (`k8s.io/api/core/v1/types.go`, `MaxSecretSize`).
const TEXT_MAX_BYTES: usize = 1_000_000;
/// How often announcements are looked through where nothing is told.
const TICK: Duration = Duration::from_millis(500);
/// Announcements that nobody took away are taken away by anybody after so many lifetimes.
const ORPHANED_LIFETIMES: i128 = 2;

/// Announces requests, and knows what was announced.
pub struct Announcer {
    client: Client,
    collection: String,
    runtime: Handle,
    board: Mutex<Board>,
    log: Arc<InFlightLog>,
    shown: Condvar,
    lifetime_seconds: i128,
}

/// What was announced, as the watch shows it.
#[derive(Default)]
struct Board {
    /// Announcements by name.
    names: BTreeMap<Str, Announced>,
    /// Our own, by place: taken away when they end.
    own: BTreeMap<u64, Str>,
    /// Everything up to this resourceVersion is shown.
    position: Option<u64>,
    /// Announcements before this one may have come and gone unseen: nothing is decided before all kinds are shown as of
    /// then.
    barrier: Option<u64>,
    listed: bool,
}

/// One announcement, as it is remembered.
struct Announced {
    /// Its place in the order; before all others where it does not say.
    order: u64,
    /// When it was made.
    made: Option<Clock>,
    /// Whether its request may be in flight and cannot be read: nothing later is decided meanwhile.
    unreadable: bool,
}

/// What was announced, taken back unless it is admitted: also where the decision is abandoned.
pub struct Announcement<'a> {
    /// Who announced it.
    pub announcer: &'a Announcer,
    /// Its place in the order, as long as it may have to be taken back.
    pub order: Option<u64>,
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        if let Some(order) = self.order {
            self.announcer.withdraw(order);
        }
    }
}

impl Announcer {
    /// Announces in this namespace, and keeps what is announced in this log, whose entries end after so many seconds. To be called on a tokio runtime.
    pub fn new(client: Client, namespace: &str, log: Arc<InFlightLog>, lifetime_seconds: i128) -> Self {
        Self {
            client,
            collection: format!("/api/v1/namespaces/{namespace}/configmaps"),
            runtime: Handle::current(),
            board: Mutex::default(),
            log,
            shown: Condvar::new(),
            lifetime_seconds,
        }
    }

    /// Where announcements are watched.
    pub fn place(&self) -> Place {
        Place {
            kind: Kind::new("", "ConfigMap"),
            api_version: "v1".into(),
            path: self.collection.clone(),
            label_selector: Some(LABEL.to_owned()),
            // an announcement is decided when it is shown, with all before it
            resumes: true,
            keeps_values: true,
        }
    }

    /// Announces a request and waits until the watch shows it; gives its place in the order.
    ///
    /// # Errors
    /// When it cannot be written, or is not shown in time: then nothing may be decided.
    pub fn announce(&self, request: &Request, deadline: Instant) -> Result<u64, String> {
        let text = written(request)?;
        if text.len() > TEXT_MAX_BYTES {
            return Err("the request is too large to be announced to other replicas".to_owned());
        }
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"generateName": "suture-announcement-", "labels": {LABEL: "true"}},
            "data": {"request": text},
        });
        let began = now();
        let (made, answer) = channel();
        let call = self.call("POST", &self.collection, Some(body));
        let (client, collection) = (self.client.clone(), self.collection.clone());
        self.runtime.spawn(async move {
            // if the worker has given up meanwhile, nothing was admitted
            if let Err(SendError(Ok(made))) = made.send(call.await)
                && let Some(name) = made.pointer("/metadata/name").and_then(Value::as_str)
            {
                take_back(&client, &format!("{collection}/{name}")).await;
            }
        });
        let left = deadline.saturating_duration_since(now());
        let made =
            answer.recv_timeout(left).map_err(|_| "the announcement to other replicas takes too long".to_owned())?;
        let made = made.map_err(|why| format!("the request cannot be announced to other replicas: {why}"))?;
        let text = |path: &str| made.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let name: Str = text("/metadata/name").into();
        let order = text("/metadata/resourceVersion").parse::<u64>();
        let order = order.map_err(|_| "an announcement has no resourceVersion".to_owned())?;
        let written = now();
        let mut board = self.board();
        board.own.insert(order, name);
        loop {
            if board.shows(order) {
                let micros = |from: Instant, to: Instant| to.saturating_duration_since(from).as_micros();
                let shown = now();
                tracing::debug!(
                    write_micros = micros(began, written),
                    show_micros = micros(written, shown),
                    "announced"
                );
                return Ok(order);
            }
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                drop(board);
                self.withdraw(order);
                return Err("announcements of other replicas are not shown, or cannot be read, in time".to_owned());
            }
            board = self.shown.wait_timeout(board, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes a denied request's announcement back.
    pub fn withdraw(&self, order: u64) {
        self.log.withdraw(order);
        let mut board = self.board();
        let Some(name) = board.own.remove(&order) else { return };
        drop(board);
        let (client, path) = (self.client.clone(), format!("{}/{name}", self.collection));
        self.runtime.spawn(async move { take_back(&client, &path).await });
    }

    /// Whether announcements are known at all.
    pub fn listed(&self) -> bool {
        self.board().listed
    }

    /// Takes in what the watch of announcements tells, until nobody tells any more.
    pub fn listen(&self, told: &Receiver<(Kind, KindEvent)>, store: &Store) {
        loop {
            match told.recv_timeout(TICK) {
                Ok((_, told)) => self.take(told, &store.read()),
                Err(RecvTimeoutError::Timeout) => self.tidy(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&self, told: KindEvent, view: &View) {
        let mut board = self.board();
        match told {
            KindEvent::Page(objects, taken) => {
                objects.iter().for_each(|object| board.put(object, view, &self.log));
                // the watch may have ended meanwhile
                _ = taken.send(());
            }
            KindEvent::Put(object) => {
                board.put(&object, view, &self.log);
                board.position = board.position.max(version_of(&object));
            }
            KindEvent::Gone(object) => {
                if let Some((_, name)) = name_of(&object) {
                    board.names.remove(&name);
                }
                board.position = board.position.max(version_of(&object));
            }
            KindEvent::Listed(List { names, version, .. }) => {
                board.names.retain(|name, _| names.iter().any(|(_, listed)| listed == name));
                if board.listed {
                    board.barrier = version;
                }
                board.listed = true;
                board.position = board.position.max(version);
            }
            KindEvent::Progress(version) => board.position = board.position.max(Some(version)),
            KindEvent::Failed(why) => tracing::warn!(why, "announcements of other replicas cannot be read"),
            KindEvent::Forbidden(resource) => {
                tracing::warn!(resource, "announcements of other replicas may not be read")
            }
            KindEvent::Wanted | KindEvent::Unwanted | KindEvent::Absent | KindEvent::Lost | KindEvent::Every => {}
        }
        drop(board);
        self.shown.notify_all();
    }

    /// Ends what the watch has shown, and takes away our own announcements of that.
    pub fn observe(&self, view: &View, now: Clock) {
        let mut board = self.board();
        let ended = self.log.observe(view.sight(), now);
        // a request may be over before its announcement is known to be our own
        let open: BTreeSet<u64> = self.log.orders().into_iter().collect();
        let position = board.position;
        let over = board.own.keys().filter(|order| position >= Some(**order) && !open.contains(order));
        let over: Vec<u64> = over.copied().chain(ended).collect();
        let gone: Vec<Str> = over.iter().filter_map(|order| board.own.remove(order)).collect();
        let behind = |barrier: u64| {
            view.readings.keys().any(|kind| view.positions.get(kind).is_some_and(|position| *position < barrier))
        };
        if board.barrier.is_some_and(|barrier| !behind(barrier)) {
            board.barrier = None;
            self.shown.notify_all();
        }
        drop(board);
        gone.iter().for_each(|name| self.delete(name));
    }

    /// Takes away announcements that nobody else did.
    fn tidy(&self) {
        let now = Clock::now();
        let limit = self.lifetime_seconds.saturating_mul(ORPHANED_LIFETIMES);
        let mut board = self.board();
        let old =
            board.names.iter().filter(|(_, known)| known.made.is_some_and(|made| now.seconds_since(made) > limit));
        let old: Vec<Str> = old.map(|(name, _)| name.clone()).collect();
        board.names.retain(|name, _| !old.contains(name));
        drop(board);
        old.iter().for_each(|name| self.delete(name));
    }

    fn delete(&self, name: &str) {
        let call = self.call("DELETE", &format!("{}/{name}", self.collection), None);
        self.runtime.spawn(async move {
            if let Err(why) = call.await {
                tracing::warn!(why, "an announcement cannot be taken away");
            }
        });
    }

    fn call(
        &self,
        method: &'static str,
        path: &str,
        body: Option<Value>,
    ) -> impl Future<Output = Result<Value, String>> + Send + use<> {
        let (client, path) = (self.client.clone(), path.to_owned());
        async move { call(&client, method, &path, body).await }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks an announcement as denied and deletes it.
async fn take_back(client: &Client, path: &str) {
    let mark = json!({"metadata": {"annotations": {DENIED: "true"}}});
    let marked = call(client, "PATCH", path, Some(mark)).await;
    let deleted = call(client, "DELETE", path, None).await;
    // unmarked, others reckon with it until its time is up, which is safe
    if let Err(why) = marked.and(deleted) {
        tracing::warn!(why, "an announcement cannot be taken back");
    }
}

async fn call(client: &Client, method: &str, path: &str, body: Option<Value>) -> Result<Value, String> {
    send(client, method, path, body).await.map_err(|error| brief(&error))
}

impl Board {
    fn put(&mut self, object: &Val, view: &View, log: &InFlightLog) {
        let Some((_, name)) = name_of(object) else { return };
        let denied = object.at_some(&["metadata", "annotations", DENIED]).is_some();
        if let Some(known) = self.names.get_mut(&name) {
            if denied {
                known.unreadable = false;
                log.withdraw(known.order);
            }
            return;
        }
        if denied {
            return;
        }
        let order = version_of(object);
        let request = object.str_at(&["data", "request"]).and_then(|text| read(text));
        let made = object.str_at(&["metadata", "creationTimestamp"]).and_then(|time| Clock::parse(time).ok());
        let (Some(order), Some(request)) = (order, request) else {
            tracing::warn!(name = &*name, "an announcement cannot be read");
            self.names.insert(name, Announced { order: order.unwrap_or(0), made, unreadable: true });
            return;
        };
        self.names.insert(name, Announced { order, made, unreadable: false });
        log.record_at(order, &request, view);
    }

    /// Whether everything that was announced up to this place is known.
    fn shows(&self, order: u64) -> bool {
        self.position.is_some_and(|position| position >= order)
            && self.barrier.is_none()
            && !self.names.values().any(|known| known.unreadable && known.order < order)
    }
}

/// What others need to know of a request, in one line; values of secrets are not part of it.
///
/// # Errors
/// When it cannot be written, which is not known to happen.
pub fn written(request: &Request) -> Result<String, String> {
    let text = |text: &str| Val::str(text);
    let kept = |object: &Option<Val>| {
        object.as_ref().map(|object| project(object).without_at(&["metadata", "managedFields"])).unwrap_or_default()
    };
    let optional = |text: &Option<Str>| text.clone().map(Val::Str).unwrap_or_default();
    let propagation = match request.propagation {
        Some(Propagation::Background) => text("Background"),
        Some(Propagation::Foreground) => text("Foreground"),
        Some(Propagation::Orphan) => text("Orphan"),
        None => Val::Null,
    };
    let val = Val::object([
        ("uid", Val::Str(request.uid.clone())),
        ("username", Val::Str(request.user.username.clone())),
        ("operation", text(request.operation.as_str())),
        ("subresource", text(&request.subresource)),
        ("group", Val::Str(request.target.kind.group.clone())),
        ("kind", Val::Str(request.target.kind.kind.clone())),
        ("namespace", Val::Str(request.target.ns.clone())),
        ("name", Val::Str(request.target.name.clone())),
        ("object", kept(&request.object)),
        ("old", kept(&request.old)),
        ("propagation", propagation),
        ("preconditionUid", optional(&request.preconditions.uid)),
        ("preconditionVersion", optional(&request.preconditions.resource_version)),
    ]);
    serde_json::to_string(&val).map_err(|error| format!("the request cannot be announced: {error}"))
}

/// A request as it was announced.
pub fn read(text: &str) -> Option<Request> {
    let val: Val = serde_json::from_str(text).ok()?;
    let field = |name: &str| val.str_at(&[name]).cloned();
    let object = |name: &str| val.at_some(&[name]).cloned();
    let operation = match &*field("operation")? {
        "CREATE" => Operation::Create,
        "UPDATE" => Operation::Update,
        "DELETE" => Operation::Delete,
        _ => return None,
    };
    let propagation = match field("propagation").as_deref() {
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(_) => return None,
        None => None,
    };
    Some(Request {
        uid: field("uid")?,
        user: User::named(&field("username")?),
        operation,
        subresource: field("subresource")?.to_string(),
        target: Key::new(Kind::new(&field("group")?, &field("kind")?), &field("namespace")?, &field("name")?),
        object: object("object"),
        old: object("old"),
        propagation,
        preconditions: Preconditions { uid: field("preconditionUid"), resource_version: field("preconditionVersion") },
        dry_run: false,
        options: Val::Null,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::serve::policies::Policies;

    #[test]
    fn what_is_announced_is_read_back_without_values_of_secrets() {
        let secret: Val = serde_json::from_str(
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n","resourceVersion":"7","uid":"u"},
                "data":{"key":"c2VjcmV0"}}"#,
        )
        .unwrap();
        let request = Request {
            uid: "call".into(),
            user: User::named("system:serviceaccount:n:op"),
            operation: Operation::Update,
            subresource: String::new(),
            target: Key::of("Secret", "n", "s"),
            object: Some(secret.clone()),
            old: Some(secret),
            propagation: Some(Propagation::Foreground),
            preconditions: Preconditions { uid: Some("u".into()), resource_version: None },
            dry_run: false,
            options: Val::Null,
        };
        let text = written(&request).unwrap();
        assert!(!text.contains("c2VjcmV0"));
        let back = read(&text).unwrap();
        assert_eq!(back.target, request.target);
        assert_eq!(back.user, request.user);
        assert_eq!(back.propagation, request.propagation);
        assert_eq!(back.preconditions, request.preconditions);
        assert_eq!(back.old, request.old.as_ref().map(project));
    }

    #[test]
    fn nothing_is_decided_after_an_announcement_that_cannot_be_read_until_it_is_denied() {
        let view = Store::new(Arc::new(Policies::default().load().wanting_nothing())).read();
        let (mut board, log) = (Board::default(), InFlightLog::lasting(1));
        let announcement = |more: &str| -> Val {
            let text = r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"MORE},"data":{"request":"{}"}}"#;
            serde_json::from_str(&text.replace("MORE", more)).unwrap()
        };
        board.position = Some(9);
        assert!(board.shows(9));
        board.put(&announcement(""), &view, &log);
        assert!(!board.shows(9));
        assert!(board.shows(6), "what came before it does not depend on it");
        board.put(&announcement(r#","annotations":{"suture.dev/denied":"true"}"#), &view, &log);
        assert!(board.shows(9));
    }
}
