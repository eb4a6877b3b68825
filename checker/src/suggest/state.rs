//! What has to be otherwise in the cluster before the change is allowed: pods that are ready, a budget that is less strict.

use std::collections::{BTreeMap, BTreeSet};

use suture_model::navigate::selected;
use suture_model::object::{Key, Object};
use suture_model::state::State;

use super::trials::{Trials, instance};
use super::variants;
use crate::request::Input;

/// So many pods that are not ready are waited for.
const PODS_MAX: usize = 6;

/// What has to come about first, in words.
pub(super) fn once(input: &Input<'_>, trials: &mut Trials<'_>) -> Option<String> {
    ready(input, trials).or_else(|| budget(input, trials))
}

/// The pod, or else the pods, whose readiness is to be waited for: of those that the instances select, which were read for
/// the decision.
fn ready(input: &Input<'_>, trials: &mut Trials<'_>) -> Option<String> {
    let state = State::new(input.snapshot);
    let broken: BTreeSet<Key> = trials.same.iter().filter_map(|(_, name)| instance(input, name)).collect();
    let selected = broken.iter().filter_map(|key| state.get(key)).flat_map(|object| selected(&state, object));
    let waits = |pod: &&Object| !pod.ready() && pod.live() && !pod.terminating() && !pod.finished();
    let pods: BTreeMap<&Key, &Object> = selected.map(|pod| (&pod.key, &**pod)).collect();
    let pods = pods.into_values().filter(waits);
    let gone = |pod: &Object| input.change.requests.iter().any(|request| request.target == pod.key);
    let pods: Vec<&Object> = pods.filter(|pod| !gone(pod)).collect();
    if pods.is_empty() || pods.len() > PODS_MAX {
        return None;
    }
    let mut allowed = |ready: &[&Object]| {
        let mut snapshot = input.snapshot.clone();
        ready.iter().for_each(|pod| snapshot.insert(pod.with_ready(true)));
        trials.is_allowed_in(&snapshot, input)
    };
    let one = pods.iter().find(|pod| allowed(&[pod])).map(|pod| vec![*pod]);
    let found = one.or_else(|| (pods.len() > 1 && allowed(&pods)).then(|| pods.clone()))?;
    let names: Vec<String> = found.iter().map(|pod| pod.key.to_string()).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    Some(format!("wait until {} {verb} ready", names.join(", ")))
}

/// The budget that would have to be less strict.
fn budget(input: &Input<'_>, trials: &mut Trials<'_>) -> Option<String> {
    let broken: BTreeSet<Key> = trials.same.iter().filter_map(|(_, name)| instance(input, name)).collect();
    let mut budgets = broken.iter().filter(|key| key.kind.is("PodDisruptionBudget"));
    budgets.find_map(|key| {
        let object = input.snapshot.get(key)?;
        let less = variants::less_strict(&object.to_val());
        let (text, _) = less.into_iter().find(|(_, val)| {
            let Ok(object) = Object::from_val(val) else { return false };
            let mut snapshot = input.snapshot.clone();
            snapshot.insert(object);
            trials.is_allowed_in(&snapshot, input)
        })?;
        Some(format!("first give {key} {text}"))
    })
}
