//! The ledger of one process, shared by its workers: a request is entered only if nothing came in since it was judged.
//!
//! | order | why nothing is lost |
//! |---|---|
//! | the writer publishes what the watch showed, then ends entries | who reads the log first and the store after it finds a change in one of them |
//! | a worker reads the log, the store, judges, and enters if the log has not grown by anything that matters | of two that judge at the same time one enters first, the other looks at what that one entered |

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use suture_model::change::Request;
use suture_model::snapshot::Snapshot;

use crate::clock::Clock;
use crate::grants::{History, Spent};
use crate::ledger::{Entry, Ledger, Sight};

/// Admitted requests, for all workers of a process.
#[derive(Debug)]
pub struct InFlightLog {
    inner: Mutex<Inner>,
    turn: RwLock<()>,
}

#[derive(Debug)]
struct Inner {
    ledger: Ledger,
    /// What counts against budgets.
    history: Arc<History>,
}

/// The log as it was at one time.
#[derive(Clone, Debug)]
pub struct LogSnapshot {
    /// What was in flight, oldest first.
    pub entries: Vec<Entry>,
    /// What was admitted and counts against budgets.
    pub history: Arc<History>,
    /// How many entries were ever made.
    entered: u64,
}

impl LogSnapshot {
    /// What was entered after an earlier snapshot of the log, if all of it is still in flight and nothing more counts
    /// against budgets.
    pub fn since(&self, earlier: &Self) -> Option<&[Entry]> {
        let at = self.entries.partition_point(|entry| entry.order < earlier.entered);
        let new = self.entries.get(at..).unwrap_or_default();
        let all = u64::try_from(new.len()).ok() == Some(self.entered - earlier.entered);
        (all && Arc::ptr_eq(&self.history, &earlier.history)).then_some(new)
    }
}

/// Somebody else's entry came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaken;

impl InFlightLog {
    /// A log whose entries end after so many seconds.
    pub fn lasting(lifetime_seconds: i128) -> Self {
        let inner = Inner { ledger: Ledger::lasting(lifetime_seconds), history: Arc::default() };
        Self { inner: Mutex::new(inner), turn: RwLock::new(()) }
    }

    /// What is in flight. To be read before the store.
    pub fn read(&self) -> LogSnapshot {
        let inner = self.inner();
        LogSnapshot {
            entries: inner.ledger.entries().to_vec(),
            history: inner.history.clone(),
            entered: inner.ledger.next(),
        }
    }

    /// Enters a request that was judged with what a snapshot of the log says.
    ///
    /// # Errors
    /// When the log has grown since.
    pub fn enter(
        &self,
        log_snapshot: &LogSnapshot,
        request: &Request,
        spent: &[Spent],
        snapshot: &Snapshot,
        now: Clock,
    ) -> Result<(), Overtaken> {
        let mut inner = self.inner();
        if inner.ledger.next() != log_snapshot.entered {
            return Err(Overtaken);
        }
        inner.ledger.record(request, snapshot, Some(now));
        if !spent.is_empty() {
            let history = Arc::make_mut(&mut inner.history);
            spent.iter().for_each(|spent| history.record(spent, Some(now.nanos())));
        }
        Ok(())
    }

    /// Records what an admitted request takes of budgets.
    pub fn spend(&self, spent: &[Spent], now: Clock) {
        if !spent.is_empty() {
            let mut inner = self.inner();
            let history = Arc::make_mut(&mut inner.history);
            spent.iter().for_each(|spent| history.record(spent, Some(now.nanos())));
        }
    }

    /// Ends what the watch has shown. To be called after that is published.
    pub fn observe(&self, sight: Sight<'_>, now: Clock) {
        self.inner().ledger.observe(sight, Some(now));
    }

    /// How many requests are in flight.
    pub fn len(&self) -> usize {
        self.inner().ledger.entries().len()
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A turn beside others.
    pub fn together(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn beside others, if nobody waits for one alone.
    pub fn try_together(&self) -> Option<RwLockReadGuard<'_, ()>> {
        match self.turn.try_read() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A turn while nobody else has one: nobody can overtake.
    pub fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
