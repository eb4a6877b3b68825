//! From an `AdmissionReview` to a request (`k8s.io/api/admission/v1/types.go`).

use super::manifest::named;
use super::request::{ChangeError, Operation, Preconditions, Propagation, Request, User};
use super::resource;
use crate::kinds::Kind;
use crate::object::Key;
use crate::value::{Str, Val};

pub(super) fn parse(review: &Val) -> Result<Request, ChangeError> {
    let kind = text(review, "kind", &["kind"])?;
    if &*kind != "AdmissionReview" {
        return Err(odd("AdmissionReview", &kind));
    }
    let version = text(review, "apiVersion", &["apiVersion"])?;
    if !matches!(&*version, "admission.k8s.io/v1" | "admission.k8s.io/v1beta1") {
        return Err(odd("version of admission.k8s.io", &version));
    }
    let request = review.at_some(&["request"]).filter(|r| matches!(r, Val::Map(_)));
    let request = request.ok_or(ChangeError::Field { path: "request", expected: "a map" })?;
    let uid = text(request, "request.uid", &["uid"])?;
    let operation = operation(&text(request, "request.operation", &["operation"])?)?;
    let subresource = optional(request, "request.subResource", &["subResource"])?.unwrap_or_else(|| "".into());
    let options = request.at_some(&["options"]).cloned().unwrap_or_default();
    let object = body(request, "request.object", "object")?.map(|object| named(&object, &uid));
    let old = body(request, "request.oldObject", "oldObject")?;
    if object.is_none() && matches!(operation, Operation::Create | Operation::Update) {
        return Err(ChangeError::Field { path: "request.object", expected: "a map" });
    }
    let target = target(request, &subresource, object.as_ref().or(old.as_ref()))?;
    Ok(Request {
        user: user(request)?,
        subresource: subresource.to_string(),
        propagation: propagation(&options)?,
        preconditions: preconditions(&options, &subresource, object.as_ref())?,
        dry_run: dry_run(request, &options)?,
        uid,
        operation,
        target,
        object,
        old,
        options,
    })
}

fn operation(name: &str) -> Result<Operation, ChangeError> {
    match name {
        "CREATE" => Ok(Operation::Create),
        "UPDATE" => Ok(Operation::Update),
        "DELETE" => Ok(Operation::Delete),
        "CONNECT" => Ok(Operation::Connect),
        other => Err(odd("operation", other)),
    }
}

/// What the request is about: the `kind` of the request, or of its `resource` where a subresource has its own kind.
fn target(request: &Val, subresource: &str, object: Option<&Val>) -> Result<Key, ChangeError> {
    let kind = Kind::new(
        &optional(request, "request.kind.group", &["kind", "group"])?.unwrap_or_else(|| "".into()),
        &text(request, "request.kind.kind", &["kind", "kind"])?,
    );
    let same_kind = matches!(subresource, "" | "status" | "ephemeralcontainers" | "resize" | "finalize" | "approval");
    let kind = if same_kind {
        kind
    } else {
        let group = optional(request, "request.resource.group", &["resource", "group"])?.unwrap_or_else(|| "".into());
        resource::provisional(&group, &text(request, "request.resource.resource", &["resource", "resource"])?)
    };
    let of_object =
        |field: &str| object.and_then(|o| o.str_at(&["metadata", field])).filter(|s| !s.is_empty()).cloned();
    let name = optional(request, "request.name", &["name"])?.filter(|n| !n.is_empty()).or_else(|| of_object("name"));
    let name = name.ok_or(ChangeError::Field { path: "request.name", expected: "a string" })?;
    let ns = optional(request, "request.namespace", &["namespace"])?.filter(|n| !n.is_empty());
    let ns = match kind.builtin_namespaced() {
        Some(false) => "".into(),
        _ => ns.or_else(|| of_object("namespace")).unwrap_or_else(|| "".into()),
    };
    if ns.is_empty() && kind.builtin_namespaced() == Some(true) {
        return Err(ChangeError::Field { path: "request.namespace", expected: "a string" });
    }
    Ok(Key { kind, ns, name })
}

