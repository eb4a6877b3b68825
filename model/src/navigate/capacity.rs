//! How much the workloads of a namespace ask for: who makes pods there, how many at most, and what one of them counts.

use std::sync::Arc;

use super::autoscalers::{autoscalers, replica_range};
use super::budgets::{child_workloads, only_parents};
use super::owners::controller_of;
use super::replicas::wanted_replicas;
use super::template::pod_spec;
use crate::controllers::daemonset;
use crate::controllers::deployment::max_surge;
use crate::fields::{self, finished, template_path};
use crate::kinds::{Kind, KindTraits};
use crate::object::{Object, Owner};
use crate::references::SYSTEM_PRIORITIES;
use crate::state::State;
use crate::value::Val;

/// The live workloads of a namespace that want pods, each pod by one of them, in the order of their keys: those that no
/// other one controls, and pods that none of them makes. A custom resource counts by its adapter's `template`, or else by
/// the workloads that it has.
pub fn workloads<'s>(state: &'s State, ns: &str) -> Vec<&'s Arc<Object>> {
    let adapted = state.base().adapters().kinds();
    let kinds = Kind::with(KindTraits::runs_pods).chain(adapted);
    let all = kinds.flat_map(|kind| state.list(&kind, Some(ns)));
    // mostly the next one has the same controller
    let mut last: Option<(&Owner, bool)> = None;
    let mut is_made = |object: &'s Arc<Object>| {
        let Some(owner) = object.controller() else { return false };
        let known = last.filter(|(known, _)| *known == owner).map(|(_, makes)| makes);
        let makes = known.unwrap_or_else(|| is_made(state, object));
        last = Some((owner, makes));
        makes
    };
    let counts = |object: &&'s Arc<Object>| object.live() && wants_pods(state, object) && !is_made(object);
    let mut found: Vec<&Arc<Object>> = all.filter(counts).collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

/// Whether an object is one of them.
pub fn is_workload(state: &State, object: &Object) -> bool {
    object.live() && wants_pods(state, object) && !is_made(state, object)
}

/// Whether an object asks for pods itself.
fn wants_pods(state: &State, object: &Object) -> bool {
    if object.key.kind.is("Pod") {
        return !finished(object);
    }
    template_path(object).is_some() || is_adapted_maker(state, object)
}

/// Whether a custom resource is known by its template, and no workload of it says more.
fn is_adapted_maker(state: &State, custom: &Object) -> bool {
    let says = state.adapter(custom).is_some_and(|facts| facts.template.is_some() && facts.replicas.is_some());
    says && child_workloads(state, custom).iter().all(|child| !child.live())
}

/// Whether a live workload that is counted itself, or through others, controls an object.
pub fn is_made(state: &State, object: &Object) -> bool {
    let makes = |owner: &&Arc<Object>| owner.live() && wants_pods(state, owner) && !owner.key.kind.is("Pod");
    controller_of(state, object).filter(makes).is_some()
}

/// The most pods that an object may want at a time: what it wants, what the live custom resource that it is the only workload
/// of wants, what their live autoscalers may set. A CronJob wants one run, or as many pods as its Jobs do.
pub fn most_wanted(state: &State, object: &Object) -> i64 {
    if object.key.kind.is("CronJob") {
        let jobs = jobs_of(state, object).into_iter().filter(|job| job.live());
        let wanted = jobs.filter_map(|job| wanted_replicas(state, job)).fold(0, i64::saturating_add);
        return wanted.max(a_run(object));
    }
    let mut most = wanted_replicas(state, object).unwrap_or(0).max(0);
    let sets = object.key.kind.is("Deployment").then(|| sets_of(state, object)).into_iter().flatten();
    let scaled = [object].into_iter().chain(sets.map(|set| &**set)).filter_map(|one| replica_range(state, one));
    most = scaled.fold(most, |most, (_, high)| most.max(high));
    only_parents(state, object).into_iter().filter(|parent| parent.live()).fold(most, |most, parent| {
        let high = replica_range(state, parent).map_or(0, |(_, high)| high);
        most.max(high).max(wanted_replicas(state, parent).unwrap_or(0))
    })
}

/// What decides how many pods an object may want beside itself: if one of these is not there, it may be another number.
pub fn deciding<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    let parents = only_parents(state, object);
    let sets = sets_of(state, object);
    let scaled = [&object.key].into_iter().chain(parents.iter().chain(&sets).map(|o| &o.key));
    let scalers: Vec<&Arc<Object>> = scaled.flat_map(|key| autoscalers(state, key)).collect();
    jobs_of(state, object).into_iter().chain(parents).chain(sets).chain(scalers).collect()
}

fn jobs_of<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    owned(state, object, "CronJob", "Job")
}

fn sets_of<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    owned(state, object, "Deployment", "ReplicaSet")
}

