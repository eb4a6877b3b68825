//! Which pods an object selects, and which it controls.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::template::template_labels;
use crate::fields::selector_by;
use crate::kinds::{Kind, KindTraits};
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::state::State;
use crate::value::Val;

/// The selector of the pods that an object is about; `None` when it selects none.
pub fn selector_of(state: &State, object: &Object) -> Option<Selector> {
    selector_by(state.base().adapters().as_ref(), object)
}

/// The pods in the object's namespace that it selects.
pub fn selected<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    selector_of(state, object).map_or_else(Vec::new, |selector| state.pods_matching(&object.key.ns, &selector))
}

/// The objects of a namespace that select a pod of it, or the pods that an object of it makes, in the order of their keys.
pub fn selected_by<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    let labels = match object.key.kind.is("Pod") {
        true => Some(object.labels().clone()),
        false => template_labels(state, object),
    };
    let Some(labels) = labels else { return Vec::new() };
    let mut kinds: Vec<Kind> = Kind::with(KindTraits::selects_pods).collect();
    kinds.extend(state.base().adapters().kinds());
    let mut found = state.selecting_any(&kinds, &object.key.ns, &labels);
    found.retain(|o| o.key.ns == object.key.ns && selector_of(state, o).is_some_and(|s| s.matches(&labels)));
    found
}

/// The ready endpoints of a Service: the selected pods that are Ready. `publishNotReadyAddresses` is left aside, which
/// counts fewer endpoints than there are.
pub fn endpoints<'s>(state: &'s State, service: &Object) -> Vec<&'s Arc<Object>> {
    selected(state, service).into_iter().filter(|pod| pod.ready()).collect()
}

/// How many ready endpoints somebody other than the endpoints controllers keeps for a Service, one without a selector:
/// those in its EndpointSlices (`discovery/v1/types.go`: readiness left out is to be taken as true), or the addresses in
/// the Endpoints of its name if it has no slices.
pub fn listed_endpoints(state: &State, service: &Object) -> i64 {
    let external = service.val().str_at(&["spec", "type"]).is_some_and(|t| &**t == "ExternalName");
    if external || selector_of(state, service).is_some() {
        return 0;
    }
    let slices = endpoint_slices(state, service);
    let ready = |endpoint: &&Val| endpoint.bool_at(&["conditions", "ready"]) != Some(false);
    let in_slice = |slice: &Arc<Object>| slice.val().items_at(&["endpoints"]).iter().filter(ready).count();
    let in_subset = |subset: &Val| subset.items_at(&["addresses"]).len();
    let endpoints = Key::of("Endpoints", &service.key.ns, &service.key.name);
    let addresses = state
        .get(&endpoints)
        .filter(|_| slices.is_empty())
        .map_or(0, |endpoints| endpoints.val().items_at(&["subsets"]).iter().map(in_subset).sum::<usize>());
    let listed = slices.into_iter().map(in_slice).sum::<usize>() + addresses;
    i64::try_from(listed).unwrap_or(i64::MAX)
}

/// The EndpointSlices of a Service.
pub fn endpoint_slices<'s>(state: &'s State, service: &Object) -> Vec<&'s Arc<Object>> {
    let of_service = |slice: &&Arc<Object>| slice.label(SERVICE_NAME).is_some_and(|name| *name == service.key.name);
    let slices = state.list(&Kind::new("discovery.k8s.io", "EndpointSlice"), Some(&service.key.ns));
    slices.into_iter().filter(of_service).collect()
}

/// The label by which an EndpointSlice names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The pods under an object by controller references with its uid, at any depth, in the order of their keys. Controllers
/// look in their object's own namespace only (`pkg/controller/controller_ref_manager.go` gets what they list there).
pub fn pods_owned_by<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    let mut pods = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![object.uid.clone()];
    let mut lists = 0;
    let pod = Kind::new("", "Pod");
    while let Some(uid) = open.pop() {
        let known = pods.len();
        for child in state.owned_by(&uid) {
            let elsewhere = !object.key.ns.is_empty() && child.key.ns != object.key.ns;
            if elsewhere || child.controller().is_none_or(|c| c.uid != uid) {
                continue;
            }
            if child.key.kind == pod {
                pods.push(child);
            } else if seen.insert(child.key.clone()) {
                open.push(child.uid.clone());
            }
        }
        lists += usize::from(pods.len() > known);
    }
    // the pods of one owner are in order; what names an owner twice is found twice
    if lists > 1 {
        pods.sort_by(|a, b| a.key.cmp(&b.key));
    }
    pods.dedup_by(|a, b| Arc::ptr_eq(a, b));
    pods
}
