//! What can be said of an invariant's instances before any is looked at: of which kinds they are, and whether two that
//! the model does not tell apart may fare differently all the same, since an expression does.

use suture_model::kinds::Kind;
use suture_model::object::{Key, Object};
use suture_specs::compile::{CompiledInvariant, Kinds};
use suture_specs::eval::{Env, eval, eval_bool};
use suture_specs::functions::{Class, Func, may_be_quorum_group};
use suture_specs::ir::{Expr, Node, Type};
use suture_specs::value::Value;

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
        Node::Cond { cond, then, otherwise } if reads_kind_only(cond, var) => match eval_bool(cond, env) {
            Ok(holds) => never(if holds { then } else { otherwise }, var, env),
            Err(_) => false,
        },
        Node::Call { func: Func::IsQuorumGroup, args } if args.first().is_some_and(|o| is_instance(o, var)) => {
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
        Node::Call { func: Func::At, args } => args.first().is_some_and(|object| is_instance(object, var)),
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
            Node::Call { func, args } => match args.as_slice() {
                [object, rest @ ..]
                    if matches!(func, Func::ExistsIn | Func::LiveIn | Func::RestrictsNodes | Func::AdmittedNodes) =>
                {
                    is_instance(object, &self.compiled.for_each.var) && rest.iter().all(|a| a.ty == Type::World)
                }
                args => {
                    let plain = args.iter().all(|a| !holds_objects(&a.ty) || *func == Func::Size);
                    plain && func.class() == Class::Pure && args.iter().all(|a| self.reads_nodes_only(a))
                }
            },
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

/// Whether no expression of an invariant tells objects apart that differ in name, uid, times and node only.
pub fn blind_to_identity(compiled: &CompiledInvariant) -> bool {
    let clauses = compiled.require.iter().map(|c| &c.expression);
    let lets = compiled.lets.iter().map(|(_, e)| e);
    lets.chain(clauses).chain(&compiled.for_each.where_).chain(&compiled.degree).all(blind)
}

/// Whether the same is true of what the invariant says when it fails, whichever of its clauses do.
pub fn blind_message(compiled: &CompiledInvariant) -> bool {
    compiled.require.iter().all(|clause| clause.message.as_ref().is_none_or(blind))
}

/// Functions of an object, or of one in a state, that give the same for objects which a swap of both turns into each
/// other.
const BLIND: [Func; 17] = [
    Func::At,
    Func::ExistsIn,
    Func::LiveIn,
    Func::Live,
    Func::Ready,
    Func::Terminating,
    Func::Taken,
    Func::Label,
    Func::Annotation,
    Func::Requests,
    Func::References,
    Func::ResolvesIn,
    Func::RestrictsNodes,
    Func::HasSelector,
    Func::Owners,
    Func::OwnersIn,
    Func::UnresolvedOwners,
];

/// Fields of `metadata` that differ between objects which are otherwise alike.
const OWN_META: [&str; 4] = ["name", "uid", "creationTimestamp", "resourceVersion"];

fn blind(expr: &Expr) -> bool {
    let mut path: Vec<&str> = Vec::new();
    let mut at = expr;
    while let Node::Select { base, field } | Node::HasField { base, field } | Node::OptSelect { base, field } = &at.node
    {
        path.push(field);
        at = base;
        if at.ty == Type::World {
            return false;
        }
        if of_object(&at.ty) {
            path.reverse();
            let told = match path.as_slice() {
                ["metadata" | "spec"] | ["spec", "nodeName", ..] => true,
                ["metadata", field, ..] => OWN_META.contains(field),
                _ => false,
            };
            return !told && blind_object(at);
        }
    }
    match &at.node {
        Node::Const(_) | Node::Var(_) => true,
        Node::Call { func, args } if BLIND.contains(func) => {
            args.iter().all(|a| if of_object(&a.ty) { blind_object(a) } else { blind(a) })
        }
        Node::Call { func, args } => {
            let plain = args.iter().all(|a| !holds_objects(&a.ty) || *func == Func::Size);
            plain && func.class() == Class::Pure && args.iter().all(blind)
        }
        Node::Select { base, .. } | Node::HasField { base, .. } | Node::OptSelect { base, .. } => blind(base),
        Node::Index { base, index } | Node::OptIndex { base, index } => {
            !of_object(&base.ty) && blind(base) && blind(index)
        }
        Node::Not(a) => blind(a),
        Node::And(a, b) | Node::Or(a, b) => blind(a) && blind(b),
        Node::Cond { cond, then, otherwise } => blind(cond) && blind(then) && blind(otherwise),
        Node::List(items) => items.iter().all(|e| blind(&e.value)),
        Node::Map(entries) => entries.iter().all(|e| blind(&e.key) && blind(&e.value)),
        // an object under a name of its own is not followed
        Node::Let { init, body, .. } => !holds_objects(&init.ty) && blind(init) && blind(body),
        Node::OptMap { base, body, .. } => !holds_objects(&base.ty) && blind(base) && blind(body),
        Node::Comprehension { range, filter, body, .. } => {
            blind(range) && blind(body) && filter.as_ref().is_none_or(|f| blind(f))
        }
    }
}

/// Whether an expression that is an object finds it without telling objects apart.
fn blind_object(expr: &Expr) -> bool {
    match &expr.node {
        Node::Var(_) => true,
        Node::Call { func: Func::At, args } => args.iter().all(blind_object),
        _ => false,
    }
}

/// Whether an invariant reads nothing of its instances but their kind, whether they are there, and whom they name; of
/// what they refer to, whether it is there; and of their owners anything.
pub fn reads_presence_only(compiled: &CompiledInvariant) -> bool {
    let mut presence = PresenceOnly { instance: &compiled.for_each.var, owners: Vec::new() };
    let clauses = compiled.require.iter().map(|c| &c.expression);
    let lets = compiled.lets.iter().map(|(_, e)| e);
    lets.chain(clauses).chain(&compiled.for_each.where_).chain(&compiled.degree).all(|expr| presence.is_all(expr))
}

/// Functions of the instance that say no more.
const PRESENCE: [Func; 8] = [
    Func::At,
    Func::ExistsIn,
    Func::LiveIn,
    Func::Owners,
    Func::OwnersIn,
    Func::UnresolvedOwners,
    Func::References,
    Func::ResolvesIn,
];

/// Functions of an object alone, which for an owner are the same as long as it stays.
const OF_OWNERS: [Func; 4] = [Func::Live, Func::Terminating, Func::Label, Func::Annotation];

/// What is read where.
struct PresenceOnly<'c> {
    instance: &'c str,
    /// The variables that are owners of the instance.
    owners: Vec<&'c str>,
}

