//! Findings as `Report` and `ClusterReport` of openreports.io/v1alpha1 (<https://github.com/openreports/reports-api>,
//! `apis/openreports.io/v1alpha1`), which dashboards of policies read: one object for each namespace, and one for what is in
//! none. `kubectl apply -f -` takes them.
//!
//! | found | `result` |
//! |---|---|
//! | refuted, and the invariant denies | `fail` |
//! | refuted, and it warns or is audited only | `warn` |
//! | undecided | `error` |
//! | can break without the change as well | `skip` |
//! | proved | `pass` |

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use suture_checker::decision::{Finding, Verdict};
use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_specs::spec::Action;

use super::denial::About;
use super::visible;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::replay::report::{Found, Replayed};
use crate::report::Report;

/// What results say that they are from.
const SOURCE: &str = "suture";
/// The label by which the objects of one command are found again.
pub const LABEL: &str = "suture.dev/report";
/// Its value on what a running Suture says.
pub const RUNNING: &str = "serve";
/// An object has no more results than these: etcd takes 1.5 MiB (`--max-request-bytes`).
const RESULTS_MAX: usize = 500;
/// A message is cut after so many bytes: one of an Event has 1,024 (`pkg/apis/core/validation/events.go`).
const MESSAGE_BYTES_MAX: usize = 1_000;
const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// One result, and where it belongs.
#[derive(Clone, Debug)]
struct Placed {
    namespace: String,
    result: Outcome,
}

/// A `ReportResult`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Outcome {
    source: &'static str,
    policy: String,
    result: &'static str,
    severity: &'static str,
    scored: bool,
    message: String,
    resources: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Value>,
    properties: BTreeMap<&'static str, String>,
}

/// What a running audit says of an invariant.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// Its name.
    pub invariant: &'a str,
    /// What it does.
    pub action: Action,
    /// The instances that violate it, with messages; why that is not known, if it is not.
    pub violations: Result<&'a [(String, String)], &'a str>,
}

/// What is said of an instance.
#[derive(Clone, Copy, Debug)]
struct Told<'v> {
    invariant: &'v str,
    instance: &'v str,
    outcome: Finding,
    action: Action,
    message: &'v str,
}

impl<'v> From<&'v Verdict> for Told<'v> {
    fn from(verdict: &'v Verdict) -> Self {
        let Verdict { invariant, instance, outcome, action, message, .. } = verdict;
        Self { invariant, instance, outcome: *outcome, action: *action, message }
    }
}

/// Finds the apiVersion of an object by its kind and name.
type Versions<'v> = &'v dyn Fn(&str, &str, &str) -> Option<String>;

/// A decision or an audit, as YAML documents. `now` is the time that it is about.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn of_report(report: &Report, snapshot: &Snapshot, now: Option<Clock>) -> Result<String, Failure> {
    let about = report.about();
    let versions = |kind: &str, namespace: &str, name: &str| version_in(snapshot, kind, namespace, name);
    let asked: Vec<&str> = report.requests.iter().map(|request| request.text.as_str()).collect();
    let placed = report.decision.verdicts.iter().map(|verdict| {
        let mut properties = properties(verdict);
        if !asked.is_empty() {
            properties.insert("request", visible(&asked.join(", then ")));
        }
        placed(verdict.into(), &versions, now.map(Clock::nanos), properties)
    });
    let name = if about == About::Present { "audit" } else { "check" };
    yaml(objects(name, placed.collect()))
}

/// What a replay found, as YAML documents; of writes that are alike the first one, with how many there are.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn of_replay(replayed: &Replayed) -> Result<String, Failure> {
    let versions = |kind: &str, _: &str, _: &str| builtin_version(kind);
    let mut results = Vec::new();
    for group in replayed.groups() {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let verdicts = first.report.iter().flat_map(|report| &report.decision.verdicts);
        for verdict in verdicts.filter(|verdict| !verdict.outcome.is_passed()) {
            let mut properties = properties(verdict);
            properties.extend(of_write(first, last, group.len()));
            let at = first.time.as_deref().and_then(|time| Clock::parse(time).ok()).map(Clock::nanos);
            results.push(placed(verdict.into(), &versions, at, properties));
        }
    }
    yaml(objects("replay", results))
}

