//! The pages of the reports: what [`super`] gives as JSON, as HTML. A refusal is a page, too.

use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::invariants;
use super::reading::{Api, Asked, Refusal};
use crate::clock::Clock;
use crate::html::{self, Doing, list, policy, refusal, report};

/// Where the list is, as a report's page links to it.
const ROOT_OF_REPORT: &str = "../../";
/// The same for the list itself.
const ROOT_OF_LIST: &str = "./";
/// The same for the page of invariants.
const ROOT_OF_INVARIANTS: &str = "../";

/// A refusal as a page that links to the list.
pub struct Refused(Refusal, &'static str);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(refusal, root) = self;
        let (status, why) = refusal.told();
        shown(status, Doing::Nothing, self::refusal(status.canonical_reason().unwrap_or("Refused"), &why, root))
    }
}

/// A page with the policy of what it does.
fn shown(status: StatusCode, doing: Doing, html: String) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, format!("{}; frame-ancestors 'none'", policy(doing))),
        (CACHE_CONTROL, "no-store".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    (status, headers, html).into_response()
}

/// The list.
pub async fn list_page(State(api): State<Api>, headers: HeaderMap, query: Asked) -> Result<Response, Refused> {
    let (page, filter) = api.listed(&headers, query).await.map_err(|refusal| Refused(refusal, ROOT_OF_LIST))?;
    Ok(shown(StatusCode::OK, list::doing(&filter), list::html(&page, &filter)))
}

/// The invariants.
pub async fn invariants_page(
    State(api): State<Api>,
    headers: HeaderMap,
    query: invariants::Asked,
) -> Result<Response, Refused> {
    let board = api.board(&headers, query).await.map_err(|refusal| Refused(refusal, ROOT_OF_INVARIANTS))?;
    Ok(shown(StatusCode::OK, Doing::Nothing, html::invariants::html(&board, ROOT_OF_INVARIANTS)))
}

/// A report.
pub async fn page(State(api): State<Api>, headers: HeaderMap, Path(id): Path<String>) -> Result<Response, Refused> {
    let refused = |refusal| Refused(refusal, ROOT_OF_REPORT);
    let json = api.report(&headers, &id).await.map_err(refused)?;
    let read = serde_json::from_value(json).map_err(|error| refused(Refusal::Failed(error.to_string())))?;
    let html = report::html(&read, Clock::now(), Some(ROOT_OF_REPORT));
    Ok(shown(StatusCode::OK, Doing::Nothing, html))
}
