//! Hosts and paths, as an Ingress or route names them itself.

use std::collections::BTreeSet;

use crate::object::Object;
use crate::value::Str;

/// The hosts of an Ingress or HTTPRoute, as it names them itself.
pub fn hosts_of(object: &Object) -> BTreeSet<Str> {
    rules_of(object).into_iter().map(|(host, _)| host).collect()
}

/// Hosts and paths of an Ingress or HTTPRoute.
pub(crate) fn rules_of(object: &Object) -> Vec<(Str, Str)> {
    if *object.key.kind.kind == *"Ingress" { ingress_rules(object) } else { route_rules(object) }
}

/// Hosts and paths; an Ingress with nothing but a default backend takes everything.
pub(crate) fn ingress_rules(ingress: &Object) -> Vec<(Str, Str)> {
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

fn route_rules(route: &Object) -> Vec<(Str, Str)> {
    each(&route_hosts(route), &route_paths(route))
}

pub(crate) fn each(hosts: &[Str], paths: &[Str]) -> Vec<(Str, Str)> {
    hosts.iter().flat_map(|host| paths.iter().map(|path| (host.clone(), path.clone()))).collect()
}

pub(crate) fn route_hosts(route: &Object) -> Vec<Str> {
    let listed: Vec<Str> = route.val().items_at(&["spec", "hostnames"]).iter().map(|h| host(h.as_str())).collect();
    if listed.is_empty() { vec![Str::from("*")] } else { listed }
}

pub(crate) fn route_paths(route: &Object) -> Vec<Str> {
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
    paths
}

pub(crate) fn host(host: Option<&Str>) -> Str {
    host.filter(|h| !h.is_empty()).map_or_else(|| "*".into(), |h| h.to_lowercase().into())
}

/// A path; one that is matched by its elements means the same with and without a slash at its end.
fn path(path: Option<&Str>, kind: Option<&Str>) -> Str {
    let path = path.filter(|p| !p.is_empty()).map_or("/", |p| p);
    let by_element = kind.is_none_or(|k| matches!(&**k, "Prefix" | "PathPrefix"));
    let trimmed = if by_element { path.trim_end_matches('/') } else { path };
    if trimmed.is_empty() { "/".into() } else { trimmed.into() }
}
