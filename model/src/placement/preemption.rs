//! Which pods of a workload new pods of higher priority may preempt.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::asked::pods_of;
use super::priority::{may_outrank, priority};
use super::too_hard::TooHard;
use super::victims::{Choice, Victims, victims};
use crate::navigate;
use crate::object::{Body, Key, Object};
use crate::state::State;
use crate::value::Str;

/// What new pods may preempt of a workload.
pub struct Preemption {
    /// The pods that go, at worst, in the order of their keys.
    pub pods: Vec<Arc<Object>>,
    /// The workloads whose new pods they go for, in the order of their keys.
    pub by: Vec<Arc<Object>>,
}

/// Which pods of a workload new ones of more important workloads may preempt; each of these takes the node that costs
/// most of those which the scheduler may choose.
///
/// # Errors
/// When it was not found within the budget which of the new pods find a place.
pub fn preemption(state: &State<'_>, workload: &Object) -> Result<Preemption, TooHard> {
    let own: BTreeSet<&Key> = pods_of(state, workload).into_iter().map(|pod| &pod.key).collect();
    let mut found = Preemption { pods: Vec::new(), by: Vec::new() };
    if own.is_empty() {
        return Ok(found);
    }
    let nodes: BTreeSet<&Str> = pods_of(state, workload).into_iter().map(|pod| &pod.node).collect();
    let mut gone: BTreeSet<Key> = BTreeSet::new();
    for (other, choices) in preempting(state, priority(state, workload)).iter() {
        if other.key == workload.key {
            continue;
        }
        let mut costs = false;
        for choice in choices.as_ref().as_ref().map_err(|_| TooHard)? {
            // each set is of one node, and they stand in the order of their nodes
            let at = |victims: &Victims| victims.first().map(|pod| pod.node.clone());
            let here = nodes.iter().filter_map(|node| {
                let found = choice.binary_search_by(|victims| at(victims).as_ref().cmp(&Some(*node))).ok()?;
                choice.get(found)
            });
            let own_of = |victims: &Victims| -> Vec<Arc<Object>> {
                let own = victims.iter().filter(|pod| own.contains(&pod.key) && !gone.contains(&pod.key));
                own.cloned().collect()
            };
            // the first of those that cost most
            let worst = here.map(own_of).rev().max_by_key(Vec::len).unwrap_or_default();
            costs |= !worst.is_empty();
            gone.extend(worst.iter().map(|pod| pod.key.clone()));
            found.pods.extend(worst);
        }
        if costs {
            found.by.push(other.clone());
        }
    }
    found.pods.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

/// A workload, and whom its new pods may preempt.
type Preempting = (Arc<Object>, Arc<Result<Vec<Choice>, TooHard>>);

/// Those of [`may_outrank`] that may preempt somebody, or of which that was not found, found once for a state.
fn preempting(state: &State<'_>, value: i64) -> Arc<Vec<Preempting>> {
    let find = || {
        let all = may_outrank(state, value).into_iter().map(|other| (other.clone(), victims(state, other)));
        all.filter(|(_, choices)| choices.as_ref().as_ref().map_or(true, |choices| !choices.is_empty())).collect()
    };
    state.once("preempting", &value.to_string(), find)
}

/// The workloads that pods belong to which the new pods of one workload may preempt, and these pods themselves.
///
/// # Errors
/// As [`preemption`].
pub fn preempted_by(state: &State<'_>, workload: &Object) -> Result<BTreeSet<Key>, TooHard> {
    let mut found = BTreeSet::new();
    let mut seen: BTreeSet<*const Arc<Object>> = BTreeSet::new();
    let mut alike: BTreeSet<(Str, *const Body)> = BTreeSet::new();
    let choices = victims(state, workload);
    let choices = choices.as_ref().as_ref().map_err(|_| TooHard)?;
    for victims in choices.iter().flatten().filter(|victims| seen.insert(victims.as_ptr())) {
        for pod in victims.iter() {
            found.insert(pod.key.clone());
            // pods of one body have one controller
            if !alike.insert((pod.key.ns.clone(), Arc::as_ptr(&pod.body))) {
                continue;
            }
            let mut above = navigate::controller_of(state, pod);
            while let Some(owner) = above.filter(|owner| found.insert(owner.key.clone())) {
                above = navigate::controller_of(state, owner);
            }
            // a custom resource has the pods that its adapter selects as well
            let selecting = navigate::selected_by(state, pod).into_iter();
            found.extend(selecting.filter(|object| state.adapter(object).is_some()).map(|custom| custom.key.clone()));
        }
    }
    Ok(found)
}
