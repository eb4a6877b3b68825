//! What an expression reads of a variable that may stand for several objects.

use suture_specs::ir::{Expr, Node};

use crate::analysis::footprint::OWN_META;
use crate::relations::{Tells, relations};

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

/// What an expression reads of a variable; `own_names` where the objects refer to others by their own names.
pub(crate) fn reading(expr: &Expr, name: &str, own_names: bool) -> Reading {
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
            ["spec", "nodeName", ..] => Reading::Node,
            _ => Reading::Common,
        };
    }
    let mut worst = Reading::Common;
    match &at.node {
        Node::Call { func, args } => {
            for (position, arg) in args.iter().enumerate() {
                let receiver = position == 0 && matches!(&arg.node, Node::Var(var) if &**var == name);
                let read = match relations(*func).tells {
                    Tells::Nothing if receiver => Reading::Common,
                    Tells::OwnNames if receiver && !own_names => Reading::Common,
                    Tells::Nodes if receiver => Reading::Node,
                    Tells::Nothing | Tells::OwnNames | Tells::NothingSwapped | Tells::Nodes | Tells::Identity => {
                        reading(arg, name, own_names)
                    }
                };
                worst = worst.max(read);
            }
        }
        _ => at.for_each_part(&mut |part| worst = worst.max(reading(part, name, own_names))),
    }
    worst
}
