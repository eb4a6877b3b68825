//! One kind followed in the API server: listed in pages, then watched from there, for as long as it is served.
//!
//! | what happens | then |
//! |---|---|
//! | the watch ends, its time is up | it goes on from the last resourceVersion |
//! | 410: that version is compacted | it is listed again; what the list lacks is gone |
//! | 404: the kind is not served any more | following ends |
//! | 403: this account may not read it | it is tried again, now and then |
//! | anything else, such as a connection that breaks | it is listed again (or [resumed](Place::resumes)), after longer and longer pauses |
//!
//! What happens while a watch is broken may be asked about before the watch shows it. How far one that is resumed has
//! come, the API server says when it pleases; a list is complete when it ends.
//!
//! Lists are consistent reads (no resourceVersion), so that a restart never goes back in time. Watches are short: two
//! seconds before the end of each the API server sends a bookmark (`apiserver/pkg/storage/cacher/cache_watcher.go`,
//! `nextBookmarkTime`), which is how an idle kind is known to be up to date. How far the API server itself has come with
//! an idle kind it learns from etcd when somebody asks for a consistent list (KEP-2340; from Kubernetes 1.31 on), or
//! when etcd tells by itself, which may be every ten minutes: so such a list is asked for, of objects that nobody has.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use kube::Client;
use kube::core::WatchEvent;
use kube::core::params::{ListParams, WatchParams};
use kube::core::request::Request;
use suture_model::ingest::{Blanked, Passed, Passing, hidden};
use suture_model::kinds::Kind;
use suture_model::value::{Str, Val};
use tokio::sync::{Semaphore, oneshot, watch as latest};
use tokio::time::{sleep, timeout};

use super::api::brief;
use super::cleared;
use super::kind_events::{EventSender, KindEvent, List, name_of};
use super::page::{Page, read_page};
use crate::clock::now;

/// How long a watch lasts: the bookmark near its end comes as often.
const WATCH_SECS: u32 = 15;
/// When, after its beginning, the API server is made to ask etcd how far it has come: shortly before the bookmark.
const NUDGE_AFTER: Duration = Duration::from_secs(10);
/// A label that no object has.
const NOBODY: &str = "suture.dev/nobody";
/// A watch that has not begun by then is broken: nothing is told meanwhile.
const BEGIN_MAX: Duration = Duration::from_secs(5);
/// A watch that is silent for so long beyond its end is broken.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long a page of a list may take to begin, and then to end.
pub const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// What a page of a list is likely to fit into.
const PAGE_BYTES: usize = 1 << 20;
/// Objects of a page: a MiB or two at most. Client-go's pager takes 500 (`client-go/tools/pager/pager.go`), which leaves
/// more memory behind in pieces and is no faster.
const PAGE_LEN: u32 = 200;
/// Pages that are read and taken in at once, of all kinds together: each takes some MiB meanwhile, and those who read
/// them share the processors. The API server has made a page before it waits here.
static PAGES: Semaphore = Semaphore::const_new(2);
/// The pause after a failure; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The pause where this account may not read a kind: somebody has to grant it first.
const FORBIDDEN_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 5_000 });
/// The longest pause: nothing of the kind is known meanwhile.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Where the objects of a kind are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind.
    pub kind: Kind,
    /// `apiVersion` of its objects.
    pub api_version: Str,
    /// The path of the collection.
    pub path: String,
    /// Which of the objects, if not all.
    pub label_selector: Option<String>,
    /// Whether a watch that breaks goes on where it was: nothing is decided before it has shown what has to be known.
    pub resumes: bool,
    /// Whether the values of Secrets or ConfigMaps are read: announcements are ConfigMaps of Suture's own.
    pub keeps_values: bool,
}

impl Place {
    /// Whether values of its objects are passed over as they are read.
    fn passes_over_values(&self) -> bool {
        !self.keeps_values && !hidden(&self.kind).is_empty()
    }

    fn passing(&self) -> Passing {
        if self.passes_over_values() { Passing::of(&self.kind) } else { Passing::default() }
    }

