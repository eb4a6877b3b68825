//! How many disruptions a PodDisruptionBudget allows, as its controller counts them.
//!
//! Source: `pkg/controller/disruption/disruption.go` (`getExpectedPodCount`, `getExpectedScale`, `updatePdbStatus`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use super::autoscalers::{autoscalers, replica_range};
use super::definitions::scale_path;
use super::owners::{adopting_deployment, controller_of, leaves_with_controller, owner_object, parents};
use super::replicas::wanted_replicas;
use super::selection::selector_of;
use super::template::template_labels;
use crate::fields::{disruptions_allowed, finished, template_path};
use crate::kinds::{Kind, KindTraits};
use crate::object::{Key, Object, Owner};
use crate::selector::Selector;
use crate::state::State;

/// The kinds that make pods.
static MAKERS: LazyLock<Vec<Kind>> = LazyLock::new(|| Kind::with(KindTraits::makes_pods).collect());

/// Some of the pods that a budget matches once everything has settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetPods {
    /// What makes them; `None` for pods without a controller.
    pub workload: Option<Key>,
    /// How many there are at least and at most, over the range of an autoscaler.
    pub range: (i64, i64),
    /// What the scale of their controller says, if it has one that the disruption controller can read; pods without a
    /// controller have none and need none.
    pub scale: Option<i64>,
}

/// How many disruptions a budget allows once every pod that is wanted is ready, at the worst number in each
/// autoscaler's range; `None` when it then matches no pod.
///
/// Allowed disruptions never fall as pods are added, hence the lowest numbers are the worst; at none at all there is
/// nothing to disrupt, so one pod counts as the worst of a range that starts at 0.
pub fn disruptions_when_settled(state: &State, budget: &Object) -> Option<i64> {
    let groups = budget_pods(state, budget);
    let sum = |pick: fn(&BudgetPods) -> i64| groups.iter().fold(0i64, |all, group| all.saturating_add(pick(group)));
    let (low, high) = (sum(|g| g.range.0), sum(|g| g.range.1));
    if high <= 0 {
        return None;
    }
    let managed = groups.iter().filter(|g| g.workload.is_some() && g.range.1 > 0);
    let scale = managed.map(|group| group.scale).try_fold(0i64, |all, scale| Some(all.saturating_add(scale?)));
    let (healthy, scale) = if low == 0 { (1, scale.and(Some(1))) } else { (low, scale) };
    Some(disruptions_allowed(budget, healthy, scale))
}

/// What makes the pods that a budget matches, now or once everything has settled, and has no scale, in the order of its
/// keys: pods of it are not counted where the budget is a percentage or says `maxUnavailable`.
pub fn unscaled<'s>(state: &'s State, budget: &Object) -> Vec<&'s Arc<Object>> {
    let groups = budget_pods(state, budget).into_iter().filter(|group| group.scale.is_none() && group.range.1 > 0);
    let mut found: Vec<&Arc<Object>> = groups.filter_map(|group| state.get(&group.workload?)).collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found.dedup_by(|a, b| a.key == b.key);
    found
}

/// Whether an object changes nothing of what has [no scale](unscaled), there or gone: a pod whose controller has one by its
/// kind, or such a workload itself. A custom resource is counted by the workload that makes pods for it as long as that is
/// there, and a ReplicaSet gives it a scale.
pub fn is_always_scaled(state: &State, object: &Object) -> bool {
    if object.key.kind.is("Pod") {
        return object.controller().is_some_and(|controller| controller.kind.has(KindTraits::has_scale));
    }
    let is_custom = |owner: &Owner| owner_object(state, object, owner).is_some_and(|o| template_path(o).is_none());
    object.key.kind.has(KindTraits::has_scale)
        && !object.owners().iter().any(is_custom)
        && parents(state, object).is_empty()
}

