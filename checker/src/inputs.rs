//! What an expression may read of the request and the clock.

use std::collections::BTreeMap;

use suture_encode::question::Inputs;
use suture_model::change::Request;
use suture_specs::error::EvalError;
use suture_specs::time::parse_timestamp;
use suture_specs::value::{MapKey, Value};

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

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries: BTreeMap<MapKey, Value> =
        entries.into_iter().filter_map(|(k, v)| Some((MapKey::from_value(&Value::str(k))?, v))).collect();
    Value::map(entries)
}

/// The error of an expression that asks for a clock where there is none.
fn no_clock() -> EvalError {
    EvalError::invalid("the time is not known")
}
