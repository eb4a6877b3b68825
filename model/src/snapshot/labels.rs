//! The labels by which objects are found: those that they bear, and others that say what else is looked for.

use std::collections::BTreeSet;

use crate::adapter::AdapterFacts;
use crate::fields::hosts::{is_route, places_of};
use crate::fields::{
    Accounts, anti_affinity, hard_spreads, has_deadline, pod_spec, pod_terms, selector_parts, template_labels,
    template_path,
};
use crate::kinds::{Kind, KindTraits};
use crate::object::Object;
use crate::selector::{Selector, text};
use crate::value::{Str, Val};

/// Namespace, label, value.
pub(super) type LabelKey = (Str, Str, Str);

/// The label under which the hosts of Ingresses and routes are indexed, with the path in the place of the namespace; no Kubernetes label is called so.
pub(super) const HOST: &str = "(host)";

/// The label under which pods with required anti-affinity are indexed: by their namespace, if it is all that they are
/// about, else without one.
pub(super) const APART: &str = "(apart)";

/// The label under which PersistentVolumes are indexed by their claim.
pub(super) const CLAIM: &str = "(claim)";

/// The label under which custom resources, definitions and StatefulSets that are being deleted are indexed.
pub(super) const ENDING: &str = "(ending)";

/// The label under which workloads are indexed whose new pods a hard spread constraint keeps alike in number over domains.
pub(super) const SPREAD: &str = "(spread)";

/// The label under which is found what makes pods of a stated priority or class, and pods of such that wait for a node.
pub(super) const RANKED: &str = "(ranked)";

/// The label under which pods on nodes are found that may be less important than those without a class: by their class, those that
/// state a priority without one.
pub(super) const LOW: &str = "(low)";

/// The label under which custom resources are found of which an expression of their adapter failed.
pub(super) const FAILING: &str = "(failing)";

/// With a label that these pods bear, or none: the label under which is found what makes pods, and pods that wait for a node,
/// that ask for something of other pods: by their namespace, if it is all that they ask in, else without one.
const RELATED: &str = "(related)";

/// The label under which is found what makes pods, and pods that wait for a node, that are placed where others are.
pub(super) const FOLLOWING: &str = "(following)";

/// The label under which pods that wait for a node are found.
pub(super) const WAITING: &str = "(waiting)";

/// The label under which bindings are found: by the namespace and the name of a ServiceAccount that they mean, without the name
/// by a namespace all of whose accounts they mean, without both where they mean all.
pub(super) const BINDING: &str = "(binding)";

/// The label under which pods on nodes are found that end by themselves: they are being deleted, or have a deadline.
pub(super) const FLEETING: &str = "(fleeting)";

/// With a label: the label under which is found what asks for it beside another by which it is found; without one, what is found
/// by an expression alone.
const ASKED: &str = "(asked)";

/// The label under which all else is found that is being deleted.
pub(super) const LEAVING: &str = "(leaving)";

/// The labels under which an object is found; `selector` is the pair by which its selector is, `facts` what its adapter says.
pub(super) fn labels_of(object: &Object, facts: Option<&AdapterFacts>, selector: Option<&LabelKey>) -> Vec<LabelKey> {
    let mut found = labels_by_kind(object, facts);
    let is_pod = object.key.kind.is("Pod");
    if is_pod && object.node.is_empty() {
        found.push(("".into(), WAITING.into(), "".into()));
    }
    if is_pod && !object.node.is_empty() && (object.terminating() || has_deadline(object)) {
        found.push(("".into(), FLEETING.into(), "".into()));
    }
    if facts.is_some_and(|facts| !facts.errors.is_empty()) {
        found.push(("".into(), FAILING.into(), "".into()));
    }
    found.extend(low_by(object).map(|class| ("".into(), LOW.into(), class)));
    if !is_pod && object.terminating() {
        found.push(("".into(), LEAVING.into(), "".into()));
    }
    let spec = spec_to_place(object, facts);
    if spec.is_some_and(states_rank) {
        found.push(("".into(), RANKED.into(), "".into()));
    }
    found.extend(spec.into_iter().flat_map(|spec| related(object, spec)));
    found.extend(bound(object));
    found.extend(asked_beside(object, selector));
    if spec.is_some_and(follows) {
        found.push(("".into(), FOLLOWING.into(), "".into()));
    }
    if spreads(object) {
        found.push(("".into(), SPREAD.into(), "".into()));
    }
    if object.terminating() && leads(&object.key.kind) {
        found.push(("".into(), ENDING.into(), "".into()));
    }
    found
}

/// Whether an object, of which its adapter says this, makes pods of a stated priority or class, or is one that waits for a node.
pub fn is_ranked(object: &Object, facts: Option<&AdapterFacts>) -> bool {
    spec_to_place(object, facts).is_some_and(states_rank)
}

/// Whether a pod spec states a priority or class. 0 is what the API server states for pods without a class.
fn states_rank(spec: &Val) -> bool {
    spec.name_at(&["priorityClassName"]).is_some() || spec.int_at(&["priority"]).is_some_and(|of| of != 0)
}

/// By what a pod on a node may be of a priority below 0: the class that it names, or none where it states one.
pub fn low_by(object: &Object) -> Option<Str> {
    let spec = object.val().get("spec").filter(|_| object.key.kind.is("Pod") && !object.node.is_empty())?;
    match spec.int_at(&["priority"]) {
        Some(priority) => (priority < 0).then(|| "".into()),
        None => spec.name_at(&["priorityClassName"]).map(Str::from),
    }
}

