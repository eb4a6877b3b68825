//! The concrete evaluator: CEL's semantics on the IR. Errors are values: `&&`, `||`, `all` and `exists` give the answer
//! that one side decides, whatever becomes of the other, in either order.

use std::cell::RefCell;
use std::collections::BTreeMap;

use suture_model::steps;
use suture_model::value::Str;

use crate::about_locals::{AboutLocals, Asked, InstanceNames};
use crate::access;
use crate::error::{EvalError, EvalErrorKind};
use crate::functions::{Answer, Class, Func, Worlds, call_nav, call_pure, kept};
use crate::ir::{Comprehension, Element, Entry, Expr, Node, Type};
use crate::value::{ListValue, MapKey, MapValue, Value, World};

/// How many steps (nodes evaluated, items copied or compared) one evaluation may take: a filter over the 150,000 pods of
/// the largest cluster takes a few million, which is well under a second; a loop over pairs of them is stopped.
pub const STEPS_MAX: u64 = 20_000_000;

/// What an expression is evaluated in: two states, and the values of its variables.
#[derive(Clone, Debug)]
pub struct Env<'a> {
    worlds: Option<Worlds<'a>>,
    /// What else is bound.
    outer: Option<&'a Env<'a>>,
    /// The few variables bound here; the last one of a name counts.
    vars: Vec<(&'a str, Answer)>,
    steps_max: u64,
    shared: Option<Shared<'a>>,
}

/// Where values are kept that are the same for all instances of an invariant.
#[derive(Clone, Copy, Debug)]
struct Shared<'a> {
    instance: InstanceNames<'a>,
    kept: &'a RefCell<AboutLocals>,
}

impl<'a> Env<'a> {
    /// An environment with the states `before` and `now`.
    pub fn new(worlds: Worlds<'a>) -> Self {
        let mut env = Self { worlds: Some(worlds), ..Self::without_worlds() };
        env.bind(World::Before.name(), Ok(Value::World(World::Before)));
        env.bind(World::Now.name(), Ok(Value::World(World::Now)));
        env
    }

    /// An environment without a cluster, for adapters.
    pub fn without_worlds() -> Self {
        Self { worlds: None, outer: None, vars: Vec::new(), steps_max: STEPS_MAX, shared: None }
    }

    /// An environment in which all that `outer` binds has its value, unless it is bound anew.
    pub fn within(outer: &'a Self) -> Self {
        let Self { worlds, steps_max, .. } = *outer;
        Self { worlds, outer: Some(outer), vars: Vec::new(), steps_max, shared: None }
    }

    /// This environment with another limit on the steps of one evaluation.
    #[must_use]
    pub fn limited_to(self, steps_max: u64) -> Self {
        Self { steps_max, ..self }
    }

    /// This environment for expressions of an invariant, whose values over items of lists are kept for all its instances. The
    /// states stay where they are in memory as long as these are kept, and so do the request and the time.
    #[must_use]
    pub fn sharing(self, instance: InstanceNames<'a>, kept: &'a RefCell<AboutLocals>) -> Self {
        Self { shared: Some(Shared { instance, kept }), ..self }
    }

    /// Binds a variable to a value, or to the error that computing it gave: only an expression that reads it fails.
    pub fn bind(&mut self, name: &'a str, value: Answer) {
        self.vars.push((name, value));
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&Answer> {
        let here = self.vars.iter().rev().find(|(bound, _)| *bound == name).map(|(_, value)| value);
        here.or_else(|| self.outer?.get(name))
    }

    /// The states.
    pub fn worlds(&self) -> Option<&Worlds<'a>> {
        self.worlds.as_ref()
    }
}

/// The value of an expression.
///
/// # Errors
/// When it has none; the error says where and why.
pub fn eval(expr: &Expr, env: &Env) -> Answer {
    Evaluator { env, locals: Vec::new(), steps: 0 }.eval(expr)
}

/// The value of an expression that must be a Boolean.
///
/// # Errors
/// When it has none, or is no Boolean.
pub fn eval_bool(expr: &Expr, env: &Env) -> Result<bool, EvalError> {
    eval(expr, env).and_then(|value| as_bool(&value).map_err(|e| e.at(expr.span)))
}

