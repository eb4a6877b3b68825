//! Operators, functions and methods: which signature a call has, hence its type.

use cel_core::{Expr as Syntax, SpannedExpr};
use suture_model::kinds::{Kind, KindTraits};

use super::confine::confine;
use super::error::{CelError, field_span};
use super::lower::{Lowering, list_names, unsupported};
use crate::functions::{Comparison, Func, Param, Signature, Style, signatures};
use crate::ir::{Expr, Node, Span, Type};
use crate::suggest::nearest;
use crate::value::Value;

type Lowered = Result<Expr, CelError>;

/// How well arguments fit a signature.
#[derive(PartialEq)]
enum Fit {
    /// By their types.
    Exact(Type),
    /// If the ones of unknown type turn out right.
    Perhaps(Type),
}

impl Lowering<'_> {
    pub(super) fn call(&mut self, callee: &SpannedExpr, args: &[SpannedExpr], span: Span) -> Lowered {
        match &callee.node {
            Syntax::Ident(name) if name == "has" => self.has_macro(args, span),
            Syntax::Ident(name) => {
                let args = self.exprs(args)?;
                let place = Span { start: callee.span.start, end: callee.span.end };
                self.resolve(name, Style::Function, args, span, place)
            }
            Syntax::Member { expr: receiver, field, optional: false } => {
                self.method(receiver, field, args, callee, span)
            }
            _ => Err(self.report.error("only names can be called", span, "here", None)),
        }
    }

    fn method(
        &mut self,
        receiver: &SpannedExpr,
        name: &str,
        args: &[SpannedExpr],
        callee: &SpannedExpr,
        span: Span,
    ) -> Lowered {
        let place = field_span(Span { start: callee.span.start, end: callee.span.end }, name);
        if let Syntax::Ident(namespace) = &receiver.node
            && !self.locals.iter().any(|(n, _)| **n == **namespace)
            && self.scope.get(namespace).is_none()
        {
            let qualified = format!("{namespace}.{name}");
            if qualified == "cel.bind" {
                return self.bind(args, span);
            }
            if matches!(namespace.as_str(), "math" | "optional" | "cel") {
                let args = self.exprs(args)?;
                return self.resolve(&qualified, Style::Function, args, span, place);
            }
        }
        if let Some(expanded) = self.receiver_macro(receiver, name, args, place, span) {
            return expanded;
        }
        let mut all = vec![self.expr(receiver)?];
        all.extend(self.exprs(args)?);
        self.resolve(name, Style::Method, all, span, place)
    }

    fn exprs(&mut self, args: &[SpannedExpr]) -> Result<Vec<Expr>, CelError> {
        args.iter().map(|a| self.expr(a)).collect()
    }

    pub(super) fn operator(&mut self, func: Func, args: Vec<Expr>, span: Span) -> Lowered {
        if let [a, b] = args.as_slice() {
            match func.comparison() {
                Some(Comparison::Equal | Comparison::Different) => self.comparable(func, a, b, span)?,
                Some(_) => self.ordered(func, a, b, span)?,
                None if func == Func::In => self.member_of(a, b, span)?,
                None => return self.resolve(func.name(), Style::Operator, args, span, span),
            }
            return Ok(Expr::new(Node::Call { func, args }, Type::Bool, span));
        }
        self.resolve(func.name(), Style::Operator, args, span, span)
    }

    fn comparable(&self, func: Func, a: &Expr, b: &Expr, span: Span) -> Result<(), CelError> {
        if self.are_unknown(&a.ty, &b.ty) {
            return Err(self.both_unknown(func, span));
        }
        match (&a.ty, &b.ty) {
            (Type::Null, ty) | (ty, Type::Null) if !ty.nullable() && !matches!(ty, Type::Null | Type::Never) => {
                let help = "ask with `has(..)` whether it is there, or read it with `.?field.orValue(..)`";
                let message = format!("a value of type {ty} is never null");
                Err(self.report.error(message, span, "always the same", Some(help.into())))
            }
            (x, y) if x.join(y).is_none() => Err(self.different(func, x, y, span)),
            _ => Ok(()),
        }
    }

    /// Whether nobody can say what comparing these gives, before there are values.
    fn are_unknown(&self, a: &Type, b: &Type) -> bool {
        !self.scope.dynamic && a.is_any() && b.is_any()
    }

    fn both_unknown(&self, func: Func, span: Span) -> CelError {
        let help = "say what one of them is: `string(..)`, `int(..)`, `bool(..)`";
        let message = format!("`{func}` on two values of unknown type");
        self.report.error(message, span, "no schema says what these are", Some(help.into()))
    }

    fn different(&self, func: Func, a: &Type, b: &Type, span: Span) -> CelError {
        let number = |t: &Type| matches!(t, Type::Int | Type::UInt | Type::Double);
        let help = if number(a) && number(b) {
            Some(format!("convert one of them: `{a}(..)` or `{b}(..)`"))
        } else if matches!(a, Type::Optional(_)) || matches!(b, Type::Optional(_)) {
            Some("take the value of the optional with `.orValue(..)`".into())
        } else {
            None
        };
        let message = format!("`{func}` on different types: {a} and {b}");
        self.report.error(message, span, "never equal", help)
    }

    fn ordered(&self, func: Func, a: &Expr, b: &Expr, span: Span) -> Result<(), CelError> {
        if self.are_unknown(&a.ty, &b.ty) {
            return Err(self.both_unknown(func, span));
        }
        let number = |t: &Type| matches!(t, Type::Int | Type::UInt | Type::Double | Type::Any | Type::Never);
        let simple = |t: &Type| {
            matches!(
                t,
                Type::Bool | Type::String | Type::Bytes | Type::Timestamp | Type::Duration | Type::Any | Type::Never
            )
        };
        if number(&a.ty) && number(&b.ty) || simple(&a.ty) && simple(&b.ty) && a.ty.join(&b.ty).is_some() {
            return Ok(());
        }
        let message = format!("`{func}` is not defined on {} and {}", a.ty, b.ty);
        let help = "numbers, strings, bytes, Booleans, timestamps and durations have an order";
        Err(self.report.error(message, span, "these have no order", Some(help.into())))
    }

    fn member_of(&self, a: &Expr, b: &Expr, span: Span) -> Result<(), CelError> {
        let item = match &b.ty {
            Type::List(item) => item,
            Type::Map(key, _) => key,
            ty @ Type::Any if self.are_unknown(&a.ty, ty) => return Err(self.both_unknown(Func::In, span)),
            Type::Any | Type::Never => return Ok(()),
            other => {
                let message = format!("`in` needs a list or a map, found {other}");
                return Err(self.report.error(message, b.span, format!("this is of type {other}"), None));
            }
        };
        if self.are_unknown(&a.ty, item) {
            return Err(self.both_unknown(Func::In, span));
        }
        match a.ty.join(item) {
            Some(_) => Ok(()),
            None => Err(self.different(Func::In, &a.ty, item, span)),
        }
    }

    fn resolve(&mut self, name: &str, style: Style, args: Vec<Expr>, span: Span, place: Span) -> Lowered {
        let named: Vec<&Signature> = signatures().iter().filter(|s| s.name == name && s.style == style).collect();
        if named.is_empty() {
            return Err(self.unknown_function(name, style, &args, place));
        }
        let fits: Vec<&Signature> = named.iter().copied().filter(|s| s.params.len() == args.len()).collect();
        if fits.is_empty() {
            return Err(self.wrong_count(name, style, &named, args.len(), place));
        }
        let found: Vec<(&Signature, Fit)> = fits.iter().filter_map(|s| Some((*s, fit(s, &args)?))).collect();
        let exact = found.iter().find_map(|(s, f)| match f {
            Fit::Exact(ty) => Some((s.func, ty.clone())),
            Fit::Perhaps(_) => None,
        });
        let mut perhaps: Vec<(Func, Type)> = Vec::new();
        for (signature, fit) in &found {
            if let Fit::Perhaps(ty) = fit
                && !perhaps.iter().any(|(_, known)| known == ty)
            {
                perhaps.push((signature.func, ty.clone()));
            }
        }
        match (exact, perhaps.as_slice()) {
            (Some((func, ty)), _) => self.checked(func, args, ty, span),
            (None, [(func, ty)]) => self.checked(*func, args, ty.clone(), span),
            (None, []) => Err(self.no_signature(name, style, &fits, &args, place)),
            (None, [(func, _), others @ ..]) if self.scope.dynamic && others.iter().all(|(other, _)| other == func) => {
                self.checked(*func, args, Type::Any, span)
            }
            (None, several) => {
                let results: Vec<String> = several.iter().map(|(_, ty)| ty.to_string()).collect();
                let message = format!("the type of `{name}` is not clear: {}", results.join(" or "));
                let help = "say what the arguments of unknown type are: `int(..)`, `string(..)`, `double(..)`";
                Err(self.report.error(message, span, "no schema says what this takes", Some(help.into())))
            }
        }
    }

    /// What is known more of some functions when an argument is a constant.
    fn checked(&self, func: Func, mut args: Vec<Expr>, mut ty: Type, span: Span) -> Lowered {
        if let Some(namespace) = self.scope.namespace() {
            confine(self.report, namespace, func, func.name(), &mut args, span)?;
        }
        match (func, args.as_slice()) {
            (Func::Matches, [_, Expr { node: Node::Const(Value::String(pattern)), span: at, .. }]) => {
                if let Err(error) = crate::strings::compile(pattern) {
                    return Err(self.report.error(error.to_string(), *at, "this pattern", None));
                }
            }
            (Func::Objects, [_, Expr { node: Node::Const(Value::String(name)), span: at, .. }]) => {
                if let Some(kind) = self.kind_named(name, *at)? {
                    let text = |s: &suture_model::value::Str| Node::Const(Value::String(s.clone()));
                    let place = *at;
                    args.truncate(1);
                    args.push(Expr::new(text(&kind.group), Type::String, place));
                    args.push(Expr::new(text(&kind.kind), Type::String, place));
                    ty = Type::list(Type::Object(Some(kind)));
                }
            }
            (Func::Objects, [_, group, kind]) => {
                if let (Node::Const(Value::String(group)), Node::Const(Value::String(kind))) = (&group.node, &kind.node)
                    && let Some(kind) = Kind::builtin(kind).filter(|k| k.group == *group)
                {
                    ty = Type::list(Type::Object(Some(kind)));
                }
            }
            (Func::InNamespace, [_, _, Expr { node: Node::Const(Value::String(name)), span: at, .. }]) => {
                if let Some(kind) = self.kind_named(name, *at)? {
                    ty = Type::list(Type::Object(Some(kind)));
                }
            }
            (Func::HasObject, [_, Expr { node: Node::Const(Value::String(name)), span: at, .. }, ..]) => {
                self.kind_named(name, *at)?;
            }
            _ => {}
        }
        Ok(Expr::new(Node::Call { func, args }, ty, span))
    }

    /// The built-in kind of a name; an error when the name is one but for its case.
    fn kind_named(&self, name: &str, at: Span) -> Result<Option<Kind>, CelError> {
        let misspelt = KindTraits::listed().find(|KindTraits { kind, resource, .. }| {
            *kind != name && (kind.eq_ignore_ascii_case(name) || resource.eq_ignore_ascii_case(name))
        });
        match misspelt {
            Some(KindTraits { kind, .. }) => {
                let message = format!("`{name}` is no kind");
                Err(self.report.error(
                    message,
                    at,
                    "a kind is written as in a manifest",
                    Some(format!("did you mean `{kind}`?")),
                ))
            }
            None => Ok(Kind::builtin(name)),
        }
    }

    fn unknown_function(&self, name: &str, style: Style, args: &[Expr], place: Span) -> CelError {
        let what = if style == Style::Method { "method" } else { "function" };
        let other = signatures().iter().find(|s| s.name == name && s.style != style && s.style != Style::Operator);
        let near = || {
            let same = signatures().iter().filter(|s| s.style == style).filter(|s| match (style, args.first()) {
                (Style::Method, Some(receiver)) => s.params.first().is_some_and(|p| receives(*p, &receiver.ty)),
                _ => true,
            });
            let macros = super::macros::NAMES.iter().copied().filter(|_| style == Style::Method);
            nearest(name, same.map(|s| s.name).chain(macros))
        };
        let field = args.first().filter(|_| style == Style::Method && args.len() == 1);
        let is_field = field.is_some_and(|r| super::schema::fields_of(&r.ty).iter().any(|f| f == name));
        let help = unsupported(name)
            .or_else(|| other.map(|s| format!("it is written `{s}`")))
            .or_else(|| is_field.then(|| format!("`{name}` is a field: write it without brackets")))
            .or_else(|| near().map(|n| format!("did you mean `{n}`?")));
        self.report.error(format!("there is no {what} `{name}`"), place, format!("no such {what}"), help)
    }

    fn wrong_count(&self, name: &str, style: Style, named: &[&Signature], found: usize, place: Span) -> CelError {
        let receiver = usize::from(style == Style::Method);
        let mut counts: Vec<usize> = named.iter().map(|s| s.params.len() - receiver).collect();
        counts.sort_unstable();
        counts.dedup();
        let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
        let message = format!("`{name}` takes {} arguments, found {}", counts.join(" or "), found - receiver);
        self.report.error(message, place, "wrong number of arguments", Some(forms(named)))
    }

    fn no_signature(&self, name: &str, style: Style, fits: &[&Signature], args: &[Expr], place: Span) -> CelError {
        let types: Vec<String> = args.iter().map(|a| a.ty.to_string()).collect();
        let message = match (style, types.as_slice()) {
            (Style::Operator, [only]) => format!("`{name}` is not defined on {only}"),
            (Style::Operator, [a, b]) => format!("`{name}` is not defined on {a} and {b}"),
            (Style::Method, [receiver]) => format!("`{name}` is no method of {receiver}"),
            (Style::Method, [receiver, rest @ ..]) => {
                format!("`{name}` is not defined on {receiver} with {}", rest.join(", "))
            }
            (_, all) => format!("`{name}` is not defined on {}", all.join(", ")),
        };
        let optional = args.iter().any(|a| matches!(a.ty, Type::Optional(_)));
        let help = match style {
            _ if optional => "take the value of the optional with `.orValue(..)`".to_owned(),
            Style::Operator if fits.iter().any(|s| s.params.first() == Some(&Param::Int)) => {
                "both sides must be of one type: convert one with `int(..)`, `double(..)` or `string(..)`".to_owned()
            }
            _ => forms(fits),
        };
        self.report.error(message, place, "not for these types", Some(help))
    }
}

