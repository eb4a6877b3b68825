//! The functions that depend on their arguments only: arithmetic, comparison, strings, lists, conversions, time,
//! optionals, and what an object says about itself.

use std::cmp::Ordering;
use std::sync::Arc;

use suture_model::fields;
use suture_model::navigate;
use suture_model::object::{HIDDEN, Object};
use suture_model::selector::Selector;
use suture_model::value::{Str, Val};

use super::Func;
use super::answer::{Answer, no_overload};
use crate::error::{EvalError, EvalErrorKind};
use crate::members::Members;
use crate::schedule;
use crate::strings;
use crate::time::{self, Field};
use crate::value::{ListValue, MapValue, Value, compare_numbers};

mod arithmetic;
mod convert;

/// Calls a function of class [`Pure`](super::Class::Pure).
///
/// # Errors
/// As CEL has it: an argument of a wrong type, overflow, a value out of range; also when the function is not pure.
pub fn call_pure(func: Func, args: &[Value]) -> Answer {
    let compared = match func {
        Func::Eq | Func::Ne => args,
        // of a map the keys are
        Func::In if !matches!(args, [_, Value::Map(_)]) => args,
        _ => &[],
    };
    if compared.iter().any(has_hidden) {
        return Err(EvalErrorKind::Hidden.into());
    }
    called(func, args).and_then(kept)
}

/// A value that an expression may go on with: one of a Secret or ConfigMap is none.
///
/// # Errors
/// When it is such a value.
pub fn kept(value: Value) -> Answer {
    match &value {
        Value::String(text) if **text == *HIDDEN => Err(EvalErrorKind::Hidden.into()),
        _ => Ok(value),
    }
}

/// Whether a value of a Secret or ConfigMap is it, or is in it.
fn has_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => **text == *HIDDEN,
        Value::Map(MapValue::Json(map)) => map.iter().any(|(_, val)| has_hidden_val(val)),
        Value::Map(MapValue::Values(map)) => map.values().any(has_hidden),
        Value::List(ListValue::Json(items)) => items.iter().any(has_hidden_val),
        Value::List(ListValue::Values(items)) => items.iter().any(has_hidden),
        Value::Optional(Some(value)) => has_hidden(value),
        _ => false,
    }
}

/// The same of JSON.
fn has_hidden_val(val: &Val) -> bool {
    match val {
        Val::Str(text) => **text == *HIDDEN,
        Val::List(items) => items.iter().any(has_hidden_val),
        Val::Map(map) => map.iter().any(|(_, val)| has_hidden_val(val)),
        _ => false,
    }
}

fn called(func: Func, args: &[Value]) -> Answer {
    match func {
        Func::Add | Func::Sub | Func::Mul | Func::Div | Func::Rem | Func::Neg | Func::Abs => {
            arithmetic::call(func, args)
        }
        Func::Eq | Func::Ne | Func::Lt | Func::Le | Func::Gt | Func::Ge | Func::In => comparison(func, args),
        Func::Contains
        | Func::StartsWith
        | Func::EndsWith
        | Func::Matches
        | Func::CharAt
        | Func::IndexOf
        | Func::LastIndexOf
        | Func::LowerAscii
        | Func::UpperAscii
        | Func::Replace
        | Func::Split
        | Func::Substring
        | Func::DueWithin
        | Func::Trim => string(func, args),
        Func::Size
        | Func::Reverse
        | Func::Join
        | Func::Sum
        | Func::Min
        | Func::Max
        | Func::Distinct
        | Func::Without
        | Func::Flatten
        | Func::Sort
        | Func::Slice
        | Func::Greatest
        | Func::Least => list(func, args),
        Func::ToInt
        | Func::ToUInt
        | Func::ToDouble
        | Func::ToString
        | Func::ToBytes
        | Func::ToBool
        | Func::ToTimestamp
        | Func::ToDuration
        | Func::TypeOf => convert::call(func, args),
        Func::GetFullYear
        | Func::GetMonth
        | Func::GetDate
        | Func::GetDayOfMonth
        | Func::GetDayOfWeek
        | Func::GetDayOfYear
        | Func::GetHours
        | Func::GetMinutes
        | Func::GetSeconds
        | Func::GetMilliseconds => time_field(func, args),
        Func::OptionalOf
        | Func::OptionalNone
        | Func::OptionalOfNonZero
        | Func::HasValue
        | Func::OptionalValue
        | Func::OrOptional
        | Func::OrValue => optional(func, args),
        Func::Floor => floor(args),
        Func::Amount => amount(args),
        Func::Live
        | Func::Terminating
        | Func::Taken
        | Func::Ready
        | Func::Owners
        | Func::ObjectName
        | Func::Label
        | Func::IsSelectedBy
        | Func::Annotation
        | Func::Surge
        | Func::ServedVersions => object(func, args),
        other => Err(EvalErrorKind::NoWorld(other.name()).into()),
    }
}

