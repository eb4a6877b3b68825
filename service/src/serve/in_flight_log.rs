//! The ledger of one process, shared by its workers: a request is entered only if the decision about it read nothing that
//! an entry may change which was not taken into account.
//!
//! | order | why nothing is lost |
//! |---|---|
//! | the writer publishes what the watch showed, then ends entries; a reader begins with the present view while nobody ends any | what a reader's view does not show is in flight for that reader, until the reader is done |
//! | a reader enters what it admits if all that may change a fact that it read was taken into account | of two that are decided at the same time one enters first; the other looks whether that one changes what it read |

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use suture_model::access::Access;
use suture_model::change::Request;
use suture_model::snapshot::Facts;
use suture_model::steps;

use super::store::{Store, View};
use crate::clock::Clock;
use crate::grants::{History, Spent};
use crate::ledger::{Entry, Ledger, Load, Sight};

/// Admitted requests, for all workers of a process.
#[derive(Debug)]
pub struct InFlightLog {
    inner: Mutex<Inner>,
    /// How many entries were ever made, for who does not wait for the others.
    place: AtomicU64,
    turn: RwLock<()>,
}

#[derive(Debug)]
struct Inner {
    ledger: Ledger,
    /// What counts against budgets.
    history: Arc<History>,
}

/// A view of the cluster, and what is in flight beside it: both stay as they are, and later entries come to it.
#[derive(Debug)]
pub struct Reader<'l> {
    log: &'l InFlightLog,
    /// The cluster.
    pub view: Arc<View>,
    /// What was admitted and counts against budgets.
    pub history: Arc<History>,
    /// The last event of the view.
    at: u64,
    /// How many entries were ever made when it began.
    entered: u64,
    /// Entries from this place on are none of its business.
    before: u64,
}

/// What a decision rests on beside its view.
#[derive(Clone, Debug, Default)]
pub struct Basis {
    /// The facts that it read.
    pub reads: Facts,
    /// The places of the entries that it took into account, or found to be over.
    pub taken: BTreeSet<u64>,
    /// What it takes of budgets.
    pub spent: Vec<Spent>,
    /// Whether it depends on all that was admitted, as budgets do.
    pub counts: bool,
}

/// What an admitted request takes of the budgets of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    /// What it takes.
    pub spent: Spent,
    /// How much of what others recorded it was decided with ([`History::adopted`]).
    pub adopted: u64,
    /// The place of the request among what is in flight here, where it is not announced to others.
    pub order: Option<u64>,
}

/// Why an admitted request is not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEntered {
    /// An entry that matters was not taken into account.
    Overtaken,
    /// Its author, or its namespace, has too much in flight.
    Full,
}

impl InFlightLog {
    /// A log whose entries end after so many seconds.
    pub fn lasting(lifetime_seconds: i128) -> Self {
        let inner = Inner { ledger: Ledger::lasting(lifetime_seconds), history: Arc::default() };
        Self { inner: Mutex::new(inner), place: AtomicU64::new(0), turn: RwLock::new(()) }
    }

