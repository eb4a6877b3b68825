//! What an expression may read of the request and the clock, and what in flight is looked at.

use std::collections::{BTreeMap, BTreeSet};

use suture_encode::analysis::Analysis;
use suture_encode::question::Inputs;
use suture_encode::relevance::Relevance;
use suture_model::change::Request;
use suture_model::object::Key;
use suture_specs::compile::CompiledInvariant;
use suture_specs::error::EvalError;
use suture_specs::time::parse_timestamp;
use suture_specs::value::{MapKey, Value};

use crate::engine::Input;

/// The inputs of a request; without one (an audit) its fields are empty.
pub fn of(request: Option<&Request>, time: Option<&str>) -> Inputs {
    let text = |s: &str| Value::str(s);
    let user = request.map(|r| &r.user);
    let groups = user.map(|u| u.groups.iter().map(|g| text(g)).collect()).unwrap_or_default();
    let user = map([
        ("username", text(user.map_or("", |u| &u.username))),
        ("groups", Value::list(groups)),
        ("uid", text(user.map_or("", |u| &u.uid))),
    ]);
    let kind = map([
        ("group", text(request.map_or("", |r| &r.target.kind.group))),
        ("kind", text(request.map_or("", |r| &r.target.kind.kind))),
    ]);
    let fields = map([
        ("user", user),
        ("uid", text(request.map_or("", |r| &r.uid))),
        ("operation", text(request.map_or("", |r| r.operation.as_str()))),
        ("subresource", text(request.map_or("", |r| &r.subresource))),
        ("kind", kind),
        ("namespace", text(request.map_or("", |r| &r.target.ns))),
        ("name", text(request.map_or("", |r| &r.target.name))),
        ("dryRun", Value::Bool(request.is_some_and(|r| r.dry_run))),
        ("options", request.map_or(Value::Null, |r| Value::from(&r.options))),
    ]);
    let time = time.ok_or_else(no_clock).and_then(parse_timestamp).map(Value::Timestamp);
    Inputs { request: fields, time }
}

/// More changes in flight than these are looked at first, whether they matter: each doubles the scenarios.
const IN_FLIGHT_FEW: usize = 4;

/// The changes in flight that can matter to the change, oldest first, if they are more than a few; else all of them.
pub fn in_flight<'i>(input: &Input<'i>, analyses: &[Analysis]) -> Vec<&'i Request> {
    if input.in_flight.len() <= IN_FLIGHT_FEW {
        return input.in_flight.iter().collect();
    }
    let relevance = Relevance::new(input.snapshot, analyses);
    // what matters to one request of a batch may do so by way of another one
    let all = || input.in_flight.iter().chain(&input.change.requests);
    let matter = input.change.requests.iter().flat_map(|request| relevance.select(all(), request).places);
    let places: BTreeSet<usize> = matter.collect();
    places.iter().filter_map(|at| input.in_flight.get(*at)).collect()
}

/// What the first request is about.
pub fn target_of(input: &Input<'_>) -> Key {
    input.change.requests.first().map_or_else(|| Key::of("Namespace", "", ""), |request| request.target.clone())
}

/// The uid that the answer has: that of the first request.
pub fn uid_of(input: &Input<'_>) -> String {
    input.change.requests.first().map(|request| request.uid.to_string()).unwrap_or_default()
}

/// Whether the invariant judges requests of this change's authors.
pub fn binds(compiled: &CompiledInvariant, input: &Input<'_>) -> bool {
    compiled.subjects.is_empty()
        || input.change.requests.iter().any(|r| compiled.subjects.iter().any(|s| s.covers(&r.user)))
}

/// Whether an exemption in force covers the instance for every author of the change.
pub fn exempt(compiled: &CompiledInvariant, key: &Key, input: &Input<'_>) -> bool {
    if input.exemptions.is_empty() {
        return false;
    }
    let Some(now) = input.time.and_then(|t| parse_timestamp(t).ok()) else { return false };
    let name = key.to_string();
    input.exemptions.iter().any(|exemption| {
        let authors = input.change.requests.iter().map(|request| &request.user);
        exemption.spec.lifts(&compiled.name, &name, now, authors)
    })
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries: BTreeMap<MapKey, Value> =
        entries.into_iter().filter_map(|(k, v)| Some((MapKey::from_value(&Value::str(k))?, v))).collect();
    Value::map(entries)
}

/// The error of an expression that asks for a clock where there is none.
fn no_clock() -> EvalError {
    EvalError::invalid("the time is not known")
}
