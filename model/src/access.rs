//! What a request in flight reads and writes: by that, decisions are independent of it or not.
//!
//! This is optimistic concurrency control with predicate reads (Kung and Robinson 1981; Eswaran et al. 1976, section 3).
//! The items are the facts that a snapshot names ([`crate::snapshot::Facts`]): objects, and the keys of its indexes, so that
//! an object that comes under a key conflicts with whoever looked under that key and found nothing.
//!
//! A decision is a function of the facts that it reads. An entry that writes none of them leaves it as it is, landed or not.
//! What an entry writes depends on what it reads itself as it lands, and on which others landed before it:
//!
//! | what may change what an entry writes | who reckons with it |
//! |---|---|
//! | another one that was in flight when it was entered | its access is found with all those that write what it reads |
//! | another one that is entered later | that one writes less or more then, which is its own access |
//! | an event that the watch shows | its access is found again when the event changed a fact that it reads |

use std::sync::Arc;

use crate::change::Request;
use crate::land::changes;
use crate::snapshot::{Facts, Snapshot};

/// The read set and the write set of a request, as it lands.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The facts from which follows what it does.
    pub reads: Facts,
    /// The facts that it may change; `None` where that is not known, so that it may change any.
    pub writes: Option<Facts>,
    /// Whether it changes other objects than the one that it names.
    pub spreads: bool,
}

impl Access {
    /// That of a request which lands after some of those that `writers` finds: all in flight before it that may change one
    /// of these facts, oldest first.
    pub fn of(snapshot: &Snapshot, request: &Request, mut writers: impl FnMut(&Facts) -> Vec<Arc<Request>>) -> Self {
        let mut before: Vec<Arc<Request>> = Vec::new();
        loop {
            let in_flight: Vec<&Request> = before.iter().map(Arc::as_ref).collect();
            let (changed, reads) = Facts::read_by(|| changes(snapshot, &in_flight, request));
            let Ok(changed) = changed else { return Self { reads, writes: None, spreads: true } };
            let found = writers(&reads);
            if found.len() > before.len() {
                before = found;
                continue;
            }
            let mut writes = Facts::default();
            for (before, after) in &changed {
                writes.extend(&snapshot.facts_between(before.as_deref(), after.as_deref()));
            }
            let mut objects = changed.iter().flat_map(|(before, after)| before.iter().chain(after));
            let spreads = objects.any(|object| object.key != request.target);
            return Self { reads, writes: Some(writes), spreads };
        }
    }

    /// Adds what another one reads and writes.
    pub fn widen(&mut self, other: &Self) {
        self.reads.extend(&other.reads);
        match (&mut self.writes, &other.writes) {
            (Some(writes), Some(others)) => writes.extend(others),
            (writes, _) => *writes = None,
        }
        self.spreads |= other.spreads;
    }
}
