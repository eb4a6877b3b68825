//! What a request consists of: who, what, which object; and why something is none.

use crate::object::{Key, ObjectError};
use crate::value::{Str, Val};

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// The user name.
    pub username: Str,
    /// The groups.
    pub groups: Vec<Str>,
    /// The uid; often empty.
    pub uid: Str,
}

impl User {
    /// The user of this name with the groups that the API server itself gives: those of service accounts
    /// (`apiserver/pkg/authentication/serviceaccount/util.go`) and of kubelets, and `system:authenticated`.
    pub fn named(username: &str) -> Self {
        let mut groups: Vec<Str> = Vec::new();
        if let Some((ns, _)) = username.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
            groups.push("system:serviceaccounts".into());
            groups.push(format!("system:serviceaccounts:{ns}").into());
        } else if username.starts_with("system:node:") {
            groups.push("system:nodes".into());
        }
        groups.push(
            if username == "system:anonymous" { "system:unauthenticated" } else { "system:authenticated" }.into(),
        );
        Self { username: username.into(), groups, uid: "".into() }
    }

    /// `kubernetes-admin` of `system:masters`: who acts where nobody is named.
    pub fn admin() -> Self {
        let groups = vec!["system:masters".into(), "system:authenticated".into()];
        Self { username: "kubernetes-admin".into(), groups, uid: "".into() }
    }

    /// The namespace and name of the ServiceAccount that this user is, if it is one.
    pub fn service_account(&self) -> Option<(&str, &str)> {
        self.username.strip_prefix("system:serviceaccount:")?.split_once(':')
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It makes an object, or an eviction or binding of one.
    Create,
    /// It writes an object or a part of it.
    Update,
    /// It deletes an object.
    Delete,
    /// It opens a connection (exec, proxy).
    Connect,
}

impl Operation {
    /// As an AdmissionReview writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Propagation {
    /// They are collected after it.
    Background,
    /// They are collected before it.
    Foreground,
    /// They lose their reference and stay.
    Orphan,
}

impl Propagation {
    /// As DeleteOptions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// What a deletion demands of the object as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<Str>,
    /// Its resourceVersion.
    pub resource_version: Option<Str>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The request's uid, by which a repeated call is known; empty where it is not from an API server.
    pub uid: Str,
    /// Who sends it.
    pub user: User,
    /// What it does.
    pub operation: Operation,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The object it is about; for a subresource, the object that has it.
    pub target: Key,
    /// The new object, or what the subresource takes (Scale, Eviction, Binding).
    pub object: Option<Val>,
    /// The object before.
    pub old: Option<Val>,
    /// The propagation policy of a deletion, if it names one.
    pub propagation: Option<Propagation>,
    /// The preconditions of a deletion.
    pub preconditions: Preconditions,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// The options, as they came (null when there are none).
    pub options: Val,
}

impl Request {
    /// The options as the API server tells them to a webhook: always an object, with the propagation policy of a deletion
    /// under its present name (`orphanDependents` preceded it), whoever made the request.
    pub fn told_options(&self) -> Val {
        let options = if let Val::Map(_) = self.options { self.options.clone() } else { Val::object([]) };
        match self.propagation {
            Some(policy) => options.with("propagationPolicy", Val::str(policy.as_str())),
            None => options,
        }
    }
}

/// Requests that are judged together, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The requests.
    pub requests: Vec<Request>,
}

impl Change {
    /// Whether a request and the next one delete: both sides of a relation that go together are not told apart, so that no
    /// order of them leaves one without the other.
    pub fn goes_with_next(&self, at: usize) -> bool {
        let deletes = |at: usize| self.requests.get(at).is_some_and(|request| request.operation == Operation::Delete);
        deletes(at) && deletes(at + 1)
    }
}

impl From<Request> for Change {
    fn from(request: Request) -> Self {
        Self { requests: vec![request] }
    }
}

/// Why something is not a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A field is missing or has another type.
    #[error("not an AdmissionReview: `{path}` is missing or not {expected}")]
    Field {
        /// Where.
        path: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A field has a value that Kubernetes does not know.
    #[error("not an AdmissionReview: `{value}` is no {what}")]
    Value {
        /// What it was taken for.
        what: &'static str,
        /// The value.
        value: String,
    },
    /// A manifest is no object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Nothing is known of this kind.
    #[error("unknown kind `{0}`: no object, definition or adapter has it; write `{{group, kind}}`")]
    UnknownKind(String),
    /// Several groups have this kind.
    #[error("ambiguous kind `{kind}`: it is in the groups {groups}; write `{{group, kind}}`")]
    AmbiguousKind {
        /// The kind.
        kind: String,
        /// The groups, each in backticks.
        groups: String,
    },
    /// A patch or scale of what does not exist.
    #[error("`{0}` does not exist")]
    Absent(Key),
}
