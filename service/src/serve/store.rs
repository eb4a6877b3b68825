//! The live cluster: one writer applies what the watches show, readers take a consistent view in no time.
//!
//! Readers hold the published view for as long as they like. The writer takes a copy of it, which shares everything with
//! it at first, changes that, and publishes it: the two then differ in what was changed and in little beside it
//! ([`Snapshot`]). Nobody waits for anybody.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use suture_model::intern::Interner;
use suture_model::kinds::Kind;
use suture_model::object::{Key, Object};
use suture_model::snapshot::Snapshot;
use suture_specs::compile::CompiledInvariant;

use super::loaded::Loaded;
use crate::decide::Unread;
use crate::ledger::{Progress, Sight};
use crate::rules;

/// Parts of objects that may be left over before they are looked for, beside one for each object.
const LEFT_OVER_MAX: usize = 4_096;

/// The label of roles that Suture's own one aggregates.
pub const AGGREGATED: &str = "suture.dev/aggregate-to-read";

/// Why nothing is known of a kind of which only an owner was named so far.
const UNHEARD: &str = "it owns something, and is not listed yet";

/// What is known of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Its objects are as the watch shows them.
    Known,
    /// The API server has no such kind: there are no objects.
    Absent,
    /// Nothing is known of it, or what is known is old; why.
    Unknown(String),
    /// Nothing is known of it, since this account may not list and watch this resource (`widgets.example.com`).
    Forbidden(String),
}

impl Reading {
    /// Why nothing certain is known; none if it is.
    pub fn missing(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Known | Self::Absent => None,
            Self::Unknown(why) => Some(Cow::Borrowed(why)),
            Self::Forbidden(resource) => Some(Cow::Owned(lacks(resource))),
        }
    }
}

/// What this account lacks to read a resource, and how it is granted: the role that `suture manifests rbac` prints
/// aggregates whatever bears the label.
pub fn lacks(resource: &str) -> String {
    format!(
        "`{resource}` may not be listed and watched; kubectl create clusterrole suture-read-{resource} \
         --verb=get,list,watch --resource={resource} && kubectl label clusterrole suture-read-{resource} {AGGREGATED}=true"
    )
}

/// One consistent state of everything that a decision reads.
#[derive(Clone, Debug)]
pub struct View {
    /// The objects.
    pub snapshot: Snapshot,
    /// What decisions are made by. The snapshot's adapters are these.
    pub loaded: Arc<Loaded>,
    /// What is known of each kind that is wanted.
    pub readings: Arc<BTreeMap<Kind, Reading>>,
    /// Up to which resourceVersion each kind is shown.
    pub positions: BTreeMap<Kind, u64>,
    /// Whether all kinds that the cluster serves are among the wanted ones.
    pub every: bool,
}