/// The pods that a budget matches once everything has settled, by what makes them.
///
/// Workloads count by their template; a custom resource with a template counts unless a workload that it owns or wants
/// does, and bounds that workload from below where it is the only one. Pods that nothing known makes count as they are,
/// and so do those that bear what their template has no label for: a role that their operator gave them, an ordinal.
pub fn budget_pods(state: &State, budget: &Object) -> Vec<BudgetPods> {
    let Some(selector) = selector_of(state, budget) else { return Vec::new() };
    let ns = &*budget.key.ns;
    let makers = makers(state, ns, &selector);
    let wanted = |maker: &&Arc<Object>| wanted_pods(state, maker, fewest_wanted(state, maker));
    let mut groups: Vec<BudgetPods> = makers.iter().map(wanted).collect();
    let makers: BTreeSet<&Key> = makers.iter().map(|m| &m.key).collect();
    let mut unmanaged = 0;
    let mut others: BTreeMap<Key, (i64, Option<&Arc<Object>>)> = BTreeMap::new();
    let mut labelled: BTreeMap<&Key, (i64, &Object)> = BTreeMap::new();
    for pod in state.pods_matching(ns, &selector) {
        if !pod.live() || finished(pod) || leaves_with_controller(state, pod) {
            continue;
        }
        match pod.controller() {
            None => unmanaged += 1,
            Some(_) if is_made(state, pod, &makers) => {
                if let Some(maker) = labelled_maker(state, pod, &selector) {
                    labelled.entry(&maker.key).or_insert((0, maker)).0 += 1;
                }
            }
            Some(owner) => {
                let key = Key::new(owner.kind.clone(), ns, &owner.name);
                others.entry(key).or_insert_with(|| (0, controller_of(state, pod))).0 += 1;
            }
        }
    }
    for (key, (count, controller)) in others {
        let scale = controller.and_then(|c| scale_of(state, c));
        let count = scale.unwrap_or(count);
        groups.push(BudgetPods { workload: Some(key), range: (count, count), scale });
    }
    for (key, (count, maker)) in labelled {
        let scale = wanted_replicas(state, maker).filter(|_| has_scale(state, maker));
        groups.push(BudgetPods { workload: Some(key.clone()), range: (count, count), scale });
    }
    if unmanaged > 0 {
        groups.push(BudgetPods { workload: None, range: (unmanaged, unmanaged), scale: None });
    }
    groups
}

/// The workload that made a pod from the template that it has now, which has none of the labels that a selector asks for
/// where it does not match: somebody gave the pod those, and it keeps them.
pub fn labelled_maker<'s>(state: &'s State, pod: &Object, selector: &Selector) -> Option<&'s Object> {
    let maker = controller_of(state, pod).filter(|maker| template_path(maker).is_some() && maker.live())?;
    let template = template_labels(state, maker)?;
    let bears = template.entries().all(|(key, value)| pod.labels().get(key) == Some(value));
    (bears && !selector.matches(&template)).then_some(&**maker)
}

/// What makes or scales pods and whose coming or going may change what a budget allows: the workloads whose template it
/// matches, those above them and above the pods that it matches, what else a custom resource among these has, and their
/// autoscalers.
pub fn counted_workloads<'s>(state: &'s State, budget: &Object) -> Vec<&'s Arc<Object>> {
    selector_of(state, budget).map_or_else(Vec::new, |selector| counted(state, &budget.key.ns, &selector))
}

/// The same of a selector in a namespace.
pub fn counted<'s>(state: &'s State, ns: &str, selector: &Selector) -> Vec<&'s Arc<Object>> {
    let mut pods = state.pods_matching(ns, selector);
    // pods of one body have one controller, if they have any
    pods.dedup_by(|a, b| Arc::ptr_eq(&a.body, &b.body) && a.controller().is_some());
    let mut open = made_by(state, ns, selector);
    open.extend(pods.into_iter().filter_map(|pod| controller_of(state, pod)));
    let mut found: BTreeMap<&Key, &Arc<Object>> = BTreeMap::new();
    while let Some(workload) = open.pop() {
        if found.insert(&workload.key, workload).is_none() {
            open.extend(controller_of(state, workload));
            open.extend(customs_over(state, workload));
        }
    }
    let children: Vec<&Arc<Object>> = found.values().flat_map(|custom| child_workloads(state, custom)).collect();
    found.extend(children.into_iter().map(|child| (&child.key, child)));
    found.retain(|key, object| key.kind.has(KindTraits::makes_pods) || state.adapter(object).is_some());
    let scalers: Vec<&Arc<Object>> = found.keys().flat_map(|key| autoscalers(state, key)).collect();
    found.extend(scalers.into_iter().map(|scaler| (&scaler.key, scaler)));
    found.into_values().collect()
}

/// How many pods that a selector matches the live workloads of a namespace want, each counted by the topmost one.
pub fn pods_wanted(state: &State, ns: &str, selector: &Selector) -> i64 {
    let wanted = makers(state, ns, selector).into_iter().filter_map(|maker| wanted_replicas(state, maker));
    wanted.fold(0, |sum, pods| sum.saturating_add(pods.max(0)))
}

/// The topmost live workloads in a namespace whose pods the selector matches.
fn makers<'s>(state: &'s State, ns: &str, selector: &Selector) -> Vec<&'s Arc<Object>> {
    let mut found = made_by(state, ns, selector);
    found.retain(|workload| {
        workload.live()
            && wanted_replicas(state, workload).is_some()
            && !is_counted_elsewhere(state, workload)
            && !leaves_with_controller(state, workload)
    });
    found
}

/// What makes pods in a namespace that the selector matches: workloads, and custom resources by their adapter's template.
fn made_by<'s>(state: &'s State, ns: &str, selector: &Selector) -> Vec<&'s Arc<Object>> {
    let adapted = state.base().adapters().kinds();
    state.making(&[&**MAKERS, &adapted].concat(), ns, selector)
}

