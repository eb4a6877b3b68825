//! What can make no difference to an invariant of all that it reads: of `now.priorityclasses.filter(c, c.globalDefault && …)`
//! no class without the field, of `o.admittedNodes(now).size() == 0` nodes beside others.

use std::sync::Arc;

use suture_model::navigate;
use suture_model::object::Object;
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::eval::{Env, eval_bool};
use suture_specs::functions::{Comparison, Func};
use suture_specs::ir::{Comprehension, Expr, Node};
use suture_specs::value::Value;

use crate::relations::{Detail, Inverse, Source, relations};

/// What an object has to be for the objects of its kind to be looked at.
#[derive(Clone, Debug)]
pub(crate) enum Guard {
    /// An item of which all of this holds, under this name.
    Item { var: Str, parts: Vec<Expr> },
    /// A PriorityClass that pods may have.
    Priority,
}

impl Guard {
    /// Of what a macro asks about the items of a list: the parts of it that read nothing but the item and the parameters.
    pub fn of_items(kind: Comprehension, vars: &(Str, Option<Str>), body: &Expr) -> Option<Self> {
        if !matches!(kind, Comprehension::Filter | Comprehension::Exists) || vars.1.is_some() {
            return None;
        }
        let mut parts = Vec::new();
        conjuncts(body, &mut parts);
        parts.retain(|part| {
            let mut is_about_it = true;
            part.walk(&mut |part| match &part.node {
                Node::Var(name) => is_about_it &= *name == vars.0 || **name == *"params",
                Node::Let { .. } | Node::OptMap { .. } | Node::Comprehension { .. } => is_about_it = false,
                _ => {}
            });
            is_about_it
        });
        let parts: Vec<Expr> = parts.into_iter().cloned().collect();
        (!parts.is_empty()).then(|| Self::Item { var: vars.0.clone(), parts })
    }

    /// Whether an object may be one in one of these states.
    pub fn admits(&self, object: &Arc<Object>, params: &Value, states: &[&State<'_>]) -> bool {
        match self {
            Self::Item { var, parts } => {
                let mut env = Env::without_worlds();
                env.bind("params", Ok(params.clone()));
                env.bind(var, Ok(Value::Object(object.clone())));
                parts.iter().all(|part| eval_bool(part, &env) != Ok(false))
            }
            Self::Priority => states.iter().any(|state| navigate::may_be_priority(state, object)),
        }
    }
}

/// The parts of a conjunction.
fn conjuncts<'e>(expr: &'e Expr, found: &mut Vec<&'e Expr>) {
    match &expr.node {
        Node::And(a, b) => [a, b].into_iter().for_each(|part| conjuncts(part, found)),
        _ => found.push(expr),
    }
}

/// Whether an expression is the instance as the future has it: `o.at(now)`.
pub(super) fn is_in_future(expr: &Expr, var: &str) -> bool {
    matches!(&expr.node, Node::Call { func, args }
        if matches!(relations(*func).source, Source::Itself) && is_of_future(args, var))
}

/// Whether these are the instance and the future.
pub(super) fn is_of_future(args: &[Expr], var: &str) -> bool {
    let is_instance = |expr: &Expr| matches!(&expr.node, Node::Var(name) if **name == *var);
    matches!(args, [object, world] if is_instance(object) && world.is_now())
}

/// Whether an expression, if it is true, says that the instance, as the future has it, restricts nodes: `o.at(now).restrictsNodes()`.
pub(super) fn restricts_nodes(expr: &Expr, instance: &str) -> bool {
    match &expr.node {
        Node::And(a, b) => restricts_nodes(a, instance) || restricts_nodes(b, instance),
        Node::Call { func, args } if relations(*func).restricts_nodes() => {
            args.first().is_some_and(|about| is_in_future(about, instance))
        }
        _ => false,
    }
}

/// Whether an expression, if it is false, says the same.
pub(super) fn is_free(expr: &Expr, instance: &str) -> bool {
    match &expr.node {
        Node::Or(a, b) => is_free(a, instance) || is_free(b, instance),
        Node::Not(a) => restricts_nodes(a, instance),
        _ => false,
    }
}

/// Whether a call is `o.admittedNodes(now).size() == 0`, or the contrary.
pub(super) fn asks_for_any_node(func: Func, args: &[Expr]) -> bool {
    let [size, zero] = args else { return false };
    let Node::Call { func: count, args: list } = &size.node else { return false };
    let is_list = |expr: &Expr| match &expr.node {
        Node::Call { func, args } => relations(*func).inverse == Inverse::Nodes && args.iter().any(Expr::is_now),
        _ => false,
    };
    let compares = matches!(func.comparison(), Some(Comparison::Equal | Comparison::Different | Comparison::Greater));
    compares
        && relations(*count).detail == Detail::Count
        && matches!(zero.node, Node::Const(Value::Int(0)))
        && matches!(list.as_slice(), [list] if is_list(list))
}
