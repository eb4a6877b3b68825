//! The typed intermediate representation of an expression: what CEL source is lowered to, and what both the concrete
//! evaluator and the symbolic one run. It has no syntax left: macros are nodes, `after` is `now`, kinds are resolved.

use std::fmt;

use suture_model::kinds::Kind;
use suture_model::value::Str;

use crate::functions::Func;
use crate::value::Value;

/// A byte range in the source text of an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// The part of `source` that this span covers.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start..self.end).unwrap_or_default()
    }
}

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub node: Node,
    /// Its type, as the strict type checker found it.
    pub ty: Type,
    /// Where it stands in the source.
    pub span: Span,
}

/// The forms of an expression.
#[derive(Clone, Debug)]
pub enum Node {
    /// A literal, or a constant such as the name of a type.
    Const(Value),
    /// A variable; `now` also for the source's `after`.
    Var(Str),
    /// `base.field`. When `base` is optional, so is the result, and it is empty if the field is missing.
    Select {
        /// The object, struct, map or optional.
        base: Box<Expr>,
        /// The field.
        field: Str,
    },
    /// `has(base.field)`.
    HasField {
        /// The object, struct or map.
        base: Box<Expr>,
        /// The field.
        field: Str,
    },
    /// `base.?field`: an optional.
    OptSelect {
        /// The object, struct, map or optional.
        base: Box<Expr>,
        /// The field.
        field: Str,
    },
    /// `base[index]`. When `base` is optional, so is the result.
    Index {
        /// The list, map or optional.
        base: Box<Expr>,
        /// The position or key.
        index: Box<Expr>,
    },
    /// `base[?index]`: an optional.
    OptIndex {
        /// The list, map or optional.
        base: Box<Expr>,
        /// The position or key.
        index: Box<Expr>,
    },
    /// An operator, a function or a method; the receiver is the first argument. All arguments are evaluated.
    Call {
        /// Which function.
        func: Func,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// `!a`.
    Not(Box<Expr>),
    /// `a && b`: false if either is false, even when the other fails.
    And(Box<Expr>, Box<Expr>),
    /// `a || b`: true if either is true, even when the other fails.
    Or(Box<Expr>, Box<Expr>),
    /// `cond ? then : otherwise`: only one branch is evaluated.
    Cond {
        /// The condition.
        cond: Box<Expr>,
        /// When it is true.
        then: Box<Expr>,
        /// When it is false.
        otherwise: Box<Expr>,
    },
    /// A list literal.
    List(Vec<Element>),
    /// A map literal.
    Map(Vec<Entry>),
    /// `cel.bind(var, init, body)`.
    Let {
        /// The name bound.
        var: Str,
        /// Its value.
        init: Box<Expr>,
        /// Where it is in scope.
        body: Box<Expr>,
    },
    /// `base.optMap(var, body)`, or with `flat` `base.optFlatMap(var, body)`.
    OptMap {
        /// The optional.
        base: Box<Expr>,
        /// The name of its value.
        var: Str,
        /// What becomes of the value.
        body: Box<Expr>,
        /// Whether `body` is an optional itself.
        flat: bool,
    },
    /// A macro over the items of a list or the keys of a map.
    Comprehension {
        /// Which macro.
        kind: Comprehension,
        /// The list or map.
        range: Box<Expr>,
        /// The names of the item (or key); in the two-variable form of index and item, or key and value.
        vars: (Str, Option<Str>),
        /// Which items count: the middle argument of `map(x, filter, body)` and of the transformations.
        filter: Option<Box<Expr>>,
        /// The predicate or the new value.
        body: Box<Expr>,
    },
}

/// An element of a list literal.
#[derive(Clone, Debug)]
pub struct Element {
    /// The value, an optional if `optional`.
    pub value: Expr,
    /// `[?value]`: left out when the optional is empty.
    pub optional: bool,
}

/// An entry of a map literal.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: Expr,
    /// The value, an optional if `optional`.
    pub value: Expr,
    /// `{?key: value}`: left out when the optional is empty.
    pub optional: bool,
}

/// What a comprehension computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comprehension {
    /// Whether the body holds of all items; one false decides, even when others fail.
    All,
    /// Whether the body holds of an item; one true decides, even when others fail.
    Exists,
    /// Whether the body holds of exactly one item; fails if the body does on any.
    ExistsOne,
    /// The list of the items (or keys) of which the body holds.
    Filter,
    /// The list of the body's values; also `transformList`.
    Map,
    /// The map from each key (or index) to the body's value: `transformMap`.
    TransformMap,
    /// The map of the entries of the body's one-entry maps: `transformMapEntry`.
    TransformMapEntry,
}

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// Of no value: the items of an empty list literal. Fits everywhere.
    Never,
    /// Of `null`.
    Null,
    /// A Boolean.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// An unsigned 64-bit integer.
    UInt,
    /// A double.
    Double,
    /// A string.
    String,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A span of time.
    Duration,
    /// A list.
    List(Box<Self>),
    /// A map from keys to values.
    Map(Box<Self>, Box<Self>),
    /// A Kubernetes object: of a built-in kind, or of any kind.
    Object(Option<Kind>),
    /// A part of an object that has declared fields, by the name of its schema.
    Struct(Str),
    /// A state of the cluster.
    World,
    /// A reference from one object to another.
    Reference,
    /// An entry of `metadata.ownerReferences`.
    Owner,
    /// A host and path that a route claims.
    HostClaim,
    /// An optional.
    Optional(Box<Self>),
    /// A type as a value, of `type(x)`.
    Type,
    /// JSON that no schema describes: parameters, custom resources, int-or-string fields.
    Any,
}

