//! What a list says of a report, and which reports are asked for.

use std::collections::BTreeSet;

use serde::de::value::StrDeserializer;
use serde::{Deserialize, Deserializer, Serialize};
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

/// What a filter names for what is in no namespace; none is called so.
pub const NO_NAMESPACE: &str = "-";

/// Which reports are asked for: all that is given must hold. What is empty is not given, as a form sends it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Filter {
    /// Who asked.
    pub user: Option<String>,
    /// An invariant that stands in the way.
    pub invariant: Option<String>,
    /// A namespace of the request or of an instance, or [`NO_NAMESPACE`].
    pub namespace: Option<String>,
    /// What was decided.
    #[serde(default, deserialize_with = "given")]
    pub decision: Option<Outcome>,
    /// Not before this time: in RFC 3339, of which what is left out is zero and UTC; or so long ago, such as `2h`.
    pub since: Option<String>,
    /// Before this time.
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
    pub fn understood(mut self, now: Clock) -> Result<Self, String> {
        let Self { user, invariant, namespace, since, until, before, .. } = &mut self;
        for text in [user, invariant, namespace, since, until, before] {
            *text = text.take().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        }
        let time = |name: &str, text: &Option<String>| {
            let parsed = text.as_deref().map(|text| time_of(text, now)).transpose();
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

    /// The namespace that is asked for; the empty one for what is in none.
    pub fn in_namespace(&self) -> Option<&str> {
        self.namespace.as_deref().map(|namespace| if namespace == NO_NAMESPACE { "" } else { namespace })
    }

    /// How many reports a page has.
    pub fn page_len(&self) -> usize {
        self.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX)
    }

    /// The same filter from this time on.
    #[must_use]
    pub fn starting(&self, since: &str) -> Self {
        Self { since: Some(since.to_owned()), until: None, ..self.clone() }
    }

    /// The query that asks for the same from another place on; for the newest if there is none.
    pub fn query(&self, before: Option<&str>) -> String {
        let decision = self.decision.map(|decision| format!("{decision:?}"));
        let limit = self.limit.map(|limit| limit.to_string());
        let fields = [
            ("user", self.user.as_deref()),
            ("invariant", self.invariant.as_deref()),
            ("namespace", self.namespace.as_deref()),
            ("decision", decision.as_deref()),
            ("since", self.since.as_deref()),
            ("until", self.until.as_deref()),
            ("limit", limit.as_deref()),
            ("before", before),
        ];
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(fields.iter().filter_map(|(name, value)| value.map(|value| (name, value))));
        format!("?{}", query.finish())
    }

    /// Whether a head is asked for, on whichever page.
    pub fn admits(&self, head: &Head) -> bool {
        let Ok(id) = head.id.parse::<ReportId>() else { return false };
        let (since, until, _) = self.range;
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.user, &head.user)
            && self.invariant.as_ref().is_none_or(|wanted| head.invariants.contains(wanted))
            && self.in_namespace().is_none_or(|wanted| head.namespaces.contains(wanted))
            && self.decision.is_none_or(|wanted| wanted == head.decision)
            && since.is_none_or(|since| id >= since)
            && until.is_none_or(|until| id < until)
    }
}

/// A field that a form leaves empty is not given.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Outcome>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    Outcome::deserialize(StrDeserializer::new(&text)).map(Some)
}

/// What somebody means by a time.
fn time_of(text: &str, now: Clock) -> Result<Clock, String> {
    if let Ok(ago) = now.ago(text) {
        return Ok(ago);
    }
    let text = text.replace(' ', "T");
    // a day, and what a browser's own field for times gives
    let said = ["", "Z", ":00Z", "T00:00:00Z"].iter().find_map(|rest| Clock::parse(&format!("{text}{rest}")).ok());
    said.ok_or_else(|| format!("`{text}` is no time such as 2026-11-25T18:00:00Z, 2026-11-25 18:00 or 2h"))
}

/// A part of a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Page {
    /// How many reports there are in all that are asked for and may be seen.
    pub count: usize,
    /// Those of this page, the newest first.
    pub reports: Vec<Head>,
    /// What to give as `before` for the next page; none if this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The replicas that did not say what they have of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
}

/// What is said of replicas that did not say what they have.
pub fn unasked(silent: &[String]) -> String {
    format!("what {} {} is not shown: no answer", silent.join(", "), if silent.len() == 1 { "keeps" } else { "keep" })
}

impl Page {
    /// Adds the same part of another replica's list: of both lists together, it is those that are newest.
    pub fn merge(&mut self, other: Self, filter: &Filter) {
        let Self { count, reports, next, silent: _ } = other;
        self.count += count;
        self.reports.extend(reports);
        // ids grow with time
        self.reports.sort_by(|a, b| b.id.cmp(&a.id));
        let more = self.next.is_some() || next.is_some() || self.reports.len() > filter.page_len();
        self.reports.truncate(filter.page_len());
        self.next = self.reports.last().filter(|_| more).map(|last| last.id.clone());
    }

    /// Counts the next older head, and lists it if it is of this page.
    pub(super) fn add(&mut self, id: ReportId, head: Head, filter: &Filter) {
        self.count += 1;
        if filter.range.2.is_some_and(|before| id >= before) {
            return;
        }
        match self.reports.len() < filter.page_len() {
            true => self.reports.push(head),
            false => self.next = self.reports.last().map(|last| last.id.clone()),
        }
    }
}