/// The signatures, at most three.
fn forms(signatures: &[&Signature]) -> String {
    let forms: Vec<String> = signatures.iter().take(3).map(ToString::to_string).collect();
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    format!("it is {}", list_names(&forms))
}

/// Whether values of a type have a method of this name.
pub(super) fn has_method(ty: &Type, name: &str) -> bool {
    let mut methods = signatures().iter().filter(|s| s.style == Style::Method && s.name == name);
    methods.any(|s| s.params.first().is_some_and(|p| receives(*p, ty)))
}

/// Whether a parameter can take a value of this type, type variables aside.
fn receives(param: Param, ty: &Type) -> bool {
    let mut binds = Binds::default();
    binds.fits(param, ty)
}

/// What type variables stand for, and whether something had to be taken on trust.
#[derive(Default)]
struct Binds {
    t: Option<Type>,
    u: Option<Type>,
    receiver: Option<Type>,
    trusted: bool,
}

fn fit(signature: &Signature, args: &[Expr]) -> Option<Fit> {
    let mut binds = Binds::default();
    for (param, arg) in signature.params.iter().zip(args) {
        if !binds.fits(*param, &arg.ty) {
            return None;
        }
    }
    let result = binds.result(signature.result);
    Some(if binds.trusted { Fit::Perhaps(result) } else { Fit::Exact(result) })
}

