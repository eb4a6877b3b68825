//! The ledger: requests that were admitted and that the watch has not shown yet. Each may have landed or not.
//!
//! | an entry ends when | because |
//! |---|---|
//! | its object is observed as it wrote it (or gone, for a deletion) | its effect is part of the state now |
//! | the watch shows a version of its object that excludes it | it can land no more |
//! | a pod whose containers restart for it is not ready | the restart has begun, and readiness tells the rest |
//! | it has been in flight for too long | a watch that lags longer counts as not synced, which is another question |
//!
//! A newer write to the same object does not end it: that one may not have landed either. A repetition of the same
//! request (an eviction that is tried again) takes the place of the one before.
//!
//! Every admission of a write is for one version of the object: the API server checks again, with a new call, when the
//! object has changed in between (`apiserver/pkg/storage/etcd3/store.go`, `GuaranteedUpdate` and `conditionalDelete`;
//! `registry/generic/registry/store.go` validates inside them). So whatever follows that version contains the write or
//! excludes it, and resourceVersions of one resource can be compared (KEP-5504).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::access::Access;
use suture_model::change::{Operation, Request};
use suture_model::kinds::Kind;
use suture_model::object::{Key, Object};
use suture_model::snapshot::{FactIndex, Facts, Snapshot};
use suture_model::value::Str;

pub use self::room::Load;
use self::room::Room;
use crate::clock::Clock;

/// How long a change may be in flight where nothing else is said. An API server gives up on a request after 60 s, watches
/// reconnect and resume within a few minutes; what is not seen by then was not stored.
pub const IN_FLIGHT_SECONDS_MAX: i128 = 300;

/// How long a request that does not say which object it is for counts as in flight at least: longer than a watch that is
/// not called stale usually lags, so that the object it is for has been shown.
const BLIND_SECONDS_MIN: i128 = 5;

/// The admitted and unseen requests, oldest first. They are found by the facts that they may change
/// ([`suture_model::access`]).
///
/// Who reads the ledger beside a view of the cluster goes on with that view while the ledger goes on with later ones. An
/// entry that a later view ends is still in flight for that reader, so it is kept until the reader is done.
#[derive(Clone, Debug)]
pub struct Ledger {
    entries: BTreeMap<u64, Entry>,
    /// Entries by the facts that they may change, and by those that they read as they land.
    by_write: FactIndex,
    by_read: FactIndex,
    /// Entries that may change any fact.
    unbounded: BTreeSet<u64>,
    /// The latest view so far: the entries' accesses hold by it.
    latest: Option<Snapshot>,
    /// How many readers there are of views with this last event.
    readers: BTreeMap<u64, usize>,
    /// The entries that have ended, by the event that ended them.
    ended: BTreeSet<(u64, u64)>,
    /// What authors and namespaces take of it.
    room: Room,
    /// The place that the next one gets.
    next: u64,
    lifetime_seconds: i128,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::lasting(IN_FLIGHT_SECONDS_MAX)
    }
}

/// An admitted request.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The request.
    pub request: Arc<Request>,
    /// The uid of its object when it was admitted; empty when there was none.
    uid: Str,
    admitted: Option<Clock>,
    /// Whether containers of a pod restart for it, which goes on after it is observed.
    restarts: bool,
    /// Its place in the order of admission.
    pub order: u64,
    access: Access,
    /// What it takes of the ledger.
    load: Load,
    /// The last event of the view that ended it.
    ended_at: Option<u64>,
}

/// What the watch shows, and how it is known what that covers.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// What it shows.
    pub snapshot: &'a Snapshot,
    /// How far it has come.
    pub progress: Progress<'a>,
}

