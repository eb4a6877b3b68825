//! Which annotations the verdict of an invariant may depend on: a write that differs in others alone changes nothing.

use std::collections::BTreeSet;

use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;
use suture_specs::eval::{Env, eval};
use suture_specs::functions::{Class, Func};
use suture_specs::ir::{Expr, Node, Type};
use suture_specs::value::Value;

use crate::symmetry::holds_objects;

/// Annotations that are read. More than what is read may be in it, never less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Annotations {
    /// Any.
    All,
    /// Those with these keys.
    Named(BTreeSet<Str>),
}

/// Pure functions of objects that look at one part of them, none of them at all annotations.
const PARTIAL: [Func; 17] = [
    Func::Size,
    Func::Live,
    Func::Terminating,
    Func::Taken,
    Func::Ready,
    Func::ObjectName,
    Func::Owners,
    Func::Label,
    Func::Annotation,
    Func::ServedVersions,
    Func::OptionalOf,
    Func::OptionalNone,
    Func::HasValue,
    Func::OptionalValue,
    Func::OrOptional,
    Func::OrValue,
    Func::Flatten,
];

impl Annotations {
    /// Those that an invariant reads, those that effects read aside ([`suture_model::annotations`]).
    pub fn of(compiled: &CompiledInvariant) -> Self {
        let mut read = Self::Named(BTreeSet::new());
        let mut env = Env::without_worlds();
        env.bind("params", Ok(Value::from(&compiled.params)));
        // whole metadata, and how often no more than a field of it was asked for
        let (mut whole, mut fields) = (0, 0);
        let clauses = compiled.require.iter().map(|c| &c.expression);
        let lets = compiled.lets.iter().map(|(_, e)| e);
        for expr in lets.chain(clauses).chain(&compiled.for_each.where_).chain(&compiled.degree) {
            expr.walk(&mut |part| {
                whole += usize::from(is_metadata(part));
                fields += usize::from(base_of(part).is_some_and(is_metadata));
                read.add(part, &env);
            });
        }
        if whole == fields { read } else { Self::All }
    }

    /// These and others.
    #[must_use]
    pub fn and(self, others: impl IntoIterator<Item = Str>) -> Self {
        match self {
            Self::All => Self::All,
            Self::Named(mut keys) => {
                keys.extend(others);
                Self::Named(keys)
            }
        }
    }

    /// These and those.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match other {
            Self::All => Self::All,
            Self::Named(keys) => self.and(keys),
        }
    }

    /// Whether one with this key may be read.
    pub fn contains(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(keys) => keys.contains(key),
        }
    }

    /// Adds what a part of an expression reads, its own parts aside.
    fn add(&mut self, part: &Expr, env: &Env<'_>) {
        let read = match &part.node {
            Node::Call { func: Func::Annotation, args } => {
                let key = args.get(1).and_then(|key| eval(key, env).ok());
                let Some(Value::String(key)) = key else {
                    *self = Self::All;
                    return;
                };
                if let Self::Named(keys) = self {
                    keys.insert(key);
                }
                false
            }
            // compares, prints or looks into whole objects
            Node::Call { func, args } => {
                func.class() == Class::Pure && !PARTIAL.contains(func) && args.iter().any(|a| holds_objects(&a.ty))
            }
            Node::Comprehension { range, .. } => matches!(range.ty, Type::Object(_)),
            Node::Index { base, .. } | Node::OptIndex { base, .. } => matches!(base.ty, Type::Object(_)),
            Node::Const(Value::String(text)) => matches!(&**text, "metadata" | "annotations"),
            Node::Select { field, .. } | Node::HasField { field, .. } | Node::OptSelect { field, .. } => {
                &**field == "annotations"
            }
            _ => false,
        };
        if read {
            *self = Self::All;
        }
    }
}

/// Whether an expression may be the whole metadata of an object.
fn is_metadata(expr: &Expr) -> bool {
    matches!(&expr.node, Node::Select { field, .. } | Node::OptSelect { field, .. } if &**field == "metadata")
}

/// What an expression is a field of.
fn base_of(expr: &Expr) -> Option<&Expr> {
    match &expr.node {
        Node::Select { base, .. } | Node::HasField { base, .. } | Node::OptSelect { base, .. } => Some(base),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
