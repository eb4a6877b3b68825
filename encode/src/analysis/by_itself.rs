//! What an instance decides by itself: by labels, annotations, owner references and `spec` alone it may hold, or be none that is
//! judged, whatever becomes of it and of all else. Most objects are told so to be none that an invariant is about, where a
//! change reaches very many.
//!
//! Whatever else is read is an error, which logic absorbs where another part decides. It is asked three times: where the
//! instance is there and live, where it is being deleted, and where it is gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use suture_model::kinds::Kind;
use suture_model::object::{Object, Owner};
use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;
use suture_specs::error::EvalError;
use suture_specs::eval::{Env, eval, eval_bool};
use suture_specs::functions::{QUORUM, Worlds};
use suture_specs::ir::{Expr, Node};
use suture_specs::value::{Value, World};

use super::guards::{is_in_future, is_of_future};
use crate::relations::{Alone, TextOf, label, relations};

/// Names that no expression can have: the instance as the future has it, whether it is there and live, and anything else.
const HERE: &str = "\u{1}here";
const EXISTS: &str = "\u{1}exists";
const LIVES: &str = "\u{1}lives";
const QUORUM_GROUP: &str = "\u{1}quorum group";
const UNKNOWN: &str = "\u{1}unknown";
/// By which names an expression reads what is asked for: the first request, and all of them.
pub(super) const REQUEST: [&str; 2] = ["request", "requests"];
/// Of so many combinations of what is read it is kept what follows.
const KNOWN_MAX: usize = 4_096;
/// It is kept of values of no more bytes together, and of no more owners: whoever writes an object chooses how long they are.
const READ_BYTES_MAX: usize = 512;
const READ_OWNERS_MAX: usize = 2;

/// The kind of an instance, the values that are read of it, and its owners, if these are.
type Read = (Kind, Vec<Option<Str>>, Vec<Owner>);

/// All that expressions read of an instance but its kind.
#[derive(Debug, Default)]
struct Named {
    /// Labels and annotations of known names.
    values: Vec<(TextOf, Str)>,
    /// Whether it reads the owners.
    owners: bool,
    /// Whether it asks if its pods vote.
    votes: bool,
}

/// The expressions of an invariant, with all that an instance does not decide by itself unknown.
#[derive(Debug)]
pub(super) struct ByItself {
    var: Str,
    lets: Vec<(Str, Expr)>,
    /// Where it applies.
    condition: Option<Expr>,
    /// What is required, each with whether that is so where it does not apply.
    require: Vec<(Expr, bool)>,
    params: Value,
    /// Whether it reads `spec`.
    reads_spec: bool,
    /// The same without `spec`, if it reads that: equal pods may differ in their nodes.
    of_pods: Option<Box<Self>>,
    /// All that it reads of an instance but its kind, where that is what [`Named`] has.
    named: Option<Named>,
    /// Whether instances of a kind with these values hold.
    known: Mutex<BTreeMap<Read, bool>>,
}

impl ByItself {
    /// Of this invariant; `None` if none of it is about the instance alone.
    pub fn of(compiled: &CompiledInvariant) -> Option<Self> {
        let mut found = Self::reading(compiled, true)?;
        if found.reads_spec {
            found.of_pods = Self::reading(compiled, false).map(Box::new);
        }
        Some(found)
    }

    /// [`Self::of`]; `spec` says whether that is known of an instance.
    fn reading(compiled: &CompiledInvariant, spec: bool) -> Option<Self> {
        let var = &compiled.for_each.var;
        let clauses = || compiled.require.iter().map(|clause| &clause.expression);
        let all = || compiled.lets.iter().map(|(_, expr)| expr).chain(&compiled.for_each.where_).chain(clauses());
        if compiled.lets.iter().any(|(name, _)| name == var) || all().any(|expr| binds(expr, var)) {
            return None;
        }
        let known = |expr: &Expr| {
            let mut expr = expr.clone();
            keep_known(&mut expr, var, spec);
            expr
        };
        let lets: Vec<(Str, Expr)> = compiled.lets.iter().map(|(name, expr)| (name.clone(), known(expr))).collect();
        let condition = compiled.for_each.where_.as_ref().map(known);
        let require: Vec<(Expr, bool)> =
            compiled.require.iter().map(|clause| (known(&clause.expression), clause.beyond_where)).collect();
        let params = Value::from(&compiled.params);
        let mut found = Self {
            var: var.clone(),
            lets,
            condition,
            require,
            params,
            reads_spec: false,
            of_pods: None,
            named: None,
            known: Mutex::default(),
        };
        let here = [var.clone(), HERE.into()].into();
        let is_read = found.exprs().any(|expr| expr.names(LIVES, &here));
        let mut reads_spec = false;
        found.exprs().for_each(|expr| expr.walk(&mut |part| reads_spec |= is_spec(part, var)));
        found.reads_spec = reads_spec;
        found.named = named(found.exprs(), var, &found.params);
        is_read.then_some(found)
    }

