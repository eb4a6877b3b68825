//! What an invariant of its own and a template have in common: their expressions, compiled in one scope.

use std::collections::BTreeMap;

use suture_model::futures::Moment;
use suture_model::value::Str;

use super::instances::{self, ForEach};
use super::lets;
use super::undecidable;
use crate::cel::{self, Scope};
use crate::ir::{Expr, Type};
use crate::spec::{Cel, Origin, Requirement, SpecError};

/// One clause.
#[derive(Clone, Debug)]
pub struct Clause {
    /// What must be true.
    pub expression: Expr,
    /// What to say when it is not: an expression.
    pub message: Option<Expr>,
    /// What to say when it is not: a text.
    pub text: Option<Str>,
    /// The source of `expression`.
    pub source: Str,
    /// Whether it is required also where `where` of `forEach` is false.
    pub beyond_where: bool,
}

/// The parts that an invariant and a template share.
pub(super) struct Source<'s> {
    pub origin: &'s Origin,
    /// The one namespace that it may read.
    pub namespace: Option<Str>,
    pub for_each: &'s crate::spec::ForEach,
    pub hold: Moment,
    pub lets: Option<&'s BTreeMap<String, Cel>>,
    pub require: &'s [Requirement],
    pub degree: Option<&'s Cel>,
    pub params: BTreeMap<Str, Type>,
}

/// What a source compiles to.
pub(super) struct Parts {
    pub for_each: ForEach,
    /// The type of its variable.
    pub var_type: Type,
    pub lets: Vec<(Str, Expr)>,
    pub require: Vec<Clause>,
    pub degree: Option<Expr>,
}

pub(super) fn compile_source(source: &Source) -> Result<Parts, Vec<SpecError>> {
    let origin = source.origin;
    let (mut for_each, var_type) = instances::for_each(source.for_each, origin)?;
    if source.namespace.is_some() && for_each.nowhere() {
        let error = SpecError::new(origin, "spec.forEach", "objects of this kind lie in no namespace");
        return Err(vec![error.helped("a NamespacedInvariant judges those of its own: write an Invariant")]);
    }
    // a scope without parameters declares none: any use of one is an error
    let global = Scope::invariant(source.hold == Moment::After).with_params(source.params.clone());
    let global = global.within(source.namespace.clone());
    let scope = global.with(&for_each.var, var_type.clone());
    let mut errors = Vec::new();
    if let Some(text) = &source.for_each.where_ {
        for_each.where_ = keep(strict(text, &scope, &Type::Bool, origin, "spec.forEach.where"), &mut errors);
    }
    let (lets, scope) = match lets::compile(source.lets, scope, &for_each.var, origin) {
        Ok(found) => found,
        Err(more) => {
            // what uses a name that has no type would only repeat the error
            errors.extend(more);
            return Err(errors);
        }
    };
    let mut require = Vec::new();
    for (i, clause) in source.require.iter().enumerate() {
        let path = format!("spec.require[{i}]");
        let at = format!("{path}.expression");
        let Some(expression) = keep(strict(&clause.expression, &scope, &Type::Bool, origin, &at), &mut errors) else {
            continue;
        };
        let message = clause.message_expression.as_ref().and_then(|text| {
            keep(strict(text, &scope, &Type::String, origin, &format!("{path}.messageExpression")), &mut errors)
        });
        let text = clause.message.as_deref().map(Str::from);
        require.push(Clause {
            expression,
            message,
            text,
            source: clause.expression.0.as_str().into(),
            beyond_where: false,
        });
    }
    let degree =
        source.degree.and_then(|text| keep(strict(text, &scope, &Type::Int, origin, "spec.degree"), &mut errors));
    if errors.is_empty() {
        let clauses = (0..).zip(source.require.iter().zip(&require));
        let judged = clauses
            .map(|(i, (text, clause))| (format!("spec.require[{i}].expression"), &text.expression, &clause.expression));
        let degree = source.degree.zip(degree.as_ref()).map(|(text, expr)| ("spec.degree".to_owned(), text, expr));
        let judged: Vec<(String, &Cel, &Expr)> = judged.chain(degree).collect();
        errors.extend(undecidable::errors(origin, source.lets, &lets, &judged));
    }
    if errors.is_empty() { Ok(Parts { for_each, var_type, lets, require, degree }) } else { Err(errors) }
}

pub(super) fn keep<T>(result: Result<T, SpecError>, errors: &mut Vec<SpecError>) -> Option<T> {
    result.map_err(|error| errors.push(error)).ok()
}

/// Compiles an expression that must be of a type, and be known to be.
pub(super) fn strict(
    text: &Cel,
    scope: &Scope,
    expected: &Type,
    origin: &Origin,
    path: &str,
) -> Result<Expr, SpecError> {
    let expr = cel::compile(&text.0, scope, Some(expected)).map_err(|e| SpecError::expression(origin, path, e))?;
    if expr.ty == *expected {
        return Ok(expr);
    }
    let message = format!("expected {expected}, found a value of unknown type");
    Err(SpecError::new(origin, path, message).helped(format!("write `{expected}(..)` around it")))
}
