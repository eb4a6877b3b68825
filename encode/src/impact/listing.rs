//! Which instances ask for what is in a namespace that a change touches, where a `let` lists the namespaces that they ask about.

use std::collections::BTreeSet;
use std::sync::Arc;

use suture_model::kinds::Kind;
use suture_model::object::{Key, Object};
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::error::EvalError;
use suture_specs::eval::{Env, eval};
use suture_specs::functions::Worlds;
use suture_specs::value::Value;

use super::seeds::Seeds;
use crate::analysis::Analysis;

/// Those of these instances whose list, which their `at`th `let` is, may have one of these namespaces. Nothing but Namespaces and
/// the instance decide about it: where none is touched, and none is to go anyway, it is the same in every future.
pub(super) fn listing(
    seeds: &Seeds<'_, '_>,
    analysis: &Analysis,
    mut instances: BTreeSet<Key>,
    at: usize,
    namespaces: &BTreeSet<Str>,
) -> BTreeSet<Key> {
    let (before, kind) = (seeds.before, Kind::new("", "Namespace"));
    let touched: BTreeSet<&Key> = seeds.touched().chain(seeds.in_flight()).collect();
    let stays = |object: &Arc<Object>| object.live() && object.owners().is_empty();
    if touched.iter().any(|key| key.kind == kind) || !before.list(&kind, None).into_iter().all(stays) {
        return instances;
    }
    instances.retain(|key| {
        let as_it_was = before.get(key).filter(|object| !touched.contains(key) && stays(object));
        let listed = as_it_was.and_then(|object| listed(before, analysis, object, at));
        listed.is_none_or(|listed| listed.iter().any(|name| namespaces.contains(name)))
    });
    instances
}

/// The names of the objects in a list that a `let` is; none if it has no value before a request and a time are known.
fn listed(before: &State<'_>, analysis: &Analysis, object: &Arc<Object>, at: usize) -> Option<Vec<Str>> {
    let compiled = &analysis.compiled;
    let mut env = Env::new(Worlds { before, now: before });
    env.bind(&compiled.for_each.var, Ok(Value::Object(object.clone())));
    env.bind("params", Ok(Value::from(&compiled.params)));
    for (place, (name, expr)) in compiled.lets.iter().enumerate().take(at + 1) {
        let value = match analysis.footprint.of_namespaces.contains(&place) {
            true => eval(expr, &env),
            false => Err(EvalError::invalid("something else decides about it")),
        };
        env.bind(name, value);
    }
    let Some(Ok(Value::List(list))) = env.get(&compiled.lets.get(at)?.0) else { return None };
    (0..list.len()).map(|item| list.get(item)?.as_object().map(|object| object.key.name.clone())).collect()
}
