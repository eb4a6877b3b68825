//! Which invariants overran of late, and for whose requests.
//!
//! An invariant that takes all its steps costs a worker about a second. Who asks the same again and again would keep all
//! workers busy: so for a while it gets a small share for requests of the same namespace, in which everyday ones are
//! decided as ever. Requests of other namespaces, and other invariants, keep theirs. The status of the invariant says so for
//! longer, and a metric counts it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use suture_model::change::Request;
use suture_model::value::Str;

use super::metrics::Metrics;
use super::resources::ResourceName;
use super::review::whose;

/// How long an invariant is hurried after it overran.
const HURRIED: Duration = Duration::from_secs(10);

/// How long its status says so.
const TOLD: Duration = Duration::from_secs(600);

/// So many pairs of an invariant and whose requests it overran for are kept, the latest ones.
const PAIRS_MAX: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// What all judges know of it.
pub struct Overruns {
    /// By whose requests and which invariant: when it overran last.
    pairs: Mutex<LruCache<(String, Str), Instant>>,
    /// By invariant: when it overran last, and for whose requests it began to.
    told: Mutex<BTreeMap<ResourceName, (Instant, String)>>,
    metrics: Metrics,
}

impl Default for Overruns {
    fn default() -> Self {
        Self::counted(Metrics::default())
    }
}

impl Overruns {
    /// None so far; they are counted there.
    pub fn counted(metrics: Metrics) -> Self {
        Self { pairs: Mutex::new(LruCache::new(PAIRS_MAX)), told: Mutex::default(), metrics }
    }

    /// What the status of an invariant says of it at this time, if it overran of late.
    ///
    /// # Errors
    /// Whose requests are undecided.
    pub fn in_time(&self, invariant: &ResourceName, now: Instant) -> Result<(), String> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match told.get(invariant).filter(|(at, _)| now.duration_since(*at) < TOLD) {
            Some((_, whose)) => Err(format!(
                "it took all that it may cost of a decision, at first about a request of {whose}: what it costs more than \
                 everyday changes do is undecided there, and no other invariant for its sake"
            )),
            None => Ok(()),
        }
    }

    /// The invariants that are hurried for a request at this time.
    pub fn hurried(&self, request: &Request, now: Instant) -> BTreeSet<Str> {
        let mut known = self.pairs();
        // the one that was noted first is the least recent
        while known.peek_lru().is_some_and(|(_, at)| now.duration_since(*at) >= HURRIED) {
            known.pop_lru();
        }
        if known.is_empty() {
            return BTreeSet::new();
        }
        let whose = whose(&request.target.ns, &request.user.username);
        known.iter().filter(|((of, _), _)| *of == whose).map(|((_, invariant), _)| invariant.clone()).collect()
    }

    /// Notes that these invariants overran for a request.
    pub fn note(&self, request: &Request, overran: &BTreeSet<Str>, now: Instant) {
        let whose = whose(&request.target.ns, &request.user.username);
        for invariant in overran {
            tracing::warn!(%invariant, namespace = %request.target.ns, user = %request.user.username, "an invariant overran");
            let resource = ResourceName::of_invariant(invariant);
            self.metrics.invariant_overran(resource.label());
            self.pairs().put((whose.clone(), invariant.clone()), now);
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.retain(|_, (at, _)| now.duration_since(*at) < TOLD);
            told.entry(resource).or_insert_with(|| (now, whose.clone())).0 = now;
        }
    }

    fn pairs(&self) -> MutexGuard<'_, LruCache<(String, Str), Instant>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use suture_model::change::User;
    use suture_model::snapshot::Snapshot;
    use suture_model::state::State;

    use super::*;

    fn creation(ns: &str) -> Request {
        let manifest =
            format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c","namespace":"{ns}"}}}}"#);
        let manifest = serde_json::from_str(&manifest).unwrap();
        Request::create(User::admin(), &State::new(&Snapshot::default()), &manifest).unwrap()
    }

    #[test]
    fn it_hurries_requests_of_the_same_namespace_for_a_while() {
        let metrics = Metrics::default();
        let (overruns, now) = (Overruns::counted(metrics.clone()), crate::clock::now());
        let slow = BTreeSet::from([Str::from("slow")]);
        overruns.note(&creation("a"), &slow, now);
        assert_eq!(overruns.hurried(&creation("a"), now + HURRIED / 2), slow);
        assert!(overruns.hurried(&creation("b"), now).is_empty());
        assert!(overruns.hurried(&creation("a"), now + HURRIED).is_empty());
        let in_time = |name: &str, now| overruns.in_time(&ResourceName::of_invariant(name), now);
        let why = in_time("slow", now + HURRIED).unwrap_err();
        assert!(why.contains("request of a:"), "{why}");
        assert_eq!(in_time("slow", now + TOLD), Ok(()));
        assert_eq!(in_time("other", now), Ok(()));
        let counted = "suture_invariant_overruns_total{invariant=\"Invariant/slow\"} 1";
        assert!(metrics.text().unwrap().contains(counted), "{}", metrics.text().unwrap());
    }
}
