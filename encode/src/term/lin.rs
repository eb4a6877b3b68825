//! A linear sum of variables: sorted by variable, without zero coefficients, plus a constant.

use std::cmp::Ordering;
use std::iter::Peekable;

use suture_model::steps;

use super::{Assignment, Bounds, TermError, VarId, Vars};

/// `Σ coefficient · variable + constant`. Ordered by its variable part first, so that sums that differ only in their constant are
/// neighbours in a sorted list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lin {
    terms: Vec<(VarId, i64)>,
    constant: i64,
}

impl Lin {
    /// A number.
    pub fn constant(value: i64) -> Self {
        Self { terms: Vec::new(), constant: value }
    }

    /// A variable.
    pub fn var(var: VarId) -> Self {
        Self { terms: vec![(var, 1)], constant: 0 }
    }

    /// The sum of `coefficient · variable` over the pairs, in any order and with repetitions, plus a constant.
    pub fn sum(terms: impl IntoIterator<Item = (VarId, i64)>, constant: i64) -> Result<Self, TermError> {
        let mut terms: Vec<(VarId, i64)> = terms.into_iter().collect();
        steps::count_items(1 + terms.len());
        steps::check()?;
        if terms.is_sorted_by(|(a, ca), (b, _)| a < b && *ca != 0) && terms.last().is_none_or(|(_, c)| *c != 0) {
            return Ok(Self { terms, constant });
        }
        terms.sort_unstable_by_key(|(var, _)| *var);
        let mut merged: Vec<(VarId, i64)> = Vec::with_capacity(terms.len());
        for (var, coefficient) in terms {
            match merged.last_mut() {
                Some((last, total)) if *last == var => {
                    *total = total.checked_add(coefficient).ok_or(TermError::Overflow)?;
                }
                _ => merged.push((var, coefficient)),
            }
        }
        merged.retain(|(_, coefficient)| *coefficient != 0);
        Ok(Self { terms: merged, constant })
    }

    /// The variables with their coefficients, sorted, none zero.
    pub fn terms(&self) -> &[(VarId, i64)] {
        &self.terms
    }

    /// The constant part.
    pub fn offset(&self) -> i64 {
        self.constant
    }

    /// The value, if no variable occurs.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Whether this is the number zero.
    pub fn is_zero(&self) -> bool {
        self.as_constant() == Some(0)
    }

    /// `self + other`
    pub fn add(&self, other: &Lin) -> Result<Lin, TermError> {
        self.add_scaled(other, 1)
    }

    /// `self - other`
    pub fn sub(&self, other: &Lin) -> Result<Lin, TermError> {
        self.add_scaled(other, -1)
    }

    /// `factor · self`
    pub fn scale(&self, factor: i64) -> Result<Lin, TermError> {
        Lin::default().add_scaled(self, factor)
    }

    /// `self + factor · other`
    pub fn add_scaled(&self, other: &Lin, factor: i64) -> Result<Lin, TermError> {
        let constant = fused(self.constant, other.constant, factor)?;
        steps::count_items(1 + self.terms.len() + other.terms.len());
        steps::check()?;
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        for (var, mine, theirs) in merge(&self.terms, &other.terms) {
            let coefficient = fused(mine, theirs, factor)?;
            if coefficient != 0 {
                terms.push((var, coefficient));
            }
        }
        Ok(Lin { terms, constant })
    }

    /// The least and the greatest value over the ranges of the variables.
    pub fn bounds(&self, vars: &Vars) -> Result<Bounds, TermError> {
        let start = Bounds { min: self.constant.into(), max: self.constant.into() };
        self.terms.iter().try_fold(start, |bounds, (var, coefficient)| {
            let info = vars.info(*var)?;
            let [a, b] = [info.lo, info.hi].map(|end| i128::from(*coefficient) * i128::from(end));
            bounds.plus(Bounds { min: a.min(b), max: a.max(b) })
        })
    }

    /// The value under an assignment.
    pub fn eval(&self, assignment: &Assignment) -> Result<i64, TermError> {
        let value = self.terms.iter().try_fold(i128::from(self.constant), |value, (var, coefficient)| {
            let product = i128::from(*coefficient) * i128::from(assignment.get(*var)?);
            value.checked_add(product).ok_or(TermError::Overflow)
        })?;
        i64::try_from(value).map_err(|_| TermError::Overflow)
    }

