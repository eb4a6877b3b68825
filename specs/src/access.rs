//! Reading fields and items: what `a.b`, `has(a.b)`, `a.?b`, `a[b]` and `a[?b]` mean on every kind of value.

use suture_model::ingest::is_dropped;
use suture_model::object::{Object, Owner};
use suture_model::references::Reference;
use suture_model::value::Val;

use crate::error::{EvalError, EvalErrorKind};
use crate::ir::Type;
use crate::value::Value;

/// `base.field`, where the expression has the type `ty`.
///
/// # Errors
/// When there is no such field, or the base can have none.
pub fn select(base: &Value, field: &str, ty: &Type) -> Result<Value, EvalError> {
    if let Value::Optional(inner) = base {
        return match inner {
            Some(value) => opt_select(value, field, ty),
            None => Ok(Value::none()),
        };
    }
    match find(base, field)? {
        Some(value) => present(value, ty).ok_or_else(|| missing(field))?,
        None => Err(missing(field)),
    }
}

/// `has(base.field)`.
///
/// # Errors
/// When the base can have no fields.
pub fn has_field(base: &Value, field: &str, typed: bool) -> Result<bool, EvalError> {
    if let Value::Optional(inner) = base {
        return inner.as_ref().map_or(Ok(false), |value| has_field(value, field, typed));
    }
    Ok(find(base, field)?.is_some_and(|v| !(typed && matches!(v, Value::Null))))
}

/// `base.?field`, where the expression has the type `ty` (an optional).
///
/// # Errors
/// When the base can have no fields.
pub fn opt_select(base: &Value, field: &str, ty: &Type) -> Result<Value, EvalError> {
    let inner = match ty {
        Type::Optional(inner) => inner,
        other => other,
    };
    if let Value::Optional(value) = base {
        return value.as_ref().map_or_else(|| Ok(Value::none()), |value| opt_select(value, field, ty));
    }
    match find(base, field)?.and_then(|value| present(value, inner)) {
        Some(value) => value.map(already_or_some),
        None => Ok(Value::none()),
    }
}

/// `base[index]`, where the expression has the type `ty`.
///
/// # Errors
/// When there is no such item, or the base has no items.
pub fn index(base: &Value, at: &Value, ty: &Type) -> Result<Value, EvalError> {
    if let Value::Optional(_) = base {
        return opt_index(base, at, ty);
    }
    match base {
        Value::List(items) => {
            let position = position(at)?;
            let found = usize::try_from(position).ok().and_then(|p| items.get(p));
            let value = found.ok_or(EvalErrorKind::OutOfRange { index: position, len: items.len() })?;
            coerce(value, ty)
        }
        Value::Map(map) => {
            let value = map.get(at).ok_or_else(|| EvalErrorKind::NoSuchKey(at.display()))?;
            coerce(value, ty)
        }
        other => Err(mismatch("a list or a map", other)),
    }
}

/// `base[?index]`, where the expression has the type `ty` (an optional).
///
/// # Errors
/// When the base has no items.
pub fn opt_index(base: &Value, at: &Value, ty: &Type) -> Result<Value, EvalError> {
    let inner = match ty {
        Type::Optional(inner) => inner,
        other => other,
    };
    if let Value::Optional(value) = base {
        return value.as_ref().map_or_else(|| Ok(Value::none()), |value| opt_index(value, at, ty));
    }
    match index(base, at, inner) {
        Ok(value) => Ok(already_or_some(value)),
        Err(error) if error.is_absence() => Ok(Value::none()),
        Err(error) => Err(error),
    }
}

/// The value at a path below an object, as the fields of its manifest; `None` when it is absent.
///
/// # Errors
/// When a part of the object was not read, so that nothing but its metadata is known, or the field is not kept.
pub fn object_field(object: &Object, path: &[&str]) -> Result<Option<Value>, EvalError> {
    let is_known = || matches!(path.first(), Some(&("apiVersion" | "kind" | "metadata")));
    if object.is_unread() && !is_known() {
        return Err(EvalErrorKind::Unread(object.key.to_string()).into());
    }
    if is_dropped(&object.key.kind, path) {
        return Err(EvalErrorKind::Dropped(path.join("."), object.key.kind.kind.to_string()).into());
    }
    Ok(object.at(path).map(|val| Value::from(&val)))
}