/// What a running audit says, as objects; without times, so that they change only where what is violated does. An invariant of
/// which nothing is known has an error that is about no object.
pub fn of_standings(standings: &[Standing<'_>], snapshot: &Snapshot) -> Vec<Value> {
    let versions = |kind: &str, namespace: &str, name: &str| version_in(snapshot, kind, namespace, name);
    let mut results = Vec::new();
    for Standing { invariant, action, violations } in standings {
        let action = *action;
        let placed = |told: Told<'_>| {
            let properties = BTreeMap::from([("action", format!("{action:?}")), ("instance", visible(told.instance))]);
            placed(told, &versions, None, properties)
        };
        match violations {
            Ok(found) => results.extend(found.iter().map(|(instance, message)| {
                placed(Told { invariant, instance, outcome: Finding::Refuted, action, message })
            })),
            Err(why) => {
                let told = Told { invariant, instance: "", outcome: Finding::Undecided, action, message: why };
                results.push(placed(told));
            }
        }
    }
    objects(RUNNING, results)
}

fn of_write<'f>(first: &'f Found, last: &'f Found, count: usize) -> impl Iterator<Item = (&'static str, String)> {
    let told = [
        ("request", Some(first.request.clone())),
        ("user", Some(first.user.clone())),
        ("place", Some(first.place.clone())),
        ("auditID", Some(first.id.clone()).filter(|id| !id.is_empty())),
        ("count", Some(count.to_string())),
        ("last", last.time.clone()),
    ];
    told.into_iter().filter_map(|(name, text)| Some((name, visible(&text?))))
}

fn properties(verdict: &Verdict) -> BTreeMap<&'static str, String> {
    let mut properties = BTreeMap::from([
        ("outcome", format!("{:?}", verdict.outcome)),
        ("action", format!("{:?}", verdict.action)),
        ("instance", visible(&verdict.instance)),
    ]);
    if let Some(counterexample) = verdict.counterexample.as_ref().filter(|found| !found.broken.is_empty()) {
        properties.insert("clause", cut(&visible(&counterexample.broken)));
    }
    if !verdict.nearest_allowed.is_empty() {
        properties.insert("allowedInstead", cut(&visible(&verdict.nearest_allowed.join("; "))));
    }
    properties
}

fn placed(
    told: Told<'_>,
    versions: Versions<'_>,
    nanos: Option<i128>,
    properties: BTreeMap<&'static str, String>,
) -> Placed {
    let Told { invariant, instance, outcome, action, message } = told;
    let (kind, namespace, name) = named(instance);
    let (result, severity) = match (outcome, action) {
        (Finding::Refuted, Action::Deny) => ("fail", "high"),
        (Finding::Refuted, Action::Warn) => ("warn", "medium"),
        (Finding::Refuted, Action::Audit) => ("warn", "low"),
        (Finding::Undecided, _) => ("error", "medium"),
        (Finding::NotWorse, _) => ("skip", "info"),
        (Finding::Proved, _) => ("pass", "info"),
    };
    let mut resource = Map::from_iter([field("kind", kind), field("name", name)]);
    resource.extend(versions(kind, namespace, name).map(|version| field("apiVersion", version)));
    resource.extend(Some(namespace).filter(|namespace| !namespace.is_empty()).map(|ns| field("namespace", ns)));
    let timestamp = nanos.map(|nanos| {
        json!({"seconds": i64::try_from(nanos.div_euclid(NANOS_PER_SECOND)).unwrap_or_default(),
            "nanos": i64::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).unwrap_or_default()})
    });
    let message = if message.is_empty() { "it holds in every future" } else { message };
    let result = Outcome {
        source: SOURCE,
        policy: invariant.to_owned(),
        result,
        severity,
        scored: action == Action::Deny,
        message: cut(&visible(message)),
        resources: if instance.is_empty() { Vec::new() } else { vec![Value::Object(resource)] },
        timestamp,
        properties,
    };
    Placed { namespace: namespace.to_owned(), result }
}

