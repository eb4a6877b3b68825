//! What the kind of an instance alone decides of an invariant: whether objects of a kind may be instances, and whether
//! only the nodes that admit them are read.

use suture_model::kinds::Kind;
use suture_model::object::{Key, Object};
use suture_specs::compile::{CompiledInvariant, Kinds};
use suture_specs::eval::{Env, eval, eval_bool};
use suture_specs::functions::{Class, may_be_quorum_group};
use suture_specs::ir::{Expr, Node, Type};
use suture_specs::value::Value;

use super::footprint::holds_objects;
use crate::relations::{Alone, Detail, Source, relations};

/// Whether objects of a kind may be instances of an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// None is.
    Never,
    /// Some may be if the kind has an adapter.
    Adapted,
    /// Some may be.
    Always,
}

/// Whether objects of a kind may be instances; never less than what is.
pub fn instance_kind(compiled: &CompiledInvariant, kind: &Kind) -> InstanceKind {
    let bare = Object::bare(Key::new(kind.clone(), "", ""));
    let named = compiled.for_each.kinds.iter().map(|kinds| match kinds {
        Kinds::Adapted => InstanceKind::Adapted,
        _ if kinds.matches(&bare, &suture_model::adapter::NoAdapters) => InstanceKind::Always,
        Kinds::Workload => InstanceKind::Adapted,
        Kinds::Every | Kinds::Kind(_) => InstanceKind::Never,
    });
    let named = named.reduce(|a, b| match (a, b) {
        (InstanceKind::Always, _) | (_, InstanceKind::Always) => InstanceKind::Always,
        (InstanceKind::Adapted, _) | (_, InstanceKind::Adapted) => InstanceKind::Adapted,
        _ => InstanceKind::Never,
    });
    match named {
        Some(named) if named != InstanceKind::Never && !left_out(compiled, bare) => named,
        _ => InstanceKind::Never,
    }
}

/// Whether a part of `where` that reads nothing but the kind of the instance is false for this one.
fn left_out(compiled: &CompiledInvariant, bare: Object) -> bool {
    let Some(expr) = &compiled.for_each.where_ else { return false };
    let var = &compiled.for_each.var;
    let mut env = Env::without_worlds();
    env.bind(var, Ok(Value::Object(std::sync::Arc::new(bare))));
    env.bind("params", Ok(Value::from(&compiled.params)));
    never(expr, var, &env)
}

/// Whether the kind of the instance alone makes an expression false.
fn never(expr: &Expr, var: &str, env: &Env) -> bool {
    match &expr.node {
        Node::And(a, b) => never(a, var, env) || never(b, var, env),
        Node::Or(a, b) => never(a, var, env) && never(b, var, env),
        Node::Cond { cond, then, otherwise } if reads_kind_only(cond, var) => match eval_bool(cond, env) {
            Ok(holds) => never(if holds { then } else { otherwise }, var, env),
            Err(_) => false,
        },
        Node::Call { func, args }
            if matches!(relations(*func).alone, Alone::Votes) && args.first().is_some_and(|o| is_instance(o, var)) =>
        {
            let kind = env.get(var).and_then(|value| Some(value.as_ref().ok()?.as_object()?.key.kind.clone()));
            kind.is_some_and(|kind| !may_be_quorum_group(&kind))
        }
        _ => reads_kind_only(expr, var) && eval_bool(expr, env) == Ok(false),
    }
}

/// Whether an expression is the instance, in some state.
fn is_instance(expr: &Expr, var: &str) -> bool {
    match &expr.node {
        Node::Var(name) => &**name == var,
        Node::Call { func, args } if matches!(relations(*func).source, Source::Itself) => {
            args.first().is_some_and(|object| is_instance(object, var))
        }
        _ => false,
    }
}

fn reads_kind_only(expr: &Expr, var: &str) -> bool {
    let is_instance = |e: &Expr| matches!(&e.node, Node::Var(name) if &**name == var);
    let (mut all, mut kinds) = (0, 0);
    expr.walk(&mut |part| {
        all += usize::from(is_instance(part));
        kinds += usize::from(
            matches!(&part.node, Node::Select { base, field } if &**field == "kind" && is_instance(base.as_ref())),
        );
    });
    all == kinds
}

