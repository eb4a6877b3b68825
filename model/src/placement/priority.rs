//! How important pods are, and which may preempt others.
//!
//! Source: `plugin/pkg/admission/priority/admission.go`: the class that a pod names, else the global default, of several
//! the lowest; else 0.

use std::sync::Arc;

use super::asked::pods_of;
use super::lacking::Lacking;
use crate::kinds::{Kind, KindTraits};
use crate::navigate;
use crate::object::{Key, Object};
use crate::references::SYSTEM_PRIORITIES;
use crate::snapshot::lacking_kinds;
use crate::state::State;
use crate::value::{Str, Val};

/// The priority of pods, and whether they preempt others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Pods of a lower one may have to go.
    pub value: i64,
    /// Whether they do for these.
    pub preempts: bool,
}

/// The priority of a pod spec, once it is admitted.
pub fn of_spec(state: &State, spec: &Val) -> Priority {
    let class = match spec.name_at(&["priorityClassName"]) {
        Some(name) => state.get(&Key::of("PriorityClass", "", name)).filter(|class| class.live()),
        None => navigate::default_class(state),
    };
    let by_class = |field: &str| class.and_then(|class| class.val().at_some(&[field]).cloned());
    let value = spec.int_at(&["priority"]).or_else(|| by_class("value")?.as_int());
    // these two there are always (`pkg/apis/scheduling/v1/helpers.go`)
    let value = value.unwrap_or_else(|| match spec.name_at(&["priorityClassName"]) {
        Some("system-node-critical") => 2_000_001_000,
        Some("system-cluster-critical") => 2_000_000_000,
        _ => 0,
    });
    let policy = spec.at_some(&["preemptionPolicy"]).cloned().or_else(|| by_class("preemptionPolicy"));
    Priority { value, preempts: policy != Some(Val::str("Never")) }
}

/// The priority of a pod; of one that runs and names no class it is 0: there was no default when it was made
/// (`component-helpers/scheduling/corev1/helpers.go`, `PodPriority`).
pub fn pod_priority(state: &State, pod: &Object) -> i64 {
    let Some(spec) = pod.val().get("spec") else { return 0 };
    let stated = spec.int_at(&["priority"]).is_some() || spec.name_at(&["priorityClassName"]).is_some();
    if stated || pod.node.is_empty() { of_spec(state, spec).value } else { 0 }
}

/// The lowest priority of the pods of an object, and of those that it makes.
pub fn priority(state: &State, object: &Object) -> i64 {
    let pods = pods_of(state, object).into_iter().filter(|pod| pod.live() && !pod.finished());
    pods.map(|pod| pod_priority(state, pod)).chain(made_priority(state, object)).min().unwrap_or(0)
}

/// The priority of the pods that an object makes; a pod makes none.
pub fn made_priority(state: &State, object: &Object) -> Option<i64> {
    let spec = navigate::pod_spec(state, object).filter(|_| !object.key.kind.is("Pod"));
    spec.map(|spec| of_spec(state, &spec).value)
}

/// Whether pods of a spec may preempt any that are on nodes.
pub fn outranks_any(state: &State, spec: &Val) -> bool {
    let own = of_spec(state, spec);
    own.preempts && own.value > lowest(state)
}

/// The lowest priority of the pods on nodes: no more than 0, which those without a class have.
fn lowest(state: &State) -> i64 {
    let find = || {
        let classes = state.list(&Kind::new("scheduling.k8s.io", "PriorityClass"), None).into_iter();
        let below = classes.filter(|class| class.val().int_at(&["value"]).is_some_and(|value| value < 0));
        let pods = below.map(|class| &*class.key.name).chain([""]).flat_map(|class| state.low(class));
        pods.map(|pod| pod_priority(state, pod)).min().unwrap_or(0).min(0)
    };
    *state.once("lowest priority", "", find)
}

/// The workloads of a state whose new pods may preempt others, since their priority is above a value, in the order of
/// their keys.
pub fn may_outrank<'s>(state: &'s State, value: i64) -> Vec<&'s Arc<Object>> {
    may_outrank_among(state, value, None)
}

/// Those of them that may want more pods than they have.
pub fn lacking_may_outrank<'s, 'a>(
    state: &'s State<'a>,
    lacking: &Lacking<'s, 'a>,
    value: i64,
) -> Vec<&'s Arc<Object>> {
    lacking.wanting_among(may_outrank_among(state, value, Some(lacking)))
}

/// Where most objects may, of the kinds of which the snapshot keeps what lacks pods only those that want some, if that is given.
fn may_outrank_among<'s, 'a>(
    state: &'s State<'a>,
    value: i64,
    lacking: Option<&Lacking<'s, 'a>>,
) -> Vec<&'s Arc<Object>> {
    let classes = state.list(&Kind::new("scheduling.k8s.io", "PriorityClass"), None);
    let above = |class: &Object, bound: i64| class.val().int_at(&["value"]).is_some_and(|of| of > bound);
    // 0, which is that of pods without a class, is above some then
    let is_any_below = value < 0 && lowest(state) < 0;
    let live = classes.into_iter().filter(|class| class.live());
    let mut names: Vec<Str> = live.filter(|class| above(class, value)).map(|c| c.key.name.clone()).collect();
    names.extend(SYSTEM_PRIORITIES.map(Str::from));
    let default = navigate::default_class(state).is_some_and(|class| names.contains(&class.key.name));
    let unnamed = default || is_any_below;
    // else none is above that names no class
    let all: Vec<&Arc<Object>> = if unnamed {
        let is_kept = |kind: &Kind| lacking.is_some() && lacking_kinds().contains(kind);
        let kept = lacking.into_iter().flat_map(Lacking::wanting).filter_map(|key| state.get(key));
        let others = Kind::with(KindTraits::runs_pods).filter(|kind| !is_kept(kind) && !kind.is("Pod"));
        let others = others.chain(state.base().adapters().kinds()).flat_map(|kind| state.list(&kind, None));
        others.chain(kept).chain(state.waiting()).collect()
    } else {
        state.ranked()
    };
    let waits = |object: &Object| !object.key.kind.is("Pod") || object.node.is_empty();
    // most objects are told by the name of their class, which is looked up of few
    let is_named = |spec: &Val| match spec.name_at(&["priorityClassName"]) {
        Some(name) => names.iter().any(|known| **known == *name),
        None => unnamed || spec.int_at(&["priority"]).is_some_and(|of| of > value),
    };
    let is_above = |spec: &Val| {
        let own = of_spec(state, spec);
        own.preempts && own.value > value
    };
    let may = |object: &&Arc<Object>| {
        let spec = waits(object).then(|| navigate::pod_spec(state, object)).flatten();
        spec.is_some_and(|spec| is_named(&spec) && is_above(&spec)) && navigate::is_workload(state, object)
    };
    let mut found: Vec<&Arc<Object>> = all.into_iter().filter(may).collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}
