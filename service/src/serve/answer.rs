//! What the API server is told about one request: the `AdmissionReview` that goes back, whatever happened.
//!
//! | what happened | allowed | code |
//! |---|---|---|
//! | every instance holds, or is only audited | yes | |
//! | one breaks, of an invariant that denies | no | 403 |
//! | one breaks, of an invariant that warns | yes, with warnings | |
//! | one is undecided | as its invariant's `onUndecided` says | 403 |
//! | nobody judged it: shed, overrun, panic | as `--on-overload` says | 429, 504, 500 |
//! | one of the last two, and a cluster needs the request to come up | yes, with a warning | |
//! | it is no review, or too large | no | 400, 413 |

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use suture_checker::decision::{Decision, Effort, Finding, Outcome, Verdict};
use suture_specs::spec::OnUndecided;

use super::in_flight_log::Spending;
use crate::decide::{Consequence, consequence};
use crate::output::denial::{About, LINES_MAX, by_cause};
use crate::output::terminal::Paint;
use crate::output::visible;
use crate::policy::Policy;

/// Longer warnings are cut: the API server's limit for a warning that is shown whole
/// (kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers, "Response").
pub const WARNING_MAX_CHARS: usize = 120;
/// More warnings are only counted: the API server drops those of all webhooks beyond 4,096 characters (same source).
pub const WARNINGS_MAX: usize = 16;
/// The lines of a message: what fits a screen beside a prompt.
pub const MESSAGE_LINES_MAX: usize = LINES_MAX;
/// A longer message is cut: it is repeated in events and conditions.
pub const MESSAGE_MAX_CHARS: usize = 2_000;
/// A longer audit annotation is cut: it is written with every event of the audit log.
pub const ANNOTATION_MAX_CHARS: usize = 500;
/// When a client whose request was shed may come again. `client-go` honours it, see `retryAfterSeconds` in
/// `apiserver/pkg/endpoints/handlers/responsewriters/writers.go` and `rest/with_retry.go`.
const RETRY_AFTER_SECS: u32 = 1;
/// What a client is told that may try again: `kubectl drain` tries evictions again on this code
/// (`kubectl/pkg/drain/drain.go`, `evictPods`).
pub(super) const TRY_AGAIN: u16 = 429;

/// How a request ended, for metrics, logs and the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// No instance can break.
    Allowed,
    /// An instance whose invariant warns can break.
    Warned,
    /// An instance whose invariant denies can break.
    Denied,
    /// Some instance could not be decided.
    Undecided,
    /// The queue was full.
    Shed,
    /// No answer came before the deadline.
    Overrun,
    /// The decider panicked.
    Panicked,
    /// It was no review that can be judged.
    Invalid,
}

impl Label {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Warned => "warned",
            Self::Denied => "denied",
            Self::Undecided => "undecided",
            Self::Shed => "shed",
            Self::Overrun => "overrun",
            Self::Panicked => "panicked",
            Self::Invalid => "invalid",
        }
    }
}

impl From<Outcome> for Label {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Allowed => Self::Allowed,
            Outcome::Warned => Self::Warned,
            Outcome::Undecided => Self::Undecided,
            Outcome::Denied => Self::Denied,
        }
    }
}

/// Why nobody judged a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// As many requests wait as may.
    #[error("too many requests wait to be judged")]
    Shed,
    /// The deadline passed first.
    #[error("it was not judged in time")]
    Overrun,
    /// A bug.
    #[error("judging it failed, see the log of suture")]
    Panicked,
}

/// What the API server is told.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Whether the request may pass.
    pub allowed: bool,
    /// The HTTP status of a refusal.
    pub code: u16,
    /// Why it is refused; at most ten lines.
    pub message: String,
    /// What the requester is told all the same.
    pub warnings: Vec<String>,
    /// What the audit log keeps; keys without the webhook's name, which the API server puts before them.
    pub annotations: BTreeMap<String, String>,
    /// How it ended.
    pub label: Label,
    /// How long it took to decide, in microseconds.
    pub micros: u64,
    /// What deciding took.
    pub effort: Effort,
    /// How long the request waited for a worker.
    pub waited: Duration,
    /// How many changes in flight it was judged with, where it was judged at all.
    pub in_flight: Option<usize>,
    /// The term of the Lease in which it was judged, where one replica decides at a time.
    pub term: Option<u64>,
    /// What it takes of the budgets of grants that have a status: to be recorded there before it goes out.
    pub spends: Vec<Spending>,
    /// Why instances are undecided, each reason once, from a fixed set.
    pub undecided: BTreeSet<&'static str>,
    /// What opens the report of a refusal: the last line of its message.
    pub report: Option<String>,
    /// When a refused client may come again, in seconds.
    pub retry_after_secs: Option<u32>,
}

impl Answer {
    /// Yes, with nothing to add.
    pub fn allowed() -> Self {
        Self {
            allowed: true,
            code: 200,
            message: String::new(),
            warnings: Vec::new(),
            annotations: BTreeMap::new(),
            label: Label::Allowed,
            micros: 0,
            effort: Effort::default(),
            waited: Duration::ZERO,
            in_flight: None,
            term: None,
            spends: Vec::new(),
            undecided: BTreeSet::new(),
            report: None,
            retry_after_secs: None,
        }
    }

