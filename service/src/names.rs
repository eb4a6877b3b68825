//! The names that people give kinds on the command line: `Deployment`, `deployments`, `deploy`, `deployments.apps`, and
//! those that definitions in the state bring along.

use std::collections::{BTreeMap, BTreeSet};

use suture_model::change::plural;
use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_specs::suggest::nearest;

/// Why a name is no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No kind has this name.
    #[error("unknown kind `{name}`: no object, definition or adapter has it{}", suggestion(.near))]
    Unknown {
        /// The name.
        name: String,
        /// The name nearest to it.
        near: Option<String>,
    },
    /// More than one group has a kind of this name.
    #[error("ambiguous kind `{name}`: write {}", .choices.join(" or "))]
    Ambiguous {
        /// The name.
        name: String,
        /// What to write instead, each in backticks.
        choices: Vec<String>,
    },
    /// Not `KIND/NAMESPACE/NAME` or `KIND/NAME`.
    #[error("`{0}` is not KIND/NAMESPACE/NAME, or KIND/NAME for cluster-scoped kinds")]
    Form(String),
    /// A namespaced object without a namespace.
    #[error("{kind} `{name}` is in a namespace: write {kind}/NAMESPACE/{name}")]
    Namespaced {
        /// The kind.
        kind: Kind,
        /// The object's name.
        name: String,
    },
    /// A cluster-scoped object with a namespace.
    #[error("{kind} `{name}` is in no namespace: write {kind}/{name}")]
    ClusterScoped {
        /// The kind.
        kind: Kind,
        /// The object's name.
        name: String,
    },
}

fn suggestion(near: &Option<String>) -> String {
    near.as_ref().map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// The names of every kind that a state can hold.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By name in lower case.
    kinds: BTreeMap<String, BTreeSet<Kind>>,
    /// Whether a custom resource lives in a namespace.
    namespaced: BTreeMap<Kind, bool>,
    /// The namespace of a namespaced object that names none.
    namespace: Option<String>,
}

impl Names {
    /// The built-in names, and those of the state's definitions, adapters and objects.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut names = Self::default();
        for kind in Kind::builtins() {
            names.add(&kind, kind.traits().into_iter().flat_map(|traits| traits.short).copied());
        }
        for definition in snapshot.list(&Kind::new("apiextensions.k8s.io", "CustomResourceDefinition"), None) {
            let val = definition.val();
            let (group, names_of) = (val.str_at(&["spec", "group"]), val.at(&["spec", "names"]));
            let (Some(group), Some(names_of)) = (group, names_of) else { continue };
            let Some(kind) = names_of.str_at(&["kind"]) else { continue };
            let kind = Kind::new(group, kind);
            let own = ["plural", "singular"].into_iter().filter_map(|field| names_of.str_at(&[field]));
            let shorts = names_of.items_at(&["shortNames"]).iter().filter_map(|short| short.as_str());
            names.add(&kind, own.chain(shorts).map(|name| &**name));
            let scope = val.str_at(&["spec", "scope"]).map_or("Namespaced", |scope| &**scope);
            names.namespaced.insert(kind, scope == "Namespaced");
        }
        for kind in snapshot.adapters().stated_kinds().into_iter().chain(snapshot.kinds()) {
            names.add(&kind, std::iter::empty());
            if let Some(first) = snapshot.list(&kind, None).first() {
                names.namespaced.entry(kind).or_insert(!first.key.ns.is_empty());
            }
        }
        names
    }

    /// The same, where namespaced objects that name no namespace are in this one, if it is given.
    #[must_use]
    pub fn within(self, namespace: Option<&str>) -> Self {
        Self { namespace: namespace.map(str::to_owned), ..self }
    }

    /// Whether objects of a kind live in a namespace, if that is known.
    pub fn is_namespaced(&self, kind: &Kind) -> Option<bool> {
        kind.builtin_namespaced().or_else(|| self.namespaced.get(kind).copied())
    }

    fn add<'n>(&mut self, kind: &Kind, shorts: impl Iterator<Item = &'n str>) {
        let singular = kind.kind.to_lowercase();
        let mut own: Vec<String> = shorts.map(str::to_lowercase).collect();
        own.push(plural(&singular));
        own.push(singular);
        for name in own {
            // the core group is written as kubectl does, with nothing after the dot: `service.`
            self.kinds.entry(format!("{name}.{}", kind.group)).or_default().insert(kind.clone());
            self.kinds.entry(name).or_default().insert(kind.clone());
        }
    }

    /// The kind of this name.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub fn kind(&self, name: &str) -> Result<Kind, NameError> {
        let lower = name.to_lowercase();
        let found: Vec<&Kind> = self.kinds.get(&lower).into_iter().flatten().collect();
        match found.as_slice() {
            [only] => Ok((*only).clone()),
            [] => {
                let near = self.kinds.keys().filter(|known| !known.contains('.'));
                Err(NameError::Unknown {
                    name: name.to_owned(),
                    near: nearest(&lower, near.map(String::as_str)).map(str::to_owned),
                })
            }
            many => {
                let choices = many.iter().map(|kind| format!("`{}.{}`", kind.kind, kind.group));
                Err(NameError::Ambiguous { name: name.to_owned(), choices: choices.collect() })
            }
        }
    }

    /// The object of `KIND/NAMESPACE/NAME` or `KIND/NAME`.
    ///
    /// # Errors
    /// When the kind is unknown or ambiguous, or a namespace is missing or too many.
    pub fn key(&self, text: &str) -> Result<Key, NameError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, ns, name) = match parts.as_slice() {
            [kind, name] => (*kind, "", *name),
            [kind, ns, name] if !ns.is_empty() => (*kind, *ns, *name),
            _ => return Err(NameError::Form(text.to_owned())),
        };
        if kind.is_empty() || name.is_empty() {
            return Err(NameError::Form(text.to_owned()));
        }
        let kind = self.kind(kind)?;
        match (self.is_namespaced(&kind), &self.namespace) {
            (Some(true), Some(default)) if ns.is_empty() => Ok(Key::new(kind, default, name)),
            (Some(true), None) if ns.is_empty() => Err(NameError::Namespaced { kind, name: name.to_owned() }),
            (Some(false), _) if !ns.is_empty() => Err(NameError::ClusterScoped { kind, name: name.to_owned() }),
            _ => Ok(Key::new(kind, ns, name)),
        }
    }
}

#[cfg(test)]
mod tests;
