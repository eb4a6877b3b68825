//! Prints a problem as SMT-LIB 2 text, for golden tests and bug reports: any solver can repeat the question.

use std::fmt::Write as _;

use crate::problem::Problem;
use crate::term::{Bool, Int, Kind, Lin, TermError, VarId, Vars};

/// The part of a name that is printed; longer ones are cut.
const NAME_CHARS_MAX: usize = 40;

/// The whole question. Assertions are named `L` and their label; a solver that prints unsat cores prints these.
pub fn print(problem: &Problem) -> Result<String, TermError> {
    problem.check()?;
    let mut out = String::from("(set-option :produce-unsat-cores true)\n(set-logic QF_LIA)\n");
    for (var, info) in problem.vars.iter() {
        let name = symbol(var, &problem.vars);
        line(&mut out, format_args!("(declare-const {name} Int)"));
        let (lo, hi) = (number(info.lo), number(info.hi));
        line(&mut out, format_args!("(assert (<= {lo} {name} {hi}))"));
    }
    // a name may be given once: assertions that share a label share its name
    let mut labels: Vec<_> = problem.assertions.iter().map(|(label, _)| *label).collect();
    labels.sort_unstable();
    labels.dedup();
    for label in labels {
        let same = problem.assertions.iter().filter(|(other, _)| *other == label);
        let conditions: Vec<String> = same.map(|(_, condition)| condition_text(condition, &problem.vars)).collect();
        let condition = if let [one] = conditions.as_slice() { one.clone() } else { call("and", conditions) };
        line(&mut out, format_args!("(assert (! {condition} :named L{}))", label.0));
    }
    line(&mut out, format_args!("(assert (! {} :named goal))", condition_text(&problem.goal, &problem.vars)));
    out.push_str("(check-sat)\n");
    Ok(out)
}

/// One condition.
pub fn condition_text(condition: &Bool, vars: &Vars) -> String {
    let list = |head: &str, inner: &[Bool]| call(head, inner.iter().map(|condition| condition_text(condition, vars)));
    match condition.kind() {
        Kind::True => "true".to_owned(),
        Kind::False => "false".to_owned(),
        Kind::Le(term) => call("<=", [sum_text(term, vars), "0".to_owned()]),
        Kind::Not(inner) => call("not", [condition_text(inner, vars)]),
        Kind::And(inner) => list("and", inner),
        Kind::Or(inner) => list("or", inner),
    }
}

/// One integer term.
pub fn sum_text(term: &Int, vars: &Vars) -> String {
    let cases = term
        .cases()
        .iter()
        .map(|(guard, value)| call("ite", [condition_text(guard, vars), plus(products(value, vars)), "0".to_owned()]));
    plus(products(term.lin(), vars).into_iter().chain(cases).collect())
}

/// The summands of a linear sum; none for zero.
fn products(lin: &Lin, vars: &Vars) -> Vec<String> {
    let products = lin.terms().iter().map(|(var, coefficient)| match coefficient {
        1 => symbol(*var, vars),
        _ => call("*", [number(*coefficient), symbol(*var, vars)]),
    });
    let constant = (lin.offset() != 0).then(|| number(lin.offset()));
    products.chain(constant).collect()
}

fn plus(mut summands: Vec<String>) -> String {
    match summands.len() {
        0 => "0".to_owned(),
        1 => summands.remove(0),
        _ => call("+", summands),
    }
}

fn call(head: &str, arguments: impl IntoIterator<Item = String>) -> String {
    let mut out = format!("({head}");
    for argument in arguments {
        out.push(' ');
        out.push_str(&argument);
    }
    out.push(')');
    out
}

/// SMT-LIB has no negative literals.
fn number(value: i64) -> String {
    if value < 0 { format!("(- {})", value.unsigned_abs()) } else { value.to_string() }
}

/// A symbol that is unique by its number and readable by its name.
fn symbol(var: VarId, vars: &Vars) -> String {
    let name = vars.info(var).map(|info| &*info.name).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' };
    let name: String = name.chars().take(NAME_CHARS_MAX).map(plain).collect();
    if name.is_empty() { var.to_string() } else { format!("{var}_{name}") }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // writing to a string cannot fail
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests;
