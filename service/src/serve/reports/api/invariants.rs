//! How invariants stand, as a reader may see it: of violations those in namespaces that he may read, of reports those that he
//! sees in the list, of the invariants of one namespace those of his.

use std::collections::BTreeSet;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::reading::{Api, Refusal, answer, blocking, is_seen, own_namespace};
use crate::clock::Clock;
use crate::serve::reports::access::{Readable, Reader};
use crate::serve::reports::board::{Board, Span, Standing, Steps};
use crate::serve::reports::head::{Filter, Head, namespace_of};
use crate::serve::reports::redact::{namespaces, redacted};
use crate::serve::reports::store::{ReportStore, StoreError};

/// What is asked.
pub type Asked = Result<Query<Span>, QueryRejection>;

/// The board as JSON.
pub async fn board(State(api): State<Api>, headers: HeaderMap, query: Asked) -> Result<Response, Refusal> {
    let board = api.board(&headers, query).await?;
    let json = serde_json::to_value(board).map_err(|error| Refusal::Failed(error.to_string()))?;
    Ok(answer(StatusCode::OK, &json))
}

impl Api {
    /// The board for whoever asks, with what other replicas know.
    pub(super) async fn board(&self, headers: &HeaderMap, query: Asked) -> Result<Board, Refusal> {
        let (reader, token) = self.reader(headers).await?;
        let Query(span) = query.map_err(|error| Refusal::Meaningless(error.body_text()))?;
        let steps = span.understood(Clock::now()).map_err(Refusal::Meaningless)?;
        let mut board = self.board_here(&reader, &steps).await?;
        let (others, silent) = self.elsewhere(headers, &format!("/invariants{}", steps.query()), token).await;
        for other in others {
            board.merge(serde_json::from_value(other).map_err(|error| Refusal::Failed(error.to_string()))?);
        }
        board.silent = silent;
        Ok(board)
    }

    async fn board_here(&self, reader: &Reader, steps: &Steps) -> Result<Board, Refusal> {
        let _one_of_few = self.at_once.acquire().await;
        let standings = self.around.standings.as_ref().map(|known| known.borrow().clone()).unwrap_or_default();
        let made = Filter::default().starting(&steps.since()).understood(Clock::now()).map_err(Refusal::Failed)?;
        let store = self.store.clone();
        let heads = blocking(move || all(&store, &made)).await?;
        let mut there: BTreeSet<String> = heads.iter().flat_map(|head| head.namespaces.clone()).collect();
        for standing in &standings {
            there.extend(own_namespace(&standing.name).map(str::to_owned));
            let violated = standing.violations.iter().flatten();
            let nearly = standing.nearly.iter().flat_map(|nearly| &nearly.instances);
            there.extend(violated.chain(nearly).map(|(instance, _)| namespace_of(instance).to_owned()));
        }
        let readable = self.readable(reader, there).await?;
        let mut heads: Vec<Head> = heads.into_iter().filter(|head| is_seen(head, &readable)).collect();
        for head in &mut heads {
            head.invariants.retain(|name| is_seen_by_name(name, &readable));
        }
        let standings = standings.into_iter().filter(|standing| is_seen_by_name(&standing.name, &readable));
        let standings = standings.map(|standing| seen(standing, &readable));
        let board = steps.board(standings, &heads);
        let json = serde_json::to_value(board).map_err(|error| Refusal::Failed(error.to_string()))?;
        let readable = self.readable(reader, namespaces(&json)).await?;
        let json = redacted(json, &|namespace| readable.has(namespace));
        serde_json::from_value(json).map_err(|error| Refusal::Failed(error.to_string()))
    }
}

/// Whether somebody may know that there is an invariant: not that another namespace has one.
fn is_seen_by_name(invariant: &str, readable: &Readable) -> bool {
    own_namespace(invariant).is_none_or(|namespace| readable.has(namespace))
}

/// What of an invariant a reader may see.
fn seen(mut standing: Standing, readable: &Readable) -> Standing {
    let nearly = standing.nearly.as_mut().map(|nearly| &mut nearly.instances);
    for instances in [standing.violations.as_mut(), nearly].into_iter().flatten() {
        instances.retain(|(instance, _)| readable.has(namespace_of(instance)));
    }
    standing
}

/// The heads of all reports that a filter admits.
fn all(store: &ReportStore, filter: &Filter) -> Result<Vec<Head>, StoreError> {
    let found = std::cell::RefCell::new(Vec::new());
    store.list(filter, &|head| {
        found.borrow_mut().push(head.clone());
        false
    })?;
    Ok(found.into_inner())
}