    /// All its expressions.
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let require = self.require.iter().map(|(expr, _)| expr);
        self.lets.iter().map(|(_, expr)| expr).chain(&self.condition).chain(require)
    }

    /// Whether an object that no scenario changes holds in every future, whatever it and all else become: the same for all of a
    /// kind and body.
    pub fn holds(&self, object: &Arc<Object>, worlds: Worlds<'_>) -> bool {
        self.about(object).is_some_and(|this| this.is_known_to_hold(object, worlds))
    }

    /// The same of an object that has this version in some scenario.
    pub fn holds_as(&self, object: &Arc<Object>, version: &Arc<Object>, worlds: Worlds<'_>) -> bool {
        self.about(object).is_some_and(|this| this.is_so(object, version, worlds))
    }

    /// What of it is about an object.
    fn about(&self, object: &Object) -> Option<&Self> {
        if self.reads_spec && object.key.kind.is("Pod") { self.of_pods.as_deref() } else { Some(self) }
    }

    fn is_known_to_hold(&self, object: &Arc<Object>, worlds: Worlds<'_>) -> bool {
        let Some(named) = &self.named else { return self.is_so(object, object, worlds) };
        let owners = if named.owners { object.owners() } else { &[] };
        let values = named.values.iter().map(|(text, name)| text(worlds.before, object, name));
        let values: Vec<Option<Str>> = values.collect();
        let bytes: usize = values.iter().flatten().map(|value| value.len()).sum();
        let told_apart = bytes > READ_BYTES_MAX || owners.len() > READ_OWNERS_MAX;
        if told_apart || (named.votes && adapter_says_quorum(object, worlds)) {
            return self.is_so(object, object, worlds);
        }
        let read = (object.key.kind.clone(), values, owners.to_vec());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holds) = known.get(&read) {
            return *holds;
        }
        let holds = self.is_so(object, object, worlds);
        if known.len() < KNOWN_MAX {
            known.insert(read, holds);
        }
        holds
    }

    fn is_so(&self, object: &Arc<Object>, version: &Arc<Object>, worlds: Worlds<'_>) -> bool {
        // without the label they do not vote, whatever controls it, unless the adapter says so
        let may_vote = [object, version].into_iter().any(|object| may_vote(object, worlds));
        [(true, true), (true, false), (false, false)].into_iter().all(|(exists, lives)| {
            let unknown = || Err(EvalError::invalid("it is not decided by the instance alone"));
            let mut env = Env::new(worlds);
            env.bind("params", Ok(self.params.clone()));
            env.bind(&self.var, Ok(Value::Object(object.clone())));
            env.bind(HERE, if exists { Ok(Value::Object(version.clone())) } else { unknown() });
            env.bind(EXISTS, Ok(Value::Bool(exists)));
            env.bind(LIVES, Ok(Value::Bool(lives)));
            env.bind(QUORUM_GROUP, if exists && !may_vote { Ok(Value::Bool(false)) } else { unknown() });
            env.bind(UNKNOWN, unknown());
            for (name, expr) in &self.lets {
                let value = eval(expr, &env);
                env.bind(name, value);
            }
            let applies = self.condition.as_ref().is_none_or(|expr| eval_bool(expr, &env) != Ok(false));
            let required = self.require.iter().filter(|(_, anyway)| applies || *anyway);
            required.map(|(expr, _)| eval_bool(expr, &env)).all(|holds| holds == Ok(true))
        })
    }
}

/// Whether the pods of an object may vote, as it says itself.
fn may_vote(object: &Object, worlds: Worlds<'_>) -> bool {
    object.label(QUORUM).is_some() || adapter_says_quorum(object, worlds)
}

fn adapter_says_quorum(object: &Object, worlds: Worlds<'_>) -> bool {
    worlds.before.adapter(object).is_some_and(|facts| facts.quorum)
}

/// All that expressions, of which the rest is unknown, read of the instance but its kind; `None` where that is more than
/// [`Named`] has.
fn named<'e>(exprs: impl Iterator<Item = &'e Expr>, var: &Str, params: &Value) -> Option<Named> {
    let mut env = Env::without_worlds();
    env.bind("params", Ok(params.clone()));
    let is_instance = |expr: &Expr| is_var(expr, var) || is_var(expr, HERE);
    let (mut found, mut met, mut told) = (Named::default(), 0_usize, 0_usize);
    for expr in exprs {
        expr.walk(&mut |part| {
            met += usize::from(is_instance(part));
            match &part.node {
                Node::Select { base, field } if is_instance(base) && **field == *"kind" => told += 1,
                Node::Call { func, args } if args.first().is_some_and(is_instance) => {
                    match (relations(*func).alone, args.get(1).map(|name| eval(name, &env))) {
                        (Alone::Text(text), Some(Ok(Value::String(name)))) => found.values.push((text, name)),
                        (Alone::Owners, _) => found.owners = true,
                        _ => return,
                    }
                    told += 1;
                }
                Node::Var(name) if **name == *QUORUM_GROUP => {
                    found.votes = true;
                    found.values.push((label, QUORUM.into()));
                }
                _ => {}
            }
        });
    }
    (met == told).then_some(found)
}

