//! How one object stands: from what this replica says and what the others have said, the next status.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};
use suture_specs::spec::Action;

use crate::failure::plural;

/// How many violations a status lists, as its schema bounds it.
const VIOLATIONS_MAX: usize = 20;
/// How many replicas a status lists, as its schema bounds it.
const PODS_MAX: usize = 32;
/// A message is cut after so many characters: etcd holds many objects.
const MESSAGE_CHARS_MAX: usize = 1024;

/// The conditions of which only the replica that audits has a say.
const VIOLATED: &str = "Violated";
const ONE_STEP_AWAY: &str = "OneStepAway";

/// What an audit says about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audited {
    /// Nothing can be violated: it is no invariant.
    Nothing,
    /// Another replica says.
    Elsewhere,
    /// What is violated is not known, for this reason and in words.
    Unknown(&'static str, String),
    /// What is violated now: instances and messages.
    Found(Vec<(String, String)>),
}

/// What a replica says about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceStatus {
    /// The uid of the object: one that was made again has no status yet.
    pub uid: String,
    /// The generation that is loaded.
    pub generation: i64,
    /// What becomes of a request that it refuses, if it is an invariant or a grant, and compiles.
    pub action: Option<Action>,
    /// What the compiler says, if it does not compile.
    pub compiled: Result<(), String>,
    /// What is missing, if not all that it reads is listed.
    pub ready: Result<(), String>,
    /// Why requests are not judged by it, if they are not.
    pub enforced: Result<(), String>,
    /// Whose requests it takes too long for, if it is an invariant and does for some.
    pub in_time: Option<Result<(), String>>,
    /// What is violated.
    pub audited: Audited,
    /// How many instances of it are one step away from being violated, and whether all objects were looked at; none where
    /// nobody looked.
    pub near: Option<(usize, bool)>,
}

/// The status after this replica has said what it has to say. Where nothing changes, it is the old one, byte for byte.
pub fn next_status(
    old: &Json,
    pod: &str,
    resource_status: &ResourceStatus,
    replicas: &BTreeSet<String>,
    now: &str,
) -> Json {
    let pods = by_pod(old, pod, resource_status, replicas, now);
    let mut next = old.as_object().cloned().unwrap_or_default();
    match &resource_status.audited {
        Audited::Found(found) => {
            drop(next.insert("violations".to_owned(), violations(old.get("violations"), found, now)))
        }
        Audited::Nothing | Audited::Unknown(..) => drop(next.remove("violations")),
        Audited::Elsewhere => {}
    }
    match resource_status.action {
        Some(action) => drop(next.insert("action".to_owned(), json!(action))),
        None => drop(next.remove("action")),
    }
    let conditions = conditions(old, resource_status, &pods, now);
    next.insert("observedGeneration".to_owned(), json!(resource_status.generation));
    next.insert("conditions".to_owned(), Json::Array(conditions));
    next.insert("byPod".to_owned(), Json::Array(pods));
    Json::Object(next)
}

/// The entries of all replicas that are there, by name; this one's is new.
fn by_pod(
    old: &Json,
    pod: &str,
    resource_status: &ResourceStatus,
    replicas: &BTreeSet<String>,
    now: &str,
) -> Vec<Json> {
    let name = |entry: &Json| entry.get("pod").and_then(Json::as_str).unwrap_or_default().to_owned();
    let known = old.get("byPod").and_then(Json::as_array).cloned().unwrap_or_default();
    let wrong = [&resource_status.compiled, &resource_status.ready, &resource_status.enforced]
        .into_iter()
        .chain(&resource_status.in_time)
        .find_map(|s| s.as_ref().err());
    let mut own = json!({
        "pod": pod,
        "observedGeneration": resource_status.generation,
        "compiled": resource_status.compiled.is_ok(),
        "ready": resource_status.ready.is_ok(),
        "enforced": resource_status.enforced.is_ok(),
        "message": wrong.map_or_else(String::new, |message| cut(message)),
    });
    if let (Some(in_time), Some(own)) = (&resource_status.in_time, own.as_object_mut()) {
        own.insert("inTime".to_owned(), json!(in_time.is_ok()));
    }
    let mut entries: Vec<Json> = known
        .iter()
        .filter(|e| name(e) != pod && (replicas.is_empty() || replicas.contains(&name(e))))
        .cloned()
        .collect();
    let before = known.into_iter().find(|entry| name(entry) == pod);
    entries.push(stamped(before.as_ref(), own, "reported", now));
    entries.sort_by_key(name);
    entries.truncate(PODS_MAX);
    entries
}

fn violations(old: Option<&Json>, found: &[(String, String)], now: &str) -> Json {
    let first: Vec<Json> = found
        .iter()
        .take(VIOLATIONS_MAX)
        .map(|(instance, message)| json!({"instance": instance, "message": cut(message)}))
        .collect();
    stamped(old, json!({"total": found.len(), "first": first}), "audited", now)
}

