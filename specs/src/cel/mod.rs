//! The one place that knows `cel-core`: source text to typed IR. `cel-core` parses (macros left alone); the types are
//! found here, by a strict pass.
//!
//! `cel-core`'s own type checker is an oracle in tests and no part of the pipeline: on a value of unknown type it takes
//! the last overload that fits, gives the empty list an unknown type, and has no place for did-you-mean.
//!
//! | stage | file | refuses |
//! |---|---|---|
//! | guard | `guard.rs` | what is too long, too deep, or has too many operators, before any parser sees it |
//! | parse | `cel-core` | what is no CEL |
//! | lower | `lower.rs`, `macros.rs`, `calls.rs` | what has no type; nothing is `dyn`, both sides of `==`, `in` and `?:` unify |
//! | confine | `confine.rs` | what a NamespacedInvariant may not read |

mod calls;
mod confine;
mod error;
mod guard;
mod lower;
mod macros;
mod names;
#[cfg(test)]
mod oracle;
mod schema;
mod scope;

pub use error::CelError;
pub use guard::{LENGTH_BYTES_MAX, NESTING_MAX, OPERATORS_MAX};
pub use lower::TREE_DEPTH_MAX;
pub use names::free_names;
pub use schema::{field_type, fields_of, schema_version};
pub use scope::{RESERVED, Scope};

use crate::ir::{Expr, Type};
use error::Reporter;

/// Compiles an expression in a scope; `expected` is the type that it must have (JSON without schema fits any).
///
/// # Errors
/// When it is no CEL, or has no type, or another one; the error is a diagnostic with the place, a reason and help.
pub fn compile(source: &str, scope: &Scope, expected: Option<&Type>) -> Result<Expr, CelError> {
    let report = Reporter::new(source);
    let tree = parse(source, &report)?;
    let expr = lower::Lowering::new(scope, &report).expr(&tree)?;
    match expected {
        Some(expected) if expr.ty != Type::Any && expected.join(&expr.ty).as_ref() != Some(expected) => Err(report
            .error(
                format!("expected {expected}, found {}", expr.ty),
                expr.span,
                format!("this is of type {}", expr.ty),
                None,
            )),
        _ => Ok(expr),
    }
}

fn parse(source: &str, report: &Reporter) -> Result<cel_core::SpannedExpr, CelError> {
    guard::check(source, report)?;
    let options = cel_core::parser::ParseOptions::without_macros();
    let parsed = cel_core::parser::parse_with_options(source, options);
    if let Some(failure) = parsed.errors.first() {
        return Err(report.syntax(&failure.message, &failure.span));
    }
    parsed.ast.ok_or_else(|| report.syntax("unexpected end of input", &(source.len()..source.len())))
}
