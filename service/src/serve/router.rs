//! The webhook as a function from HTTP request to HTTP response: reads the review, has it decided, and always answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::StreamExt;
use suture_checker::decision::Effort;
use suture_model::value::Val;
use suture_specs::spec::OnUndecided;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;
use tracing::{Instrument, Span};
use zeroize::Zeroizing;

use super::answer::{Answer, Label, Unanswered};
use super::cleared;
use super::connections::Connection;
use super::disclosure::Disclosure;
use super::followers::Followers;
use super::metrics::Metrics;
use super::paths::{self, Door, Segments};
use super::resources;
use super::review::{self, AdmissionCall, Unreadable};
use super::spendings::Spendings;
use super::telemetry;
use super::workers::Workers;
use crate::clock::now;

/// Longer bodies are refused. etcd takes objects of 1.5 MiB (`--max-request-bytes`), the API server requests of 3 MiB
/// (`MaxRequestBodyBytes` in `apiserver/pkg/server/config.go`); a review has the object twice and options, in JSON where
/// etcd may have protobuf, and with `<`, `>` and `&` as six bytes each.
pub const BODY_MAX_BYTES: usize = 8 << 20;
/// What is read and thrown away of a body that is too long, so that the client gets to read the answer.
const DISCARD_MAX_BYTES: usize = 32 << 20;
/// An answer that takes longer is logged with what the time was spent on.
const SLOW: Duration = Duration::from_millis(50);
/// Bodies from this length on are not parsed on a thread that serves connections, where others would wait for it: about a
/// tenth of a millisecond.
const APART_MIN_BYTES: usize = 32 << 10;
/// Bodies from this length on are judged a few at a time: what is read of one takes several times its length in memory, until
/// it is answered.
const LARGE_MIN_BYTES: usize = 512 << 10;
/// How many of these at a time.
const LARGE_AT_ONCE_MAX: usize = 2;
/// What is kept of a body that nobody will read: it has the uid.
const HEAD_MAX_BYTES: usize = 4 << 10;

/// When answers are due, and what is answered to what nobody judged.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// An answer takes no longer than this, whatever the API server allows.
    pub deadline: Duration,
    /// What is kept of the API server's timeout for the way there and back.
    pub margin: Duration,
    /// What is answered to a request that was shed, overran its deadline, or made a decider panic.
    pub on_overload: OnUndecided,
}

impl Terms {
    /// When the answer to a request that comes now is due; `query` is that of its address.
    pub fn due(&self, arrived: Instant, query: Option<&str>) -> Instant {
        let allowed = review::timeout_in(query).map(|timeout| timeout.saturating_sub(self.margin));
        arrived + allowed.map_or(self.deadline, |allowed| allowed.min(self.deadline))
    }
}

#[derive(Clone)]
struct WebhookHandler {
    workers: Workers,
    /// Those for Suture's own resources.
    own: Workers,
    terms: Terms,
    metrics: Metrics,
    large: Arc<Semaphore>,
    followers: Option<Followers>,
    spendings: Option<Spendings>,
    segments: Segments,
    disclosure: Option<Disclosure>,
    /// What is asked.
    door: Door,
}

/// The webhook. Where there are `followers`, no "yes" goes out before they know what was admitted, and where there are
/// `spendings`, none before what it takes of budgets is recorded.
/// Who does not know the address (`segments`) is not answered, and of his request no body is read. Where there is a
/// `disclosure`, an answer shows what its requester may read. What is asked about Suture's own resources goes to workers of
/// their own (`own`), whatever the others are doing.
pub fn router(
    [workers, own]: [Workers; 2],
    terms: Terms,
    metrics: Metrics,
    (followers, spendings): (Option<Followers>, Option<Spendings>),
    segments: Segments,
    disclosure: Option<Disclosure>,
) -> Router {
    let large = Arc::new(Semaphore::new(LARGE_AT_ONCE_MAX));
    let door = Door::Decide;
    let handler =
        WebhookHandler { workers, own, terms, metrics, large, followers, spendings, segments, disclosure, door };
    Router::new()
        .route(paths::PATH, post(validate))
        .route(&format!("{}/{{*rest}}", paths::PATH), post(validate))
        .with_state(handler)
}

async fn validate(State(handler): State<WebhookHandler>, request: Request) -> Response {
    let arrived = now();
    let (parts, body) = request.into_parts();
    let asked = paths::asked(parts.uri.path()).filter(|(segment, _)| handler.segments.admits(*segment));
    let Some((_, door)) = asked else {
        handler.metrics.stranger();
        return StatusCode::NOT_FOUND.into_response();
    };
    if let Some(connection) = parts.extensions.get::<Arc<Connection>>() {
        connection.prove();
    }
    let handler = WebhookHandler { door, ..handler };
    let due = handler.terms.due(arrived, parts.uri.query());
    let crew = if door == Door::Resources { &handler.own } else { &handler.workers };
    if let Err(why) = crew.admit(due) {
        return handler.shed(body, arrived, due, why).await;
    }
    match handler.read(&parts.headers, body, arrived, due).await {
        Ok((asked, _one_of_few)) => {
            let essential = door == Door::Essential;
            handler.judge(AdmissionCall { essential, ..asked }, &parts.headers).await
        }
        Err(unreadable) => handler.turn_away(unreadable, arrived),
    }
}