fn comparison(func: Func, args: &[Value]) -> Answer {
    let [a, b] = args else { return Err(no_overload(func, args)) };
    let holds = match func {
        Func::Eq => a == b,
        Func::Ne => a != b,
        Func::In => return contained(a, b).map(Value::Bool).ok_or_else(|| no_overload(func, args)),
        _ => {
            let order = order(a, b).ok_or_else(|| no_overload(func, args))?;
            match func {
                Func::Lt => order == Some(Ordering::Less),
                Func::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                Func::Gt => order == Some(Ordering::Greater),
                _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            }
        }
    };
    Ok(Value::Bool(holds))
}

fn contained(item: &Value, container: &Value) -> Option<bool> {
    match container {
        Value::List(items) => Some(items.iter().any(|i| i == *item)),
        Value::Map(map) => Some(map.get(item).is_some()),
        _ => None,
    }
}

/// How two values compare: `None` when their types have no order, `Some(None)` with NaN.
fn order(a: &Value, b: &Value) -> Option<Option<Ordering>> {
    Some(match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) | (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        (Value::Int(_) | Value::UInt(_) | Value::Double(_), Value::Int(_) | Value::UInt(_) | Value::Double(_)) => {
            compare_numbers(a, b)
        }
        _ => return None,
    })
}

fn string(func: Func, args: &[Value]) -> Answer {
    use Value::{Int, String};
    let bool = |b: bool| Ok(Value::Bool(b));
    let text = |s: std::string::String| Ok(Value::str(s));
    match (func, args) {
        (Func::Contains, [String(s), String(t)]) => bool(s.contains(&**t)),
        (Func::StartsWith, [String(s), String(t)]) => bool(s.starts_with(&**t)),
        (Func::EndsWith, [String(s), String(t)]) => bool(s.ends_with(&**t)),
        (Func::Matches, [String(s), String(t)]) => strings::matches(s, t).map(Value::Bool),
        (Func::CharAt, [String(s), Int(at)]) => strings::char_at(s, *at).and_then(text),
        (Func::IndexOf, [String(s), String(t)]) => strings::index_of(s, t, 0).map(Int),
        (Func::IndexOf, [String(s), String(t), Int(from)]) => strings::index_of(s, t, *from).map(Int),
        (Func::LastIndexOf, [String(s), String(t)]) => strings::last_index_of(s, t, None).map(Int),
        (Func::LastIndexOf, [String(s), String(t), Int(upto)]) => strings::last_index_of(s, t, Some(*upto)).map(Int),
        (Func::LowerAscii, [String(s)]) => text(s.to_ascii_lowercase()),
        (Func::UpperAscii, [String(s)]) => text(s.to_ascii_uppercase()),
        (Func::Replace, [String(s), String(from), String(to)]) => text(strings::replace(s, from, to, -1)),
        (Func::Replace, [String(s), String(from), String(to), Int(n)]) => text(strings::replace(s, from, to, *n)),
        (Func::Split, [String(s), String(by)]) => Ok(texts(strings::split(s, by, -1))),
        (Func::Split, [String(s), String(by), Int(n)]) => Ok(texts(strings::split(s, by, *n))),
        (Func::Substring, [String(s), Int(start)]) => strings::substring(s, *start, None).and_then(text),
        (Func::Substring, [String(s), Int(start), Int(end)]) => {
            strings::substring(s, *start, Some(*end)).and_then(text)
        }
        (Func::DueWithin, [String(s), Value::Duration(time)]) => schedule::due_within(s, *time).map(Int),
        (Func::Trim, [String(s)]) => text(s.trim().to_owned()),
        _ => Err(no_overload(func, args)),
    }
}

fn texts(parts: Vec<String>) -> Value {
    Value::list(parts.into_iter().map(Value::str).collect())
}