fn as_bool(value: &Value) -> Result<bool, EvalError> {
    value.as_bool().ok_or_else(|| access::mismatch("a bool", value))
}

struct Evaluator<'e, 'a> {
    env: &'e Env<'a>,
    locals: Vec<(Str, Value)>,
    steps: u64,
}

impl<'e, 'a: 'e> Evaluator<'e, 'a> {
    fn charge(&mut self, taken: u64) -> Result<(), EvalError> {
        steps::count(taken);
        steps::check().map_err(EvalErrorKind::from)?;
        self.steps = self.steps.saturating_add(taken);
        let max = self.env.steps_max;
        if self.steps > max { Err(EvalErrorKind::Steps(max).into()) } else { Ok(()) }
    }

    fn eval(&mut self, expr: &Expr) -> Answer {
        self.charge(1)?;
        let asked = self.asked(expr);
        if let Some(known) = asked.as_ref().and_then(|(shared, asked)| shared.kept.borrow().find(asked)) {
            return Ok(known);
        }
        let mut answer = self.node(expr).and_then(kept);
        if let Err(error) = &mut answer {
            error.span.get_or_insert(expr.span);
        }
        if let (Some((shared, asked)), Ok(value)) = (asked, &answer) {
            shared.kept.borrow_mut().keep(asked, value.clone());
        }
        answer
    }

    /// What an expression over items asks whose value is kept for all instances.
    fn asked(&self, expr: &Expr) -> Option<(Shared<'e>, Asked)> {
        let shared = self.env.shared.filter(|_| !self.locals.is_empty() && AboutLocals::is_over_items(expr))?;
        let now = self.env.worlds.map(|worlds| std::ptr::from_ref(worlds.now) as usize)?;
        let about = || AboutLocals::named(expr, shared.instance, self.locals.iter().map(|(name, _)| name));
        let value = |name: &str| {
            let local = self.locals.iter().rev().find(|(local, _)| **local == *name);
            local.map(|(_, value)| value.clone())
        };
        let asked = shared.kept.borrow_mut().asked((now, std::ptr::from_ref(expr) as usize), about, value)?;
        Some((shared, asked))
    }

    /// Each form has a function of its own: this one recurses, and its frame holds what all of them need.
    fn node(&mut self, expr: &Expr) -> Answer {
        match &expr.node {
            Node::Const(value) => Ok(value.clone()),
            Node::Var(name) => self.var(name),
            Node::Select { .. } => self.select(expr),
            Node::HasField { base, field } => self.has_field(base, field),
            Node::OptSelect { base, field } => self.opt_select(base, field, &expr.ty),
            Node::Index { base, index } => self.index(base, index, &expr.ty, access::index),
            Node::OptIndex { base, index } => self.index(base, index, &expr.ty, access::opt_index),
            Node::Call { func, args } => self.call(*func, args),
            Node::Not(a) => self.not(a),
            Node::And(a, b) => self.decide(a, b, false),
            Node::Or(a, b) => self.decide(a, b, true),
            Node::Cond { cond, then, otherwise } => self.conditional(cond, then, otherwise),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Let { var, init, body } => self.bind(var, init, body),
            Node::OptMap { base, var, body, flat } => self.opt_map(base, var, body, *flat),
            Node::Comprehension { kind, range, vars, filter, body } => {
                self.comprehension(*kind, range, vars, filter.as_deref(), body)
            }
        }
    }

    fn opt_select(&mut self, base: &Expr, field: &str, ty: &Type) -> Answer {
        access::opt_select(&self.eval(base)?, field, ty)
    }

    fn index(&mut self, base: &Expr, at: &Expr, ty: &Type, access: fn(&Value, &Value, &Type) -> Answer) -> Answer {
        access(&self.eval(base)?, &self.eval(at)?, ty)
    }

    fn not(&mut self, a: &Expr) -> Answer {
        as_bool(&self.eval(a)?).map(|b| Value::Bool(!b))
    }

    fn conditional(&mut self, cond: &Expr, then: &Expr, otherwise: &Expr) -> Answer {
        let holds = as_bool(&self.eval(cond)?)?;
        self.eval(if holds { then } else { otherwise })
    }

    fn list(&mut self, elements: &[Element]) -> Answer {
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            match (self.eval(&element.value)?, element.optional) {
                (value, false) => items.push(value),
                (Value::Optional(inner), true) => items.extend(inner.map(|v| (*v).clone())),
                (value, true) => return Err(access::mismatch("an optional", &value)),
            }
        }
        Ok(Value::list(items))
    }

    fn map(&mut self, entries: &[Entry]) -> Answer {
        let mut map = BTreeMap::new();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            match (self.eval(&entry.value)?, entry.optional) {
                (value, false) => insert(&mut map, &key, value)?,
                (Value::Optional(None), true) => {}
                (Value::Optional(Some(value)), true) => insert(&mut map, &key, (*value).clone())?,
                (value, true) => return Err(access::mismatch("an optional", &value)),
            }
        }
        Ok(Value::map(map))
    }

    fn bind(&mut self, var: &Str, init: &Expr, body: &Expr) -> Answer {
        let value = self.eval(init)?;
        self.with(var, value, body)
    }

    fn opt_map(&mut self, base: &Expr, var: &Str, body: &Expr, flat: bool) -> Answer {
        match self.eval(base)? {
            Value::Optional(None) => Ok(Value::none()),
            Value::Optional(Some(value)) => {
                let result = self.with(var, (*value).clone(), body)?;
                Ok(if flat { result } else { Value::some(result) })
            }
            other => Err(access::mismatch("an optional", &other)),
        }
    }

    fn var(&self, name: &Str) -> Answer {
        if let Some((_, value)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return Ok(value.clone());
        }
        match self.env.get(name) {
            Some(answer) => answer.clone(),
            None => Err(EvalErrorKind::Unbound(name.to_string()).into()),
        }
    }

    fn with(&mut self, var: &Str, value: Value, body: &Expr) -> Answer {
        self.locals.push((var.clone(), value));
        let result = self.eval(body);
        self.locals.pop();
        result
    }

    /// A chain of fields is read in one go: an object need not be made a map for it.
    fn select(&mut self, expr: &Expr) -> Answer {
        let (root, path) = chain(expr);
        let mut value = self.eval(root)?;
        let mut rest = path.as_slice();
        if let Value::Object(object) = &value {
            let fields: Vec<&str> = rest.iter().map(|(field, _)| *field).collect();
            if let Some((_, ty)) = rest.last() {
                return match access::object_field(object, &fields)? {
                    Some(found) if !(matches!(found, Value::Null) && **ty != Type::Any) => access::coerce(found, ty),
                    _ => Err(EvalErrorKind::NoSuchKey(first_missing(object, &fields)).into()),
                };
            }
        }
        while let [(field, ty), tail @ ..] = rest {
            self.charge(1)?;
            value = access::select(&value, field, ty)?;
            rest = tail;
        }
        Ok(value)
    }

    fn has_field(&mut self, base: &Expr, field: &str) -> Answer {
        let typed = matches!(base.ty, Type::Struct(_) | Type::Object(Some(_)));
        let (root, path) = chain(base);
        let root_value = self.eval(root)?;
        if let Value::Object(object) = &root_value {
            // the fields before the last must be there, as in CEL
            let mut fields: Vec<&str> = path.iter().map(|(field, _)| *field).collect();
            if !fields.is_empty() && access::object_field(object, &fields)?.is_none_or(|v| matches!(v, Value::Null)) {
                return Err(EvalErrorKind::NoSuchKey(first_missing(object, &fields)).into());
            }
            fields.push(field);
            let found = access::object_field(object, &fields)?;
            return Ok(Value::Bool(found.is_some_and(|v| !(typed && matches!(v, Value::Null)))));
        }
        let mut value = root_value;
        for (field, ty) in path {
            value = access::select(&value, field, ty)?;
        }
        access::has_field(&value, field, typed).map(Value::Bool)
    }

    fn call(&mut self, func: Func, args: &[Expr]) -> Answer {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(self.eval(arg)?);
        }
        self.apply(func, &values)
    }

    fn apply(&mut self, func: Func, args: &[Value]) -> Answer {
        if !func.hands_on() {
            let weight = args.iter().fold(0, |sum, a| sum + weight(a, self.env.steps_max));
            self.charge(weight)?;
        }
        let result = match (func.class(), self.env.worlds()) {
            (Class::Pure, _) => call_pure(func, args),
            (_, Some(worlds)) => call_nav(func, args, worlds),
            (_, None) => Err(EvalErrorKind::NoWorld(func.name()).into()),
        }?;
        self.charge(match &result {
            Value::List(items) => items.len() as u64,
            Value::String(s) => s.len() as u64 / 4,
            _ => 0,
        })?;
        Ok(result)
    }

    /// `a && b` for `decisive` false, `a || b` for true.
    fn decide(&mut self, a: &Expr, b: &Expr, decisive: bool) -> Answer {
        let mut failure = None;
        for side in [a, b] {
            match self.eval(side).and_then(|v| as_bool(&v).map_err(|e| e.at(side.span))) {
                Ok(value) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(_) => {}
                Err(error) if error.is_absorbable() => failure = failure.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn comprehension(
        &mut self,
        kind: Comprehension,
        range: &Expr,
        vars: &(Str, Option<Str>),
        filter: Option<&Expr>,
        body: &Expr,
    ) -> Answer {
        let range = self.eval(range)?;
        let mut fold = Fold::new(kind);
        for (first, second) in pairs(&range, vars.1.is_some())? {
            self.charge(1)?;
            let depth = self.locals.len();
            let item = first.clone();
            self.locals.push((vars.0.clone(), first.clone()));
            if let (Some(name), Some(second)) = (&vars.1, second) {
                self.locals.push((name.clone(), second));
            }
            let value = match filter.map(|f| self.eval(f).and_then(|v| as_bool(&v))) {
                None | Some(Ok(true)) => Some(self.eval(body)),
                Some(Ok(false)) => None,
                Some(Err(error)) => Some(Err(error)),
            };
            self.locals.truncate(depth);
            if let Some(value) = value
                && let Some(decided) = fold.add(item, value)
            {
                return decided;
            }
        }
        fold.finish()
    }
}

/// The expression below a chain of fields, and the fields with their types, innermost first.
fn chain(expr: &Expr) -> (&Expr, Vec<(&str, &Type)>) {
    let mut path = Vec::new();
    let mut root = expr;
    while let Node::Select { base, field } = &root.node {
        path.push((&**field, &root.ty));
        root = base;
    }
    path.reverse();
    (root, path)
}

fn first_missing(object: &suture_model::object::Object, fields: &[&str]) -> String {
    let found = (1..=fields.len()).find(|n| {
        let path = fields.get(..*n).unwrap_or_default();
        access::object_field(object, path).is_ok_and(|found| found.is_none_or(|v| matches!(v, Value::Null)))
    });
    fields.get(..found.unwrap_or(fields.len())).unwrap_or_default().join(".")
}

fn insert(map: &mut BTreeMap<MapKey, Value>, key: &Value, value: Value) -> Result<(), EvalError> {
    let Some(key) = MapKey::from_value(key) else {
        return Err(access::mismatch("a key (bool, int, uint or string)", key));
    };
    if map.contains_key(&key) {
        return Err(EvalErrorKind::DuplicateKey(key.to_value().display()).into());
    }
    map.insert(key, value);
    Ok(())
}

/// What a macro goes over: items, or keys; with two variables indexes and items, or keys and values.
fn pairs(range: &Value, two: bool) -> Result<Vec<(Value, Option<Value>)>, EvalError> {
    Ok(match range {
        Value::List(items) if two => {
            items.iter().enumerate().map(|(i, v)| (Value::Int(i64::try_from(i).unwrap_or(i64::MAX)), Some(v))).collect()
        }
        Value::List(items) => items.iter().map(|v| (v, None)).collect(),
        Value::Map(map) => map.iter().map(|(k, v)| (k, two.then_some(v))).collect(),
        other => return Err(access::mismatch("a list or a map", other)),
    })
}

/// How many parts a value has, counted no further than `limit`: what comparing or copying it costs.
fn weight(value: &Value, limit: u64) -> u64 {
    let mut total = 0;
    let mut open: Vec<Value> = Vec::new();
    let mut next = match value {
        Value::List(ListValue::Json(items)) => return items.len() as u64,
        Value::List(ListValue::Objects(items)) => return 1 + items.len() as u64,
        Value::Map(MapValue::Json(map)) => return map.len() as u64,
        Value::String(s) => return s.len() as u64 / 64,
        Value::List(_) | Value::Map(_) | Value::Optional(_) => Some(value.clone()),
        _ => return 0,
    };
    while let Some(value) = next {
        total += 1;
        if total > limit {
            return total;
        }
        match &value {
            Value::List(ListValue::Values(items)) => open.extend(items.iter().cloned()),
            Value::List(ListValue::Objects(items)) => total += items.len() as u64,
            Value::Map(MapValue::Values(map)) => open.extend(map.values().cloned()),
            Value::Optional(Some(inner)) => open.push((**inner).clone()),
            _ => {}
        }
        next = open.pop();
    }
    total
}

/// The result of a macro as it comes about.
struct Fold {
    kind: Comprehension,
    items: Vec<Value>,
    entries: BTreeMap<MapKey, Value>,
    count: u64,
    failure: Option<EvalError>,
}

impl Fold {
    fn new(kind: Comprehension) -> Self {
        Self { kind, items: Vec::new(), entries: BTreeMap::new(), count: 0, failure: None }
    }

    /// Adds the body's value for one item; the result, if that decides it.
    fn add(&mut self, item: Value, value: Answer) -> Option<Answer> {
        let value = match (self.kind, value) {
            (Comprehension::All | Comprehension::Exists, Err(error)) if error.is_absorbable() => {
                self.failure.get_or_insert(error);
                return None;
            }
            (_, Err(error)) => return Some(Err(error)),
            (_, Ok(value)) => value,
        };
        self.add_value(item, value).unwrap_or_else(|error| Some(Err(error)))
    }

    fn add_value(&mut self, item: Value, value: Value) -> Result<Option<Answer>, EvalError> {
        match self.kind {
            Comprehension::All | Comprehension::Exists => {
                let decisive = self.kind == Comprehension::Exists;
                match as_bool(&value) {
                    Ok(b) if b == decisive => return Ok(Some(Ok(Value::Bool(decisive)))),
                    Ok(_) => {}
                    Err(error) => {
                        self.failure.get_or_insert(error);
                    }
                }
            }
            Comprehension::ExistsOne => self.count += u64::from(as_bool(&value)?),
            Comprehension::Filter => {
                if as_bool(&value)? {
                    self.items.push(item);
                }
            }
            Comprehension::Map => self.items.push(value),
            Comprehension::TransformMap => insert(&mut self.entries, &item, value)?,
            Comprehension::TransformMapEntry => match &value {
                Value::Map(map) => {
                    for (k, v) in map.iter() {
                        insert(&mut self.entries, &k, v)?;
                    }
                }
                other => return Err(access::mismatch("a map", other)),
            },
        }
        Ok(None)
    }

    fn finish(self) -> Answer {
        match (self.kind, self.failure) {
            (_, Some(error)) => Err(error),
            (Comprehension::All, None) => Ok(Value::Bool(true)),
            (Comprehension::Exists, None) => Ok(Value::Bool(false)),
            (Comprehension::ExistsOne, None) => Ok(Value::Bool(self.count == 1)),
            (Comprehension::Filter | Comprehension::Map, None) => Ok(Value::list(self.items)),
            (Comprehension::TransformMap | Comprehension::TransformMapEntry, None) => Ok(Value::map(self.entries)),
        }
    }
}