impl WebhookHandler {
    /// Reads and parses a body; a large one as one of few: until the permit is dropped.
    async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
        arrived: Instant,
        due: Instant,
    ) -> Result<(AdmissionCall, Option<OwnedSemaphorePermit>), Unreadable> {
        let length = content_length(headers);
        let slow = || Unreadable::scanned(&[], 408, "the body did not come in time".to_owned());
        let is_one_of_few = length.is_none_or(|length| length >= LARGE_MIN_BYTES);
        let permit = match is_one_of_few {
            // never closed
            true => timeout_at(due.into(), self.large.clone().acquire_owned()).await.map_err(|_| slow())?.ok(),
            false => None,
        };
        let body = timeout_at(due.into(), collect(body, length)).await.map_err(|_| slow())??;
        if body.len() < APART_MIN_BYTES {
            return Ok((review::read(&body, arrived, due)?, permit));
        }
        let reading = tokio::task::spawn_blocking(move || {
            let asked = review::read(&body, arrived, due);
            drop(body);
            asked
        });
        let failed = |_| Unreadable::scanned(&[], 500, "the body could not be read".to_owned());
        Ok((reading.await.map_err(failed)??, permit))
    }

    /// Answers a request that nobody will have the time for: of its body only the uid is looked for.
    async fn shed(&self, body: Body, arrived: Instant, due: Instant, why: Unanswered) -> Response {
        let message = why.to_string();
        let found = match timeout_at(due.into(), collect_within(body, HEAD_MAX_BYTES, None)).await {
            Ok(Ok((head, _))) => Unreadable::scanned(&head, 400, message),
            Ok(Err(unreadable)) => unreadable,
            Err(_) => Unreadable::scanned(&[], 408, message),
        };
        if found.uid.is_empty() {
            return self.turn_away(found, arrived);
        }
        let answer = self.unjudged(why);
        self.note(&answer, arrived);
        respond(StatusCode::OK, answer.into_review(&found.uid, found.api_version))
    }

    /// The answer to what nobody judged. Suture's own resources are admitted then: they must stay repairable, and what does not
    /// compile is told by their status.
    fn unjudged(&self, why: Unanswered) -> Answer {
        let declared = if self.door == Door::Resources { OnUndecided::Warn } else { self.terms.on_overload };
        Answer::unjudged(why, declared).if_essential(self.door == Door::Essential)
    }

    async fn judge(&self, asked: AdmissionCall, headers: &HeaderMap) -> Response {
        let (uid, api_version, arrived, due) = (asked.uid.clone(), asked.api_version, asked.arrived, asked.deadline);
        let review = asked.review.clone();
        // to write down what all lines about a request have in common takes longer than to parse it
        let mut span = if telemetry::traces() { span(&uid, &review) } else { Span::none() };
        telemetry::join(&span, headers);
        let is_own = asked.text(&["resource", "group"]) == resources::GROUP;
        let crew = if is_own { &self.own } else { &self.workers };
        let answer = match crew.ask(asked).instrument(span.clone()).await {
            Ok(answer) => self.confirm(answer, due).await,
            Err(why) => self.unjudged(why),
        };
        let answer = answer.if_essential(self.door == Door::Essential);
        let told = answer.label != Label::Allowed || now().saturating_duration_since(arrived) > SLOW;
        if span.is_disabled() && told {
            span = self::span(&uid, &review);
        }
        span.in_scope(|| self.note(&answer, arrived));
        let answer = match &self.disclosure {
            Some(disclosure) => disclosure.of(answer, &review, due).await,
            None => answer,
        };
        respond(StatusCode::OK, answer.into_review(&uid, api_version))
    }

    /// The answer, when what it takes of budgets is recorded, and whoever may take over knows what it admits.
    async fn confirm(&self, mut answer: Answer, due: Instant) -> Answer {
        if !answer.allowed {
            return answer;
        }
        let spends = std::mem::take(&mut answer.spends);
        let confirmed = async {
            if let Some(spendings) = &self.spendings {
                spendings.record(spends).await.map_err(|why| Answer::unrecorded(&why))?;
            }
            match (&self.followers, answer.term) {
                (Some(followers), Some(term)) => followers.confirm(term).await.map_err(Answer::idle),
                (None, _) | (_, None) => Ok(()),
            }
        };
        match timeout_at(due.into(), confirmed).await {
            Ok(Ok(())) => answer,
            Ok(Err(refused)) => refused,
            Err(_) => {
                self.metrics.overran();
                Answer::unjudged(Unanswered::Overrun, OnUndecided::Deny)
            }
        }
    }

    fn turn_away(&self, unreadable: Unreadable, arrived: Instant) -> Response {
        let Unreadable { uid, api_version, http, message } = unreadable;
        let code = if http == 200 { 400 } else { http };
        let answer = Answer::refused(Label::Invalid, code, message);
        self.note(&answer, arrived);
        // an answer that names the request reaches the user; the API server understands no other status than 200
        let known = http == StatusCode::PAYLOAD_TOO_LARGE && !uid.is_empty();
        let status = if known { StatusCode::OK } else { StatusCode::from_u16(http).unwrap_or(StatusCode::BAD_REQUEST) };
        respond(status, answer.into_review(&uid, api_version))
    }

    /// Counts and logs an answer: plain allowances only for whoever debugs.
    fn note(&self, answer: &Answer, arrived: Instant) {
        let took = now().saturating_duration_since(arrived);
        self.metrics.decided(answer.label, took, &answer.effort);
        for reason in &answer.undecided {
            self.metrics.undecided(reason);
        }
        let (outcome, micros) = (answer.label.as_str(), micros(took));
        telemetry::ended(&Span::current(), outcome);
        if took > SLOW {
            note_slow(answer, micros);
        }
        match answer.label {
            Label::Allowed => tracing::debug!(outcome, micros, "answered"),
            Label::Warned | Label::Denied | Label::Undecided => {
                tracing::info!(outcome, micros, code = answer.code, message = answer.message, "answered");
            }
            Label::Shed | Label::Overrun | Label::Panicked | Label::Invalid => {
                tracing::warn!(outcome, micros, code = answer.code, message = answer.message, "answered");
            }
        }
    }
}

