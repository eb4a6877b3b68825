//! What the conditions of a problem leave of its variables' ranges, and what that says without a solver.
//!
//! A range that nothing is left of proves that no assignment satisfies the conditions. What is left otherwise holds all
//! assignments that do, and a corner of it that is mended where a condition fails is often one of them.
//!
//! The last fate of a class has no variable: it is what is left of the class, a sum over all the others. Such a
//! *remainder* is given a variable here, since its range says what those of the others do not.

use crate::problem::{Label, Problem};
use crate::term::{Assignment, Bool, Kind, Lin, TermError, VarId};

/// How often all conditions are gone through, to narrow and to mend; more seldom tells more.
const ROUNDS_MAX: usize = 8;
/// A core of more labels than these is not reduced to what it needs.
const REDUCED_MAX: usize = 32;
/// So many remainders are told; more make narrowing as slow as solving.
const REMAINDERS_MAX: usize = 32;
/// Up to so many are put for one another as well.
const PAIRED_MAX: usize = 6;

/// No value is left of some variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Empty;

/// The values that are left of each variable, remainders last.
#[derive(Clone, Debug)]
pub(super) struct Ranges(Vec<(i64, i64)>);

/// A sum of counts and its remainder, in all a number: `sum + remainder - number`, which is zero.
struct Remainder(Lin);

/// The remainders of the sums that a problem's conditions bound.
fn remainders(problem: &Problem) -> Vec<Remainder> {
    let mut sums: Vec<&Lin> = Vec::new();
    for condition in problem.assertions.iter().map(|(_, condition)| condition).chain([&problem.goal]) {
        let parts = match condition.kind() {
            Kind::And(inner) => inner.as_slice(),
            _ => std::slice::from_ref(condition),
        };
        for part in parts {
            let Kind::Le(term) = part.kind() else { continue };
            let Some(sum) = term.as_lin() else { continue };
            let counts = sum.terms().len() > 1 && sum.terms().iter().all(|(_, coefficient)| *coefficient == 1);
            if counts && sums.len() < REMAINDERS_MAX && !sums.contains(&sum) {
                sums.push(sum);
            }
        }
    }
    let first = problem.vars.len();
    let with = |(at, sum): (usize, &Lin)| {
        let var = VarId(u32::try_from(first + at).ok()?);
        Some(Remainder(sum.add(&Lin::var(var)).ok()?))
    };
    sums.into_iter().enumerate().map_while(with).collect()
}

/// What narrowing says of a problem.
pub(super) enum Narrowed {
    /// Nothing satisfies the goal and the assertions with these labels.
    Empty(Vec<Label>),
    /// Whatever satisfies all is in here.
    Left(Ranges),
}

/// Narrows the ranges of a problem's variables by its goal and its assertions.
pub(super) fn narrow(problem: &Problem) -> Narrowed {
    let mut used: Vec<Label> = Vec::new();
    match narrowed(problem, &mut |label| used.push(label), &|_| true) {
        Ok(left) => Narrowed::Left(left),
        Err(Empty) => {
            used.sort_unstable();
            used.dedup();
            Narrowed::Empty(reduced(problem, used))
        }
    }
}

/// Those of the labels without which something would be left.
fn reduced(problem: &Problem, mut labels: Vec<Label>) -> Vec<Label> {
    if labels.len() > REDUCED_MAX {
        return labels;
    }
    for label in labels.clone() {
        let others = |other: Label| other != label && labels.contains(&other);
        if narrowed(problem, &mut |_| {}, &others).is_err() {
            labels.retain(|other| *other != label);
        }
    }
    labels
}

