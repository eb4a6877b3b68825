//! What an object refers to: the edges of the reference graph, from every place where Kubernetes reads a name.
//!
//! | referrer | read where |
//! |---|---|
//! | pods and their templates | `pkg/api/v1/pod/util.go` (`VisitPodSecretNames`, `VisitPodConfigmapNames`) |
//! | claims and volumes | `pkg/controller/volume/persistentvolume`, `pkg/volume/csi` |
//! | Ingress, HTTPRoute and their like | `pkg/apis/networking/types.go`, gateway-api `apis/v1/httproute_types.go` |
//! | definitions, APIService, webhooks | the `service` of their `clientConfig` or `spec` |
//! | custom resources | their adapter |

use crate::adapter::{AdapterFacts, Adapters};
use crate::fields::{finished, template_path};
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::steps;
use crate::value::Val;

mod pods;
pub(crate) mod reference;

pub(crate) use pods::SYSTEM_PRIORITIES;
pub use pods::names_its_own;
pub use reference::Reference;
pub(crate) use reference::typed;

// until its callers name `fields`
pub(crate) use crate::fields::class_named;

/// The references of an object, sorted, each once.
pub fn references(object: &Object, adapters: &dyn Adapters) -> Vec<Reference> {
    with_facts(object, adapters.facts(object).as_deref())
}

/// What an object, of which its adapter says this, refers to or scales, as far as [every key](Key::partial_key) of it says; sorted,
/// each once.
pub(crate) fn named(object: &Object, facts: Option<&AdapterFacts>) -> Vec<Key> {
    let scaled = facts.and_then(|facts| facts.scale_target.clone());
    let targets = with_facts(object, facts).into_iter().map(|reference| reference.target);
    let mut found: Vec<Key> = targets.chain(scaled).map(Key::partial_key).collect();
    found.sort();
    found.dedup();
    found
}

/// What the adapter of a custom resource lists as made by its operator, as far as [every key](Key::partial_key) of it says; sorted,
/// each once.
pub(crate) fn children(facts: Option<&AdapterFacts>) -> Vec<Key> {
    let listed = facts.iter().flat_map(|facts| facts.children.iter().flatten());
    let mut found: Vec<Key> = listed.cloned().map(Key::partial_key).collect();
    found.sort();
    found.dedup();
    found
}

fn with_facts(object: &Object, facts: Option<&AdapterFacts>) -> Vec<Reference> {
    let mut found = Vec::new();
    match (&*object.key.kind.group, &*object.key.kind.kind) {
        ("", "Pod") => pods::of_pod(object, &mut found),
        ("", "PersistentVolumeClaim") => of_claim(object, &mut found),
        ("", "PersistentVolume") => of_volume(object, &mut found),
        ("", "ServiceAccount") => of_service_account(object, &mut found),
        ("apps" | "batch" | "", _) => of_workload(object, &mut found),
        ("networking.k8s.io" | "extensions", "Ingress") => of_ingress(object, &mut found),
        ("gateway.networking.k8s.io", "Gateway") => of_gateway(object, &mut found),
        ("gateway.networking.k8s.io", _) => of_route(object, &mut found),
        ("autoscaling", "HorizontalPodAutoscaler") => of_autoscaler(object, &mut found),
        ("rbac.authorization.k8s.io", _) => of_binding(object, &mut found),
        ("apiextensions.k8s.io" | "apiregistration.k8s.io" | "admissionregistration.k8s.io", _) => {
            of_extension(object, &mut found);
        }
        _ => {}
    }
    if let Some(facts) = facts {
        of_custom(object, facts, &mut found);
    }
    // each costs far more than a step
    steps::count_items(found.len().saturating_mul(8));
    found.sort();
    // what is named for several ports is one reference
    found.dedup_by(|next, first| {
        let same = next.is_same_but_for_ports(first);
        if same {
            first.ports.append(&mut next.ports);
        }
        same
    });
    for reference in found.iter_mut().filter(|reference| reference.ports.len() > 1) {
        reference.ports.sort();
        reference.ports.dedup();
    }
    found
}

/// The references of a custom resource: what its adapter lists, and what its pods will refer to.
fn of_custom(object: &Object, facts: &AdapterFacts, found: &mut Vec<Reference>) {
    found.extend(facts.references.iter().cloned());
    if let Some(spec) = facts.template.as_ref().and_then(|t| t.at_some(&["spec"])) {
        let mut own = Vec::new();
        pods::of_spec(spec, &object.key.ns, &mut own);
        found.extend(own.into_iter().map(|r| Reference { needed: facts.replicas != Some(0), ..r }));
    }
}

