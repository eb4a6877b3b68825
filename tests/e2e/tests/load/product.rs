//! What Suture tells of itself: its metrics, the processor time of its process, and its log lines about slow decisions.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use suture_e2e::Suture;

/// A decision that takes longer is told about; a bound of the product's buckets.
pub const SLOW_SECS: f64 = 0.05;

/// What happened between two looks.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// The metrics by their name and labels, without the product's prefix.
    series: BTreeMap<String, f64>,
    pub user_secs: f64,
    pub system_secs: f64,
}

impl Told {
    /// What it tells now.
    pub fn of(suture: &Suture) -> Self {
        let replica = &suture.replicas[0];
        let text = replica.metrics().unwrap_or_default();
        let one = |line: &str| {
            let (name, value) = line.strip_prefix("suture_")?.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let [user_secs, system_secs] = replica.process.processor_secs().expect("it is up");
        Self { series: text.lines().filter_map(one).collect(), user_secs, system_secs }
    }

    /// What came since an earlier look. Of no use for series that do not only grow.
    pub fn since(mut self, earlier: &Self) -> Self {
        self.series.iter_mut().for_each(|(name, value)| *value -= earlier.get(name));
        self.user_secs -= earlier.user_secs;
        self.system_secs -= earlier.system_secs;
        self
    }

    /// Both together.
    pub fn add(&mut self, other: Self) {
        for (name, value) in other.series {
            *self.series.entry(name).or_default() += value;
        }
        self.user_secs += other.user_secs;
        self.system_secs += other.system_secs;
    }

    /// A series, zero if there is none.
    pub fn get(&self, name: &str) -> f64 {
        self.series.get(name).copied().unwrap_or_default()
    }

    /// The series of a name that have this label, by its value.
    pub fn by_label<'s>(&'s self, name: &str, label: &str) -> impl Iterator<Item = (&'s str, f64)> {
        let begin = format!("{name}{{{label}=\"");
        let all = self.series.iter();
        all.filter_map(move |(series, value)| Some((series.strip_prefix(&begin)?.strip_suffix("\"}")?, *value)))
    }

    /// Answers of any kind.
    pub fn decisions(&self) -> f64 {
        self.get("decision_duration_seconds_count")
    }

    /// How often a duration was longer than [`SLOW_SECS`].
    pub fn slow(&self, histogram: &str) -> f64 {
        self.get(&format!("{histogram}_seconds_count"))
            - self.get(&format!("{histogram}_seconds_bucket{{le=\"{SLOW_SECS}\"}}"))
    }

    /// A sum over the decisions.
    pub fn per_decision(&self, sum: f64) -> f64 {
        sum / self.decisions().max(1.0)
    }
}

/// The log lines about decisions longer than [`SLOW_SECS`], as milliseconds and what the line says. The product writes
/// lines about allowed requests only for whoever debugs.
pub fn slow_lines(suture: &Suture) -> Vec<(f64, String)> {
    let bytes = fs::read(suture.replicas[0].process.log()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let one = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let millis = line["micros"].as_f64()? / 1e3;
        let span = &line["span"];
        let word = |name: &str| span[name].as_str().unwrap_or_default();
        let fields = line.as_object()?.iter().filter(|(name, _)| {
            !["timestamp", "level", "target", "span", "micros", "message", "code"].contains(&name.as_str())
        });
        let fields: Vec<String> = fields.map(|(name, value)| format!("{name} {value}")).collect();
        let [operation, kind, sub, place] = ["operation", "kind", "subresource", "namespace"].map(word);
        (millis > SLOW_SECS * 1e3)
            .then(|| (millis, format!("{operation} {kind} {sub} in {place}: {}", fields.join(", "))))
    };
    text.lines().filter_map(one).collect()
}