/// Whether an invariant reads nothing of its instances of a kind but the kind, whether they are there, and which nodes
/// their constraint admits: parts that the kind alone decides are left out.
pub fn reads_nodes_only(compiled: &CompiledInvariant, kind: &Kind) -> bool {
    let mut folded = Folded { compiled, env: Env::without_worlds() };
    let bare = Object::bare(Key::new(kind.clone(), "", ""));
    folded.env.bind(&compiled.for_each.var, Ok(Value::Object(std::sync::Arc::new(bare))));
    folded.env.bind("params", Ok(Value::from(&compiled.params)));
    for (name, expr) in &compiled.lets {
        if let Some(value) = folded.value(expr) {
            folded.env.bind(name, Ok(value));
        }
    }
    // what always holds says nothing
    let clauses = compiled.require.iter().filter(|c| folded.truth(&c.expression) != Some(true));
    let clauses = clauses.flat_map(|c| std::iter::once(&c.expression).chain(&c.message));
    clauses.chain(&compiled.for_each.where_).chain(&compiled.degree).all(|expr| folded.reads_nodes_only(expr))
}

/// Expressions with what the kind of the instance decides already.
struct Folded<'c> {
    compiled: &'c CompiledInvariant,
    env: Env<'c>,
}

impl Folded<'_> {
    /// The value of an expression, if the kind decides it.
    fn value(&self, expr: &Expr) -> Option<Value> {
        match &expr.node {
            Node::And(a, b) | Node::Or(a, b) => {
                let decides = matches!(&expr.node, Node::Or(..));
                match (self.truth(a), self.truth(b)) {
                    (Some(x), _) | (_, Some(x)) if x == decides => Some(Value::Bool(decides)),
                    (Some(_), Some(_)) => Some(Value::Bool(!decides)),
                    _ => None,
                }
            }
            Node::Not(a) => self.truth(a).map(|a| Value::Bool(!a)),
            Node::Cond { cond, then, otherwise } => self.value(if self.truth(cond)? { then } else { otherwise }),
            _ => {
                let known = reads_kind_only(expr, &self.compiled.for_each.var);
                known.then(|| eval(expr, &self.env).ok()).flatten()
            }
        }
    }

    fn truth(&self, expr: &Expr) -> Option<bool> {
        match self.value(expr) {
            Some(Value::Bool(value)) => Some(value),
            _ => None,
        }
    }

    fn reads_nodes_only(&self, expr: &Expr) -> bool {
        if self.value(expr).is_some() {
            return true;
        }
        let all = |parts: &[&Expr]| parts.iter().all(|part| self.reads_nodes_only(part));
        match &expr.node {
            Node::Const(_) => true,
            Node::Var(name) => match self.compiled.lets.iter().find(|(known, _)| known == name) {
                Some((_, expr)) => self.reads_nodes_only(expr),
                None => *name != self.compiled.for_each.var,
            },
            Node::Call { func, args } => {
                let (detail, plain) = (relations(*func).detail, func.class() == Class::Pure);
                match (detail, args.as_slice()) {
                    (Detail::Presence | Detail::Nodes, [object, rest @ ..]) => {
                        is_instance(object, &self.compiled.for_each.var) && rest.iter().all(|a| a.ty == Type::World)
                    }
                    (Detail::Count, args) => plain && args.iter().all(|a| self.reads_nodes_only(a)),
                    (_, args) => {
                        let values = args.iter().all(|a| !holds_objects(&a.ty));
                        values && plain && args.iter().all(|a| self.reads_nodes_only(a))
                    }
                }
            }
            Node::Not(a) => all(&[a.as_ref()]),
            // a part that the kind decides was no use to the whole, but is to what is left of it
            Node::And(a, b) | Node::Or(a, b) => all(&[a.as_ref(), b.as_ref()]),
            Node::Cond { cond, then, otherwise } => match self.truth(cond) {
                Some(true) => self.reads_nodes_only(then),
                Some(false) => self.reads_nodes_only(otherwise),
                None => all(&[cond.as_ref(), then.as_ref(), otherwise.as_ref()]),
            },
            _ => false,
        }
    }
}
