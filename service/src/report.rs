//! A report: a decision with the requests that it is about, as `check -o json` prints it and as it is stored.

use serde::{Deserialize, Serialize};
use suture_checker::decision::{Decision, Outcome, Verdict};
use suture_checker::written::describe_changes;
use suture_model::change::{Change, Request};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;

use crate::clock::Clock;
use crate::output::denial::About;

/// How long an exemption lasts that a report proposes.
pub const EXEMPTION_LASTS: &str = "1h";

/// A decision and what it is about. Fields that a reader does not know are left aside, so that a newer report can be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What it is stored under; none for one that is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When it was decided, RFC 3339; none where that is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
    /// What whoever asked was told; none where nobody was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The requests that were judged together, in order; none for an audit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Requested>,
}

/// A request in words and names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requested {
    /// Who asks.
    pub user: String,
    /// The groups of who asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// CREATE, UPDATE, DELETE or CONNECT.
    pub operation: String,
    /// The subresource; empty for the object itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The object: `Kind/namespace/name`.
    pub object: String,
    /// The namespace of the object; empty where it is in none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Whether nothing is stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// What it does, in words, with what it changes from what to what.
    pub text: String,
}

impl Requested {
    fn of(request: &Request, before: &State<'_>) -> Self {
        Self {
            user: request.user.username.to_string(),
            groups: request.user.groups.iter().map(ToString::to_string).collect(),
            operation: request.operation.as_str().to_owned(),
            subresource: request.subresource.clone(),
            object: request.target.to_string(),
            namespace: request.target.ns.to_string(),
            dry_run: request.dry_run,
            text: describe_changes(request, before),
        }
    }
}

impl Report {
    /// The report of a decision about a change, with the objects that its counterexamples are about.
    pub fn of(mut decision: Decision, change: &Change, snapshot: &Snapshot) -> Self {
        decision.involve(snapshot);
        let before = State::new(snapshot);
        let requests = change.requests.iter().map(|request| Requested::of(request, &before)).collect();
        Self { id: None, time: None, decision, message: None, requests }
    }

    /// What it is about. An audit has no request, and no uid.
    pub fn about(&self) -> About {
        if self.requests.is_empty() && self.decision.uid.is_empty() { About::Present } else { About::Change }
    }

    /// What was decided, in one word.
    pub fn outcome(&self) -> &'static str {
        match (self.about(), self.decision.decision) {
            (About::Present, Outcome::Denied | Outcome::Warned) => "Violated",
            (_, Outcome::Denied) => "Denied",
            (_, Outcome::Warned) => "Allowed with a warning",
            (_, Outcome::Undecided) => "Undecided",
            (About::Present, Outcome::Allowed) => "Clean",
            (About::Change, Outcome::Allowed) => "Allowed",
        }
    }
}

/// The Exemption that lets an author of the requests break what a verdict is about, from `now` on for a while, as YAML.
/// Names are written as JSON strings, which are YAML strings whatever they hold. `None` where nobody asked.
pub fn exemption(verdict: &Verdict, requests: &[Requested], now: Clock) -> Option<String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut users: Vec<&str> = requests.iter().map(|request| request.user.as_str()).collect();
    users.sort_unstable();
    users.dedup();
    if users.is_empty() {
        return None;
    }
    let subjects: Vec<String> =
        users.into_iter().map(|user| format!("{{kind: User, name: {}}}", quoted(user))).collect();
    let expires = now.to_second().later(EXEMPTION_LASTS).ok()?.to_string();
    Some(format!(
        "apiVersion: suture.dev/v1alpha1\nkind: Exemption\nmetadata:\n  name: {}\nspec:\n  invariant: {}\n  \
         instances: [{}]\n  subjects: [{}]\n  expires: {}\n  reason: \"FILL IN: why this is accepted\"\n",
        exemption_name(&verdict.invariant),
        quoted(&verdict.invariant),
        quoted(&verdict.instance),
        subjects.join(", "),
        quoted(&expires),
    ))
}

/// A name that a custom resource may have (RFC 1123), of an invariant's.
fn exemption_name(invariant: &str) -> String {
    const MAX: usize = 50;
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = invariant.chars().take(MAX).map(plain).collect();
    format!("lift-{}", name.trim_matches('-')).trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests;
