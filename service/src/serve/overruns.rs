//! Which invariants overran of late, and for whose requests.
//!
//! An invariant that takes all its steps costs a worker about a second. Who asks the same again and again would keep all
//! workers busy: so for a while it gets a small share for requests of the same namespace, in which everyday ones are
//! decided as ever. Requests of other namespaces, and other invariants, keep theirs.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use suture_model::change::Request;
use suture_model::value::Str;

use super::review::whose;

/// How long an invariant is hurried after it overran.
const HURRIED: Duration = Duration::from_secs(10);

/// So many pairs of an invariant and whose requests it overran for are kept, the latest ones.
const PAIRS_MAX: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// By whose requests and which invariant: when it overran last.
pub struct Overruns(Mutex<LruCache<(String, Str), Instant>>);

impl Default for Overruns {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(PAIRS_MAX)))
    }
}

impl Overruns {
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
        let mut known = self.pairs();
        for invariant in overran {
            tracing::warn!(%invariant, namespace = %request.target.ns, user = %request.user.username, "an invariant overran");
            known.put((whose(&request.target.ns, &request.user.username), invariant.clone()), now);
        }
    }

    fn pairs(&self) -> MutexGuard<'_, LruCache<(String, Str), Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let (overruns, now) = (Overruns::default(), crate::clock::now());
        let slow = BTreeSet::from([Str::from("slow")]);
        overruns.note(&creation("a"), &slow, now);
        assert_eq!(overruns.hurried(&creation("a"), now + HURRIED / 2), slow);
        assert!(overruns.hurried(&creation("b"), now).is_empty());
        assert!(overruns.hurried(&creation("a"), now + HURRIED).is_empty());
    }
}
