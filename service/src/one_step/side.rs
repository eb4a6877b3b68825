//! A policy by which many requests are decided, one after the other, on one cluster.

use std::collections::BTreeSet;

use serde::Serialize;
use suture_checker::decision::{Decision, Verdict};
use suture_checker::engine::{Engine, Settings};
use suture_checker::version::VersionError;
use suture_model::change::Change;
use suture_model::land::SCENARIOS_MAX;
use suture_model::snapshot::{Facts, Snapshot};

use crate::clock::Clock;
use crate::decide::{Consequence, Decided, Question, consequence, decide};
use crate::policy::Policy;

/// A policy with the engine that decides by it.
pub struct Side<'p> {
    policy: &'p Policy,
    engine: Engine,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Answer {
    /// It passes.
    Allowed,
    /// It passes with a warning.
    Warned,
    /// It is refused.
    Refused,
}

impl<'p> Side<'p> {
    /// A policy, by which nothing was decided yet. Nobody asks what would have been allowed instead of thousands of requests.
    ///
    /// # Errors
    /// When the linked Z3 is too old.
    pub fn new(policy: &'p Policy) -> Result<Self, VersionError> {
        let settings = Settings { suggest: false, ..Settings::default() };
        Ok(Self { policy, engine: Engine::new(policy.invariants.clone(), settings)? })
    }

    /// The same, with an engine of it, that does not look for what would have been allowed.
    pub fn with(policy: &'p Policy, engine: Engine) -> Self {
        Self { policy, engine }
    }

    /// Judges a change as `check` does, with nothing in flight.
    pub fn decide(&mut self, snapshot: &Snapshot, change: &Change, time: Option<Clock>) -> Decision {
        let question = Question {
            snapshot,
            change,
            writers: &|_| Vec::new(),
            ways_max: SCENARIOS_MAX,
            hopes: false,
            likely_reads: &Facts::default(),
            counted: &[],
            history: self.policy.grants.recorded(),
            time,
            unread: &[],
        };
        let Decided { decision, .. } = decide(self.policy, Some(&mut self.engine), &question);
        decision
    }

    /// What the webhook would answer.
    pub fn answer(&self, decision: &Decision) -> Answer {
        let of = |verdict: &Verdict| match consequence(verdict, self.policy) {
            Some(Consequence::Denies) => Answer::Refused,
            Some(Consequence::Warns) => Answer::Warned,
            Some(Consequence::Audits) | None => Answer::Allowed,
        };
        decision.verdicts.iter().map(of).max().unwrap_or(Answer::Allowed)
    }

    /// The invariants by which a decision leads to an answer.
    pub fn deciding(&self, decision: &Decision, answer: Answer) -> BTreeSet<String> {
        let wanted = if answer == Answer::Refused { Consequence::Denies } else { Consequence::Warns };
        let deciding = decision.verdicts.iter().filter(|verdict| consequence(verdict, self.policy) == Some(wanted));
        deciding.map(|verdict| verdict.invariant.clone()).collect()
    }
}
