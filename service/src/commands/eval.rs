//! `suture eval`: the value of an expression in a recorded cluster, and the values of its parts.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use suture_model::state::State;
use suture_specs::cel::{self, Scope};
use suture_specs::eval::{Env, eval};
use suture_specs::functions::Worlds;
use suture_specs::ir::{Expr, Node, Type};
use suture_specs::spec::{Origin, SpecError};
use suture_specs::value::Value;

use super::inputs::live;
use crate::arguments;
use crate::clock::Clock;
use crate::failure::{Exit, Failure};
use crate::names::Names;
use crate::output;
use crate::policy::{self, Documents, diagnosed};
use crate::recorded;

/// The variable of the object that `--on` names.
const SELF: &str = "self";
/// A longer value of a part is cut.
const VALUE_MAX_CHARS: usize = 160;

/// Prints the value.
pub(super) fn run(arguments: arguments::Eval) -> Result<Exit, Failure> {
    let arguments::Eval { expression, state, on, adapters, namespace } = arguments;
    let documents = Documents::read(&policy::sources(&adapters)?).map_err(diagnosed)?;
    let mut policy = documents.compile().map_err(diagnosed)?;
    let arguments::State { state: paths, unknown, time } = &state;
    let recorded = recorded::load(paths, unknown, &BTreeSet::new(), &mut policy, live)?;
    let time = match time {
        Some(time) => Some(Clock::parse(time).map_err(|error| Failure::invalid(format!("--time: {error}")))?),
        None => recorded.newest,
    };
    let now = State::new(&recorded.snapshot);
    let mut scope = Scope::invariant(false);
    let mut env = Env::new(Worlds { before: &now, now: &now });
    if let Some(name) = &on {
        let names = Names::of(&recorded.snapshot).within(namespace.as_deref());
        let key = names.key(name).map_err(Failure::invalid)?;
        let object = now.get(&key).ok_or_else(|| Failure::invalid(format!("`{key}` does not exist in the state")))?;
        let ty = Type::Object(key.kind.traits().map(|_| key.kind.clone()));
        scope = scope.with(SELF, ty);
        env.bind(SELF, Ok(Value::Object(Arc::clone(object))));
    }
    if let Some(time) = time {
        env.bind("time", Ok(Value::Timestamp(time.nanos())));
    }
    let expr = cel::compile(&expression, &scope, None).map_err(|error| {
        let origin = Origin::named("EXPR");
        diagnosed(vec![SpecError::expression(&origin, "", error)])
    })?;
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    parts(&expr, &mut |part| {
        let source = part.span.text(&expression).split_whitespace().collect::<Vec<_>>().join(" ");
        let is_plain = matches!(part.node, Node::Const(_) | Node::Var(_)) || source.is_empty();
        if !std::ptr::eq(part, &raw const expr) && !is_plain && seen.insert(source.clone()) {
            _ = writeln!(text, "  {source} = {}", cut(&told(part, &env)));
        }
    });
    let value = eval(&expr, &env).map_err(|error| Failure::invalid(format!("it has no value: {error}")));
    let shown = value.as_ref().map_or_else(|_| String::new(), |value| format!("{}\n", value.display()));
    output::print(&(shown + &text))?;
    value.map(|_| Exit::Good)
}

fn told(part: &Expr, env: &Env<'_>) -> String {
    eval(part, env).map_or_else(|error| format!("no value: {error}"), |value| value.display())
}

/// The parts that have a value of their own, innermost first: not those inside of a macro, whose variables differ.
fn parts<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.node {
        Node::Comprehension { range, .. } => parts(range, visit),
        Node::OptMap { base, .. } => parts(base, visit),
        Node::Let { init, .. } => parts(init, visit),
        _ => expr.for_each_part(&mut |part| parts(part, visit)),
    }
    visit(expr);
}

fn cut(text: &str) -> String {
    match text.chars().nth(VALUE_MAX_CHARS) {
        Some(_) => text.chars().take(VALUE_MAX_CHARS - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}