/// The ranges by the goal and the assertions that `takes` says; `uses` is told which narrow them.
fn narrowed(problem: &Problem, uses: &mut dyn FnMut(Label), takes: &dyn Fn(Label) -> bool) -> Result<Ranges, Empty> {
    let remainders = remainders(problem);
    let mut ranges = Ranges(problem.vars.iter().map(|(_, info)| (info.lo, info.hi)).collect());
    ranges.0.extend(std::iter::repeat_n((i64::MIN, i64::MAX), remainders.len()));
    let mut ranges = Narrowing { ranges, remainders };
    for _ in 0..ROUNDS_MAX {
        let mut changed = ranges.define()?;
        changed |= ranges.assume(&problem.goal)?;
        for (label, condition) in problem.assertions.iter().filter(|(label, _)| takes(*label)) {
            match ranges.assume(condition) {
                Ok(false) => {}
                Ok(true) => {
                    uses(*label);
                    changed = true;
                }
                Err(Empty) => {
                    uses(*label);
                    return Err(Empty);
                }
            }
        }
        if !changed {
            break;
        }
    }
    Ok(ranges.ranges)
}

/// Ranges that are being narrowed.
struct Narrowing {
    ranges: Ranges,
    remainders: Vec<Remainder>,
}

impl Narrowing {
    /// Narrows by what remainders are.
    fn define(&mut self) -> Result<bool, Empty> {
        let mut changed = false;
        for Remainder(zero) in &self.remainders {
            changed |= self.ranges.at_most_zero(zero)?;
            let Ok(negated) = zero.scale(-1) else { continue };
            changed |= self.ranges.at_most_zero(&negated)?;
        }
        Ok(changed)
    }

    /// Takes out what a condition excludes; whether there was anything.
    fn assume(&mut self, condition: &Bool) -> Result<bool, Empty> {
        match condition.kind() {
            Kind::False => Err(Empty),
            Kind::Le(term) => term.as_lin().map_or(Ok(false), |lin| self.at_most_zero(lin)),
            Kind::And(inner) => inner.iter().try_fold(false, |changed, one| Ok(self.assume(one)? || changed)),
            Kind::Or(inner) => {
                let mut possible = inner.iter().filter(|one| self.ranges.admits(one));
                match (possible.next(), possible.next()) {
                    (None, _) => Err(Empty),
                    (Some(only), None) => self.assume(only),
                    _ => Ok(false),
                }
            }
            Kind::True | Kind::Not(_) => Ok(false),
        }
    }

    /// Narrows by `sum ≤ 0`, also as it reads with remainders in place of the counts that they stand for.
    fn at_most_zero(&mut self, sum: &Lin) -> Result<bool, Empty> {
        let mut changed = self.ranges.at_most_zero(sum)?;
        for (at, remainder) in self.remainders.iter().enumerate() {
            for rewritten in remainder.rewritten(sum) {
                changed |= self.ranges.at_most_zero(&rewritten)?;
                if self.remainders.len() > PAIRED_MAX {
                    continue;
                }
                for (_, other) in self.remainders.iter().enumerate().filter(|(other, _)| *other != at) {
                    for again in other.rewritten(&rewritten) {
                        changed |= self.ranges.at_most_zero(&again)?;
                    }
                }
            }
        }
        Ok(changed)
    }
}

impl Remainder {
    /// A sum with the remainder in place of each of the counts, as far as they occur alike.
    fn rewritten(&self, sum: &Lin) -> Vec<Lin> {
        let Self(zero) = self;
        let counts = |var: VarId| zero.terms().binary_search_by_key(&var, |(other, _)| *other).is_ok();
        let own = sum.terms().iter().filter(|(var, _)| counts(*var));
        let mut factors: Vec<i64> = own.map(|(_, coefficient)| *coefficient).collect();
        factors.sort_unstable();
        factors.dedup();
        factors.into_iter().filter_map(|factor| sum.add_scaled(zero, factor.checked_neg()?).ok()).collect()
    }
}

impl Ranges {
    /// An assignment that satisfies the problem, if mending the corners finds one.
    pub(super) fn witness(&self, problem: &Problem) -> Result<Option<Assignment>, TermError> {
        let own = || self.0.iter().take(problem.vars.len());
        let (low, high) = (own().map(|(lo, _)| *lo).collect(), own().map(|(_, hi)| *hi).collect());
        for mut tried in [Assignment(low), Assignment(high)] {
            for _ in 0..ROUNDS_MAX {
                if problem.is_witness(&tried)? {
                    return Ok(Some(tried));
                }
                let mut moved = false;
                for condition in problem.assertions.iter().map(|(_, condition)| condition).chain([&problem.goal]) {
                    moved |= self.mend(condition, &mut tried)?;
                }
                if !moved {
                    break;
                }
            }
        }
        Ok(None)
    }