    /// Whether a variable of it has only one value.
    pub(super) fn has_fixed(&self, vars: &Vars) -> Result<bool, TermError> {
        for (var, _) in &self.terms {
            let info = vars.info(*var)?;
            if info.lo == info.hi {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same sum with every variable that has only one value replaced by it.
    pub(super) fn without_fixed(&self, vars: &Vars) -> Result<Lin, TermError> {
        let mut constant = self.constant;
        let mut terms = Vec::with_capacity(self.terms.len());
        for (var, coefficient) in &self.terms {
            let info = vars.info(*var)?;
            if info.lo == info.hi {
                constant = fused(constant, info.lo, *coefficient)?;
            } else {
                terms.push((*var, *coefficient));
            }
        }
        Ok(Lin { terms, constant })
    }

    /// Divides the coefficients, all multiples of `divisor`, and sets the constant.
    pub(super) fn divided(&self, divisor: i64, constant: i64) -> Lin {
        Lin { terms: self.terms.iter().map(|(var, coefficient)| (*var, coefficient / divisor)).collect(), constant }
    }

    /// Replaces each variable; the replacement must be injective.
    pub(crate) fn rename(&self, rename: &impl Fn(VarId) -> VarId) -> Lin {
        let mut terms: Vec<_> = self.terms.iter().map(|(var, coefficient)| (rename(*var), *coefficient)).collect();
        terms.sort_unstable();
        Lin { terms, constant: self.constant }
    }

    pub(super) fn cmp_body(&self, other: &Lin) -> Ordering {
        self.terms.cmp(&other.terms)
    }
}

/// A sum with fewer terms is put in order at its end only.
const FEW_TERMS: usize = 1_024;

/// Collects a sum of many, and puts it in order each time that its terms have doubled: it takes about as much room as its
/// variables.
#[derive(Default)]
pub(super) struct Sum {
    terms: Vec<(VarId, i64)>,
    constant: i64,
    /// How many of the terms are in order.
    ordered: usize,
}

impl Sum {
    /// Adds `factor · lin`.
    pub fn add(&mut self, lin: &Lin, factor: i64) -> Result<(), TermError> {
        steps::count_items(1 + lin.terms.len());
        steps::check()?;
        self.constant = fused(self.constant, lin.constant, factor)?;
        for (var, coefficient) in &lin.terms {
            self.terms.push((*var, fused(0, *coefficient, factor)?));
        }
        if self.terms.len() > FEW_TERMS.max(2 * self.ordered) {
            *self = Lin::sum(std::mem::take(&mut self.terms), self.constant)?.into();
        }
        Ok(())
    }

    /// All that was added.
    pub fn total(self) -> Result<Lin, TermError> {
        Lin::sum(self.terms, self.constant)
    }
}

impl From<Lin> for Sum {
    fn from(lin: Lin) -> Self {
        Self { ordered: lin.terms.len(), terms: lin.terms, constant: lin.constant }
    }
}

impl From<VarId> for Lin {
    fn from(var: VarId) -> Self {
        Lin::var(var)
    }
}

impl From<i64> for Lin {
    fn from(value: i64) -> Self {
        Lin::constant(value)
    }
}

/// `a + b · factor`
fn fused(a: i64, b: i64, factor: i64) -> Result<i64, TermError> {
    let sum = i128::from(a) + i128::from(b) * i128::from(factor);
    i64::try_from(sum).map_err(|_| TermError::Overflow)
}

/// Both sorted lists side by side; a variable that one of them lacks has coefficient zero there.
fn merge(left: &[(VarId, i64)], right: &[(VarId, i64)]) -> impl Iterator<Item = (VarId, i64, i64)> {
    let mut left = left.iter().copied().peekable();
    let mut right = right.iter().copied().peekable();
    std::iter::from_fn(move || {
        let next = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) => *a.min(b),
            (Some((a, _)), None) => *a,
            (None, Some((b, _))) => *b,
            (None, None) => return None,
        };
        Some((next, take(&mut left, next), take(&mut right, next)))
    })
}

fn take(list: &mut Peekable<impl Iterator<Item = (VarId, i64)>>, var: VarId) -> i64 {
    list.next_if(|(next, _)| *next == var).map_or(0, |(_, coefficient)| coefficient)
}
