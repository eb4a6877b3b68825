//! Why an expression has no value.

use suture_model::steps::Spent;

use crate::ir::Span;

/// An error of evaluation. It is a value of CEL: `&&`, `||`, `all` and `exists` may absorb it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct EvalError {
    /// What went wrong.
    pub kind: EvalErrorKind,
    /// The innermost expression that failed, when known.
    pub span: Option<Span>,
}

/// The kinds of evaluation errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalErrorKind {
    /// A map, struct or object has no such key.
    #[error("no such key: `{0}`")]
    NoSuchKey(String),
    /// A list is shorter.
    #[error("index {index} is out of range: the list has {len} items")]
    OutOfRange {
        /// The index asked for.
        index: i64,
        /// How many items there are.
        len: usize,
    },
    /// An object is not in the state asked.
    #[error("{object} does not exist in `{state}`")]
    NoSuchObject {
        /// The object's name, `Kind/namespace/name`.
        object: String,
        /// `before` or `now`.
        state: &'static str,
    },
    /// The answer depends on objects of a kind that was not read. Never an absence.
    #[error("objects of kind `{0}` were not read")]
    UnknownKind(String),
    /// A part of an object was not read. Never an absence.
    #[error("{0} is nested too deep to be read")]
    Unread(String),
    /// A value of a Secret or ConfigMap. Never a text.
    #[error("values of Secrets and ConfigMaps are not kept")]
    Hidden,
    /// A field that is not kept of objects of a kind. Never an absence.
    #[error("`{0}` of a {1} is not kept")]
    Dropped(String, String),
    /// An argument of a type that the function does not take.
    #[error("`{function}` is not defined on {types}")]
    NoSuchOverload {
        /// The function.
        function: &'static str,
        /// The types of the arguments.
        types: String,
    },
    /// A value of another type than the expression needs.
    #[error("expected {expected}, found {found}")]
    Mismatch {
        /// What the expression needs.
        expected: String,
        /// What it found.
        found: String,
    },
    /// A result outside 64 bits.
    #[error("integer overflow in `{0}`")]
    Overflow(&'static str),
    /// A division or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// An argument of the right type that has no result.
    #[error("{0}")]
    Invalid(String),
    /// The value of an empty optional.
    #[error("optional has no value")]
    NoValue,
    /// A map literal or transformation with the same key twice.
    #[error("the key `{0}` occurs twice")]
    DuplicateKey(String),
    /// A variable that nothing binds.
    #[error("`{0}` is not bound")]
    Unbound(String),
    /// A function that needs a state was called without one.
    #[error("`{0}` needs a state of the cluster, and none is given here")]
    NoWorld(&'static str),
    /// The step budget ran out. Never absorbed.
    #[error("stopped after {0} steps: the expression does too much on this cluster")]
    Steps(u64),
    /// What the decision may cost is spent. Never absorbed.
    #[error(transparent)]
    Spent(#[from] Spent),
}

impl EvalError {
    /// An error without a place.
    pub fn new(kind: EvalErrorKind) -> Self {
        Self { kind, span: None }
    }

    /// An error about an argument.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(EvalErrorKind::Invalid(text.into()))
    }

    /// This error, placed at `span` unless it already has a place.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }

    /// Whether it only says that something is not there: a missing key, item, object or optional value.
    pub fn is_absence(&self) -> bool {
        matches!(
            self.kind,
            EvalErrorKind::NoSuchKey(_)
                | EvalErrorKind::OutOfRange { .. }
                | EvalErrorKind::NoSuchObject { .. }
                | EvalErrorKind::NoValue
        )
    }

    /// Whether `&&`, `||`, `all` and `exists` may absorb it.
    pub fn is_absorbable(&self) -> bool {
        !matches!(self.kind, EvalErrorKind::Steps(_) | EvalErrorKind::Spent(_))
    }
}

impl From<suture_model::navigate::UnknownKind> for EvalError {
    fn from(unknown: suture_model::navigate::UnknownKind) -> Self {
        Self::new(EvalErrorKind::UnknownKind(unknown.0.to_string()))
    }
}

impl From<EvalErrorKind> for EvalError {
    fn from(kind: EvalErrorKind) -> Self {
        Self::new(kind)
    }
}
