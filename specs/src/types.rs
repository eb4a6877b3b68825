//! The types of expressions, and where an expression stands in its source.

use std::fmt;

use suture_model::kinds::Kind;
use suture_model::value::Str;

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

    /// Whether values of this type are states, or have some in them.
    pub fn holds_state(&self) -> bool {
        match self {
            Self::World => true,
            Self::List(item) | Self::Optional(item) => item.holds_state(),
            Self::Map(key, value) => key.holds_state() || value.holds_state(),
            Self::Never
            | Self::Null
            | Self::Bool
            | Self::Int
            | Self::UInt
            | Self::Double
            | Self::String
            | Self::Bytes
            | Self::Timestamp
            | Self::Duration
            | Self::Object(_)
            | Self::Struct(_)
            | Self::Reference
            | Self::Owner
            | Self::HostClaim
            | Self::Type
            | Self::Any => false,
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
