//! What each invariant costs: the steps that it took of the decisions of this replica.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use suture_model::value::Str;

/// What an invariant took since this process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// How many decisions asked about it.
    pub decisions: u64,
    /// How many steps they took for it ([`suture_model::steps`]).
    pub steps: u64,
}

impl Cost {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { decisions: self.decisions + other.decisions, steps: self.steps + other.steps }
    }
}

/// What all took, by name.
#[derive(Debug, Default)]
pub struct Costs(Mutex<BTreeMap<Str, Cost>>);

impl Costs {
    /// Adds what a decision took.
    pub fn note(&self, taken: &BTreeMap<Str, u64>) {
        let mut all = self.all();
        for (invariant, steps) in taken {
            let cost = all.entry(invariant.clone()).or_default();
            *cost = cost.and(Cost { decisions: 1, steps: *steps });
        }
    }

    /// What an invariant took so far.
    pub fn of(&self, invariant: &str) -> Cost {
        self.all().get(invariant).copied().unwrap_or_default()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Str, Cost>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decisions_took_is_added_up() {
        let costs = Costs::default();
        costs.note(&BTreeMap::from([("a".into(), 3), ("b".into(), 5)]));
        costs.note(&BTreeMap::from([("a".into(), 4)]));
        assert_eq!(
            [costs.of("a"), costs.of("b")],
            [(2, 7), (1, 5)].map(|(decisions, steps)| Cost { decisions, steps })
        );
        assert_eq!(costs.of("c"), Cost::default());
    }
}
