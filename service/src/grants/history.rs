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

/// Admitted changes of grants' subjects, in the order in which they came to be known.
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: VecDeque<Entry>,
    /// How many of them were recorded elsewhere.
    adopted: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    at: Option<i128>,
    spent: Spent,
}

impl History {
    /// Records what an admitted change takes away. A dry run takes nothing; the same of the same requests counts once.
    pub fn record(&mut self, spent: &Spent, now: Option<i128>) {
        if !spent.dry_run && !spent.is_nothing() && !self.knows(spent) {
            self.add(Entry { at: now, spent: spent.clone() });
        }
    }

    /// Takes over what was recorded elsewhere, unless it is known here.
    pub fn adopt(&mut self, spent: Spent, at: i128) {
        if !self.has(&spent, at) {
            self.add(Entry { at: Some(at), spent });
            self.adopted += 1;
        }
    }

    /// How much was ever taken over: who has counted with this much has counted with all that others recorded so far.
    pub fn adopted(&self) -> u64 {
        self.adopted
    }

    /// Takes back what was recorded of requests that are refused after all.
    pub fn take_back(&mut self, spent: &Spent) {
        self.entries.retain(|entry| entry.spent != *spent);
    }

    /// Whether the same is there: of the same requests, or admitted at the same time.
    pub fn has(&self, spent: &Spent, at: i128) -> bool {
        self.knows(spent) || self.entries.iter().any(|entry| entry.at == Some(at) && entry.spent == *spent)
    }

    fn knows(&self, spent: &Spent) -> bool {
        !spent.requests.is_empty() && self.entries.iter().any(|entry| entry.spent == *spent)
    }

    fn add(&mut self, entry: Entry) {
        self.entries.push_back(entry);
        if self.entries.len() > ENTRIES_MAX {
            self.entries.pop_front();
        }
    }

    /// What a grant's subjects took away, and when, where that is known.
    pub(super) fn of_grant(&self, grant: &str) -> impl Iterator<Item = (i128, &Spent)> {
        let own = self.entries.iter().filter(move |entry| *entry.spent.grant == *grant);
        own.filter_map(|entry| Some((entry.at?, &entry.spent)))
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