/// How far a watch has come.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// These objects were written by the last observation: a suite's state, which may have no resourceVersions.
    Written(&'a [Key]),
    /// All that happened to a kind up to this resourceVersion is shown.
    Positions(&'a BTreeMap<Kind, u64>),
}

impl Ledger {
    /// A ledger whose entries end after so many seconds.
    pub fn lasting(lifetime_seconds: i128) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_write: FactIndex::default(),
            by_read: FactIndex::default(),
            unbounded: BTreeSet::new(),
            latest: None,
            readers: BTreeMap::new(),
            ended: BTreeSet::new(),
            room: Room::default(),
            next: 0,
            lifetime_seconds,
        }
    }

    /// Records an admitted request. Dry runs store nothing.
    pub fn record(&mut self, request: &Request, snapshot: &Snapshot, now: Option<Clock>) {
        if !request.dry_run {
            let access = self.access(snapshot, self.next, request);
            self.record_entry(self.entry(request, access, snapshot, now), snapshot);
        }
    }

    /// The next entry, of an admitted request whose access by this snapshot is known.
    pub fn entry(&self, request: &Request, access: Access, snapshot: &Snapshot, now: Option<Clock>) -> Entry {
        Entry { access, ..Entry::new(self.next, request, snapshot, now) }
    }

    /// Records the next entry.
    pub fn record_entry(&mut self, entry: Entry, snapshot: &Snapshot) {
        let repeated: Vec<u64> =
            self.entries.values().filter(|known| known.repeated_by(&entry)).map(|known| known.order).collect();
        repeated.into_iter().for_each(|order| self.withdraw(order));
        self.enter(entry, snapshot);
    }

    /// Records a request that others may see too, at its place in the order that all agree on. Repetitions are kept:
    /// somebody may have decided between them.
    pub fn record_at(&mut self, order: u64, request: &Request, snapshot: &Snapshot, now: Option<Clock>) {
        let access = self.access(snapshot, order, request);
        self.enter(Entry { access, ..Entry::new(order, request, snapshot, now) }, snapshot);
    }

    /// Whether the author of a request and its namespace may have one more in flight.
    pub fn has_room(&self, load: &Load) -> bool {
        self.room.has(load)
    }

    /// Takes back an entry by its place in the order: it was refused after all.
    pub fn withdraw(&mut self, order: u64) {
        if let Some(entry) = self.entries.remove(&order) {
            self.unindex(&entry);
            self.room.give_back(&entry.load);
            if let Some(at) = entry.ended_at {
                self.ended.remove(&(at, order));
            }
        }
    }

    /// The requests in flight, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.entries().map(|entry| (*entry.request).clone()).collect()
    }

    /// The place in the order that the next recorded request gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What is in flight, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(|entry| entry.ended_at.is_none())
    }

    /// What is in flight from a place in the order on, oldest first.
    pub fn since(&self, place: u64) -> impl Iterator<Item = &Entry> {
        self.entries.range(place..).map(|(_, entry)| entry).filter(|entry| entry.ended_at.is_none())
    }

    /// Begins to read beside this view: what is in flight for it stays until that is [over](Self::end).
    pub fn begin(&mut self, snapshot: &Snapshot) -> u64 {
        self.follow(snapshot);
        let at = snapshot.last_event();
        *self.readers.entry(at).or_default() += 1;
        at
    }

    /// Ends what was [begun](Self::begin).
    pub fn end(&mut self, at: u64) {
        if let Some(readers) = self.readers.get_mut(&at) {
            *readers -= 1;
            if *readers == 0 {
                self.readers.remove(&at);
                self.purge();
            }
        }
    }

    /// What was in flight at a view with this last event, oldest first.
    pub fn at(&self, event: u64) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(move |entry| entry.ended_at.is_none_or(|at| at > event))
    }

    /// Of what was in flight at a view with this last event, all that may change one of these facts, oldest first.
    pub fn writers(&self, facts: &Facts, event: u64) -> impl Iterator<Item = &Entry> {
        let mut found = self.by_write.find(facts);
        found.extend(&self.unbounded);
        let found = found.into_iter().filter_map(|order| self.entries.get(&order));
        found.filter(move |entry| entry.ended_at.is_none_or(|at| at > event))
    }

    /// Ends what the watch has shown, and what is in flight for too long; gives the places of what ended.
    pub fn observe(&mut self, sight: Sight<'_>, now: Option<Clock>) -> Vec<u64> {
        let (lifetime, at) = (self.lifetime_seconds, sight.snapshot.last_event());
        let mut ended = Vec::new();
        for entry in self.entries.values_mut().filter(|entry| entry.ended_at.is_none()) {
            if entry.ended(sight, now) || entry.older(now, lifetime) {
                entry.ended_at = Some(at);
                self.ended.insert((at, entry.order));
                ended.push(entry.order);
            }
        }
        self.purge();
        self.follow(sight.snapshot);
        ended
    }

    /// Lets go of what has ended for every reader.
    fn purge(&mut self) {
        let oldest = self.readers.keys().next().copied().unwrap_or(u64::MAX);
        while let Some((_, order)) = self.ended.first().copied().filter(|(at, _)| *at <= oldest) {
            self.withdraw(order);
        }
    }

    /// Finds the accesses anew that events up to this view have changed.
    fn follow(&mut self, snapshot: &Snapshot) {
        let known = self.latest.as_ref().map_or(0, Snapshot::last_event);
        if snapshot.last_event() <= known {
            return;
        }
        let stale = match snapshot.changed_since(known) {
            Some(changed) => self.by_read.find(&changed),
            None => self.entries.keys().copied().collect(),
        };
        for order in stale {
            if let Some(mut entry) = self.entries.remove(&order) {
                self.unindex(&entry);
                self.find_again(&mut entry, snapshot);
                self.index(entry);
            }
        }
        self.latest = Some(snapshot.clone());
    }

    /// Finds the access of an entry by this view. Readers of earlier views find it by what it wrote then, too.
    fn find_again(&self, entry: &mut Entry, snapshot: &Snapshot) {
        let access = self.access(snapshot, entry.order, &entry.request);
        let known = std::mem::replace(&mut entry.access, access);
        if !self.readers.is_empty() {
            entry.access.widen(&known);
        }
    }

    fn access(&self, snapshot: &Snapshot, order: u64, request: &Request) -> Access {
        let event = snapshot.last_event();
        Access::of(snapshot, request, |facts| {
            let before = self.writers(facts, event).take_while(|entry| entry.order < order);
            before.map(|entry| entry.request.clone()).collect()
        })
    }

    /// Enters an entry whose access was found by this view.
    fn enter(&mut self, mut entry: Entry, snapshot: &Snapshot) {
        self.follow(snapshot);
        if let Some(latest) = &self.latest {
            let changed = latest.changed_since(snapshot.last_event());
            if changed.is_none_or(|changed| changed.meets(&entry.access.reads)) {
                self.find_again(&mut entry, latest);
            }
        }
        self.next = self.next.max(entry.order + 1);
        self.room.take(&entry.load);
        self.index(entry);
    }

    fn index(&mut self, entry: Entry) {
        let (order, Access { reads, writes, .. }) = (entry.order, &entry.access);
        self.by_read.insert(reads, order);
        if let Some(writes) = writes {
            self.by_write.insert(writes, order);
        } else {
            self.unbounded.insert(order);
        }
        self.entries.insert(order, entry);
    }

    fn unindex(&mut self, entry: &Entry) {
        let (order, Access { reads, writes, .. }) = (entry.order, &entry.access);
        self.by_read.remove(reads, order);
        if let Some(writes) = writes {
            self.by_write.remove(writes, order);
        } else {
            self.unbounded.remove(&order);
        }
    }
}

