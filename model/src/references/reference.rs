//! One reference from an object to another, and the keys that fields name.

use crate::kinds::Kind;
use crate::object::Key;
use crate::value::{Str, Val};

/// One reference from an object to another by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// What is referred to.
    pub target: Key,
    /// Whether the referrer works without it.
    pub optional: bool,
    /// Whether the referrer, as it stands, uses the target: false for a workload that wants no pods and for what is
    /// finished, which name it all the same.
    pub needed: bool,
    /// The keys of a Secret or ConfigMap that must be there.
    pub keys: Vec<Str>,
    /// Whether the referrer writes the target rather than reading it.
    pub write: bool,
    /// Where the reference stands, for a person.
    pub via: &'static str,
    /// The ports of a Service that must be there, each by its number or its name.
    pub ports: Vec<Str>,
}

impl Reference {
    /// A reference that must resolve: read, needed, and asking for no key.
    pub fn new(target: Key, via: &'static str) -> Self {
        Self { target, optional: false, needed: true, keys: Vec::new(), ports: Vec::new(), write: false, via }
    }

    /// Whether another reference says the same, of whichever ports.
    pub(super) fn is_same_but_for_ports(&self, other: &Self) -> bool {
        let rest = |of: &'_ Self| (of.optional, of.needed, of.write, of.via);
        self.target == other.target && self.keys == other.keys && rest(self) == rest(other)
    }

    /// The same reference to a port, a number or a name; the default where it is left out.
    #[must_use]
    pub(super) fn with_port(mut self, port: Option<&Val>, default: Option<&str>) -> Self {
        let stated = match port {
            Some(Val::Int(number)) => Some(number.to_string().into()),
            Some(Val::Str(name)) => Some(name.clone()),
            _ => default.map(Str::from),
        };
        self.ports.extend(stated);
        self
    }

    /// The same reference, one that the referrer works without if `optional`.
    #[must_use]
    pub fn optional_if(mut self, optional: bool) -> Self {
        self.optional = optional;
        self
    }
}

/// The key that `{apiVersion, kind, name}` names in a namespace.
pub(crate) fn typed(reference: &Val, ns: &str) -> Option<Key> {
    let kind = reference.name_at(&["kind"])?;
    let kind = match reference.str_at(&["apiVersion"]) {
        Some(api) => Kind::new(api.split_once('/').map_or("", |(group, _)| group), kind),
        None => Kind::builtin(kind).unwrap_or_else(|| Kind::new("", kind)),
    };
    Some(Key::new(kind, ns, reference.name_at(&["name"])?))
}
