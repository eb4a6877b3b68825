//! What lacks pods, what is going, and what objects name although it is not there: the nodes of pods, and owners.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Snapshot;
use super::facts::{Fact, Facts, note};
use super::lacking::{Lacks, Mark, marks};
use super::places::Slot;
use crate::object::{Key, Object};
use crate::steps;
use crate::value::Str;

impl Snapshot {
    /// Notes what may lack pods, or no more, as an object becomes another one, comes or goes; says whether anything may.
    pub(super) fn mark_lacking(&mut self, key: &Key, new: Option<&Object>) -> bool {
        let marks = self.lacking_marks(self.get_unread(key).map(|old| &**old), new);
        let differs = !marks.is_empty();
        self.lacking.mark(marks);
        differs
    }

    /// What may lack pods, or no more, when an object becomes another one, comes or goes.
    pub(super) fn lacking_marks(&self, old: Option<&Object>, new: Option<&Object>) -> Vec<Mark> {
        marks(old, new, self.adapters.as_ref(), |uid| self.by_owner.get(uid).is_some())
    }

    /// Those of the workloads of [`super::lacking_kinds`] that lack pods, as `find` says by those that did and what has changed
    /// since.
    pub fn lacking(&self, find: impl FnOnce(Option<&Lacks>, &BTreeSet<Mark>) -> Lacks) -> &Arc<Lacks> {
        note(Fact::Lacking);
        self.lacking.get(|before, marks| Facts::aside(|| steps::aside(|| find(before, marks))))
    }

    /// The names of nodes that were taken out while pods were assigned to them, as long as these are there. A node that pods
    /// only ever named is not among them.
    pub fn missing_nodes(&self) -> &BTreeSet<Str> {
        note(Fact::Nodes);
        &self.missing_nodes
    }

    /// The uids that objects name as their owners' and that no object has.
    pub fn missing_owners(&self) -> &BTreeSet<Str> {
        note(Fact::Orphans);
        &self.missing_owners
    }

    /// Notes whether a node is missing from now on.
    pub(super) fn miss(&mut self, node: &Str, misses: bool, event: u64) {
        if set(&mut self.missing_nodes, node, misses) {
            self.journal.note(event, Fact::Nodes);
        }
    }

    /// Notes which owners are missing from now on, and which not.
    pub(super) fn orphan(&mut self, owners: Vec<(Str, bool)>, event: u64) {
        for (uid, misses) in owners {
            if !uid.is_empty() && set(&mut self.missing_owners, &uid, misses) {
                self.journal.note(event, Fact::Orphans);
            }
        }
    }

    /// The object of a key, for the indexes themselves.
    pub(super) fn get_unread(&self, key: &Key) -> Option<&Arc<Object>> {
        self.by_key.get(key).and_then(|slot| self.at(*slot))
    }

    /// Where the object of a uid is.
    pub(super) fn named_uid(&self, uid: &str) -> Option<Slot> {
        self.by_uid.find(uid).find(|slot| self.at(**slot).is_some_and(|object| *object.uid == *uid)).copied()
    }
}

/// Puts a name among the missing ones, or takes it out; says whether that changes anything. What others share is not copied
/// otherwise.
fn set(missing: &mut Arc<BTreeSet<Str>>, name: &Str, misses: bool) -> bool {
    let changes = misses != missing.contains(name);
    if changes {
        let missing = Arc::make_mut(missing);
        if misses {
            missing.insert(name.clone())
        } else {
            missing.remove(name)
        };
    }
    changes
}