fn list(func: Func, args: &[Value]) -> Answer {
    match (func, args) {
        (Func::Size, [only]) => size(only).map(Value::Int).ok_or_else(|| no_overload(func, args)),
        (Func::Reverse, [Value::String(s)]) => Ok(Value::str(s.chars().rev().collect::<String>())),
        (Func::Reverse, [Value::List(items)]) => {
            let mut items: Vec<Value> = items.iter().collect();
            items.reverse();
            Ok(Value::list(items))
        }
        (Func::Join, [Value::List(items)]) => join(items, "").ok_or_else(|| no_overload(func, args)),
        (Func::Join, [Value::List(items), Value::String(by)]) => join(items, by).ok_or_else(|| no_overload(func, args)),
        (Func::Sum, [Value::List(items)]) => {
            let mut items = items.iter();
            let Some(first) = items.next() else { return Ok(Value::Int(0)) };
            if !matches!(first, Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Duration(_)) {
                return Err(no_overload(func, args));
            }
            items.try_fold(first, |sum, item| arithmetic::call(Func::Add, &[sum, item]))
        }
        (Func::Min | Func::Least, [Value::List(items)]) => extreme(func, items.iter(), Ordering::Less, args),
        (Func::Max | Func::Greatest, [Value::List(items)]) => extreme(func, items.iter(), Ordering::Greater, args),
        (Func::Least, numbers) => extreme(func, numbers.iter().cloned(), Ordering::Less, args),
        (Func::Greatest, numbers) => extreme(func, numbers.iter().cloned(), Ordering::Greater, args),
        (Func::Distinct, [Value::List(items)]) => {
            let mut known = Members::default();
            Ok(Value::list(items.iter().filter(|item| known.add(item, ())).collect()))
        }
        (Func::Without, [Value::List(items), Value::List(others)]) => {
            let others: Members<()> = others.iter().collect();
            Ok(Value::list(items.iter().filter(|item| others.get(item).is_none()).collect()))
        }
        (Func::Flatten, [Value::List(lists)]) => {
            let mut out = Vec::new();
            for inner in lists.iter() {
                let Value::List(items) = inner else { return Err(no_overload(func, args)) };
                out.extend(items.iter());
            }
            Ok(Value::list(out))
        }
        (Func::Sort, [Value::List(items)]) => sort(items).ok_or_else(|| no_overload(func, args)),
        (Func::Slice, [Value::List(items), Value::Int(start), Value::Int(end)]) => {
            match (usize::try_from(*start), usize::try_from(*end)) {
                (Ok(from), Ok(to)) if from <= to && to <= items.len() => {
                    Ok(Value::list(items.iter().skip(from).take(to - from).collect()))
                }
                _ => {
                    Err(EvalError::invalid(format!("slice from {start} to {end} is no range of {} items", items.len())))
                }
            }
        }
        _ => Err(no_overload(func, args)),
    }
}

