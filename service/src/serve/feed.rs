//! From what watches tell to what the store holds: objects trimmed, kinds known, absent or unknown, lag measured.
//!
//! A kind is *known* once it is listed, and as long as the watch keeps up; *absent* when the API server does not serve it
//! and no definition of it is there; *unknown* otherwise. How far a watch lags is measured against consistent reads made
//! now and then ([`Probes`]): it is as old as the newest read whose resourceVersion it has reached. A kind whose watch broke
//! is unknown until it is listed again: meanwhile others may have written, and Suture may have been asked about it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suture_model::fields::defined_kind;
use suture_model::ingest::project;
use suture_model::kinds::Kind;
use suture_model::navigate::definition_of;
use suture_model::object::{Key, Object};
use suture_model::state::State;
use suture_model::value::{Str, Val};
use tokio::sync::Notify;

use super::kind_events::{KindEvent, List, name_of, version_of};
use super::store::{Change, Reading, Store, lacks};
use crate::clock::now;

/// How often lag, and with it readiness, is judged where nothing becomes known or unknown.
const TICK: Duration = Duration::from_millis(100);
/// What is told is taken in together up to so many changes: readers see few versions, and none waits long.
const CHANGES_MAX: usize = 1_024;
/// Consistent reads that are remembered: at one every two seconds more than any lag that is borne.
const PROBES_MAX: usize = 256;

/// What consistent reads found: at these times the cluster had come to these resourceVersions.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    found: Arc<Mutex<VecDeque<(Instant, u64)>>>,
}

impl Probes {
    /// A read that began at `time` found this resourceVersion.
    pub fn add(&self, time: Instant, version: u64) {
        let mut found = self.found();
        found.push_back((time, version));
        while found.len() > PROBES_MAX {
            found.pop_front();
        }
    }

    /// Since when whatever has come to `position` may be out of date; none before the first read.
    pub fn current_at(&self, position: Option<u64>) -> Option<Instant> {
        let found = self.found();
        let reached = found.iter().rev().find(|(_, version)| position.is_some_and(|at| at >= *version));
        reached.or(found.front()).map(|(time, _)| *time)
    }

    fn found(&self) -> MutexGuard<'_, VecDeque<(Instant, u64)>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happens after each change of the store.
pub trait StoreObserver: Send {
    /// The store has changed.
    fn changed(&mut self, store: &Store);
    /// Some time has passed; how far each known kind lags.
    fn tick(&mut self, store: &Store, lags: &BTreeMap<Kind, Duration>);
}

/// Takes in what watches tell.
pub struct Feed<A> {
    store: Arc<Store>,
    probes: Probes,
    lag_max: Duration,
    nudge: Arc<Notify>,
    observer: A,
    kinds: BTreeMap<Kind, Known>,
}

/// What is known of a kind, and how.
#[derive(Clone, Debug, Default)]
struct Known {
    listed: bool,
    absent: bool,
    failed: Option<String>,
    /// The resource that may not be read.
    forbidden: Option<String>,
    /// Why it stays unknown: something was told that is no object, and there is no telling which.
    broken: Option<String>,
    listed_at: Option<Instant>,
    lag: Option<Duration>,
    shown: Option<Reading>,
}

impl<A: StoreObserver> Feed<A> {
    /// Writes to `store`; a kind that lags by more than `lag_max` is unknown. `nudge` is called when definitions change.
    pub fn new(store: Arc<Store>, probes: Probes, lag_max: Duration, nudge: Arc<Notify>, observer: A) -> Self {
        Self { store, probes, lag_max, nudge, observer, kinds: BTreeMap::new() }
    }

