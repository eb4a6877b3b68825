//! One Kubernetes object: what identifies it in a header of its own, everything else in a body shared by its equals.
//!
//! The pods of one ReplicaSet differ in name, uid, node and creation time only. Those are kept in the header, so that
//! such pods share one [`Body`] (little memory, and equal bodies make a class of interchangeable objects). Those of a
//! DaemonSet also require their node by its name, each another: that is a mark in the header.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, OnceLock};

use crate::kinds::{Kind, order, same};
use crate::quantity::Allocatable;
use crate::value::{Str, Val};

/// What names an object: kind, namespace (empty for cluster-scoped kinds) and name.
#[derive(Clone, Debug)]
pub struct Key {
    /// The kind.
    pub kind: Kind,
    /// The namespace; empty when cluster-scoped.
    pub ns: Str,
    /// The name.
    pub name: Str,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        same(&self.name, &other.name) && self.kind == other.kind && same(&self.ns, &other.ns)
    }
}
impl Eq for Key {}
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        self.ns.hash(state);
        self.name.hash(state);
    }
}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let kinds = self.kind.cmp(&other.kind);
        kinds.then_with(|| order(&self.ns, &other.ns)).then_with(|| order(&self.name, &other.name))
    }
}

impl Key {
    /// The key of an object of a built-in kind; a kind that is not built in is taken to be in the core group.
    pub fn of(kind: &str, ns: &str, name: &str) -> Self {
        Self::new(Kind::builtin(kind).unwrap_or_else(|| Kind::new("", kind)), ns, name)
    }

    /// The key of an object.
    pub fn new(kind: Kind, ns: &str, name: &str) -> Self {
        Self { kind, ns: ns.into(), name: name.into() }
    }
}

impl Key {
    /// The key of an object of a built-in kind without namespaces; the name is shared.
    pub fn global(kind: &str, name: &Str) -> Self {
        static NOWHERE: LazyLock<Str> = LazyLock::new(|| "".into());
        let kind = Kind::builtin(kind).unwrap_or_else(|| Kind::new("", kind));
        Self { kind, ns: NOWHERE.clone(), name: name.clone() }
    }

    /// Whether this names that object. An adapter that names a custom resource may leave its group out, and gives it a
    /// namespace although it may have none.
    pub fn means(&self, object: &Self) -> bool {
        self == object
            || self.is_partial()
                && self.name == object.name
                && self.kind.kind == object.kind.kind
                && (self.kind.group.is_empty() || self.kind.group == object.kind.group)
                && (self.ns == object.ns || object.ns.is_empty())
    }

    /// What is the same of all keys that mean an object, and of its own.
    pub fn partial_key(self) -> Self {
        if !self.is_partial() {
            return self;
        }
        Self { kind: Kind::new("", &self.kind.kind), ns: "".into(), name: self.name }
    }

    /// Whether nothing is known of the kind but its name, and perhaps its group.
    pub fn is_partial(&self) -> bool {
        self.kind.builtin_namespaced().is_none()
    }
}

/// `Kind/namespace/name`, or `Kind/name` without a namespace: the name of an instance.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ns.is_empty() {
            write!(f, "{}/{}", self.kind, self.name)
        } else {
            write!(f, "{}/{}/{}", self.kind, self.ns, self.name)
        }
    }
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The owner's kind.
    pub kind: Kind,
    /// The owner's name.
    pub name: Str,
    /// The owner's uid; a reference resolves only if it matches.
    pub uid: Str,
    /// Whether this owner is the managing controller.
    pub controller: bool,
}

/// The field of a manifest of which a part was not read, since it is nested too deep (`ingest`). No API object has it.
pub const UNREAD: &str = "suture.dev/unread";

/// What stands in place of a value of a Secret or ConfigMap: none of them is kept.
pub const HIDDEN: &str = "(value not kept)";

/// Everything about an object that does not identify it.
#[derive(Debug)]
pub struct Body {
    val: Val,
    owners: Box<[Owner]>,
    ready: bool,
    terminating: bool,
    finished: bool,
    requests: OnceLock<(i64, i64)>,
    allocatable: OnceLock<Option<Box<Allocatable>>>,
}

impl Body {
    fn new(val: Val, is_pod: bool) -> Self {
        let owners = val.items_at(&["metadata", "ownerReferences"]).iter().filter_map(parse_owner).collect();
        let ready = is_pod && pod_ready(&val);
        let terminating = val.at_some(&["metadata", "deletionTimestamp"]).is_some();
        let phase = val.str_at(&["status", "phase"]);
        let finished = phase.is_some_and(|phase| matches!(&**phase, "Succeeded" | "Failed"));
        Self { val, owners, ready, terminating, finished, requests: OnceLock::new(), allocatable: OnceLock::new() }
    }

