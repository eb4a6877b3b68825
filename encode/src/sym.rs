//! A value in all futures at once: known, a term, or one of several under exclusive guards.

use std::sync::Arc;

use suture_model::object::Object;
use suture_specs::error::EvalError;
use suture_specs::value::Value;

use crate::class::ClassId;
use crate::term::{Bool, Int, TermError, Vars};

/// A symbolic value.
#[derive(Clone, Debug)]
pub enum Sym {
    /// The same in every future.
    Known(Value),
    /// An object as it is in the fate that its class met; any one of the class.
    Member(Member),
    /// A Boolean; where neither holds, evaluating it fails.
    Truth(Truth),
    /// An integer.
    Int(Int),
    /// A list without order: each item so many times.
    Bag(Vec<Item>),
    /// Any object: one of a list of which a part is left open ([`crate::scene::Scene::leaving_rest_open`]).
    Open,
    /// One of these, by guards that exclude one another and leave nothing out.
    Choice(Vec<(Bool, Sym)>),
    /// No value.
    Error(EvalError),
}

/// An object that stands for those of its class that met one fate.
#[derive(Clone, Debug)]
pub struct Member {
    /// The object.
    pub object: Arc<Object>,
    /// Its class and the index of its fate; `None` when it simply stays.
    pub fate: Option<(ClassId, usize)>,
}

/// When a Boolean is true and when it is false.
#[derive(Clone, Debug)]
pub struct Truth {
    /// It is true.
    pub yes: Bool,
    /// It is false.
    pub no: Bool,
    /// Whether it is one or the other by how it was made.
    is_total: bool,
}

/// An item of a bag.
#[derive(Clone, Debug)]
pub struct Item {
    /// How many times it is there, never less than zero.
    pub count: Int,
    /// What it is.
    pub value: Sym,
}

impl Truth {
    /// A Boolean that never fails.
    pub fn of(yes: Bool) -> Self {
        Self { no: yes.not(), yes, is_total: true }
    }

    /// A Boolean that may fail: where it is neither.
    pub fn partial(yes: Bool, no: Bool) -> Self {
        Self { yes, no, is_total: false }
    }

    /// A constant.
    pub fn known(value: bool) -> Self {
        Self::of(Bool::truth(value))
    }

    /// A Boolean that always fails.
    pub fn error() -> Self {
        Self::partial(Bool::truth(false), Bool::truth(false))
    }

    /// When it fails.
    pub fn fails(&self) -> Bool {
        match self.is_total {
            true => Bool::truth(false),
            false => Bool::or([self.yes.clone(), self.no.clone()]).not(),
        }
    }

    /// The negation.
    #[must_use]
    pub fn not(&self) -> Self {
        Self { yes: self.no.clone(), no: self.yes.clone(), is_total: self.is_total }
    }

    /// Conjunction; one false decides.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            yes: Bool::and([self.yes.clone(), other.yes.clone()]),
            no: Bool::or([self.no.clone(), other.no.clone()]),
            is_total: self.is_total && other.is_total,
        }
    }

    /// Disjunction; one true decides.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        self.not().and(&other.not()).not()
    }

    /// The constant it is, if it is one.
    pub fn constant(&self) -> Option<bool> {
        if self.yes.is_true() {
            Some(true)
        } else if self.no.is_true() {
            Some(false)
        } else {
            None
        }
    }
}

impl Sym {
    /// A Boolean term.
    pub fn truth(yes: Bool) -> Self {
        Self::from_truth(Truth::of(yes))
    }

    /// A Boolean, known if it is constant.
    pub fn from_truth(truth: Truth) -> Self {
        match truth.constant() {
            Some(value) => Self::Known(Value::Bool(value)),
            None => Self::Truth(truth),
        }
    }

    /// An integer, known if it is constant.
    pub fn int(int: Int) -> Self {
        match int.as_constant() {
            Some(value) => Self::Known(Value::Int(value)),
            None => Self::Int(int),
        }
    }

    /// The concrete value, where this is one: a member is the object that it stands for.
    pub fn value(&self) -> Option<Value> {
        match self {
            Self::Known(value) => Some(value.clone()),
            Self::Member(member) => Some(Value::Object(member.object.clone())),
            _ => None,
        }
    }

    /// The integer term of an integer.
    pub fn as_int(&self) -> Option<Int> {
        match self {
            Self::Known(Value::Int(i)) => Some(Int::constant(*i)),
            Self::Int(int) => Some(int.clone()),
            _ => None,
        }
    }

