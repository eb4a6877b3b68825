//! A linear sum with cases: `lin + Σ (value if guard, else 0)`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use suture_model::steps;

use super::lin::Sum;
use super::{Assignment, Bool, Bounds, Lin, TermError, VarId, Vars};

/// An integer term. At most one case per guard, no guard is a constant, no value is zero. Ordered so that terms that differ only in
/// their constant are neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Int {
    cases: Vec<(Bool, Lin)>,
    lin: Lin,
}

impl Int {
    /// A number.
    pub fn constant(value: i64) -> Self {
        Lin::constant(value).into()
    }

    /// A variable.
    pub fn var(var: VarId) -> Self {
        Lin::var(var).into()
    }

    /// `then` where the guard holds, `otherwise` elsewhere. With constant sides and a guard that only compares a two-valued
    /// variable, the result is linear in that variable.
    pub fn ite(guard: &Bool, then: &Int, otherwise: &Int, vars: &Vars) -> Result<Int, TermError> {
        if guard.is_true() || then == otherwise {
            return Ok(then.clone());
        }
        if guard.is_false() {
            return Ok(otherwise.clone());
        }
        if let (Some(a), Some(b)) = (then.as_constant(), otherwise.as_constant())
            && let Some(indicator) = guard.indicator(vars)?
        {
            let step = a.checked_sub(b).ok_or(TermError::Overflow)?;
            return Ok(Lin::constant(b).add_scaled(&indicator, step)?.into());
        }
        let mut builder = Builder::default();
        for (side, under) in [(then, guard.clone()), (otherwise, guard.not())] {
            for (inner, value) in &side.cases {
                builder.case(Bool::and([under.clone(), inner.clone()]), value, 1)?;
            }
            builder.case(under, &side.lin, 1)?;
        }
        builder.build()
    }

    /// One where the condition holds, zero elsewhere.
    pub fn from_bool(condition: &Bool, vars: &Vars) -> Result<Int, TermError> {
        Int::ite(condition, &Int::constant(1), &Int::constant(0), vars)
    }

    /// The sum of many terms.
    pub fn sum<'a>(terms: impl IntoIterator<Item = &'a Int>) -> Result<Int, TermError> {
        Int::weighted(terms.into_iter().map(|term| (term, 1)))
    }

    /// The sum of `factor · term` over many pairs.
    pub fn weighted<'a>(terms: impl IntoIterator<Item = (&'a Int, i64)>) -> Result<Int, TermError> {
        let mut builder = Builder::default();
        for (term, factor) in terms {
            builder.add(term, factor)?;
        }
        builder.build()
    }

    /// `self + other`
    pub fn add(&self, other: &Int) -> Result<Int, TermError> {
        Int::weighted([(self, 1), (other, 1)])
    }

    /// `self - other`
    pub fn sub(&self, other: &Int) -> Result<Int, TermError> {
        Int::weighted([(self, 1), (other, -1)])
    }

    /// `factor · self`
    pub fn scale(&self, factor: i64) -> Result<Int, TermError> {
        Int::weighted([(self, factor)])
    }

    /// The unconditional part.
    pub fn lin(&self) -> &Lin {
        &self.lin
    }

    /// What is added where each guard holds.
    pub fn cases(&self) -> &[(Bool, Lin)] {
        &self.cases
    }

    /// The linear sum, if there are no cases.
    pub fn as_lin(&self) -> Option<&Lin> {
        self.cases.is_empty().then_some(&self.lin)
    }

    /// The value, if it is a constant.
    pub fn as_constant(&self) -> Option<i64> {
        self.as_lin().and_then(Lin::as_constant)
    }

    /// Bounds of the value over the ranges of the variables. Guards count as independent, except a guard and its negation: no value
    /// lies outside, but the bounds need not be reached.
    pub fn bounds(&self, vars: &Vars) -> Result<Bounds, TermError> {
        self.cases.iter().try_fold(self.lin.bounds(vars)?, |total, (guard, value)| {
            let mine = value.bounds(vars)?;
            let negation = guard.not();
            let either = match self.case(&negation) {
                None => mine.or(Bounds::ZERO),
                Some(other) if *guard < negation => mine.or(other.bounds(vars)?),
                Some(_) => Bounds::ZERO,
            };
            total.plus(either)
        })
    }

    /// The value under an assignment.
    pub fn eval(&self, assignment: &Assignment) -> Result<i64, TermError> {
        self.cases.iter().try_fold(self.lin.eval(assignment)?, |sum, (guard, value)| {
            let value = if guard.eval(assignment)? { value.eval(assignment)? } else { 0 };
            sum.checked_add(value).ok_or(TermError::Overflow)
        })
    }

    /// Nodes of the written-out form, at most `u64::MAX`.
    pub fn size(&self) -> u64 {
        let lin = |lin: &Lin| lin.terms().len() as u64 + 1;
        let cases = self.cases.iter().map(|(guard, value)| guard.size().saturating_add(lin(value)));
        cases.fold(lin(&self.lin), u64::saturating_add)
    }

    /// The term where `guard` holds (or does not), with the case of its negation taken into account.
    pub(super) fn assuming(&self, guard: &Bool, holds: bool) -> Result<Int, TermError> {
        let negation = guard.not();
        let mut builder = Builder { lin: self.lin.clone().into(), cases: BTreeMap::new() };
        for (other, value) in &self.cases {
            match (other == guard, *other == negation) {
                (true, _) if holds => builder.case(Bool::truth(true), value, 1)?,
                (_, true) if !holds => builder.case(Bool::truth(true), value, 1)?,
                (false, false) => builder.case(other.clone(), value, 1)?,
                _ => {}
            }
        }
        builder.build()
    }

    /// The guard, if all cases are of one guard or its negation.
    pub(super) fn only_guard(&self) -> Option<&Bool> {
        match self.cases.as_slice() {
            [(guard, _)] => Some(guard),
            [(guard, _), (other, _)] if guard.not() == *other => Some(guard),
            _ => None,
        }
    }

    pub(super) fn without_fixed(self, vars: &Vars) -> Result<Int, TermError> {
        let mut has_fixed = self.lin.has_fixed(vars)?;
        for (_, value) in &self.cases {
            has_fixed = has_fixed || value.has_fixed(vars)?;
        }
        if !has_fixed {
            return Ok(self);
        }
        let mut builder = Builder { lin: self.lin.without_fixed(vars)?.into(), cases: BTreeMap::new() };
        for (guard, value) in &self.cases {
            builder.case(guard.clone(), &value.without_fixed(vars)?, 1)?;
        }
        builder.build()
    }

    /// The term `t` of `t ≤ 0`, divided by the greatest common divisor of everything but the constant, which is rounded up.
    pub(super) fn divided(self) -> Int {
        let coefficients = self.lin.terms().iter().map(|(_, coefficient)| *coefficient);
        let values = self
            .cases
            .iter()
            .flat_map(|(_, value)| value.terms().iter().map(|(_, coefficient)| *coefficient).chain([value.offset()]));
        let divisor = coefficients.chain(values).fold(0, |divisor, n| gcd(divisor, n.unsigned_abs()));
        match i64::try_from(divisor) {
            Ok(divisor @ 2..) => {
                // rounding up: Σ ≤ -c holds iff Σ/d ≤ floor(-c/d), and floor(-c/d) = -ceil(c/d)
                let offset = self.lin.offset();
                let up = offset.div_euclid(divisor) + i64::from(offset.rem_euclid(divisor) != 0);
                let cases = self.cases.iter();
                let cases = cases.map(|(guard, v)| (guard.clone(), v.divided(divisor, v.offset() / divisor)));
                Int { cases: cases.collect(), lin: self.lin.divided(divisor, up) }
            }
            _ => self,
        }
    }

    pub(super) fn rename(&self, rename: &impl Fn(VarId) -> VarId) -> Int {
        let cases = self.cases.iter().map(|(guard, value)| (guard.rename(rename), value.rename(rename)));
        let mut cases: Vec<_> = cases.collect();
        cases.sort_unstable();
        Int { cases, lin: self.lin.rename(rename) }
    }

    /// The order without the constant.
    pub(super) fn cmp_body(&self, other: &Int) -> Ordering {
        self.cases.cmp(&other.cases).then_with(|| self.lin.cmp_body(&other.lin))
    }

    fn case(&self, guard: &Bool) -> Option<&Lin> {
        let place = self.cases.binary_search_by(|(other, _)| other.cmp(guard)).ok()?;
        self.cases.get(place).map(|(_, value)| value)
    }
}

