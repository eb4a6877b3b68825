//! One grant, and the question that all of them are asked.

use suture_model::change::{Change, Request, User};
use suture_model::selector::Selector;
use suture_model::snapshot::Snapshot;
use suture_model::value::Str;
use suture_specs::spec::{Exemption, OperatorGrantSpec};

use super::history::History;
use super::limit::Limit;

/// What is to be judged.
#[derive(Clone, Copy, Debug)]
pub struct GrantQuestion<'a> {
    /// What the watch shows.
    pub snapshot: &'a Snapshot,
    /// The change.
    pub change: &'a Change,
    /// Requests that were admitted and not seen yet, oldest first.
    pub in_flight: &'a [&'a Request],
    /// What was admitted before, as far as a window may reach.
    pub history: &'a History,
    /// The clock, in nanoseconds since 1970; without it nothing leaves a window, and no exemption is in force.
    pub now: Option<i128>,
    /// The exemptions.
    pub exemptions: &'a [Exemption],
}

/// One grant.
#[derive(Debug)]
pub(super) struct Grant {
    pub name: Str,
    pub spec: OperatorGrantSpec,
    pub limits: Vec<Limit>,
    /// Which invariants bind its subjects; all without one.
    pub selector: Option<Selector>,
}

impl Grant {
    /// Whether it is about this user.
    pub fn covers(&self, user: &User) -> bool {
        self.spec.subjects.iter().any(|subject| subject.covers(user))
    }

    /// The longest time that a budget looks back, in nanoseconds.
    pub fn longest_window(&self) -> i128 {
        self.limits.iter().map(|limit| limit.window).max().unwrap_or(0)
    }

    /// The name of its instance.
    pub fn instance(&self) -> String {
        format!("OperatorGrant/{}", self.name)
    }

    /// An exemption in force that lets all authors that are its subjects break it.
    pub fn exemption<'a>(&self, invariant: &str, asked: &GrantQuestion<'a>) -> Option<&'a Exemption> {
        let (instance, now) = (self.instance(), asked.now?);
        asked.exemptions.iter().find(|exemption| {
            let authors = asked.change.requests.iter().map(|request| &request.user);
            exemption.spec.lifts(invariant, &instance, now, authors.filter(|user| self.covers(user)))
        })
    }
}
