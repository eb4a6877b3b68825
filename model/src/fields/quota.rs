//! What LimitRanges make of a pod before it is stored, what they refuse, and what a ResourceQuota counts of it.
//!
//! Sources: `pkg/apis/core/v1/defaults.go` (`SetDefaults_LimitRangeItem`, `SetDefaults_Pod`),
//! `plugin/pkg/admission/limitranger/admission.go`, `pkg/quota/v1/evaluator/core/pods.go`. Where several LimitRanges give a
//! default, which one does is not said there; here it is the first by name.

use std::collections::BTreeMap;

use super::resources::{limits, requests, requests_exactly};
use super::scheduling::pod_terms;
use crate::object::Object;
use crate::quantity::Quantity;
use crate::value::{Str, Val};

type Amounts = BTreeMap<Str, Quantity>;

/// The parts of a pod spec that have containers with requests and limits.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// A pod spec with what the defaults of these LimitRanges add to its containers.
pub fn with_limit_defaults(spec: &Val, ranges: &[&Object]) -> Val {
    let mut spec = spec.clone();
    for part in CONTAINERS {
        if spec.items_at(&[part]).is_empty() {
            continue;
        }
        let containers = spec.items_at(&[part]).iter().map(|container| {
            // a limit stands for a request that is missing, before admission
            let limits = container.at(&["resources", "limits"]).cloned().unwrap_or_default();
            let container = filled(container, "requests", limits.entries().map(|(k, v)| (k.clone(), v.clone())));
            items(ranges, "Container").fold(container, |container, item| {
                let (request, limit) = defaults(item);
                filled(&filled(&container, "limits", limit.into_iter()), "requests", request.into_iter())
            })
        });
        spec = spec.with(part, Val::list(containers.collect()));
    }
    spec
}

/// The requests and limits that an item gives to a container that has none: a maximum stands for the limit, the limit for
/// the request, and then a minimum.
fn defaults(item: &Val) -> (BTreeMap<Str, Val>, BTreeMap<Str, Val>) {
    let of = |field: &str| item.at(&[field]).cloned().unwrap_or_default();
    let all = |fields: &[&Val]| {
        let mut found: BTreeMap<Str, Val> = BTreeMap::new();
        for (name, amount) in fields.iter().flat_map(|field| field.entries()) {
            found.entry(name.clone()).or_insert_with(|| amount.clone());
        }
        found
    };
    let limit = all(&[&of("default"), &of("max")]);
    let limits = Val::map(limit.iter().map(|(name, amount)| (name.clone(), amount.clone())).collect());
    (all(&[&of("defaultRequest"), &limits, &of("min")]), limit)
}

/// A container with requests or limits where it has none.
fn filled(container: &Val, part: &str, amounts: impl Iterator<Item = (Str, Val)>) -> Val {
    let own = container.at_some(&["resources", part]).cloned().unwrap_or_else(|| Val::object([]));
    let full = amounts.fold(own.clone(), |all, (name, amount)| match all.get(&name) {
        Some(_) => all,
        None => all.with(&name, amount),
    });
    if full == own { container.clone() } else { container.with_at(&["resources", part], full) }
}

/// The items of LimitRanges that are about this.
fn items<'o>(ranges: &'o [&Object], of: &'static str) -> impl Iterator<Item = &'o Val> {
    let all = ranges.iter().flat_map(|range| range.val().items_at(&["spec", "limits"]));
    all.filter(move |item| item.str_at(&["type"]).is_some_and(|kind| &**kind == of))
}

/// Why these LimitRanges refuse a pod that has its defaults: nothing if they do not.
pub fn refused_by_limits(spec: &Val, ranges: &[&Object]) -> Vec<String> {
    let mut found = Vec::new();
    for part in CONTAINERS {
        for container in spec.items_at(&[part]) {
            let name = container.str_at(&["name"]).map_or("", |name| name);
            let amounts = |part: &str| amounts(container.at(&["resources", part]));
            for item in items(ranges, "Container") {
                found.extend(broken(item, &format!("container {name}"), &amounts("requests"), &amounts("limits")));
            }
        }
    }
    let exactly = |of: fn(&Val, &str) -> Option<Quantity>| {
        let names = super::resources::requested(spec);
        names.into_iter().filter_map(|name| Some((name.clone(), of(spec, &name)?))).collect::<Amounts>()
    };
    for item in items(ranges, "Pod") {
        found.extend(broken(item, "the pod", &exactly(requests_exactly), &exactly(limits)));
    }
    found
}

fn amounts(map: Option<&Val>) -> Amounts {
    let entries = map.into_iter().flat_map(Val::entries);
    entries.filter_map(|(name, amount)| Some((name.clone(), Quantity::from_val(amount).ok()?))).collect()
}

/// The constraints of an item that these requests and limits break.
fn broken(item: &Val, what: &str, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let mut found = Vec::new();
    for (name, least) in amounts(item.at(&["min"])) {
        let too_little = |of: &Amounts| of.get(&name).is_some_and(|amount| *amount < least);
        if !requests.contains_key(&name) || too_little(requests) || too_little(limits) {
            found.push(format!("{what} must have at least {} of {name}", text(item, "min", &name)));
        }
    }
    for (name, most) in amounts(item.at(&["max"])) {
        let too_much = |of: &Amounts| of.get(&name).is_some_and(|amount| *amount > most);
        if !limits.contains_key(&name) || too_much(requests) || too_much(limits) {
            found.push(format!("{what} must be limited to {} of {name}", text(item, "max", &name)));
        }
    }
    for (name, ratio) in amounts(item.at(&["maxLimitRequestRatio"])) {
        let stated = |of: &Amounts| of.get(&name).map_or(0, |amount| amount.nanos());
        let (request, limit) = (stated(requests), stated(limits));
        let over = limit.checked_mul(1_000_000_000).zip(request.checked_mul(ratio.nanos()));
        if request == 0 || limit == 0 || over.is_none_or(|(limit, allowed)| limit > allowed) {
            let ratio = text(item, "maxLimitRequestRatio", &name);
            found.push(format!("{what} may be limited to {ratio} times its request of {name} at most"));
        }
    }
    found
}

