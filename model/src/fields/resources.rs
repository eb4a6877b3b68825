//! What a pod asks for of a resource: the figure that the scheduler and quotas count.

use std::collections::BTreeSet;

use crate::object::Object;
use crate::quantity::{Allocatable, Quantity};
use crate::steps;
use crate::value::{Str, Val};

/// What a pod spec requests of a resource, in thousandths of a cpu, in units of anything else.
///
/// The larger of what runs together (containers and restartable init containers) and the largest init container beside
/// the restartable ones before it, plus the overhead (`component-helpers/resource/helpers.go`, `PodRequests`); a limit
/// stands for a request that is missing (`pkg/apis/core/v1/defaults.go`). Texts that are no quantity, which the API
/// server refuses, count nothing.
pub fn requests(pod_spec: &Val, resource: &str) -> i64 {
    let total = total_request(pod_spec, resource);
    if resource == "cpu" { total.milli() } else { total.value() }
}

fn total_request(pod_spec: &Val, resource: &str) -> Quantity {
    pod_request(pod_spec, resource) + quantity(pod_spec, &["overhead"], resource).unwrap_or_default()
}

/// What a pod spec requests of a resource, exactly; `None` where nothing of it does.
pub(super) fn requests_exactly(pod_spec: &Val, resource: &str) -> Option<Quantity> {
    let states =
        |of: &Val| ["requests", "limits"].iter().any(|part| quantity(of, &["resources", part], resource).is_some());
    parts_of(pod_spec).any(states).then(|| total_request(pod_spec, resource))
}

/// What a pod spec is limited to of a resource, found as its request is; `None` where nothing of it is limited
/// (`component-helpers/resource/helpers.go`, `PodLimits`).
pub(super) fn limits(pod_spec: &Val, resource: &str) -> Option<Quantity> {
    let limit = |of: &Val| quantity(of, &["resources", "limits"], resource);
    if let Some(own) = limit(pod_spec) {
        return Some(own);
    }
    parts_of(pod_spec).any(|of| limit(of).is_some()).then(|| {
        let amount = |of: &Val| limit(of).unwrap_or_default();
        let together = running(pod_spec, &amount).max(starting(pod_spec, &amount));
        let overhead = quantity(pod_spec, &["overhead"], resource).unwrap_or_default();
        // overhead is added to what is limited only
        if together == Quantity::default() { together } else { together + overhead }
    })
}

/// A pod spec's containers, and itself.
fn parts_of(pod_spec: &Val) -> impl Iterator<Item = &Val> {
    let containers = pod_spec.items_at(&["containers"]).iter().chain(pod_spec.items_at(&["initContainers"]));
    containers.chain([pod_spec])
}

/// What a pod requests: cpu in milli, memory in bytes. Pods of one body request the same, which is worked out once.
pub(crate) fn requests_of(pod: &Object) -> (i64, i64) {
    pod.body.requests(|val| {
        let spec = val.get("spec").unwrap_or(&Val::Null);
        (requests(spec, "cpu"), requests(spec, "memory"))
    })
}

/// What a node states that pods can have of it; `None` of one that states nothing. Nodes of one body state the same, which is
/// worked out once.
pub(crate) fn allocatable(node: &Object) -> Option<&Allocatable> {
    node.body.allocatable(|val| {
        let stated = val.at(&["status", "allocatable"])?;
        let of = |resource: &str| amount(stated.get(resource)?, resource);
        Some(Allocatable { pods: of("pods"), cpu: of("cpu"), memory: of("memory") })
    })
}

/// The names of the resources that a pod spec may request, by requests or limits.
pub fn requested(pod_spec: &Val) -> BTreeSet<Str> {
    let parts = parts_of(pod_spec).flat_map(|of| ["requests", "limits"].map(|part| of.at(&["resources", part])));
    let maps = parts.chain([pod_spec.at(&["overhead"])]).flatten();
    maps.flat_map(Val::entries).map(|(name, _)| name.clone()).collect()
}

/// An amount that a node or quota states, in the unit of [`requests`].
pub fn amount(val: &Val, resource: &str) -> Option<i64> {
    let quantity = Quantity::from_val(val).ok()?;
    Some(if resource == "cpu" { quantity.milli() } else { quantity.value() })
}

/// A pod's own request takes the place of its containers' (KEP-2837).
fn pod_request(spec: &Val, resource: &str) -> Quantity {
    let amount = |of: &Val| container(of, resource);
    let (together, start) = (running(spec, &amount), starting(spec, &amount));
    let containers = together.max(start);
    let own_limit = || quantity(spec, &["resources", "limits"], resource).filter(|_| containers == Quantity::default());
    quantity(spec, &["resources", "requests"], resource).or_else(own_limit).unwrap_or(containers)
}

fn running(spec: &Val, amount: &dyn Fn(&Val) -> Quantity) -> Quantity {
    let (first, all) = (spec.items_at(&["initContainers"]), spec.items_at(&["containers"]));
    steps::count_items((first.len() + all.len()).saturating_mul(4));
    let restartable = first.iter().filter(|c| restarts(c));
    all.iter().chain(restartable).map(amount).sum()
}

fn starting(spec: &Val, amount: &dyn Fn(&Val) -> Quantity) -> Quantity {
    let mut beside = Quantity::default();
    let mut most = Quantity::default();
    for init in spec.items_at(&["initContainers"]) {
        let with_it = beside + amount(init);
        if restarts(init) {
            beside = with_it;
        }
        most = most.max(with_it);
    }
    most
}

fn restarts(init: &Val) -> bool {
    init.str_at(&["restartPolicy"]).is_some_and(|p| &**p == "Always")
}

fn container(container: &Val, resource: &str) -> Quantity {
    let limit = || quantity(container, &["resources", "limits"], resource);
    quantity(container, &["resources", "requests"], resource).or_else(limit).unwrap_or_default()
}

fn quantity(val: &Val, path: &[&str], resource: &str) -> Option<Quantity> {
    Quantity::from_val(val.at(path)?.get(resource)?).ok()
}
