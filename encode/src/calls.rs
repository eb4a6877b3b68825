//! Calls of functions in all futures at once: one that asks for the future is navigated, one of known values is called, and
//! one of terms becomes a linear term, or is enumerated over the values that its arguments can take.

use suture_specs::error::EvalError;
use suture_specs::functions::{Comparison, Func, Worlds, call_nav};
use suture_specs::members::Members;
use suture_specs::value::{Value, World};

use crate::eval::{Evaluator, Refusal, VALUES_MAX, check_absence, not_linear};
use crate::sym::{Item, Last, Sym, Truth};
use crate::term::{Bool, Int, TermError};

type Answer = Result<Sym, Refusal>;

impl<'e, 's, 'a> Evaluator<'e, 's, 'a>
where
    's: 'e,
    'a: 'e,
{
    /// A function of values that may depend on the future.
    pub(crate) fn call(&mut self, func: Func, args: Vec<Sym>) -> Answer {
        if let Some(at) = args.iter().position(|a| matches!(a, Sym::Choice(_))) {
            let Some(Sym::Choice(alternatives)) = args.get(at).cloned() else { return Err(not_linear(func.name())) };
            let mut results = Vec::with_capacity(alternatives.len());
            for (guard, alternative) in alternatives {
                let mut chosen = args.clone();
                if let Some(place) = chosen.get_mut(at) {
                    *place = alternative;
                }
                results.push((guard, self.call(func, chosen)?));
            }
            return Ok(Sym::choice(results, &self.scene.vars)?);
        }
        if let Some(error) = args.iter().find(|a| matches!(a, Sym::Error(_))) {
            return Ok(error.clone());
        }
        let values: Option<Vec<Value>> = args.iter().map(Sym::value).collect();
        if let Some(values) = values {
            if values.iter().any(|v| matches!(v, Value::World(World::Now))) {
                return self.navigate(func, &args, &values);
            }
            for arg in &args {
                if let Sym::Member(member) = arg {
                    self.allow(self.called_on(func, member), member)?;
                }
            }
            return self.plain(func, &values);
        }
        self.symbolic(func, args)
    }

    /// A call whose arguments are all concrete and that asks nothing about the future.
    fn plain(&mut self, func: Func, values: &[Value]) -> Answer {
        let worlds = Worlds { before: self.scene.before, now: self.scene.state() };
        match call_nav(func, values, &worlds) {
            Ok(value) => Ok(Sym::Known(value)),
            Err(error) => {
                check_absence(&error)?;
                Ok(Sym::Error(error))
            }
        }
    }

    /// A call with at least one argument that is a term or a bag.
    fn symbolic(&mut self, func: Func, args: Vec<Sym>) -> Answer {
        let vars = &self.scene.vars;
        if args.iter().any(|arg| matches!(arg, Sym::Bag(_))) && !func.takes_open_lists() {
            return Err(not_linear(func.name()));
        }
        if let [a, b] = args.as_slice()
            && let (Some(x), Some(y)) = (a.as_int(), b.as_int())
        {
            if let Some(comparison) = func.comparison() {
                return Ok(Sym::truth(match comparison {
                    Comparison::Less => Bool::lt(&x, &y, vars)?,
                    Comparison::LessOrEqual => Bool::le(&x, &y, vars)?,
                    Comparison::Greater => Bool::gt(&x, &y, vars)?,
                    Comparison::GreaterOrEqual => Bool::ge(&x, &y, vars)?,
                    Comparison::Equal => Bool::eq(&x, &y, vars)?,
                    Comparison::Different => Bool::ne(&x, &y, vars)?,
                }));
            }
            if let Some(result) = arithmetic(func, &x, &y)? {
                return Ok(Sym::int(result));
            }
        }
        self.of_lists(func, args)
    }

    /// A call with a bag, or with truths or numbers that are not linear.
    fn of_lists(&mut self, func: Func, args: Vec<Sym>) -> Answer {
        match (func, args.as_slice()) {
            (Func::Size, [Sym::Bag(items)]) => return Ok(Sym::int(Int::sum(items.iter().map(|i| &i.count))?)),
            (Func::Sum, [Sym::Bag(items)]) => return self.sum(items),
            (Func::Distinct, [Sym::Bag(items)]) => return self.distinct(items),
            // the order is not kept, and nothing that is decided reads it
            (Func::Sort, [Sym::Bag(items)]) => return self.ordered(func, items).map(|_| Sym::Bag(items.clone())),
            (Func::Min | Func::Least, [Sym::Bag(items)]) => return self.extreme(func, items, false),
            (Func::Max | Func::Greatest, [Sym::Bag(items)]) => return self.extreme(func, items, true),
            (_, [Sym::Bag(_)]) => return Err(not_linear(func.name())),
            (Func::Without | Func::Add, [a, b]) => {
                if let (Some(mut a), Some(b)) = (as_bag(a), as_bag(b)) {
                    if func == Func::Without {
                        return self.without(&a, &b);
                    }
                    a.extend(b);
                    return Ok(Sym::Bag(a));
                }
            }
            (Func::Neg, [Sym::Int(x)]) => return Ok(Sym::int(x.scale(-1)?)),
            (Func::Eq | Func::Ne, [a, b]) => {
                if let Some(equal) = self.bag_equality(a, b)? {
                    let truth = Truth::of(equal);
                    return Ok(Sym::from_truth(if func == Func::Eq { truth } else { truth.not() }));
                }
                if matches!(a, Sym::Truth(_)) || matches!(b, Sym::Truth(_)) {
                    let (a, b) = (a.as_truth(), b.as_truth());
                    let same = Truth::partial(
                        Bool::or([Bool::and([a.yes.clone(), b.yes.clone()]), Bool::and([a.no.clone(), b.no.clone()])]),
                        Bool::or([Bool::and([a.yes, b.no]), Bool::and([a.no, b.yes])]),
                    );
                    return Ok(Sym::from_truth(if func == Func::Eq { same } else { same.not() }));
                }
            }
            (Func::In, [needle, Sym::Bag(items)]) => {
                let mut found = Truth::known(false);
                for item in items.clone() {
                    let there = Bool::ge(&item.count, &Int::constant(1), &self.scene.vars)?;
                    let same = self.call(Func::Eq, vec![needle.clone(), item.value])?.as_truth();
                    found = found.or(&Truth::of(there).and(&same));
                }
                return Ok(Sym::from_truth(found));
            }
            _ => {}
        }
        self.enumerate(func, args)
    }

    /// The sum of a bag of integers.
    fn sum(&mut self, items: &[Item]) -> Answer {
        let mut sum = Int::constant(0);
        for item in items {
            let value = item.value.as_int().ok_or_else(|| not_linear("a sum"))?;
            let part = match (value.as_constant(), item.count.as_constant()) {
                (Some(k), _) => item.count.scale(k)?,
                (_, Some(n)) => value.scale(n)?,
                _ => return Err(not_linear("a sum of products")),
            };
            sum = sum.add(&part)?;
        }
        Ok(Sym::int(sum))
    }

    /// The known values of a bag, each once with how often it is there.
    fn totals(&self, func: Func, items: &[Item]) -> Result<Vec<(Value, Int)>, Refusal> {
        let (mut totals, mut places): (Vec<(Value, Int)>, _) = (Vec::new(), Members::default());
        let mut add = |value: &Value, count: &Int| -> Result<(), Refusal> {
            match places.get(value).and_then(|at: &usize| totals.get_mut(*at)) {
                Some((_, total)) => *total = total.add(count)?,
                None => {
                    places.add(value, totals.len());
                    totals.push((value.clone(), count.clone()));
                }
            }
            Ok(())
        };
        let zero = Int::constant(0);
        for Item { count, value } in items {
            match value {
                Sym::Known(value) => add(value, count)?,
                Sym::Choice(parts) => {
                    for (guard, part) in parts {
                        match part {
                            Sym::Known(value) => add(value, &Int::ite(guard, count, &zero, &self.scene.vars)?)?,
                            // the list has no value there
                            Sym::Error(_) => {}
                            _ => return Err(not_linear(func.name())),
                        }
                    }
                }
                Sym::Error(_) => {}
                _ => return Err(not_linear(func.name())),
            }
        }
        Ok(totals)
    }

    /// Each value of a bag once.
    fn distinct(&self, items: &[Item]) -> Answer {
        let (one, none) = (Int::constant(1), Int::constant(0));
        let mut once = Vec::new();
        for (value, total) in self.totals(Func::Distinct, items)? {
            let there = Bool::ge(&total, &one, &self.scene.vars)?;
            let count = Int::ite(&there, &one, &none, &self.scene.vars)?;
            once.push(Item { count, value: Sym::Known(value) });
        }
        Ok(Sym::Bag(once))
    }

    /// The items of a bag that equal none of another one.
    fn without(&self, items: &[Item], others: &[Item]) -> Answer {
        let (one, none, vars) = (Int::constant(1), Int::constant(0), &self.scene.vars);
        let (mut known, mut there) = (Members::default(), Last::default());
        for (value, total) in self.totals(Func::Without, others)? {
            known.add(&value, there.of(total, |total| Bool::ge(total, &one, vars))?);
        }
        let (mut left, mut beside) = (Vec::new(), Last::default());
        for Item { count, value } in items {
            let Sym::Known(known_value) = value else { return Err(not_linear(Func::Without.name())) };
            let count = match known.get(known_value) {
                Some(there) => {
                    beside.of((there.clone(), count.clone()), |(there, count)| Int::ite(there, &none, count, vars))?
                }
                None => count.clone(),
            };
            left.push(Item { count, value: value.clone() });
        }
        Ok(Sym::Bag(left))
    }

    /// The values of a bag in ascending order, each once with how often it is there; refused where they have no order.
    fn ordered(&mut self, func: Func, items: &[Item]) -> Result<Vec<(Value, Int)>, Refusal> {
        let totals = self.totals(func, items)?;
        let values = Value::list(totals.iter().map(|(value, _)| value.clone()).collect());
        let Sym::Known(Value::List(sorted)) = self.plain(Func::Sort, &[values])? else {
            return Err(not_linear(func.name()));
        };
        let of = |value: Value| totals.iter().find(|(known, _)| *known == value).cloned();
        // not a number is not even equal to itself
        sorted.iter().map(|value| of(value).ok_or_else(|| not_linear(func.name()))).collect()
    }

    /// The smallest or the largest value of a bag: the first one that is there.
    fn extreme(&mut self, func: Func, items: &[Item], largest: bool) -> Answer {
        let mut ordered = self.ordered(func, items)?;
        if largest {
            ordered.reverse();
        }
        let (mut alternatives, mut none_yet) = (Vec::new(), Bool::truth(true));
        for (value, total) in ordered {
            let there = Bool::ge(&total, &Int::constant(1), &self.scene.vars)?;
            alternatives.push((Bool::and([none_yet.clone(), there.clone()]), Sym::Known(value)));
            none_yet = Bool::and([none_yet, there.not()]);
        }
        alternatives.push((none_yet, Sym::Error(EvalError::invalid(format!("`{func}` of an empty list")))));
        Ok(Sym::choice(alternatives, &self.scene.vars)?)
    }

    /// Whether a bag equals a list, where one of them is plainly empty.
    fn bag_equality(&mut self, a: &Sym, b: &Sym) -> Result<Option<Bool>, Refusal> {
        let (Some(a), Some(b)) = (as_bag(a), as_bag(b)) else { return Ok(None) };
        let some = match (a.is_empty(), b.is_empty()) {
            (true, _) => b,
            (_, true) => a,
            _ => return Err(not_linear("equality of lists")),
        };
        let size = Int::sum(some.iter().map(|i| &i.count))?;
        Ok(Some(Bool::le(&size, &Int::constant(0), &self.scene.vars)?))
    }

    /// A function that is not linear: by every value that its symbolic arguments can take.
    fn enumerate(&mut self, func: Func, args: Vec<Sym>) -> Answer {
        for (at, arg) in args.iter().enumerate() {
            let alternatives = match arg {
                Sym::Int(int) => {
                    let bounds = int.bounds(&self.scene.vars)?;
                    if bounds.max - bounds.min >= VALUES_MAX {
                        return Err(not_linear(func.name()));
                    }
                    let mut alternatives = Vec::new();
                    for value in bounds.min..=bounds.max {
                        let value = i64::try_from(value).map_err(|_| TermError::Overflow)?;
                        let guard = Bool::eq(int, &Int::constant(value), &self.scene.vars)?;
                        alternatives.push((guard, Sym::Known(Value::Int(value))));
                    }
                    alternatives
                }
                Sym::Truth(truth) => vec![
                    (truth.yes.clone(), Sym::Known(Value::Bool(true))),
                    (truth.no.clone(), Sym::Known(Value::Bool(false))),
                    (truth.fails(), Sym::Error(EvalError::invalid("an argument has no value"))),
                ],
                _ => continue,
            };
            let mut chosen = args.clone();
            if let Some(place) = chosen.get_mut(at) {
                *place = Sym::Choice(alternatives);
            }
            return self.call(func, chosen);
        }
        Err(not_linear(func.name()))
    }
}

fn as_bag(sym: &Sym) -> Option<Vec<Item>> {
    match sym {
        Sym::Bag(items) => Some(items.clone()),
        Sym::Known(Value::List(list)) => {
            Some(list.iter().map(|v| Item { count: Int::constant(1), value: Sym::Known(v) }).collect())
        }
        _ => None,
    }
}

/// What linear arithmetic makes of two terms, if it is linear.
fn arithmetic(func: Func, x: &Int, y: &Int) -> Result<Option<Int>, TermError> {
    Ok(match func {
        Func::Add => Some(x.add(y)?),
        Func::Sub => Some(x.sub(y)?),
        Func::Mul => match (x.as_constant(), y.as_constant()) {
            (Some(k), _) => Some(y.scale(k)?),
            (_, Some(k)) => Some(x.scale(k)?),
            _ => None,
        },
        _ => None,
    })
}