/// An entry with the time since which it says so.
fn stamped(before: Option<&Json>, entry: Json, field: &str, now: &str) -> Json {
    let Json::Object(mut entry) = entry else { return entry };
    let same = before.and_then(Json::as_object).filter(|before| {
        let without = |map: &Map<String, Json>| map.iter().filter(|(key, _)| *key != field).count();
        without(before) == entry.len() && entry.iter().all(|(key, value)| before.get(key) == Some(value))
    });
    match same {
        Some(before) => Json::Object(before.clone()),
        None => {
            entry.insert(field.to_owned(), json!(now));
            Json::Object(entry)
        }
    }
}

/// One condition in the making: type, whether it holds, reason, message.
type Aspect = (&'static str, &'static str, &'static str, String);

fn conditions(old: &Json, resource_status: &ResourceStatus, pods: &[Json], now: &str) -> Vec<Json> {
    let known = old.get("conditions").and_then(Json::as_array).cloned().unwrap_or_default();
    let aspects = [
        Some(compiled(resource_status)),
        Some(everywhere(pods, resource_status.generation, "Ready", "ready", ("Loaded", "NotReady"))),
        Some(everywhere(pods, resource_status.generation, "Enforced", "enforced", ("Judging", "NotJudging"))),
        resource_status
            .in_time
            .as_ref()
            .map(|_| everywhere(pods, resource_status.generation, "InTime", "inTime", ("Decides", "Overran"))),
        violated(&resource_status.audited),
        one_step_away(resource_status),
    ];
    let condition = |(name, status, reason, message): Aspect| {
        let before = known.iter().find(|c| c.get("type").and_then(Json::as_str) == Some(name));
        let since = before.filter(|c| c.get("status").and_then(Json::as_str) == Some(status));
        let since = since.and_then(|c| c.get("lastTransitionTime").cloned()).unwrap_or_else(|| json!(now));
        json!({
            "type": name,
            "status": status,
            "observedGeneration": resource_status.generation,
            "lastTransitionTime": since,
            "reason": reason,
            "message": cut(&message),
        })
    };
    let is_elsewhere = resource_status.audited == Audited::Elsewhere;
    let elsewhere = [VIOLATED, ONE_STEP_AWAY].into_iter().filter(|_| is_elsewhere).map(|name| {
        let said = known.iter().find(|c| c.get("type").and_then(Json::as_str) == Some(name)).cloned();
        said.unwrap_or_else(|| condition((name, "Unknown", "NotAudited", "not audited yet".to_owned())))
    });
    aspects.into_iter().flatten().map(condition).chain(elsewhere).collect()
}

fn compiled(resource_status: &ResourceStatus) -> Aspect {
    match &resource_status.compiled {
        Ok(()) => ("Compiled", "True", "Compiles", String::new()),
        Err(message) => ("Compiled", "False", "DoesNotCompile", message.clone()),
    }
}

/// Whether every replica says so of this generation.
fn everywhere(
    pods: &[Json],
    generation: i64,
    name: &'static str,
    field: &str,
    (yes, no): (&'static str, &'static str),
) -> Aspect {
    let current = |pod: &&Json| pod.get("observedGeneration").and_then(Json::as_i64) == Some(generation);
    // a replica that says nothing of it is of an older version
    let says = |pod: &&Json| pod.get(field).and_then(Json::as_bool) != Some(false);
    let agreeing = pods.iter().filter(|pod| current(pod) && says(pod)).count();
    if agreeing == pods.len() {
        return (name, "True", yes, format!("{agreeing} of {} replicas", pods.len()));
    }
    let against = pods.iter().find(|pod| current(pod) && !says(pod));
    let text = |pod: &Json, key: &str| pod.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    match against {
        Some(pod) => (name, "False", no, format!("{}: {}", text(pod, "pod"), text(pod, "message"))),
        // the others have not got there yet
        None => (name, "Unknown", "Updating", format!("{agreeing} of {} replicas", pods.len())),
    }
}

/// Whether anything is violated, if this replica has a say in it.
fn violated(audited: &Audited) -> Option<Aspect> {
    let found = match audited {
        Audited::Nothing | Audited::Elsewhere => return None,
        Audited::Unknown(reason, message) => return Some((VIOLATED, "Unknown", *reason, message.clone())),
        Audited::Found(found) => found,
    };
    Some(match found.len() {
        0 => (VIOLATED, "False", "Holds", String::new()),
        total => (VIOLATED, "True", "Violations", plural(total, "instance", "instances")),
    })
}

/// Whether one fault or one request would violate something, if this replica has a say in it.
fn one_step_away(resource_status: &ResourceStatus) -> Option<Aspect> {
    match (&resource_status.audited, resource_status.near) {
        (Audited::Nothing | Audited::Elsewhere, _) => None,
        (_, None) => Some((ONE_STEP_AWAY, "Unknown", "NotAudited", "not audited yet".to_owned())),
        (_, Some((0, false))) => Some((ONE_STEP_AWAY, "Unknown", "Looking", "none so far".to_owned())),
        (_, Some((0, true))) => Some((ONE_STEP_AWAY, "False", "Far", String::new())),
        (_, Some((total, _))) => Some((ONE_STEP_AWAY, "True", "Near", plural(total, "instance", "instances"))),
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MESSAGE_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(MESSAGE_CHARS_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
