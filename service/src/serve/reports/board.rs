//! How each invariant stands, and in how many reports it stood in the way over time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suture_checker::decision::Outcome;
use suture_specs::spec::Action;

use super::head::Head;
use super::id::ReportId;
use crate::clock::Clock;
use crate::serve::costs::Cost;
use crate::serve::near_audit::Nearly;

/// The spans that a board may be of: their names, their steps in seconds, and how many of them.
const SPANS: [(&str, i64, usize); 3] = [("24h", 3_600, 24), ("7d", 6 * 3_600, 28), ("30d", 24 * 3_600, 30)];
/// The span that is shown if nobody says.
pub const SPAN_DEFAULT: &str = "24h";

/// The spans by name, for links.
pub fn spans() -> impl Iterator<Item = &'static str> {
    SPANS.iter().map(|(name, ..)| *name)
}

/// How an invariant stands at a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Standing {
    /// `name`, or `namespace/name` of one that holds for one namespace.
    pub name: String,
    /// Whether it is loaded; one that only reports name is not.
    pub loaded: bool,
    /// What becomes of a request that breaks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Why it does not compile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What of that which it reads is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Why no request is judged by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<String>,
    /// What is violated now, instances with messages; none where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations: Option<Vec<(String, String)>>,
    /// Why that is not known, where it was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unclear: Option<String>,
    /// What one fault or one request would violate; none where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearly: Option<Nearly>,
    /// What it took of decisions.
    pub cost: Cost,
}

/// How many requests it stood in the way of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Those that were denied.
    pub denied: u64,
    /// Those that were undecided.
    pub undecided: u64,
    /// Those that were warned about.
    pub warned: u64,
}

impl Counts {
    /// All of them.
    pub fn total(self) -> u64 {
        self.denied + self.undecided + self.warned
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            denied: self.denied + other.denied,
            undecided: self.undecided + other.undecided,
            warned: self.warned + other.warned,
        }
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Denied => self.denied += 1,
            Outcome::Undecided => self.undecided += 1,
            Outcome::Warned => self.warned += 1,
            Outcome::Allowed => {}
        }
    }
}

/// An invariant on the board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// How it stands.
    #[serde(flatten)]
    pub standing: Standing,
    /// What it stood in the way of, step by step.
    pub decisions: Vec<Counts>,
}

/// All invariants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Board {
    /// The span.
    pub span: String,
    /// When it begins, RFC 3339.
    pub since: String,
    /// The length of a step, in seconds.
    pub step_secs: i64,
    /// The invariants, by name.
    pub invariants: Vec<Line>,
    /// The replicas that did not say what they know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
}

/// Which board is asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// One of [`spans`].
    pub span: Option<String>,
    /// When it ends, in seconds since 1970; now if nobody says. Replicas that are asked for parts of one board are told.
    pub end: Option<i64>,
}

/// A span with its borders.
#[derive(Clone, Debug)]
pub struct Steps {
    span: &'static str,
    step: i64,
    count: usize,
    /// In seconds since 1970; a multiple of the step.
    begin: i64,
}

impl Span {
    /// What is meant.
    ///
    /// # Errors
    /// When there is no such span.
    pub fn understood(&self, now: Clock) -> Result<Steps, String> {
        let wanted = self.span.as_deref().filter(|span| !span.is_empty()).unwrap_or(SPAN_DEFAULT);
        let found = SPANS.iter().find(|(name, ..)| *name == wanted);
        let (span, step, count) = *found
            .ok_or_else(|| format!("span: there is no `{wanted}`, but {}", spans().collect::<Vec<_>>().join(", ")))?;
        let end = self.end.unwrap_or_else(|| i64::try_from(now.nanos() / 1_000_000_000).unwrap_or_default());
        let length = step * i64::try_from(count).unwrap_or_default();
        let begin = (end.div_euclid(step).saturating_add(1)).saturating_mul(step).saturating_sub(length);
        Ok(Steps { span, step, count, begin })
    }
}

impl Steps {
    /// The query that asks another replica for the same.
    pub fn query(&self) -> String {
        let last = i64::try_from(self.count).unwrap_or_default() * self.step - 1;
        format!("?span={}&end={}", self.span, self.begin.saturating_add(last))
    }

    /// When they begin, RFC 3339.
    pub fn since(&self) -> String {
        let begin = Clock::ANY.later(&format!("{}s", self.begin.max(0)));
        begin.map(|begin| begin.to_string()).unwrap_or_default()
    }

    /// In which step a report was made, if in any.
    fn of(&self, head: &Head) -> Option<usize> {
        let id: ReportId = head.id.parse().ok()?;
        let step = id.seconds().checked_sub(self.begin)?.div_euclid(self.step);
        usize::try_from(step).ok().filter(|step| *step < self.count)
    }

