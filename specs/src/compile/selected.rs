//! The clause of every invariant that selects its instances by labels: an instance stays selected as long as it lives.
//!
//! What is not selected any more nothing judges from then on, so that a change which takes such a label away permits whatever
//! breaks the invariant. It is judged as that, also where the instance is broken already: nothing is worse. It is judged also
//! where `where` is false for the time being: once nothing judges the object any more, nothing would tell when it is true.

use suture_model::value::Val;

use super::source::{Clause, Parts};
use crate::functions::Func;
use crate::ir::{Expr, Node, Span, Type};
use crate::spec::{ForEach, Match};
use crate::value::Value;

/// The degree of an instance that is not selected any more. It is beyond that of any other, and far enough from the limits of
/// a number to be compared with each.
const UNSELECTED_DEGREE: i64 = 1 << 40;

const UNSELECTED: &str = "its labels would select it no more: from then on nothing would judge it";

/// Adds that an instance stays selected by the selectors of `forEach` and `match`, and how badly it is broken without.
pub(super) fn keep_selected(parts: &mut Parts, for_each: &ForEach, matches: Option<&Match>) {
    let selectors = [for_each.selector.as_ref(), matches.and_then(|matches| matches.selector.as_ref())];
    for selector in selectors.into_iter().flatten().filter(|selector| !selector.is_null()) {
        let stays = stays_selected(parts, selector);
        let (cond, then) = (Box::new(stays.clone()), Box::new(parts.degree.take().unwrap_or_else(|| number(0))));
        let otherwise = Box::new(number(UNSELECTED_DEGREE));
        parts.degree = Some(expr(Node::Cond { cond, then, otherwise }, Type::Int));
        let (text, source) = (Some(UNSELECTED.into()), UNSELECTED.into());
        parts.require.push(Clause { expression: stays, message: None, text, source, beyond_where: true });
    }
}

/// `!o.liveIn(now) || o.at(now).isSelectedBy(selector)`.
fn stays_selected(parts: &Parts, selector: &Val) -> Expr {
    let var = || expr(Node::Var(parts.for_each.var.clone()), parts.var_type.clone());
    let now = || expr(Node::Var("now".into()), Type::World);
    let call = |func, args, ty| expr(Node::Call { func, args }, ty);
    let gone = expr(Node::Not(Box::new(call(Func::LiveIn, vec![var(), now()], Type::Bool))), Type::Bool);
    let there = call(Func::At, vec![var(), now()], parts.var_type.clone());
    let selector = expr(Node::Const(Value::from(selector)), Type::Any);
    let selected = call(Func::IsSelectedBy, vec![there, selector], Type::Bool);
    expr(Node::Or(Box::new(gone), Box::new(selected)), Type::Bool)
}

fn number(number: i64) -> Expr {
    expr(Node::Const(Value::Int(number)), Type::Int)
}

fn expr(node: Node, ty: Type) -> Expr {
    Expr::new(node, ty, Span::default())
}
