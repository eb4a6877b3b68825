//! The functions of the invariant language: their names, signatures and documentation, and how to call them.
//!
//! | class | depends on | called by |
//! |---|---|---|
//! | pure | its arguments | [`call_pure`] |
//! | reads | its arguments, the adapters, and facts that no future changes (a node's labels) | [`call_nav`] |
//! | navigates | the state of the cluster that is its argument | [`call_nav`] |

mod answer;
mod docs;
mod known;
mod navigate;
mod placement;
mod pure;
mod table;
mod unsupported;

use std::fmt;

use suture_model::kinds::Kind;

pub(crate) use answer::Answer;
pub use navigate::{QUORUM, Worlds, call_nav, may_be_quorum_group};
pub use pure::{call_pure, kept, label_selector};
pub use table::{Func, signatures, world_field};
pub use unsupported::UNSUPPORTED;

use crate::ir::Type;

/// What a function depends on besides its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing: the same arguments, the same result.
    Pure,
    /// Adapters, and facts that no future changes.
    Reads,
    /// The state of the cluster given as an argument.
    Navigates,
}

impl Func {
    /// Whether it can be asked of a list of which the future decides what is in it: it needs no more than how many items
    /// there are of each value.
    pub fn takes_open_lists(self) -> bool {
        matches!(
            self,
            Self::Size
                | Self::Sum
                | Self::Distinct
                | Self::Without
                | Self::Sort
                | Self::Min
                | Self::Max
                | Self::Least
                | Self::Greatest
                | Self::Add
                | Self::Eq
                | Self::Ne
                | Self::In
        )
    }

    /// Which order or equality of its two arguments it tells.
    pub const fn comparison(self) -> Option<Comparison> {
        match self {
            Self::Eq => Some(Comparison::Equal),
            Self::Ne => Some(Comparison::Different),
            Self::Lt => Some(Comparison::Less),
            Self::Le => Some(Comparison::LessOrEqual),
            Self::Gt => Some(Comparison::Greater),
            Self::Ge => Some(Comparison::GreaterOrEqual),
            _ => None,
        }
    }

    /// Which of so many arguments names a kind, and, before it, which one its group, if one does.
    pub const fn kind_argument(self, arguments: usize) -> Option<(Option<usize>, usize)> {
        match self {
            Self::Objects if arguments > 2 => Some((Some(1), 2)),
            Self::Objects | Self::HasObject => Some((None, 1)),
            Self::InNamespace => Some((None, 2)),
            _ => None,
        }
    }

    /// Whether it has a value for every object.
    pub const fn never_fails(self) -> bool {
        matches!(self, Self::Ready | Self::ExistsIn)
    }

    /// Whether it costs no more for large arguments than for small ones: it hands them on, or asks how many items there are.
    pub const fn hands_on(self) -> bool {
        matches!(self, Self::Size | Self::HasValue | Self::OrValue | Self::At | Self::OptionalOf)
    }
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`.
    Equal,
    /// `!=`.
    Different,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

/// What a NamespacedInvariant may read by a function. What an object refers to, who refers to it, its owners, its node and
/// its volume may be in another namespace; selectors, owners of pods and endpoints never reach one. What nodes or
/// autoscalers make of how many pods are wanted, or may be disrupted, is a number and no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// Nothing beyond its arguments and the namespace of the object that it is about.
    Own,
    /// Objects of the namespace that this argument names.
    Argument(usize),
    /// Objects of any namespace.
    Beyond,
}

/// How a function is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Style {
    /// `a + b`.
    Operator,
    /// `f(a, b)`, or `ns.f(a, b)`.
    Function,
    /// `a.f(b)`.
    Method,
}

/// The type of a parameter or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// Exactly this simple type.
    Bool,
    /// An int.
    Int,
    /// A uint.
    UInt,
    /// A double.
    Double,
    /// A string.
    String,
    /// Bytes.
    Bytes,
    /// A timestamp.
    Timestamp,
    /// A duration.
    Duration,
    /// A type variable, the same type in every place.
    T,
    /// A second type variable.
    U,
    /// A list.
    List(&'static Self),
    /// A map.
    Map(&'static Self, &'static Self),
    /// An optional.
    Optional(&'static Self),
    /// An object of any kind.
    Object,
    /// The object type of the receiver.
    Receiver,
    /// An object of this built-in kind, or of unknown kind.
    Kind(&'static str),
    /// A state of the cluster.
    World,
    /// A reference.
    Reference,
    /// An owner reference.
    Owner,
    /// A claimed host.
    HostClaim,
    /// A type.
    Type,
    /// Anything: JSON without schema.
    Any,
}

/// One signature of a function.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The function.
    pub func: Func,
    /// Its name in the source.
    pub name: &'static str,
    /// How it is written.
    pub style: Style,
    /// The parameters, the receiver first.
    pub params: &'static [Param],
    /// The result.
    pub result: Param,
    /// One line of documentation.
    pub doc: &'static str,
}

impl fmt::Display for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Param {
    /// The type it stands for, without type variables.
    pub(crate) fn plain(self) -> Type {
        match self {
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::UInt => Type::UInt,
            Self::Double => Type::Double,
            Self::String => Type::String,
            Self::Bytes => Type::Bytes,
            Self::Timestamp => Type::Timestamp,
            Self::Duration => Type::Duration,
            Self::T | Self::U | Self::Any => Type::Any,
            Self::List(item) => Type::list(item.plain()),
            Self::Map(key, value) => Type::map(key.plain(), value.plain()),
            Self::Optional(inner) => Type::Optional(Box::new(inner.plain())),
            Self::Object | Self::Receiver => Type::Object(None),
            Self::Kind(kind) => Type::Object(Kind::builtin(kind)),
            Self::World => Type::World,
            Self::Reference => Type::Reference,
            Self::Owner => Type::Owner,
            Self::HostClaim => Type::HostClaim,
            Self::Type => Type::Type,
        }
    }
}

/// `receiver.name(params) → result`, for messages and documentation.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |p: &Param| match p {
            Param::T => "T".to_owned(),
            Param::U => "U".to_owned(),
            Param::List(Param::T) => "list<T>".to_owned(),
            Param::Map(Param::T, Param::U) => "map<T, U>".to_owned(),
            Param::Optional(Param::T) => "optional<T>".to_owned(),
            other => other.plain().to_string(),
        };
        let params: Vec<String> = self.params.iter().map(text).collect();
        match (self.style, params.as_slice()) {
            (Style::Operator, [one]) => write!(f, "{}{one}", self.name)?,
            (Style::Operator, [a, b]) => write!(f, "{a} {} {b}", self.name)?,
            (Style::Method, [receiver, rest @ ..]) => write!(f, "{receiver}.{}({})", self.name, rest.join(", "))?,
            (_, all) => write!(f, "{}({})", self.name, all.join(", "))?,
        }
        write!(f, " → {}", text(&self.result))
    }
}
