//! The symbolic evaluator: an expression of the invariant language in all futures of a scene at once.
//!
//! What does not depend on the future is evaluated concretely, by the evaluator of crate `specs`. A predicate over the
//! items of a list is evaluated once per class and fate; `size`, `exists`, `all`, `filter` and `sum` become linear
//! terms over counts. What is not linear in the counts is enumerated within [`VALUES_MAX`] or refused.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use suture_model::futures::FateKind;
use suture_model::object::Object;
use suture_model::references::names_its_own;
use suture_model::steps;
use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;
use suture_specs::error::{EvalError, EvalErrorKind};
use suture_specs::eval::{Env, eval};
use suture_specs::functions::Func;
use suture_specs::ir::{Comprehension, Expr, Node};
use suture_specs::value::{ListValue, Value, World};

use crate::reading::{Reading, never_fails, reading};
use crate::relations::{Source, Tells, relations};
use crate::scene::Scene;
use crate::sym::{Item, Member, Sym, Truth};
use crate::term::{Bool, Int, TERM_NODES_MAX, TermError};

/// How many values of an integer are told apart where a function of it is not linear.
pub const VALUES_MAX: i128 = 64;

/// Why a question cannot be put to the solver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Two entities of one class must be told apart: encode again with a finer grain.
    #[error("the invariant tells interchangeable objects apart")]
    FinerIdentity,
    /// The nodes of interchangeable entities must be told apart.
    #[error("the invariant tells nodes apart")]
    FinerNodes,
    /// The expression relates what is not linear.
    #[error("{0} of something that depends on the future is not supported")]
    NotLinear(String),
    /// A kind was not read.
    #[error("{0}")]
    Unknown(String),
    /// The terms outgrew their limits.
    #[error(transparent)]
    Term(#[from] TermError),
}

type Answer = Result<Sym, Refusal>;

/// Evaluates expressions over a scene.
pub struct Evaluator<'e, 's, 'a> {
    /// The scene; groups are added to it as they are read.
    pub scene: &'e mut Scene<'s, 'a>,
    globals: Env<'e>,
    compiled: &'e CompiledInvariant,
    /// The values of those of them that something has read.
    known_lets: Vec<(&'e str, Sym)>,
    locals: Vec<(Str, Sym)>,
    /// What may become of the object that was asked about last, mostly the instance.
    pub(crate) last_fates: Option<(Arc<Object>, Fates)>,
}

/// The alternatives of one object: how many times (0 or 1) each fate, and the object in it.
pub(crate) type Fates = Rc<[(Int, Option<Member>)]>;

