//! Reports of what was refused, undecided or warned about: taken from the decision path, and kept on a disk.
//!
//! A decision costs a place in a queue: what it was made from is shared, and everything else (the objects around, JSON, the
//! disk) is the writer's work, on a thread of its own. Where the queue is full, the report is lost and counted, and the
//! answer names no report. The writer keeps a batch at a time, and a batch waits 100 ms at most.
//!
//! How many were handed to the queue is written to a file of its own every few milliseconds, so that after a kill the next
//! process can tell how many were never kept.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;
use suture_checker::decision::{Decision, Outcome};
use suture_model::change::Change;

use super::metrics::Metrics;
use super::store::View;
use crate::clock::{Clock, now};
use crate::report::Report;

pub mod access;
pub mod api;
pub mod board;
pub mod head;
pub mod id;
pub mod others;
pub mod redact;
pub mod socket;
pub mod store;

use id::{Ids, ReportId};
use store::{Bounds, ReportStore, StoreError};

/// So many decisions may wait to be kept; each holds on to a view of the cluster.
const QUEUE_LEN_MAX: usize = 2_048;
/// So many are kept at a time.
const BATCH_LEN_MAX: usize = 256;
/// How long the first of a batch waits for others.
const BATCH_WAIT_MAX: Duration = Duration::from_millis(100);
/// How long the writer waits before it tries again what could not be written, and how often it does.
const RETRY_AFTER: Duration = Duration::from_millis(500);
const TRIES_MAX: u32 = 3;
/// How often the file with the number of decisions is written, if it differs.
const TALLY_EVERY: Duration = Duration::from_millis(5);
/// Its name: how many decisions were handed to the queue, and how many of them are accounted for.
const TALLY: &str = "handed";
/// The priority of both threads (`nice(2)`): requests come first.
const NICE: i32 = 10;

/// What a report is made of.
pub struct Told {
    /// The decision.
    pub decision: Decision,
    /// What it is about.
    pub change: Change,
    /// What it was made from.
    pub view: Arc<View>,
    /// What the requester was told.
    pub message: String,
}

struct Handed {
    id: ReportId,
    time: Clock,
    told: Told,
}

/// Takes decisions to be kept; cheap to clone.
#[derive(Clone)]
pub struct Reports {
    queue: SyncSender<Handed>,
    ids: Arc<Ids>,
    counts: Arc<Counts>,
    metrics: Metrics,
    /// The line that opens a report, but for its id.
    opens: Arc<str>,
}

/// How many decisions were handed to the queue, and for how many of them it is known what became of them.
#[derive(Debug, Default)]
struct Counts {
    handed: AtomicU64,
    settled: AtomicU64,
}

impl Counts {
    fn text(&self) -> String {
        // what is settled was handed over before
        let settled = self.settled.load(Ordering::SeqCst);
        // of one length, so that what is written takes the place of what was
        format!("{:>20} {settled:>20}\n", self.handed.load(Ordering::SeqCst))
    }

    /// How many of those of the process before are not accounted for.
    fn missing(text: &str) -> u64 {
        let mut numbers = text.split_whitespace().map_while(|number| number.parse::<u64>().ok());
        let (handed, settled) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        handed.saturating_sub(settled)
    }
}

impl Reports {
    /// Opens the store of a folder, and starts to keep reports in it. Gives the store to read from.
    ///
    /// # Errors
    /// When the store cannot be had.
    pub fn start(
        folder: &Path,
        bounds: Bounds,
        replica: &str,
        metrics: Metrics,
        opens: &str,
    ) -> Result<(Self, ReportStore), StoreError> {
        let store = ReportStore::open(folder)?;
        socket::serve(folder, &store)?;
        let tally = folder.join(TALLY);
        metrics.reports_lost("killed", Counts::missing(&fs::read_to_string(&tally).unwrap_or_default()));
        let tally = File::create(&tally).map_err(|error| StoreError::Folder(tally.clone(), error))?;
        let (queue, handed) = sync_channel(QUEUE_LEN_MAX);
        let counts = Arc::new(Counts::default());
        let ids = Arc::new(Ids::after(store.last()?, replica));
        let writer = Writer { store: store.clone(), bounds, counts: counts.clone(), metrics: metrics.clone() };
        thread::spawn(move || writer.run(&handed));
        let counted = counts.clone();
        thread::spawn(move || write_tally(&tally, &counted));
        Ok((Self { queue, ids, counts, metrics, opens: opens.into() }, store))
    }