/// Whether a part of an expression binds this name to something else.
fn binds(expr: &Expr, name: &Str) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= match &part.node {
            Node::Let { var, .. } | Node::OptMap { var, .. } => var == name,
            Node::Comprehension { vars, .. } => vars.0 == *name || vars.1.as_ref() == Some(name),
            _ => false,
        }
    });
    found
}

/// Whether an expression, of which the rest is unknown, is the `spec` of the instance, whether there is one, or what a function
/// says by it.
fn is_spec(expr: &Expr, var: &Str) -> bool {
    let is_instance = |expr: &Expr| is_var(expr, var) || is_var(expr, HERE);
    match &expr.node {
        Node::Select { base, field } | Node::HasField { base, field } | Node::OptSelect { base, field } => {
            **field == *"spec" && is_instance(base)
        }
        Node::Call { func, args } => {
            matches!(relations(*func).alone, Alone::Spec) && args.first().is_some_and(is_instance)
        }
        _ => false,
    }
}

/// Makes unknown all that the instance does not decide by itself.
fn keep_known(expr: &mut Expr, var: &Str, spec: bool) {
    if let Some(name) = presence(expr, var) {
        expr.node = Node::Var(name.into());
        return;
    }
    let kept = match &mut expr.node {
        Node::Var(name) => *name != *var && !is_input(name),
        Node::Select { base, field } | Node::HasField { base, field } | Node::OptSelect { base, field } => {
            match is_read_whole(base, field, var, spec) {
                true => return,
                false => true,
            }
        }
        Node::Call { func, args } => {
            let reads_alone = match relations(*func).alone {
                Alone::Body | Alone::Text(_) | Alone::Owners => true,
                Alone::Spec => spec,
                Alone::No | Alone::Exists | Alone::Lives | Alone::Votes => false,
            };
            let of_instance = reads_alone && args.first_mut().is_some_and(|arg| is_instance(arg, var));
            if of_instance {
                args.iter_mut().skip(1).for_each(|arg| keep_known(arg, var, spec));
                return;
            }
            !args.iter().any(|arg| matches!(&arg.node, Node::Var(name) if World::is_name(name)))
        }
        _ => true,
    };
    match kept {
        true => expr.for_each_part_mut(&mut |part| keep_known(part, var, spec)),
        false => expr.node = Node::Var(UNKNOWN.into()),
    }
}

/// The name for whether the instance is there, or live, or has pods that vote, in the future, if an expression asks for that.
fn presence(expr: &Expr, var: &Str) -> Option<&'static str> {
    let Node::Call { func, args } = &expr.node else { return None };
    let is_about_it = || args.first().cloned().is_some_and(|mut of| is_instance(&mut of, var));
    match (relations(*func).alone, is_of_future(args, var)) {
        (Alone::Exists, true) => Some(EXISTS),
        (Alone::Lives, true) => Some(LIVES),
        (Alone::Votes, _) if is_about_it() => Some(QUORUM_GROUP),
        _ => None,
    }
}

/// Whether a field is one of labels, annotations, `kind` or, if that is known, `spec` of the instance, which is then named as the
/// future has it.
fn is_read_whole(base: &mut Expr, field: &str, var: &Str, spec: bool) -> bool {
    match &mut base.node {
        Node::Select { base: of, field: outer } | Node::OptSelect { base: of, field: outer }
            if matches!(field, "labels" | "annotations") =>
        {
            **outer == *"metadata" && is_instance(of, var)
        }
        _ => (field == "kind" || (spec && field == "spec")) && is_instance(base, var),
    }
}

/// Whether an expression is the instance, as it is or as the future has it, which is then named so.
fn is_instance(expr: &mut Expr, var: &Str) -> bool {
    let is_here = is_in_future(expr, var);
    if is_here {
        expr.node = Node::Var(HERE.into());
    }
    is_here || is_var(expr, var)
}

/// Whether an expression is the variable of this name.
fn is_var(expr: &Expr, name: &str) -> bool {
    matches!(&expr.node, Node::Var(var) if **var == *name)
}

/// Whether a name is that of a state, a request or the time.
fn is_input(name: &str) -> bool {
    World::is_name(name) || REQUEST.contains(&name) || name == "time"
}