fn size(value: &Value) -> Option<i64> {
    let size = match value {
        Value::String(s) => s.chars().count(),
        Value::Bytes(b) => b.len(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.len(),
        _ => return None,
    };
    i64::try_from(size).ok()
}

fn join(items: &ListValue, by: &str) -> Option<Value> {
    let parts: Option<Vec<Str>> = items.iter().map(|i| i.as_str().cloned()).collect();
    Some(Value::str(parts?.join(by)))
}

fn extreme(func: Func, mut items: impl Iterator<Item = Value>, keep: Ordering, args: &[Value]) -> Answer {
    let Some(mut best) = items.next() else {
        return Err(EvalError::invalid(format!("`{func}` of an empty list")));
    };
    order(&best, &best).ok_or_else(|| no_overload(func, args))?;
    for item in items {
        if order(&item, &best).ok_or_else(|| no_overload(func, args))? == Some(keep) {
            best = item;
        }
    }
    Ok(best)
}

fn sort(items: &ListValue) -> Option<Value> {
    let mut items: Vec<Value> = items.iter().collect();
    let first = items.first().cloned();
    if let Some(first) = &first {
        for item in &items {
            order(first, item)?;
        }
    }
    items.sort_by(|a, b| order(a, b).flatten().unwrap_or(Ordering::Equal));
    Some(Value::list(items))
}

fn time_field(func: Func, args: &[Value]) -> Answer {
    let field = match func {
        Func::GetFullYear => Field::Year,
        Func::GetMonth => Field::Month,
        Func::GetDate => Field::Date,
        Func::GetDayOfMonth => Field::DayOfMonth,
        Func::GetDayOfWeek => Field::DayOfWeek,
        Func::GetDayOfYear => Field::DayOfYear,
        Func::GetHours => Field::Hours,
        Func::GetMinutes => Field::Minutes,
        Func::GetSeconds => Field::Seconds,
        _ => Field::Milliseconds,
    };
    match args {
        [Value::Timestamp(t)] => time::timestamp_field(*t, field, None).map(Value::Int),
        [Value::Timestamp(t), Value::String(zone)] => time::timestamp_field(*t, field, Some(zone)).map(Value::Int),
        [Value::Duration(d)] => time::duration_field(*d, field).map(Value::Int),
        _ => Err(no_overload(func, args)),
    }
}

fn optional(func: Func, args: &[Value]) -> Answer {
    match (func, args) {
        (Func::OptionalOf, [value]) => Ok(Value::some(value.clone())),
        (Func::OptionalNone, []) => Ok(Value::none()),
        (Func::OptionalOfNonZero, [value]) => {
            Ok(if is_zero(value) { Value::none() } else { Value::some(value.clone()) })
        }
        (Func::HasValue, [Value::Optional(inner)]) => Ok(Value::Bool(inner.is_some())),
        (Func::OptionalValue, [Value::Optional(Some(value))]) => Ok((**value).clone()),
        (Func::OptionalValue, [Value::Optional(None)]) => Err(EvalErrorKind::NoValue.into()),
        (Func::OrOptional, [Value::Optional(Some(value)), Value::Optional(_)]) => {
            Ok(Value::Optional(Some(value.clone())))
        }
        (Func::OrOptional, [Value::Optional(None), other @ Value::Optional(_)]) => Ok(other.clone()),
        (Func::OrValue, [Value::Optional(Some(value)), _]) => Ok((**value).clone()),
        (Func::OrValue, [Value::Optional(None), other]) => Ok(other.clone()),
        _ => Err(no_overload(func, args)),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null
        | Value::Bool(false)
        | Value::Int(0)
        | Value::UInt(0)
        | Value::Timestamp(0)
        | Value::Duration(0) => true,
        Value::Double(d) => *d == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Bytes(b) => b.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Optional(inner) => inner.is_none(),
        _ => false,
    }
}

/// `floor(2, n)` is 2, `floor('50%', n)` half of n, rounded up.
fn floor(args: &[Value]) -> Answer {
    let [floor, Value::Int(of)] = args else { return Err(no_overload(Func::Floor, args)) };
    if let Some(number) = floor.as_int() {
        return Ok(Value::Int(number));
    }
    let percent = floor.as_str().and_then(|s| s.strip_suffix('%')).and_then(|n| n.trim().parse::<i64>().ok());
    let Some(percent) = percent.filter(|p| (0..=1_000_000).contains(p)) else {
        return Err(EvalError::invalid(format!("`{}` is neither an integer nor a percentage", floor.display())));
    };
    let exact = i128::from(percent) * i128::from((*of).max(0));
    let rounded_up = (exact + 99).div_euclid(100);
    i64::try_from(rounded_up).map(Value::Int).map_err(|_| EvalErrorKind::Overflow("floor").into())
}

/// A quantity of a resource.
fn amount(args: &[Value]) -> Answer {
    let [quantity, Value::String(resource)] = args else { return Err(no_overload(Func::Amount, args)) };
    let amount = quantity.to_val().and_then(|val| fields::amount(&val, fields::quota_resource(resource)));
    let invalid = || EvalError::invalid(format!("`{}` is no quantity", quantity.display()));
    amount.map(Value::Int).ok_or_else(invalid)
}

fn object(func: Func, args: &[Value]) -> Answer {
    if let (Func::IsSelectedBy, [labels @ Value::Map(_), selector]) = (func, args) {
        let known = label_selector(selector).zip(labels.to_val());
        let (selector, labels) = known.ok_or_else(|| no_overload(func, args))?;
        return Ok(Value::Bool(selector.matches(&labels)));
    }
    let [Value::Object(o), rest @ ..] = args else { return Err(no_overload(func, args)) };
    let o: &Arc<Object> = o;
    match (func, rest) {
        (Func::Live, []) => Ok(Value::Bool(o.live())),
        (Func::Terminating, []) => Ok(Value::Bool(o.terminating())),
        (Func::Taken, []) => Ok(Value::Bool(o.in_deletion_closure)),
        (Func::Ready, []) => Ok(Value::Bool(o.ready())),
        (Func::ObjectName, []) => Ok(Value::str(o.key.to_string())),
        (Func::Owners, []) => {
            Ok(Value::list(o.owners().iter().map(|owner| Value::Owner(Arc::new(owner.clone()))).collect()))
        }
        (Func::Label, [Value::String(key)]) => Ok(Value::String(o.label(key).cloned().unwrap_or_else(|| "".into()))),
        (Func::IsSelectedBy, [selector]) => {
            let selector = label_selector(selector).ok_or_else(|| no_overload(func, args))?;
            Ok(Value::Bool(selector.matches(o.labels())))
        }
        (Func::Annotation, [Value::String(key)]) => {
            Ok(Value::String(o.annotation(key).cloned().unwrap_or_else(|| "".into())))
        }
        (Func::Surge, [Value::Int(pods)]) => Ok(Value::Int(navigate::surge(o, *pods))),
        (Func::ServedVersions, []) => {
            Ok(Value::list(fields::served_versions(o).into_iter().map(Value::String).collect()))
        }
        _ => Err(no_overload(func, args)),
    }
}

/// A LabelSelector; a map without `matchLabels` and `matchExpressions` is taken as equality pairs. `null` selects nothing.
pub fn label_selector(value: &Value) -> Option<Selector> {
    let val = value.to_val()?;
    match &val {
        Val::Map(map)
            if !map.is_empty() && val.get("matchLabels").is_none() && val.get("matchExpressions").is_none() =>
        {
            Some(Selector::from_pairs(&val))
        }
        Val::Map(_) => Some(Selector::from_label_selector(&val)),
        _ => None,
    }
}
