//! Reports where their reader is: his browser asks a server on his own machine, which asks as he.
//!
//! Everybody on the machine reaches the server, and so does every page in the browser. It therefore answers only under a path
//! that nobody can guess, which is printed to the reader alone, and only what is asked of `127.0.0.1` or `localhost` at its own
//! port: a page from elsewhere whose name has come to mean this machine (DNS rebinding) names itself. It answers to GET
//! alone, and to plain paths: nothing leads out of what it serves.

use std::fmt::Write;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{HOST, REFERRER_POLICY};
use axum::http::{HeaderValue, Method, StatusCode, Uri, request};
use axum::response::{IntoResponse, Response};
use ring::rand::{SecureRandom, SystemRandom};
use tower::ServiceExt;

use crate::serve::paths::same;

pub mod proxied;

/// Of so many bytes is the path that nobody can guess.
const KEY_BYTES: usize = 16;

/// A path that nobody can guess.
///
/// # Errors
/// When the system has no random numbers.
pub fn key() -> Result<String, String> {
    let mut bytes = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
    let mut text = String::new();
    for byte in bytes {
        _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

struct Local {
    key: String,
    /// The values of `Host` that mean it.
    hosts: [String; 2],
    routes: Router,
}

/// Serves routes under a key, at a port of this machine.
pub fn local(key: &str, port: u16, routes: Router) -> Router {
    let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
    Router::new().fallback(answer).with_state(Arc::new(Local { key: key.to_owned(), hosts, routes }))
}

async fn answer(State(local): State<Arc<Local>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let asked = match local.asked(&parts) {
        Ok(asked) => asked,
        Err((status, why)) => return (status, why).into_response(),
    };
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = asked;
    let mut response = match local.routes.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

impl Local {
    /// What is asked of the routes, or why that is not answered.
    fn asked(&self, parts: &request::Parts) -> Result<Uri, (StatusCode, &'static str)> {
        if parts.method != Method::GET {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "there is nothing to do here but to read"));
        }
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = parts.uri.authority().map(|authority| authority.as_str()).or(host).unwrap_or_default();
        if !self.hosts.iter().any(|own| own == host) {
            return Err((StatusCode::MISDIRECTED_REQUEST, "this is asked for by the name of another machine"));
        }
        let path = parts.uri.path().strip_prefix('/').and_then(|path| path.split_once('/'));
        let (Some((_, rest)), true) = (path, same(&self.key, path.map_or("", |(key, _)| key))) else {
            return Err((StatusCode::NOT_FOUND, "open the address that `suture reports` has printed, all of it"));
        };
        let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !rest.is_empty() && !rest.split('/').all(is_plain) {
            return Err((StatusCode::NOT_FOUND, "there is no such page"));
        }
        let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("/{rest}{query}").parse().map_err(|_| (StatusCode::BAD_REQUEST, "this is no address"))
    }
}

#[cfg(test)]
mod tests;
