//! What is counted and measured, for Prometheus. Labels are outcomes, reasons, kinds and invariants: never names of
//! other objects.

use std::fmt;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use suture_checker::decision::Effort;

use super::answer::Label;

/// The content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From what a trivial decision takes to the longest timeout of a webhook that makes sense.
const BUCKETS_SECS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];

/// All metrics; cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

struct Shared {
    registry: Registry,
    series: Series,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByInvariant {
    invariant: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResource {
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    by: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;

/// Each series by its name in the text.
struct Series {
    decisions: Family<ByOutcome, Counter>,
    decision_duration: Histogram,
    solver_duration: Histogram,
    queue_wait: Histogram,
    questions: Family<ByAnswer, Counter>,
    instances: Counter,
    known: Counter,
    undecided: Family<ByReason, Counter>,
    shed: Counter,
    overruns: Counter,
    panics: Counter,
    workers_replaced: Counter,
    queue_length: Gauge,
    objects: Family<ByKind, Gauge>,
    forbidden: Family<ByResource, Gauge>,
    violations: Family<ByInvariant, Gauge>,
    not_audited: Family<ByInvariant, Gauge>,
    near_violations: Family<ByInvariant, Gauge>,
    near_rounds: Gauge,
    invariant_overruns: Family<ByInvariant, Counter>,
    invariant_steps: Family<ByInvariant, Counter>,
    watch_lag: Family<ByKind, Seconds>,
    ledger_entries: Gauge,
    ready: Gauge,
    certificate_end: Gauge,
    certificate_swaps: Counter,
    strangers: Counter,
    off: Family<ByReason, Gauge>,
    configuration_repairs: Counter,
    reports: Counter,
    reports_lost: Family<ByReason, Counter>,
    reports_dropped: Counter,
    reports_bytes: Gauge,
    reports_present: Gauge,
    resident_memory: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram = || Histogram::new(BUCKETS_SECS);
        let series = Series {
            decisions: Family::default(),
            decision_duration: histogram(),
            solver_duration: histogram(),
            queue_wait: histogram(),
            questions: Family::default(),
            instances: Counter::default(),
            known: Counter::default(),
            undecided: Family::default(),
            shed: Counter::default(),
            overruns: Counter::default(),
            panics: Counter::default(),
            workers_replaced: Counter::default(),
            queue_length: Gauge::default(),
            objects: Family::default(),
            forbidden: Family::default(),
            violations: Family::default(),
            not_audited: Family::default(),
            near_violations: Family::default(),
            near_rounds: Gauge::default(),
            invariant_overruns: Family::default(),
            invariant_steps: Family::default(),
            watch_lag: Family::default(),
            ledger_entries: Gauge::default(),
            ready: Gauge::default(),
            certificate_end: Gauge::default(),
            certificate_swaps: Counter::default(),
            strangers: Counter::default(),
            off: Family::default(),
            configuration_repairs: Counter::default(),
            reports: Counter::default(),
            reports_lost: Family::default(),
            reports_dropped: Counter::default(),
            reports_bytes: Gauge::default(),
            reports_present: Gauge::default(),
            resident_memory: Gauge::default(),
        };
        let mut registry = Registry::with_prefix("suture");
        series.register(&mut registry);
        Self { shared: Arc::new(Shared { registry, series }) }
    }
}

impl Series {
    fn register(&self, registry: &mut Registry) {
        let r = registry;
        r.register("build", "The version that runs", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        r.register("decisions", "Answers to the API server, by outcome", self.decisions.clone());
        let help = "From the arrival of a request to its answer";
        r.register_with_unit("decision_duration", help, Unit::Seconds, self.decision_duration.clone());
        let help = "Folding, caching and solving for a request that asked the solver anything";
        r.register_with_unit("solver_duration", help, Unit::Seconds, self.solver_duration.clone());
        let help = "From the arrival of a request to its turn";
        r.register_with_unit("queue_wait", help, Unit::Seconds, self.queue_wait.clone());
        r.register("questions", "Questions about instances, by what answered them", self.questions.clone());
        r.register("instances", "Instances of invariants that were judged", self.instances.clone());
        let help = "Requests that were decided before, from facts that are the same";
        r.register("known", help, self.known.clone());
        r.register("undecided", "Requests with something undecided, by reason", self.undecided.clone());
        r.register("shed", "Requests that found the queue full", self.shed.clone());
        r.register("overruns", "Requests that were not decided in time", self.overruns.clone());
        r.register("panics", "Decisions that failed by a bug", self.panics.clone());
        r.register("workers_replaced", "Threads that were stuck", self.workers_replaced.clone());
        r.register("queue_length", "Requests that wait for a worker", self.queue_length.clone());
        r.register("objects", "Objects that are known, by kind", self.objects.clone());
        let help = "1 for a resource that is needed and may not be listed and watched";
        r.register("forbidden", help, self.forbidden.clone());
        let help =
            "Instances that are violated in the cluster as it is, by invariant; only the replica that audits tells it";
        r.register("violations", help, self.violations.clone());
        let help = "1 for an invariant of which it is not known what is violated";
        r.register("not_audited", help, self.not_audited.clone());
        let help = "Instances that hold and that one fault or one request would break, by invariant, as far as it was looked; \
                    only the replica that audits tells it";
        r.register("near_violations", help, self.near_violations.clone());
        let help = "How often all objects were looked at for that, since the last change of invariants";
        r.register("near_rounds", help, self.near_rounds.clone());
        let help = "Decisions of which an invariant took all that it may take";
        r.register("invariant_overruns", help, self.invariant_overruns.clone());
        r.register("invariant_steps", "Steps that decisions took for an invariant", self.invariant_steps.clone());
        let help = "How far a watch may be behind, by kind";
        r.register_with_unit("watch_lag", help, Unit::Seconds, self.watch_lag.clone());
        r.register("ledger_entries", "Admitted changes that no watch has shown yet", self.ledger_entries.clone());
        r.register("ready", "1 when requests can be judged", self.ready.clone());
        let help = "When the certificate that is served ends, in seconds since 1970";
        r.register("certificate_end_timestamp", help, self.certificate_end.clone());
        r.register("certificate_swaps", "Certificates that took the place of one", self.certificate_swaps.clone());
        r.register("strangers", "Requests of those who do not know the webhook's address", self.strangers.clone());
        r.register("off", "1 where no request is judged, by what turned it off", self.off.clone());
        let help = "Times that somebody else changed the webhook's configuration and it was put right";
        r.register("configuration_repairs", help, self.configuration_repairs.clone());
        r.register("reports", "Reports that were kept", self.reports.clone());
        let help = "Reports of decisions that were made and are not kept, by reason";
        r.register("reports_lost", help, self.reports_lost.clone());
        let help = "Reports that were dropped for their age or to make room";
        r.register("reports_dropped", help, self.reports_dropped.clone());
        r.register("reports_size", "Bytes of the reports that are kept", self.reports_bytes.clone());
        r.register("reports_present", "Reports that are kept", self.reports_present.clone());
        let help = "Resident memory of the process";
        r.register_with_unit("resident_memory", help, Unit::Bytes, self.resident_memory.clone());
    }
}

impl Metrics {
    fn series(&self) -> &Series {
        &self.shared.series
    }

    /// A request was answered, so long after it came.
    pub fn decided(&self, outcome: Label, duration: Duration, effort: &Effort) {
        let series = self.series();
        series.decisions.get_or_create(&ByOutcome { outcome: outcome.as_str() }).inc();
        series.decision_duration.observe(duration.as_secs_f64());
        let Effort { instances, folded, solved, cached, rlimit: _, steps: _, solver_micros, known } = *effort;
        if known {
            series.known.inc();
        }
        if instances == 0 {
            return;
        }
        series.instances.inc_by(instances);
        for (by, count) in [("folding", folded), ("cache", cached), ("solver", solved)] {
            if count > 0 {
                series.questions.get_or_create(&ByAnswer { by }).inc_by(count);
            }
        }
        if solved > 0 {
            series.solver_duration.observe(Duration::from_micros(solver_micros).as_secs_f64());
        }
    }

    /// A request had something undecided for this reason.
    pub fn undecided(&self, reason: &'static str) {
        self.series().undecided.get_or_create(&ByReason { reason }).inc();
    }

    /// A request found the queue full.
    pub fn shed(&self) {
        self.series().shed.inc();
    }

    /// A request was not decided in time.
    pub fn overran(&self) {
        self.series().overruns.inc();
    }

    /// A decider, or the making of one, panicked.
    pub fn panicked(&self) {
        self.series().panics.inc();
    }

    /// A stuck thread was replaced.
    pub fn replaced(&self) {
        self.series().workers_replaced.inc();
    }

    /// So many requests waited for workers of some kind, and so many do now.
    pub fn queued(&self, before: usize, now: usize) {
        self.series().queue_length.inc_by(gauge(now) - gauge(before));
    }

    /// An invariant took all that it may take of a decision.
    pub fn invariant_overran(&self, invariant: String) {
        self.series().invariant_overruns.get_or_create(&ByInvariant { invariant }).inc();
    }

    /// Decisions took so many steps for an invariant so far.
    pub fn took(&self, invariant: String, steps: u64) {
        let series = self.series().invariant_steps.get_or_create(&ByInvariant { invariant });
        series.inner().store(steps, Ordering::Relaxed);
    }

    /// A request waited so long for its turn.
    pub fn waited(&self, wait: Duration) {
        self.series().queue_wait.observe(wait.as_secs_f64());
    }

    /// So many objects of a kind are known.
    pub fn objects(&self, kind: &str, count: usize) {
        self.series().objects.get_or_create(&ByKind { kind: kind.to_owned() }).set(gauge(count));
    }

    /// The watch of a kind may be so far behind.
    pub fn lag(&self, kind: &str, lag: Duration) {
        self.series().watch_lag.get_or_create(&ByKind { kind: kind.to_owned() }).set(lag.as_secs_f64());
    }

    /// A kind is watched no more.
    pub fn forget(&self, kind: &str) {
        let kind = ByKind { kind: kind.to_owned() };
        self.series().objects.remove(&kind);
        self.series().watch_lag.remove(&kind);
    }

    /// These resources may not be read, and no others.
    pub fn forbidden<'r>(&self, resources: impl Iterator<Item = &'r str>) {
        let series = &self.series().forbidden;
        series.clear();
        for resource in resources {
            series.get_or_create(&ByResource { resource: resource.to_owned() }).set(1);
        }
    }

    /// So many instances of each invariant are violated now, of those of which that is known; of no others anything is.
    pub fn audited(&self, found: impl Iterator<Item = (String, Option<usize>)>) {
        let Series { violations, not_audited, .. } = self.series();
        violations.clear();
        not_audited.clear();
        for (invariant, count) in found {
            let invariant = ByInvariant { invariant };
            match count {
                Some(count) => drop(violations.get_or_create(&invariant).set(gauge(count))),
                None => drop(not_audited.get_or_create(&invariant).set(1)),
            }
        }
    }

    /// So many instances of each invariant are one step away from being violated, after so many looks at all objects.
    pub fn near(&self, found: impl Iterator<Item = (String, usize)>, rounds: u64) {
        let Series { near_violations, near_rounds, .. } = self.series();
        near_violations.clear();
        for (invariant, count) in found {
            near_violations.get_or_create(&ByInvariant { invariant }).set(gauge(count));
        }
        near_rounds.set(i64::try_from(rounds).unwrap_or(i64::MAX));
    }

    /// So many admitted changes were not seen yet.
    pub fn ledger(&self, entries: usize) {
        self.series().ledger_entries.set(gauge(entries));
    }

    /// Whether requests can be judged.
    pub fn ready(&self, ready: bool) {
        self.series().ready.set(i64::from(ready));
    }

    /// Somebody asked who does not know the address.
    pub fn stranger(&self) {
        self.series().strangers.inc();
    }

    /// Whether no request is judged, for this reason.
    pub fn off(&self, reason: &'static str, off: bool) {
        self.series().off.get_or_create(&ByReason { reason }).set(i64::from(off));
    }

    /// The webhook's configuration was put right.
    pub fn repaired(&self) {
        self.series().configuration_repairs.inc();
    }

    /// So many reports were kept and so many dropped for it; of those that are left there are so many, of so many bytes.
    pub fn reports_kept(&self, kept: u64, dropped: u64, bytes: u64, present: u64) {
        let series = self.series();
        series.reports.inc_by(kept);
        series.reports_dropped.inc_by(dropped);
        series.reports_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        series.reports_present.set(i64::try_from(present).unwrap_or(i64::MAX));
    }

    /// So many decisions have no report, for this reason.
    pub fn reports_lost(&self, reason: &'static str, count: u64) {
        self.series().reports_lost.get_or_create(&ByReason { reason }).inc_by(count);
    }

    /// A certificate that ends then, in seconds since 1970, is served from now on.
    pub fn certificate(&self, end_secs: i64) {
        self.series().certificate_end.set(end_secs);
        self.series().certificate_swaps.inc();
    }

    /// All of them, as Prometheus reads them.
    ///
    /// # Errors
    /// Never, as far as is known: writing to a string does not fail.
    pub fn text(&self) -> Result<String, fmt::Error> {
        if let Some(bytes) = resident_bytes() {
            self.series().resident_memory.set(bytes);
        }
        let mut text = String::new();
        encode(&mut text, &self.shared.registry)?;
        Ok(text)
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The resident memory, where the system tells (`proc_pid_status(5)`).
fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<i64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests;
