//! The strict pass: every node gets a type from its parts, bottom up, and becomes a node of the IR.

use cel_core::{BinaryOp, Expr as Syntax, SpannedExpr, UnaryOp};
use suture_model::kinds::KindTraits;
use suture_model::value::Str;

use super::confine::confine;
use super::error::{CelError, Reporter, field_span};
use super::schema::{field_type, fields_of};
use super::scope::Scope;
use crate::functions::{Func, UNSUPPORTED, signatures, world_field};
use crate::ir::{Element, Entry, Expr, Node, Span, Type};
use crate::suggest::nearest;
use crate::value::{Value, World};

type Lowered = Result<Expr, CelError>;

/// The deepest tree: whatever runs it recurses, on threads with stacks of 2 MiB. Chains of `&&` and `||` are balanced and
/// do not count; other chains of operators nest to the left.
pub const TREE_DEPTH_MAX: usize = 128;

/// The names of types, which are values themselves: `type(x) == int`.
const TYPE_NAMES: [&str; 12] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "timestamp", "duration"];

pub(super) struct Lowering<'s> {
    pub(super) scope: &'s Scope,
    pub(super) report: &'s Reporter<'s>,
    pub(super) locals: Vec<(Str, Type)>,
    depth: usize,
}

pub(super) fn span_of(syntax: &SpannedExpr) -> Span {
    Span { start: syntax.span.start, end: syntax.span.end }
}

impl<'s> Lowering<'s> {
    pub(super) fn new(scope: &'s Scope, report: &'s Reporter<'s>) -> Self {
        Self { scope, report, locals: Vec::new(), depth: 0 }
    }

    /// Each form has a function of its own: this one recurses, and its frame holds what all of them need.
    pub(super) fn expr(&mut self, syntax: &SpannedExpr) -> Lowered {
        if self.depth >= TREE_DEPTH_MAX {
            return Err(self.too_deep(span_of(syntax)));
        }
        self.depth += 1;
        let lowered = self.form(syntax);
        self.depth -= 1;
        self.names_its_states(lowered?)
    }

    /// Refuses a state under another name than its own: which expressions depend on the future is told by the name `now`.
    fn names_its_states(&self, expr: Expr) -> Lowered {
        let is_name =
            matches!(&expr.node, Node::Var(name) if [World::Before, World::Now].iter().any(|w| w.name() == &**name));
        if is_name || !expr.ty.holds_state() {
            return Ok(expr);
        }
        let help = "write `now` or `before` where it is asked: `p.existsIn(now)`";
        let message = "a state has no other name than `before` and `now`";
        Err(self.report.error(message, expr.span, "here", Some(help.into())))
    }