fn owned<'s>(state: &'s State, owner: &Object, kind: &str, of: &str) -> Vec<&'s Arc<Object>> {
    if !owner.key.kind.is(kind) {
        return Vec::new();
    }
    let controlled = |o: &&Arc<Object>| o.controller().is_some_and(|controller| controller.uid == owner.uid);
    state.owned_by(&owner.uid).into_iter().filter(|o| o.key.kind.is(of)).filter(controlled).collect()
}

/// How many pods one run of a CronJob has at a time; none while it is suspended.
fn a_run(object: &Object) -> i64 {
    if object.val().bool_at(&["spec", "suspend"]) == Some(true) {
        return 0;
    }
    let job = |field: &str| object.val().int_at(&["spec", "jobTemplate", "spec", field]);
    let parallel = job("parallelism").unwrap_or(1);
    job("completions").map_or(parallel, |all| all.min(parallel))
}

/// How many pods more than so many there may be while an object replaces them: a Deployment's or DaemonSet's `maxSurge`
/// (`pkg/controller/daemon/util`, `SurgeCount`: rounded up).
pub fn surge(object: &Object, wanted: i64) -> i64 {
    match &*object.key.kind.kind {
        "Deployment" if object.key.kind.is("Deployment") => max_surge(object, wanted),
        "DaemonSet" if object.key.kind.is("DaemonSet") => daemonset::max_surge(object, wanted),
        _ => 0,
    }
}

/// The spec of a pod, or of those that an object makes, with what the live LimitRanges of its namespace add to it.
pub fn admitted_spec(state: &State, object: &Object) -> Option<Val> {
    let spec = pod_spec(state, object)?;
    let ranges = limit_ranges(state, &object.key.ns);
    Some(fields::with_limit_defaults(&spec, &of_arcs(&ranges)))
}

/// Why the API server would make none of an object's pods, whatever else there is: a LimitRange that they break, a quota
/// whose resources they do not state.
pub fn refusals(state: &State, object: &Object) -> Vec<String> {
    let Some(spec) = admitted_spec(state, object).filter(|_| !object.key.kind.is("Pod")) else { return Vec::new() };
    let mut found = fields::refused_by_limits(&spec, &of_arcs(&limit_ranges(state, &object.key.ns)));
    for quota in live(state, &Kind::new("", "ResourceQuota"), &object.key.ns) {
        if counts(state, quota, object) {
            let named = fields::unstated(quota, &spec).into_iter();
            found.extend(named.map(|name| format!("{} wants {name} of each container", quota.key)));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a quota counts the pods that an object makes.
pub fn counts(state: &State, quota: &Object, object: &Object) -> bool {
    if quota.key.ns != object.key.ns {
        return false;
    }
    if fields::has_no_scopes(quota) {
        return pod_spec(state, object).is_some();
    }
    let Some(spec) = admitted_spec(state, object) else { return false };
    let class = match spec.name_at(&["priorityClassName"]) {
        Some(class) => class.into(),
        None => default_class(state).map_or_else(|| "".into(), |class| class.key.name.clone()),
    };
    fields::quota_scopes_mean(quota, &spec, &class)
}

/// The PriorityClass of pods that name none: of several global defaults the lowest (`plugin/pkg/admission/priority`).
pub fn default_class<'s>(state: &'s State) -> Option<&'s Arc<Object>> {
    let classes = state.list(&Kind::new("scheduling.k8s.io", "PriorityClass"), None).into_iter();
    let default = classes.filter(|class| class.live() && class.val().bool_at(&["globalDefault"]) == Some(true));
    default.min_by_key(|class| class.val().int_at(&["value"]).unwrap_or(0))
}

/// Whether a PriorityClass may be that of a pod: as the global default, by name, or as one of those that there always are.
pub fn may_be_priority(state: &State, class: &Object) -> bool {
    let is_default = class.val().bool_at(&["globalDefault"]) == Some(true);
    let is_built_in = SYSTEM_PRIORITIES.contains(&&*class.key.name);
    is_default || is_built_in || !state.referrers(&class.key).is_empty()
}

/// What decides about the pods of a namespace as they are admitted.
pub fn admitting(state: &State, ns: &str) -> Arc<Vec<Arc<Object>>> {
    state.once("admitting", ns, || {
        let named = ["LimitRange", "ResourceQuota"].into_iter();
        let here = named.flat_map(|kind| state.list(&Kind::new("", kind), Some(ns)));
        here.chain(state.list(&Kind::new("scheduling.k8s.io", "PriorityClass"), None)).cloned().collect()
    })
}

fn limit_ranges(state: &State, ns: &str) -> Arc<Vec<Arc<Object>>> {
    let find = || live(state, &Kind::new("", "LimitRange"), ns).into_iter().cloned().collect();
    state.once("limit ranges", ns, find)
}

fn of_arcs(objects: &[Arc<Object>]) -> Vec<&Object> {
    objects.iter().map(|object| &**object).collect()
}

fn live<'s>(state: &'s State, kind: &Kind, ns: &str) -> Vec<&'s Arc<Object>> {
    state.list(kind, Some(ns)).into_iter().filter(|o| o.live()).collect()
}