    /// The resource as kubectl and roles name it: `deployments.apps`.
    pub fn resource(&self) -> String {
        let plural = self.path.rsplit('/').next().unwrap_or_default();
        if self.kind.group.is_empty() { plural.to_owned() } else { format!("{plural}.{}", self.kind.group) }
    }
}

/// Follows a kind until it is no longer served; lists it again whenever `again` changes.
pub async fn follow(client: Client, place: Place, events: EventSender, mut again: latest::Receiver<u64>) {
    let mut pause = PAUSE_MIN;
    let mut from: Option<String> = None;
    let follower = Follower { client, place, events };
    loop {
        let step = match &mut from {
            None => {
                again.mark_unchanged();
                follower.list().await
            }
            Some(version) => tokio::select! {
                step = follower.watch(version) => step,
                () = changed(&mut again) => Ok(Step::ListAgain),
            },
        };
        match step {
            Ok(Step::From(version)) => {
                pause = PAUSE_MIN;
                from = Some(version);
            }
            Ok(Step::ListAgain) => {
                from = None;
                follower.tell(KindEvent::Failed("it is listed anew".to_owned()));
            }
            Ok(Step::NotServed) => return,
            Ok(Step::Forbidden) => {
                from = None;
                follower.tell(KindEvent::Forbidden(follower.place.resource()));
                sleep(FORBIDDEN_PAUSE).await;
            }
            Err(error) => {
                from.take_if(|_| !follower.place.resumes);
                follower.tell(KindEvent::Failed(error));
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

/// Waits for a change; for ever when none can come any more.
async fn changed(again: &mut latest::Receiver<u64>) {
    if again.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Why a page is not waited for.
const SLOW: &str = "a list takes too long";

/// How following goes on.
enum Step {
    From(String),
    ListAgain,
    NotServed,
    Forbidden,
}

struct Follower {
    client: Client,
    place: Place,
    events: EventSender,
}

impl Follower {
    fn tell(&self, told: KindEvent) {
        // nobody listens when the process ends
        _ = self.events.send((self.place.kind.clone(), told));
    }

    async fn list(&self) -> Result<Step, String> {
        let began = now();
        let mut names = BTreeSet::new();
        let mut token: Option<String> = None;
        loop {
            let mut params = ListParams::default().limit(PAGE_LEN);
            params.label_selector.clone_from(&self.place.label_selector);
            params.continue_token = token;
            let request = Request::new(&self.place.path).list(&params).map_err(|error| error.to_string())?;
            let mut body = match timeout(PAGE_TIMEOUT, self.client.request_stream(request)).await {
                Err(_) => return Err(SLOW.to_owned()),
                Ok(Err(error)) => return refused(error),
                Ok(Ok(body)) => Box::pin(body),
            };
            // never closed
            let _one_of_few = PAGES.acquire().await;
            let read = timeout(PAGE_TIMEOUT, cleared::read_all(&mut body, PAGE_BYTES)).await;
            let text = read.map_err(|_| SLOW.to_owned())?.map_err(|error| format!("a list breaks off: {error}"))?;
            let Page { version, token: next, items } =
                read_page(&text, self.place.passing()).map_err(|error| format!("a list cannot be read: {error}"))?;
            drop(text);
            let items: Vec<Val> = items.into_iter().map(|item| self.typed(item)).collect();
            names.extend(items.iter().filter_map(name_of));
            if !items.is_empty() {
                let (taken, wait) = oneshot::channel();
                self.tell(KindEvent::Page(items, taken));
                // the listener has ended: so will this
                _ = wait.await;
            }
            token = next;
            if token.is_none() {
                self.tell(KindEvent::Listed(List { names, version: version.parse().ok(), began }));
                return Ok(Step::From(version));
            }
        }
    }

    /// Watches from a resourceVersion on, which is that of the last event afterwards.
    async fn watch(&self, version: &mut String) -> Result<Step, String> {
        let mut params = WatchParams::default().timeout(WATCH_SECS);
        params.label_selector.clone_from(&self.place.label_selector);
        let request = Request::new(&self.place.path).watch(&params, version).map_err(|error| error.to_string())?;
        let silence = Duration::from_secs(u64::from(WATCH_SECS)) + SILENCE_MAX;
        let events = match timeout(BEGIN_MAX, self.events(request)).await {
            Err(_) => return Err("a watch does not begin".to_owned()),
            Ok(Err(error)) => return refused(error),
            Ok(Ok(events)) => events,
        };
        let mut events = std::pin::pin!(events);
        let mut nudge = std::pin::pin!(self.nudge());
        let mut nudged = false;
        loop {
            let next = async {
                loop {
                    tokio::select! {
                        biased;
                        event = events.try_next() => return event,
                        () = &mut nudge, if !nudged => nudged = true,
                    }
                }
            };
            let event = match timeout(silence, next).await {
                Err(_) => return Err("the watch is silent".to_owned()),
                Ok(Err(error)) => return refused(error),
                Ok(Ok(None)) => return Ok(Step::From(version.clone())),
                Ok(Ok(Some(event))) => event,
            };
            let (gone, object) = match event {
                WatchEvent::Bookmark(mark) => {
                    *version = mark.metadata.resource_version;
                    if let Ok(at) = version.parse() {
                        self.tell(KindEvent::Progress(at));
                    }
                    continue;
                }
                WatchEvent::Error(status) => return refused(kube::Error::Api(status)),
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (false, object),
                WatchEvent::Deleted(object) => (true, object),
            };
            if let Some(at) = object.str_at(&["metadata", "resourceVersion"]) {
                *version = at.to_string();
            }
            let object = self.typed(object);
            self.tell(if gone { KindEvent::Gone(object) } else { KindEvent::Put(object) });
        }
    }

    /// The events of a watch, without the values that are not kept.
    async fn events(
        &self,
        request: axum::http::Request<Vec<u8>>,
    ) -> kube::Result<BoxStream<'static, kube::Result<WatchEvent<Val>>>> {
        if !self.place.passes_over_values() {
            let events = self.client.request_events::<Passed>(request).await?;
            return Ok(events.map(|event| event.map(|event| of_event(event, |Passed(object)| object))).boxed());
        }
        let events = cleared::events::<Blanked>(&self.client, request).await?;
        Ok(events.map_ok(|event| of_event(event, |Blanked(object)| object)).boxed())
    }

    /// Makes the API server ask etcd how far it has come with this kind.
    async fn nudge(&self) {
        sleep(NUDGE_AFTER).await;
        let list = Request::new(&self.place.path).list(&ListParams::default().labels(NOBODY));
        if let Ok(list) = list {
            // what does not work shows as lag
            _ = timeout(PAGE_TIMEOUT, self.client.request_text(list)).await;
        }
    }

    /// The items of a list leave out what they are.
    fn typed(&self, object: Val) -> Val {
        if object.at_some(&["kind"]).is_some() {
            return object;
        }
        object
            .with("apiVersion", Val::Str(self.place.api_version.clone()))
            .with("kind", Val::Str(self.place.kind.kind.clone()))
    }
}

fn of_event<T>(event: WatchEvent<T>, of: impl FnOnce(T) -> Val) -> WatchEvent<Val> {
    match event {
        WatchEvent::Added(object) => WatchEvent::Added(of(object)),
        WatchEvent::Modified(object) => WatchEvent::Modified(of(object)),
        WatchEvent::Deleted(object) => WatchEvent::Deleted(of(object)),
        WatchEvent::Bookmark(mark) => WatchEvent::Bookmark(mark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    }
}

fn refused(error: kube::Error) -> Result<Step, String> {
    match &error {
        kube::Error::Api(status) if status.code == 404 => Ok(Step::NotServed),
        kube::Error::Api(status) if status.code == 403 => Ok(Step::Forbidden),
        kube::Error::Api(status) if status.code == 410 => Ok(Step::ListAgain),
        _ => Err(brief(&error)),
    }
}

#[cfg(test)]
mod tests;
