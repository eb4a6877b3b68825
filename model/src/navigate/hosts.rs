//! Which host and path an Ingress or route takes, on which class of proxies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::annotations;
use crate::fields::hosts::{
    ANY_PLACE, PAIRS_MAX, Route, each, host, ingress_rules, is_route, places_of, route_hosts, route_paths,
};
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::state::State;
use crate::steps;
use crate::value::{Str, Val};

/// What one rule takes for itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostClaim {
    /// The class of proxies; empty where none is named and none is the default.
    pub class: Str,
    /// The host in lower case; `*` for every host.
    pub host: Str,
    /// The path.
    pub path: Str,
}

const GATEWAY: &str = "gateway.networking.k8s.io";

/// What an Ingress or HTTPRoute takes, sorted, each once; nothing for other kinds. `None` where a route takes more than are told
/// apart.
///
/// The class of an Ingress is its ingressClassName, else the annotation that preceded it, else the default IngressClass
/// (`pkg/apis/networking/types.go`); that of a route the gatewayClassName of its Gateways. A route whose parent is
/// missing, or is no Gateway, has a class of that parent's own.
pub fn host_claims(state: &State, object: &Object) -> Option<Vec<HostClaim>> {
    let claim = |class: &Str, (host, path)| HostClaim { class: class.clone(), host, path };
    let claims: BTreeSet<HostClaim> = match is_route(object) {
        Some(Route::Ingress) => {
            let class = ingress_class(state, object);
            ingress_rules(object).into_iter().map(|place| claim(&class, place)).collect()
        }
        Some(Route::Http) => {
            let Attached { hosts, paths, .. } = &attached(state, object);
            let hosts = hosts.as_ref()?;
            let pairs = hosts.values().map(|hosts| hosts.len().saturating_mul(paths.len()));
            if pairs.fold(0, usize::saturating_add) > PAIRS_MAX {
                return None;
            }
            hosts.iter().flat_map(|(class, hosts)| each(hosts, paths).map(|place| claim(class, place))).collect()
        }
        None => BTreeSet::new(),
    };
    Some(claims.into_iter().collect())
}

/// What an Ingress or HTTPRoute takes as it names it itself, whatever its class is and whichever of its Gateways are there: where
/// one goes, its listeners narrow nothing any more. `None` where that is more than is told apart.
pub fn host_claims_as_named(object: &Object) -> Option<Vec<HostClaim>> {
    let claim = |(host, path)| HostClaim { class: "".into(), host, path };
    let places = places_of(object);
    let all = places.iter().any(|(host, path)| (&**host, &**path) == ANY_PLACE);
    (!all).then(|| places.into_iter().map(claim).collect())
}

/// The live objects that take the same, in the order of their keys.
pub fn host_claimants<'s>(state: &'s State, claim: &HostClaim) -> Vec<&'s Arc<Object>> {
    // whoever asks about each claim of a route asks about all that it takes as often
    let attached = |o: &Object| state.once("attached", &o.key.to_string(), || attached(state, o));
    let takes = |o: &&Arc<Object>| match is_route(o) {
        Some(Route::Ingress) => ingress_class(state, o) == claim.class,
        Some(Route::Http) => attached(o).takes(claim),
        None => false,
    };
    host_rivals(state, claim).into_iter().filter(|o| o.live()).filter(takes).collect()
}

/// The objects that take the same of some class, or of some listener, in the order of their keys: which ones may change.
pub fn host_rivals<'s>(state: &'s State, claim: &HostClaim) -> Vec<&'s Arc<Object>> {
    let mut all = state.claiming(&claim.host, &claim.path);
    for wider in wider(&claim.host) {
        let routes = state.claiming(&wider, &claim.path).into_iter();
        all.extend(routes.filter(|o| is_route(o) == Some(Route::Http)));
    }
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all.dedup_by(|a, b| a.key == b.key);
    steps::count_items(1 + all.len());
    all
}

/// The hosts that a route may name which takes this one of a listener: all hosts, or all of a domain.
fn wider(host: &str) -> Vec<String> {
    let domains = host.match_indices('.').filter_map(|(at, _)| host.get(at..)).map(|domain| format!("*{domain}"));
    std::iter::once("*".to_owned()).chain(domains).filter(|wider| wider != host).collect()
}

fn ingress_class(state: &State, ingress: &Object) -> Str {
    let named = ingress.val().str_at(&["spec", "ingressClassName"]);
    named
        .or_else(|| ingress.annotation(annotations::INGRESS_CLASS))
        .or_else(|| default_class(state))
        .map_or_else(|| "".into(), Str::clone)
}