    fn form(&mut self, syntax: &SpannedExpr) -> Lowered {
        let span = span_of(syntax);
        match &syntax.node {
            Syntax::Ident(name) => self.ident(name, span, false),
            Syntax::RootIdent(name) => self.ident(name, span, true),
            Syntax::List(elements) => self.list(elements, span),
            Syntax::Map(entries) => self.map(entries, span),
            Syntax::Unary { op: UnaryOp::Not, expr } => self.not(expr, span),
            Syntax::Unary { op: UnaryOp::Neg, expr } => self.negation(expr, span),
            Syntax::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), .. } => self.logic(*op, syntax),
            Syntax::Binary { op, left, right } => self.binary(operator(*op), left, right, span),
            Syntax::Ternary { cond, then_expr, else_expr } => self.conditional(cond, then_expr, else_expr, span),
            Syntax::Member { expr, field, optional } => self.member(expr, field, *optional, span),
            Syntax::Index { expr, index, optional } => self.index(expr, index, *optional, span),
            Syntax::Call { expr, args } => self.call(expr, args, span),
            other => self.literal(other, span),
        }
    }

    fn too_deep(&self, span: Span) -> CelError {
        let message = format!("the expression is nested more than {TREE_DEPTH_MAX} deep");
        let help = "move parts of it into `let`; long sums nest too: write a list and `sum()` or `join()`";
        self.report.error(message, span, "here", Some(help.into()))
    }

    fn literal(&self, syntax: &Syntax, span: Span) -> Lowered {
        let constant = |value: Value, ty: Type| Ok(Expr::new(Node::Const(value), ty, span));
        match syntax {
            Syntax::Null => constant(Value::Null, Type::Null),
            Syntax::Bool(b) => constant(Value::Bool(*b), Type::Bool),
            Syntax::Int(i) => constant(Value::Int(*i), Type::Int),
            Syntax::UInt(u) => constant(Value::UInt(*u), Type::UInt),
            Syntax::Float(d) => constant(Value::Double(*d), Type::Double),
            Syntax::String(s) => constant(Value::str(s.as_str()), Type::String),
            Syntax::Bytes(b) => constant(Value::Bytes(b.as_slice().into()), Type::Bytes),
            Syntax::Struct { .. } => {
                let help = Some("write a map: `{'key': value}`".into());
                Err(self.report.error("message literals are not supported", span, "this makes a message", help))
            }
            _ => Err(self.report.error("this form is not supported", span, "here", None)),
        }
    }

    fn not(&mut self, inner: &SpannedExpr, span: Span) -> Lowered {
        let inner = self.condition(inner, "`!`")?;
        Ok(Expr::new(Node::Not(Box::new(inner)), Type::Bool, span))
    }

    fn negation(&mut self, inner: &SpannedExpr, span: Span) -> Lowered {
        let inner = self.expr(inner)?;
        match inner.node {
            Node::Const(Value::Int(i)) if i != i64::MIN => Ok(Expr::new(Node::Const(Value::Int(-i)), Type::Int, span)),
            Node::Const(Value::Double(d)) => Ok(Expr::new(Node::Const(Value::Double(-d)), Type::Double, span)),
            _ => self.operator(Func::Neg, vec![inner], span),
        }
    }

    fn binary(&mut self, func: Func, left: &SpannedExpr, right: &SpannedExpr, span: Span) -> Lowered {
        let left = self.expr(left)?;
        let right = self.expr(right)?;
        self.operator(func, vec![left, right], span)
    }

    /// An expression that must be a Boolean.
    pub(super) fn condition(&mut self, syntax: &SpannedExpr, of: &str) -> Lowered {
        let expr = self.expr(syntax)?;
        if matches!(expr.ty, Type::Bool | Type::Any | Type::Never) {
            return Ok(expr);
        }
        let message = format!("{of} needs a bool, found {}", expr.ty);
        Err(self.report.error(message, expr.span, format!("this is of type {}", expr.ty), None))
    }

    fn ident(&self, name: &str, span: Span, root: bool) -> Lowered {
        let local = self.locals.iter().rev().find(|(local, _)| &**local == name && !root);
        if let Some((_, ty)) = local {
            return Ok(Expr::new(Node::Var(name.into()), ty.clone(), span));
        }
        if name == "after" {
            return if self.scope.has_after() {
                Ok(Expr::new(Node::Var("now".into()), Type::World, span))
            } else {
                let help = "write `now`, or set `hold: After` to judge settled states only";
                Err(self.report.error(
                    "`after` is only known with `hold: After`",
                    span,
                    "not known here",
                    Some(help.into()),
                ))
            };
        }
        if let Some(ty) = self.scope.get(name) {
            return Ok(Expr::new(Node::Var(name.into()), ty.clone(), span));
        }
        if TYPE_NAMES.contains(&name) {
            let node = Node::Const(Value::Type(named_type(name)));
            return Ok(Expr::new(node, Type::Type, span));
        }
        let help = unsupported(name).or_else(|| {
            let function = signatures().iter().any(|s| s.name == name);
            if function {
                return Some(format!("`{name}` is a function: write `{name}(..)`, or `x.{name}(..)`"));
            }
            let names = self.locals.iter().map(|(n, _)| &**n).chain(self.scope.names());
            nearest(name, names).map(|near| format!("did you mean `{near}`?")).or_else(|| {
                let known: Vec<String> = self.scope.names().map(|n| format!("`{n}`")).collect();
                Some(format!("known are {}", known.join(", ")))
            })
        });
        Err(self.report.error(format!("`{name}` is not known"), span, "not known here", help))
    }

    fn list(&mut self, elements: &[cel_core::ListElement], span: Span) -> Lowered {
        let mut item = Type::Never;
        let mut out = Vec::new();
        for element in elements {
            let value = self.expr(&element.expr)?;
            let ty = self.element_type(&value, element.optional)?;
            item = self.join(&item, &ty, value.span, "the items of a list")?;
            out.push(Element { value, optional: element.optional });
        }
        Ok(Expr::new(Node::List(out), Type::list(item), span))
    }

    fn element_type(&self, value: &Expr, optional: bool) -> Result<Type, CelError> {
        match (&value.ty, optional) {
            (ty, false) => Ok(ty.clone()),
            (Type::Optional(inner), true) => Ok((**inner).clone()),
            (Type::Any, true) => Ok(Type::Any),
            (ty, true) => {
                let message = format!("`?` needs an optional, found {ty}");
                Err(self.report.error(message, value.span, format!("this is of type {ty}"), None))
            }
        }
    }

    fn map(&mut self, entries: &[cel_core::MapEntry], span: Span) -> Lowered {
        let (mut key_type, mut value_type) = (Type::Never, Type::Never);
        let mut out = Vec::new();
        for entry in entries {
            let (key, value) = (self.expr(&entry.key)?, self.expr(&entry.value)?);
            if !matches!(key.ty, Type::Bool | Type::Int | Type::UInt | Type::String | Type::Any) {
                let message = format!("a key is a bool, int, uint or string, found {}", key.ty);
                return Err(self.report.error(message, key.span, format!("this is of type {}", key.ty), None));
            }
            key_type = self.join(&key_type, &key.ty, key.span, "the keys of a map")?;
            let ty = self.element_type(&value, entry.optional)?;
            // the values of a literal map may differ, as in JSON: then nothing is known of them
            value_type = value_type.join(&ty).unwrap_or(Type::Any);
            out.push(Entry { key, value, optional: entry.optional });
        }
        Ok(Expr::new(Node::Map(out), Type::map(key_type, value_type), span))
    }

    fn join(&self, a: &Type, b: &Type, span: Span, what: &str) -> Result<Type, CelError> {
        a.join(b).ok_or_else(|| {
            self.report.error(
                format!("{what} have different types: {a} and {b}"),
                span,
                format!("this is of type {b}"),
                None,
            )
        })
    }

    /// `a && b && c` becomes a balanced tree: what runs it recurses.
    fn logic(&mut self, op: BinaryOp, syntax: &SpannedExpr) -> Lowered {
        let mut parts = Vec::new();
        let mut rest = syntax;
        while let Syntax::Binary { op: inner, left, right } = &rest.node {
            if *inner != op {
                break;
            }
            parts.push(&**right);
            rest = left;
        }
        parts.push(rest);
        parts.reverse();
        let name = if op == BinaryOp::And { "`&&`" } else { "`||`" };
        let mut exprs = Vec::new();
        for part in parts {
            exprs.push(self.condition(part, name)?);
        }
        balanced(op, exprs).ok_or_else(|| self.report.error("unexpected end", span_of(syntax), "here", None))
    }

    fn conditional(&mut self, cond: &SpannedExpr, then: &SpannedExpr, other: &SpannedExpr, span: Span) -> Lowered {
        let cond = self.condition(cond, "the condition of `?:`")?;
        let (then, otherwise) = (self.expr(then)?, self.expr(other)?);
        let Some(ty) = then.ty.join(&otherwise.ty) else {
            return Err(self.report.error(
                format!("the branches of `?:` have different types: {} and {}", then.ty, otherwise.ty),
                otherwise.span,
                format!("this is of type {}", otherwise.ty),
                None,
            ));
        };
        let node = Node::Cond { cond: Box::new(cond), then: Box::new(then), otherwise: Box::new(otherwise) };
        Ok(Expr::new(node, ty, span))
    }

    fn member(&mut self, base: &SpannedExpr, field: &str, optional: bool, span: Span) -> Lowered {
        let base = self.expr(base)?;
        if base.ty == Type::World && !optional {
            return self.world_list(base, field, span);
        }
        let (ty, chained) = self.field(&base, field, span)?;
        let (base, field) = (Box::new(base), Str::from(field));
        let ty = if optional || chained { Type::optional(ty) } else { ty };
        let node = if optional { Node::OptSelect { base, field } } else { Node::Select { base, field } };
        Ok(Expr::new(node, ty, span))
    }

    /// The type of a field, and whether the base is an optional.
    pub(super) fn field(&self, base: &Expr, field: &str, span: Span) -> Result<(Type, bool), CelError> {
        let (inner, chained) = match &base.ty {
            Type::Optional(inner) => (&**inner, true),
            other => (other, false),
        };
        if let Some(params) = self.scope.params().filter(|_| is_params(base, &self.locals)) {
            return match params.get(field) {
                Some(ty) => Ok((ty.clone(), false)),
                None => Err(self.no_field("parameter", field, span, params.keys().map(|k| &**k))),
            };
        }
        if let Some(ty) = field_type(inner, field) {
            return Ok((ty, chained));
        }
        let method = super::calls::has_method(inner, field);
        let fields = fields_of(inner);
        if method {
            let message = format!("{inner} has no field `{field}`");
            let help = format!("`{field}` is a method: write `.{field}(..)`");
            return Err(self.report.error(message, field_span(span, field), "no such field", Some(help)));
        }
        if fields.is_empty() {
            let message = format!("a value of type {inner} has no fields");
            let help = match inner {
                Type::List(_) => Some("use `exists`, `all`, `filter` or `map`, or an index".to_owned()),
                Type::World => Some("write `.pods`, without `?`".to_owned()),
                _ => None,
            };
            return Err(self.report.error(message, field_span(span, field), "no such field", help));
        }
        Err(self.no_field(&inner.to_string(), field, span, fields.iter().map(String::as_str)))
    }

    fn no_field<'c>(&self, of: &str, field: &str, span: Span, known: impl Iterator<Item = &'c str>) -> CelError {
        let known: Vec<&str> = known.collect();
        let help = nearest(field, known.iter().copied()).map(|near| format!("did you mean `{near}`?")).or_else(|| {
            (known.len() <= 12).then(|| format!("there are {}", list_names(&known))).filter(|_| !known.is_empty())
        });
        let message = if of == "parameter" {
            format!("there is no parameter `{field}`")
        } else {
            format!("{of} has no field `{field}`")
        };
        self.report.error(message, field_span(span, field), "no such field", help)
    }

    /// `S.pods` is `S.objects('', 'Pod')`.
    fn world_list(&self, world: Expr, field: &str, span: Span) -> Lowered {
        let Some(kind) = world_field(field) else {
            let known = KindTraits::listed().map(|traits| traits.resource);
            let help = unsupported(field)
                .or_else(|| nearest(field, known).map(|near| format!("did you mean `{near}`?")))
                .unwrap_or_else(|| "other kinds are listed by `objects('Kind')`".into());
            let message = format!("a state has no list `{field}`");
            return Err(self.report.error(message, field_span(span, field), "no such list", Some(help)));
        };
        let place = field_span(span, field);
        if let Some(namespace) = self.scope.namespace() {
            confine(self.report, namespace, Func::Objects, field, &mut [], span)?;
        }
        let text = |value: &Str| Expr::new(Node::Const(Value::String(value.clone())), Type::String, place);
        let args = vec![world, text(&kind.group), text(&kind.kind)];
        Ok(Expr::new(Node::Call { func: Func::Objects, args }, Type::list(Type::Object(Some(kind))), span))
    }

    fn index(&mut self, base: &SpannedExpr, at: &SpannedExpr, optional: bool, span: Span) -> Lowered {
        let (base, at) = (self.expr(base)?, self.expr(at)?);
        let (inner, chained) = match &base.ty {
            Type::Optional(inner) => (&**inner, true),
            other => (other, false),
        };
        let (item, key) = match inner {
            Type::List(item) => ((**item).clone(), Type::Int),
            Type::Map(key, value) => ((**value).clone(), (**key).clone()),
            Type::Any | Type::Never => (Type::Any, Type::Any),
            other => {
                let message = format!("a value of type {other} has no items");
                return Err(self.report.error(message, base.span, format!("this is of type {other}"), None));
            }
        };
        if at.ty.join(&key).is_none() {
            let message = format!("expected {key} as index, found {}", at.ty);
            return Err(self.report.error(message, at.span, format!("this is of type {}", at.ty), None));
        }
        let ty = if optional || chained { Type::optional(item) } else { item };
        let (base, index) = (Box::new(base), Box::new(at));
        let node = if optional { Node::OptIndex { base, index } } else { Node::Index { base, index } };
        Ok(Expr::new(node, ty, span))
    }
}

