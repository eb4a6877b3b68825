//! Requests near a refused one: another number, a less strict budget, pods that are spread, a gentler rollout, dependents
//! that stay, another order, one after the other.

use suture_model::change::{Operation, Propagation, Request};
use suture_model::fields::template_path;
use suture_model::object::Object;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Val;

use crate::written::REPLICAS_DEFAULT;

/// Of a longer batch the later requests are not varied.
pub(super) const REQUESTS_MAX: usize = 4;
/// An object with more dependents than these is not tried without them: each becomes a thing of its own then.
const ORPHANS_MAX: usize = 32;
/// So many numbers are tried one after the other; of more, halves.
const NUMBERS_MAX: i64 = 8;
/// What pods are spread over.
const TOPOLOGIES: [&str; 2] = ["kubernetes.io/hostname", "topology.kubernetes.io/zone"];

/// What to say of the nearest request that is allowed in place of one, which is called `it`. Pods are spread only if it
/// `spreads` them: where the denial is not about where pods are, that would at best keep new ones from coming.
pub(super) fn nearest(
    snapshot: &Snapshot,
    request: &Request,
    it: &str,
    spreads: bool,
    allowed: &mut dyn FnMut(&Request) -> bool,
) -> Option<String> {
    if request.operation == Operation::Delete {
        let orphan = orphaning(snapshot, request).filter(|orphan| allowed(orphan));
        return orphan.map(|_| format!("delete {it} with propagationPolicy Orphan"));
    }
    let object = request.object.as_ref()?;
    let with = |val: Val| Request { object: Some(val), ..request.clone() };
    let old = snapshot.get(&request.target).map(|object| object.to_val());
    let replicas = ["spec", "replicas"];
    if let Some(present) = old.as_ref().or(request.old.as_ref()) {
        let present = present.int_at(&replicas).unwrap_or(REPLICAS_DEFAULT);
        let asked = request.replicas().unwrap_or(REPLICAS_DEFAULT);
        let found = between(asked, present, |n| allowed(&with(object.with_at(&replicas, Val::Int(n)))));
        if let Some(n) = found {
            return Some(format!("scale {it} to {n}"));
        }
    }
    if !request.subresource.is_empty() {
        return None;
    }
    let spread = if spreads { spread(object) } else { Vec::new() };
    let changed = less_strict(object).into_iter().chain(raised(object)).chain(spread).chain(gentle(object));
    let spec = |val: &Val| val.get("spec").cloned();
    let mut changed = changed.into_iter().filter(|(_, val)| old.as_ref().is_none_or(|old| spec(old) != spec(val)));
    let (text, _) = changed.find(|(_, val)| allowed(&with(val.clone())))?;
    Some(format!("give {it} {text}"))
}

/// The deletion that leaves the dependents.
fn orphaning(snapshot: &Snapshot, request: &Request) -> Option<Request> {
    let state = State::new(snapshot);
    let dependents = state.get(&request.target).map_or(0, |object| state.owned_by(&object.uid).len());
    let orphan = request.propagation != Some(Propagation::Orphan) && (1..=ORPHANS_MAX).contains(&dependents);
    orphan.then(|| Request { propagation: Some(Propagation::Orphan), ..request.clone() })
}

/// The number nearest to what is asked that is allowed, strictly between that and what there is at present. Of many, it is
/// found by halves: of numbers nearer to the present one no fewer are allowed.
fn between(asked: i64, present: i64, mut allowed: impl FnMut(i64) -> bool) -> Option<i64> {
    let toward = (present - asked).signum();
    let distance = (present - asked).abs();
    let at = |steps: i64| asked + toward * steps;
    if distance <= NUMBERS_MAX {
        return (1..distance).map(at).find(|n| allowed(*n));
    }
    let (mut refused, mut found) = (0, distance - 1);
    if !allowed(at(found)) {
        return None;
    }
    while found - refused > 1 {
        let middle = refused + (found - refused) / 2;
        match allowed(at(middle)) {
            true => found = middle,
            false => refused = middle,
        }
    }
    Some(at(found))
}

/// A PodDisruptionBudget that asks for less, with what it asks for; nearest first.
pub(super) fn less_strict(object: &Val) -> Vec<(String, Val)> {
    if object.str_at(&["kind"]).is_none_or(|kind| &**kind != "PodDisruptionBudget") {
        return Vec::new();
    }
    let most = |n: i64| {
        let val = object.without_at(&["spec", "minAvailable"]).with_at(&["spec", "maxUnavailable"], Val::Int(n));
        (format!("maxUnavailable: {n}"), val)
    };
    match object.int_at(&["spec", "minAvailable"]) {
        Some(asked) => {
            let least = |n: i64| (format!("minAvailable: {n}"), object.with_at(&["spec", "minAvailable"], Val::Int(n)));
            (asked.saturating_sub(NUMBERS_MAX).max(0)..asked).rev().map(least).collect()
        }
        None => [1, 2].map(most).into(),
    }
}

/// An autoscaler that keeps more pods.
fn raised(object: &Val) -> Vec<(String, Val)> {
    let path = ["spec", "minReplicas"];
    if object.str_at(&["kind"]).is_none_or(|kind| &**kind != "HorizontalPodAutoscaler") {
        return Vec::new();
    }
    let (asked, most) = (object.int_at(&path).unwrap_or(1), object.int_at(&["spec", "maxReplicas"]).unwrap_or(1));
    let numbers = asked.saturating_add(1)..=most.min(asked.saturating_add(NUMBERS_MAX));
    numbers.map(|n| (format!("minReplicas: {n}"), object.with_at(&path, Val::Int(n)))).collect()
}

