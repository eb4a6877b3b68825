//! Custom resources by their adapter: when `replicas` falls, any of the selected pods may go, unless the one workload that
//! the custom resource has for them decides which.
//!
//! Over-approximations: nothing is known of the operator's order or pace; where it has none or several workloads for the
//! pods, each that runs some of them may lose as many as are in excess altogether; where `replicas` has no value any more,
//! any number of the pods may go. What more pods an operator makes is looked at only where it has one workload for them.

use std::sync::Arc;

use super::builder::Builder;
use super::desired::excess;
use super::linear::{LOST, at_most, count};
use super::members::group_name;
use super::parents::{Parent, parents};
use super::survival::Survival;
use crate::futures::LimitLabel;
use crate::navigate;
use crate::object::Object;

/// The pods that a custom resource runs without a workload in between.
pub fn custom_resource(builder: &mut Builder<'_, '_>, object: &Arc<Object>) {
    let state = builder.state();
    let parent = Parent::of(state, object);
    let mut pods: Vec<Arc<Object>> = navigate::pods_owned_by(state, object).into_iter().cloned().collect();
    pods.extend(parent.iter().flat_map(|p| p.pods(state)));
    pods.sort_by(|a, b| a.key.cmp(&b.key));
    pods.dedup_by(|a, b| a.key == b.key);
    pods.retain(|p| group_name(state, p) == object.key);
    let mut all: Vec<Parent> = parent.into_iter().collect();
    for pod in &pods {
        let others = parents(state, &pod.key.ns, pod.labels());
        let known = |other: &Parent| all.iter().any(|one| one.object.key == other.object.key);
        let found: Vec<Parent> = others.into_iter().filter(|other| !known(other)).collect();
        all.extend(found);
    }
    let all: Vec<Parent> = all.into_iter().map(|parent| parent.autoscaled(state)).collect();
    let excess = excess(builder.scenario, &all);
    let chosen = builder.set();
    for pod in &pods {
        let may_go = excess > 0 && builder.survival(pod) == Survival::Stays && !pod.terminating();
        let sets = if may_go { vec![chosen] } else { Vec::new() };
        let entity = builder.existing(pod, &sets, may_go);
        builder.group.entities.push(entity);
    }
    if excess > 0 {
        let label = LimitLabel::ScaleDownRemoves { workload: object.key.clone(), pods: excess };
        builder.limit(label, vec![at_most(vec![count(chosen, &LOST)], excess)]);
    }
}