impl Type {
    /// A list of this.
    #[must_use]
    pub fn list(item: Self) -> Self {
        Self::List(Box::new(item))
    }

    /// A map.
    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Box::new(key), Box::new(value))
    }

    /// An optional of this; an optional stays as it is.
    #[must_use]
    pub fn optional(inner: Self) -> Self {
        match inner {
            Self::Optional(_) => inner,
            inner => Self::Optional(Box::new(inner)),
        }
    }

    /// An object of a built-in kind.
    #[must_use]
    pub fn object(kind: &str) -> Self {
        Self::Object(Kind::builtin(kind))
    }

    /// Whether nothing is known about values of this type.
    pub fn is_any(&self) -> bool {
        matches!(self, Self::Any)
    }

    /// The smallest type that has the values of both; `None` when they do not unify.
    #[must_use]
    pub fn join(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (a, b) if a == b => Some(a.clone()),
            (Self::Never, t) | (t, Self::Never) => Some(t.clone()),
            (Self::Any, _) | (_, Self::Any) => Some(Self::Any),
            (Self::Null, t) | (t, Self::Null) if t.nullable() => Some(t.clone()),
            (Self::List(a), Self::List(b)) => Some(Self::list(a.join(b)?)),
            (Self::Map(ak, av), Self::Map(bk, bv)) => Some(Self::map(ak.join(bk)?, av.join(bv)?)),
            (Self::Optional(a), Self::Optional(b)) => Some(Self::Optional(Box::new(a.join(b)?))),
            (Self::Object(_), Self::Object(_)) => Some(Self::Object(None)),
            _ => None,
        }
    }

    /// Whether comparing a value of this type with `null` can make sense.
    pub fn nullable(&self) -> bool {
        matches!(
            self,
            Self::Any | Self::Object(_) | Self::Struct(_) | Self::Timestamp | Self::Duration | Self::Optional(_)
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("nothing"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::UInt => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(item) if **item == Self::Never => f.write_str("list"),
            Self::List(item) => write!(f, "list<{item}>"),
            Self::Map(key, _) if **key == Self::Never => f.write_str("map"),
            Self::Map(key, value) => write!(f, "map<{key}, {value}>"),
            Self::Object(Some(kind)) => write!(f, "{kind}"),
            Self::Object(None) => f.write_str("object"),
            Self::Struct(name) => f.write_str(name.rsplit('.').next().unwrap_or(name)),
            Self::World => f.write_str("state"),
            Self::Reference => f.write_str("reference"),
            Self::Owner => f.write_str("owner"),
            Self::HostClaim => f.write_str("hostClaim"),
            Self::Optional(inner) if **inner == Self::Never => f.write_str("optional"),
            Self::Optional(inner) => write!(f, "optional<{inner}>"),
            Self::Type => f.write_str("type"),
            Self::Any => f.write_str("any"),
        }
    }
}

impl Expr {
    /// Calls `visit` on this expression and all its parts, outermost first.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        match &self.node {
            Node::Const(_) | Node::Var(_) => {}
            Node::Select { base, .. } | Node::HasField { base, .. } | Node::OptSelect { base, .. } => base.walk(visit),
            Node::Index { base, index } | Node::OptIndex { base, index } => {
                base.walk(visit);
                index.walk(visit);
            }
            Node::Call { args, .. } => args.iter().for_each(|a| a.walk(visit)),
            Node::Not(a) => a.walk(visit),
            Node::And(a, b) | Node::Or(a, b) => {
                a.walk(visit);
                b.walk(visit);
            }
            Node::Cond { cond, then, otherwise } => {
                cond.walk(visit);
                then.walk(visit);
                otherwise.walk(visit);
            }
            Node::List(items) => items.iter().for_each(|e| e.value.walk(visit)),
            Node::Map(entries) => {
                for e in entries {
                    e.key.walk(visit);
                    e.value.walk(visit);
                }
            }
            Node::Let { init, body, .. } => {
                init.walk(visit);
                body.walk(visit);
            }
            Node::OptMap { base, body, .. } => {
                base.walk(visit);
                body.walk(visit);
            }
            Node::Comprehension { range, filter, body, .. } => {
                range.walk(visit);
                if let Some(filter) = filter {
                    filter.walk(visit);
                }
                body.walk(visit);
            }
        }
    }
}