/// A workload whose pods are spread over nodes, or zones.
fn spread(object: &Val) -> Vec<(String, Val)> {
    let Some(template) = Object::from_val(object).ok().as_ref().and_then(template_path) else { return Vec::new() };
    let at = |rest: &[&'static str]| [template, rest].concat();
    let Some(labels) = object.at(&at(&["metadata", "labels"])).filter(|labels| !labels.is_null()) else {
        return Vec::new();
    };
    let constraints = at(&["spec", "topologySpreadConstraints"]);
    let over = |topology: &&str| {
        let constraint = Val::object([
            ("maxSkew", Val::Int(1)),
            ("topologyKey", Val::str(*topology)),
            ("whenUnsatisfiable", Val::str("DoNotSchedule")),
            ("labelSelector", Val::object([("matchLabels", labels.clone())])),
        ]);
        let all = object.items_at(&constraints).iter().cloned().chain([constraint]).collect();
        let text = format!("topologySpreadConstraints over {topology} (maxSkew 1, DoNotSchedule)");
        (text, object.with_at(&constraints, Val::list(all)))
    };
    let mut found: Vec<(String, Val)> = TOPOLOGIES.iter().map(over).collect();
    let [hosts, ..] = TOPOLOGIES;
    let apart = at(&["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"]);
    let term = Val::object([
        ("topologyKey", Val::str(hosts)),
        ("labelSelector", Val::object([("matchLabels", labels.clone())])),
    ]);
    let all = object.items_at(&apart).iter().cloned().chain([term]).collect();
    let text = format!("required podAntiAffinity of its pods over {hosts}");
    found.push((text, object.with_at(&apart, Val::list(all))));
    found
}

/// A Deployment whose rollout takes no pod before another one is ready.
fn gentle(object: &Val) -> Option<(String, Val)> {
    let is_deployment = object.str_at(&["kind"]).is_some_and(|kind| &**kind == "Deployment");
    let strategy = Val::object([
        ("type", Val::str("RollingUpdate")),
        ("rollingUpdate", Val::object([("maxUnavailable", Val::Int(0)), ("maxSurge", Val::Int(1))])),
    ]);
    let text = "strategy RollingUpdate with maxUnavailable: 0 and maxSurge: 1".to_owned();
    is_deployment.then(|| (text, object.with_at(&["spec", "strategy"], strategy)))
}

/// The same requests in another order, or one by one.
pub(super) fn in_another_order(requests: &[Request], allowed: &mut dyn FnMut(Vec<Request>) -> bool) -> Option<String> {
    if requests.len() < 2 {
        return None;
    }
    let deletes = |request: &&Request| request.operation == Operation::Delete;
    let others = requests.iter().filter(|request| !deletes(request));
    let deletions_last: Vec<Request> = others.chain(requests.iter().filter(deletes)).cloned().collect();
    let reversed: Vec<Request> = requests.iter().rev().cloned().collect();
    for order in [deletions_last, reversed] {
        if order.iter().map(|r| &r.target).ne(requests.iter().map(|r| &r.target)) && allowed(order.clone()) {
            let names: Vec<String> = order.iter().map(|request| request.target.to_string()).collect();
            return Some(match names.len() <= REQUESTS_MAX {
                true => format!("in this order: {}", names.join(", then ")),
                false => format!("in another order: {} first, {} last", names.first()?, names.last()?),
            });
        }
    }
    one_at_a_time(requests, allowed)
}

/// Pods that are removed together, one by one.
fn one_at_a_time(requests: &[Request], allowed: &mut dyn FnMut(Vec<Request>) -> bool) -> Option<String> {
    let removes = |request: &Request| {
        let evicts = request.operation == Operation::Create && request.subresource == "eviction";
        request.target.kind.is("Pod") && (evicts || request.operation == Operation::Delete)
    };
    let alone = requests.iter().all(removes) && requests.iter().all(|request| allowed(vec![request.clone()]));
    alone
        .then(|| "one at a time: wait until what takes the place of a pod is ready before the next one goes".to_owned())
}

#[cfg(test)]
mod tests {
    use suture_model::change::User;

    use super::*;

    #[test]
    fn the_nearest_number_is_found_and_never_the_present_one() {
        assert_eq!(between(1, 4, |n| n >= 3), Some(3));
        assert_eq!(between(2, 3, |_| true), None);
        assert_eq!(between(0, 3, |n| n >= 3), None);
        assert_eq!(between(8, 3, |n| n <= 5), Some(5));
        assert_eq!(between(3, 3, |_| true), None);
        let mut tried = 0;
        let found = between(1, 1000, |n| {
            tried += 1;
            n >= 617
        });
        assert_eq!((found, tried), (Some(617), 11));
        assert_eq!(between(1, 1000, |n| n >= 1000), None);
    }

    #[test]
    fn pods_are_spread_only_where_the_denial_is_about_where_they_are() {
        let template = Val::object([("metadata", Val::object([("labels", Val::object([("app", Val::str("web"))]))]))]);
        let web = Val::object([
            ("apiVersion", Val::str("apps/v1")),
            ("kind", Val::str("Deployment")),
            ("metadata", Val::object([("name", Val::str("web")), ("namespace", Val::str("a"))])),
            ("spec", Val::object([("replicas", Val::Int(2)), ("template", template)])),
        ]);
        let snapshot = Snapshot::default();
        let request = Request::update(User::admin(), &State::new(&snapshot), &web, "").unwrap();
        let said = |spreads: bool| nearest(&snapshot, &request, "it", spreads, &mut |_| true);
        assert!(said(true).unwrap().contains("topologySpreadConstraints"), "{:?}", said(true));
        assert!(said(false).unwrap().contains("strategy RollingUpdate"), "{:?}", said(false));
    }
}
