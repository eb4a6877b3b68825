//! Small random universes for the suites that compare the checker with something: a cluster of a few objects, a change,
//! requests in flight, and an invariant.
#![allow(dead_code, reason = "each suite uses the part it needs")]

pub mod adapters;
pub mod capacity;
pub mod changes;
pub mod cluster;
pub mod draft;
pub mod evictions;
pub mod focus;
pub mod invariants;
pub mod random;
pub mod rights;
pub mod room;
pub mod workloads;

use std::env;
use std::fmt::Write as _;
use std::sync::Arc;

use suture_model::change::{Change, Request};
use suture_model::ingest::objects;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::{Str, Val};

pub use draft::Size;

use adapters::Databases;
use focus::Focus;
use invariants::Pool;
use random::Random;

/// A number that the environment sets.
pub fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What one comparison is about.
#[derive(Clone, Debug)]
pub struct Case {
    /// The cluster's objects.
    pub objects: Vec<Val>,
    /// Requests in flight, oldest first.
    pub in_flight: Vec<Request>,
    /// The change.
    pub change: Change,
    /// Which invariant of the pool.
    pub invariant: usize,
}

impl Case {
    /// The case of this number, for one of the pool's invariants.
    pub fn random(random: &mut Random, pool: &Pool, size: Size) -> Self {
        let invariant = pool.choose(random);
        Self::about(random, invariant, pool.focus(invariant), size)
    }

    /// A case about one invariant.
    pub fn about(random: &mut Random, invariant: usize, focus: Focus, size: Size) -> Self {
        let objects = cluster::cluster(random, focus, size);
        let snapshot = snapshot(&objects);
        let state = State::new(&snapshot);
        let flying = [0, 0, 0, 0, 0, 0, 0, 1, 1, 2][random.below(10)].min(size.in_flight);
        let in_flight = (0..flying).map(|_| changes::request(random, &state, focus)).collect();
        let steps = if random.chance(15) { 2 } else { 1 };
        let requests = (0..steps).map(|_| changes::request(random, &state, focus)).collect();
        Self { objects, in_flight, change: Change { requests }, invariant }
    }

    /// The cluster.
    pub fn snapshot(&self) -> Snapshot {
        snapshot(&self.objects)
    }

    /// An object of another cluster that may be in this one: its uid is that of its namesake here, or one that no other has.
    pub fn fitting(&self, val: &Val, cluster: usize) -> Val {
        let same = |other: &&Val| {
            [&["kind"][..], &["metadata", "namespace"], &["metadata", "name"]]
                .iter()
                .all(|path| other.at(path) == val.at(path))
        };
        let uid = self.objects.iter().find(same).and_then(|other| other.str_at(&["metadata", "uid"]).cloned());
        let other = || Str::from(format!("x{cluster}-{}", val.str_at(&["metadata", "uid"]).map_or("", |uid| uid)));
        val.with_at(&["metadata", "uid"], Val::Str(uid.unwrap_or_else(other)))
    }

    /// The case as a person can read and repeat it: one object or request a line, in flow style.
    pub fn describe(&self, pool: &Pool) -> String {
        let mut text = String::new();
        let line = |val: &Val| serde_json::to_string(val).unwrap_or_default();
        text.push_str("state:\n");
        for object in &self.objects {
            let _ = writeln!(text, "- {}", line(object));
        }
        for (title, requests) in [("in flight", &self.in_flight), ("change", &self.change.requests)] {
            let _ = writeln!(text, "{title}:");
            for r in requests {
                let object = r.object.as_ref().map(line).unwrap_or_default();
                let _ = writeln!(text, "- {} {:?} {:?} {object}", r.describe(), r.propagation, r.preconditions);
            }
        }
        let _ = writeln!(text, "invariant:\n{}", pool.text(self.invariant));
        text
    }
}

/// The cluster of these objects, as it is given to an engine.
pub fn snapshot(all: &[Val]) -> Snapshot {
    let mut snapshot = Snapshot::new(Arc::new(Databases));
    for object in all.iter().flat_map(|val| objects(val).unwrap_or_default()) {
        snapshot.insert(object);
    }
    snapshot.complete();
    snapshot
}
