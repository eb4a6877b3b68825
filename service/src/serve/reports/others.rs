//! What other replicas keep: each keeps reports of its own, and whoever reads asks one of them. That one asks the others, as the
//! reader, whom each of them has reviewed, so that nobody is shown more by one replica than by another.
//!
//! Where the others are, their Leases say ([`crate::serve::peers`]). They are asked over TLS, and must show the very certificate
//! that this replica serves: a reader's token goes to nobody else ([`crate::serve::replica_tls`]).

use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use futures::future::join_all;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value as Json;
use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use crate::serve::peers::There;
use crate::serve::replica_tls;
use crate::serve::tls::Tls;

/// How long one of them has for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// A list, or a report, is smaller.
const ANSWER_MAX: usize = 64 << 20;
/// The header by which a replica asks another one, which then tells what it keeps itself.
const ASKS: &str = "x-suture-replica";

/// The other replicas that keep reports.
#[derive(Clone)]
pub struct Others {
    /// What this one is called.
    pub identity: String,
    /// Which replicas there are; this one is among them.
    pub there: Receiver<There>,
    /// The certificate that all serve.
    pub tls: Tls,
}

/// Whether it is another replica that asks, and not a reader himself.
pub fn is_replica(headers: &HeaderMap) -> bool {
    headers.contains_key(ASKS)
}

impl Others {
    /// Asks each for a path, as the reader with this token. Gives what they have, and the names of those that did not say.
    pub async fn ask(&self, path: &str, token: &str) -> (Vec<Json>, Vec<String>) {
        let others: Vec<(String, String)> = {
            let there = self.there.borrow();
            there
                .reports
                .iter()
                .filter(|(name, _)| **name != self.identity)
                .map(|(name, at)| (name.clone(), at.clone()))
                .collect()
        };
        let asked = others.iter().map(|(name, at)| async move {
            let late = |_| format!("no answer within {} s", PATIENCE.as_secs());
            let answer = timeout(PATIENCE, self.one(at, path, token)).await.map_err(late).flatten();
            (name, answer)
        });
        let (mut found, mut silent) = (Vec::new(), Vec::new());
        for (name, answer) in join_all(asked).await {
            match answer {
                Ok(answer) => found.extend(answer),
                Err(why) => {
                    tracing::warn!(replica = name, why, "its reports cannot be read");
                    silent.push(name.clone());
                }
            }
        }
        (found, silent)
    }

    /// What one has; none if it says that there is no such thing.
    async fn one(&self, at: &str, path: &str, token: &str) -> Result<Option<Json>, String> {
        let config = replica_tls::client(&self.tls.identity()).map_err(|error| error.to_string())?;
        let https = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().build();
        let client: Client<_, Empty<axum::body::Bytes>> = Client::builder(TokioExecutor::new()).build(https);
        let mut shown = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| error.to_string())?;
        shown.set_sensitive(true);
        let request = Request::get(format!("https://{at}{path}"))
            .header(AUTHORIZATION, shown)
            .header(ASKS, &self.identity)
            .body(Empty::new())
            .map_err(|error| error.to_string())?;
        let answer = client.request(request).await.map_err(|error| in_full(&error))?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            status => return Err(status.to_string()),
        }
        let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await.map_err(|error| error.to_string())?;
        serde_json::from_slice(&body.to_bytes()).map(Some).map_err(|error| error.to_string())
    }
}

/// An error with what it comes from.
fn in_full(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", in_full(source)),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