impl<'c> PresenceOnly<'c> {
    /// Whether this is all that an expression reads.
    fn is_all(&mut self, expr: &'c Expr) -> bool {
        match &expr.node {
            Node::Const(_) | Node::Var(_) => true,
            Node::Select { base, field } | Node::HasField { base, field } | Node::OptSelect { base, field } => {
                (!of_object(&base.ty) || &**field == "kind" || self.is_owner(base)) && self.is_all(base)
            }
            Node::Index { base, index } | Node::OptIndex { base, index } => {
                !of_object(&base.ty) && self.is_all(base) && self.is_all(index)
            }
            Node::Call { func, args } => {
                let plain = |a: &Expr| !holds_objects(&a.ty) || *func == Func::Size;
                let told = PRESENCE.contains(func)
                    || (OF_OWNERS.contains(func) && args.first().is_some_and(|a| self.is_owner(a)))
                    || (func.class() == Class::Pure && args.iter().all(plain));
                told && args.iter().all(|a| self.is_all(a))
            }
            Node::Not(a) => self.is_all(a),
            Node::And(a, b) | Node::Or(a, b) => self.is_all(a) && self.is_all(b),
            Node::Cond { cond, then, otherwise } => [cond, then, otherwise].iter().all(|part| self.is_all(part)),
            // an object under another name is not followed
            Node::List(items) => items.iter().all(|e| !holds_objects(&e.value.ty) && self.is_all(&e.value)),
            Node::Map(entries) => {
                entries.iter().all(|e| !holds_objects(&e.value.ty) && self.is_all(&e.key) && self.is_all(&e.value))
            }
            Node::Let { init, body, .. } => !holds_objects(&init.ty) && self.is_all(init) && self.is_all(body),
            Node::OptMap { base, body, .. } => !holds_objects(&base.ty) && self.is_all(base) && self.is_all(body),
            Node::Comprehension { range, vars, filter, body, .. } => {
                let owners = matches!(&range.node, Node::Call { func: Func::OwnersIn, .. });
                let known = self.owners.len();
                if (!owners && holds_objects(&range.ty)) || &*vars.0 == self.instance || !self.is_all(range) {
                    return false;
                }
                self.owners.extend(owners.then_some(&*vars.0));
                let all = filter.as_ref().is_none_or(|f| self.is_all(f)) && self.is_all(body);
                self.owners.truncate(known);
                all
            }
        }
    }

    fn is_owner(&self, expr: &Expr) -> bool {
        match &expr.node {
            Node::Var(name) => self.owners.contains(&&**name),
            Node::Call { func: Func::At, args } => args.first().is_some_and(|object| self.is_owner(object)),
            _ => false,
        }
    }
}

fn of_object(ty: &Type) -> bool {
    match ty {
        Type::Object(_) => true,
        Type::Optional(inner) => of_object(inner),
        _ => false,
    }
}

/// Whether values of a type may be or contain objects.
pub(crate) fn holds_objects(ty: &Type) -> bool {
    match ty {
        Type::Object(_) | Type::World => true,
        Type::List(inner) | Type::Optional(inner) => holds_objects(inner),
        Type::Map(_, value) => holds_objects(value),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
