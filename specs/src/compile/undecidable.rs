//! What can never be decided. Where the future decides what is in a list, the encoding counts its items: such a list has no
//! order, and neither positions nor texts are made of it. Values of Secrets and ConfigMaps, and what only single pods and nodes
//! have in their status, are not kept at all.

use std::collections::{BTreeMap, BTreeSet};

use suture_model::ingest::{hidden, is_dropped};
use suture_model::value::Str;

use crate::cel::CelError;
use crate::functions::{Class, Func};
use crate::ir::{Comprehension, Expr, Node, Span, Type};
use crate::spec::{Cel, Origin, SpecError};

const OPEN_HELP: &str = "`size`, `exists`, `all`, `filter`, `distinct`, `min`, `max` and `sum` of it can be decided";
const NOT_KEPT_HELP: &str = "which keys a Secret or ConfigMap has can be decided: `'KEY' in object.data`; of a pod's status its phase and \
    conditions can";

/// The errors of expressions that are judged, each with its path and text, and of the named values that they use, whose
/// texts are `texts`.
pub(super) fn errors(
    origin: &Origin,
    texts: Option<&BTreeMap<String, Cel>>,
    lets: &[(Str, Expr)],
    judged: &[(String, &Cel, &Expr)],
) -> Vec<SpecError> {
    let mut open: Vec<(Str, bool)> = Vec::new();
    for (name, value) in lets {
        let is_open = is_open(value, &open);
        open.push((name.clone(), is_open));
    }
    let mut used = BTreeSet::new();
    judged.iter().for_each(|(_, _, expr)| names(expr, lets, &mut used));
    let named = lets.iter().filter(|(name, _)| used.contains(name)).filter_map(|(name, expr)| {
        let text = texts?.get(&**name)?;
        Some((format!("spec.let.{name}"), text, expr))
    });
    let mut errors = Vec::new();
    for (path, text, expr) in named.chain(judged.iter().cloned()) {
        let mut found = Vec::new();
        refused(expr, &mut open, &mut found);
        let of_open = found.into_iter().map(|(what, span)| {
            let message = format!("{what} of a list that depends on the future can never be decided");
            CelError::new(&text.0, message, span, "here", Some(OPEN_HELP.to_owned()))
        });
        let of_dropped = not_kept(expr).into_iter().map(|(what, span)| {
            let message = format!("{what}: what reads it can never be decided");
            CelError::new(&text.0, message, span, "here", Some(NOT_KEPT_HELP.to_owned()))
        });
        errors.extend(of_open.chain(of_dropped).map(|error| SpecError::expression(origin, &path, error)));
    }
    errors
}

/// Where an expression reads what is not kept of an object whose kind is known, and what that is.
fn not_kept(expr: &Expr) -> Vec<(String, Span)> {
    let mut found = Vec::new();
    expr.walk(&mut |part| {
        let (base, last) = match &part.node {
            Node::Select { base, field } | Node::OptSelect { base, field } => (base, Some((field, true))),
            Node::HasField { base, field } => (base, Some((field, false))),
            Node::Index { base, .. } | Node::OptIndex { base, .. } => (base, None),
            _ => return,
        };
        let (Node::Select { base: object, field } | Node::OptSelect { base: object, field }) = &base.node else {
            return;
        };
        let Type::Object(Some(kind)) = &object.ty else { return };
        // whether a key is there is known
        if hidden(kind).contains(&&**field) && last.is_none_or(|(_, reads)| reads) {
            found.push(("values of Secrets and ConfigMaps are not kept".to_owned(), part.span));
        }
        if let Some((last, _)) = last
            && is_dropped(kind, &[field, last])
        {
            found.push((format!("`{field}.{last}` of a {} is not kept", kind.kind), part.span));
        }
    });
    found
}

