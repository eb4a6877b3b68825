//! Which pods of a workload new pods of higher priority may preempt.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::asked::pods_of;
use super::priority::{may_outrank, priority};
use super::too_hard::TooHard;
use super::victims::victims;
use crate::object::{Key, Object};
use crate::state::State;

/// What new pods may preempt of a workload.
pub struct Preemption<'s> {
    /// The pods that go, at worst, in the order of their keys.
    pub pods: Vec<&'s Arc<Object>>,
    /// The workloads whose new pods they go for, in the order of their keys.
    pub by: Vec<&'s Arc<Object>>,
}

/// Which pods of a workload new ones of more important workloads may preempt; each of these takes the node that costs
/// most of those which the scheduler may choose.
///
/// # Errors
/// When it was not found within the budget which of the new pods find a place.
pub fn preemption<'s>(state: &'s State<'_>, workload: &Object) -> Result<Preemption<'s>, TooHard> {
    let own: BTreeSet<&Key> = pods_of(state, workload).into_iter().map(|pod| &pod.key).collect();
    let mut found = Preemption { pods: Vec::new(), by: Vec::new() };
    if own.is_empty() {
        return Ok(found);
    }
    let mut gone: BTreeSet<&Key> = BTreeSet::new();
    for other in may_outrank(state, priority(state, workload)) {
        if other.key == workload.key {
            continue;
        }
        let mut costs = false;
        for choice in victims(state, other)? {
            let own_of = |victims: Vec<&'s Arc<Object>>| -> Vec<&'s Arc<Object>> {
                victims.into_iter().filter(|pod| own.contains(&pod.key) && !gone.contains(&pod.key)).collect()
            };
            // the first of those that cost most
            let worst = choice.into_iter().map(own_of).rev().max_by_key(Vec::len).unwrap_or_default();
            costs |= !worst.is_empty();
            gone.extend(worst.iter().map(|pod| &pod.key));
            found.pods.extend(worst);
        }
        if costs {
            found.by.push(other);
        }
    }
    found.pods.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

/// The workloads that pods belong to which the new pods of one workload may preempt, and these pods themselves.
///
/// # Errors
/// As [`preemption`].
pub fn preempted_by(state: &State<'_>, workload: &Object) -> Result<BTreeSet<Key>, TooHard> {
    let mut found = BTreeSet::new();
    for pod in victims(state, workload)?.into_iter().flatten().flatten() {
        found.insert(pod.key.clone());
        let mut above = crate::navigate::controller_of(state, pod);
        while let Some(owner) = above.filter(|owner| found.insert(owner.key.clone())) {
            above = crate::navigate::controller_of(state, owner);
        }
    }
    Ok(found)
}