impl Binds {
    fn fits(&mut self, param: Param, ty: &Type) -> bool {
        match (param, ty) {
            (Param::Any, _) => true,
            (Param::T, _) => bind(&mut self.t, ty),
            (Param::U, _) => bind(&mut self.u, ty),
            (Param::List(item), Type::List(inner)) => self.fits(*item, inner),
            (Param::Map(key, value), Type::Map(k, v)) => self.fits(*key, k) && self.fits(*value, v),
            (Param::Optional(inner), Type::Optional(t)) => self.fits(*inner, t),
            (Param::Object | Param::Receiver, Type::Object(_)) => {
                self.receiver.get_or_insert_with(|| ty.clone());
                true
            }
            (Param::Kind(kind), Type::Object(Some(found))) => found.is(kind),
            (Param::Kind(_), Type::Object(None)) => true,
            (_, Type::Never) => true,
            // JSON is never an object, a state, or another thing of ours
            (
                Param::Object
                | Param::Receiver
                | Param::Kind(_)
                | Param::World
                | Param::Reference
                | Param::Owner
                | Param::HostClaim
                | Param::Optional(_)
                | Param::Type
                | Param::Timestamp
                | Param::Duration
                | Param::Bytes,
                Type::Any,
            ) => false,
            (_, Type::Any) => {
                self.trusted = true;
                true
            }
            (param, ty) => param.plain() == *ty,
        }
    }

    fn result(&self, result: Param) -> Type {
        match result {
            Param::T => self.t.clone().unwrap_or(Type::Never),
            Param::U => self.u.clone().unwrap_or(Type::Never),
            Param::List(item) => Type::list(self.result(*item)),
            Param::Map(key, value) => Type::map(self.result(*key), self.result(*value)),
            Param::Optional(inner) => Type::Optional(Box::new(self.result(*inner))),
            Param::Receiver => self.receiver.clone().unwrap_or(Type::Object(None)),
            other => other.plain(),
        }
    }
}

fn bind(variable: &mut Option<Type>, ty: &Type) -> bool {
    let joined = match variable.as_ref() {
        Some(known) => known.join(ty),
        None => Some(ty.clone()),
    };
    let fits = joined.is_some();
    if fits {
        *variable = joined;
    }
    fits
}
