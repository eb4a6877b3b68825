//! Which annotations the verdict of an invariant may depend on: a write that differs in others alone changes nothing.

use std::collections::BTreeSet;

use suture_model::value::Str;

/// Annotations that are read, those aside that effects read ([`suture_model::annotations`]). More than what is read may be
/// in it, never less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Annotations {
    /// Any.
    All,
    /// Those with these keys.
    Named(BTreeSet<Str>),
}

impl Annotations {
    /// These and others.
    #[must_use]
    pub fn and(self, others: impl IntoIterator<Item = Str>) -> Self {
        match self {
            Self::All => Self::All,
            Self::Named(mut keys) => {
                keys.extend(others);
                Self::Named(keys)
            }
        }
    }

    /// These and those.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match other {
            Self::All => Self::All,
            Self::Named(keys) => self.and(keys),
        }
    }

    /// Whether one with this key may be read.
    pub fn contains(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(keys) => keys.contains(key),
        }
    }

    /// Adds one.
    pub(super) fn insert(&mut self, key: Str) {
        if let Self::Named(keys) = self {
            keys.insert(key);
        }
    }
}
