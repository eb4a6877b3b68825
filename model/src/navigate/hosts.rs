//! Which host and path an Ingress or route takes, on which class of proxies.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::annotations;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::state::State;
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

/// What an Ingress or HTTPRoute takes, sorted, each once; nothing for other kinds.
///
/// The class of an Ingress is its ingressClassName, else the annotation that preceded it, else the default IngressClass
/// (`pkg/apis/networking/types.go`); that of a route the gatewayClassName of its Gateways. A route whose parent is
/// missing, or is no Gateway, has a class of that parent's own.
pub fn host_claims(state: &State, object: &Object) -> Vec<HostClaim> {
    let (classes, rules) = match (&*object.key.kind.group, &*object.key.kind.kind) {
        ("networking.k8s.io" | "extensions", "Ingress") => (vec![ingress_class(state, object)], ingress_rules(object)),
        (GATEWAY, "HTTPRoute") => (route_classes(state, object), route_rules(object)),
        _ => return Vec::new(),
    };
    let mut claims: Vec<HostClaim> = Vec::new();
    for class in &classes {
        claims.extend(rules.iter().map(|(host, path)| HostClaim {
            class: class.clone(),
            host: host.clone(),
            path: path.clone(),
        }));
    }
    claims.sort();
    claims.dedup();
    claims
}

/// The hosts of an Ingress or HTTPRoute, as they stand in its claims.
pub fn hosts_of(object: &Object) -> BTreeSet<Str> {
    rules_of(object).into_iter().map(|(host, _)| host).collect()
}

/// Hosts and paths of an Ingress or HTTPRoute.
fn rules_of(object: &Object) -> Vec<(Str, Str)> {
    if *object.key.kind.kind == *"Ingress" { ingress_rules(object) } else { route_rules(object) }
}

/// The live objects that take the same, in the order of their keys.
pub fn host_claimants<'s>(state: &'s State, claim: &HostClaim) -> Vec<&'s Arc<Object>> {
    let all = host_rivals(state, claim).into_iter();
    let mut found: Vec<&Arc<Object>> = all.filter(|o| o.live() && host_claims(state, o).contains(claim)).collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

/// The objects that take the same of some class: which one may change with the default.
pub fn host_rivals<'s>(state: &'s State, claim: &HostClaim) -> Vec<&'s Arc<Object>> {
    let old = state.list(&Kind::new("extensions", "Ingress"), None);
    let all = state.claiming(&claim.host).into_iter().chain(old);
    let takes = |(host, path): &(Str, Str)| *host == claim.host && *path == claim.path;
    all.filter(|o| rules_of(o).iter().any(takes)).collect()
}

fn ingress_class(state: &State, ingress: &Object) -> Str {
    let named = ingress.val().str_at(&["spec", "ingressClassName"]);
    named.or_else(|| ingress.annotation(annotations::INGRESS_CLASS)).cloned().unwrap_or_else(|| {
        let classes = state.list(&Kind::new("networking.k8s.io", "IngressClass"), None);
        let default = classes
            .into_iter()
            .find(|class| class.annotation(annotations::DEFAULT_INGRESS_CLASS).is_some_and(|v| &**v == "true"));
        default.map_or_else(|| "".into(), |class| class.key.name.clone())
    })
}

/// Hosts and paths; an Ingress with nothing but a default backend takes everything.
fn ingress_rules(ingress: &Object) -> Vec<(Str, Str)> {
    let mut claims = Vec::new();
    let rules = ingress.val().items_at(&["spec", "rules"]);
    for rule in rules {
        let host = host(rule.str_at(&["host"]));
        let paths = rule.items_at(&["http", "paths"]);
        claims.extend(paths.iter().map(|p| (host.clone(), path(p.str_at(&["path"]), p.str_at(&["pathType"])))));
        if paths.is_empty() {
            claims.push((host, "/".into()));
        }
    }
    if rules.is_empty() && ingress.val().at_some(&["spec", "defaultBackend"]).is_some() {
        claims.push(("*".into(), "/".into()));
    }
    claims
}

fn route_classes(state: &State, route: &Object) -> Vec<Str> {
    let mut classes: Vec<Str> =
        route.val().items_at(&["spec", "parentRefs"]).iter().map(|parent| route_class(state, route, parent)).collect();
    if classes.is_empty() {
        classes.push("".into());
    }
    classes.sort();
    classes.dedup();
    classes
}

fn route_class(state: &State, route: &Object, parent: &Val) -> Str {
    let text = |key: &str, default: &str| parent.str_at(&[key]).map_or_else(|| Str::from(default), Str::clone);
    let kind = Kind::new(&text("group", GATEWAY), &text("kind", "Gateway"));
    let key = Key::new(kind, &text("namespace", &route.key.ns), &text("name", ""));
    let class = state.get(&key).and_then(|gateway| gateway.val().str_at(&["spec", "gatewayClassName"]));
    class.cloned().unwrap_or_else(|| key.to_string().into())
}

fn route_rules(route: &Object) -> Vec<(Str, Str)> {
    let listed: Vec<Str> = route.val().items_at(&["spec", "hostnames"]).iter().map(|h| host(h.as_str())).collect();
    let hosts = if listed.is_empty() { vec![Str::from("*")] } else { listed };
    let mut paths = Vec::new();
    for rule in route.val().items_at(&["spec", "rules"]) {
        let matches = rule.items_at(&["matches"]);
        paths.extend(matches.iter().map(|m| path(m.str_at(&["path", "value"]), m.str_at(&["path", "type"]))));
        if matches.is_empty() {
            paths.push("/".into());
        }
    }
    if paths.is_empty() {
        paths.push("/".into());
    }
    hosts.iter().flat_map(|host| paths.iter().map(|path| (host.clone(), path.clone()))).collect()
}

fn host(host: Option<&Str>) -> Str {
    host.filter(|h| !h.is_empty()).map_or_else(|| "*".into(), |h| h.to_lowercase().into())
}

/// A path; one that is matched by its elements means the same with and without a slash at its end.
fn path(path: Option<&Str>, kind: Option<&Str>) -> Str {
    let path = path.filter(|p| !p.is_empty()).map_or("/", |p| p);
    let by_element = kind.is_none_or(|k| matches!(&**k, "Prefix" | "PathPrefix"));
    let trimmed = if by_element { path.trim_end_matches('/') } else { path };
    if trimmed.is_empty() { "/".into() } else { trimmed.into() }
}