impl View {
    /// What the watch shows, as the ledger asks for it.
    pub fn sight(&self) -> Sight<'_> {
        Sight { snapshot: &self.snapshot, progress: Progress::Positions(&self.positions) }
    }

    /// What is not known, in words; empty when everything that is wanted is. What may not be read is not waited for, unless
    /// every decision needs it: nobody may ever grant it, and what reads it is undecided.
    pub fn unread(&self) -> Vec<String> {
        let needed = rules::always();
        let waits = |kind: &Kind, reading: &Reading| !matches!(reading, Reading::Forbidden(_)) || needed.contains(kind);
        let unknown = self.readings.iter().filter(|(kind, reading)| self.is_read(kind) && waits(kind, reading));
        let unknown = unknown.filter_map(|(kind, reading)| Some(format!("{kind}: {}", reading.missing()?)));
        let unsurveyed = self.unsurveyed().then(|| "the kinds of the cluster are not listed yet".to_owned());
        unknown.chain(unsurveyed).collect()
    }

    /// Whether anything depends on a kind but what a definition says of its scale.
    fn is_read(&self, kind: &Kind) -> bool {
        !self.loaded.beside.contains(kind) || self.snapshot.owns(kind)
    }

    /// The same with an object as it is known to be by now.
    pub fn showing(&self, object: Object) -> Self {
        let mut view = self.clone();
        view.apply(Change::Put(Arc::new(object)));
        view
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Put(object) => {
                self.mark_owners(&object);
                let has_beside = object.owners().iter().any(|owner| self.loaded.beside.contains(&owner.kind));
                self.snapshot.insert_shared(object);
                if has_beside {
                    self.mark_unknown();
                }
            }
            Change::Remove(key) => drop(self.snapshot.remove(&key)),
            Change::Retain(kind, kept) => {
                let listed = self.snapshot.list(&kind, None).into_iter().map(|object| object.key.clone());
                let gone: Vec<Key> = listed.filter(|key| !kept.contains(key)).collect();
                gone.iter().for_each(|key| drop(self.snapshot.remove(key)));
            }
            Change::Position(kind, version) => {
                let at = self.positions.entry(kind).or_default();
                *at = (*at).max(version);
            }
            Change::Read(kind, reading) => {
                self.readings_mut().insert(kind, reading);
                self.mark_unknown();
            }
            Change::Forget(kind) => {
                self.readings_mut().remove(&kind);
                self.positions.remove(&kind);
                self.apply(Change::Retain(kind.clone(), BTreeSet::new()));
                if self.snapshot.owns(&kind) {
                    self.readings_mut().insert(kind, Reading::Unknown(UNHEARD.to_owned()));
                }
                self.mark_missing();
            }
            Change::Load(loaded) => {
                if !Arc::ptr_eq(self.snapshot.adapters(), &loaded.policy.adapters) {
                    self.snapshot = self.snapshot.with_adapters(loaded.policy.adapters.clone());
                }
                self.loaded = loaded;
                self.mark_missing();
            }
            Change::Every => self.every = true,
        }
    }

    /// The invariants that read a kind of which nothing certain is known, each with what that is. Objects that were
    /// shown once may be old, and those of a kind that was never listed are none that anything could be judged by.
    pub fn blind(&self) -> Vec<Unread> {
        self.missing(|_| true, |_| true)
    }

    /// Those of them about which nothing can be said of a request in this namespace, whatever it reaches. Of a kind that may
    /// not be read there are no objects that could be old: the snapshot says that it is unknown, and what reads it is
    /// undecided. By the same a NamespacedInvariant is judged for requests that lie elsewhere, which reach little of it.
    pub fn unclear(&self, ns: &str) -> Vec<Unread> {
        let is_old = |reading: &Reading| !matches!(reading, Reading::Forbidden(_));
        self.missing(is_old, |invariant| invariant.namespaced.as_ref().is_none_or(|own| **own == *ns))
    }

    /// The invariants, of these, that read a kind of which nothing certain is known, among these readings.
    fn missing(&self, among: impl Fn(&Reading) -> bool, is_asked: impl Fn(&CompiledInvariant) -> bool) -> Vec<Unread> {
        let unknown: Vec<(&Kind, &Reading)> =
            self.readings.iter().filter(|(_, reading)| reading.missing().is_some() && among(reading)).collect();
        if unknown.is_empty() && !self.unsurveyed() {
            return Vec::new();
        }
        let invariants = self.loaded.policy.invariants.iter().zip(&self.loaded.reads);
        let blind = invariants.filter(|(invariant, _)| is_asked(invariant)).filter_map(|(invariant, reads)| {
            let read = |kind: &Kind, reading: &Reading| {
                reads.kinds.contains(kind) || (reads.every && !matches!(reading, Reading::Forbidden(_)))
            };
            let found = unknown.iter().find(|(kind, reading)| read(kind, reading));
            let why = match found {
                Some((kind, reading)) => {
                    format!("objects of kind `{kind}` were not read ({})", reading.missing().unwrap_or_default())
                }
                None if reads.every && self.unsurveyed() => "the kinds of the cluster were not read yet".to_owned(),
                None => return None,
            };
            Some((invariant.clone(), why))
        });
        blind.collect()
    }

    /// What is known of the kinds, to be changed; most changes of a view leave it as it is.
    fn readings_mut(&mut self) -> &mut BTreeMap<Kind, Reading> {
        Arc::make_mut(&mut self.readings)
    }

    /// A kind that is read from now on and that nothing was heard of yet is not absent.
    fn mark_missing(&mut self) {
        let readings = Arc::make_mut(&mut self.readings);
        for kind in &self.loaded.wanted.kinds {
            if !readings.contains_key(kind) {
                readings.insert(kind.clone(), Reading::Unknown("not listed yet".to_owned()));
            }
        }
        self.mark_unknown();
    }

    /// An owner of a kind that nothing was heard of is not gone: from the next round on its kind is wanted.
    fn mark_owners(&mut self, object: &Object) {
        let unheard = object.owners().iter().map(|owner| &owner.kind).filter(|kind| !self.readings.contains_key(*kind));
        let unheard: Vec<Kind> = unheard.cloned().collect();
        if !unheard.is_empty() {
            let why = Reading::Unknown(UNHEARD.to_owned());
            self.readings_mut().extend(unheard.into_iter().map(|kind| (kind, why.clone())));
            self.mark_unknown();
        }
    }

    /// The kinds of which something names an owner: each has been marked by then.
    pub fn owners(&self) -> impl Iterator<Item = &Kind> {
        self.readings.keys().filter(|kind| self.snapshot.owns(kind))
    }

    /// The kinds of owners that were seen before anybody wanted them: to be wanted, though the owned may be gone by now.
    pub fn unheard(&self) -> impl Iterator<Item = &Kind> {
        let unheard = |reading: &Reading| matches!(reading, Reading::Unknown(why) if why == UNHEARD);
        self.readings.iter().filter(move |(_, reading)| unheard(reading)).map(|(kind, _)| kind)
    }

    /// Whether every kind is read, and which kinds there are is not known yet.
    pub fn unsurveyed(&self) -> bool {
        self.loaded.wanted.every && !self.every
    }

    /// A snapshot knows kinds by their short names: if one kind of a name is unknown, all are.
    fn mark_unknown(&mut self) {
        let unknown = self.readings.iter().filter(|(kind, reading)| reading.missing().is_some() && self.is_read(kind));
        self.snapshot.set_unknown(unknown.map(|(kind, _)| kind.kind.clone()).collect());
    }
}