/// A ReplicaSet whose controller makes its pods through it, or a custom resource that has a workload for that.
fn is_counted_elsewhere(state: &State, workload: &Object) -> bool {
    if workload.key.kind.is("ReplicaSet") {
        let makes = |c: &Arc<Object>| c.key.kind.is("Deployment") || is_maker(state, c);
        return controller_of(state, workload).is_some_and(makes) || adopting_deployment(state, workload).is_some();
    }
    template_path(workload).is_none() && !child_workloads(state, workload).is_empty()
}

fn is_maker(state: &State, custom: &Object) -> bool {
    state.adapter(custom).is_some_and(|facts| facts.template.is_some() && facts.replicas.is_some())
}

/// The workloads, other than ReplicaSets, that a custom resource owns or wants, in the order of their keys.
pub(crate) fn child_workloads<'s>(state: &'s State, custom: &Object) -> Vec<&'s Arc<Object>> {
    let owned = state.owned_by(&custom.uid).into_iter();
    let may_list = state.base().adapters().lists_children(&custom.key.kind);
    let listed = if may_list { state.adapter(custom).and_then(|facts| facts.children.clone()) } else { None };
    let listed = listed.unwrap_or_default();
    let listed: Vec<&Arc<Object>> = listed.iter().filter_map(|key| state.resolve(key)).collect();
    let mut children: Vec<&Arc<Object>> = owned
        .chain(listed)
        .filter(|o| template_path(o).is_some() && !o.key.kind.is("ReplicaSet") && !o.key.kind.is("CronJob"))
        .collect();
    children.sort_by(|a, b| a.key.cmp(&b.key));
    children.dedup_by(|a, b| a.key == b.key);
    children
}

/// The custom resources in the namespace of a workload that own or want it.
fn customs_over<'s>(state: &'s State, workload: &Object) -> Vec<&'s Arc<Object>> {
    let owners = workload.owners().iter().filter_map(|owner| state.by_uid(&owner.uid));
    let mut found: Vec<&Arc<Object>> = owners.chain(parents(state, workload)).collect();
    found.retain(|custom| custom.key.ns == workload.key.ns && state.adapter(custom).is_some());
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found.dedup_by(|a, b| a.key == b.key);
    found
}

/// The custom resources in the namespace of a workload that have no other one, in the order of their keys.
pub(crate) fn only_parents<'s>(state: &'s State, workload: &Object) -> Vec<&'s Arc<Object>> {
    let is_only = |custom: &&Arc<Object>| {
        let children = child_workloads(state, custom);
        custom.key != workload.key && matches!(children.as_slice(), [only] if only.key == workload.key)
    };
    customs_over(state, workload).into_iter().filter(is_only).collect()
}

/// How many pods the live custom resources that have no other workload want of one: one that wants fewer takes it down with it.
fn fewest_wanted(state: &State, workload: &Object) -> Option<i64> {
    let parents = only_parents(state, workload).into_iter().filter(|parent| parent.live());
    parents.filter_map(|parent| state.adapter(parent)?.replicas).min()
}

/// What a workload wants, or at least so many pods if custom resources want `fewer`.
fn wanted_pods(state: &State, workload: &Object, fewer: Option<i64>) -> BudgetPods {
    let wanted = wanted_replicas(state, workload).unwrap_or(0);
    let (low, high) = replica_range(state, workload).unwrap_or((wanted, wanted));
    let through_set = || state.owned_by(&workload.uid).iter().any(|o| o.key.kind.is("ReplicaSet"));
    let low = fewer.map_or(low, |n| n.min(low)).max(0);
    let scaled = has_scale(state, workload) || (template_path(workload).is_none() && through_set());
    BudgetPods { workload: Some(workload.key.clone()), range: (low, high.max(0)), scale: scaled.then_some(low) }
}

/// Whether a pod is under one of these workloads, or under a workload that will replace it by pods not matched.
fn is_made(state: &State, pod: &Object, makers: &BTreeSet<&Key>) -> bool {
    let mut above = controller_of(state, pod);
    for _ in 0..16 {
        let Some(owner) = above else { return false };
        if makers.contains(&owner.key) || template_path(owner).is_some() {
            return true;
        }
        above = controller_of(state, owner);
    }
    false
}

/// Whether the disruption controller can read the scale of a controller of pods: of the workloads it knows, and of a
/// custom resource whose definition has a scale subresource. DaemonSets and Jobs have none.
pub fn has_scale(state: &State, controller: &Object) -> bool {
    match template_path(controller) {
        Some(_) => controller.key.kind.has(KindTraits::has_scale),
        None => scale_path(state, controller).is_some(),
    }
}

/// The number in the scale subresource of a custom resource.
fn scale_of(state: &State, custom: &Object) -> Option<i64> {
    let path = scale_path(state, custom)?;
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    Some(custom.val().int_at(&path).unwrap_or(0))
}