    /// The fields, without those of the header.
    pub fn val(&self) -> &Val {
        &self.val
    }

    /// What a pod requests: cpu in milli, memory in bytes. It is read once.
    pub(crate) fn requests(&self, read: impl FnOnce(&Val) -> (i64, i64)) -> (i64, i64) {
        *self.requests.get_or_init(|| read(&self.val))
    }

    /// What a node states, if it does. It is read once.
    pub(crate) fn allocatable(&self, read: impl FnOnce(&Val) -> Option<Allocatable>) -> Option<&Allocatable> {
        self.allocatable.get_or_init(|| read(&self.val).map(Box::new)).as_deref()
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.val == other.val
    }
}
impl Eq for Body {}
impl PartialOrd for Body {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Body {
    fn cmp(&self, other: &Self) -> Ordering {
        self.val.cmp(&other.val)
    }
}

fn parse_owner(reference: &Val) -> Option<Owner> {
    let api_version = reference.str_at(&["apiVersion"]).map_or("", |s| &**s);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Some(Owner {
        kind: Kind::new(group, reference.str_at(&["kind"])?),
        name: reference.str_at(&["name"])?.clone(),
        uid: reference.str_at(&["uid"]).cloned().unwrap_or_else(|| "".into()),
        controller: reference.bool_at(&["controller"]).unwrap_or(false),
    })
}

/// Ready condition true and phase neither Succeeded nor Failed (`pkg/api/v1/pod/util.go`, `IsPodReady`).
fn pod_ready(val: &Val) -> bool {
    let phase = val.str_at(&["status", "phase"]).map_or("", |s| &**s);
    !matches!(phase, "Succeeded" | "Failed")
        && val.items_at(&["status", "conditions"]).iter().any(|c| {
            c.str_at(&["type"]).is_some_and(|t| &**t == "Ready")
                && c.str_at(&["status"]).is_some_and(|s| &**s == "True")
        })
}

/// Why a value is not a Kubernetes object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Not a map at all.
    #[error("not a Kubernetes object: expected a map with `apiVersion`, `kind` and `metadata`")]
    NotAnObject,
    /// A required field is missing or not a string.
    #[error("not a Kubernetes object: `{0}` is missing or not a string")]
    Missing(&'static str),
}

/// One object of a snapshot or of a possible future.
#[derive(Clone, Debug)]
pub struct Object {
    /// What names it.
    pub key: Key,
    /// The version part of `apiVersion`.
    pub version: Str,
    /// `metadata.uid`; empty when the object has none yet.
    pub uid: Str,
    /// `spec.nodeName` of a pod; empty when not assigned, and for other kinds.
    pub node: Str,
    /// `metadata.creationTimestamp`; empty when unknown.
    pub created: Str,
    /// `metadata.resourceVersion`; empty when unknown.
    pub resource_version: Str,
    /// Whether a deletion that is under way will take this object (cascade, namespace or definition deletion),
    /// although it bears no deletionTimestamp yet.
    pub in_deletion_closure: bool,
    /// Whether a pod of a DaemonSet requires the node that it is on, by name and alone, as its controller has it
    /// (`pkg/controller/daemon/util/daemonset_util.go`, `ReplaceDaemonSetPodNodeNameNodeAffinity`).
    pub names_own_node: bool,
    /// Everything else.
    pub body: Arc<Body>,
}

/// What an affinity requires, in contrast to what it prefers.
pub(crate) const DURING_SCHEDULING: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// Where a pod spec keeps its required node affinity.
pub(crate) const NODE_AFFINITY: [&str; 3] = ["affinity", "nodeAffinity", DURING_SCHEDULING];
/// Where a pod, or the template of one, keeps it.
pub(crate) const NODE_AFFINITY_OF_POD: [&str; 4] = {
    let [affinity, of_nodes, required] = NODE_AFFINITY;
    ["spec", affinity, of_nodes, required]
};

/// The required node affinity that a DaemonSet's controller gives a pod.
fn naming(node: &Str) -> Val {
    let field = Val::object([
        ("key", Val::str("metadata.name")),
        ("operator", Val::str("In")),
        ("values", Val::list(vec![Val::Str(node.clone())])),
    ]);
    let term = Val::object([("matchFields", Val::list(vec![field]))]);
    Val::object([("nodeSelectorTerms", Val::list(vec![term]))])
}

/// Whether all that a pod requires of nodes is that it is this one.
fn names_alone(pod: &Val, node: &Str) -> bool {
    pod.at_some(&NODE_AFFINITY_OF_POD).is_some_and(|required| *required == naming(node))
}

fn of_daemon_set(pod: &Val) -> bool {
    let mut owners = pod.items_at(&["metadata", "ownerReferences"]).iter().filter_map(parse_owner);
    owners.any(|owner| owner.controller && owner.kind.is("DaemonSet"))
}

/// A pod spec without its required node affinity; what has nothing else in it goes as well.
fn without_node_affinity(spec: &Val) -> Val {
    let without = spec.without_at(&NODE_AFFINITY);
    let is_empty = |spec: &Val, path: &[&str]| spec.at(path).is_some_and(|part| part.entries().len() == 0);
    let [affinity, of_nodes, _] = NODE_AFFINITY;
    let without =
        if is_empty(&without, &[affinity, of_nodes]) { without.without_at(&[affinity, of_nodes]) } else { without };
    if is_empty(&without, &[affinity]) { without.without_at(&[affinity]) } else { without }
}

/// Fields of `metadata` that the header keeps.
const HEADER_META: [&str; 5] = ["name", "namespace", "uid", "creationTimestamp", "resourceVersion"];
/// Fields of `metadata` that nothing reads.
const DROPPED_META: [&str; 3] = ["managedFields", "selfLink", "generateName"];

impl Object {
    /// Whether it is the very same: all of its header, and the body in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.body, &other.body) && self.has_header_of(other)
    }