impl Entry {
    fn new(order: u64, request: &Request, snapshot: &Snapshot, now: Option<Clock>) -> Self {
        let uid = snapshot.get(&request.target).map_or_else(|| "".into(), |object| object.uid.clone());
        Self {
            request: Arc::new(request.clone()),
            uid,
            admitted: now,
            restarts: request.restarts_pod(),
            order,
            access: Access::default(),
            load: Load::of(request),
            ended_at: None,
        }
    }

    /// What it takes of the ledger.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// Whether the watch has shown a version of its object that contains it or excludes it.
    pub fn ended(&self, sight: Sight<'_>, now: Option<Clock>) -> bool {
        let present = sight.snapshot.get(&self.request.target).map(|object| &**object);
        match sight.progress {
            Progress::Written(keys) => self.written(present, keys),
            Progress::Positions(_) if self.blind() && !self.older(now, BLIND_SECONDS_MIN) => false,
            Progress::Positions(positions) => self.passed(present, sight.snapshot, positions),
        }
    }

    /// [`Self::ended`] where the objects that an observation writes are all that is known.
    fn written(&self, present: Option<&Object>, keys: &[Key]) -> bool {
        if removes(&self.request) {
            return present.is_none_or(|object| object.uid != self.uid || object.terminating());
        }
        match present {
            Some(object) => keys.contains(&self.request.target) && !self.is_restarting(object),
            // written and gone again; what was not made yet may still come
            None => self.request.operation != Operation::Create,
        }
    }

