//! A change: one request to the API server, or a batch of them, as data.

use crate::fields::restarts_containers;
use crate::ingest::project;
use crate::navigate::wanted_replicas;
use crate::object::{Key, Object};
use crate::state::State;
use crate::value::Val;

mod manifest;
mod merge;
mod request;
mod resource;
mod review;

pub use manifest::substance;
use manifest::{named, with_namespace};
pub use merge::merge_patch;
pub use request::{Change, ChangeError, Operation, Preconditions, Propagation, Request, User};
use resource::placed;
pub use resource::{key_named, kind_named, plural, provisional};

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

    /// Whether it changes a ready pod in place so that its containers restart: by what it shows of the pod itself, since the
    /// watch may show it as written while the kubelet is still at it.
    pub fn restarts_pod(&self) -> bool {
        let is_write = self.operation == Operation::Update && matches!(&*self.subresource, "" | "resize");
        let old = self.shown().filter(|old| is_write && old.ready());
        old.is_some_and(|old| self.written().is_some_and(|new| restarts_containers(&old, &new)))
    }

    /// Whether a pod is as such a request writes it, and its containers may still have to restart: it is ready so far.
    pub fn restarts_still(&self, pod: &Object) -> bool {
        pod.ready() && self.written().is_some_and(|new| !restarts_containers(pod, &new))
    }

    /// The object as the request holds it.
    fn written(&self) -> Option<Object> {
        Object::from_val(&project(self.object.as_ref()?)).ok()
    }

    /// Whether it writes or removes this very object, and no other of its name.
    pub fn is_about(&self, object: &Object) -> bool {
        self.shown().is_some_and(|shown| shown.uid == object.uid)
    }

    /// Whether this is a repeated call of an API server about that request. Whoever reaches the webhook chooses the uid.
    pub fn repeats(&self, known: &Self) -> bool {
        !self.uid.is_empty() && self == known
    }

    /// The request in words, for the steps of a counterexample.
    pub fn describe(&self) -> String {
        let (who, target) = (&self.user.username, &self.target);
        let text = |path: &[&str]| self.object.as_ref().and_then(|o| o.str_at(path)).map_or("", |s| s);
        match (self.operation, &*self.subresource) {
            (Operation::Create, "") => format!("{who} creates {target}"),
            (Operation::Create, "eviction") => format!("{who} evicts {target}"),
            (Operation::Create, "binding") => format!("{who} assigns {target} to node {}", text(&["target", "name"])),
            (Operation::Update, "") => format!("{who} updates {target}"),
            (Operation::Update, "scale") => format!("{who} scales {target} to {}", self.replicas().unwrap_or(0)),
            (Operation::Delete, "") => match self.propagation {
                Some(propagation) => format!("{who} deletes {target} ({propagation:?})"),
                None => format!("{who} deletes {target}"),
            },
            (Operation::Connect, _) => format!("{who} connects to {target}"),
            (_, subresource) => format!("{who} writes the {subresource} of {target}"),
        }
    }

    /// The number of replicas that it asks for, if it says one. A Scale that leaves it out asks for 0, which its JSON never has
    /// (`staging/src/k8s.io/api/autoscaling/v1/types.go`, `ScaleSpec.Replicas`).
    pub fn replicas(&self) -> Option<i64> {
        let said = self.object.as_ref()?.int_at(&["spec", "replicas"]);
        said.or_else(|| (self.subresource == "scale").then_some(0))
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

#[cfg(test)]
mod tests;
