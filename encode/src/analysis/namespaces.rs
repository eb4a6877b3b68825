//! What is about Namespaces only: their name is the namespace that they are.

use suture_specs::compile::{CompiledInvariant, Kinds};
use suture_specs::functions::Comparison;
use suture_specs::ir::{Expr, Node};
use suture_specs::value::Value;

/// Whether all instances are Namespaces.
pub(super) fn has_namespaces_only(compiled: &CompiledInvariant) -> bool {
    let for_each = &compiled.for_each;
    let is_namespace =
        |kinds: &Kinds| matches!(kinds, Kinds::Kind(kind) if kind.resolve().is_some_and(|k| k.is("Namespace")));
    for_each.kinds.iter().all(is_namespace)
        || for_each.where_.as_ref().is_some_and(|expr| asks_for_namespace(expr, &for_each.var))
}

/// Whether a condition is true of Namespaces only.
pub(super) fn asks_for_namespace(cond: &Expr, instance: &str) -> bool {
    let is_kind = |expr: &Expr| {
        matches!(&expr.node, Node::Select { base, field }
            if &**field == "kind" && matches!(&base.node, Node::Var(name) if &**name == instance))
    };
    let is_name = |expr: &Expr| matches!(&expr.node, Node::Const(Value::String(text)) if &**text == "Namespace");
    match &cond.node {
        Node::And(a, b) => asks_for_namespace(a, instance) || asks_for_namespace(b, instance),
        Node::Or(a, b) => asks_for_namespace(a, instance) && asks_for_namespace(b, instance),
        Node::Call { func, args } => match (func.comparison(), args.as_slice()) {
            (Some(Comparison::Equal), [a, b]) if (is_kind(a) && is_name(b)) || (is_name(a) && is_kind(b)) => true,
            // what is left of a comparison with a parameter
            (Some(Comparison::Different), [a, b]) => match (&a.node, &b.node) {
                (Node::Const(Value::Bool(false)), _) => asks_for_namespace(b, instance),
                (_, Node::Const(Value::Bool(false))) => asks_for_namespace(a, instance),
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}