/// One thing that the writer does.
#[derive(Clone, Debug)]
pub enum Change {
    /// The object is so now; see [`Store::shared`].
    Put(Arc<Object>),
    /// The object is gone.
    Remove(Key),
    /// Of a kind there are these objects at most: the end of a list.
    Retain(Kind, BTreeSet<Key>),
    /// All that happened to a kind up to this resourceVersion has been shown.
    Position(Kind, u64),
    /// What is known of a kind.
    Read(Kind, Reading),
    /// The kind is wanted no more.
    Forget(Kind),
    /// All kinds that the cluster serves have been named.
    Every,
    /// Other invariants, adapters and exemptions.
    Load(Arc<Loaded>),
}

impl Change {
    /// The kind whose objects may become more or fewer by it.
    fn kind(&self) -> Option<&Kind> {
        match self {
            Self::Put(object) => Some(&object.key.kind),
            Self::Remove(key) => Some(&key.kind),
            Self::Retain(kind, _) | Self::Forget(kind) => Some(kind),
            Self::Position(..) | Self::Read(..) | Self::Every | Self::Load(_) => None,
        }
    }
}

/// The live cluster.
#[derive(Debug)]
pub struct Store {
    published: ArcSwap<View>,
    writer: Mutex<Writer>,
}

#[derive(Debug, Default)]
struct Writer {
    interner: Interner,
    swept_len: usize,
    /// How many objects there are of each kind that there ever were any of.
    counts: BTreeMap<Kind, usize>,
}

impl Store {
    /// An empty cluster of which nothing is wanted yet.
    pub fn new(loaded: Arc<Loaded>) -> Self {
        let snapshot = Snapshot::new(loaded.policy.adapters.clone());
        let (readings, positions) = (Arc::default(), BTreeMap::new());
        let mut view = View { snapshot, loaded, readings, positions, every: false };
        view.mark_missing();
        Self { published: ArcSwap::from_pointee(view), writer: Mutex::default() }
    }

    /// The present view.
    pub fn read(&self) -> Arc<View> {
        self.published.load_full()
    }

    /// How many objects of a kind have been put and are still there.
    pub fn count(&self, kind: &Kind) -> usize {
        self.writer().counts.get(kind).copied().unwrap_or_default()
    }

    /// An object to be put, whose parts are those of equal ones seen before. What is read into it is let go at once, so
    /// that what stays lies close together.
    pub fn shared(&self, object: Object) -> Arc<Object> {
        let view = self.read();
        let before = view.snapshot.get(&object.key).map(|before| &**before);
        Arc::new(self.writer().interner.object_after(object, before))
    }

    /// Makes changes and publishes them together.
    pub fn write(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut writer = self.writer();
        let mut view = View::clone(&self.read());
        for change in changes {
            let kind = change.kind().cloned();
            let before = view.snapshot.len();
            view.apply(change);
            if let Some(kind) = kind.filter(|_| view.snapshot.len() != before) {
                let count = writer.counts.entry(kind).or_default();
                *count = (*count + view.snapshot.len()).saturating_sub(before);
            }
        }
        let objects = view.snapshot.len();
        self.published.store(Arc::new(view));
        writer.sweep(objects);
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Lets go of parts of objects that are no more, now and then.
    fn sweep(&mut self, objects: usize) {
        if self.interner.len() > self.swept_len + self.swept_len / 2 + LEFT_OVER_MAX + objects {
            self.interner.sweep();
            self.swept_len = self.interner.len();
        }
    }
}

#[cfg(test)]
mod tests;
