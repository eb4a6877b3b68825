//! What an audit found, as objects of others' kinds: reports of openreports.io, and Events about what is violated since.
//!
//! | object | when |
//! |---|---|
//! | a `Report` for each namespace and a `ClusterReport`, labelled `suture.dev/report=serve` | it differs from what was written last; those of namespaces in which nothing is violated any more are deleted |
//! | an Event about an object | it violates an invariant that it did not violate at the audit before; none after the first audit of a replica, of which nobody knows what is new |
//!
//! Of a namespace's objects only those are named in it that are in the same one, or in none: who may read it may not read others.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use serde_json::{Map, Value as Json, json};
use suture_model::snapshot::Snapshot;
use tokio::sync::mpsc::UnboundedReceiver;

use super::api;
use super::events::Event;
use super::options::Telling;
use super::reports::redact::redacted;
use crate::output::openreports::{LABEL, RUNNING, Standing, cut, named, of_standings, version_in};
use crate::output::visible;

/// So many Events are written after an audit, which is half a minute after the one before at least.
const EVENTS_MAX: usize = 20;
const API: &str = "/apis/openreports.io/v1alpha1";

/// What is violated by an audit: which invariant, by which instance.
type Violation = (String, String);

/// What is told after an audit.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Whether nothing is known of what was told before.
    is_first: bool,
    reports: Vec<Json>,
    events: Vec<Event>,
    /// So many more objects violate something since.
    untold: usize,
}

/// What was violated at the last audit.
#[derive(Debug, Default)]
pub struct Compared(Option<BTreeSet<Violation>>);

impl Compared {
    /// What is to be told after an audit that found this.
    pub fn with(&mut self, standings: &[Standing<'_>], snapshot: &Snapshot, telling: Telling) -> Findings {
        let reports = if telling.open_reports { of_standings(standings, snapshot) } else { Vec::new() };
        let mut found = Findings { is_first: self.0.is_none(), ..Findings::default() };
        found.reports = reports.into_iter().map(shown).collect();
        let known = self.0.take();
        let mut violated = BTreeSet::new();
        for Standing { invariant, violations, .. } in standings {
            let Ok(violations) = violations else {
                // what was so before may still be
                let before = known.iter().flatten().filter(|(of, _)| of == invariant);
                violated.extend(before.cloned());
                continue;
            };
            for (instance, message) in *violations {
                let violation = ((*invariant).to_owned(), instance.clone());
                let is_new = known.as_ref().is_some_and(|known| !known.contains(&violation));
                violated.insert(violation);
                if !is_new || !telling.events {
                    continue;
                }
                match found.events.len() {
                    0..EVENTS_MAX => found.events.push(event(invariant, instance, message, snapshot)),
                    _ => found.untold += 1,
                }
            }
        }
        self.0 = Some(violated);
        found
    }
}

fn event(invariant: &str, instance: &str, message: &str, snapshot: &Snapshot) -> Event {
    let (kind, namespace, name) = named(instance);
    let mut regarding = Map::from_iter([("kind".to_owned(), json!(kind)), ("name".to_owned(), json!(name))]);
    if let Some(version) = version_in(snapshot, kind, namespace, name) {
        regarding.insert("apiVersion".to_owned(), json!(version));
    }
    if !namespace.is_empty() {
        regarding.insert("namespace".to_owned(), json!(namespace));
    }
    let text = visible(&format!("{invariant}: {message}"));
    let text = match redacted(json!(text), &|other| is_shown(namespace, other)) {
        Json::String(text) => text,
        _ => invariant.to_owned(),
    };
    let message = cut(&text);
    Event { regarding: Json::Object(regarding), warns: true, reason: "InvariantViolated", message }
}

/// A report as who reads its namespace may see it.
fn shown(mut report: Json) -> Json {
    let namespace = text(&report, &["metadata", "namespace"]).map(str::to_owned);
    if let (Some(namespace), Some(results)) = (namespace, report.get_mut("results")) {
        *results = redacted(results.take(), &|other| is_shown(&namespace, other));
    }
    report
}

fn is_shown(namespace: &str, other: &str) -> bool {
    namespace.is_empty() || other.is_empty() || other == namespace
}

fn text<'j>(json: &'j Json, path: &[&str]) -> Option<&'j str> {
    path.iter().try_fold(json, |part, key| part.get(key)).and_then(Json::as_str)
}

/// The path of a report; `None` for what is no object of the API.
fn path(report: &Json) -> Option<String> {
    let name = text(report, &["metadata", "name"])?;
    Some(match text(report, &["metadata", "namespace"]) {
        Some(namespace) => format!("{API}/namespaces/{namespace}/reports/{name}"),
        None => format!("{API}/clusterreports/{name}"),
    })
}

