//! Conversions between types; one that would lose its value fails.

use crate::error::EvalError;
use crate::functions::Func;
use crate::functions::answer::{Answer, no_overload};
use crate::time;
use crate::value::Value;

pub(super) fn call(func: Func, args: &[Value]) -> Answer {
    let [value] = args else { return Err(no_overload(func, args)) };
    let converted = match func {
        Func::ToInt => to_int(value),
        Func::ToUInt => to_uint(value),
        Func::ToDouble => to_double(value),
        Func::ToString => to_string(value),
        Func::ToBytes => match value {
            Value::Bytes(_) => Some(Ok(value.clone())),
            Value::String(s) => Some(Ok(Value::Bytes(s.as_bytes().into()))),
            _ => None,
        },
        Func::ToBool => to_bool(value),
        Func::ToTimestamp => match value {
            Value::Timestamp(_) => Some(Ok(value.clone())),
            Value::String(s) => Some(time::parse_timestamp(s).map(Value::Timestamp)),
            Value::Int(i) => Some(time::from_unix_seconds(*i).map(Value::Timestamp)),
            _ => None,
        },
        Func::ToDuration => match value {
            Value::Duration(_) => Some(Ok(value.clone())),
            Value::String(s) => Some(time::parse_duration(s).map(Value::Duration)),
            _ => None,
        },
        Func::TypeOf => Some(Ok(Value::Type(value.type_of()))),
        _ => None,
    };
    converted.unwrap_or_else(|| Err(no_overload(func, args)))
}

fn unfit(value: &Value, target: &str) -> EvalError {
    EvalError::invalid(format!("`{}` is no {target}", value.display()))
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
fn to_int(value: &Value) -> Option<Answer> {
    let bad = || unfit(value, "int");
    Some(match value {
        Value::Int(_) => Ok(value.clone()),
        Value::UInt(u) => i64::try_from(*u).map(Value::Int).map_err(|_| bad()),
        // both ends of the range are excluded, as in cel-spec: the nearest doubles lie outside
        Value::Double(d) if *d > -9_223_372_036_854_775_808.0 && *d < 9_223_372_036_854_775_808.0 => {
            Ok(Value::Int(*d as i64))
        }
        Value::Double(_) => Err(bad()),
        Value::String(s) => s.parse().map(Value::Int).map_err(|_| bad()),
        Value::Timestamp(t) => time::unix_seconds(*t).map(Value::Int),
        _ => return None,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
fn to_uint(value: &Value) -> Option<Answer> {
    let bad = || unfit(value, "uint");
    Some(match value {
        Value::UInt(_) => Ok(value.clone()),
        Value::Int(i) => u64::try_from(*i).map(Value::UInt).map_err(|_| bad()),
        Value::Double(d) if *d >= 0.0 && *d < 18_446_744_073_709_551_616.0 => Ok(Value::UInt(*d as u64)),
        Value::Double(_) => Err(bad()),
        Value::String(s) => s.parse().map(Value::UInt).map_err(|_| bad()),
        _ => return None,
    })
}

#[expect(clippy::cast_precision_loss, reason = "CEL rounds to the nearest double")]
fn to_double(value: &Value) -> Option<Answer> {
    Some(match value {
        Value::Double(_) => Ok(value.clone()),
        Value::Int(i) => Ok(Value::Double(*i as f64)),
        Value::UInt(u) => Ok(Value::Double(*u as f64)),
        Value::String(s) => s.parse().map(Value::Double).map_err(|_| unfit(value, "double")),
        _ => return None,
    })
}

fn to_string(value: &Value) -> Option<Answer> {
    Some(match value {
        Value::String(_) => Ok(value.clone()),
        Value::Bytes(b) => std::str::from_utf8(b).map(Value::str).map_err(|_| EvalError::invalid("bytes are no UTF-8")),
        Value::Bool(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Double(_)
        | Value::Timestamp(_)
        | Value::Duration(_) => Ok(Value::str(value.display())),
        _ => return None,
    })
}

fn to_bool(value: &Value) -> Option<Answer> {
    match value {
        Value::Bool(_) => Some(Ok(value.clone())),
        Value::String(s) => Some(match &**s {
            "true" | "TRUE" | "True" | "t" | "T" | "1" => Ok(Value::Bool(true)),
            "false" | "FALSE" | "False" | "f" | "F" | "0" => Ok(Value::Bool(false)),
            _ => Err(unfit(value, "bool")),
        }),
        _ => None,
    }
}
