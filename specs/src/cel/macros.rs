//! The macros of CEL: `has`, `cel.bind`, `optMap`, and those over lists and maps, with one variable or two.

use cel_core::{Expr as Syntax, SpannedExpr};
use suture_model::value::Str;

use super::error::CelError;
use super::lower::{Lowering, span_of};
use super::scope::RESERVED;
use crate::ir::{Comprehension, Expr, Node, Span, Type};

type Lowered = Result<Expr, CelError>;

/// The macros that are written as methods.
pub(super) const NAMES: [&str; 12] = [
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "map",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "optMap",
    "optFlatMap",
    "orValue",
];

/// A macro over a list or a map: what it computes, and how many arguments it takes with one and with two variables.
fn shape(name: &str, args: usize) -> Option<(Comprehension, bool, bool)> {
    // (kind, two variables, filtered)
    Some(match (name, args) {
        ("all", 2) => (Comprehension::All, false, false),
        ("all", 3) => (Comprehension::All, true, false),
        ("exists", 2) => (Comprehension::Exists, false, false),
        ("exists", 3) => (Comprehension::Exists, true, false),
        ("exists_one" | "existsOne", 2) => (Comprehension::ExistsOne, false, false),
        ("exists_one" | "existsOne", 3) => (Comprehension::ExistsOne, true, false),
        ("filter", 2) => (Comprehension::Filter, false, false),
        ("map", 2) => (Comprehension::Map, false, false),
        ("map", 3) => (Comprehension::Map, false, true),
        ("transformList", 3) => (Comprehension::Map, true, false),
        ("transformList", 4) => (Comprehension::Map, true, true),
        ("transformMap", 3) => (Comprehension::TransformMap, true, false),
        ("transformMap", 4) => (Comprehension::TransformMap, true, true),
        ("transformMapEntry", 3) => (Comprehension::TransformMapEntry, true, false),
        ("transformMapEntry", 4) => (Comprehension::TransformMapEntry, true, true),
        _ => return None,
    })
}

/// How many of a macro's arguments are names that it binds.
pub(super) fn binders(name: &str, args: usize) -> usize {
    match name {
        "optMap" | "optFlatMap" => 1,
        _ => shape(name, args).map_or(0, |(_, two, _)| if two { 2 } else { 1 }),
    }
}

fn usage(name: &str) -> &'static str {
    match name {
        "map" => "write `map(x, value)` or `map(x, condition, value)`",
        "transformList" | "transformMap" | "transformMapEntry" => {
            "write `transformList(i, x, value)`, or with a condition before the value"
        }
        "filter" => "write `filter(x, condition)`",
        _ => "write `all(x, condition)`, or `all(i, x, condition)`",
    }
}