/// The objects: for each namespace as many as its results need. There always is one for what is in no namespace: `kubectl apply`
/// fails where there is nothing to apply, and that nothing was found is worth a report.
fn objects(command: &str, placed: Vec<Placed>) -> Vec<Value> {
    let mut by_namespace: BTreeMap<String, Vec<Outcome>> = BTreeMap::from([(String::new(), Vec::new())]);
    for Placed { namespace, result } in placed {
        by_namespace.entry(namespace).or_default().push(result);
    }
    let mut objects = Vec::new();
    for (namespace, results) in &by_namespace {
        let first = results.get(..RESULTS_MAX.min(results.len())).unwrap_or_default();
        objects.push(object(command, namespace, 1, first));
        for (number, results) in (1..).zip(results.chunks(RESULTS_MAX)).skip(1) {
            objects.push(object(command, namespace, number, results));
        }
    }
    objects
}

fn object(command: &str, namespace: &str, number: usize, results: &[Outcome]) -> Value {
    let count = |wanted: &str| results.iter().filter(|result| result.result == wanted).count();
    let name = if number == 1 { format!("suture-{command}") } else { format!("suture-{command}-{number}") };
    let labels = json!({"app.kubernetes.io/managed-by": SOURCE, LABEL: command});
    let mut metadata = Map::from_iter([field("name", name), field("labels", labels)]);
    let kind = if namespace.is_empty() { "ClusterReport" } else { "Report" };
    let mut object = Map::from_iter([field("apiVersion", "openreports.io/v1alpha1"), field("kind", kind)]);
    let mut scope = None;
    if !namespace.is_empty() {
        metadata.extend([field("namespace", namespace)]);
        scope = Some(field("scope", json!({"apiVersion": "v1", "kind": "Namespace", "name": namespace})));
    }
    let summary = json!({"pass": count("pass"), "fail": count("fail"), "warn": count("warn"),
        "error": count("error"), "skip": count("skip")});
    object.extend([field("metadata", metadata), field("source", SOURCE)]);
    object.extend(scope);
    object.extend([field("summary", summary), field("results", json!(results))]);
    Value::Object(object)
}

/// An entry of an object.
fn field(name: &str, value: impl Into<Value>) -> (String, Value) {
    (name.to_owned(), value.into())
}

fn yaml(objects: Vec<Value>) -> Result<String, Failure> {
    let documents: Result<Vec<String>, _> = objects.iter().map(serde_saphyr::to_string).collect();
    Ok(documents.map_err(Failure::invalid)?.join("---\n"))
}

/// The parts of `Kind/namespace/name` or `Kind/name`.
pub fn named(instance: &str) -> (&str, &str, &str) {
    match instance.split_once('/') {
        Some((kind, rest)) => match rest.split_once('/') {
            Some((namespace, name)) => (kind, namespace, name),
            None => (kind, "", rest),
        },
        None => (instance, "", ""),
    }
}

/// A text without what is too much of it.
pub fn cut(text: &str) -> String {
    let mut end = MESSAGE_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (kept, rest) = text.split_at(end);
    if rest.is_empty() { kept.to_owned() } else { format!("{kept}…") }
}

/// The apiVersion of the object of this kind and name.
pub fn version_in(snapshot: &Snapshot, kind: &str, namespace: &str, name: &str) -> Option<String> {
    let mut of_name = snapshot.kinds().into_iter().filter(|known| &*known.kind == kind);
    let found = of_name.find_map(|kind| {
        let object = snapshot.get(&Key::new(kind, namespace, name))?.to_val();
        object.str_at(&["apiVersion"]).map(ToString::to_string)
    });
    found.or_else(|| builtin_version(kind))
}

/// The apiVersion of a built-in kind, as far as its group says it: that of the core group, and of those that have no other.
fn builtin_version(kind: &str) -> Option<String> {
    match &*Kind::builtin(kind)?.group {
        "" => Some("v1".to_owned()),
        group
        @ ("apps" | "batch" | "policy" | "storage.k8s.io" | "rbac.authorization.k8s.io" | "networking.k8s.io") => {
            Some(format!("{group}/v1"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
