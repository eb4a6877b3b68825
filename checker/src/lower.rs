//! Lowers a problem to Z3: integer constants with their bounds, linear sums, comparisons, and, or, not, if-then-else. Nothing else
//! reaches the solver: no strings, arrays, quantifiers or bit vectors.

use std::collections::BTreeMap;

use suture_encode::problem::{Label, Problem};
use suture_encode::term::{self, Assignment, Kind, Lin, TermError};
use z3::{Model, Solver, ast};

/// Labels are named by numbers from here on, variables by smaller ones; the sum of both limits stays below Z3's 2^30.
const LABEL_NAME_MIN: u32 = term::VARS_LEN_MAX as u32;

/// A problem inside a solver: its variables, and the literal that switches each label's assertions on.
pub(crate) struct Lowered {
    vars: Vec<ast::Int>,
    literals: BTreeMap<Label, ast::Bool>,
}

impl Lowered {
    /// Asserts the ranges and the goal, and every assertion under its label's literal.
    pub(crate) fn assert(problem: &Problem, solver: &Solver) -> Result<Lowered, TermError> {
        problem.check()?;
        let vars: Vec<ast::Int> = problem.vars.iter().map(|(var, _)| ast::Int::new_const(var.0)).collect();
        for ((_, info), var) in problem.vars.iter().zip(&vars) {
            solver.assert(var.ge(info.lo));
            solver.assert(var.le(info.hi));
        }
        let mut lowered = Lowered { vars, literals: BTreeMap::new() };
        for (label, condition) in &problem.assertions {
            let condition = lowered.condition(condition)?;
            // labels are the caller's numbers: named here by place, so that none is too large for a name
            let name = LABEL_NAME_MIN.saturating_add(u32::try_from(lowered.literals.len()).unwrap_or(u32::MAX));
            let literal = lowered.literals.entry(*label).or_insert_with(|| ast::Bool::new_const(name));
            solver.assert(literal.implies(condition));
        }
        solver.assert(lowered.condition(&problem.goal)?);
        Ok(lowered)
    }

    /// The labels with their literals, sorted by label.
    pub(crate) fn literals(&self) -> &BTreeMap<Label, ast::Bool> {
        &self.literals
    }

    /// The labels of a core, sorted.
    pub(crate) fn labels(&self, core: &[ast::Bool]) -> Vec<Label> {
        let in_core = |literal: &ast::Bool| core.iter().any(|other| literal.ast_eq(other));
        self.literals.iter().filter(|(_, literal)| in_core(literal)).map(|(label, _)| *label).collect()
    }

    /// The values of the variables in a model; none if a value is not a number of 64 bits.
    pub(crate) fn decode(&self, model: &Model) -> Option<Assignment> {
        let values = self.vars.iter().map(|var| model.eval(var, true)?.as_i64());
        values.collect::<Option<Vec<i64>>>().map(Assignment)
    }

    fn condition(&self, condition: &term::Bool) -> Result<ast::Bool, TermError> {
        let list = |inner: &[term::Bool]| inner.iter().map(|c| self.condition(c)).collect::<Result<Vec<_>, _>>();
        Ok(match condition.kind() {
            Kind::True => ast::Bool::from_bool(true),
            Kind::False => ast::Bool::from_bool(false),
            Kind::Not(inner) => self.condition(inner)?.not(),
            Kind::And(inner) => ast::Bool::and(&list(inner)?),
            Kind::Or(inner) => ast::Bool::or(&list(inner)?),
            Kind::Le(term) => {
                let mut summands = self.products(term.lin())?;
                summands.extend(self.cases(term)?);
                // as Z3 writes it itself: the variables on the left, the constant on the right
                let offset = term.lin().offset();
                let negated = offset.checked_neg().map(ast::Int::from_i64);
                sum(summands).le(negated.unwrap_or_else(|| ast::Int::from_i128(-i128::from(offset))))
            }
        })
    }

    fn cases(&self, term: &term::Int) -> Result<Vec<ast::Int>, TermError> {
        let cases = term.cases().iter().map(|(guard, value)| {
            let mut summands = self.products(value)?;
            if value.offset() != 0 {
                summands.push(ast::Int::from_i64(value.offset()));
            }
            Ok(self.condition(guard)?.ite(&sum(summands), &ast::Int::from_i64(0)))
        });
        cases.collect()
    }

    fn products(&self, lin: &Lin) -> Result<Vec<ast::Int>, TermError> {
        let products = lin.terms().iter().map(|(var, coefficient)| {
            let known = self.vars.get(var.index()).ok_or(TermError::UnknownVar(*var))?;
            Ok(if *coefficient == 1 { known.clone() } else { ast::Int::from_i64(*coefficient) * known })
        });
        products.collect()
    }
}

fn sum(mut summands: Vec<ast::Int>) -> ast::Int {
    match summands.len() {
        0 => ast::Int::from_i64(0),
        1 => summands.remove(0),
        _ => ast::Int::add(&summands),
    }
}
