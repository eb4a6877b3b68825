//! What was admitted and counts against budgets: each entry until it has left the longest window.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use suture_model::object::Key;
use suture_model::value::Str;

/// How many entries are kept; an operator that deletes more within its windows has long spent its budgets, and the oldest
/// count is then forgotten last.
const ENTRIES_MAX: usize = 100_000;

/// One object that is taken away; its uid tells it from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    /// Which object.
    pub key: Key,
    /// Its uid.
    pub uid: Str,
    /// The workload that it belongs to, if it is a pod.
    pub group: Option<Key>,
}

/// What a change takes away, for one grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The grant.
    pub grant: Str,
    /// The uids of the requests, by which repeated ones are known; none where they are not from an API server.
    pub requests: Vec<Str>,
    /// The objects.
    pub taken: BTreeSet<Taken>,
    /// Pods that go because a workload wants fewer, by workload.
    pub scaled: BTreeMap<Key, u64>,
    /// Whether nothing is stored.
    pub dry_run: bool,
}

impl Spent {
    /// Whether nothing is taken away.
    pub fn is_nothing(&self) -> bool {
        self.taken.is_empty() && self.scaled.is_empty()
    }
}

/// Admitted changes of grants' subjects, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: VecDeque<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    at: Option<i128>,
    spent: Spent,
}

impl History {
    /// Records what an admitted change takes away. A dry run takes nothing; the same of the same requests counts once.
    pub fn record(&mut self, spent: &Spent, now: Option<i128>) {
        let again = |entry: &Entry| !spent.requests.is_empty() && entry.spent == *spent;
        if spent.dry_run || spent.is_nothing() || self.entries.iter().any(again) {
            return;
        }
        self.entries.push_back(Entry { at: now, spent: spent.clone() });
        if self.entries.len() > ENTRIES_MAX {
            self.entries.pop_front();
        }
    }

    /// Forgets what is older than a window.
    pub fn forget(&mut self, window: i128, now: i128) {
        self.entries.retain(|entry| entry.at.is_none_or(|at| now.saturating_sub(at) < window));
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What a grant's subjects took away within a window that ends now.
    pub(super) fn within(
        &self,
        grant: &str,
        window: i128,
        now: Option<i128>,
    ) -> (BTreeSet<&Taken>, BTreeMap<&Key, u64>) {
        let (mut taken, mut scaled) = (BTreeSet::new(), BTreeMap::new());
        for entry in self.entries.iter().filter(|entry| *entry.spent.grant == *grant) {
            let left = entry.at.zip(now).is_some_and(|(at, now)| now.saturating_sub(at) >= window);
            if !left {
                taken.extend(&entry.spent.taken);
                for (workload, count) in &entry.spent.scaled {
                    let sum: &mut u64 = scaled.entry(workload).or_default();
                    *sum = sum.saturating_add(*count);
                }
            }
        }
        (taken, scaled)
    }
}
