//! What a NamespacedInvariant may read: objects of its own namespace, and what leads from them to no others.
//!
//! Everything else is refused when it is compiled, but a namespace that is computed: that one is compared when it is
//! known, and an expression that asks for another one has no value.

use std::collections::BTreeMap;

use suture_model::value::Str;

use super::error::{CelError, Reporter, field_span};
use crate::functions::{Confinement, Func};
use crate::ir::{Expr, Node, Span, Type};
use crate::value::Value;

/// Refuses a function that may look beyond the namespace, and confines the argument that names one.
pub(super) fn confine(
    report: &Reporter<'_>,
    namespace: &Str,
    func: Func,
    name: &str,
    args: &mut [Expr],
    span: Span,
) -> Result<(), CelError> {
    let beyond = |help: String, place: Span| {
        let message = format!("`{name}` may look beyond namespace `{namespace}`");
        Err(report.error(message, place, "a NamespacedInvariant sees its own only", Some(help)))
    };
    let at = match func.confinement() {
        Confinement::Own => return Ok(()),
        Confinement::Argument(at) => at,
        Confinement::Beyond => {
            let help = if func == Func::Objects {
                format!("list its own: `before.inNamespace('{namespace}', 'Pod')`")
            } else {
                "an Invariant may use it".to_owned()
            };
            return beyond(help, field_span(span, name));
        }
    };
    let Some(given) = args.get_mut(at) else { return Ok(()) };
    match &given.node {
        Node::Const(Value::String(text)) if text == namespace => {}
        Node::Const(_) => return beyond(format!("its own namespace is `'{namespace}'`"), given.span),
        _ => *given = compared(given.clone(), namespace),
    }
    Ok(())
}

/// A namespace if it is this one; without a value otherwise.
fn compared(given: Expr, namespace: &Str) -> Expr {
    let span = given.span;
    let text = |ty: Type, node: Node| Box::new(Expr::new(node, ty, span));
    let own = || Node::Const(Value::String(namespace.clone()));
    let nothing = text(Type::map(Type::String, Type::String), Node::Const(Value::map(BTreeMap::new())));
    let elsewhere = Node::Select { base: nothing, field: format!("a namespace other than {namespace}").into() };
    let same = Node::Call { func: Func::Eq, args: vec![given, *text(Type::String, own())] };
    Expr::new(
        Node::Cond {
            cond: text(Type::Bool, same),
            then: text(Type::String, own()),
            otherwise: text(Type::String, elsewhere),
        },
        Type::String,
        span,
    )
}
