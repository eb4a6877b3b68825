//! What a reader gets of reports: who he is, what he may see of them, and what other replicas keep for him.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value as Json, json};
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;

use crate::clock::Clock;
use crate::serve::reports::access::{Authority, Readable, Reader};
use crate::serve::reports::board::Standing;
use crate::serve::reports::head::{Filter, Head, Page, unasked};
use crate::serve::reports::id::{NoId, ReportId};
use crate::serve::reports::others::{Others, is_replica};
use crate::serve::reports::redact::{namespaces, redacted};
use crate::serve::reports::store::{ReportStore, StoreError};

/// The header that has a reader's token where something on the way keeps `Authorization` for itself, as API servers do.
pub const FORWARDED: &str = "x-suture-authorization";
/// So many readers are answered at a time: requests come first.
const READERS_MAX: usize = 4;

/// What readers are answered from; a clone is the same one.
#[derive(Clone)]
pub struct Api {
    /// The reports that are kept here.
    pub store: ReportStore,
    authority: Arc<dyn Authority>,
    /// What is around them.
    pub around: Around,
    /// Lets few readers at the store at a time.
    pub at_once: Arc<Semaphore>,
}

/// What is around a store, if a `suture serve` has it.
#[derive(Clone, Default)]
pub struct Around {
    /// Other replicas, which are asked for what they keep.
    pub others: Option<Others>,
    /// How the invariants stand.
    pub standings: Option<Receiver<Vec<Standing>>>,
}

/// What a list is asked for by.
pub type Asked = Result<Query<Filter>, QueryRejection>;

/// Why somebody gets nothing.
#[derive(Debug)]
pub enum Refusal {
    /// He shows no token that is known.
    Unknown,
    /// What he asks for means nothing.
    Meaningless(String),
    /// It is not kept, or he may not see it, which is the same for him. These replicas did not say whether they have it.
    Absent(Vec<String>),
    /// It cannot be asked or read now.
    Failed(String),
}

