//! Hosts and paths, as an Ingress or route names them itself.

use std::collections::BTreeSet;

use crate::object::Object;
use crate::steps;
use crate::value::Str;

/// So many pairs of a host and a path of an HTTPRoute are told apart. The API takes no more than 16 hosts and 128 paths
/// (`gateway-api/apis/v1/httproute_types.go`).
pub(crate) const PAIRS_MAX: usize = 16_384;
/// Host and path of a route that has more of them than are told apart: no route names an empty host.
pub(crate) const ANY_PLACE: (&str, &str) = ("", "");

/// Hosts and paths of an Ingress or HTTPRoute, as it names them itself; nothing for other kinds. [`ANY_PLACE`] where they are too
/// many.
pub(crate) fn places_of(object: &Object) -> BTreeSet<(Str, Str)> {
    match is_route(object) {
        Some(Route::Ingress) => ingress_rules(object).into_iter().collect(),
        Some(Route::Http) => {
            let (hosts, paths) = (route_hosts(object), route_paths(object));
            match hosts.len().saturating_mul(paths.len()) {
                0..=PAIRS_MAX => each(&hosts, &paths).collect(),
                _ => [(ANY_PLACE.0.into(), ANY_PLACE.1.into())].into(),
            }
        }
        None => BTreeSet::new(),
    }
}

/// What claims hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Ingress,
    Http,
}

/// What claims hosts, of whichever of its groups.
pub(crate) fn is_route(object: &Object) -> Option<Route> {
    match (&*object.key.kind.group, &*object.key.kind.kind) {
        ("networking.k8s.io" | "extensions", "Ingress") => Some(Route::Ingress),
        ("gateway.networking.k8s.io", "HTTPRoute") => Some(Route::Http),
        _ => None,
    }
}

/// Hosts and paths; an Ingress with nothing but a default backend takes everything.
pub(crate) fn ingress_rules(ingress: &Object) -> Vec<(Str, Str)> {
    let mut claims = Vec::new();
    let rules = ingress.val().items_at(&["spec", "rules"]);
    for rule in rules {
        let host = host(rule.str_at(&["host"]));
        let paths = rule.items_at(&["http", "paths"]);
        steps::count_items(1 + paths.len());
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

/// Each of these hosts with each of these paths.
pub(crate) fn each<'h, 'p, P: IntoIterator<Item = &'p Str> + Copy>(
    hosts: impl IntoIterator<Item = &'h Str>,
    paths: P,
) -> impl Iterator<Item = (Str, Str)> {
    let one = |host: &'h Str, path: &Str| {
        steps::count(1);
        (host.clone(), path.clone())
    };
    hosts.into_iter().flat_map(move |host| paths.into_iter().map(move |path| one(host, path)))
}

pub(crate) fn route_hosts(route: &Object) -> Vec<Str> {
    steps::count_items(route.val().items_at(&["spec", "hostnames"]).len().saturating_mul(8));
    let listed: Vec<Str> = route.val().items_at(&["spec", "hostnames"]).iter().map(|h| host(h.as_str())).collect();
    if listed.is_empty() { vec![Str::from("*")] } else { listed }
}

pub(crate) fn route_paths(route: &Object) -> Vec<Str> {
    let mut paths = Vec::new();
    for rule in route.val().items_at(&["spec", "rules"]) {
        let matches = rule.items_at(&["matches"]);
        steps::count_items((1 + matches.len()).saturating_mul(8));
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