/// Workloads refer as their pods do; one that wants no pods names the same and needs nothing.
fn of_workload(object: &Object, found: &mut Vec<Reference>) {
    let Some(path) = template_path(object) else { return };
    let Some(spec) = object.val().at_some(path).and_then(|t| t.at_some(&["spec"])) else { return };
    let idle = match &*object.key.kind.kind {
        "Job" => suspended(object) || object.val().int_at(&["spec", "parallelism"]) == Some(0),
        "CronJob" => suspended(object),
        "DaemonSet" => false,
        _ => object.val().int_at(&["spec", "replicas"]) == Some(0),
    };
    let mut own = Vec::new();
    pods::of_spec(spec, &object.key.ns, &mut own);
    if object.key.kind.is("StatefulSet") {
        if let Some(service) = object.val().name_at(&["spec", "serviceName"]) {
            own.push(Reference::new(Key::of("Service", &object.key.ns, service), "serviceName").optional_if(true));
        }
        for template in object.val().items_at(&["spec", "volumeClaimTemplates"]) {
            if let Some(class) = class_named(template) {
                own.push(Reference::new(Key::of("StorageClass", "", class), "volumeClaimTemplates"));
            }
        }
    }
    let needed = !idle && !finished(object);
    found.extend(own.into_iter().map(|r| Reference { needed, ..r }));
}

/// Whether a Job or CronJob makes no pods until it is resumed.
fn suspended(object: &Object) -> bool {
    object.val().bool_at(&["spec", "suspend"]) == Some(true)
}

/// A claim needs its volume, and its class only until it is bound (`pv_controller.go`, `syncUnboundClaim`).
fn of_claim(object: &Object, found: &mut Vec<Reference>) {
    match object.val().name_at(&["spec", "volumeName"]) {
        Some(volume) => found.push(Reference::new(Key::of("PersistentVolume", "", volume), "volumeName")),
        None => {
            if let Some(class) = class_named(object.val()) {
                found.push(Reference::new(Key::of("StorageClass", "", class), "storageClassName"));
            }
        }
    }
}

/// The secrets of a CSI volume, each in a namespace of its own.
fn of_volume(object: &Object, found: &mut Vec<Reference>) {
    const SECRETS: [&str; 5] = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodeStageSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    for field in SECRETS {
        let Some(secret) = object.val().at_some(&["spec", "csi", field]) else { continue };
        if let (Some(ns), Some(name)) = (secret.name_at(&["namespace"]), secret.name_at(&["name"])) {
            found.push(Reference::new(Key::of("Secret", ns, name), "csi"));
        }
    }
}

fn of_service_account(object: &Object, found: &mut Vec<Reference>) {
    for (field, via) in [("secrets", "secrets"), ("imagePullSecrets", "imagePullSecrets")] {
        for secret in object.val().items_at(&[field]) {
            if let Some(name) = secret.name_at(&["name"]) {
                found.push(Reference::new(Key::of("Secret", &object.key.ns, name), via).optional_if(true));
            }
        }
    }
}

/// Backends and TLS secrets must be there; a class that no object describes may still be served by a controller.
fn of_ingress(object: &Object, found: &mut Vec<Reference>) {
    let ns = &object.key.ns;
    let spec = object.val().at(&["spec"]).unwrap_or(&Val::Null);
    let paths = spec.items_at(&["rules"]).iter().flat_map(|rule| rule.items_at(&["http", "paths"]));
    let backends = paths.filter_map(|path| path.at_some(&["backend"]));
    for backend in backends.chain(spec.at_some(&["defaultBackend"])).chain(spec.at_some(&["backend"])) {
        let service = backend.name_at(&["service", "name"]).or_else(|| backend.name_at(&["serviceName"]));
        if let Some(name) = service {
            let named =
                backend.at_some(&["service", "port"]).and_then(|p| p.at_some(&["number"]).or(p.at_some(&["name"])));
            let port = named.or_else(|| backend.at_some(&["servicePort"]));
            found.push(Reference::new(Key::of("Service", ns, name), "backend").with_port(port, None));
        }
        if let Some(resource) = backend.at_some(&["resource"])
            && let (Some(kind), Some(name)) = (resource.name_at(&["kind"]), resource.name_at(&["name"]))
        {
            let group = resource.str_at(&["apiGroup"]).map_or("", |g| g);
            found.push(Reference::new(Key::new(Kind::new(group, kind), ns, name), "backend"));
        }
    }
    for tls in spec.items_at(&["tls"]) {
        if let Some(name) = tls.name_at(&["secretName"]) {
            found.push(Reference::new(Key::of("Secret", ns, name), "tls"));
        }
    }
    if let Some(class) = spec.name_at(&["ingressClassName"]) {
        found.push(Reference::new(Key::of("IngressClass", "", class), "ingressClassName").optional_if(true));
    }
}

