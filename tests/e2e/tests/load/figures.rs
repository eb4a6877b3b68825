//! What is measured: latencies by kind and operation, requests per second, refusals, and what Suture says of itself.

use std::collections::BTreeMap;

use crate::client::{Refusal, Sent, Traffic};
use crate::product::Told;
use crate::step::Sort;
use crate::webhooks::Asked;

/// When it is measured: at first, at the burst, right after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Before,
    Burst,
    After,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Burst => "burst",
            Self::After => "after",
        }
    }
}

/// What is measured beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub traffic: Traffic,
    pub phase: Phase,
    pub clients: usize,
}

/// Everything that was measured.
pub type Measured = BTreeMap<(Case, Asked), Figures>;

/// Milliseconds, sorted once all are there.
#[derive(Debug, Default)]
pub struct Millis(Vec<f64>);

impl Millis {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The one that this part of all are not above.
    pub fn percentile(&self, part: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * part).round() as usize).copied().unwrap_or_default()
    }

    pub fn above(&self, millis: f64) -> usize {
        self.0.iter().filter(|one| **one > millis).count()
    }
}

/// All rounds of one case with one asked.
#[derive(Default)]
pub struct Figures {
    pub all: Millis,
    pub by: BTreeMap<Sort, Millis>,
    /// Requests done per second, by round.
    pub rates: Vec<f64>,
    /// Answers that are not what was asked for, by code and reason: how many, and one of them.
    pub refused: BTreeMap<(u16, &'static str), (usize, Sort, String)>,
    /// Rounds that clients left.
    pub left: usize,
    pub told: Told,
}

impl Figures {
    /// Takes what the clients of one round did, and what Suture told meanwhile.
    pub fn take(&mut self, clients: Vec<Sent>, told: Told) {
        self.rates.push(clients.iter().map(|sent| sent.done.len() as f64 / sent.seconds.max(f64::EPSILON)).sum());
        for Sent { done, refused, left, seconds: _ } in clients {
            for (sort, millis) in done {
                self.all.0.push(millis);
                self.by.entry(sort).or_default().0.push(millis);
            }
            for (sort, Refusal { code, why, message }) in refused {
                self.refused.entry((code, why)).or_insert((0, sort, message)).0 += 1;
            }
            self.left += left;
        }
        self.told.add(told);
    }

    /// To be called once, after the last round.
    pub fn sort(&mut self) {
        for millis in self.by.values_mut().chain([&mut self.all]) {
            millis.0.sort_by(f64::total_cmp);
        }
    }

    /// Requests done per second.
    pub fn rate(&self) -> f64 {
        self.rates.iter().sum::<f64>() / (self.rates.len() as f64).max(1.0)
    }

    /// Answers that are not what was asked for.
    pub fn refusals(&self) -> usize {
        self.refused.values().map(|(count, ..)| count).sum()
    }
}