/// The spec of the pods that an object makes, or of a pod that waits for a node.
fn spec_to_place<'o>(object: &'o Object, facts: Option<&'o AdapterFacts>) -> Option<&'o Val> {
    if template_path(object).is_none() && !object.key.kind.is("Pod") {
        return facts?.template.as_ref()?.at_some(&["spec"]);
    }
    let is_to_place = object.key.kind.has(KindTraits::runs_pods) && object.node.is_empty();
    pod_spec(object).filter(|_| is_to_place)
}

/// Under which labels an object is found whose place, or that of the pods which it makes, depends on other pods: by affinity,
/// anti-affinity or spreading.
fn related(object: &Object, spec: &Val) -> BTreeSet<LabelKey> {
    let affinity = ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|kind| pod_terms(spec, kind));
    let label = |term: &Val| {
        let selector = Selector::from_label_selector(term.at_some(&["labelSelector"])?);
        let ns = if is_of_one_namespace(term) { object.key.ns.clone() } else { "".into() };
        Some(match selector.a_pair() {
            Some((key, value)) => (ns, related_by(key), value.clone()),
            None => (ns, RELATED.into(), "".into()),
        })
    };
    affinity.chain(spec.items_at(&["topologySpreadConstraints"])).filter_map(label).collect()
}

/// Under which labels a RoleBinding or ClusterRoleBinding is found.
fn bound(object: &Object) -> BTreeSet<LabelKey> {
    let is_binding = object.key.kind.is("RoleBinding") || object.key.kind.is("ClusterRoleBinding");
    let subjects = if is_binding { object.val().items_at(&["subjects"]) } else { &[] };
    let accounts = subjects.iter().filter_map(|subject| Accounts::of(subject, &object.key.ns));
    accounts.map(|Accounts { ns, name }| (ns, BINDING.into(), name)).collect()
}

/// Under which labels an object is found that asks for pods with several labels, or by expressions: by those that are not the one
/// by which [`super::Snapshot::selecting`] finds it, which may be none.
fn asked_beside(object: &Object, found_by: Option<&LabelKey>) -> Vec<LabelKey> {
    let Some((labels, _)) = selector_parts(object) else { return Vec::new() };
    let ns = &object.key.ns;
    let is_found = |key: &str, value: &str| found_by.is_some_and(|(_, of, as_)| **of == *key && **as_ == *value);
    if labels.entries().len() == 0 {
        return if is_found("", "") { Vec::new() } else { vec![(ns.clone(), ASKED.into(), "".into())] };
    }
    let pairs = labels.entries().map(|(key, value)| (key, text(value))).filter(|(key, value)| !is_found(key, value));
    pairs.map(|(key, value)| (ns.clone(), asked_as(key), value)).collect()
}

/// The label under which is found what asks for a label of this name.
fn asked_as(key: &str) -> Str {
    format!("{ASKED}{key}").into()
}

/// The labels under which is found what asks for one of these labels, or for none, and is not found by that.
pub(super) fn asking_beside(ns: &Str, labels: &Val) -> Vec<LabelKey> {
    let pairs = labels.entries().map(|(key, value)| (ns.clone(), asked_as(key), text(value)));
    pairs.chain([(ns.clone(), ASKED.into(), "".into())]).collect()
}

/// Whether a required pod affinity places pods of a spec.
fn follows(spec: &Val) -> bool {
    !pod_terms(spec, "podAffinity").is_empty()
}

/// The label under which is found what asks for something of pods with a label of this name.
fn related_by(key: &str) -> Str {
    format!("{RELATED}{key}").into()
}

/// The labels under which is found what may ask for something of a pod with these labels in a namespace.
pub(super) fn related_to(ns: &str, labels: &Val) -> Vec<LabelKey> {
    let pairs = labels.entries().map(|(key, value)| (related_by(key), text(value)));
    let all: Vec<(Str, Str)> = pairs.chain([(RELATED.into(), "".into())]).collect();
    let of = |ns: &str| all.iter().map(|(key, value)| (ns.into(), key.clone(), value.clone())).collect::<Vec<_>>();
    [of(ns), of("")].concat()
}

/// Whether a term of affinity is about pods of its own namespace only.
fn is_of_one_namespace(term: &Val) -> bool {
    term.at_some(&["namespaces"]).is_none() && term.at_some(&["namespaceSelector"]).is_none()
}

fn spreads(object: &Object) -> bool {
    object.key.kind.has(KindTraits::decides) && pod_spec(object).is_some_and(|spec| hard_spreads(spec).next().is_some())
}

/// Whether what may go with an object of a kind does not name it.
fn leads(kind: &Kind) -> bool {
    kind.traits().is_none_or(KindTraits::leads_unnamed)
}

fn labels_by_kind(object: &Object, facts: Option<&AdapterFacts>) -> Vec<LabelKey> {
    if is_route(object).is_some() {
        return places_of(object).into_iter().map(|(host, path)| (path, HOST.into(), host)).collect();
    }
    if object.key.kind.is("PersistentVolume") {
        let part = |field| object.val().str_at(&["spec", "claimRef", field]).cloned();
        let claim = part("namespace").zip(part("name")).map(|(ns, name)| (ns, CLAIM.into(), name));
        return claim.into_iter().collect();
    }
    let labels = match object.key.kind.is("PersistentVolumeClaim") {
        true => Some(object.labels().clone()),
        false => template_labels(object, facts),
    };
    let pairs = labels.iter().flat_map(Val::entries);
    let mut found: Vec<LabelKey> = pairs.map(|(k, v)| (object.key.ns.clone(), k.clone(), text(v))).collect();
    let apart = anti_affinity(object);
    if !apart.is_empty() {
        let ns = if apart.iter().all(is_of_one_namespace) { object.key.ns.clone() } else { "".into() };
        found.push((ns, APART.into(), "".into()));
    }
    found
}