/// The named values that an expression uses, itself or by others.
fn names(expr: &Expr, lets: &[(Str, Expr)], used: &mut BTreeSet<Str>) {
    expr.walk(&mut |part| {
        if let Node::Var(name) = &part.node
            && let Some((name, value)) = lets.iter().find(|(known, _)| known == name)
            && used.insert(name.clone())
        {
            names(value, lets, used);
        }
    });
}

/// What an expression asks of open lists in vain, and where. `open` says of the names in scope whether they are some.
fn refused(expr: &Expr, open: &mut Vec<(Str, bool)>, found: &mut Vec<(String, Span)>) {
    match &expr.node {
        Node::Call { func, args } if !func.takes_open_lists() && args.iter().any(|arg| is_open(arg, open)) => {
            found.push((format!("`{func}`"), expr.span));
        }
        Node::Index { base, .. } | Node::OptIndex { base, .. } if is_open(base, open) => {
            found.push(("an item".to_owned(), expr.span));
        }
        Node::Comprehension { range, vars: (_, Some(_)), .. } if is_open(range, open) => {
            found.push(("a macro with two names".to_owned(), expr.span));
        }
        _ => {}
    }
    let depth = open.len();
    match &expr.node {
        Node::Let { var, init, body } => {
            refused(init, open, found);
            let is_open = is_open(init, open);
            open.push((var.clone(), is_open));
            refused(body, open, found);
        }
        Node::Comprehension { range, vars, filter, body, .. } => {
            refused(range, open, found);
            open.extend([Some(&vars.0), vars.1.as_ref()].into_iter().flatten().map(|var| (var.clone(), false)));
            filter.iter().chain([body]).for_each(|part| refused(part, open, found));
        }
        _ => expr.for_each_part(&mut |part| refused(part, open, found)),
    }
    open.truncate(depth);
}

/// Whether the future surely decides what is in a list: objects of the future that were filtered or mapped, or objects of
/// which the future was asked one by one.
fn is_open(expr: &Expr, open: &[(Str, bool)]) -> bool {
    match &expr.node {
        Node::Var(name) => open.iter().rev().find(|(known, _)| known == name).is_some_and(|(_, is_open)| *is_open),
        Node::Comprehension {
            kind: Comprehension::Filter | Comprehension::Map,
            range,
            vars: (var, None),
            filter,
            body,
        } => {
            let asks = filter.iter().chain([body]).any(|part| asks_the_future_of(part, var));
            is_open(range, open) || is_of_the_future(range) || asks
        }
        Node::Call { func, args } if func.takes_open_lists() && matches!(expr.ty, Type::List(_)) => {
            args.iter().any(|arg| is_open(arg, open))
        }
        Node::Cond { then, otherwise, .. } => is_open(then, open) || is_open(otherwise, open),
        Node::Let { var, init, body } => {
            let inner = [open, &[(var.clone(), is_open(init, open))]].concat();
            is_open(body, &inner)
        }
        _ => false,
    }
}

/// Whether it is a list of pods as they will be: controllers make and delete them at any time.
fn is_of_the_future(expr: &Expr) -> bool {
    let is_pod = |item: &Type| matches!(item, Type::Object(Some(kind)) if &*kind.kind == "Pod");
    matches!(&expr.node, Node::Call { func, args } if asks_now(*func, args))
        && matches!(&expr.ty, Type::List(item) if is_pod(item))
}

fn asks_now(func: Func, args: &[Expr]) -> bool {
    func.class() == Class::Navigates && args.iter().any(Expr::is_now)
}

/// Whether an expression asks what becomes of the object that a name stands for.
fn asks_the_future_of(expr: &Expr, name: &Str) -> bool {
    let mut asks = false;
    expr.walk(&mut |part| {
        if let Node::Call { func, args } = &part.node {
            let receiver = args.first().map(|arg| &arg.node);
            asks |= asks_now(*func, args) && matches!(receiver, Some(Node::Var(var)) if var == name);
        }
    });
    asks
}
