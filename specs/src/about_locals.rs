//! Values of expressions over the items of lists, kept for all instances of an invariant that ask for the same: the sum of a
//! namespace is the same for every one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use suture_model::value::Str;

use crate::ir::{Expr, Node};
use crate::value::Value;

/// How many values are kept; nested loops have very many.
const VALUES_MAX: usize = 4_096;

/// A value of a local variable, as far as it tells values apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Local {
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

/// What is evaluated in, expression, and the values of its local variables; the first two by where they are in memory.
type At = (usize, usize, Vec<Local>);

/// The names by which an expression of an invariant is about the instance.
#[derive(Clone, Copy, Debug)]
pub struct InstanceNames<'c> {
    /// Its own.
    pub var: &'c str,
    /// Those of the `let`s that depend on it.
    pub lets: &'c BTreeSet<Str>,
}

/// The values so far. Whoever keeps them keeps what they were evaluated in, and the expressions, where they are in memory.
#[derive(Clone, Debug, Default)]
pub struct AboutLocals {
    /// The local variables of an expression; `None` where it is about the instance as well.
    locals: BTreeMap<usize, Option<Rc<[Str]>>>,
    values: BTreeMap<At, (Value, Vec<Value>)>,
}

/// An expression and the values of its local variables, in something.
#[derive(Clone, Debug)]
pub struct Asked {
    at: At,
    values: Vec<Value>,
}

impl AboutLocals {
    /// The local variables of these names that an expression of an invariant names; `None` if it is about the instance.
    pub fn named<'l>(
        expr: &Expr,
        instance: InstanceNames<'_>,
        locals: impl Iterator<Item = &'l Str>,
    ) -> Option<Rc<[Str]>> {
        let is_about_instance = expr.names(instance.var, instance.lets);
        (!is_about_instance).then(|| locals.filter(|name| expr.names(name, &BTreeSet::new())).cloned().collect())
    }

    /// Whether an expression is one whose values are kept: over the items of a list, or a function of such a one.
    pub fn is_over_items(expr: &Expr) -> bool {
        let ranges = |expr: &Expr| matches!(expr.node, Node::Comprehension { .. });
        match &expr.node {
            Node::Call { args, .. } => args.first().is_some_and(ranges),
            _ => ranges(expr),
        }
    }

    /// What an expression asks in something, both by where they are in memory: `about` lists the local variables that it names,
    /// unless it is about the instance, and `value` says what these are, as far as that is known.
    pub fn asked(
        &mut self,
        (within, expr): (usize, usize),
        about: impl FnOnce() -> Option<Rc<[Str]>>,
        value: impl Fn(&str) -> Option<Value>,
    ) -> Option<Asked> {
        let names = self.locals.entry(expr).or_insert_with(about).clone()?;
        let values = names.iter().map(|name| value(name)).collect::<Option<Vec<Value>>>()?;
        let told = values.iter().map(Local::of).collect::<Option<Vec<Local>>>()?;
        Some(Asked { at: (within, expr, told), values })
    }

    /// The value, if it is known.
    pub fn find(&self, asked: &Asked) -> Option<Value> {
        self.values.get(&asked.at).map(|(value, _)| value.clone())
    }

    /// Keeps a value, unless there are very many.
    pub fn keep(&mut self, asked: Asked, value: Value) {
        if self.values.len() < VALUES_MAX {
            self.values.insert(asked.at, (value, asked.values));
        }
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
            let value = |_: &str| Some(Value::Object(object.clone()));
            kept.asked((0, 0), || Some(Rc::from(["p".into()])), value).unwrap()
        };
        let asked = ask(&mut kept, &pod);
        kept.keep(asked, Value::Int(1));
        let asked = [&pod, &going].map(|object| ask(&mut kept, object));
        assert_eq!(asked.map(|asked| kept.find(&asked).is_some()), [true, false]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut kept = AboutLocals::default();
        for number in 0..2 * i64::try_from(VALUES_MAX).unwrap() {
            let asked = kept.asked((0, 0), || Some(Rc::from(["n".into()])), |_| Some(Value::Int(number))).unwrap();
            kept.keep(asked, Value::Int(number));
        }
        assert_eq!(kept.values.len(), VALUES_MAX);
    }
}