/// Writes what is told, for as long as anything is.
pub async fn write(client: Client, mut told: UnboundedReceiver<Findings>, telling: Telling) {
    let mut written = None;
    while let Some(mut findings) = told.recv().await {
        // only the newest reports matter
        while let Ok(newer) = told.try_recv() {
            let events = findings.events.into_iter().chain(newer.events).collect();
            let is_first = findings.is_first || newer.is_first;
            findings = Findings { events, is_first, untold: findings.untold + newer.untold, ..newer };
        }
        if telling.open_reports {
            let before = if findings.is_first { None } else { written.take() };
            match write_reports(&client, &findings.reports, before).await {
                Ok(now) => written = Some(now),
                Err(error) => tracing::warn!(
                    why = api::brief(&error),
                    "reports of openreports.io cannot be written: are its definitions installed, and the rights of \
                     `suture manifests rbac --open-reports`?"
                ),
            }
        }
        for event in &findings.events {
            event.write(&client).await;
        }
        if findings.untold > 0 {
            tracing::warn!(count = findings.untold, "more objects violate invariants since than Events are written");
        }
    }
}

/// Writes the reports that differ from those before, and deletes those that are over; gives what is there now. Where it is not
/// known what was there before, the API server is asked.
async fn write_reports(
    client: &Client,
    reports: &[Json],
    before: Option<BTreeMap<String, Json>>,
) -> kube::Result<BTreeMap<String, Json>> {
    let mut there = match before {
        Some(before) => before,
        None => listed(client).await?,
    };
    let wanted: BTreeMap<String, &Json> = reports.iter().filter_map(|report| Some((path(report)?, report))).collect();
    for (path, report) in &wanted {
        if there.get(path) == Some(*report) {
            continue;
        }
        match api::apply(client, path, (*report).clone()).await {
            Ok(()) => drop(there.insert(path.clone(), (*report).clone())),
            // a namespace that is going takes nothing any more; the next audit tries again
            Err(error) => tracing::debug!(path, why = api::brief(&error), "a report cannot be written"),
        }
    }
    let over: Vec<String> = there.keys().filter(|path| !wanted.contains_key(*path)).cloned().collect();
    for path in over {
        let is_gone = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
        match api::send(client, "DELETE", &path, None).await {
            Err(error) if !is_gone(&error) => {
                tracing::debug!(path, why = api::brief(&error), "a report cannot be deleted");
            }
            _ => drop(there.remove(&path)),
        }
    }
    Ok(there)
}

/// The reports of a running Suture that are there, with nothing known of them.
async fn listed(client: &Client) -> kube::Result<BTreeMap<String, Json>> {
    let mut found = BTreeMap::new();
    for plural in ["reports", "clusterreports"] {
        let list = api::send(client, "GET", &format!("{API}/{plural}?labelSelector={LABEL}%3D{RUNNING}"), None).await?;
        let items = list.get("items").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        found.extend(items.iter().filter_map(|item| Some((path(item)?, Json::Null))));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use suture_specs::spec::Action;

    use super::*;

    fn told(compared: &mut Compared, violations: &[(String, String)]) -> Findings {
        let standing = Standing { invariant: "serves", action: Action::Deny, violations: Ok(violations) };
        compared.with(&[standing], &Snapshot::default(), Telling { open_reports: true, events: true })
    }

    fn violated(names: &[&str]) -> Vec<(String, String)> {
        let each = |name: &&str| (format!("Service/shop/{name}"), format!("Pod/other/db of {name} is lost"));
        names.iter().map(each).collect()
    }

    #[test]
    fn what_is_new_is_told_by_an_event_and_names_nothing_of_another_namespace() {
        let mut compared = Compared::default();
        let first = told(&mut compared, &violated(&["web"]));
        assert!(first.is_first && first.events.is_empty(), "{first:?}");
        let report = first.reports.iter().find(|report| report["kind"] == "Report").unwrap();
        assert_eq!(path(report).unwrap(), format!("{API}/namespaces/shop/reports/suture-serve"));
        assert_eq!(report["summary"]["fail"], 1);
        assert!(
            !report.to_string().contains("other/db") && report.to_string().contains("Service/shop/web"),
            "{report}"
        );
        let second = told(&mut compared, &violated(&["web", "api"]));
        let [event] = &*second.events else { unreachable!("{second:?}") };
        assert_eq!(event.regarding, json!({"apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "api"}));
        assert!(event.message.starts_with("serves: ") && !event.message.contains("db"), "{}", event.message);
        assert!(!second.is_first);
        assert_eq!(told(&mut compared, &[]).events, []);
        assert_eq!(told(&mut compared, &violated(&["web"])).events.len(), 1, "it is new again");
    }

    #[test]
    fn what_is_not_known_is_an_error_and_nothing_new() {
        let mut compared = Compared::default();
        told(&mut compared, &violated(&["web"]));
        let standing = Standing { invariant: "serves", action: Action::Deny, violations: Err("not read") };
        let unknown = compared.with(&[standing], &Snapshot::default(), Telling { open_reports: true, events: true });
        assert_eq!(unknown.reports.len(), 1);
        assert_eq!(
            (&unknown.reports[0]["kind"], &unknown.reports[0]["summary"]["error"]),
            (&json!("ClusterReport"), &json!(1))
        );
        assert_eq!(told(&mut compared, &violated(&["web"])).events, [], "it was so before");
    }

    #[test]
    fn events_are_few_at_a_time() {
        let mut compared = Compared::default();
        told(&mut compared, &[]);
        let names: Vec<String> = (0..EVENTS_MAX + 5).map(|at| format!("s{at}")).collect();
        let many = told(&mut compared, &violated(&names.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!((many.events.len(), many.untold), (EVENTS_MAX, 5));
    }
}
