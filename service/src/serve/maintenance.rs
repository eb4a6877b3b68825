//! What is done after each change of the store: what is in flight ends, kinds are wanted, readiness and metrics are said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use suture_model::kinds::Kind;
use tokio::sync::watch::Sender;

use super::feed::StoreObserver;
use super::health::Readiness;
use super::judge::{Replicas, SharedState};
use super::loaded::Wanted;
use super::metrics::Metrics;
use super::store::{Reading, Store, View};
use crate::clock::{Clock, now};

/// How long a kind that became wanted while this replica served may take to be listed before it counts as not ready:
/// what reads it is undecided meanwhile, and to leave the service for that would be worse.
const NEW_KIND_GRACE: Duration = Duration::from_secs(30);

/// Does what is to be done after each change of the store.
pub struct Maintenance {
    shared: Arc<SharedState>,
    wanted: Sender<Wanted>,
    readiness: Readiness,
    metrics: Metrics,
    /// Since when something is not known though everything was before.
    missing_since: Option<Instant>,
    was_ready: bool,
    generation: u64,
    told: BTreeMap<Kind, usize>,
    forbidden: Vec<String>,
}

impl Maintenance {
    /// Says what is wanted to `wanted`.
    pub fn new(shared: Arc<SharedState>, wanted: Sender<Wanted>, readiness: Readiness, metrics: Metrics) -> Self {
        let mut maintenance = Self {
            shared,
            wanted,
            readiness,
            metrics,
            missing_since: None,
            was_ready: false,
            generation: 0,
            told: BTreeMap::new(),
            forbidden: Vec::new(),
        };
        let view = maintenance.shared.store.read();
        maintenance.want(&view);
        maintenance
    }

    /// The kinds that the policy and the effects read, and those that own something: an owner that is not shown would
    /// be taken to be gone.
    fn want(&mut self, view: &View) {
        let mut wanted = view.loaded.wanted.clone();
        wanted.kinds.extend(view.owners().cloned());
        wanted.kinds.extend(view.unheard().cloned());
        self.wanted.send_if_modified(|held| std::mem::replace(held, wanted.clone()) != wanted);
        self.generation = view.loaded.generation;
    }

    fn say_ready(&mut self, view: &View) {
        let missing = view.unread();
        if missing.is_empty() {
            self.was_ready = true;
            self.missing_since = None;
            self.readiness.set("kinds", Ok(()));
        } else {
            let since = *self.missing_since.get_or_insert_with(now);
            if !self.was_ready || now().saturating_duration_since(since) > NEW_KIND_GRACE {
                self.readiness.set("kinds", Err(missing.join("; ")));
            }
        }
        self.metrics.ready(self.readiness.ready().is_ok());
    }

    /// Says since when everything that is watched was read. After a pause, what stays unknown for long is not waited for: what
    /// reads it is undecided, and nothing else is.
    fn settle(&self, view: &View, lags: &BTreeMap<Kind, Duration>) {
        if view.readings.is_empty() {
            return;
        }
        let time = now();
        let oldest = |unknown_counts: bool| {
            let read_at = |(kind, reading): (&Kind, &Reading)| match reading {
                Reading::Absent | Reading::Forbidden(_) => Some(time),
                Reading::Unknown(_) if !unknown_counts => Some(time),
                Reading::Known | Reading::Unknown(_) => lags.get(kind).and_then(|lag| time.checked_sub(*lag)),
            };
            view.readings.iter().map(read_at).try_fold(time, |oldest, read| Some(oldest.min(read?)))
        };
        let patient = self.shared.pauses.since().is_none_or(|since| since < NEW_KIND_GRACE);
        if let Some(oldest) = oldest(patient) {
            self.shared.pauses.settle(oldest);
        }
        if let (Replicas::Single(active), Some(oldest)) = (&self.shared.replicas, oldest(true)) {
            active.settle(oldest);
        }
    }
}

impl StoreObserver for Maintenance {
    fn changed(&mut self, store: &Store) {
        let view = store.read();
        let time = Clock::now();
        match &self.shared.replicas {
            Replicas::Announced(announcer) => announcer.observe(&view, time),
            Replicas::Single(_) | Replicas::Audit => drop(self.shared.in_flight_log.observe(view.sight(), time)),
        }
        if view.loaded.generation != self.generation {
            self.want(&view);
        }
    }

    fn tick(&mut self, store: &Store, lags: &BTreeMap<Kind, Duration>) {
        let view = store.read();
        self.want(&view);
        self.settle(&view, lags);
        self.say_ready(&view);
        for (kind, lag) in lags {
            self.metrics.lag(&kind.kind, *lag);
        }
        let forbidden = view.readings.values().filter_map(|reading| match reading {
            Reading::Forbidden(resource) => Some(resource.clone()),
            Reading::Known | Reading::Absent | Reading::Unknown(_) => None,
        });
        let forbidden: Vec<String> = forbidden.collect();
        if self.forbidden != forbidden {
            self.metrics.forbidden(forbidden.iter().map(String::as_str));
            self.forbidden = forbidden;
        }
        let counts: BTreeMap<Kind, usize> =
            view.readings.keys().map(|kind| (kind.clone(), store.count(kind))).collect();
        for (kind, count) in &counts {
            if self.told.get(kind) != Some(count) {
                self.metrics.objects(&kind.kind, *count);
            }
        }
        for gone in self.told.keys().filter(|kind| !counts.contains_key(kind)) {
            self.metrics.forget(&gone.kind);
        }
        self.told = counts;
        let in_flight = self.shared.in_flight_log.len();
        self.metrics.ledger(in_flight);
    }
}

#[cfg(test)]
mod tests;