    /// [`Self::ended`] by resourceVersions. What is not known keeps the entry.
    fn passed(&self, present: Option<&Object>, snapshot: &Snapshot, positions: &BTreeMap<Kind, u64>) -> bool {
        let request = &self.request;
        let version = |text: &Str| text.parse::<u64>().ok();
        let then = text(request.old.as_ref(), "resourceVersion").and_then(version);
        let newer = |object: &Object| version(&object.resource_version).zip(then).is_some_and(|(now, then)| now > then);
        let uid = self.object_uid();
        let was_shown = !self.uid.is_empty() && uid == Some(&self.uid);
        // the watch has shown the version that the request is for, and the object is not there now
        let reached = positions.get(&request.target.kind).zip(then).is_some_and(|(now, then)| *now >= then);
        let gone = reached || was_shown;
        match (request.operation, &*request.subresource) {
            (Operation::Delete, _) | (Operation::Create, "eviction") => match present {
                None => gone && !self.works_on(snapshot, None),
                Some(object) if Some(&object.uid) == uid => {
                    object.terminating() && !self.works_on(snapshot, Some(object))
                }
                Some(object) => newer(object) || was_shown,
            },
            (Operation::Create, "") => match (present, text(request.object.as_ref(), "uid")) {
                // the API server has given it its uid already (`registry/rest/create.go`, `BeforeCreate`)
                (Some(object), Some(uid)) => object.uid == *uid,
                (Some(object), None) => object.uid != self.uid,
                // what was not made yet may still come
                (None, _) => false,
            },
            (Operation::Create, "binding") => match present {
                // another one of that name has come since, or goes before the one that is meant
                Some(object) if uid.is_some_and(|uid| object.uid != *uid) => was_shown,
                Some(object) => !object.node.is_empty(),
                None => gone,
            },
            (Operation::Update, _) => present.map_or(gone, |object| newer(object) && !self.is_restarting(object)),
            _ => false,
        }
    }

    /// Whether a pod is written, and its containers may still have to restart.
    fn is_restarting(&self, pod: &Object) -> bool {
        self.restarts && self.request.restarts_still(pod)
    }

    /// Whether the request does not say which object of its name it is for: an eviction or binding without a
    /// precondition. The one that the watch showed may have been replaced already.
    fn blind(&self) -> bool {
        self.request.old.is_none()
            && self.request.operation == Operation::Create
            && !self.request.subresource.is_empty()
            && self.request.preconditions.uid.is_none()
    }

    /// The uid of the object that is written or removed: as the request says, else as the watch showed it.
    fn object_uid(&self) -> Option<&Str> {
        let asked = self.request.preconditions.uid.as_ref();
        let shown = text(self.request.old.as_ref(), "uid");
        shown.or(asked).or(Some(&self.uid)).filter(|uid| !uid.is_empty())
    }

    /// Whether an operator goes on deleting when the object (or what it was) goes.
    fn works_on(&self, snapshot: &Snapshot, object: Option<&Object>) -> bool {
        let old = || self.request.old.as_ref().and_then(|old| Object::from_val(old).ok());
        let facts = match object {
            Some(object) => snapshot.adapter(object),
            None => old().and_then(|object| snapshot.adapter(&object)),
        };
        facts.is_some_and(|facts| facts.cascades || facts.deletes_volumes)
    }

    fn older(&self, now: Option<Clock>, seconds: i128) -> bool {
        let age = now.zip(self.admitted).map(|(now, admitted)| now.seconds_since(admitted));
        age.is_some_and(|age| age > seconds)
    }

    /// Whether a later entry asks for the very same: then whichever of them lands, the effect is the same.
    pub fn repeated_by(&self, later: &Self) -> bool {
        let (one, other) = (&self.request, &later.request);
        if other.repeats(one) {
            return true;
        }
        removes(one)
            && one.operation == other.operation
            && one.subresource == other.subresource
            && one.target == other.target
            && one.propagation == other.propagation
            && self.object_uid().is_some()
            && self.object_uid() == later.object_uid()
    }
}

/// Whether a request asks for an object to go.
fn removes(request: &Request) -> bool {
    request.operation == Operation::Delete || request.subresource == "eviction"
}

fn text<'v>(object: Option<&'v suture_model::value::Val>, field: &str) -> Option<&'v Str> {
    object?.str_at(&["metadata", field]).filter(|text| !text.is_empty())
}

mod room;

#[cfg(test)]
mod tests;