    /// No.
    pub fn refused(label: Label, code: u16, message: impl Into<String>) -> Self {
        Self { allowed: false, code, message: message.into(), label, ..Self::allowed() }
    }

    /// Another replica decides, or none does yet.
    pub fn idle(why: String) -> Self {
        Self::refused(Label::Undecided, 503, why)
    }

    /// Nothing is decided, and it is worth trying again.
    pub fn try_again(why: &str) -> Self {
        let refused = Self::refused(Label::Undecided, TRY_AGAIN, format!("undecided: {why}; try again"));
        Self { retry_after_secs: Some(RETRY_AFTER_SECS), undecided: BTreeSet::from(["in-flight"]), ..refused }
    }

    /// What it takes of a budget is not recorded, for this reason: another decision may follow.
    pub fn unrecorded(why: &str) -> Self {
        Self::try_again(&format!("what it takes of its author's budgets is not recorded: {why}"))
    }

    /// What is declared for requests that nobody judged.
    pub fn unjudged(why: Unanswered, declared: OnUndecided) -> Self {
        let (label, code, retry_after_secs) = match why {
            Unanswered::Shed => (Label::Shed, 429, Some(RETRY_AFTER_SECS)),
            Unanswered::Overrun => (Label::Overrun, 504, None),
            Unanswered::Panicked => (Label::Panicked, 500, None),
        };
        let answer = match declared {
            OnUndecided::Deny => Self { retry_after_secs, ..Self::refused(label, code, why.to_string()) },
            OnUndecided::Warn => {
                let warning = format!("suture did not judge this request: {why}");
                Self { label, warnings: vec![warning], ..Self::allowed() }
            }
            OnUndecided::Allow => Self { label, ..Self::allowed() },
        };
        Self { undecided: BTreeSet::from([label.as_str()]), ..answer }.annotated("reason", &why.to_string())
    }

    /// The answer to a request that a cluster needs to come up: what was not decided passes, with a warning.
    #[must_use]
    pub fn if_essential(mut self, essential: bool) -> Self {
        let unsure = match self.label {
            Label::Undecided | Label::Shed | Label::Overrun | Label::Panicked => true,
            Label::Allowed | Label::Warned | Label::Denied | Label::Invalid => false,
        };
        if essential && unsure && !self.allowed {
            let first = self.message.lines().next().unwrap_or_default();
            self.warnings.push(format!("suture lets this pass undecided, a cluster needs it to come up: {first}"));
            (self.allowed, self.code, self.message, self.retry_after_secs) = (true, 200, String::new(), None);
        }
        self
    }

    /// What a decision says, by what each invariant declares.
    pub fn from_decision(decision: &Decision, policy: &Policy) -> Self {
        let denying = pick(decision, policy, Consequence::Denies);
        let warning = pick(decision, policy, Consequence::Warns);
        let audited = pick(decision, policy, Consequence::Audits);
        let unclear = decision.verdicts.iter().filter(|verdict| verdict.outcome == Finding::Undecided);
        let undecided: BTreeSet<&'static str> = unclear.map(reason).collect();
        let label = if denying.iter().any(|verdict| verdict.outcome == Finding::Refuted) {
            Label::Denied
        } else {
            Label::from(decision.decision)
        };
        let unmodelled: Vec<String> = decision.unmodelled_in_words().collect();
        let mut answer = match decision.unmodelled_outcome {
            _ if !denying.is_empty() => Self::refused(label, 403, message(&denying)),
            Outcome::Denied => Self::refused(Label::Denied, 403, unmodelled.join("\n")),
            _ => Self { label, ..Self::allowed() },
        };
        let warned = by_cause(warning.iter().copied(), About::Change);
        answer.warnings = warned.iter().flat_map(|cause| cause.lines(About::Change, Paint::PLAIN)).collect();
        if decision.unmodelled_outcome == Outcome::Warned {
            answer.warnings.extend(unmodelled);
        }
        answer.micros = decision.duration.map_or(0, |duration| duration.total_micros);
        answer.effort = decision.effort;
        answer.undecided = undecided;
        let reasons = answer.undecided.iter().copied().collect::<Vec<_>>().join(",");
        let proved = decision.proved.to_string();
        let exempted: BTreeSet<&str> = decision.exempted.iter().map(|used| used.exemption.as_str()).collect();
        let exempted = exempted.into_iter().collect::<Vec<_>>().join(",");
        let solver_micros = decision.duration.map_or(0, |duration| duration.solver_micros);
        for (key, value) in [
            ("invariant", names(&denying)),
            ("warned", names(&warning)),
            ("audited", names(&audited)),
            ("reason", reasons),
            ("proved", proved),
            ("exempted", exempted),
            ("solver-micros", solver_micros.to_string()),
        ] {
            if !value.is_empty() {
                answer = answer.annotated(key, &value);
            }
        }
        answer
    }

