//! What a function answers: a value, or the error of arguments that it does not take.

use super::Func;
use crate::error::{EvalError, EvalErrorKind};
use crate::value::Value;

/// What an expression or a function has as its value.
pub(crate) type Answer = Result<Value, EvalError>;

/// The error of a function on arguments that it does not take.
pub(crate) fn no_overload(func: Func, args: &[Value]) -> EvalError {
    let types: Vec<String> = args.iter().map(|arg| arg.type_of().to_string()).collect();
    EvalErrorKind::NoSuchOverload { function: func.name(), types: types.join(", ") }.into()
}
