//! Decisions that were made before, by what was asked and the facts that were read to find them.
//!
//! Who is denied asks again: operators reconcile in a loop. As long as no event changes one of the facts that were read
//! for a decision, the same change has the same verdict on every instance that it reaches, and nothing is encoded again.
//!
//! | kept | not kept |
//! |---|---|
//! | verdicts on all instances, counterexamples and suggestions included | what is undecided: time may have run out |
//! | by the whole change and all that is in flight, the uids of requests aside | what an expression could tell one request from its repetition by (`request`, `time`), and what exemptions lift until a date |

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use suture_encode::analysis::Analysis;
use suture_model::change::Request;
use suture_model::object::Key;
use suture_model::snapshot::{Facts, Snapshot};
use suture_model::value::Str;

use crate::decision::{Decision, Finding};
use crate::request::Input;

/// A decision from more facts is not kept: to look for them would take as long as to decide again.
const FACTS_MAX: usize = 8_192;
/// What an entry costs beside its texts and facts.
const ENTRY_BYTES: usize = 1_024;

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey {
    change: Vec<Request>,
    in_flight: Vec<Request>,
    unbound: BTreeSet<Str>,
}

impl CacheKey {
    /// What an input asks of all invariants but these.
    pub fn of(input: &Input<'_>, unbound: &BTreeSet<Str>) -> Self {
        let repeatable = |request: &Request| {
            // whether it has one matters, for it comes from an API server
            let uid = if request.uid.is_empty() { "" } else { "any" };
            Request { uid: uid.into(), ..request.clone() }
        };
        Self {
            change: input.change.requests.iter().map(repeatable).collect(),
            in_flight: input.in_flight.iter().map(repeatable).collect(),
            unbound: unbound.clone(),
        }
    }

    /// The place for it: a request has the place of the last one like it.
    fn place(&self) -> Place {
        self.change.first().map(|first| (first.target.clone(), first.operation.as_str(), first.subresource.clone()))
    }
}

type Place = Option<(Key, &'static str, String)>;

/// A decision, and when it holds.
#[derive(Debug)]
struct Known {
    asked: CacheKey,
    facts: Facts,
    /// The last event so far that is known to have changed none of these facts, or to be older.
    since: u64,
    decision: Decision,
    bytes: usize,
}

/// The decisions, bounded by bytes; clones are one cache.
#[derive(Clone, Debug)]
pub struct DecisionCache(Arc<Mutex<Entries>>);

#[derive(Debug)]
struct Entries {
    known: LruCache<Place, Known>,
    bytes: usize,
    bytes_max: usize,
}

impl DecisionCache {
    /// None so far; at most so many bytes of them.
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Entries { known: LruCache::unbounded(), bytes: 0, bytes_max })))
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was decided when this was asked before, if nothing that was read for it differs in this snapshot.
    pub fn find(&self, asked: &CacheKey, snapshot: &Snapshot) -> Option<Decision> {
        let mut entries = self.entries();
        let known = entries.known.get_mut(&asked.place()).filter(|known| known.asked == *asked)?;
        if !snapshot.unchanged_since(known.since, &known.facts) {
            return None;
        }
        known.since = snapshot.last_event();
        known.facts.read();
        Some(known.decision.clone())
    }

    /// Keeps a decision that was found by reading these facts of a snapshot.
    pub fn keep(&self, asked: CacheKey, facts: Facts, snapshot: &Snapshot, decision: &Decision) {
        let undecided = decision.verdicts.iter().any(|verdict| verdict.outcome == Finding::Undecided);
        if undecided || facts.len() > FACTS_MAX {
            return;
        }
        let bytes = ENTRY_BYTES + weight(&asked) + facts.bytes() + decision.text_bytes();
        let known = Known { asked, facts, since: snapshot.last_event(), decision: decision.clone(), bytes };
        let mut entries = self.entries();
        entries.bytes = entries.bytes.saturating_add(bytes);
        if let Some((_, old)) = entries.known.push(known.asked.place(), known) {
            entries.bytes = entries.bytes.saturating_sub(old.bytes);
        }
        while entries.bytes > entries.bytes_max {
            let Some((_, old)) = entries.known.pop_lru() else { break };
            entries.bytes = entries.bytes.saturating_sub(old.bytes);
        }
    }
}

/// About so many bytes.
fn weight(asked: &CacheKey) -> usize {
    let requests = asked.change.iter().chain(&asked.in_flight);
    let objects = requests.flat_map(|request| [&request.object, &request.old]).flatten();
    objects.map(suture_model::value::Val::weight).sum()
}

/// Whether no expression of these invariants can tell a request from its repetition.
pub fn repeatable(analyses: &[Analysis]) -> bool {
    !analyses.iter().any(|analysis| analysis.footprint.reads_request)
}
