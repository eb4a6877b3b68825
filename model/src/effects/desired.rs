//! What others want of workloads and pods: custom resources of those that are theirs, autoscalers of what they scale.
//!
//! Source: `pkg/controller/podautoscaler/horizontal.go` (`reconcileAutoscaler`): an autoscaler sets any number of its range
//! at any time, and moves one from outside into it. A custom resource with a `replicaRange` is taken to do the same.
//! Over-approximations: metrics and `spec.behavior` are left aside; an autoscaler that is being deleted still acts, and the
//! number that it set stays; one of a Deployment's ReplicaSets scales the Deployment. That one scales down, up and down
//! again, and takes more pods than at once, is left aside.
//!
//! Pods beyond `replicas` that workloads run, several for one custom resource, are no scale-down by themselves: they may be
//! two revisions of a rollout, or helpers that bear the label too. Only those that the custom resource runs itself are.
//! What an operator does about the others is a request of its own, which is judged when it comes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::members::group_name;
use super::parents::{Parent, autoscaled, parents};
use crate::controllers::replicas::{ReplicaRange, replicas, stated_replicas};
use crate::fields;
use crate::kinds::KindTraits;
use crate::navigate;
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::value::Val;

/// How many of a custom resource's pods its operator will remove itself: down to what it wants, from what it wanted, or from what it
/// runs without a workload in between. What goes already, and is not made again, is not among them.
fn own_excess(parent: &Parent, scenario: &Scenario<'_>) -> i64 {
    let state = &scenario.state;
    if parent.sole_workload(state).is_some() {
        return 0;
    }
    let (mut present, mut itself) = (0_i64, 0_i64);
    let mut workloads: BTreeSet<Key> = BTreeSet::new();
    for pod in parent.pods(state).iter().filter(|p| !fields::finished(p)) {
        let name = group_name(state, pod);
        if name.kind.has(KindTraits::has_scale) {
            workloads.insert(name);
        } else if !pod.terminating() && !pod.in_deletion_closure {
            present = present.saturating_add(1);
            itself = itself.saturating_add(i64::from(parent.runs_itself(state, pod)));
        }
    }
    for workload in workloads.iter().filter_map(|key| state.get(key)).filter(|o| o.live() && !o.in_deletion_closure) {
        present = present.saturating_add(replicas(workload));
    }
    let before = parent.before.unwrap_or(present);
    (before.max(itself).min(present) - parent.desired_replicas.least).max(0)
}

/// How many pods go for the sake of these custom resources: a pod that several select may go for the sake of any of them,
/// but what one wants and what those want that it has for its pods is the same.
pub fn excess(scenario: &Scenario<'_>, all: &[Parent]) -> i64 {
    let own: Vec<i64> = all.iter().map(|parent| own_excess(parent, scenario)).collect();
    let above: Vec<Option<usize>> = all.iter().map(|parent| parent.above(&scenario.state, all)).collect();
    let next = |at: &usize| above.get(*at).copied().flatten();
    // where custom resources have one another, each counts
    let ends = |at: usize| std::iter::successors(Some(at), next).take(all.len() + 1).count() <= all.len();
    let above: Vec<Option<usize>> = (0..all.len()).map(|at| next(&at).filter(|_| ends(at))).collect();
    excess_below(None, &own, &above)
}

/// How many pods go for the sake of those directly below one, or below none; `above` has no cycles.
fn excess_below(at: Option<usize>, own: &[i64], above: &[Option<usize>]) -> i64 {
    let here = own.iter().zip(above).enumerate().filter(|(_, (_, above))| **above == at);
    let each = here.map(|(place, (one, _))| excess_below(Some(place), own, above).max(*one));
    each.fold(0, i64::saturating_add)
}

/// What custom resources and autoscalers want of a workload that wants `own` pods itself; `None` when they leave it at that.
pub fn desired_replicas(scenario: &Scenario<'_>, workload: &Object, own: i64) -> Option<ReplicaRange> {
    let asked = asked(scenario, workload, own, |parent| parent.autoscaled(&scenario.state));
    let Some(range) = autoscaled(&scenario.state, workload) else { return asked };
    Some(asked.unwrap_or(ReplicaRange::of(own)).hull(range))
}

/// What custom resources want of a workload, each `taken` to want so many.
fn asked(
    scenario: &Scenario<'_>,
    workload: &Object,
    own: i64,
    taken: impl Fn(Parent) -> Parent,
) -> Option<ReplicaRange> {
    let state = &scenario.state;
    let labels = navigate::template_labels(state, workload)?;
    let is_its = |parent: &Parent| parent.sole_workload(state).as_ref() == Some(&workload.key);
    let (deciding, others): (Vec<Parent>, Vec<Parent>) =
        parents(state, &workload.key.ns, &labels).into_iter().map(taken).partition(is_its);
    let is_above =
        |parent: &Parent| deciding.iter().any(|one| one.above(state, std::slice::from_ref(parent)).is_some());
    let (above, others): (Vec<Parent>, Vec<Parent>) = others.into_iter().partition(is_above);
    let asked = deciding.iter().map(|parent| parent.desired_replicas).reduce(ReplicaRange::hull);
    let excess_above = excess(scenario, &above);
    let excess = excess(scenario, &others);
    if asked.is_none() && excess == 0 {
        return None;
    }
    let ReplicaRange { least, most } = asked.unwrap_or(ReplicaRange::of(own));
    // what has the deciding one for its pods wants the same of them
    let least = if excess_above > 0 { least.min(own - excess_above) } else { least };
    Some(ReplicaRange { least: (least - excess).max(0), most })
}

/// The StatefulSet that a custom resource's operator scales down since a write lowered `replicas`: as it is, and as it will be.
pub fn scaled_down(scenario: &Scenario<'_>, old: &Object, new: &Arc<Object>) -> Option<(Arc<Object>, Object)> {
    let state = &scenario.state;
    let before = state.adapter(old)?.replicas?;
    let parent = Parent::of(state, new).filter(|parent| parent.desired_replicas.least < before)?;
    let set = state.get(&parent.managed_workload(state)?).filter(|set| set.key.kind.is("StatefulSet"))?.clone();
    let own = stated_replicas(&set);
    let least = asked(scenario, &set, own, |parent| parent)?.least;
    (least < own).then(|| {
        let scaled = set.map_body(|val| val.with_at(&["spec", "replicas"], Val::Int(least)));
        (set, scaled)
    })
}
