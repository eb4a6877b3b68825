//! Whether an owner exists whose kind was not read: it may or may not. One or the other is supposed, and what depends on it is
//! found out for both.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::Snapshot;
use super::facts::{Fact, Journal, note};
use crate::object::Owner;

thread_local! {
    static ASKED: RefCell<BTreeSet<Owner>> = const { RefCell::new(BTreeSet::new()) };
}

/// Does some work on this thread, and says of which owners, whose kinds were not read, it asked whether they exist.
pub fn asked_by<T>(work: impl FnOnce() -> T) -> (T, BTreeSet<Owner>) {
    let outer = ASKED.take();
    let done = work();
    (done, ASKED.replace(outer))
}

/// An owner, whoever names it.
fn itself(owner: &Owner) -> Owner {
    Owner { controller: false, ..owner.clone() }
}

impl Snapshot {
    /// The same where these owners, whose kinds were not read, are gone. All others of such kinds are there.
    #[must_use]
    pub fn without_owners(&self, gone: BTreeSet<Owner>) -> Self {
        let mut other = self.clone();
        other.journal.note(Journal::event(), Fact::Readings);
        Self { gone, ..other }
    }

    /// Whether an owner whose kind was not read is supposed to exist. Who asks is told so by [`asked_by`].
    pub(crate) fn supposes(&self, owner: &Owner) -> bool {
        note(Fact::Readings);
        let owner = itself(owner);
        let there = !self.gone.contains(&owner);
        ASKED.with_borrow_mut(|asked| asked.insert(owner));
        there
    }
}