    /// With one more annotation for the audit log.
    #[must_use]
    pub fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The `AdmissionReview` that goes back, of the version that came, as JSON. Texts are cut here, whoever made them.
    pub fn into_review(self, uid: &str, api_version: &str) -> Vec<u8> {
        let Self { allowed, code, message, warnings, mut annotations, label, micros, retry_after_secs, report, .. } =
            self;
        annotations.insert("decision".to_owned(), label.as_str().to_owned());
        annotations.insert("micros".to_owned(), micros.to_string());
        for value in annotations.values_mut() {
            *value = cut(&visible(value), ANNOTATION_MAX_CHARS);
        }
        let status = (!allowed).then(|| Status {
            status: "Failure",
            message: short(&message, report.as_deref()),
            reason: reason_of(code),
            details: retry_after_secs.map(|retry_after_seconds| Details { retry_after_seconds }),
            code,
        });
        let response = Response { uid, allowed, status, warnings: shown(&warnings), audit_annotations: annotations };
        // what is serialized is strings and numbers, which cannot fail
        serde_json::to_vec(&Review { kind: "AdmissionReview", api_version, response }).unwrap_or_default()
    }
}

/// `k8s.io/api/admission/v1/types.go`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'static str,
    api_version: &'a str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    audit_annotations: BTreeMap<String, String>,
}

/// The part of `metav1.Status` that `ToStatusErr` in `apiserver/pkg/admission/plugin/webhook/errors/statuserror.go` keeps.
#[derive(Serialize)]
struct Status {
    status: &'static str,
    message: String,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    code: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    retry_after_seconds: u32,
}

/// The `metav1.StatusReason` that goes with a code (`apimachinery/pkg/apis/meta/v1/types.go`).
fn reason_of(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        403 => "Forbidden",
        422 => "Invalid",
        413 => "RequestEntityTooLarge",
        429 => "TooManyRequests",
        408 | 504 => "Timeout",
        _ => "InternalError",
    }
}

fn pick<'d>(decision: &'d Decision, policy: &Policy, wanted: Consequence) -> Vec<&'d Verdict> {
    decision.verdicts.iter().filter(|verdict| consequence(verdict, policy) == Some(wanted)).collect()
}

/// Why an instance is undecided, as a metric's label: a fixed set, by how `checker` words its reasons.
fn reason(verdict: &Verdict) -> &'static str {
    let text = verdict.reason.as_deref().unwrap_or_default();
    if text.starts_with("distrust") {
        "distrust"
    } else if text.starts_with("the invariant cannot be evaluated") {
        "no-value"
    } else if text.contains("were not read") {
        "not-read"
    } else if text.contains("budget") || text.contains("deadline") || text.contains("wait for the solver") {
        "budget"
    } else {
        "unsupported"
    }
}

/// The verdicts that refuse in words: one cause in full, of others the promise, as far as there is room.
fn message(denying: &[&Verdict]) -> String {
    let causes = by_cause(denying.iter().copied(), About::Change);
    let Some((first, others)) = causes.split_first() else { return String::new() };
    let mut text = first.lines(About::Change, Paint::PLAIN);
    text.truncate(MESSAGE_LINES_MAX - usize::from(!others.is_empty()));
    let room = MESSAGE_LINES_MAX - text.len();
    let told = if others.len() <= room { others.len() } else { room.saturating_sub(1) };
    let heads =
        others.iter().take(told).filter_map(|cause| cause.lines(About::Change, Paint::PLAIN).into_iter().next());
    text.extend(heads.map(|head| format!("also {head}")));
    if others.len() > told {
        text.push(format!("and {} more", others.len() - told));
    }
    text.join("\n")
}

/// The invariants and instances of verdicts, for the audit log.
fn names(verdicts: &[&Verdict]) -> String {
    let names = verdicts.iter().map(|verdict| format!("{} {}", verdict.invariant, verdict.instance));
    names.collect::<Vec<_>>().join(", ")
}

/// A message within its limits, with what opens its report at its end, whatever is cut.
fn short(message: &str, report: Option<&str>) -> String {
    let (lines_max, ending) = match report {
        Some(line) => (MESSAGE_LINES_MAX - 1, format!("\n{}", visible(line))),
        None => (MESSAGE_LINES_MAX, String::new()),
    };
    let lines: Vec<String> = message.lines().take(lines_max).map(visible).collect();
    cut(&lines.join("\n"), MESSAGE_MAX_CHARS.saturating_sub(ending.chars().count()).max(2)) + &ending
}

/// Warnings within their limits. Control characters would make the API server drop a warning
/// (`NewWarningHeader` in `apimachinery/pkg/util/net/http.go`).
fn shown(warnings: &[String]) -> Vec<String> {
    let mut shown: Vec<String> = warnings
        .iter()
        .take(WARNINGS_MAX)
        .map(|text| cut(&visible(&text.replace('\n', " ")), WARNING_MAX_CHARS))
        .collect();
    if warnings.len() > WARNINGS_MAX {
        shown.pop();
        shown.push(format!("and {} more warnings of suture", warnings.len() + 1 - WARNINGS_MAX));
    }
    shown
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().nth(chars_max).is_none() {
        return text.to_owned();
    }
    text.chars().take(chars_max - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