    /// When it has no value.
    pub fn fails(&self) -> Bool {
        match self {
            Self::Error(_) => Bool::truth(true),
            Self::Truth(truth) => truth.fails(),
            Self::Choice(parts) => Bool::or(parts.iter().map(|(g, part)| Bool::and([g.clone(), part.fails()]))),
            Self::Known(_) | Self::Member(_) | Self::Int(_) | Self::Bag(_) | Self::Open => Bool::truth(false),
        }
    }

    /// As a Boolean: anything but one fails.
    pub fn as_truth(&self) -> Truth {
        match self {
            Self::Known(Value::Bool(b)) => Truth::known(*b),
            Self::Truth(truth) => truth.clone(),
            Self::Choice(alternatives) => {
                let parts: Vec<(Bool, Truth)> = alternatives.iter().map(|(g, s)| (g.clone(), s.as_truth())).collect();
                Truth::partial(
                    Bool::or(parts.iter().map(|(g, t)| Bool::and([g.clone(), t.yes.clone()]))),
                    Bool::or(parts.iter().map(|(g, t)| Bool::and([g.clone(), t.no.clone()]))),
                )
            }
            _ => Truth::error(),
        }
    }

    /// One of several under exclusive and exhaustive guards, simplified: alternatives that cannot be are dropped,
    /// Booleans, integers and bags are merged into one.
    pub fn choice(alternatives: Vec<(Bool, Self)>, vars: &Vars) -> Result<Self, TermError> {
        let mut flat: Vec<(Bool, Self)> = Vec::new();
        for (guard, value) in alternatives {
            if guard.is_false() {
                continue;
            }
            match value {
                Self::Choice(inner) => {
                    flat.extend(inner.into_iter().map(|(g, v)| (Bool::and([guard.clone(), g]), v)));
                }
                other => flat.push((guard, other)),
            }
        }
        flat.retain(|(guard, _)| !guard.is_false());
        if let Some((_, only)) = flat.iter().find(|(guard, _)| guard.is_true()) {
            return Ok(only.clone());
        }
        if flat.iter().all(|(_, v)| matches!(v, Self::Known(Value::Bool(_)) | Self::Truth(_) | Self::Error(_)))
            && flat.iter().any(|(_, v)| !matches!(v, Self::Error(_)))
        {
            return Ok(Self::from_truth(Self::Choice(flat).as_truth()));
        }
        let (failing, fine): (Vec<_>, Vec<_>) = flat.into_iter().partition(|(_, v)| matches!(v, Self::Error(_)));
        let merged = merge(&fine, vars)?;
        let Some(merged) = merged else { return Ok(Self::Choice(fine.into_iter().chain(failing).collect())) };
        if failing.is_empty() {
            return Ok(merged);
        }
        let guard = Bool::or(fine.into_iter().map(|(g, _)| g));
        Ok(Self::Choice([(guard, merged)].into_iter().chain(failing).collect()))
    }
}

/// The last result of a function, which mostly is the next one as well: items of one list tend to be there equally often.
pub(crate) struct Last<K, V>(Option<(K, V)>);

impl<K, V> Default for Last<K, V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K: PartialEq, V: Clone> Last<K, V> {
    /// Of this argument.
    pub fn of<E>(&mut self, key: K, work: impl FnOnce(&K) -> Result<V, E>) -> Result<V, E> {
        if let Some((_, value)) = self.0.as_ref().filter(|(known, _)| *known == key) {
            return Ok(value.clone());
        }
        let value = work(&key)?;
        self.0 = Some((key, value.clone()));
        Ok(value)
    }
}

/// Integers and bags under exclusive guards as one; `None` when they are neither.
fn merge(alternatives: &[(Bool, Sym)], vars: &Vars) -> Result<Option<Sym>, TermError> {
    if alternatives.is_empty() {
        return Ok(None);
    }
    let zero = Int::constant(0);
    let ints: Option<Vec<Int>> = alternatives.iter().map(|(_, v)| v.as_int()).collect();
    if let Some(ints) = ints {
        let mut sum = zero;
        for ((guard, _), int) in alternatives.iter().zip(&ints) {
            sum = sum.add(&Int::ite(guard, int, &Int::constant(0), vars)?)?;
        }
        return Ok(Some(Sym::int(sum)));
    }
    let mut items = Vec::new();
    for (guard, value) in alternatives {
        let part = match value {
            Sym::Bag(part) => part.clone(),
            Sym::Known(Value::List(list)) => {
                list.iter().map(|v| Item { count: Int::constant(1), value: Sym::Known(v) }).collect()
            }
            _ => return Ok(None),
        };
        let mut guarded = Last::default();
        for Item { count, value } in part {
            items.push(Item { count: guarded.of(count, |count| Int::ite(guard, count, &zero, vars))?, value });
        }
    }
    Ok(Some(Sym::Bag(items)))
}