/// An amount as it is written.
fn text(item: &Val, field: &str, name: &str) -> String {
    match item.at(&[field, name]) {
        Some(Val::Str(text)) => text.to_string(),
        Some(Val::Int(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// What a quota counts of a pod under the name of a resource: one for `pods` and `count/pods`, in the unit of
/// [`requests`] for what is requested or limited; nothing under any other name.
pub fn quota_usage(spec: &Val, resource: &str) -> i64 {
    if let Some(name) = resource.strip_prefix("limits.") {
        let total = limits(spec, name).unwrap_or_default();
        return if name == "cpu" { total.milli() } else { total.value() };
    }
    match resource {
        "pods" | "count/pods" => 1,
        // a pod requests nothing by the names of what a quota counts beside pods
        _ => requests(spec, resource.strip_prefix("requests.").unwrap_or(resource)),
    }
}

/// The name of a resource without what a quota puts before it: its amounts are in the unit of that.
pub fn quota_resource(resource: &str) -> &str {
    resource.strip_prefix("limits.").or_else(|| resource.strip_prefix("requests.")).unwrap_or(resource)
}

/// The resources that a quota wants each container to state, and one of them does not.
pub fn unstated(quota: &Object, spec: &Val) -> Vec<Str> {
    // what the pod states itself stands for its containers
    if spec.at_some(&["resources"]).is_some() {
        return Vec::new();
    }
    let hard = quota.val().at(&["spec", "hard"]).into_iter().flat_map(Val::entries).map(|(name, _)| name);
    let states = |container: &Val, name: &str| {
        let (part, name) = match name.split_once('.') {
            Some(("limits", name)) => ("limits", name),
            Some((_, name)) => ("requests", name),
            None => ("requests", name),
        };
        container.at_some(&["resources", part, name]).is_some()
    };
    let wanted = hard.filter(|name| {
        matches!(&***name, "cpu" | "memory" | "requests.cpu" | "requests.memory" | "limits.cpu" | "limits.memory")
    });
    let containers = || CONTAINERS.into_iter().flat_map(|part| spec.items_at(&[part]));
    wanted.filter(|name| containers().any(|container| !states(container, name))).cloned().collect()
}

/// Whether a quota counts every pod of its namespace.
pub fn has_no_scopes(quota: &Object) -> bool {
    let spec = |path: &[&str]| quota.val().items_at(path).is_empty();
    spec(&["spec", "scopes"]) && spec(&["spec", "scopeSelector", "matchExpressions"])
}

/// Whether the scopes of a quota mean a pod that has its defaults, and this name of a PriorityClass (empty: none).
pub fn quota_scopes_mean(quota: &Object, spec: &Val, priority_class: &str) -> bool {
    let scopes = quota.val().items_at(&["spec", "scopes"]).iter();
    let plain = scopes.filter_map(Val::as_str).all(|scope| has_scope(spec, priority_class, scope, "Exists", &[]));
    let selected = quota.val().items_at(&["spec", "scopeSelector", "matchExpressions"]).iter().all(|expression| {
        let text = |field| expression.str_at(&[field]).map_or("", |text| text);
        has_scope(spec, priority_class, text("scopeName"), text("operator"), expression.items_at(&["values"]))
    });
    plain && selected
}

fn has_scope(spec: &Val, priority_class: &str, scope: &str, operator: &str, values: &[Val]) -> bool {
    let named = || values.iter().filter_map(Val::as_str).any(|value| &**value == priority_class);
    match scope {
        "Terminating" => spec.int_at(&["activeDeadlineSeconds"]).is_some(),
        "NotTerminating" => spec.int_at(&["activeDeadlineSeconds"]).is_none(),
        "BestEffort" => is_best_effort(spec),
        "NotBestEffort" => !is_best_effort(spec),
        "CrossNamespacePodAffinity" => crosses_namespaces(spec),
        "PriorityClass" => match operator {
            "In" => named(),
            "NotIn" => !named(),
            "DoesNotExist" => priority_class.is_empty(),
            _ => !priority_class.is_empty(),
        },
        // a scope of claims means no pod
        _ => false,
    }
}

/// Whether nothing of a pod requests or limits cpu or memory (`pkg/apis/core/v1/helper/qos/qos.go`).
fn is_best_effort(spec: &Val) -> bool {
    let containers = CONTAINERS.into_iter().flat_map(|part| spec.items_at(&[part]));
    let parts = containers.chain([spec]).flat_map(|of| ["requests", "limits"].map(|part| of.at(&["resources", part])));
    let mut amounts = parts.flatten().flat_map(Val::entries);
    !amounts.any(|(name, amount)| {
        matches!(&**name, "cpu" | "memory") && Quantity::from_val(amount).is_ok_and(|amount| amount.nanos() > 0)
    })
}

fn crosses_namespaces(spec: &Val) -> bool {
    let terms = ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|part| {
        let required = pod_terms(spec, part).iter();
        let preferred = spec.items_at(&["affinity", part, "preferredDuringSchedulingIgnoredDuringExecution"]).iter();
        required.chain(preferred.filter_map(|term| term.at(&["podAffinityTerm"])))
    });
    let mut terms = terms;
    terms.any(|term| !term.items_at(&["namespaces"]).is_empty() || term.at_some(&["namespaceSelector"]).is_some())
}

#[cfg(test)]
mod tests;