fn already_or_some(value: Value) -> Value {
    match value {
        Value::Optional(_) => value,
        value => Value::some(value),
    }
}

fn position(at: &Value) -> Result<i64, EvalError> {
    match at {
        Value::Int(_) | Value::UInt(_) | Value::Double(_) => at.as_int().ok_or_else(|| mismatch("an integer", at)),
        other => Err(mismatch("an integer", other)),
    }
}

fn missing(field: &str) -> EvalError {
    EvalErrorKind::NoSuchKey(field.to_owned()).into()
}

/// The error of a value of another type than is needed.
pub(crate) fn mismatch(expected: &str, found: &Value) -> EvalError {
    EvalErrorKind::Mismatch { expected: expected.to_owned(), found: found.type_of().to_string() }.into()
}

/// A field that is null where the schema wants a value is absent, as the API server stores it.
fn present(value: Value, ty: &Type) -> Option<Result<Value, EvalError>> {
    match (&value, ty) {
        (Value::Null, Type::Any | Type::Null | Type::Never) => Some(Ok(value)),
        (Value::Null, _) => None,
        _ => Some(coerce(value, ty)),
    }
}

/// A value of JSON as the type that the schema gives it: times are strings there, and doubles may lack a fraction.
///
/// # Errors
/// When a string is no time.
pub fn coerce(value: Value, ty: &Type) -> Result<Value, EvalError> {
    match (ty, &value) {
        (Type::Timestamp, Value::String(s)) => crate::time::parse_timestamp(s).map(Value::Timestamp),
        (Type::Duration, Value::String(s)) => crate::time::parse_duration(s).map(Value::Duration),
        #[expect(clippy::cast_precision_loss, reason = "the schema says that it is a double")]
        (Type::Double, Value::Int(i)) => Ok(Value::Double(*i as f64)),
        _ => Ok(value),
    }
}

fn find(base: &Value, field: &str) -> Result<Option<Value>, EvalError> {
    match base {
        Value::Map(map) => Ok(map.field(field)),
        Value::Object(object) => object_field(object, &[field]),
        Value::Reference(reference) => Ok(reference_field(reference, field)),
        Value::Owner(owner) => Ok(owner_field(owner, field)),
        Value::HostClaim(claim) => Ok(match field {
            "class" => Some(Value::String(claim.class.clone())),
            "host" => Some(Value::String(claim.host.clone())),
            "path" => Some(Value::String(claim.path.clone())),
            _ => None,
        }),
        other => Err(mismatch("a map or an object", other)),
    }
}

fn reference_field(reference: &Reference, field: &str) -> Option<Value> {
    Some(match field {
        "kind" => Value::String(reference.target.kind.kind.clone()),
        "group" => Value::String(reference.target.kind.group.clone()),
        "namespace" => Value::String(reference.target.ns.clone()),
        "name" => Value::String(reference.target.name.clone()),
        "optional" => Value::Bool(reference.optional),
        "needed" => Value::Bool(reference.needed),
        "write" => Value::Bool(reference.write),
        "via" => Value::str(reference.via),
        "ports" => Value::from(&Val::list(reference.ports.iter().cloned().map(Val::Str).collect())),
        "keys" => Value::from(&Val::list(reference.keys.iter().cloned().map(Val::Str).collect())),
        _ => return None,
    })
}

fn owner_field(owner: &Owner, field: &str) -> Option<Value> {
    Some(match field {
        "kind" => Value::String(owner.kind.kind.clone()),
        "group" => Value::String(owner.kind.group.clone()),
        "name" => Value::String(owner.name.clone()),
        "uid" => Value::String(owner.uid.clone()),
        "controller" => Value::Bool(owner.controller),
        _ => return None,
    })
}
