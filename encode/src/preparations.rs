//! What the questions of one decision share: groups with their quotients, and values that are the same in all futures.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use suture_model::effects::{Memo, View};
use suture_model::object::Key;
use suture_model::scenario::Scenario;
use suture_model::selector::Selector;
use suture_model::value::Str;
use suture_specs::value::Value;

use crate::class::{GroupId, Prepared};
use crate::sym::Sym;

/// By scenario, namespace and selector.
type Selected = BTreeMap<(usize, Str, Selector), Rc<BTreeSet<Key>>>;

/// By scenario and expression, each by where it is in memory.
type Timeless = BTreeMap<(usize, usize), Sym>;

/// A value of a local variable, as far as it tells values apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Local {
    /// A text.
    Text(Str),
    /// An integer.
    Int(i64),
    /// An object, by where it is in memory: [`AboutLocals`] keeps it there. Another one of its name and body may be on its way out.
    Object(usize),
}

impl Local {
    /// What tells a value apart; `None` of those that are not told.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Int(number) => Some(Self::Int(*number)),
            Value::Object(object) => Some(Self::Object(Arc::as_ptr(object) as usize)),
            _ => None,
        }
    }
}

/// Scenario, expression, and the values of its local variables.
type At = (usize, usize, Vec<Local>);

/// By scenario, expression and its local variables: what it is in all futures, whichever instance asks.
#[derive(Debug, Default)]
pub(crate) struct AboutLocals {
    /// The local variables of an expression; `None` where it is about the instance as well.
    locals: BTreeMap<usize, Option<Rc<[Str]>>>,
    values: BTreeMap<At, (Value, Vec<Value>)>,
}

/// An expression and the values of its local variables in a scenario.
pub(crate) struct Asked {
    at: At,
    values: Vec<Value>,
}

impl AboutLocals {
    /// What an expression asks, with the values of these variables, the innermost last; `about` lists which of them it names, unless
    /// it is about the instance.
    pub fn asked(
        &mut self,
        (scenario, expr): (usize, usize),
        locals: &[(Str, Sym)],
        about: impl FnOnce() -> Option<Rc<[Str]>>,
    ) -> Option<Asked> {
        let names = self.locals.entry(expr).or_insert_with(about).clone()?;
        let mut values = Vec::with_capacity(names.len());
        for name in names.iter() {
            match locals.iter().rev().find(|(local, _)| local == name) {
                Some((_, Sym::Known(value))) => values.push(value.clone()),
                _ => return None,
            }
        }
        let told = values.iter().map(Local::of).collect::<Option<Vec<Local>>>()?;
        Some(Asked { at: (scenario, expr, told), values })
    }

    /// The value, if it is known.
    pub fn find(&self, asked: &Asked) -> Option<Value> {
        self.values.get(&asked.at).map(|(value, _)| value.clone())
    }

    /// Keeps a value.
    pub fn keep(&mut self, asked: Asked, value: Value) {
        self.values.insert(asked.at, (value, asked.values));
    }
}

/// Scenario, group, view and grain.
pub(crate) type Preparation = (usize, GroupId, View, bool, bool);

/// What one decision has prepared. Valid as long as the scenarios and the invariants stay where they are.
#[derive(Debug, Default)]
pub struct Preparations {
    pub(crate) groups: RefCell<BTreeMap<Preparation, Rc<Prepared>>>,
    /// What effects worked out, by scenario.
    pub(crate) memos: RefCell<BTreeMap<usize, Rc<Memo>>>,
    /// The groups of the pods that a selector means in a namespace, by scenario.
    pub(crate) selected: RefCell<Selected>,
    /// The values of expressions that ask nothing about the future nor about an instance, by scenario.
    pub(crate) shared: RefCell<Timeless>,
    /// The same of those about the instance at hand.
    pub(crate) timeless: RefCell<(Option<Key>, Timeless)>,
    /// The values of expressions about the items of lists.
    pub(crate) about_locals: RefCell<AboutLocals>,
}

impl Preparations {
    pub(crate) fn memo(&self, scenario: &Scenario<'_>) -> Rc<Memo> {
        self.memos.borrow_mut().entry(std::ptr::from_ref(scenario) as usize).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use suture_model::object::Object;
    use suture_model::value::Val;

    use super::*;

    #[test]
    fn objects_that_differ_in_their_header_only_are_asked_about_apart() {
        let fields = [("apiVersion", Val::str("v1")), ("kind", Val::str("Pod"))];
        let pod = Val::object(fields).with("metadata", Val::object([("name", Val::str("p"))]));
        let pod = Arc::new(Object::from_val(&pod).unwrap());
        let going = Arc::new(Object { in_deletion_closure: true, ..(*pod).clone() });
        let mut kept = AboutLocals::default();
        let ask = |kept: &mut AboutLocals, object: &Arc<Object>| {
            let locals = [("p".into(), Sym::Known(Value::Object(object.clone())))];
            kept.asked((0, 0), &locals, || Some(Rc::from(["p".into()]))).unwrap()
        };
        let asked = ask(&mut kept, &pod);
        kept.keep(asked, Value::Int(1));
        let asked = [&pod, &going].map(|object| ask(&mut kept, object));
        assert_eq!(asked.map(|asked| kept.find(&asked).is_some()), [true, false]);
    }
}
