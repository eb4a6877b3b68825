//! How to say that what a change takes away is meant to go.

use std::collections::BTreeMap;

use suture_model::annotations::CONFIRM_DELETE;
use suture_model::change::{Operation, Request};
use suture_model::object::{Key, Object};
use suture_model::snapshot::Snapshot;
use suture_model::value::Val;

use super::trials::{Trials, instance};
use crate::request::Input;

/// So many objects may have to be confirmed.
const CONFIRMED_MAX: usize = 3;
/// How often what still breaks is confirmed too.
const ROUNDS_MAX: usize = 3;

/// The commands by which the change is allowed: first what it takes away is confirmed, then what breaks all the same.
pub(super) fn once_meant(input: &Input<'_>, trials: &mut Trials<'_>) -> Option<String> {
    let targets = input.change.requests.iter().filter(|request| takes_away(request)).map(|request| &request.target);
    let mut confirmed: BTreeMap<Key, Object> = BTreeMap::new();
    for key in targets {
        confirmed.extend(confirmable(input.snapshot, key));
    }
    if confirmed.is_empty() {
        return None;
    }
    for _ in 0..ROUNDS_MAX {
        if confirmed.len() > CONFIRMED_MAX {
            return None;
        }
        let mut snapshot = input.snapshot.clone();
        confirmed.values().for_each(|object| snapshot.insert(with_confirmation(object)));
        let broken = trials.breaks(&Input { snapshot: &snapshot, ..*input })?;
        if broken.is_empty() {
            let lines: Vec<String> = needed(input, trials, confirmed).values().map(command).collect();
            return Some(format!("once it is meant: {}", lines.join(" && ")));
        }
        let known = confirmed.len();
        for verdict in broken {
            let key = instance(input, &verdict.instance)?;
            confirmed.extend(confirmable(input.snapshot, &key));
        }
        if confirmed.len() == known {
            return None;
        }
    }
    None
}

/// Of several confirmations those without which the change is not allowed.
fn needed(input: &Input<'_>, trials: &mut Trials<'_>, mut confirmed: BTreeMap<Key, Object>) -> BTreeMap<Key, Object> {
    for key in confirmed.keys().cloned().collect::<Vec<_>>() {
        if confirmed.len() == 1 {
            break;
        }
        let mut snapshot = input.snapshot.clone();
        let others = confirmed.iter().filter(|(other, _)| **other != key);
        others.for_each(|(_, object)| snapshot.insert(with_confirmation(object)));
        if trials.breaks(&Input { snapshot: &snapshot, ..*input }).is_some_and(|broken| broken.is_empty()) {
            confirmed.remove(&key);
        }
    }
    confirmed
}

/// Whether a request takes something away that somebody may mean to retire: an object other than a pod, or all replicas.
fn takes_away(request: &Request) -> bool {
    match request.operation {
        Operation::Delete => !request.target.kind.is("Pod"),
        Operation::Update => request.replicas() == Some(0),
        Operation::Create | Operation::Connect => false,
    }
}

fn confirmable(snapshot: &Snapshot, key: &Key) -> Option<(Key, Object)> {
    let object = snapshot.get(key).filter(|object| !object.uid.is_empty())?;
    Some((key.clone(), (**object).clone()))
}

fn with_confirmation(object: &Object) -> Object {
    let uid = Val::Str(object.uid.clone());
    object.map_body(|val| val.with_at(&["metadata", "annotations", CONFIRM_DELETE], uid))
}

fn command(object: &Object) -> String {
    let Key { kind, ns, name } = &object.key;
    let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
    let ns = if ns.is_empty() { String::new() } else { format!(" -n {ns}") };
    let (resource, uid) = (kind.kind.to_lowercase(), &object.uid);
    format!("kubectl annotate {resource}{group} {name}{ns} {CONFIRM_DELETE}={uid}")
}