fn of_gateway(object: &Object, found: &mut Vec<Reference>) {
    if let Some(class) = object.val().name_at(&["spec", "gatewayClassName"]) {
        found.push(Reference::new(Key::of("GatewayClass", "", class), "gatewayClassName").optional_if(true));
    }
    for listener in object.val().items_at(&["spec", "listeners"]) {
        for secret in listener.items_at(&["tls", "certificateRefs"]) {
            found.extend(gateway_reference(secret, ("", "Secret"), &object.key.ns, "certificateRefs"));
        }
    }
}

/// HTTPRoute and the routes that are shaped like it: backends (of a mirror too), and Gateways, which may come later.
fn of_route(object: &Object, found: &mut Vec<Reference>) {
    let ns = &object.key.ns;
    for parent in object.val().items_at(&["spec", "parentRefs"]) {
        let gateway = gateway_reference(parent, ("gateway.networking.k8s.io", "Gateway"), ns, "parentRefs");
        found.extend(gateway.map(|r| r.optional_if(true)));
    }
    for rule in object.val().items_at(&["spec", "rules"]) {
        let backends = rule.items_at(&["backendRefs"]);
        let filters = rule.items_at(&["filters"]).iter().chain(backends.iter().flat_map(|b| b.items_at(&["filters"])));
        let mirrors = filters.filter_map(|f| f.at_some(&["requestMirror", "backendRef"]));
        for backend in backends.iter().chain(mirrors) {
            let port = backend.at_some(&["port"]);
            found.extend(
                gateway_reference(backend, ("", "Service"), ns, "backendRefs").map(|r| r.with_port(port, None)),
            );
        }
    }
}

fn gateway_reference(reference: &Val, kind: (&str, &str), ns: &str, via: &'static str) -> Option<Reference> {
    let group = reference.str_at(&["group"]).map_or(kind.0, |g| g);
    let kind = Kind::new(group, reference.name_at(&["kind"]).unwrap_or(kind.1));
    let ns = reference.name_at(&["namespace"]).unwrap_or(ns);
    Some(Reference::new(Key::new(kind, ns, reference.name_at(&["name"])?), via))
}

fn of_autoscaler(object: &Object, found: &mut Vec<Reference>) {
    if let Some(target) = object.val().at_some(&["spec", "scaleTargetRef"]).and_then(|t| typed(t, &object.key.ns)) {
        found.push(Reference::new(target, "scaleTargetRef"));
    }
}

/// A binding needs its role; subjects may come later.
fn of_binding(object: &Object, found: &mut Vec<Reference>) {
    let role = object.val().at_some(&["roleRef"]);
    if let Some((kind, name)) = role.and_then(|r| Some((r.name_at(&["kind"])?, r.name_at(&["name"])?))) {
        let ns = if kind == "Role" { &*object.key.ns } else { "" };
        found.push(Reference::new(Key::of(kind, ns, name), "roleRef"));
    }
    for subject in object.val().items_at(&["subjects"]) {
        let account = subject.str_at(&["kind"]).is_some_and(|k| &**k == "ServiceAccount");
        if let Some(name) = subject.name_at(&["name"]).filter(|_| account) {
            let ns = subject.name_at(&["namespace"]).unwrap_or(&object.key.ns);
            found.push(Reference::new(Key::of("ServiceAccount", ns, name), "subjects").optional_if(true));
        }
    }
}

/// The Services that the API server calls: conversion, aggregation, admission.
fn of_extension(object: &Object, found: &mut Vec<Reference>) {
    let val = object.val();
    let mut push = |service: Option<&Val>, via: &'static str| {
        if let Some((ns, name)) = service.and_then(|s| Some((s.name_at(&["namespace"])?, s.name_at(&["name"])?))) {
            let port = service.and_then(|s| s.at_some(&["port"]));
            // `admissionregistration/v1/types.go`, `apiregistration/v1/types.go`, `apiextensions/v1/types.go`
            found.push(Reference::new(Key::of("Service", ns, name), via).with_port(port, Some("443")));
        }
    };
    match &*object.key.kind.kind {
        "CustomResourceDefinition"
            if val.str_at(&["spec", "conversion", "strategy"]).is_some_and(|s| &**s == "Webhook") =>
        {
            push(val.at_some(&["spec", "conversion", "webhook", "clientConfig", "service"]), "conversion");
            push(val.at_some(&["spec", "conversion", "webhookClientConfig", "service"]), "conversion");
        }
        "APIService" => push(val.at_some(&["spec", "service"]), "service"),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            for webhook in val.items_at(&["webhooks"]) {
                push(webhook.at_some(&["clientConfig", "service"]), "webhooks");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
