//! Arithmetic on numbers, and what `+` and `-` mean on strings, bytes, lists and times.

use crate::error::{EvalError, EvalErrorKind};
use crate::functions::Func;
use crate::functions::answer::{Answer, no_overload};
use crate::time;
use crate::value::Value;

pub(super) fn call(func: Func, args: &[Value]) -> Answer {
    match args {
        [Value::Int(a), Value::Int(b)] => ints(func, *a, *b).map(Value::Int),
        [Value::UInt(a), Value::UInt(b)] => uints(func, *a, *b).map(Value::UInt),
        [Value::Double(a), Value::Double(b)] => doubles(func, *a, *b).ok_or_else(|| no_overload(func, args)),
        [Value::Int(a)] if func == Func::Neg => a.checked_neg().map(Value::Int).ok_or_else(|| overflow("-")),
        [Value::Double(a)] if func == Func::Neg => Ok(Value::Double(-a)),
        [Value::Int(a)] if func == Func::Abs => a.checked_abs().map(Value::Int).ok_or_else(|| overflow("math.abs")),
        [Value::Double(a)] if func == Func::Abs => Ok(Value::Double(a.abs())),
        [a, b] if func == Func::Add => add(a, b).unwrap_or_else(|| Err(no_overload(func, args))),
        [a, b] if func == Func::Sub => subtract(a, b).unwrap_or_else(|| Err(no_overload(func, args))),
        _ => Err(no_overload(func, args)),
    }
}

fn overflow(operator: &'static str) -> EvalError {
    EvalErrorKind::Overflow(operator).into()
}

fn ints(func: Func, a: i64, b: i64) -> Result<i64, EvalError> {
    let result = match func {
        Func::Add => a.checked_add(b),
        Func::Sub => a.checked_sub(b),
        Func::Mul => a.checked_mul(b),
        Func::Div | Func::Rem if b == 0 => return Err(EvalErrorKind::DivisionByZero.into()),
        Func::Div => a.checked_div(b),
        Func::Rem => a.checked_rem(b),
        _ => return Err(no_overload(func, &[Value::Int(a), Value::Int(b)])),
    };
    result.ok_or_else(|| overflow(func.name()))
}

fn uints(func: Func, a: u64, b: u64) -> Result<u64, EvalError> {
    let result = match func {
        Func::Add => a.checked_add(b),
        Func::Sub => a.checked_sub(b),
        Func::Mul => a.checked_mul(b),
        Func::Div | Func::Rem if b == 0 => return Err(EvalErrorKind::DivisionByZero.into()),
        Func::Div => a.checked_div(b),
        Func::Rem => a.checked_rem(b),
        _ => return Err(no_overload(func, &[Value::UInt(a), Value::UInt(b)])),
    };
    result.ok_or_else(|| overflow(func.name()))
}

fn doubles(func: Func, a: f64, b: f64) -> Option<Value> {
    match func {
        Func::Add => Some(Value::Double(a + b)),
        Func::Sub => Some(Value::Double(a - b)),
        Func::Mul => Some(Value::Double(a * b)),
        Func::Div => Some(Value::Double(a / b)),
        _ => None,
    }
}

fn add(a: &Value, b: &Value) -> Option<Answer> {
    Some(match (a, b) {
        (Value::String(a), Value::String(b)) => Ok(Value::str([&**a, &**b].concat())),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&**a, &**b].concat().into())),
        (Value::List(a), Value::List(b)) => Ok(Value::list(a.iter().chain(b.iter()).collect())),
        (Value::Timestamp(a), Value::Duration(b)) | (Value::Duration(b), Value::Timestamp(a)) => {
            time::timestamp(a + b).map(Value::Timestamp)
        }
        (Value::Duration(a), Value::Duration(b)) => time::duration(a + b).map(Value::Duration),
        _ => return None,
    })
}

fn subtract(a: &Value, b: &Value) -> Option<Answer> {
    Some(match (a, b) {
        (Value::Timestamp(a), Value::Timestamp(b)) => time::duration(a - b).map(Value::Duration),
        (Value::Timestamp(a), Value::Duration(b)) => time::timestamp(a - b).map(Value::Timestamp),
        (Value::Duration(a), Value::Duration(b)) => time::duration(a - b).map(Value::Duration),
        _ => return None,
    })
}
