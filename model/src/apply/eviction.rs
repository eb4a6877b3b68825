//! An eviction: a deletion that a PodDisruptionBudget may refuse (`pkg/registry/core/pod/storage/eviction.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::applied::{Applied, contradiction};
use crate::change::Request;
use crate::kinds::Kind;
use crate::navigate::{disruptions_when_settled, selector_of};
use crate::object::{Key, Object};
use crate::state::State;
use crate::value::Val;

/// What decides whether a pod may be evicted.
enum Ruling {
    /// Nothing: it may.
    Nothing,
    /// What this budget allows.
    Budget(Arc<Object>),
    /// That it has more than one budget: it may not.
    Several(Vec<Arc<Object>>),
}

/// Asks for the deletion of the pod unless its budget refuses, and takes the disruption off the budget.
pub(super) fn evict(state: &mut State, request: &Request) -> Applied {
    let Some(pod) = state.get(&request.target).cloned() else {
        return Applied::nothing(format!("`{}` does not exist", request.target));
    };
    if let Some(why) = contradiction(&pod, request) {
        return Applied::nothing(why);
    }
    let evicted = Applied { evicted: true, ..Applied::deleting(request.target.clone(), request.propagation) };
    match ruling(state, &pod) {
        Ruling::Nothing => evicted,
        Ruling::Budget(budget) => match allowed(state, &budget) {
            Some(allowed) if allowed <= 0 => Applied::nothing(format!("`{}` allows no disruption", budget.key)),
            Some(allowed) => {
                let path = ["status", "disruptionsAllowed"];
                let spent = budget.map_body(|body| body.with_at(&path, Val::Int(allowed - 1)));
                state.put(spent);
                evicted
            }
            None => evicted,
        },
        Ruling::Several(budgets) => {
            let names: Vec<String> = budgets.iter().map(|b| format!("`{}`", b.key)).collect();
            Applied::nothing(format!("`{}` has more than one budget: {}", request.target, names.join(", ")))
        }
    }
}

/// Whether the evictions of all these pods are admitted as the cluster is, whoever asks for them. A budget whose controller
/// has yet to count is taken to allow what it allows once every pod that is wanted is ready: until it has, none is admitted.
pub fn admits_evictions(state: &State, pods: &BTreeSet<Key>) -> bool {
    let mut taken: BTreeMap<Key, i64> = BTreeMap::new();
    pods.iter().all(|key| match state.get(key).map(|pod| ruling(state, pod)) {
        Some(Ruling::Nothing) => true,
        Some(Ruling::Budget(budget)) => {
            let allowed = allowed(state, &budget).or_else(|| disruptions_when_settled(state, &budget));
            let taken = taken.entry(budget.key.clone()).or_default();
            *taken += 1;
            allowed.is_none_or(|allowed| *taken <= allowed)
        }
        Some(Ruling::Several(_)) | None => false,
    })
}

fn ruling(state: &State, pod: &Object) -> Ruling {
    let phase = pod.val().str_at(&["status", "phase"]).map_or("", |p| p);
    if matches!(phase, "Succeeded" | "Failed" | "Pending") || pod.terminating() {
        return Ruling::Nothing;
    }
    let mut budgets = budgets_over(state, pod);
    match (budgets.len(), budgets.pop()) {
        (1, Some(budget)) if !bypasses(pod, &budget) => Ruling::Budget(budget),
        (0 | 1, _) | (_, None) => Ruling::Nothing,
        (_, Some(last)) => Ruling::Several(budgets.into_iter().chain([last]).collect()),
    }
}

/// The budgets over a pod that are sure to be there still: one that is being deleted may be gone by then.
fn budgets_over(state: &State, pod: &Object) -> Vec<Arc<Object>> {
    let budgets = state.list(&Kind::new("policy", "PodDisruptionBudget"), Some(&pod.key.ns)).into_iter();
    let over = budgets.filter(|b| b.live() && selector_of(state, b).is_some_and(|s| s.matches(pod.labels())));
    over.cloned().collect()
}

/// A pod that is not ready may go whatever the budget says, always or while the budget's other pods suffice
/// (`unhealthyPodEvictionPolicy`).
fn bypasses(pod: &Object, budget: &Object) -> bool {
    if pod.ready() {
        return false;
    }
    let policy = budget.val().str_at(&["spec", "unhealthyPodEvictionPolicy"]);
    let count = |field: &str| budget.val().int_at(&["status", field]).unwrap_or(0);
    let healthy = count("desiredHealthy") > 0 && count("currentHealthy") >= count("desiredHealthy");
    healthy || policy.is_some_and(|p| &**p == "AlwaysAllow")
}

/// How many disruptions a budget allows; `None` where its controller has not counted yet, counts anew since the budget says
/// something else now, or the state left it out.
fn allowed(state: &State, budget: &Object) -> Option<i64> {
    budget.val().at_some(&["status"])?;
    let before = state.base().get(&budget.key).filter(|before| before.uid == budget.uid);
    let same = before.is_some_and(|before| before.val().get("spec") == budget.val().get("spec"));
    if !same || budget.unobserved() {
        return None;
    }
    Some(budget.val().int_at(&["status", "disruptionsAllowed"]).unwrap_or(0))
}