impl Lowering<'_> {
    pub(super) fn has_macro(&mut self, args: &[SpannedExpr], span: Span) -> Lowered {
        let [only] = args else {
            return Err(self.report.error(
                "`has` takes one argument",
                span,
                "here",
                Some("write `has(x.field)`".into()),
            ));
        };
        let Syntax::Member { expr, field, optional: false } = &only.node else {
            let help = Some("write `has(x.field)`; for a map key, `key in x`".into());
            return Err(self.report.error("`has` asks for a field", span_of(only), "this is no field", help));
        };
        let base = self.expr(expr)?;
        if base.ty == Type::World {
            let help = Some("write `now.has('Pod', namespace, name)`, or look at the size of the list".into());
            return Err(self.report.error("a state has all its lists", span_of(only), "always true", help));
        }
        self.field(&base, field, span_of(only))?;
        let node = Node::HasField { base: Box::new(base), field: field.as_str().into() };
        Ok(Expr::new(node, Type::Bool, span))
    }

    pub(super) fn bind(&mut self, args: &[SpannedExpr], span: Span) -> Lowered {
        let [name, init, body] = args else {
            let help = Some("write `cel.bind(name, value, expression)`".into());
            return Err(self.report.error("`cel.bind` takes three arguments", span, "here", help));
        };
        let var = self.name(name)?;
        let init = self.expr(init)?;
        let body = self.within(&[(var.clone(), init.ty.clone())], |this| this.expr(body))?;
        let ty = body.ty.clone();
        Ok(Expr::new(Node::Let { var, init: Box::new(init), body: Box::new(body) }, ty, span))
    }

    /// The macro of this name on this receiver; `None` when it is no macro.
    pub(super) fn receiver_macro(
        &mut self,
        receiver: &SpannedExpr,
        name: &str,
        args: &[SpannedExpr],
        place: Span,
        span: Span,
    ) -> Option<Lowered> {
        if matches!(name, "optMap" | "optFlatMap") {
            return Some(self.opt_map(receiver, name, args, place, span));
        }
        if !NAMES.contains(&name) || name == "orValue" {
            return None;
        }
        Some(match shape(name, args.len()) {
            Some((kind, two, filtered)) => self.comprehension(receiver, name, args, (kind, two, filtered), span),
            None => {
                let message = format!("`{name}` does not take {} arguments", args.len());
                Err(self.report.error(message, place, "wrong number of arguments", Some(usage(name).into())))
            }
        })
    }

    fn opt_map(
        &mut self,
        receiver: &SpannedExpr,
        name: &str,
        args: &[SpannedExpr],
        place: Span,
        span: Span,
    ) -> Lowered {
        let [var, body] = args else {
            let help = Some(format!("write `{name}(x, expression)`"));
            return Err(self.report.error(format!("`{name}` takes two arguments"), place, "here", help));
        };
        let base = self.expr(receiver)?;
        let Type::Optional(inner) = &base.ty else {
            let message = format!("`{name}` needs an optional, found {}", base.ty);
            let help = Some("`x.?field` and `x[?key]` give optionals".into());
            return Err(self.report.error(message, base.span, format!("this is of type {}", base.ty), help));
        };
        let inner = (**inner).clone();
        let var = self.name(var)?;
        let body = self.within(&[(var.clone(), inner)], |this| this.expr(body))?;
        let flat = name == "optFlatMap";
        if flat && !matches!(body.ty, Type::Optional(_)) {
            let message = format!("`optFlatMap` needs an optional as result, found {}", body.ty);
            return Err(self.report.error(message, body.span, "not an optional", Some("write `optMap`".into())));
        }
        let ty = if flat { body.ty.clone() } else { Type::Optional(Box::new(body.ty.clone())) };
        let node = Node::OptMap { base: Box::new(base), var, body: Box::new(body), flat };
        Ok(Expr::new(node, ty, span))
    }

    fn comprehension(
        &mut self,
        receiver: &SpannedExpr,
        name: &str,
        args: &[SpannedExpr],
        (kind, two, filtered): (Comprehension, bool, bool),
        span: Span,
    ) -> Lowered {
        let range = self.expr(receiver)?;
        let types = match (&range.ty, two) {
            (Type::List(item), false) => ((**item).clone(), None),
            (Type::List(item), true) => (Type::Int, Some((**item).clone())),
            (Type::Map(key, _), false) => ((**key).clone(), None),
            (Type::Map(key, value), true) => ((**key).clone(), Some((**value).clone())),
            (Type::Any | Type::Never, _) => (Type::Any, two.then_some(Type::Any)),
            (other, _) => return Err(self.no_range(name, other, &range)),
        };
        let mut args = args.iter();
        let mut vars = Vec::new();
        let (first, second) = (args.next(), if two { args.next() } else { None });
        for (arg, ty) in [(first, Some(types.0.clone())), (second, types.1)] {
            if let (Some(arg), Some(ty)) = (arg, ty) {
                let var = self.name(arg)?;
                if vars.iter().any(|(known, _)| *known == var) {
                    let message = format!("`{var}` names both variables");
                    return Err(self.report.error(message, span_of(arg), "named already", None));
                }
                vars.push((var, ty));
            }
        }
        let filter_syntax = if filtered { args.next() } else { None };
        let body_syntax = args.next();
        let boolean = matches!(
            kind,
            Comprehension::All | Comprehension::Exists | Comprehension::ExistsOne | Comprehension::Filter
        );
        let label = format!("`{name}`");
        let (filter, body) = self.within(&vars, |this| {
            let filter = filter_syntax.map(|f| this.condition(f, &label)).transpose()?;
            let body = match body_syntax {
                Some(body) if boolean => this.condition(body, &label)?,
                Some(body) => this.expr(body)?,
                None => return Err(this.report.error(format!("{label} needs a body"), span, "here", None)),
            };
            Ok((filter, body))
        })?;
        let ty = self.result(kind, &range.ty, &types.0, &body)?;
        let mut vars = vars.into_iter().map(|(var, _)| var);
        let vars = (vars.next().unwrap_or_else(|| "".into()), vars.next());
        let node = Node::Comprehension {
            kind,
            range: Box::new(range),
            vars,
            filter: filter.map(Box::new),
            body: Box::new(body),
        };
        Ok(Expr::new(node, ty, span))
    }

    fn result(&self, kind: Comprehension, range: &Type, first: &Type, body: &Expr) -> Result<Type, CelError> {
        Ok(match kind {
            Comprehension::All | Comprehension::Exists | Comprehension::ExistsOne => Type::Bool,
            Comprehension::Filter => Type::list(first.clone()),
            Comprehension::Map => Type::list(body.ty.clone()),
            Comprehension::TransformMap => {
                let key = if matches!(range, Type::List(_)) { Type::Int } else { first.clone() };
                Type::map(key, body.ty.clone())
            }
            Comprehension::TransformMapEntry => match &body.ty {
                Type::Map(..) | Type::Any => body.ty.clone(),
                other => {
                    let message = format!("`transformMapEntry` needs a map as value, found {other}");
                    return Err(self.report.error(message, body.span, format!("this is of type {other}"), None));
                }
            },
        })
    }

    fn no_range(&self, name: &str, ty: &Type, range: &Expr) -> CelError {
        let message = format!("`{name}` needs a list or a map, found {ty}");
        let help = match ty {
            Type::Optional(_) => Some("take its value with `.orValue([])`".to_owned()),
            Type::World => Some("take a list of it: `now.pods`".to_owned()),
            _ => None,
        };
        self.report.error(message, range.span, format!("this is of type {ty}"), help)
    }

    /// The name of a variable that a macro binds.
    fn name(&self, syntax: &SpannedExpr) -> Result<Str, CelError> {
        match &syntax.node {
            Syntax::Ident(name) if RESERVED.contains(&name.as_str()) => {
                let message = format!("`{name}` cannot be the name of a variable");
                Err(self.report.error(message, span_of(syntax), "has a meaning already", None))
            }
            Syntax::Ident(name) => Ok(name.as_str().into()),
            _ => Err(self.report.error("expected the name of a variable", span_of(syntax), "this is no name", None)),
        }
    }

    fn within<R>(
        &mut self,
        vars: &[(Str, Type)],
        run: impl FnOnce(&mut Self) -> Result<R, CelError>,
    ) -> Result<R, CelError> {
        let depth = self.locals.len();
        self.locals.extend_from_slice(vars);
        let result = run(self);
        self.locals.truncate(depth);
        result
    }
}
