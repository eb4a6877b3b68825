//! What a list says of a report, and which reports are asked for.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use suture_checker::decision::{Finding, Outcome};

use super::id::ReportId;
use crate::clock::Clock;
use crate::report::Report;

/// More invariants and instances of one report are not listed.
const NAMED_MAX: usize = 16;
/// How many heads a page has at most, and if nobody says.
pub const PAGE_MAX: usize = 500;
/// See [`PAGE_MAX`].
pub const PAGE_DEFAULT: usize = 50;

/// What a list says of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// The report's id.
    pub id: String,
    /// When it was decided, RFC 3339.
    pub time: String,
    /// What was decided.
    pub decision: Outcome,
    /// Who asked.
    pub user: String,
    /// What was asked for, in words.
    pub text: String,
    /// The object of the request.
    pub object: String,
    /// The namespaces that the request and the instances are in; the empty one for what is in none.
    pub namespaces: BTreeSet<String>,
    /// The invariants that stand in the way.
    pub invariants: BTreeSet<String>,
    /// Their instances.
    pub instances: BTreeSet<String>,
    /// How many bytes the report has.
    pub bytes: u64,
}

impl Head {
    /// The head of a report.
    pub fn of(id: ReportId, report: &Report, bytes: usize) -> Self {
        let first = report.requests.first();
        let told =
            || report.decision.verdicts.iter().filter(|v| matches!(v.outcome, Finding::Refuted | Finding::Undecided));
        let asked = report.requests.iter().map(|request| request.namespace.clone());
        let namespaces = asked.chain(told().map(|verdict| namespace_of(&verdict.instance).to_owned())).collect();
        Self {
            id: id.to_string(),
            time: report.time.clone().unwrap_or_default(),
            decision: report.decision.decision,
            user: first.map(|request| request.user.clone()).unwrap_or_default(),
            text: first.map(|request| request.text.clone()).unwrap_or_default(),
            object: first.map(|request| request.object.clone()).unwrap_or_default(),
            namespaces,
            invariants: told().map(|verdict| verdict.invariant.clone()).take(NAMED_MAX).collect(),
            instances: told().map(|verdict| verdict.instance.clone()).take(NAMED_MAX).collect(),
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        }
    }
}

/// The namespace that `Kind/namespace/name` names; empty for `Kind/name`.
pub fn namespace_of(name: &str) -> &str {
    let mut parts = name.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(namespace), Some(_)) => namespace,
        _ => "",
    }
}

/// Which reports are asked for: all that is given must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Filter {
    /// Who asked.
    pub user: Option<String>,
    /// An invariant that stands in the way.
    pub invariant: Option<String>,
    /// A namespace of the request or of an instance.
    pub namespace: Option<String>,
    /// What was decided.
    pub decision: Option<Outcome>,
    /// Not before this time, RFC 3339.
    pub since: Option<String>,
    /// Before this time, RFC 3339.
    pub until: Option<String>,
    /// How many at most.
    pub limit: Option<usize>,
    /// Those older than this one: `next` of the page before.
    pub before: Option<String>,
    /// The range of ids that `since`, `until` and `before` mean.
    #[serde(skip)]
    range: (Option<ReportId>, Option<ReportId>, Option<ReportId>),
}

impl Filter {
    /// The filter, with its times and its place understood.
    ///
    /// # Errors
    /// What of it means nothing.
    pub fn understood(mut self) -> Result<Self, String> {
        let time = |name: &str, text: &Option<String>| {
            let parsed = text.as_deref().map(Clock::parse).transpose();
            parsed.map(|time| time.map(ReportId::first_at)).map_err(|error| format!("{name}: {error}"))
        };
        let before = self
            .before
            .as_deref()
            .map(str::parse::<ReportId>)
            .transpose()
            .map_err(|error| format!("before: {error}"))?;
        self.range = (time("since", &self.since)?, time("until", &self.until)?, before);
        Ok(self)
    }

    /// Whether a head is asked for, on whichever page.
    pub fn admits(&self, head: &Head) -> bool {
        let Ok(id) = head.id.parse::<ReportId>() else { return false };
        let (since, until, _) = self.range;
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let among = |wanted: &Option<String>, found: &BTreeSet<String>| {
            wanted.as_ref().is_none_or(|wanted| found.contains(wanted))
        };
        is(&self.user, &head.user)
            && among(&self.invariant, &head.invariants)
            && among(&self.namespace, &head.namespaces)
            && self.decision.is_none_or(|wanted| wanted == head.decision)
            && since.is_none_or(|since| id >= since)
            && until.is_none_or(|until| id < until)
    }
}

/// A part of a list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Page {
    /// How many reports there are in all that are asked for and may be seen.
    pub count: usize,
    /// Those of this page, the newest first.
    pub reports: Vec<Head>,
    /// What to give as `before` for the next page; none if this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Page {
    /// Counts the next older head, and lists it if it is of this page.
    pub(super) fn add(&mut self, id: ReportId, head: Head, filter: &Filter) {
        self.count += 1;
        let limit = filter.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
        if filter.range.2.is_some_and(|before| id >= before) {
            return;
        }
        match self.reports.len() < limit {
            true => self.reports.push(head),
            false => self.next = self.reports.last().map(|last| last.id.clone()),
        }
    }
}
