//! Leaves out what the values of the parameters rule out: a branch that is taken in no future is not read either.

use crate::eval::{Env, eval};
use crate::ir::{Expr, Node, Type};
use crate::value::Value;

/// An expression without the branches that its parameters, bound in `params`, rule out.
pub(super) fn prune(expr: &mut Expr, params: &Env<'_>) {
    expr.for_each_part_mut(&mut |part| prune(part, params));
    if let Some(value) = known(expr, params) {
        expr.replace(Node::Const(Value::Bool(value)));
        return;
    }
    let simpler = match &expr.node {
        Node::Cond { cond, then, otherwise } => match constant(cond) {
            Some(true) => Some(then.node.clone()),
            Some(false) => Some(otherwise.node.clone()),
            None => None,
        },
        // either side decides alone, even where the other one fails
        Node::And(a, b) => decided(a, b, false),
        Node::Or(a, b) => decided(a, b, true),
        _ => None,
    };
    if let Some(node) = simpler {
        expr.replace(node);
    }
}

/// What is left of an operator that one `decisive` side decides, where a side is known.
fn decided(a: &Expr, b: &Expr, decisive: bool) -> Option<Node> {
    match (constant(a), constant(b)) {
        (Some(known), _) if known == decisive => Some(a.node.clone()),
        (_, Some(known)) if known == decisive => Some(b.node.clone()),
        (Some(_), _) => Some(b.node.clone()),
        (_, Some(_)) => Some(a.node.clone()),
        (None, None) => None,
    }
}

fn constant(expr: &Expr) -> Option<bool> {
    match &expr.node {
        Node::Const(Value::Bool(value)) => Some(*value),
        _ => None,
    }
}

/// The value of a Boolean that reads nothing but parameters.
fn known(expr: &Expr, params: &Env<'_>) -> Option<bool> {
    if expr.ty != Type::Bool || matches!(expr.node, Node::Const(_)) {
        return None;
    }
    let mut reads_params_only = true;
    expr.walk(&mut |part| match &part.node {
        Node::Var(name) => reads_params_only &= &**name == "params",
        Node::Let { .. } | Node::OptMap { .. } | Node::Comprehension { .. } => reads_params_only = false,
        _ => {}
    });
    match reads_params_only.then(|| eval(expr, params))? {
        Ok(Value::Bool(value)) => Some(value),
        _ => None,
    }
}
