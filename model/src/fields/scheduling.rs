//! Which nodes and which neighbours the pods of an object ask for: node selector, affinity, anti-affinity; zones of nodes.

use std::borrow::Cow;

use super::workload::{makes_no_more, pod_spec};
use crate::kinds::Kind;
use crate::object::{DURING_SCHEDULING, NODE_AFFINITY, Object};
use crate::selector::{term_matches, text};
use crate::value::{Str, Val};

/// The label that tells every node from every other.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// Whether a node satisfies a pod's `nodeSelector` and required node affinity (pod spec given).
pub fn node_matches(pod_spec: &Val, node: &Object) -> bool {
    bears(pod_spec.at_some(&["nodeSelector"]), node) && meets(pod_spec.at_some(&NODE_AFFINITY), node)
}

/// Whether a node has the labels of a `nodeSelector`, if there is one.
fn bears(selector: Option<&Val>, node: &Object) -> bool {
    let has = |(key, value): (&Str, &Val)| match (node.labels().get(key), value) {
        (Some(Val::Str(here)), Val::Str(wanted)) => here == wanted,
        (here, wanted) => here.is_some_and(|here| text(here) == text(wanted)),
    };
    selector.is_none_or(|pairs| pairs.entries().all(has))
}

/// Whether a node satisfies a node selector of terms, if there is one.
fn meets(required: Option<&Val>, node: &Object) -> bool {
    required.is_none_or(|required| node_terms_match(required, node))
}

/// Whether a node satisfies one of the terms of a node selector (`nodeSelectorTerms`).
pub fn node_terms_match(node_selector: &Val, node: &Object) -> bool {
    node_selector.items_at(&["nodeSelectorTerms"]).iter().any(|term| term_matches(term, node.labels(), &node.key.name))
}

/// Whether the pod spec restricts its nodes by labels at all.
pub fn restricts_nodes(pod_spec: &Val) -> bool {
    NodeConstraint::of_spec(pod_spec).restricts()
}

/// What restricts the nodes of a pod spec: its node selector and required node affinity.
pub fn node_constraint(spec: &Val) -> Val {
    let part = |path: &[&str]| spec.at_some(path).cloned().unwrap_or_default();
    Val::list(vec![part(&["nodeSelector"]), part(&NODE_AFFINITY)])
}

/// All that an object says of the nodes that admit its pods, or the pod or volume that it is. The same nodes admit objects
/// of one constraint, and each node admits those that it does not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeConstraint {
    /// The labels that a node must have.
    selector: Option<Val>,
    /// The terms of which a node must satisfy one.
    required: Option<Val>,
    /// Whether the object makes no pods any more: nodes admit it as before, and it is said to restrict none.
    makes_no_more: bool,
}

impl NodeConstraint {
    /// Those that restrict no node.
    pub const FREE: [Self; 2] = [Self::free(false), Self::free(true)];

    const fn free(makes_no_more: bool) -> Self {
        Self { selector: None, required: None, makes_no_more }
    }

    /// Of the pod spec of an object that makes pods.
    pub fn of_spec(spec: &Val) -> Self {
        let (selector, required) = asked(spec);
        Self { selector: selector.cloned(), required: required.cloned(), makes_no_more: false }
    }

    /// Of an object of a built-in kind; `None` if it is no question which nodes admit it.
    pub fn of(object: &Object) -> Option<Self> {
        let (selector, required) = asked_by(object)?;
        let makes_no_more = makes_no_more(object);
        Some(Self { selector: selector.cloned(), required: required.map(Cow::into_owned), makes_no_more })
    }

    /// Whether it is that of an object of a built-in kind.
    pub fn is_of(&self, object: &Object) -> bool {
        asked_by(object) == Some((self.selector.as_ref(), self.required.as_ref().map(Cow::Borrowed)))
            && makes_no_more(object) == self.makes_no_more
    }

    /// Whether objects of a built-in kind may have one.
    pub fn may_be_of(kind: &Kind) -> bool {
        kind.has(|traits| traits.runs_pods() || traits.template_path().is_some()) || kind.is("PersistentVolume")
    }

