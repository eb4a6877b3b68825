//! A change: one request to the API server, or a batch of them, as data.

use crate::ingest::project;
use crate::navigate::wanted_replicas;
use crate::object::{Key, Object, ObjectError};
use crate::state::State;
use crate::value::{Str, Val};

mod merge;
mod resource;
mod review;

pub use merge::merge_patch;
pub use resource::{key_named, kind_named, plural};

/// Fields of `metadata` that say nothing about what is written.
const BOOKKEEPING: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// An object without what the API server alone writes. An update that differs in nothing else stores nothing
/// (`apiserver/pkg/storage/etcd3/store.go`, `GuaranteedUpdate`).
pub fn substance(object: &Val) -> Val {
    BOOKKEEPING.iter().fold(object.clone(), |object, field| object.without_at(&["metadata", field]))
}

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

/// Requests that are judged together, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The requests.
    pub requests: Vec<Request>,
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

impl Request {
    fn new(user: User, operation: Operation, target: Key) -> Self {
        Self {
            uid: "".into(),
            user,
            operation,
            subresource: String::new(),
            target,
            object: None,
            old: None,
            propagation: None,
            preconditions: Preconditions::default(),
            dry_run: false,
            options: Val::Null,
        }
    }

    /// The request that an `AdmissionReview` of admission.k8s.io holds. The kind of a subresource's object is found by
    /// [`Request::resolve`] where the kind is not built in.
    ///
    /// # Errors
    /// When a field is missing or odd.
    pub fn from_review(review: &Val) -> Result<Self, ChangeError> {
        review::parse(review)
    }

    /// `create`: CREATE of a manifest. A namespaced object without a namespace is put into `default`.
    ///
    /// # Errors
    /// When the manifest is no object.
    pub fn create(user: User, state: &State, manifest: &Val) -> Result<Self, ChangeError> {
        let manifest = named(manifest, "");
        let target = placed(state, Object::from_val(&manifest)?.key);
        Ok(Self { object: Some(with_namespace(&manifest, &target)), ..Self::new(user, Operation::Create, target) })
    }

    /// `update`: UPDATE with a whole manifest.
    ///
    /// # Errors
    /// When the manifest is no object.
    pub fn update(user: User, state: &State, manifest: &Val, subresource: &str) -> Result<Self, ChangeError> {
        let target = placed(state, Object::from_val(manifest)?.key);
        Ok(Self {
            subresource: subresource.to_owned(),
            object: Some(with_namespace(manifest, &target)),
            old: old(state, &target),
            ..Self::new(user, Operation::Update, target)
        })
    }

    /// `patch`: UPDATE with the object as a JSON merge patch makes it (RFC 7386); of the scale subresource, with the
    /// Scale that the patch makes.
    ///
    /// # Errors
    /// When there is no such object.
    pub fn patch(user: User, state: &State, target: Key, patch: &Val, subresource: &str) -> Result<Self, ChangeError> {
        let Some(old) = old(state, &target) else { return Err(ChangeError::Absent(target)) };
        if subresource == "scale" {
            let present = state.get(&target).and_then(|object| wanted_replicas(state, object)).unwrap_or(0);
            let replicas = patch.int_at(&["spec", "replicas"]).unwrap_or(present);
            return Ok(Self { old: Some(old), ..Self::scale(user, state, target, replicas) });
        }
        Ok(Self {
            subresource: subresource.to_owned(),
            object: Some(merge_patch(&old, patch)),
            old: Some(old),
            ..Self::new(user, Operation::Update, target)
        })
    }

    /// `delete`: DELETE.
    pub fn delete(
        user: User,
        state: &State,
        target: Key,
        propagation: Option<Propagation>,
        preconditions: Preconditions,
    ) -> Self {
        let old = old(state, &target);
        Self { old, propagation, preconditions, ..Self::new(user, Operation::Delete, target) }
    }

    /// `scale`: UPDATE of the `scale` subresource.
    pub fn scale(user: User, state: &State, target: Key, replicas: i64) -> Self {
        let scale = Val::object([
            ("apiVersion", Val::str("autoscaling/v1")),
            ("kind", Val::str("Scale")),
            ("metadata", metadata(&target)),
            ("spec", Val::object([("replicas", Val::Int(replicas))])),
        ]);
        let old = old(state, &target);
        Self { subresource: "scale".into(), object: Some(scale), old, ..Self::new(user, Operation::Update, target) }
    }