    /// Begins to read the cluster, and what is in flight before a place in the order.
    pub fn begin(&self, store: &Store, before: u64) -> Reader<'_> {
        self.with(|inner| {
            // in this order nothing that the view does not show has ended yet
            let view = store.read();
            let at = inner.ledger.begin(&view.snapshot);
            Reader { log: self, at, history: inner.history.clone(), entered: inner.ledger.next(), before, view }
        })
    }

    /// Records a request at its place in the order that all replicas agree on.
    pub fn record_at(&self, order: u64, request: &Request, view: &View) {
        self.with(|inner| {
            inner.ledger.record_at(order, request, &view.snapshot, Some(Clock::now()));
            self.entered(inner);
        });
    }

    /// Whether the author of a request and its namespace may have one more in flight.
    pub fn has_room(&self, request: &Request) -> bool {
        self.with(|inner| inner.ledger.has_room(&Load::of(request)))
    }

    /// Takes an entry back that is refused after all.
    pub fn withdraw(&self, order: u64) {
        self.with(|inner| inner.ledger.withdraw(order));
    }

    /// The place that the next entry gets, beyond all that was entered before.
    pub fn place(&self) -> u64 {
        self.place.load(Ordering::Acquire)
    }

    /// What was entered from a place on and is in flight, and the place after that.
    pub fn since(&self, place: u64) -> (Vec<Arc<Request>>, u64) {
        self.with(|Inner { ledger, .. }| {
            let requests = ledger.since(place).map(|entry| entry.request.clone()).collect();
            (requests, ledger.next())
        })
    }

    /// Enters what another replica admitted.
    pub fn adopt(&self, request: &Request, store: &Store) {
        self.with(|inner| {
            inner.ledger.record(request, &store.read().snapshot, Some(Clock::now()));
            self.entered(inner);
        });
    }

    fn entered(&self, inner: &Inner) {
        self.place.store(inner.ledger.next(), Ordering::Release);
    }

    /// Records what an admitted request takes of budgets.
    pub fn spend(&self, spent: &[Spent], now: Clock) {
        self.with(|inner| inner.spend(spent, now));
    }

    /// Takes over what was recorded elsewhere, as far as it is not known here.
    pub fn take_over(&self, entries: Vec<(i128, Spent)>) {
        self.with(|inner| {
            for (at, spent) in entries {
                if !inner.history.has(&spent, at) {
                    // who decides meanwhile has a copy, and counts without it
                    Arc::make_mut(&mut inner.history).adopt(spent, at);
                }
            }
        });
    }

    /// Takes back what was entered of a request that is refused after all.
    pub fn take_back(&self, spending: &Spending) {
        self.with(|inner| {
            spending.order.iter().for_each(|order| inner.ledger.withdraw(*order));
            Arc::make_mut(&mut inner.history).take_back(&spending.spent);
        });
    }

    /// What was admitted and counts against budgets.
    pub fn history(&self) -> Arc<History> {
        self.with(|inner| inner.history.clone())
    }

    /// Ends what the watch has shown, and gives the places of that. To be called after it is published.
    pub fn observe(&self, sight: Sight<'_>, now: Clock) -> Vec<u64> {
        self.with(|inner| inner.ledger.observe(sight, Some(now)))
    }

    /// The places of what is in flight.
    pub fn orders(&self) -> Vec<u64> {
        self.with(|inner| inner.ledger.entries().map(|entry| entry.order).collect())
    }

    /// How many requests are in flight.
    pub fn len(&self) -> usize {
        self.with(|inner| inner.ledger.entries().count())
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A turn beside others.
    pub fn together(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn while nobody else has one: nobody can overtake.
    pub fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the ledger, to its end: a decision that is abandoned must not leave it half done, and nobody pays for
    /// what others need as well.
    fn with<R>(&self, run: impl FnOnce(&mut Inner) -> R) -> R {
        steps::aside(|| run(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Inner {
    fn spend(&mut self, spent: &[Spent], now: Clock) {
        if !spent.is_empty() {
            let history = Arc::make_mut(&mut self.history);
            spent.iter().for_each(|spent| history.record(spent, Some(now.nanos())));
        }
    }
}

impl Reader<'_> {
    /// All that is in flight, oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        let is_earlier = |entry: &&Entry| entry.order < self.before;
        self.log.with(|inner| inner.ledger.at(self.at).take_while(is_earlier).cloned().collect())
    }

    /// What is in flight that may change one of these facts, oldest first.
    pub fn writers(&self, facts: &Facts) -> Vec<Entry> {
        let is_earlier = |entry: &&Entry| entry.order < self.before;
        self.log.with(|inner| inner.ledger.writers(facts, self.at).take_while(is_earlier).cloned().collect())
    }

    /// What a request reads and writes as it lands, beside what is in flight.
    pub fn access(&self, request: &Request) -> Access {
        let before = |facts: &Facts| self.writers(facts).into_iter().map(|entry| entry.request).collect();
        Access::of(&self.view.snapshot, request, before)
    }

    /// Enters a request with this access that was admitted on this basis, and gives its place in the order.
    ///
    /// # Errors
    /// When an entry may change what was read and was not taken into account, or there is no room.
    pub fn enter(&self, request: &Request, access: Access, basis: &Basis) -> Result<u64, NotEntered> {
        self.log.with(|inner| {
            let Inner { ledger, history } = inner;
            let uncounted = ledger.next() != self.entered || !Arc::ptr_eq(history, &self.history);
            let missed = |entry: &Entry| !basis.taken.contains(&entry.order);
            if (basis.counts && uncounted) || ledger.writers(&basis.reads, self.at).any(missed) {
                return Err(NotEntered::Overtaken);
            }
            let now = Clock::now();
            let entry = ledger.entry(request, access, &self.view.snapshot, Some(now));
            if !ledger.has_room(entry.load()) {
                return Err(NotEntered::Full);
            }
            let order = entry.order;
            ledger.record_entry(entry, &self.view.snapshot);
            inner.spend(&basis.spent, now);
            self.log.entered(inner);
            Ok(order)
        })
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.log.with(|inner| inner.ledger.end(self.at));
    }
}