fn is_params(base: &Expr, locals: &[(Str, Type)]) -> bool {
    matches!(&base.node, Node::Var(name) if &**name == "params") && !locals.iter().any(|(n, _)| &**n == "params")
}

/// What to say of a name that is kept for later or known from elsewhere.
pub(super) fn unsupported(name: &str) -> Option<String> {
    UNSUPPORTED.iter().find(|(known, _)| *known == name).map(|(_, help)| (*help).to_owned())
}

pub(super) fn list_names(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    quoted.join(", ")
}

fn named_type(name: &str) -> Type {
    match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::UInt,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "list" => Type::list(Type::Never),
        "map" => Type::map(Type::Never, Type::Never),
        "null_type" => Type::Null,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        _ => Type::Type,
    }
}

fn operator(op: BinaryOp) -> Func {
    match op {
        BinaryOp::Add => Func::Add,
        BinaryOp::Sub => Func::Sub,
        BinaryOp::Mul => Func::Mul,
        BinaryOp::Div => Func::Div,
        BinaryOp::Mod => Func::Rem,
        BinaryOp::Ne => Func::Ne,
        BinaryOp::Lt => Func::Lt,
        BinaryOp::Le => Func::Le,
        BinaryOp::Gt => Func::Gt,
        BinaryOp::Ge => Func::Ge,
        BinaryOp::In => Func::In,
        // the logical ones are nodes of their own
        BinaryOp::Eq | BinaryOp::And | BinaryOp::Or => Func::Eq,
    }
}

fn balanced(op: BinaryOp, mut exprs: Vec<Expr>) -> Option<Expr> {
    if exprs.len() <= 1 {
        return exprs.pop();
    }
    let right = exprs.split_off(exprs.len() / 2);
    let (left, right) = (balanced(op, exprs)?, balanced(op, right)?);
    let span = Span { start: left.span.start, end: right.span.end };
    let (left, right) = (Box::new(left), Box::new(right));
    let node = if op == BinaryOp::And { Node::And(left, right) } else { Node::Or(left, right) };
    Some(Expr::new(node, Type::Bool, span))
}
