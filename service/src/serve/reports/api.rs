//! Reports over HTTPS: lists with filters, page by page, and single reports, as JSON and as a page.
//!
//! | path | gives |
//! |---|---|
//! | `/?user=…` | the list as HTML; its links and its form lead to the rest, relatively |
//! | `/reports?user=&invariant=&namespace=&decision=&since=&until=&limit=&before=` | `{count, reports, next, silent}` |
//! | `/reports/ID` | a report |
//! | `/reports/ID/page` | the same as HTML |
//! | `/invariants?span=` | `{span, since, stepSecs, invariants, silent}`: how each stands, and what it stood in the way of |
//! | `/invariants/page?span=` | the same as HTML |
//!
//! Whoever asks shows a token ([`super::access`]), in `Authorization` or in [`FORWARDED`]. What he may not see is not there for him: it is neither listed nor
//! counted, and inside a report it has no name ([`super::redact`]). What other replicas keep is there as well
//! ([`super::others`]): `silent` has the names of those that did not say what they have.

use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value as Json, json};
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;

use super::access::{Authority, Readable, Reader};
use super::board::Standing;
use super::head::{Filter, Head, Page, unasked};
use super::id::ReportId;
use super::others::{Others, is_replica};
use super::redact::{namespaces, redacted};
use super::store::{ReportStore, StoreError};
use crate::clock::Clock;
use crate::serve::tls::Tls;

/// The header that has a reader's token where something on the way keeps `Authorization` for itself, as API servers do.
pub const FORWARDED: &str = "x-suture-authorization";
/// So many readers are answered at a time: requests come first.
const READERS_MAX: usize = 4;
/// How often it is looked whether another certificate is served.
const CERTIFICATE_EVERY: Duration = Duration::from_secs(5);

mod invariants;
#[cfg(feature = "page")]
mod pages;

#[derive(Clone)]
struct Api {
    store: ReportStore,
    authority: Arc<dyn Authority>,
    around: Around,
    at_once: Arc<Semaphore>,
}

/// What is around a store, if a `suture serve` has it.
#[derive(Clone, Default)]
pub struct Around {
    /// Other replicas, which are asked for what they keep.
    pub others: Option<Others>,
    /// How the invariants stand.
    pub standings: Option<Receiver<Vec<Standing>>>,
}

/// The routes.
pub fn router(store: ReportStore, authority: Arc<dyn Authority>, around: Around) -> Router {
    let api = Api { store, authority, around, at_once: Arc::new(Semaphore::new(READERS_MAX)) };
    Router::new()
        .route("/", get(list_page))
        .route("/reports", get(list))
        .route("/reports/{id}", get(one))
        .route("/reports/{id}/page", get(page))
        .route("/invariants", get(invariants::board))
        .route("/invariants/page", get(invariants_page))
        .with_state(api)
}

/// Serves the routes by the certificate that the webhook is served by (`tls`), to clients without one (`own`).
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, tls: Tls, own: Tls, routes: Router) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let config = own.config();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(CERTIFICATE_EVERY).await;
            if let Err(error) = own.serve(&tls.identity()) {
                tracing::warn!(%error, "reports are served by the old certificate");
            }
        }
    });
    axum_server::from_tcp_rustls(listener, config)?.serve(routes.into_make_service()).await
}

/// Why somebody gets nothing.
#[derive(Debug)]
enum Refusal {
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
    fn told(self) -> (StatusCode, String) {
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

fn answer(status: StatusCode, json: &Json) -> Response {
    let headers =
        [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (status, headers, json.to_string()).into_response()
}

type Asked = Result<Query<Filter>, QueryRejection>;

async fn list(State(api): State<Api>, headers: HeaderMap, query: Asked) -> Result<Response, Refusal> {
    let (page, _) = api.listed(&headers, query).await?;
    let page = serde_json::to_value(page).map_err(|error| Refusal::Failed(error.to_string()))?;
    Ok(answer(StatusCode::OK, &page))
}

async fn one(State(api): State<Api>, headers: HeaderMap, Path(id): Path<String>) -> Result<Response, Refusal> {
    Ok(answer(StatusCode::OK, &api.report(&headers, &id).await?))
}

#[cfg(feature = "page")]
use pages::{invariants_page, list_page, page};

#[cfg(not(feature = "page"))]
async fn page() -> Refusal {
    Refusal::Absent(Vec::new())
}

#[cfg(not(feature = "page"))]
async fn invariants_page() -> Refusal {
    Refusal::Absent(Vec::new())
}

#[cfg(not(feature = "page"))]
async fn list_page() -> Refusal {
    Refusal::Absent(Vec::new())
}

impl Api {
    /// Who asks, and the token that he shows.
    async fn reader<'h>(&self, headers: &'h HeaderMap) -> Result<(Reader, &'h str), Refusal> {
        let shown = headers.get(FORWARDED).or_else(|| headers.get(AUTHORIZATION)).and_then(|value| value.to_str().ok());
        let token =
            shown.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim).filter(|token| !token.is_empty());
        let Some(token) = token else { return Err(Refusal::Unknown) };
        let reader = self.authority.known(token).await.map_err(Refusal::Failed)?.ok_or(Refusal::Unknown)?;
        Ok((reader, token))
    }

    /// What other replicas have at a path for who shows a token, and which of them did not say; those are not asked where one of
    /// them asks.
    async fn elsewhere(&self, headers: &HeaderMap, path: &str, token: &str) -> (Vec<Json>, Vec<String>) {
        match &self.around.others {
            Some(others) if !is_replica(headers) => others.ask(path, token).await,
            _ => (Vec::new(), Vec::new()),
        }
    }

    async fn readable(&self, reader: &Reader, namespaces: BTreeSet<String>) -> Result<Readable, Refusal> {
        Readable::of(&*self.authority, reader, namespaces).await.map_err(Refusal::Failed)
    }

    /// A part of the list as whoever asks may see it, and what was asked for.
    async fn listed(&self, headers: &HeaderMap, query: Asked) -> Result<(Page, Filter), Refusal> {
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
    async fn report(&self, headers: &HeaderMap, id: &str) -> Result<Json, Refusal> {
        let (reader, token) = self.reader(headers).await?;
        let id: ReportId = id.parse().map_err(|error: super::id::NoId| Refusal::Meaningless(error.to_string()))?;
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
fn own_namespace(invariant: &str) -> Option<&str> {
    invariant.split_once('/').map(|(namespace, _)| namespace)
}

/// Whether a report is there for somebody: the request, or what it would break, is where he may read.
fn is_seen(head: &Head, readable: &Readable) -> bool {
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
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refusal> {
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|error| Refusal::Failed(error.to_string()))?.map_err(Refusal::from)
}

#[cfg(test)]
pub(in crate::serve::reports) mod tests;