    /// Hands a decision over, and says what its report is called; none if it is lost.
    pub fn hand_over(&self, told: Told) -> Option<ReportId> {
        let time = Clock::now();
        let id = self.ids.next(time);
        match self.queue.try_send(Handed { id, time, told }) {
            Ok(()) => {
                self.counts.handed.fetch_add(1, Ordering::SeqCst);
                Some(id)
            }
            Err(_) => {
                self.metrics.reports_lost("queue-full", 1);
                None
            }
        }
    }

    /// Waits until what was handed over is kept, or lost, for no longer than this.
    pub fn settle(&self, patience: Duration) {
        let until = now() + patience;
        let open = || self.counts.settled.load(Ordering::SeqCst) < self.counts.handed.load(Ordering::SeqCst);
        while open() && now() < until {
            thread::sleep(TALLY_EVERY);
        }
    }

    /// The line that opens a report.
    pub fn opening(&self, id: ReportId) -> String {
        self.opens.replace("ID", &id.to_string())
    }
}

struct Writer {
    store: ReportStore,
    bounds: Bounds,
    counts: Arc<Counts>,
    metrics: Metrics,
}

impl Writer {
    /// Keeps what is handed over, until nobody hands over any more.
    fn run(self, handed: &Receiver<Handed>) {
        // of this thread alone (`setpriority(2)`, C library/kernel differences); it does without
        _ = setpriority_process(None, NICE);
        while let Ok(first) = handed.recv() {
            let until = now() + BATCH_WAIT_MAX;
            let mut batch = vec![made(first)];
            while batch.len() < BATCH_LEN_MAX {
                match handed.recv_timeout(until.saturating_duration_since(now())) {
                    Ok(next) => batch.push(made(next)),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            self.keep(&batch);
            self.counts.settled.fetch_add(u64::try_from(batch.len()).unwrap_or(u64::MAX), Ordering::SeqCst);
        }
    }

    /// Keeps a batch; what cannot be kept is counted.
    fn keep(&self, batch: &[(ReportId, Report)]) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        for attempt in 1..=TRIES_MAX {
            match self.store.put(batch, self.bounds, Clock::now()) {
                Ok(kept) => return self.metrics.reports_kept(count, kept.dropped, kept.bytes, kept.reports),
                Err(error) => tracing::warn!(%error, attempt, count, "reports cannot be kept"),
            }
            thread::sleep(RETRY_AFTER);
        }
        self.metrics.reports_lost("not-written", count);
    }
}

/// The report of what was handed over.
fn made(Handed { id, time, told }: Handed) -> (ReportId, Report) {
    let Told { decision, change, view, message } = told;
    let report = Report::of(decision, &change, &view.snapshot);
    (id, Report { id: Some(id.to_string()), time: Some(time.to_string()), message: Some(message), ..report })
}

/// Writes how many decisions were handed over, whenever it has changed. What was written is there for the next process,
/// whatever ends this one.
fn write_tally(file: &File, counts: &Counts) {
    _ = setpriority_process(None, NICE);
    let mut written = String::new();
    loop {
        let text = counts.text();
        if text != written && file.write_all_at(text.as_bytes(), 0).is_ok() {
            written = text;
        }
        thread::sleep(TALLY_EVERY);
    }
}

/// Whether a decision is one to be kept: what it does not simply allow.
pub fn is_kept(decision: &Decision) -> bool {
    decision.decision != Outcome::Allowed
}

/// Where the reports of a process are, for whoever reads them on the same machine.
pub fn opening_line(folder: &Path, pod: Option<(&str, &str)>) -> String {
    let folder: PathBuf = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let line = format!("suture explain --id ID --reports {}", folder.display());
    match pod {
        Some((namespace, pod)) => format!("kubectl exec -n {namespace} {pod} -- {line}"),
        None => line,
    }
}

#[cfg(test)]
mod tests;
