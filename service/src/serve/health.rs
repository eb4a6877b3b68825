//! Whether this replica is alive and ready, and its metrics: a plain HTTP listener of its own, on a thread of its own, so
//! that probes neither need a certificate nor wait behind requests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;

use super::active::Active;
use super::metrics::{self, Metrics};
use super::off::{Cause, Off};
use super::workers::Workers;

/// The part that waits for the webhook's configuration.
pub const CERTIFICATES: &str = "certificates";

/// Which parts can do their work; cheap to clone. Nothing is ready before every part that is expected said so.
#[derive(Clone, Default)]
pub struct Readiness {
    parts: Arc<RwLock<BTreeMap<&'static str, Result<(), String>>>>,
    /// What is asked whenever somebody wants to know: whether this replica is the one that decides, by its Lease.
    active: Option<Active>,
    /// Whether no request is judged, and why.
    off: Option<Off>,
}

impl Readiness {
    /// Expects these parts, none of which is ready yet.
    pub fn expecting(parts: &[&'static str]) -> Self {
        let readiness = Self::default();
        for part in parts {
            readiness.set(part, Err("not yet".to_owned()));
        }
        readiness
    }

    /// The same, where part `lease` is whether this replica is the one that decides.
    #[must_use]
    pub fn while_active(self, active: Active) -> Self {
        Self { active: Some(active), ..self }
    }

    /// The same, which says that Suture is off where it is.
    #[must_use]
    pub fn unless_off(self, off: Off) -> Self {
        Self { off: Some(off), ..self }
    }

    /// Says whether a cause holds by which no request is judged, and why.
    pub fn turn(&self, cause: Cause, why: Option<&str>) {
        if let Some(off) = &self.off {
            off.set(cause, why);
        }
    }

    /// Why no request is judged, a line each; empty where requests are.
    pub fn off(&self) -> Vec<String> {
        self.off.as_ref().map(Off::lines).unwrap_or_default()
    }

    /// Says how a part is.
    pub fn set(&self, part: &'static str, state: Result<(), String>) {
        self.parts.write().unwrap_or_else(PoisonError::into_inner).insert(part, state);
    }

    /// Whether all parts are ready.
    ///
    /// # Errors
    /// What is not, and why, part by part.
    pub fn ready(&self) -> Result<(), Vec<String>> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        if parts.is_empty() {
            return Err(vec!["nothing is set up yet".to_owned()]);
        }
        // what is turned off on purpose gives the API server no certificates
        let waits = |part: &str| part != CERTIFICATES || self.off.as_ref().is_none_or(|off| !off.is(Cause::Switch));
        let said = parts
            .iter()
            .filter(|(part, _)| waits(part))
            .filter_map(|(part, state)| Some(format!("{part}: {}", state.as_ref().err()?)));
        let lease = self.active.as_ref().and_then(|active| active.check().err()).map(|why| format!("lease: {why}"));
        let missing: Vec<String> = said.chain(lease).collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

#[derive(Clone)]
struct Health {
    readiness: Readiness,
    metrics: Metrics,
    workers: Workers,
}

/// `/livez`, `/readyz` and `/metrics`.
pub fn router(readiness: Readiness, metrics: Metrics, workers: Workers) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .with_state(Health { readiness, metrics, workers })
}

async fn livez(State(health): State<Health>) -> (StatusCode, String) {
    match health.workers.alive() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

/// A replica that is off is ready, and says so.
async fn readyz(State(health): State<Health>) -> (StatusCode, String) {
    let off = health.readiness.off();
    let text = |lines: &[String]| {
        lines.iter().fold(String::new(), |mut text, line| {
            _ = writeln!(text, "{line}");
            text
        })
    };
    match health.readiness.ready() {
        Ok(()) if off.is_empty() => (StatusCode::OK, "ok\n".to_owned()),
        Ok(()) => (StatusCode::OK, text(&off)),
        Err(missing) => (StatusCode::SERVICE_UNAVAILABLE, text(&[missing, off].concat())),
    }
}

async fn scrape(State(health): State<Health>) -> (StatusCode, [(HeaderName, &'static str); 1], String) {
    health.metrics.ready(health.readiness.ready().is_ok());
    match health.metrics.text() {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, metrics::CONTENT_TYPE)], text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, [(CONTENT_TYPE, "text/plain")], format!("{error}\n")),
    }
}

#[cfg(test)]
mod tests;