fn user(request: &Val) -> Result<User, ChangeError> {
    let groups = match request.at_some(&["userInfo", "groups"]) {
        None => Vec::new(),
        Some(Val::List(groups)) => {
            let names: Option<Vec<Str>> = groups.iter().map(|g| g.as_str().cloned()).collect();
            names.ok_or(ChangeError::Field { path: "request.userInfo.groups", expected: "a list of strings" })?
        }
        Some(_) => return Err(ChangeError::Field { path: "request.userInfo.groups", expected: "a list of strings" }),
    };
    Ok(User {
        username: text(request, "request.userInfo.username", &["userInfo", "username"])?,
        groups,
        uid: optional(request, "request.userInfo.uid", &["userInfo", "uid"])?.unwrap_or_else(|| "".into()),
    })
}

/// The policy of DeleteOptions; `orphanDependents` preceded it (`apimachinery/pkg/apis/meta/v1/types.go`).
fn propagation(options: &Val) -> Result<Option<Propagation>, ChangeError> {
    let policy = optional(options, "request.options.propagationPolicy", &["propagationPolicy"])?;
    match policy.as_deref() {
        Some("Background") => Ok(Some(Propagation::Background)),
        Some("Foreground") => Ok(Some(Propagation::Foreground)),
        Some("Orphan") => Ok(Some(Propagation::Orphan)),
        Some(other) => Err(odd("propagation policy", other)),
        None => Ok(options
            .bool_at(&["orphanDependents"])
            .map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background })),
    }
}

/// The preconditions of a deletion, or of the deletion that an eviction asks for; of a binding, which pod it means.
fn preconditions(options: &Val, subresource: &str, object: Option<&Val>) -> Result<Preconditions, ChangeError> {
    if subresource == "binding" {
        // whom a scheduler binds it names by uid (`pkg/scheduler/framework/plugins/defaultbinder/default_binder.go`, and
        // `pkg/registry/core/pod/storage/storage.go`, `setPodNodeAndMetadata`, which binds no other)
        let uid = object.and_then(|binding| binding.str_at(&["metadata", "uid"])).filter(|uid| !uid.is_empty());
        return Ok(Preconditions { uid: uid.cloned(), resource_version: None });
    }
    let of_eviction = object.and_then(|o| o.at_some(&["deleteOptions", "preconditions"]));
    let Some(found) = options.at_some(&["preconditions"]).or(of_eviction) else { return Ok(Preconditions::default()) };
    Ok(Preconditions {
        uid: optional(found, "request.options.preconditions.uid", &["uid"])?,
        resource_version: optional(found, "request.options.preconditions.resourceVersion", &["resourceVersion"])?,
    })
}

fn dry_run(request: &Val, options: &Val) -> Result<bool, ChangeError> {
    let listed = !options.items_at(&["dryRun"]).is_empty();
    match request.at_some(&["dryRun"]) {
        None => Ok(listed),
        Some(Val::Bool(dry)) => Ok(*dry || listed),
        Some(_) => Err(ChangeError::Field { path: "request.dryRun", expected: "a Boolean" }),
    }
}

fn body(request: &Val, path: &'static str, field: &str) -> Result<Option<Val>, ChangeError> {
    match request.at_some(&[field]) {
        None => Ok(None),
        Some(map @ Val::Map(_)) => Ok(Some(map.clone())),
        Some(_) => Err(ChangeError::Field { path, expected: "a map" }),
    }
}

fn text(val: &Val, path: &'static str, at: &[&str]) -> Result<Str, ChangeError> {
    let found = optional(val, path, at)?.filter(|t| !t.is_empty());
    found.ok_or(ChangeError::Field { path, expected: "a string" })
}

fn optional(val: &Val, path: &'static str, at: &[&str]) -> Result<Option<Str>, ChangeError> {
    match val.at_some(at) {
        None => Ok(None),
        Some(Val::Str(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ChangeError::Field { path, expected: "a string" }),
    }
}

fn odd(what: &'static str, value: &str) -> ChangeError {
    ChangeError::Value { what, value: value.chars().take(64).collect() }
}