    /// Narrows by `sum ≤ 0`: no term may be greater than the least values of the others leave room for.
    fn at_most_zero(&mut self, sum: &Lin) -> Result<bool, Empty> {
        let least = self.least(sum);
        if least > 0 {
            return Err(Empty);
        }
        let mut changed = false;
        for (var, coefficient) in sum.terms() {
            let factor = i128::from(*coefficient);
            let Some((lo, hi)) = self.0.get_mut(var.index()) else { continue };
            let own = (factor * i128::from(*lo)).min(factor * i128::from(*hi));
            // factor · variable ≤ room, and the variable reaches its least contribution: a bound that is left is in the range
            let room = own - least;
            let steps = room.div_euclid(factor.abs());
            let bound = if factor > 0 { steps } else { -steps };
            let Ok(bound) = i64::try_from(bound) else { continue };
            if factor > 0 && bound < *hi {
                *hi = bound;
                changed = true;
            } else if factor < 0 && bound > *lo {
                *lo = bound;
                changed = true;
            }
            if *lo > *hi {
                return Err(Empty);
            }
        }
        Ok(changed)
    }

    /// Whether a condition may hold; never false for one that does somewhere in the ranges.
    fn admits(&self, condition: &Bool) -> bool {
        match condition.kind() {
            Kind::False => false,
            Kind::Le(term) => term.as_lin().is_none_or(|lin| self.least(lin) <= 0),
            Kind::And(inner) => inner.iter().all(|one| self.admits(one)),
            Kind::Or(inner) => inner.iter().any(|one| self.admits(one)),
            Kind::True | Kind::Not(_) => true,
        }
    }

    /// The least value of a sum.
    fn least(&self, sum: &Lin) -> i128 {
        let own = |(var, coefficient): &(VarId, i64)| {
            let (lo, hi) = self.0.get(var.index()).copied().unwrap_or((i64::MIN, i64::MAX));
            let factor = i128::from(*coefficient);
            (factor * i128::from(lo)).min(factor * i128::from(hi))
        };
        sum.terms().iter().map(own).sum::<i128>() + i128::from(sum.offset())
    }

    /// Moves variables within their ranges until a condition holds, as far as that is plain; whether any moved.
    fn mend(&self, condition: &Bool, tried: &mut Assignment) -> Result<bool, TermError> {
        if condition.eval(tried)? {
            return Ok(false);
        }
        match condition.kind() {
            Kind::Le(term) => term.as_lin().map_or(Ok(false), |lin| self.lower(lin, tried)),
            Kind::And(inner) => inner.iter().try_fold(false, |moved, one| Ok(self.mend(one, tried)? || moved)),
            Kind::Or(inner) => match inner.iter().find(|one| self.admits(one)) {
                Some(one) => self.mend(one, tried),
                None => Ok(false),
            },
            Kind::True | Kind::False | Kind::Not(_) => Ok(false),
        }
    }

    /// Lowers a sum to zero, or as far as it goes.
    fn lower(&self, sum: &Lin, tried: &mut Assignment) -> Result<bool, TermError> {
        let mut excess = sum.eval(tried)?;
        let mut moved = false;
        for (var, coefficient) in sum.terms() {
            let Some((lo, hi)) = self.0.get(var.index()) else { continue };
            if excess <= 0 {
                break;
            }
            let here = tried.get(*var)?;
            let room = if *coefficient > 0 { here - lo } else { hi - here };
            let size = coefficient.checked_abs().ok_or(TermError::Overflow)?;
            // as many steps as are needed, rounded up
            let steps = room.max(0).min((excess - 1) / size + 1);
            if steps > 0 {
                tried.set(*var, if *coefficient > 0 { here - steps } else { here + steps })?;
                excess -= steps.checked_mul(size).ok_or(TermError::Overflow)?;
                moved = true;
            }
        }
        Ok(moved)
    }
}