impl Refusal {
    /// The status, and what whoever asked is told.
    pub fn told(self) -> (StatusCode, String) {
        match self {
            Self::Unknown => (StatusCode::UNAUTHORIZED, "show a token: Authorization: Bearer TOKEN".to_owned()),
            Self::Meaningless(why) => (StatusCode::BAD_REQUEST, why),
            Self::Absent(silent) => {
                let why = "there is no such report, or you may not see it".to_owned();
                let rest = if silent.is_empty() { String::new() } else { format!("; {}", unasked(&silent)) };
                (StatusCode::NOT_FOUND, why + &rest)
            }
            Self::Failed(why) => {
                tracing::warn!(why, "reports cannot be read");
                (StatusCode::SERVICE_UNAVAILABLE, "reports cannot be read now; see the log of suture".to_owned())
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, why) = self.told();
        answer(status, &json!({"error": why}))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// An answer that nothing keeps.
pub fn answer(status: StatusCode, json: &Json) -> Response {
    let headers =
        [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (status, headers, json.to_string()).into_response()
}

impl Api {
    /// Readers are known by `authority`.
    pub fn new(store: ReportStore, authority: Arc<dyn Authority>, around: Around) -> Self {
        Self { store, authority, around, at_once: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// Who asks, and the token that he shows.
    pub async fn reader<'h>(&self, headers: &'h HeaderMap) -> Result<(Reader, &'h str), Refusal> {
        let shown = headers.get(FORWARDED).or_else(|| headers.get(AUTHORIZATION)).and_then(|value| value.to_str().ok());
        let token =
            shown.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim).filter(|token| !token.is_empty());
        let Some(token) = token else { return Err(Refusal::Unknown) };
        let reader = self.authority.known(token).await.map_err(Refusal::Failed)?.ok_or(Refusal::Unknown)?;
        Ok((reader, token))
    }

    /// What other replicas have at a path for who shows a token, and which of them did not say; those are not asked where one of
    /// them asks.
    pub async fn elsewhere(&self, headers: &HeaderMap, path: &str, token: &str) -> (Vec<Json>, Vec<String>) {
        match &self.around.others {
            Some(others) if !is_replica(headers) => others.ask(path, token).await,
            _ => (Vec::new(), Vec::new()),
        }
    }

    /// Which of some namespaces he may read.
    pub async fn readable(&self, reader: &Reader, namespaces: BTreeSet<String>) -> Result<Readable, Refusal> {
        Readable::of(&*self.authority, reader, namespaces).await.map_err(Refusal::Failed)
    }

    /// A part of the list as whoever asks may see it, and what was asked for.
    pub async fn listed(&self, headers: &HeaderMap, query: Asked) -> Result<(Page, Filter), Refusal> {
        let (reader, token) = self.reader(headers).await?;
        let Query(filter) = query.map_err(|error| Refusal::Meaningless(error.body_text()))?;
        let filter = filter.understood(Clock::now()).map_err(Refusal::Meaningless)?;
        let mut page = self.kept_here(&reader, &filter).await?;
        let path = format!("/reports{}", filter.query(filter.before.as_deref()));
        let (others, silent) = self.elsewhere(headers, &path, token).await;
        for other in others {
            page.merge(serde_json::from_value(other).map_err(|error| Refusal::Failed(error.to_string()))?, &filter);
        }
        page.silent = silent;
        Ok((page, filter))
    }

    /// What this replica has of it.
    async fn kept_here(&self, reader: &Reader, filter: &Filter) -> Result<Page, Refusal> {
        let _one_of_few = self.at_once.acquire().await;
        let (store, asked) = (self.store.clone(), filter.clone());
        let there = blocking(move || namespaces_of(&store, &asked)).await?;
        let readable = self.readable(reader, there).await?;
        if asks_for_hidden(filter, &readable) {
            return Ok(Page::default());
        }
        let (store, seen, asked) = (self.store.clone(), readable.clone(), filter.clone());
        let mut page = blocking(move || store.list(&asked, &|head| is_seen(head, &seen))).await?;
        for head in &mut page.reports {
            head.namespaces.retain(|namespace| readable.has(namespace));
            head.invariants.retain(|name| own_namespace(name).is_none_or(|namespace| readable.has(namespace)));
        }
        let page = serde_json::to_value(page).map_err(|error| Refusal::Failed(error.to_string()))?;
        let readable = self.readable(reader, namespaces(&page)).await?;
        let page = redacted(page, &|namespace| readable.has(namespace));
        serde_json::from_value(page).map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// A report as whoever asks may see it. What he may not see here is asked of other replicas like what is not here, so that
    /// the two take as long.
    pub async fn report(&self, headers: &HeaderMap, id: &str) -> Result<Json, Refusal> {
        let (reader, token) = self.reader(headers).await?;
        let id: ReportId = id.parse().map_err(|error: NoId| Refusal::Meaningless(error.to_string()))?;
        if let Some(report) = self.report_here(&reader, id).await? {
            return Ok(report);
        }
        let (found, silent) = self.elsewhere(headers, &format!("/reports/{id}"), token).await;
        found.into_iter().next().ok_or(Refusal::Absent(silent))
    }

    async fn report_here(&self, reader: &Reader, id: ReportId) -> Result<Option<Json>, Refusal> {
        let _one_of_few = self.at_once.acquire().await;
        let store = self.store.clone();
        let Some(report) = blocking(move || store.get(id)).await? else { return Ok(None) };
        let json = serde_json::to_value(&report).map_err(|error| Refusal::Failed(error.to_string()))?;
        let readable = self.readable(reader, namespaces(&json)).await?;
        let is_seen = is_seen(&Head::of(id, &report, 0), &readable);
        Ok(is_seen.then(|| redacted(json, &|namespace| readable.has(namespace))))
    }
}

/// The namespace that an invariant holds for, if it holds for one.
pub fn own_namespace(invariant: &str) -> Option<&str> {
    invariant.split_once('/').map(|(namespace, _)| namespace)
}

/// Whether a report is there for somebody: the request, or what it would break, is where he may read.
pub fn is_seen(head: &Head, readable: &Readable) -> bool {
    *readable == Readable::All || head.namespaces.iter().any(|namespace| readable.has(namespace))
}

/// Whether a filter names what its reader may not see: that something matches would tell him that it is there.
fn asks_for_hidden(filter: &Filter, readable: &Readable) -> bool {
    let is_hidden = |user: &String| {
        let user = Json::from(user.as_str());
        redacted(user.clone(), &|namespace| readable.has(namespace)) != user
    };
    filter.in_namespace().is_some_and(|namespace| !readable.has(namespace))
        || filter.user.as_ref().is_some_and(is_hidden)
}

/// The namespaces of all reports that a filter admits.
fn namespaces_of(store: &ReportStore, filter: &Filter) -> Result<BTreeSet<String>, StoreError> {
    let found = std::cell::RefCell::new(BTreeSet::new());
    store.list(filter, &|head| {
        found.borrow_mut().extend(head.namespaces.iter().cloned());
        false
    })?;
    Ok(found.into_inner())
}

/// Reads the disk on a thread that serves nobody.
pub async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refusal> {
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|error| Refusal::Failed(error.to_string()))?.map_err(Refusal::from)
}
