//! What may be one way or another, since a kind was not read: one or the other is supposed, and what depends on it is found out
//! for both.

use std::collections::BTreeSet;

use super::Snapshot;
use super::facts::{Fact, Journal, note};
use super::supposition::{Supposition, ask_again};
use crate::kinds::Kind;
use crate::object::Owner;
use crate::value::Str;

impl Snapshot {
    /// The same where these are supposed, and no others.
    #[must_use]
    pub fn supposing(&self, supposed: BTreeSet<Supposition>) -> Self {
        let mut other = self.clone();
        other.journal.note(Journal::event(), Fact::Readings);
        Self { supposed, ..other }
    }

    /// Whether an owner whose kind was not read is supposed to exist, whoever names it. Who asks is told so by [`asked_by`].
    pub(crate) fn supposes_there(&self, owner: &Owner) -> bool {
        !self.supposes(Supposition::OwnerGone(Owner { controller: false, ..owner.clone() }))
    }

    /// The kinds that were not read, that something names an owner of, and whose objects are supposed to go with what is deleted.
    pub(crate) fn supposed_taken(&self) -> BTreeSet<&Kind> {
        let unread = self.unread_owner_kinds();
        unread.into_iter().filter(|kind| self.supposes(Supposition::OwnersTaken((*kind).clone()))).collect()
    }

    /// Whether a node is supposed to fail: none that was read, or that is missed where nodes were.
    pub(crate) fn supposes_failing(&self, node: &Str) -> bool {
        self.unknown().contains("Node") && self.supposes(Supposition::NodeFails(node.clone()))
    }

    fn supposes(&self, supposition: Supposition) -> bool {
        note(Fact::Readings);
        let supposed = self.supposed.contains(&supposition);
        ask_again(&BTreeSet::from([supposition]));
        supposed
    }
}