    /// Whether there are nodes that it might not admit.
    pub fn restricts(&self) -> bool {
        self.selector.is_some() || self.required.is_some()
    }

    /// Whether it admits a node.
    pub fn admits(&self, node: &Object) -> bool {
        bears(self.selector.as_ref(), node) && meets(self.required.as_ref(), node)
    }
}

/// The labels and the terms that a pod spec asks of nodes.
fn asked(spec: &Val) -> (Option<&Val>, Option<&Val>) {
    let selector = spec.at_some(&["nodeSelector"]).filter(|pairs| pairs.entries().len() > 0);
    (selector, spec.at_some(&NODE_AFFINITY))
}

/// The labels and the terms that an object of a built-in kind asks of nodes; `None` if it is no question.
fn asked_by(object: &Object) -> Option<(Option<&Val>, Option<Cow<'_, Val>>)> {
    if object.key.kind.is("PersistentVolume") {
        return Some((None, volume_affinity(object).map(Cow::Borrowed)));
    }
    let (selector, required) = asked(pod_spec(object)?);
    Some((selector, object.own_node_affinity().map(Cow::Owned).or(required.map(Cow::Borrowed))))
}

/// Whether a pod spec may tell nodes apart by their names.
pub fn names_nodes(spec: &Val) -> bool {
    let by_name = |e: &Val| e.str_at(&["key"]).is_some_and(|key| &**key == HOSTNAME);
    let names = |term: &Val| {
        !term.items_at(&["matchFields"]).is_empty() || term.items_at(&["matchExpressions"]).iter().any(by_name)
    };
    spec.at(&["nodeSelector", HOSTNAME]).is_some()
        || spec.at(&NODE_AFFINITY).is_some_and(|required| required.items_at(&["nodeSelectorTerms"]).iter().any(names))
}

/// What a PersistentVolume requires of a node that uses it.
pub fn volume_affinity(volume: &Object) -> Option<&Val> {
    volume.val().at_some(&["spec", "nodeAffinity", "required"])
}

/// Whether a PersistentVolume's node affinity lets it be used from a node.
pub fn volume_admits(volume: &Object, node: &Object) -> bool {
    meets(volume_affinity(volume), node)
}

/// The required terms of a pod spec about other pods: of `podAffinity` or `podAntiAffinity`.
pub fn pod_terms<'v>(spec: &'v Val, kind: &str) -> &'v [Val] {
    spec.items_at(&["affinity", kind, DURING_SCHEDULING])
}

/// The terms of a pod's required anti-affinity; none for an object of another kind.
pub fn anti_affinity(object: &Object) -> &[Val] {
    let spec = if object.key.kind.is("Pod") { object.val().get("spec") } else { None };
    spec.map_or(&[], |spec| pod_terms(spec, "podAntiAffinity"))
}

/// The spread constraints of a pod spec that the scheduler may not ignore.
pub fn hard_spreads(spec: &Val) -> impl Iterator<Item = &Val> {
    let hard = |spread: &&Val| spread.str_at(&["whenUnsatisfiable"]).is_none_or(|w| &**w == "DoNotSchedule");
    spec.items_at(&["topologySpreadConstraints"]).iter().filter(hard)
}

/// Whether a term of pod affinity of a pod in one namespace may be about pods of another one, or of the same.
pub fn reaches(term: &Val, own: &str, ns: &str) -> bool {
    let listed = term.items_at(&["namespaces"]);
    let selects = term.at_some(&["namespaceSelector"]).is_some();
    selects || lists_namespace(term, ns) || (listed.is_empty() && own == ns)
}

/// Whether a term of pod affinity lists a namespace by its name.
pub fn lists_namespace(term: &Val, ns: &str) -> bool {
    term.items_at(&["namespaces"]).iter().any(|name| name.as_str().is_some_and(|name| **name == *ns))
}

/// The zone of a node, by the label or the one that preceded it.
pub fn node_zone(node: &Object) -> Option<Str> {
    let old = || node.label("failure-domain.beta.kubernetes.io/zone");
    node.label("topology.kubernetes.io/zone").or_else(old).filter(|z| !z.is_empty()).cloned()
}
