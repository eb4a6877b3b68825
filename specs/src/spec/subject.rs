//! Whom an invariant, a grant or an exemption is about.

use schemars::JsonSchema;
use serde::Deserialize;

use suture_model::change::User;

/// Somebody: a user, a group or a service account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subject {
    /// What it is.
    pub kind: SubjectKind,
    /// The name; `*` for every service account of a namespace.
    pub name: String,
    /// The namespace of a service account.
    pub namespace: Option<String>,
}

/// The kind of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum SubjectKind {
    /// A user by name.
    User,
    /// A group.
    Group,
    /// A service account.
    ServiceAccount,
}

impl Subject {
    /// Whether this user is meant.
    pub fn covers(&self, user: &User) -> bool {
        match self.kind {
            SubjectKind::User => *user.username == *self.name,
            SubjectKind::Group => user.groups.iter().any(|g| **g == *self.name),
            SubjectKind::ServiceAccount => user.service_account().is_some_and(|(ns, name)| {
                self.namespace.as_deref().is_none_or(|own| own == ns) && (self.name == "*" || self.name == name)
            }),
        }
    }
}
