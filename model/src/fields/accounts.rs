//! Which ServiceAccounts a subject of a binding means.

use crate::value::{Str, Val};

/// ServiceAccounts that a subject means: one, all of a namespace, or all there are.
///
/// Source: `pkg/registry/rbac/validation/rule.go` (`appliesTo`), `pkg/serviceaccount/util.go`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Accounts {
    /// Their namespace; empty where it is any.
    pub ns: Str,
    /// The name of the account; empty where it is any.
    pub name: Str,
}

impl Accounts {
    /// What a subject means of a binding in this namespace, or in none; `None` where it means no ServiceAccount.
    pub fn of(subject: &Val, ns: &str) -> Option<Self> {
        let named = subject.str_at(&["name"]).map_or("", |name| name);
        let of = |ns: &str, name: &str| Some(Self { ns: ns.into(), name: name.into() });
        match subject.str_at(&["kind"]).map_or("", |kind| kind) {
            "ServiceAccount" => {
                let ns = subject.name_at(&["namespace"]).unwrap_or(ns);
                if ns.is_empty() || named.is_empty() { None } else { of(ns, named) }
            }
            "User" => {
                let (ns, name) = named.strip_prefix("system:serviceaccount:")?.split_once(':')?;
                if ns.is_empty() || name.is_empty() { None } else { of(ns, name) }
            }
            "Group" if matches!(named, "system:serviceaccounts" | "system:authenticated") => of("", ""),
            "Group" => {
                named.strip_prefix("system:serviceaccounts:").filter(|ns| !ns.is_empty()).and_then(|ns| of(ns, ""))
            }
            _ => None,
        }
    }

    /// Whether they are, or one of them is, the account of this namespace and name.
    pub fn mean(&self, ns: &str, name: &str) -> bool {
        (self.ns.is_empty() || *self.ns == *ns) && (self.name.is_empty() || *self.name == *name)
    }
}
