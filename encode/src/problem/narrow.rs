//! What the conditions of a problem leave of its variables' ranges, and what that says without a solver.
//!
//! A range that nothing is left of proves that no assignment satisfies the conditions. What is left otherwise holds all
//! assignments that do, and a corner of it that is mended where a condition fails is often one of them.
//!
//! The last fate of a class has no variable: it is what is left of the class, a sum over all the others. Such a
//! *remainder* is given a variable here, since its range says what those of the others do not.

use std::rc::Rc;

use suture_model::steps;

use crate::problem::{Label, Presolved, Problem};
use crate::term::{Assignment, Bool, Kind, Lin, TermError, VarId};

/// How often all conditions are gone through, to narrow and to mend; more seldom tells more.
const ROUNDS_MAX: usize = 8;
/// A core of more labels than these is not reduced to what it needs.
const REDUCED_MAX: usize = 32;
/// How many members of disjunctions are assumed before a solver does better, and the size of a problem up to which any are.
const SPLITS_MAX: usize = 32;
const SPLIT_SIZE_MAX: u64 = 4_096;
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

impl Problem {
    /// Answers if a condition is plainly false, if one of the caller's candidates or the two extreme corners is a violating
    /// future, tried in this order: candidates, all variables least, all greatest; or if narrowing the variables' ranges
    /// tells, also with one disjunction after the other taken apart.
    pub fn presolve(&self, candidates: &[Assignment]) -> Result<Presolved, TermError> {
        self.check()?;
        if self.goal.is_false() {
            return Ok(Presolved::Unsat { core: Vec::new() });
        }
        if let Some(label) = self.false_assertion() {
            return Ok(Presolved::Unsat { core: vec![label] });
        }
        for candidate in candidates.iter().chain([&self.vars.all_lo(), &self.vars.all_hi()]) {
            if self.is_witness(candidate)? {
                return Ok(Presolved::Sat(candidate.clone()));
            }
        }
        presolve(self)
    }
}

/// What narrowing says of a problem. Where the ranges alone do not tell, its disjunctions are taken apart, one after the other.
fn presolve(problem: &Problem) -> Result<Presolved, TermError> {
    let attempts = if problem.size() > SPLIT_SIZE_MAX { &[0][..] } else { &[0, SPLITS_MAX] };
    for splits in attempts.iter().copied() {
        let mut search = Search { problem, takes: &|_| true, used: Vec::new(), splits };
        match search.left() {
            Ok(left) => {
                if let Some(witness) = left.witness(problem)? {
                    return Ok(Presolved::Sat(witness));
                }
            }
            Err(Empty) => {
                let mut used = search.used;
                used.sort_unstable();
                used.dedup();
                return Ok(Presolved::Unsat { core: reduced(problem, used, splits) });
            }
        }
    }
    Ok(Presolved::Open)
}

/// Those of the labels without which something would be left.
fn reduced(problem: &Problem, mut labels: Vec<Label>, splits: usize) -> Vec<Label> {
    if labels.len() > REDUCED_MAX {
        return labels;
    }
    for label in labels.clone() {
        let others = |other: Label| other != label && labels.contains(&other);
        if (Search { problem, takes: &others, used: Vec::new(), splits }).left().is_err() {
            labels.retain(|other| *other != label);
        }
    }
    labels
}

/// A search for what satisfies the goal and some of the assertions.
struct Search<'p> {
    problem: &'p Problem,
    takes: &'p dyn Fn(Label) -> bool,
    /// The labels that narrowed something.
    used: Vec<Label>,
    /// How many members of disjunctions may still be assumed.
    splits: usize,
}

impl<'p> Search<'p> {
    /// Ranges in which something may be left.
    fn left(&mut self) -> Result<Ranges, Empty> {
        let mut narrowing = Narrowing::of(self.problem);
        narrowing.settle(self)?;
        let choices = self.choices();
        narrowing.split(&choices, self)
    }

    fn taken(&self) -> impl Iterator<Item = &'p (Label, Bool)> + use<'p> {
        let takes = self.takes;
        self.problem.assertions.iter().filter(move |(label, _)| takes(*label))
    }

