//! Which facts of a snapshot something was found out from, and whether they are still the same.
//!
//! Every way to read a snapshot names the fact that it reads, and a journal has the facts that each event changes. What was
//! found out from some facts holds as long as no event since then has changed one of them.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::labels::LabelKey;
use crate::hash::{RandomState, hash};
use crate::kinds::Kind;
use crate::object::Key;
use crate::steps;

/// Something that a snapshot can be asked.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) enum Fact<'f> {
    /// What the adapters and the unread kinds are.
    Readings,
    /// All objects.
    Objects,
    /// The object of a key.
    Object(&'f Key),
    /// The object of a uid.
    Uid(&'f str),
    /// The objects of a kind.
    Kind(&'f Kind),
    /// The objects of a kind in a namespace.
    KindIn(&'f Kind, &'f str),
    /// Of which kinds there are objects.
    Kinds,
    /// Whether there are objects of a kind.
    Exists(&'f Kind),
    /// The objects that name a uid as an owner.
    Owned(&'f str),
    /// Whether an object names an owner of a kind.
    OwnerKind(&'f Kind),
    /// The pods on a node.
    Node(&'f str),
    /// What the pods on a node take of it.
    Usage(&'f str),
    /// The nodes.
    Nodes,
    /// What pods take of the nodes.
    Busy,
    /// The objects under a label.
    Label(&'f LabelKey),
    /// The objects whose selector asks for a label.
    Selector(&'f LabelKey),
    /// The objects that refer to a key.
    Reference(&'f Key),
    /// The custom resources whose adapter lists a key among what their operator makes.
    Child(&'f Key),
    /// Which constraints on nodes there are, and of which objects.
    Constraints,
    /// Which workloads lack pods.
    Lacking,
    /// Which uids objects name as their owners' that no object has.
    Orphans,
}

/// A fact by its hash. That two have the same one makes something look changed that is not, and never the other way round.
type FactHash = u64;
/// A journal has so many parts.
const PARTS_MAX: usize = 32;
/// Changed facts of a part; an event changes some dozen.
const PART_LEN: usize = 1_024;

impl Fact<'_> {
    fn to_hash(self) -> FactHash {
        hash(&self)
    }
}

/// The events of all snapshots so far.
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// The number of an event, which no other has, and a fact that it changed.
type Entry = (u64, FactHash);

/// What the last events changed, oldest first. Copies share what neither changes.
#[derive(Clone, Debug)]
pub(super) struct Journal(Arc<VecDeque<Arc<Vec<Entry>>>>);

impl Journal {
    /// That of an empty snapshot, which differs from others in how it is read.
    pub fn new() -> Self {
        let mut journal = Self(Arc::new(VecDeque::from([Arc::default()])));
        journal.note(Self::event(), Fact::Readings);
        journal
    }

    /// A number for an event, higher than those before.
    pub fn event() -> u64 {
        EVENTS.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that an event changed a fact.
    pub fn note(&mut self, event: u64, fact: Fact<'_>) {
        let parts = Arc::make_mut(&mut self.0);
        if parts.back().is_none_or(|part| part.len() >= PART_LEN) {
            if parts.len() >= PARTS_MAX {
                parts.pop_front();
            }
            parts.push_back(Arc::new(Vec::with_capacity(PART_LEN)));
        }
        if let Some(part) = parts.back_mut() {
            Arc::make_mut(part).push((event, fact.to_hash()));
        }
    }

    /// The last event.
    pub fn last(&self) -> u64 {
        self.0.back().and_then(|part| part.last()).map_or(0, |(event, _)| *event)
    }

    /// The facts that events after this one have changed; `None` of an event that the journal does not have.
    pub fn since(&self, event: u64) -> Option<Facts> {
        let newest_first = || self.0.iter().rev().flat_map(|part| part.iter().rev());
        newest_first().find(|(at, _)| *at <= event).filter(|(at, _)| *at == event)?;
        Some(Facts(newest_first().take_while(|(at, _)| *at > event).map(|(_, fact)| *fact).collect()))
    }

    /// Whether no event after this one has changed any of these facts. Never said of an event that the journal does not
    /// have: it is too long ago, or one of another snapshot.
    pub fn unchanged_since(&self, event: u64, facts: &Facts) -> bool {
        let newest_first = || self.0.iter().rev().flat_map(|part| part.iter().rev());
        let since = newest_first().take_while(|(at, _)| *at > event);
        !since.into_iter().any(|(_, fact)| facts.0.contains(fact))
            && newest_first().find(|(at, _)| *at <= event).is_some_and(|(at, _)| *at == event)
    }
}

/// Facts that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(Set);

#[expect(clippy::disallowed_types, reason = "it is asked for members only: its order does not show")]
type Set = std::collections::HashSet<FactHash, RandomState>;

thread_local! {
    /// The facts that were read on this thread, while somebody wants to know.
    static READ: RefCell<Option<Facts>> = const { RefCell::new(None) };
}

impl Facts {
    /// Does some work on this thread, and says which facts it read of snapshots. Work within work is told to both.
    pub fn read_by<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let outer = READ.replace(Some(Self::default()));
        note(Fact::Readings);
        let done = work();
        let facts = READ.replace(outer).unwrap_or_default();
        facts.read();
        (done, facts)
    }

    /// Does some work on this thread whose result is named by a fact of its own: which others it reads is told to nobody.
    pub(super) fn aside<T>(work: impl FnOnce() -> T) -> T {
        /// Tells the facts on, also where `work` panics.
        struct Outer(Option<Facts>);
        impl Drop for Outer {
            fn drop(&mut self) {
                READ.replace(self.0.take());
            }
        }
        let _outer = Outer(READ.take());
        work()
    }

    /// Says to whoever wants to know that these facts were read, as what was found out from them is used.
    pub fn read(&self) {
        READ.with_borrow_mut(|read| {
            if let Some(read) = read {
                read.extend(self);
            }
        });
    }

    /// Adds other facts.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// Those that are not among others.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        Self(self.0.difference(&others.0).copied().collect())
    }

    /// Whether a fact is among both.
    pub fn meets(&self, other: &Self) -> bool {
        let (few, many) = if self.len() < other.len() { (self, other) } else { (other, self) };
        few.0.iter().any(|fact| many.0.contains(fact))
    }

    /// Whether all are among others.
    pub fn is_within(&self, others: &Self) -> bool {
        self.0.is_subset(&others.0)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        2 * size_of::<FactHash>() * self.len()
    }

    pub(super) fn add(&mut self, fact: Fact<'_>) {
        self.0.insert(fact.to_hash());
    }
}

/// Notes that a fact is read.
pub(super) fn note(fact: Fact<'_>) {
    steps::read();
    READ.with_borrow_mut(|read| {
        if let Some(facts) = read {
            facts.add(fact);
        }
    });
}

/// Numbered sets of facts, found by their members.
#[derive(Clone, Debug, Default)]
pub struct FactIndex(Numbers);

#[expect(clippy::disallowed_types, reason = "it is asked for members only: its order does not show")]
type Numbers = std::collections::HashMap<FactHash, Vec<u64>, RandomState>;

impl FactIndex {
    /// Enters a set under its number.
    pub fn insert(&mut self, facts: &Facts, number: u64) {
        for fact in &facts.0 {
            self.0.entry(*fact).or_default().push(number);
        }
    }

    /// Takes out what was entered.
    pub fn remove(&mut self, facts: &Facts, number: u64) {
        for fact in &facts.0 {
            if let Some(numbers) = self.0.get_mut(fact) {
                numbers.retain(|known| *known != number);
                if numbers.is_empty() {
                    self.0.remove(fact);
                }
            }
        }
    }

    /// The numbers of the sets that have one of these facts, in order.
    pub fn find(&self, facts: &Facts) -> BTreeSet<u64> {
        if self.0.len() < facts.len() {
            return self
                .0
                .iter()
                .filter(|(fact, _)| facts.0.contains(fact))
                .flat_map(|(_, found)| found)
                .copied()
                .collect();
        }
        facts.0.iter().filter_map(|fact| self.0.get(fact)).flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests;
