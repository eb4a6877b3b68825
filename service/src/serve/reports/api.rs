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
//! Whoever asks shows a token ([`super::access`]), in `Authorization` or in [`FORWARDED`]. What he may not see is not there for
//! him: it is neither listed nor counted, and inside a report it has no name ([`super::redact`]). What other replicas keep is there as well
//! ([`super::others`]): `silent` has the names of those that did not say what they have.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;

use super::access::Authority;
use super::store::ReportStore;
use crate::serve::tls::Tls;

mod invariants;
#[cfg(feature = "page")]
mod pages;
mod reading;

use reading::{Api, Asked, Refusal, answer};
pub use reading::{Around, FORWARDED};

/// How often it is looked whether another certificate is served.
const CERTIFICATE_EVERY: Duration = Duration::from_secs(5);

/// The routes.
pub fn router(store: ReportStore, authority: Arc<dyn Authority>, around: Around) -> Router {
    let api = Api::new(store, authority, around);
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

#[cfg(test)]
pub(in crate::serve::reports) mod tests;
