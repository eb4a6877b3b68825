//! What changed from one snapshot to the next.

use std::collections::BTreeSet;

use super::Snapshot;
use crate::object::Key;

impl Snapshot {
    /// The keys of the objects that this one, a later version of `old`, has otherwise, or that but one of them has: in the time
    /// that it takes to look at what they do not share. `None` where it reads objects otherwise, by other adapters or of other
    /// kinds.
    pub fn objects_changed_since(&self, old: &Self) -> Option<BTreeSet<Key>> {
        let same = std::ptr::addr_eq(self.adapters.as_ref(), old.adapters.as_ref())
            && self.unknown == old.unknown
            && self.supposed == old.supposed;
        same.then(|| self.places.differing(&old.places).map(|object| object.key.clone()).collect())
    }
}
