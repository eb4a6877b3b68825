//! The ledger: requests that were admitted and that the watch has not shown yet. Each may have landed or not.
//!
//! | an entry ends when | because |
//! |---|---|
//! | its object is observed as it wrote it (or gone, for a deletion) | its effect is part of the state now |
//! | five minutes have passed | a watch that lags longer counts as not synced, which is another question |
//!
//! A newer write to the same object does not end it: that one may not have landed either.

use suture_model::change::{Operation, Request};
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;

use super::clock::Clock;

/// How long a change may be in flight. An API server gives up on a request after 60 s, watches reconnect and resume
/// within a few minutes; what is not seen by then was not stored.
const IN_FLIGHT_SECONDS_MAX: i128 = 300;

/// The admitted and unseen requests, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    request: Request,
    /// The uid of its object when it was admitted; empty when there was none.
    uid: String,
    admitted: Option<Clock>,
}

impl Ledger {
    /// Records an admitted request. Dry runs store nothing.
    pub fn record(&mut self, request: &Request, snapshot: &Snapshot, now: Option<Clock>) {
        if !request.dry_run {
            let uid = snapshot.get(&request.target).map_or_else(String::new, |object| object.uid.to_string());
            self.entries.push(Entry { request: request.clone(), uid, admitted: now });
        }
    }

    /// What is in flight.
    pub fn requests(&self) -> Vec<Request> {
        self.entries.iter().map(|entry| entry.request.clone()).collect()
    }

    /// Drops what the watch has shown (`shown` are the keys that it wrote, `snapshot` is what it shows now), and what is
    /// in flight for too long.
    pub fn observe(&mut self, shown: &[Key], snapshot: &Snapshot, now: Option<Clock>) {
        self.entries.retain(|entry| !entry.seen(shown, snapshot) && !entry.expired(now));
    }
}

impl Entry {
    fn seen(&self, shown: &[Key], snapshot: &Snapshot) -> bool {
        let present = snapshot.get(&self.request.target);
        if self.request.removes() {
            return present.is_none_or(|object| *object.uid != *self.uid || object.terminating());
        }
        match present {
            Some(_) => shown.contains(&self.request.target),
            // written and gone again; what was not made yet may still come
            None => self.request.operation != Operation::Create,
        }
    }

    fn expired(&self, now: Option<Clock>) -> bool {
        let age = now.zip(self.admitted).map(|(now, admitted)| now.seconds_since(admitted));
        age.is_some_and(|age| age > IN_FLIGHT_SECONDS_MAX)
    }
}

/// Whether a request asks for an object to go.
trait Removes {
    fn removes(&self) -> bool;
}

impl Removes for Request {
    fn removes(&self) -> bool {
        self.operation == Operation::Delete || self.subresource == "eviction"
    }
}

#[cfg(test)]
mod tests;