impl<'e, 's, 'a> Evaluator<'e, 's, 'a>
where
    's: 'e,
    'a: 'e,
{
    /// An evaluator over `scene` whose other variables (the instance, request, params, time) are in `globals`.
    pub fn new(scene: &'e mut Scene<'s, 'a>, globals: Env<'e>, compiled: &'e CompiledInvariant) -> Self {
        Self { scene, globals, compiled, known_lets: Vec::new(), locals: Vec::new(), last_fates: None }
    }

    /// The value of an expression in all futures.
    pub fn eval(&mut self, expr: &Expr) -> Answer {
        steps::count(1);
        steps::check().map_err(TermError::from)?;
        match &expr.node {
            Node::Const(value) => return Ok(Sym::Known(value.clone())),
            Node::Var(name) => return self.var(name),
            // what one side decides, or a branch that is not taken, is not evaluated
            Node::Not(_) | Node::And(..) | Node::Or(..) | Node::Cond { .. } => return self.checked(expr),
            _ => {}
        }
        let keeps = self.locals.is_empty();
        if let Some(known) = keeps.then(|| self.scene.kept(expr)).flatten() {
            return Ok(known);
        }
        let asked = if keeps { None } else { self.scene.asked(expr, &self.locals, self.compiled) };
        if let Some(known) = asked.as_ref().and_then(|asked| self.scene.known_of(asked)) {
            return Ok(Sym::Known(known));
        }
        // what names the future itself is asked part by part, whatever else it names
        let sym = if !expr.names(World::Now.name(), &BTreeSet::new()) && self.ground(expr)? {
            let sym = self.concrete(expr)?;
            let CompiledInvariant { for_each, lets_of_future, lets_of_instance, .. } = self.compiled;
            if keeps && !expr.names(World::Now.name(), lets_of_future) {
                let shared = !expr.names(&for_each.var, lets_of_instance);
                self.scene.keep(expr, sym.clone(), shared);
            }
            sym
        } else {
            self.checked(expr)?
        };
        if let (Some(asked), Sym::Known(value)) = (asked, &sym) {
            self.scene.keep_of(asked, value.clone());
        }
        Ok(sym)
    }

    /// The value of an expression by its parts.
    fn checked(&mut self, expr: &Expr) -> Answer {
        let sym = self.node(expr)?;
        match &sym {
            Sym::Truth(t) if t.yes.size() > TERM_NODES_MAX => Err(TermError::TooLarge { nodes: t.yes.size() }.into()),
            Sym::Error(error) => check_absence(error).map(|()| sym),
            _ => Ok(sym),
        }
    }

    /// When an expression that must be Boolean is true and when it is false.
    pub fn truth(&mut self, expr: &Expr) -> Result<Truth, Refusal> {
        Ok(self.eval(expr)?.as_truth())
    }

    fn node(&mut self, expr: &Expr) -> Answer {
        match &expr.node {
            Node::Const(value) => Ok(Sym::Known(value.clone())),
            Node::Var(name) => self.var(name),
            Node::Select { base, .. } | Node::HasField { base, .. } | Node::OptSelect { base, .. } => {
                self.access(expr, base)
            }
            Node::Index { base, index } | Node::OptIndex { base, index } => {
                let index_ground = self.ground(index)?;
                if index_ground { self.access(expr, base) } else { Err(not_linear("an index")) }
            }
            Node::Call { func, args } => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.eval(arg)?);
                }
                self.call(*func, values)
            }
            Node::Not(a) => Ok(condition(self.truth(a)?.not())),
            Node::And(a, b) => {
                let left = self.side(a, b, |truth| truth.no.is_true())?;
                if left.no.is_true() {
                    return Ok(Sym::Known(Value::Bool(false)));
                }
                let right = self.truth(b)?;
                Ok(condition(left.and(&right)))
            }
            Node::Or(a, b) => {
                let left = self.side(a, b, |truth| truth.yes.is_true())?;
                if left.yes.is_true() {
                    return Ok(Sym::Known(Value::Bool(true)));
                }
                let right = self.truth(b)?;
                Ok(condition(left.or(&right)))
            }
            Node::Cond { cond, then, otherwise } => {
                let cond = self.truth(cond)?;
                match cond.constant() {
                    Some(true) => return self.eval(then),
                    Some(false) => return self.eval(otherwise),
                    None => {}
                }
                let failed = no_condition();
                if cond.fails().is_true() {
                    return Ok(Sym::Error(failed));
                }
                let alternatives = vec![
                    (cond.yes.clone(), self.eval(then)?),
                    (cond.no.clone(), self.eval(otherwise)?),
                    (cond.fails(), Sym::Error(failed)),
                ];
                Ok(Sym::choice(alternatives, &self.scene.vars)?)
            }
            Node::List(elements) => {
                let (mut items, mut fails) = (Vec::new(), Vec::new());
                for element in elements {
                    if element.optional {
                        return Err(not_linear("an optional element"));
                    }
                    let value = self.eval(&element.value)?;
                    fails.push(value.fails());
                    items.push(Item { count: Int::constant(1), value });
                }
                self.unless(Bool::or(fails), Sym::Bag(items))
            }
            Node::Let { var, init, body } => {
                let value = self.eval(init)?;
                self.with(var, value, |e| e.eval(body))
            }
            Node::Map(_) => Err(not_linear("a map")),
            Node::OptMap { .. } => Err(not_linear("optMap")),
            Node::Comprehension { kind, range, vars, filter, body } => {
                let range = self.eval(range)?;
                self.comprehend(*kind, range, vars, filter.as_deref(), body)
            }
        }
    }

    /// One side of a conjunction or disjunction; where it reads what was not read, the other side if that decides.
    fn side(&mut self, one: &Expr, other: &Expr, decides: impl Fn(&Truth) -> bool) -> Result<Truth, Refusal> {
        match self.truth(one) {
            Err(Refusal::Unknown(why)) => self.truth(other).ok().filter(decides).ok_or(Refusal::Unknown(why)),
            truth => truth,
        }
    }

    /// What a name stands for, if it is a `let`.
    fn named(&self, name: &str) -> Option<&'e (Str, Expr)> {
        self.compiled.lets.iter().find(|(known, _)| **known == *name)
    }

    fn var(&mut self, name: &str) -> Answer {
        if let Some((_, value)) = self.locals.iter().rev().find(|(local, _)| **local == *name) {
            return Ok(value.clone());
        }
        if let Some((_, value)) = self.known_lets.iter().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        if let Some((name, expr)) = self.named(name) {
            // a let sees no locals
            let locals = std::mem::take(&mut self.locals);
            let value = self.eval(expr);
            self.locals = locals;
            let value = value?;
            self.known_lets.push((name, value.clone()));
            return Ok(value);
        }
        match self.globals.get(name) {
            Some(Ok(value)) => Ok(Sym::Known(value.clone())),
            Some(Err(error)) => check_absence(error).map(|()| Sym::Error(error.clone())),
            None => Ok(Sym::Error(EvalErrorKind::Unbound(name.to_string()).into())),
        }
    }

    fn with<T>(
        &mut self,
        var: &Str,
        value: Sym,
        run: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.locals.push((var.clone(), value));
        let result = run(self);
        self.locals.pop();
        result
    }

    // --- what does not depend on the future

    /// Whether an expression has the same value in every future, its variables given; evaluates lets on the way.
    fn ground(&mut self, expr: &Expr) -> Result<bool, Refusal> {
        for name in expr.free() {
            if **name == *World::Now.name() && !self.locals.iter().any(|(local, _)| local == name) {
                return Ok(false);
            }
            match self.var(name) {
                Ok(Sym::Known(_) | Sym::Member(_)) => {}
                // what was not read matters only where nothing else decides
                Ok(_) | Err(Refusal::Unknown(_)) => return Ok(false),
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(true)
    }

    /// Evaluates a ground expression.
    fn concrete(&mut self, expr: &Expr) -> Answer {
        for (name, value) in &self.locals {
            if let Sym::Member(member) = value {
                self.allow_reading(expr, name, member)?;
            }
        }
        let mut env = Env::within(&self.globals);
        let locals = self.locals.iter().map(|(name, value)| (&**name, value));
        for (name, value) in self.known_lets.iter().map(|(name, value)| (*name, value)).chain(locals) {
            if let Some(value) = value.value() {
                env.bind(name, Ok(value));
            }
        }
        match eval(expr, &env) {
            Ok(value) => Ok(Sym::Known(value)),
            Err(error) => {
                check_absence(&error)?;
                Ok(Sym::Error(error))
            }
        }
    }

    /// Refuses to read what tells the members of a class apart.
    fn allow_reading(&self, expr: &Expr, name: &str, member: &Member) -> Result<(), Refusal> {
        self.allow(reading(expr, name, &|func| self.called_on(func, member)), member)
    }

    /// Refuses what tells the members of a class apart.
    pub(crate) fn allow(&self, read: Reading, member: &Member) -> Result<(), Refusal> {
        match read {
            Reading::Common => Ok(()),
            Reading::Node => self.allow_node(member),
            Reading::Identity => self.allow_identity(member),
        }
    }

    /// What a function reads of the member that it is called on, where it asks nothing of the future.
    pub(crate) fn called_on(&self, func: Func, member: &Member) -> Reading {
        let relations = relations(func);
        match relations.tells {
            Tells::Nothing => Reading::Common,
            // of pods that differ in their names only, each refers to something of its own
            Tells::OwnNames if !names_its_own(&member.object) => Reading::Common,
            // the state before has none of those that are not made yet: to look one up fails for each alike
            Tells::NothingSwapped
                if matches!(relations.source, Source::Presence | Source::Itself) && self.is_not_made(member) =>
            {
                Reading::Common
            }
            Tells::Nodes => Reading::Node,
            Tells::OwnNames | Tells::NothingSwapped | Tells::Identity => Reading::Identity,
        }
    }

    /// Whether it stands for pods that the state before has none of.
    fn is_not_made(&self, member: &Member) -> bool {
        let Some(((group, class), _)) = member.fate else { return false };
        let group = self.scene.encoded_groups().get(group);
        group.is_some_and(|group| group.is_new_to(class, self.scene.before))
    }

    /// Refuses to read the node of what stands for several: pods on other nodes, or a new pod that several admit.
    pub(crate) fn allow_node(&self, member: &Member) -> Result<(), Refusal> {
        let Some(class) = member.fate.and_then(|(class, _)| self.scene.class(class)) else { return Ok(()) };
        let new = class.fates.iter().any(|f| f.kind >= FateKind::NewUnready);
        if (class.total > 1 || new) && !self.scene.grain.nodes { Err(Refusal::FinerNodes) } else { Ok(()) }
    }

    /// Refuses to read the name, or all, of what stands for several.
    pub(crate) fn allow_identity(&self, member: &Member) -> Result<(), Refusal> {
        let several = member.fate.and_then(|(class, _)| self.scene.class(class)).is_some_and(|c| c.total > 1);
        if several { Err(Refusal::FinerIdentity) } else { self.allow_node(member) }
    }

    /// A field access whose base depends on the future: by each of the base's alternatives.
    fn access(&mut self, expr: &Expr, base: &Expr) -> Answer {
        let base_value = self.eval(base)?;
        static SLOT: LazyLock<Str> = LazyLock::new(|| "\u{1}base".into());
        let stand_in = Box::new(Expr::new(Node::Var(SLOT.clone()), base.ty.clone(), base.span));
        let node = match &expr.node {
            Node::Select { field, .. } => Node::Select { base: stand_in, field: field.clone() },
            Node::HasField { field, .. } => Node::HasField { base: stand_in, field: field.clone() },
            Node::OptSelect { field, .. } => Node::OptSelect { base: stand_in, field: field.clone() },
            Node::Index { index, .. } => Node::Index { base: stand_in, index: index.clone() },
            Node::OptIndex { index, .. } => Node::OptIndex { base: stand_in, index: index.clone() },
            _ => return Err(not_linear("this access")),
        };
        let rebased = Expr::new(node, expr.ty.clone(), expr.span);
        self.over(base_value, |e, value| match value {
            Sym::Known(_) | Sym::Member(_) => e.with(&SLOT, value, |e| e.concrete(&rebased)),
            Sym::Error(_) => Ok(value),
            _ => Err(not_linear("a field")),
        })
    }

    /// Applies `run` to each alternative of a value.
    pub(crate) fn over(&mut self, value: Sym, mut run: impl FnMut(&mut Self, Sym) -> Answer) -> Answer {
        match value {
            Sym::Choice(alternatives) => {
                let mut results = Vec::with_capacity(alternatives.len());
                for (guard, alternative) in alternatives {
                    results.push((guard, run(self, alternative)?));
                }
                Ok(Sym::choice(results, &self.scene.vars)?)
            }
            other => run(self, other),
        }
    }

    fn comprehend(
        &mut self,
        kind: Comprehension,
        range: Sym,
        names: &(Str, Option<Str>),
        filter: Option<&Expr>,
        body: &Expr,
    ) -> Answer {
        if names.1.is_some() {
            return Err(not_linear("a comprehension with two variables"));
        }
        let name = &names.0;
        self.over(range, |e, range| {
            let items = match range {
                Sym::Error(_) => return Ok(range),
                other => e.items(other)?,
            };
            e.items_comprehend(kind, items, name, filter, body)
        })
    }

    fn items_comprehend(
        &mut self,
        kind: Comprehension,
        items: Vec<Item>,
        name: &Str,
        filter: Option<&Expr>,
        body: &Expr,
    ) -> Answer {
        let mut decided = Truth::known(kind == Comprehension::All);
        let mut kept: Vec<Item> = Vec::new();
        let mut fails: Vec<Bool> = Vec::new();
        let zero = Int::constant(0);
        for mut item in items {
            let there = Bool::ge(&item.count, &Int::constant(1), &self.scene.vars)?;
            if there.is_false() {
                continue;
            }
            if matches!(item.value, Sym::Open) {
                if kind != Comprehension::Filter || !never_fails(body) {
                    return Err(not_linear("a comprehension"));
                }
                kept.push(Item { count: self.scene.open_count()?, value: Sym::Open });
                continue;
            }
            if let Some(filter) = filter {
                let counts = self.with(name, item.value.clone(), |e| e.truth(filter))?;
                fails.push(Bool::and([there.clone(), counts.fails()]));
                item.count = Int::ite(&counts.yes, &item.count, &zero, &self.scene.vars)?;
            }
            if matches!(kind, Comprehension::Map) {
                let value = self.with(name, item.value.clone(), |e| e.eval(body))?;
                let counted = Bool::ge(&item.count, &Int::constant(1), &self.scene.vars)?;
                fails.push(Bool::and([counted, value.fails()]));
                kept.push(Item { count: item.count, value });
                continue;
            }
            let holds = self.with(name, item.value.clone(), |e| e.truth(body))?;
            match kind {
                Comprehension::All => decided = decided.and(&Truth::of(there.not()).or(&holds)),
                Comprehension::Exists => decided = decided.or(&Truth::of(there).and(&holds)),
                Comprehension::Filter | Comprehension::ExistsOne => {
                    fails.push(Bool::and([there, holds.fails()]));
                    let count = Int::ite(&holds.yes, &item.count, &zero, &self.scene.vars)?;
                    if count.as_constant() != Some(0) {
                        kept.push(Item { count, value: item.value });
                    }
                }
                _ => return Err(not_linear("this macro")),
            }
        }
        let result = match kind {
            Comprehension::All | Comprehension::Exists => Sym::from_truth(decided),
            Comprehension::ExistsOne => {
                let count = Int::sum(kept.iter().map(|i| &i.count))?;
                Sym::truth(Bool::eq(&count, &Int::constant(1), &self.scene.vars)?)
            }
            _ => Sym::Bag(kept),
        };
        self.unless(Bool::or(fails), result)
    }

    /// A list or what is made of one: it has no value where a part of it has none.
    fn unless(&self, fails: Bool, result: Sym) -> Answer {
        let failed = Sym::Error(EvalError::invalid("a part of the list has no value"));
        Ok(Sym::choice(vec![(fails.not(), result), (fails, failed)], &self.scene.vars)?)
    }

    /// The items of a list; objects by class and fate, where the future tells them apart.
    fn items(&mut self, range: Sym) -> Result<Vec<Item>, Refusal> {
        match range {
            Sym::Bag(items) => Ok(items),
            Sym::Known(Value::List(list)) => self.known_items(&list),
            Sym::Known(Value::Map(map)) => {
                Ok(map.iter().map(|(k, _)| Item { count: Int::constant(1), value: Sym::Known(k) }).collect())
            }
            _ => Err(not_linear("a comprehension")),
        }
    }

    fn known_items(&mut self, list: &ListValue) -> Result<Vec<Item>, Refusal> {
        let values: Vec<Value> = list.iter().collect();
        let objects: Option<Vec<_>> = values.iter().map(|v| v.as_object().cloned()).collect();
        match objects {
            Some(objects) if !objects.is_empty() => self.by_fate(objects),
            _ => Ok(values.into_iter().map(|v| Item { count: Int::constant(1), value: Sym::Known(v) }).collect()),
        }
    }
}

/// A condition, or that it has no value in any future.
fn condition(truth: Truth) -> Sym {
    match truth.fails().is_true() {
        true => Sym::Error(no_condition()),
        false => Sym::from_truth(truth),
    }
}

fn no_condition() -> EvalError {
    EvalError::invalid("the condition has no value")
}

pub(crate) fn not_linear(what: &str) -> Refusal {
    Refusal::NotLinear(what.to_owned())
}

/// An error that is not CEL's own ends the question.
pub(crate) fn check_absence(error: &EvalError) -> Result<(), Refusal> {
    match &error.kind {
        EvalErrorKind::UnknownKind(_)
        | EvalErrorKind::Unread(_)
        | EvalErrorKind::Hidden
        | EvalErrorKind::Dropped(..)
        | EvalErrorKind::Steps(_) => Err(Refusal::Unknown(error.to_string())),
        EvalErrorKind::Spent(spent) => Err(TermError::from(*spent).into()),
        _ => Ok(()),
    }
}