    /// The disjunctions, with their labels if they are no part of the goal.
    fn choices(&self) -> Vec<(Option<Label>, &'p [Bool])> {
        if self.splits == 0 {
            return Vec::new();
        }
        let conditions = self.taken().map(|(label, condition)| (Some(*label), condition));
        let parts = conditions.chain([(None, &self.problem.goal)]).flat_map(|(label, condition)| {
            let parts = match condition.kind() {
                Kind::And(inner) => inner.as_slice(),
                _ => std::slice::from_ref(condition),
            };
            parts.iter().map(move |part| (label, part))
        });
        let members = |(label, part): (_, &'p Bool)| match part.kind() {
            Kind::Or(members) => Some((label, members.as_slice())),
            _ => None,
        };
        parts.filter_map(members).collect()
    }
}

/// Ranges that are being narrowed.
#[derive(Clone)]
struct Narrowing<'p> {
    ranges: Ranges,
    remainders: Rc<[Remainder]>,
    /// Members of disjunctions that are taken to hold.
    assumed: Vec<&'p Bool>,
}

impl<'p> Narrowing<'p> {
    fn of(problem: &Problem) -> Self {
        let remainders = remainders(problem);
        let mut ranges = Ranges(problem.vars.iter().map(|(_, info)| (info.lo, info.hi)).collect());
        ranges.0.extend(std::iter::repeat_n((i64::MIN, i64::MAX), remainders.len()));
        Self { ranges, remainders: remainders.into(), assumed: Vec::new() }
    }

    /// Narrows by the goal, the assertions that the search takes and what is assumed.
    fn settle(&mut self, search: &mut Search<'p>) -> Result<(), Empty> {
        for _ in 0..ROUNDS_MAX {
            // what is not narrowed any further is right all the same
            if steps::check().is_err() {
                break;
            }
            let mut changed = self.define()?;
            changed |= self.assume(&search.problem.goal)?;
            for member in self.assumed.clone() {
                changed |= self.assume(member)?;
            }
            for (label, condition) in search.taken() {
                match self.assume(condition) {
                    Ok(false) => {}
                    Ok(true) => {
                        search.used.push(*label);
                        changed = true;
                    }
                    Err(Empty) => {
                        search.used.push(*label);
                        return Err(Empty);
                    }
                }
            }
            if !changed {
                break;
            }
        }
        Ok(())
    }

    /// Takes disjunctions apart until something is left with each of them, or the search has no more splits.
    fn split(self, choices: &[(Option<Label>, &'p [Bool])], search: &mut Search<'p>) -> Result<Ranges, Empty> {
        let is_open = |members: &[Bool]| !members.iter().any(|member| self.ranges.assures(member));
        let Some(at) = choices.iter().position(|(_, members)| is_open(members)) else { return Ok(self.ranges) };
        let Some(((label, members), rest)) = choices.get(at..).and_then(<[_]>::split_first) else {
            return Ok(self.ranges);
        };
        search.used.extend(label);
        for member in members.iter().filter(|member| self.ranges.admits(member)) {
            if search.splits == 0 || steps::check().is_err() {
                return Ok(self.ranges);
            }
            search.splits -= 1;
            let mut narrower = self.clone();
            narrower.assumed.push(member);
            let settled = narrower.settle(search);
            if let Ok(left) = settled.and_then(|()| narrower.split(rest, search)) {
                return Ok(left);
            }
        }
        Err(Empty)
    }

    /// Narrows by what remainders are.
    fn define(&mut self) -> Result<bool, Empty> {
        let mut changed = false;
        for Remainder(zero) in &*self.remainders {
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
        let remainders = self.remainders.clone();
        for (at, remainder) in remainders.iter().enumerate() {
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
        steps::count_items(1 + sum.terms().len());
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

    /// Whether a condition holds all over the ranges, as far as that is plain.
    fn assures(&self, condition: &Bool) -> bool {
        match condition.kind() {
            Kind::True => true,
            Kind::Le(term) => term.as_lin().and_then(|lin| lin.scale(-1).ok()).is_some_and(|lin| self.least(&lin) >= 0),
            Kind::And(inner) => inner.iter().all(|one| self.assures(one)),
            Kind::Or(inner) => inner.iter().any(|one| self.assures(one)),
            Kind::False | Kind::Not(_) => false,
        }
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