/// Says what the time of an answer was spent on: waiting for a worker, judging, and within that Z3.
fn note_slow(answer: &Answer, total_micros: u64) {
    let Effort { instances, folded, solved, cached, rlimit, steps, solver_micros, known } = answer.effort;
    tracing::warn!(
        outcome = answer.label.as_str(),
        micros = total_micros,
        queue_micros = micros(answer.waited),
        decision_micros = answer.micros,
        solver_micros,
        in_flight = answer.in_flight,
        instances,
        folded,
        cached,
        solved,
        rlimit,
        steps,
        known,
        "slow"
    );
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// What all that is logged and traced about a request has in common. No object's content, and no user's groups.
fn span(uid: &str, review: &Val) -> Span {
    let text = |path: &[&str]| review::text(review, path);
    tracing::info_span!(
        "review",
        uid,
        operation = text(&["operation"]),
        kind = text(&["kind", "kind"]),
        subresource = text(&["subResource"]),
        namespace = text(&["namespace"]),
        name = text(&["name"]),
        user = text(&["userInfo", "username"]),
    )
}

/// The whole body, or as much as is needed to say that it is too long.
async fn collect(body: Body, length: Option<usize>) -> Result<Zeroizing<Vec<u8>>, Unreadable> {
    let (found, discarded) = collect_within(body, BODY_MAX_BYTES, length).await?;
    if discarded > 0 {
        let message = format!("the AdmissionReview is larger than {} MiB and cannot be judged", BODY_MAX_BYTES >> 20);
        return Err(Unreadable::scanned(&found, 413, message));
    }
    Ok(found)
}

/// So much of a body, and how many bytes more of it were read and thrown away.
async fn collect_within(
    body: Body,
    max_bytes: usize,
    length: Option<usize>,
) -> Result<(Zeroizing<Vec<u8>>, usize), Unreadable> {
    let mut found = Zeroizing::new(Vec::with_capacity(length.unwrap_or_default().min(max_bytes)));
    let (mut chunks, mut discarded) = (body.into_data_stream(), 0);
    while let Some(chunk) = chunks.next().await {
        let broken = |error: axum::Error| Unreadable::scanned(&[], 400, format!("the body broke off: {error}"));
        let chunk = chunk.map_err(broken)?;
        if discarded == 0 && found.len() + chunk.len() <= max_bytes {
            cleared::add(&mut found, &chunk);
            continue;
        }
        // the head tells the uid
        let room = max_bytes - found.len();
        cleared::add(&mut found, chunk.get(..room).unwrap_or_default());
        discarded += chunk.len();
        if discarded > DISCARD_MAX_BYTES {
            break;
        }
    }
    Ok((found, discarded))
}

fn respond(status: StatusCode, review: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], review).into_response()
}

#[cfg(test)]
mod tests;
