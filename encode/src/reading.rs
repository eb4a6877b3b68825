//! What an expression reads of a variable that may stand for several objects.

use suture_specs::functions::Func;
use suture_specs::ir::{Expr, Node};

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
