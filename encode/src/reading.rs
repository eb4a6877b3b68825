//! What an expression reads of a variable that may stand for several objects, and whether it has a value for each.

use suture_specs::functions::Func;
use suture_specs::ir::{Comprehension, Expr, Node};

use crate::analysis::footprint::OWN_META;

/// What an expression reads of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reading {
    /// Nothing that tells its objects apart.
    Common,
    /// Their nodes.
    Node,
    /// Anything.
    Identity,
}

/// What an expression reads of a variable; `called_on` says what a function does that is called on it.
pub(crate) fn reading(expr: &Expr, name: &str, called_on: &dyn Fn(Func) -> Reading) -> Reading {
    let mut path: Vec<&str> = Vec::new();
    let mut at = expr;
    while let Node::Select { base, field } | Node::HasField { base, field } | Node::OptSelect { base, field } = &at.node
    {
        path.push(field);
        at = base;
    }
    if matches!(&at.node, Node::Var(var) if &**var == name) {
        path.reverse();
        return match path.as_slice() {
            [] | ["metadata" | "spec"] => Reading::Identity,
            ["metadata", field, ..] if OWN_META.contains(field) => Reading::Identity,
            // a pod's may name its own node
            ["spec", "nodeName" | "affinity", ..] => Reading::Node,
            _ => Reading::Common,
        };
    }
    let mut worst = Reading::Common;
    match &at.node {
        Node::Call { func, args } => {
            for (position, arg) in args.iter().enumerate() {
                let receiver = position == 0 && matches!(&arg.node, Node::Var(var) if &**var == name);
                worst = worst.max(if receiver { called_on(*func) } else { reading(arg, name, called_on) });
            }
        }
        _ => at.for_each_part(&mut |part| worst = worst.max(reading(part, name, called_on))),
    }
    worst
}

/// Whether a predicate has a value for every object: what it asks of fields has the types that the API server checks.
pub(crate) fn never_fails(predicate: &Expr) -> bool {
    let is_name = |expr: &Expr| matches!(expr.node, Node::Var(_));
    match &predicate.node {
        Node::Const(_) => true,
        // a parameter has the type that its template declares
        Node::Select { base, .. } => matches!(&base.node, Node::Var(name) if **name == *"params"),
        Node::HasField { base, .. } => is_name(base),
        Node::Not(a) => never_fails(a),
        Node::And(a, b) | Node::Or(a, b) => never_fails(a) && never_fails(b),
        Node::Call { func, args } if func.never_fails() => args.iter().all(is_name),
        Node::Comprehension { kind: Comprehension::Exists, range, filter: None, body, .. } => {
            is_list_of_fields(range) && never_fails(body)
        }
        _ => false,
    }
}

/// Whether it is a list that an object may have in a field: `o.?a.?b.orValue([])`.
fn is_list_of_fields(range: &Expr) -> bool {
    let Node::Call { func: Func::OrValue, args } = &range.node else { return false };
    let [Expr { node: path, .. }, Expr { node: Node::List(none), .. }] = args.as_slice() else { return false };
    let mut path = path;
    while let Node::OptSelect { base, .. } = path {
        path = &base.node;
    }
    none.is_empty() && matches!(path, Node::Var(_))
}