    /// Whether all is the same but for the body.
    pub fn has_header_of(&self, other: &Self) -> bool {
        let Self { key, version, uid, node, created, resource_version, in_deletion_closure, names_own_node, body: _ } =
            self;
        (in_deletion_closure, names_own_node) == (&other.in_deletion_closure, &other.names_own_node)
            && (key, version, uid) == (&other.key, &other.version, &other.uid)
            && (node, created, resource_version) == (&other.node, &other.created, &other.resource_version)
    }

    /// The object of this value.
    ///
    /// # Errors
    /// When `apiVersion`, `kind` or `metadata.name` is missing.
    pub fn from_val(val: &Val) -> Result<Self, ObjectError> {
        if !matches!(val, Val::Map(_)) {
            return Err(ObjectError::NotAnObject);
        }
        let kind = val.str_at(&["kind"]).ok_or(ObjectError::Missing("kind"))?;
        let api_version = val.str_at(&["apiVersion"]).ok_or(ObjectError::Missing("apiVersion"))?;
        let name = val.str_at(&["metadata", "name"]).ok_or(ObjectError::Missing("metadata.name"))?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = Kind::new(group, kind);
        let namespaced = kind.builtin_namespaced();
        let ns = match (namespaced, val.str_at(&["metadata", "namespace"])) {
            (Some(false), _) => Str::from(""),
            (Some(true), None) => Str::from("default"),
            (_, ns) => ns.cloned().unwrap_or_else(|| "".into()),
        };
        let text = |path: &[&str]| val.str_at(path).cloned().unwrap_or_else(|| "".into());
        let is_pod = kind.is("Pod");
        let node = if is_pod { text(&["spec", "nodeName"]) } else { "".into() };
        let meta = val.get("metadata").map(|meta| {
            let kept = meta
                .entries()
                .filter(|(k, v)| !HEADER_META.contains(&&***k) && !DROPPED_META.contains(&&***k) && !v.is_null());
            Val::map(kept.map(|(k, v)| (k.clone(), v.clone())).collect())
        });
        let names_own_node = is_pod && !node.is_empty() && names_alone(val, &node) && of_daemon_set(val);
        let mut body = Vec::new();
        for (k, v) in val.entries() {
            match &**k {
                "apiVersion" | "kind" => {}
                "metadata" => body.push((k.clone(), meta.clone().unwrap_or_default())),
                "spec" if is_pod => {
                    let spec = v.without_at(&["nodeName"]);
                    body.push((k.clone(), if names_own_node { without_node_affinity(&spec) } else { spec }));
                }
                _ => body.push((k.clone(), v.clone())),
            }
        }
        Ok(Self {
            key: Key { kind, ns, name: name.clone() },
            version: version.into(),
            uid: text(&["metadata", "uid"]),
            node,
            created: text(&["metadata", "creationTimestamp"]),
            resource_version: text(&["metadata", "resourceVersion"]),
            in_deletion_closure: false,
            names_own_node,
            body: Arc::new(Body::new(Val::map(body), is_pod)),
        })
    }

