//! Names of kinds, and what role each built-in kind plays.

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::value::Str;

mod roles;
mod table;

pub use roles::{Adopts, Controller, KindTraits, Makes, RbacKind, Requirement, Role, TakesAlong, Watched};

/// A kind in its API group; the version does not matter to identity. Built-in kinds share their texts, so that comparing
/// them rarely reads any.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: Str,
    /// The kind, as in `kind:` of a manifest.
    pub kind: Str,
}

impl Kind {
    /// The kind `kind` of API group `group`.
    pub fn new(group: &str, kind: &str) -> Self {
        match builtin(kind) {
            Some(found) if found.traits.group == group => found.kind.clone(),
            _ => Self { group: group.into(), kind: kind.into() },
        }
    }

    /// The built-in kind of this short name, if there is one.
    pub fn builtin(kind: &str) -> Option<Self> {
        builtin(kind).map(|found| found.kind.clone())
    }

    /// The built-in kind that the API server serves as this resource of a group.
    pub fn of_resource(group: &str, resource: &str) -> Option<Self> {
        Self::with(|traits| traits.resource == resource && traits.group == group).next()
    }

    /// The built-in kinds that play a role, in the order of the table.
    pub fn with(role: impl Fn(&KindTraits) -> bool) -> impl Iterator<Item = Self> {
        table::TABLE.iter().filter(move |traits| role(traits)).map(|traits| Self::new(traits.group, traits.kind))
    }

    /// The built-in kinds whose controllers decide how many pods there are, and which go: asked for all the time.
    pub fn deciding() -> &'static [Self] {
        static DECIDING: LazyLock<Vec<Kind>> = LazyLock::new(|| Kind::with(KindTraits::decides).collect());
        &DECIDING
    }

    /// The built-in kinds that adopt pods: asked for all the time.
    pub fn adopting() -> &'static [Self] {
        static ADOPTING: LazyLock<Vec<Kind>> = LazyLock::new(|| Kind::with(KindTraits::adopts_pods).collect());
        &ADOPTING
    }

    /// The built-in kinds.
    pub fn builtins() -> impl Iterator<Item = Self> {
        Self::with(|_| true)
    }

    /// Whether this is the built-in kind `kind`.
    pub fn is(&self, kind: &str) -> bool {
        &*self.kind == kind && self.traits().is_some()
    }

    /// The roles of a built-in kind; `None` for any other.
    pub fn traits(&self) -> Option<&'static KindTraits> {
        builtin(&self.kind).filter(|found| same(&found.kind.group, &self.group)).map(|found| found.traits)
    }

    /// Whether this is a built-in kind that plays a role.
    pub fn has(&self, role: impl Fn(&KindTraits) -> bool) -> bool {
        self.traits().is_some_and(role)
    }

    /// Whether objects of a built-in kind live in a namespace; `None` for kinds that are not built in.
    pub fn builtin_namespaced(&self) -> Option<bool> {
        self.traits().map(|traits| traits.namespaced)
    }
}

impl KindTraits {
    /// The built-in kinds that the language lists under their resource: `before.pods` and so on.
    pub fn listed() -> impl Iterator<Item = &'static Self> {
        table::TABLE.iter().filter(|traits| traits.listed)
    }

    /// The roles of the built-in kind of this short name.
    pub fn named(kind: &str) -> Option<&'static Self> {
        builtin(kind).map(|found| found.traits)
    }
}

/// A built-in kind with its roles.
struct BuiltIn {
    kind: Kind,
    traits: &'static KindTraits,
}

/// The built-in kind of this short name.
fn builtin(kind: &str) -> Option<&'static BuiltIn> {
    /// By the length of the short name: few have the same, so that hardly any text is read.
    static KNOWN: LazyLock<Vec<Vec<BuiltIn>>> = LazyLock::new(|| {
        let longest = table::TABLE.iter().map(|traits| traits.kind.len()).max().unwrap_or(0);
        let known = |traits: &'static KindTraits| BuiltIn {
            kind: Kind { group: Str::from(traits.group), kind: Str::from(traits.kind) },
            traits,
        };
        let of_length =
            |length| table::TABLE.iter().filter(move |traits| traits.kind.len() == length).map(known).collect();
        (0..=longest).map(of_length).collect()
    });
    KNOWN.get(kind.len())?.iter().find(|known| known.traits.kind == kind)
}

/// Equality of shared texts.
pub(crate) fn same(a: &Str, b: &Str) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// Order of shared texts.
pub(crate) fn order(a: &Str, b: &Str) -> Ordering {
    if Arc::ptr_eq(a, b) { Ordering::Equal } else { a.cmp(b) }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        same(&self.kind, &other.kind) && same(&self.group, &other.group)
    }
}
impl Eq for Kind {}
impl std::hash::Hash for Kind {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.group.hash(state);
        self.kind.hash(state);
    }
}
impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.group, &other.group).then_with(|| order(&self.kind, &other.kind))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

#[cfg(test)]
mod tests;