    /// A board of invariants and of the reports that a reader may see.
    pub fn board(&self, standings: impl IntoIterator<Item = Standing>, heads: &[Head]) -> Board {
        let none = || vec![Counts::default(); self.count];
        let line = |standing: Standing| (standing.name.clone(), Line { standing, decisions: none() });
        let mut lines: BTreeMap<String, Line> = standings.into_iter().map(line).collect();
        for head in heads {
            let Some(step) = self.of(head) else { continue };
            for name in &head.invariants {
                let line = lines.entry(name.clone()).or_insert_with(|| Line {
                    standing: Standing { name: name.clone(), ..Standing::default() },
                    decisions: none(),
                });
                if let Some(counts) = line.decisions.get_mut(step) {
                    counts.count(head.decision);
                }
            }
        }
        let invariants = lines.into_values().collect();
        Board { span: self.span.to_owned(), since: self.since(), step_secs: self.step, invariants, silent: Vec::new() }
    }
}

impl Board {
    /// Adds what another replica knows: its reports, and what is violated, which one of them looks for.
    pub fn merge(&mut self, other: Self) {
        for Line { standing, decisions } in other.invariants {
            match self.invariants.iter_mut().find(|line| line.standing.name == standing.name) {
                None => self.invariants.push(Line { standing, decisions }),
                Some(line) => {
                    for (own, other) in line.decisions.iter_mut().zip(decisions) {
                        *own = own.and(other);
                    }
                    let cost = line.standing.cost.and(standing.cost);
                    if !line.standing.loaded {
                        line.standing = standing;
                    } else if line.standing.violations.is_none() {
                        line.standing.violations = standing.violations;
                        line.standing.unclear = line.standing.unclear.take().or(standing.unclear);
                        line.standing.nearly = line.standing.nearly.take().or(standing.nearly);
                    }
                    line.standing.cost = cost;
                }
            }
        }
        self.invariants.sort_by(|a, b| a.standing.name.cmp(&b.standing.name));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn head(time: &str, decision: Outcome, invariants: &[&str]) -> Head {
        let id = ReportId::first_at(Clock::parse(time).unwrap()).to_string();
        let none = String::new;
        Head {
            id,
            time: time.to_owned(),
            decision,
            user: none(),
            text: none(),
            object: none(),
            namespaces: BTreeSet::new(),
            invariants: invariants.iter().map(|name| (*name).to_owned()).collect(),
            instances: BTreeSet::new(),
            bytes: 0,
        }
    }

    #[test]
    fn reports_are_counted_in_the_step_in_which_they_were_made() {
        let now = Clock::parse("2026-11-01T12:34:56Z").unwrap();
        let steps = Span::default().understood(now).unwrap();
        assert!(Span { span: Some("1y".to_owned()), end: None }.understood(now).is_err());
        let heads = [
            head("2026-11-01T12:34:00Z", Outcome::Denied, &["a", "b"]),
            head("2026-11-01T12:00:00Z", Outcome::Denied, &["a"]),
            head("2026-11-01T11:59:59Z", Outcome::Warned, &["a"]),
            head("2026-10-31T13:00:00Z", Outcome::Undecided, &["a"]),
            // before, and after
            head("2026-10-31T12:59:59Z", Outcome::Denied, &["a"]),
            head("2026-11-01T13:00:00Z", Outcome::Denied, &["a"]),
        ];
        let loaded = Standing { name: "a".to_owned(), loaded: true, ..Standing::default() };
        let board = steps.board([loaded], &heads);
        assert_eq!((board.since.as_str(), board.step_secs), ("2026-10-31T13:00:00Z", 3_600));
        let [a, b] = board.invariants.as_slice() else { panic!("{board:?}") };
        assert_eq!(a.decisions.len(), 24);
        assert_eq!(a.decisions[23], Counts { denied: 2, undecided: 0, warned: 0 });
        assert_eq!(a.decisions[22], Counts { denied: 0, undecided: 0, warned: 1 });
        assert_eq!(a.decisions[0], Counts { denied: 0, undecided: 1, warned: 0 });
        assert_eq!(a.decisions.iter().map(|counts| counts.total()).sum::<u64>(), 4);
        assert!(a.standing.loaded && !b.standing.loaded && b.decisions[23].denied == 1, "{b:?}");

        // another replica is asked for the same steps, a moment later, and both add up
        let query = steps.query();
        let end = query.rsplit_once('=').unwrap().1.parse().unwrap();
        let later = Clock::parse("2026-11-01T13:00:01Z").unwrap();
        let same = Span { span: Some("24h".to_owned()), end: Some(end) }.understood(later).unwrap();
        let found = Standing {
            violations: Some(vec![("Pod/x/y".to_owned(), "m".to_owned())]),
            ..board.invariants[0].standing.clone()
        };
        let other = same.board([found.clone()], &heads[..1]);
        assert_eq!(other.since, board.since);
        let mut both = board.clone();
        both.merge(other);
        assert_eq!(both.invariants[0].decisions[23].denied, 3);
        assert_eq!(both.invariants[0].standing, found);
        assert_eq!(both.invariants[1].decisions[23].denied, 2);
    }
}