    /// An object of which only the key is known.
    pub fn bare(key: Key) -> Self {
        let empty: Str = "".into();
        Self {
            key,
            version: "v1".into(),
            uid: empty.clone(),
            node: empty.clone(),
            created: empty.clone(),
            resource_version: empty,
            in_deletion_closure: false,
            names_own_node: false,
            body: Arc::new(Body::new(Val::map(Vec::new()), false)),
        }
    }

    /// The whole manifest again, header included.
    pub fn to_val(&self) -> Val {
        let mut meta: Vec<(Str, Val)> = self
            .val()
            .get("metadata")
            .map_or_else(Vec::new, |m| m.entries().map(|(k, v)| (k.clone(), v.clone())).collect());
        let mut put = |key: &str, value: &Str| {
            if !value.is_empty() {
                meta.push((key.into(), Val::Str(value.clone())));
            }
        };
        put("name", &self.key.name);
        put("namespace", &self.key.ns);
        put("uid", &self.uid);
        put("creationTimestamp", &self.created);
        put("resourceVersion", &self.resource_version);
        let api_version = if self.key.kind.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.key.kind.group, self.version)
        };
        let mut whole = self
            .val()
            .with("metadata", Val::map(meta))
            .with("apiVersion", Val::str(api_version))
            .with("kind", Val::Str(self.key.kind.kind.clone()));
        if !self.node.is_empty() {
            whole = whole.with_at(&["spec", "nodeName"], Val::Str(self.node.clone()));
        }
        match self.own_node_affinity() {
            Some(required) => whole.with_at(&NODE_AFFINITY_OF_POD, required),
            None => whole,
        }
    }

    /// The required node affinity of a pod that [names its own node](Self::names_own_node), which its body does not have.
    pub fn own_node_affinity(&self) -> Option<Val> {
        self.names_own_node.then(|| naming(&self.node))
    }

    /// The fields without those of the header.
    pub fn val(&self) -> &Val {
        self.body.val()
    }

    /// The value at a path of the whole manifest; header fields are found too.
    pub fn at(&self, path: &[&str]) -> Option<Val> {
        let text = |s: &Str| (!s.is_empty()).then(|| Val::Str(s.clone()));
        match path {
            [] | ["metadata"] => self.to_val().at(path).cloned(),
            ["spec"] if !self.node.is_empty() => self.to_val().at(path).cloned(),
            ["spec", "affinity", ..] if self.names_own_node => self.to_val().at(path).cloned(),
            ["apiVersion"] => self.to_val().at(path).cloned(),
            ["kind"] => Some(Val::Str(self.key.kind.kind.clone())),
            ["metadata", "name"] => text(&self.key.name),
            ["metadata", "namespace"] => text(&self.key.ns),
            ["metadata", "uid"] => text(&self.uid),
            ["metadata", "creationTimestamp"] => text(&self.created),
            ["metadata", "resourceVersion"] => text(&self.resource_version),
            ["spec", "nodeName"] if self.key.kind.is("Pod") => text(&self.node),
            _ => self.val().at(path).cloned(),
        }
    }

    /// A copy whose body is changed by `change`; the header stays.
    #[must_use]
    pub fn map_body(&self, change: impl FnOnce(&Val) -> Val) -> Self {
        let body = Arc::new(Body::new(change(self.val()), self.key.kind.is("Pod")));
        Self { body, ..self.clone() }
    }

    /// The owner references.
    pub fn owners(&self) -> &[Owner] {
        &self.body.owners
    }

    /// The managing controller's reference, if any.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners().iter().find(|o| o.controller)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&Str> {
        self.val().str_at(&["metadata", "labels", key])
    }

    /// The labels, as a map value (null when there are none).
    pub fn labels(&self) -> &Val {
        self.val().at(&["metadata", "labels"]).unwrap_or(&Val::Null)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&Str> {
        self.val().str_at(&["metadata", "annotations", key])
    }

    /// The finalizers.
    pub fn finalizers(&self) -> impl Iterator<Item = &Str> {
        self.val().items_at(&["metadata", "finalizers"]).iter().filter_map(Val::as_str)
    }

    /// Whether its phase says that it has run to its end.
    pub fn finished(&self) -> bool {
        self.body.finished
    }

    /// Whether a pod is among its owners, with which it may go.
    pub fn has_pod_as_owner(&self) -> bool {
        self.owners().iter().any(|owner| owner.kind.is("Pod"))
    }

    /// Whether a part of it was not read, its metadata aside: what it says cannot be told.
    pub fn is_unread(&self) -> bool {
        self.val().get(UNREAD).is_some()
    }

    /// Whether it bears a deletionTimestamp.
    pub fn terminating(&self) -> bool {
        self.body.terminating
    }

    /// Whether it exists to stay: no deletionTimestamp, and no deletion under way takes it.
    pub fn live(&self) -> bool {
        !self.terminating() && !self.in_deletion_closure
    }

    /// A pod that is Ready and not terminating (an endpoint, a voting member); false for other kinds.
    pub fn ready(&self) -> bool {
        self.body.ready && !self.terminating()
    }

    /// Whether a gate of a pod's readiness is shut: the kubelet takes its readiness away then (KEP-580;
    /// `pkg/kubelet/status/generate.go`, `GeneratePodReadyCondition`).
    pub fn gate_shut(&self) -> bool {
        let conditions = self.val().items_at(&["status", "conditions"]);
        let is_true = |c: &&Val| c.str_at(&["status"]).is_some_and(|s| &**s == "True");
        let open = |gate: &Val| conditions.iter().filter(is_true).any(|c| c.get("type") == gate.get("conditionType"));
        !self.val().items_at(&["spec", "readinessGates"]).iter().all(open)
    }

    /// Whether its controller has not seen yet what its spec says now.
    pub fn unobserved(&self) -> bool {
        self.generations().is_some_and(|(generation, observed)| observed < generation)
    }

    /// Whether its status says that its controller has seen what its spec says now.
    pub fn observed(&self) -> bool {
        self.generations().is_some_and(|(generation, observed)| observed >= generation)
    }

    /// Of its spec, and of the one that its controller has seen.
    fn generations(&self) -> Option<(i64, i64)> {
        let generation = self.val().int_at(&["metadata", "generation"]);
        generation.zip(self.val().int_at(&["status", "observedGeneration"]))
    }

    /// A copy of a pod that has run to its end.
    #[must_use]
    pub fn failed(&self) -> Self {
        self.with_ready(false).map_body(|val| val.with_at(&["status", "phase"], Val::str("Failed")))
    }

    /// A copy with another readiness; only pods have one.
    #[must_use]
    pub fn with_ready(&self, ready: bool) -> Self {
        if self.body.ready == ready {
            return self.clone();
        }
        let status = if ready { "True" } else { "False" };
        self.map_body(|val| {
            let others = val.items_at(&["status", "conditions"]).iter();
            let mut conditions: Vec<Val> =
                others.filter(|c| c.str_at(&["type"]).is_none_or(|t| &**t != "Ready")).cloned().collect();
            conditions.push(Val::object([("type", Val::str("Ready")), ("status", Val::str(status))]));
            let phase =
                if ready { Val::str("Running") } else { val.at(&["status", "phase"]).cloned().unwrap_or_default() };
            val.with_at(&["status", "conditions"], Val::list(conditions)).with_at(&["status", "phase"], phase)
        })
    }

    /// A copy that bears a deletionTimestamp.
    #[must_use]
    pub fn with_deletion(&self, timestamp: &str) -> Self {
        if self.terminating() {
            return self.clone();
        }
        self.map_body(|val| val.with_at(&["metadata", "deletionTimestamp"], Val::str(timestamp)))
    }

    /// A copy with other owner references.
    #[must_use]
    pub fn without_owner(&self, uid: &str) -> Self {
        self.map_body(|val| {
            let left = val.items_at(&["metadata", "ownerReferences"]).iter();
            let left: Vec<Val> = left.filter(|o| o.str_at(&["uid"]).is_none_or(|u| &**u != uid)).cloned().collect();
            if left.is_empty() {
                val.without_at(&["metadata", "ownerReferences"])
            } else {
                val.with_at(&["metadata", "ownerReferences"], Val::list(left))
            }
        })
    }

    /// The body that this object has with an equal value in place of its own.
    pub(crate) fn with_shared(&self, val: &Val) -> Arc<Body> {
        Arc::new(Body::new(val.clone(), self.key.kind.is("Pod")))
    }

    /// A copy that shares the body of an equal object; keeps memory small when many objects are alike.
    #[must_use]
    pub fn sharing(mut self, body: Arc<Body>) -> Self {
        self.body = body;
        self
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
            && self.uid == other.uid
            && self.node == other.node
            && self.in_deletion_closure == other.in_deletion_closure
            && self.names_own_node == other.names_own_node
            && (Arc::ptr_eq(&self.body, &other.body) || self.body == other.body)
    }
}
impl Eq for Object {}