    /// `evict`: CREATE of `pods/eviction`.
    pub fn evict(user: User, target: Key) -> Self {
        let eviction = Val::object([
            ("apiVersion", Val::str("policy/v1")),
            ("kind", Val::str("Eviction")),
            ("metadata", metadata(&target)),
        ]);
        Self { subresource: "eviction".into(), object: Some(eviction), ..Self::new(user, Operation::Create, target) }
    }

    /// `bind`: CREATE of `pods/binding`.
    pub fn bind(user: User, target: Key, node: &str) -> Self {
        let node = Val::object([("apiVersion", Val::str("v1")), ("kind", Val::str("Node")), ("name", Val::str(node))]);
        let binding = Val::object([
            ("apiVersion", Val::str("v1")),
            ("kind", Val::str("Binding")),
            ("metadata", metadata(&target)),
            ("target", node),
        ]);
        Self { subresource: "binding".into(), object: Some(binding), ..Self::new(user, Operation::Create, target) }
    }

    /// The object as the request shows it before the write; none where it shows none, or a part of it only: that of
    /// `/scale` is a Scale.
    pub fn shown(&self) -> Option<Object> {
        let shown = Object::from_val(&project(self.old.as_ref()?)).ok()?;
        (shown.key == self.target).then_some(shown)
    }

    /// The request in words, for the steps of a counterexample.
    pub fn describe(&self) -> String {
        let (who, target) = (&self.user.username, &self.target);
        let number = |path: &[&str]| self.object.as_ref().and_then(|o| o.int_at(path));
        let text = |path: &[&str]| self.object.as_ref().and_then(|o| o.str_at(path)).map_or("", |s| s);
        match (self.operation, &*self.subresource) {
            (Operation::Create, "") => format!("{who} creates {target}"),
            (Operation::Create, "eviction") => format!("{who} evicts {target}"),
            (Operation::Create, "binding") => format!("{who} assigns {target} to node {}", text(&["target", "name"])),
            (Operation::Update, "") => format!("{who} updates {target}"),
            (Operation::Update, "scale") => {
                format!("{who} scales {target} to {}", number(&["spec", "replicas"]).unwrap_or(0))
            }
            (Operation::Delete, "") => match self.propagation {
                Some(propagation) => format!("{who} deletes {target} ({propagation:?})"),
                None => format!("{who} deletes {target}"),
            },
            (Operation::Connect, _) => format!("{who} connects to {target}"),
            (_, subresource) => format!("{who} writes the {subresource} of {target}"),
        }
    }

    /// The same request with the kind of its target made out: an AdmissionReview of a subresource names only the
    /// resource (`plural`) of the object that has it, which for a custom resource only the state can resolve.
    #[must_use]
    pub fn resolve(mut self, state: &State) -> Self {
        if let Some(kind) = resource::kind_of(state, &self.target.kind) {
            self.target.kind = kind;
        }
        self
    }
}

fn old(state: &State, target: &Key) -> Option<Val> {
    state.get(target).map(|object| object.to_val())
}

fn metadata(target: &Key) -> Val {
    let ns = Val::Str(target.ns.clone());
    Val::object([("name", Val::Str(target.name.clone())), ("namespace", ns)])
}

/// The key with the namespace `default` where a namespaced custom resource names none; built-in kinds have it already.
fn placed(state: &State, key: Key) -> Key {
    let definition = crate::navigate::definition_of(state, &key.kind);
    let namespaced =
        definition.is_some_and(|d| d.val().str_at(&["spec", "scope"]).is_some_and(|s| &**s == "Namespaced"));
    if namespaced && key.ns.is_empty() { Key { ns: "default".into(), ..key } } else { key }
}

fn with_namespace(manifest: &Val, target: &Key) -> Val {
    let named = manifest.at_some(&["metadata", "namespace"]).is_some();
    if target.ns.is_empty() || named {
        manifest.clone()
    } else {
        manifest.with_at(&["metadata", "namespace"], Val::Str(target.ns.clone()))
    }
}

/// A manifest with the name that `generateName` leads to, where it has none: the API server's is random, this one is
/// made of the request's uid.
fn named(manifest: &Val, uid: &str) -> Val {
    let path = ["metadata", "name"];
    let prefix = manifest.str_at(&["metadata", "generateName"]);
    match (manifest.str_at(&path).filter(|n| !n.is_empty()), prefix) {
        (None, Some(prefix)) => {
            let suffix: String = uid.chars().filter(char::is_ascii_alphanumeric).take(5).collect();
            let suffix = if suffix.is_empty() { "new" } else { &suffix };
            manifest.with_at(&path, Val::str(format!("{prefix}{suffix}")))
        }
        _ => manifest.clone(),
    }
}

#[cfg(test)]
mod tests;