/// Of several default classes the newest, and of equals the first by name
/// (`plugin/pkg/admission/network/defaultingressclass/admission.go`, `getDefaultClass`). A class that is only now made is
/// the newest.
fn default_class<'s>(state: &'s State) -> Option<&'s Str> {
    let classes = state.list(&Kind::new("networking.k8s.io", "IngressClass"), None).into_iter();
    let defaults = classes.filter(|c| c.annotation(annotations::DEFAULT_INGRESS_CLASS).is_some_and(|v| &**v == "true"));
    let is_new = |class: &Object| state.base().get(&class.key).is_none_or(|known| known.uid != class.uid);
    let age = |class: &&Arc<Object>| (is_new(class), class.created.clone(), std::cmp::Reverse(class.key.name.clone()));
    defaults.max_by_key(age).map(|class| &class.key.name)
}

/// What a route takes.
struct Attached {
    /// By the classes of its parents the hosts that it takes there; `None` where these are too many, so that it takes what it
    /// names wherever that is.
    hosts: Option<BTreeMap<Str, BTreeSet<Str>>>,
    named: BTreeSet<Str>,
    paths: BTreeSet<Str>,
}

impl Attached {
    fn takes(&self, claim: &HostClaim) -> bool {
        let takes_host = match &self.hosts {
            Some(hosts) => hosts.get(&claim.class).is_some_and(|hosts| hosts.contains(&claim.host)),
            None => self.named.contains(&claim.host),
        };
        takes_host && self.paths.contains(&claim.path)
    }
}

fn attached(state: &State, route: &Object) -> Attached {
    let named = route_hosts(route);
    let hosts = hosts_by_class(state, route, &named);
    Attached { hosts, named: named.into_iter().collect(), paths: route_paths(route).into_iter().collect() }
}

/// The classes of a route's parents, each with the hosts that the route takes there; `None` where they are too many.
fn hosts_by_class(state: &State, route: &Object, named: &[Str]) -> Option<BTreeMap<Str, BTreeSet<Str>>> {
    let parents = route.val().items_at(&["spec", "parentRefs"]);
    let mut taken: BTreeMap<Str, BTreeSet<Str>> = BTreeMap::new();
    if parents.is_empty() {
        taken.entry("".into()).or_default().extend(named.iter().cloned());
    }
    let mut pairs = 0_usize;
    for parent in parents {
        let (class, gateway) = route_class(state, route, parent);
        let listeners = gateway.map(|gateway| listeners(gateway, parent)).unwrap_or_default();
        let count = named.len().saturating_mul(listeners.len().max(1));
        pairs = pairs.saturating_add(count);
        if pairs > PAIRS_MAX {
            return None;
        }
        steps::count_items(1 + count);
        taken.entry(class).or_default().extend(common(&listeners, named));
    }
    Some(taken)
}

fn route_class<'s>(state: &'s State, route: &Object, parent: &Val) -> (Str, Option<&'s Arc<Object>>) {
    let text = |key: &str, default: &str| parent.str_at(&[key]).map_or_else(|| Str::from(default), Str::clone);
    let kind = Kind::new(&text("group", GATEWAY), &text("kind", "Gateway"));
    let key = Key::new(kind, &text("namespace", &route.key.ns), &text("name", ""));
    let gateway = state.get(&key);
    let class = gateway.and_then(|gateway| gateway.val().str_at(&["spec", "gatewayClassName"]));
    (class.cloned().unwrap_or_else(|| key.to_string().into()), gateway)
}

/// The listeners that a parentRef means (`gateway-api/apis/v1/shared_types.go`, `ParentReference`).
fn listeners<'g>(gateway: &'g Object, parent: &Val) -> Vec<&'g Val> {
    let is_same = |field: &str, own: Option<&Val>| parent.at_some(&[field]).is_none_or(|asked| Some(asked) == own);
    let is_meant = |listener: &&Val| {
        let other = listener.str_at(&["protocol"]).is_some_and(|p| matches!(&**p, "TLS" | "TCP" | "UDP"));
        !other && is_same("sectionName", listener.at(&["name"])) && is_same("port", listener.at(&["port"]))
    };
    let all = gateway.val().items_at(&["spec", "listeners"]);
    steps::count_items(1 + all.len());
    all.iter().filter(is_meant).collect()
}

/// What these hosts have in common with those of listeners (`gateway-api/apis/v1/httproute_types.go`,
/// `HTTPRouteSpec.Hostnames`): of two the narrower one. Where no listener is told, the hosts as they stand.
fn common(listeners: &[&Val], named: &[Str]) -> Vec<Str> {
    if listeners.is_empty() {
        return named.to_vec();
    }
    let hosts = listeners.iter().map(|listener| host(listener.str_at(&["hostname"])));
    hosts.flat_map(|own| named.iter().filter_map(move |named| narrower(&own, named))).collect()
}

fn narrower(one: &Str, other: &Str) -> Option<Str> {
    let covers =
        |wide: &Str, host: &Str| wide == host || wide.strip_prefix('*').is_some_and(|rest| host.ends_with(rest));
    if covers(one, other) { Some(other.clone()) } else { covers(other, one).then(|| one.clone()) }
}