impl From<Lin> for Int {
    fn from(lin: Lin) -> Self {
        Int { cases: Vec::new(), lin }
    }
}

impl From<VarId> for Int {
    fn from(var: VarId) -> Self {
        Int::var(var)
    }
}

impl From<i64> for Int {
    fn from(value: i64) -> Self {
        Int::constant(value)
    }
}

/// Collects a sum and puts it into canonical form.
#[derive(Default)]
struct Builder {
    lin: Sum,
    cases: BTreeMap<Bool, Sum>,
}

impl Builder {
    fn add(&mut self, term: &Int, factor: i64) -> Result<(), TermError> {
        self.lin.add(&term.lin, factor)?;
        term.cases.iter().try_for_each(|(guard, value)| self.case(guard.clone(), value, factor))
    }

    fn case(&mut self, guard: Bool, value: &Lin, factor: i64) -> Result<(), TermError> {
        if guard.is_true() {
            self.lin.add(value, factor)
        } else if !guard.is_false() {
            self.cases.entry(guard).or_default().add(value, factor)
        } else {
            Ok(())
        }
    }

    /// What a guard and its negation have in common needs no guard.
    fn build(self) -> Result<Int, TermError> {
        let Self { mut lin, cases } = self;
        steps::count_items(cases.len());
        steps::check()?;
        let totals = cases.into_iter().map(|(guard, value)| Ok((guard, value.total()?)));
        let mut cases = totals.collect::<Result<BTreeMap<Bool, Lin>, TermError>>()?;
        cases.retain(|_, value| !value.is_zero());
        let same = cases.iter().filter_map(|(guard, value)| {
            let negation = guard.not();
            (*guard < negation && cases.get(&negation) == Some(value)).then(|| (guard.clone(), negation))
        });
        for (guard, negation) in same.collect::<Vec<_>>() {
            cases.remove(&negation);
            if let Some(value) = cases.remove(&guard) {
                lin.add(&value, 1)?;
            }
        }
        Ok(Int { cases: cases.into_iter().collect(), lin: lin.total()? })
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