    /// Takes in everything until nobody can tell any more.
    pub fn run(mut self, told: &Receiver<(Kind, KindEvent)>) {
        let mut judged = now();
        loop {
            let mut changes = Vec::new();
            match told.recv_timeout(TICK) {
                Ok((kind, first)) => {
                    self.take(&kind, first, &mut changes);
                    while changes.len() < CHANGES_MAX
                        && let Ok((kind, next)) = told.try_recv()
                    {
                        self.take(&kind, next, &mut changes);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let time = now();
            let read = changes.iter().any(|change| matches!(change, Change::Read(..)));
            if read || time.saturating_duration_since(judged) >= TICK {
                judged = time;
                self.judge_lag(time, &mut changes);
                self.store.write(changes);
                let lags = self.kinds.iter().filter_map(|(kind, state)| Some((kind.clone(), state.lag?))).collect();
                self.observer.changed(&self.store);
                self.observer.tick(&self.store, &lags);
            } else if !changes.is_empty() {
                self.store.write(changes);
                self.observer.changed(&self.store);
            }
        }
    }

    fn take(&mut self, kind: &Kind, told: KindEvent, changes: &mut Vec<Change>) {
        if let KindEvent::Unwanted = told {
            self.kinds.remove(kind);
            changes.push(Change::Forget(kind.clone()));
            return;
        }
        if let KindEvent::Every = told {
            changes.push(Change::Every);
            return;
        }
        let known = self.kinds.contains_key(kind);
        if !known && !matches!(told, KindEvent::Wanted) {
            // the last words of a watch that was ended
            return;
        }
        match told {
            KindEvent::Wanted | KindEvent::Unwanted | KindEvent::Every => {
                self.kinds.entry(kind.clone()).or_default();
            }
            KindEvent::Lost => self.update(kind, |state| {
                state.listed = false;
                state.failed = Some("not served any more".to_owned());
            }),
            KindEvent::Absent => {
                // a definition may be among what was told before
                self.store.write(std::mem::take(changes));
                let view = self.store.read();
                let defined = definition_of(&State::new(&view.snapshot), kind).is_some();
                self.update(kind, |state| {
                    state.listed = false;
                    state.absent = !defined;
                    state.failed = defined.then(|| "defined, but not served yet".to_owned());
                });
                changes.push(Change::Retain(kind.clone(), BTreeSet::new()));
            }
            KindEvent::Failed(why) => self.update(kind, |state| {
                state.listed = false;
                state.failed = Some(why);
                state.forbidden = None;
            }),
            KindEvent::Forbidden(resource) => self.forbid(kind, resource, changes),
            KindEvent::Page(objects, taken) => {
                for object in objects {
                    self.put(kind, &object, changes);
                }
                // the watch may have ended meanwhile
                _ = taken.send(());
            }
            KindEvent::Listed(List { names, version, began }) => {
                let keys = names.into_iter().map(|(ns, name)| Key { kind: kind.clone(), ns, name });
                changes.push(Change::Retain(kind.clone(), keys.collect()));
                changes.extend(version.map(|version| Change::Position(kind.clone(), version)));
                self.update(kind, |state| {
                    let (shown, broken) = (state.shown.take(), state.broken.take());
                    *state = Known { listed: true, listed_at: Some(began), shown, broken, ..Known::default() };
                });
            }
            KindEvent::Put(object) => {
                self.put(kind, &object, changes);
                changes.extend(version_of(&object).map(|version| Change::Position(kind.clone(), version)));
            }
            KindEvent::Gone(object) => {
                if let Some((ns, name)) = name_of(&object) {
                    changes.push(Change::Remove(Key { kind: kind.clone(), ns: scoped(kind, ns), name }));
                }
                self.definitions_changed(kind);
                changes.extend(version_of(&object).map(|version| Change::Position(kind.clone(), version)));
            }
            KindEvent::Progress(version) => changes.push(Change::Position(kind.clone(), version)),
        }
        self.show(kind, changes);
    }

    /// A kind may not be read: what was shown of it is old from now on, and nothing says how old.
    fn forbid(&mut self, kind: &Kind, resource: String, changes: &mut Vec<Change>) {
        self.update(kind, |state| {
            if state.forbidden.as_ref() != Some(&resource) {
                tracing::warn!(resource, why = lacks(&resource), "a kind may not be read");
            }
            state.listed = false;
            state.forbidden = Some(resource);
        });
        changes.push(Change::Retain(kind.clone(), BTreeSet::new()));
    }

    fn put(&mut self, kind: &Kind, object: &Val, changes: &mut Vec<Change>) {
        let object = match Object::from_val(&project(object)) {
            Ok(object) => object,
            Err(error) => return self.update(kind, |state| state.broken = Some(error.to_string())),
        };
        if object.key.kind.is("CustomResourceDefinition") {
            // its instances may be there before they are listed
            if let Some(kind) = defined_kind(&object)
                && self.kinds.get(&kind).is_some_and(|state| state.absent)
            {
                self.update(&kind, |state| {
                    state.absent = false;
                    state.failed = Some("defined, but not listed yet".to_owned());
                });
                self.show(&kind, changes);
            }
            self.nudge.notify_one();
        }
        changes.push(Change::Put(self.store.shared(object)));
    }

    fn definitions_changed(&self, kind: &Kind) {
        if kind.is("CustomResourceDefinition") || kind.is("APIService") {
            self.nudge.notify_one();
        }
    }

    fn update(&mut self, kind: &Kind, change: impl FnOnce(&mut Known)) {
        if let Some(state) = self.kinds.get_mut(kind) {
            change(state);
        }
    }

    /// Writes what is known of a kind, if that has changed.
    fn show(&mut self, kind: &Kind, changes: &mut Vec<Change>) {
        let lag_max = self.lag_max;
        let Some(state) = self.kinds.get_mut(kind) else { return };
        let reading = match state {
            Known { broken: Some(why), .. } => Reading::Unknown(why.clone()),
            Known { listed: true, lag: Some(lag), .. } if *lag > lag_max => {
                Reading::Unknown(format!("its watch is more than {} s behind", lag_max.as_secs()))
            }
            Known { listed: true, .. } => Reading::Known,
            Known { forbidden: Some(resource), .. } => Reading::Forbidden(resource.clone()),
            Known { absent: true, .. } => Reading::Absent,
            Known { failed: Some(why), .. } => Reading::Unknown(why.clone()),
            _ => Reading::Unknown("not listed yet".to_owned()),
        };
        if state.shown.as_ref() != Some(&reading) {
            state.shown = Some(reading.clone());
            changes.push(Change::Read(kind.clone(), reading));
        }
    }

    fn judge_lag(&mut self, time: Instant, changes: &mut Vec<Change>) {
        let view = self.store.read();
        let kinds: Vec<Kind> = self.kinds.keys().cloned().collect();
        for kind in kinds {
            let current = self.probes.current_at(view.positions.get(&kind).copied());
            self.update(&kind, |state| {
                // a list is a consistent read itself
                let since = current.max(state.listed_at);
                state.lag = since.filter(|_| state.listed).map(|since| time.saturating_duration_since(since));
            });
            self.show(&kind, changes);
        }
    }
}

/// The namespace of an object in the store; cluster-scoped kinds have none.
fn scoped(kind: &Kind, ns: Str) -> Str {
    if kind.builtin_namespaced() == Some(false) { "".into() } else { ns }
}

#[cfg(test)]
mod tests;
