//! Required terms of inter-pod affinity and topology spread, as far as they relate a new pod to pods of its own namespace.

use crate::fields::lists_namespace;
use crate::object::Object;
use crate::selector::Selector;
use crate::value::{Str, Val};

/// A constraint that relates a new pod to the pods in its topology domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The topology key.
    pub topology: Str,
    /// Which pods it is about.
    pub selector: Selector,
    /// The largest difference of a spread constraint; `None` for anti-affinity.
    pub max_skew: Option<i64>,
    /// Whether the selector is narrowed to one revision, so that old pods are not meant.
    pub by_revision: bool,
    /// The labels whose values a pod shares with those that are meant (`matchLabelKeys`).
    pub shared_keys: Vec<Str>,
    /// Whether a spread constraint passes over nodes whose taints the pod does not tolerate (`nodeTaintsPolicy: Honor`).
    pub heeds_taints: bool,
    /// Whether a spread constraint passes over nodes that the pod does not select (not with `nodeAffinityPolicy: Ignore`).
    pub heeds_selection: bool,
    /// With fewer domains than that, a spread constraint takes it that there is an empty one (`minDomains`).
    pub min_domains: i64,
}

/// A constraint, as far as it is about pods of the pod's own namespace: that it keeps pods of others apart, too, is not
/// relied on. Neither is one with `mismatchLabelKeys`: it is about pods with other values of these labels than the pod's
/// (`pkg/registry/core/pod/strategy.go`, `applyLabelKeysToLabelSelector`).
pub fn term(val: &Val, ns: &str, max_skew: Option<i64>) -> Option<Term> {
    if !reaches_own(val, ns) || !val.items_at(&["mismatchLabelKeys"]).is_empty() {
        return None;
    }
    let selector = val.get("labelSelector").filter(|s| !s.is_null())?;
    let by_revision = !val.items_at(&["matchLabelKeys"]).is_empty();
    let policy = |field: &str, name: &str| val.str_at(&[field]).is_some_and(|policy| **policy == *name);
    Some(Term {
        topology: val.str_at(&["topologyKey"])?.clone(),
        selector: Selector::from_label_selector(selector),
        max_skew,
        by_revision,
        shared_keys: val.items_at(&["matchLabelKeys"]).iter().filter_map(Val::as_str).cloned().collect(),
        heeds_taints: policy("nodeTaintsPolicy", "Honor"),
        heeds_selection: !policy("nodeAffinityPolicy", "Ignore"),
        min_domains: val.int_at(&["minDomains"]).unwrap_or(1),
    })
}

impl Term {
    /// Whether an existing pod may be of the revision that new pods with these labels are of. A Deployment's template lacks
    /// the hash only where it is that of no ReplicaSet yet.
    pub fn may_share(&self, labels: &Val, pod: &Object) -> bool {
        self.shared_keys.iter().all(|key| match labels.get(key) {
            Some(value) => pod.labels().get(key) == Some(value),
            None => &**key != "pod-template-hash",
        })
    }
}

/// Whether a term of pod affinity is about pods of the pod's own namespace (`interpodaffinity/plugin.go`,
/// `GetNamespaceLabelsSnapshot`; `core/v1/types.go`, `PodAffinityTerm`): it lists it, selects it, or says nothing of any.
fn reaches_own(term: &Val, ns: &str) -> bool {
    let listed = term.items_at(&["namespaces"]);
    let Some(selector) = term.at_some(&["namespaceSelector"]) else {
        return listed.is_empty() || lists_namespace(term, ns);
    };
    // every namespace bears its name
    let named = Val::object([("kubernetes.io/metadata.name", Val::str(ns))]);
    let by_name = selector.items_at(&["matchExpressions"]).is_empty()
        && selector.at(&["matchLabels"]).is_none_or(|labels| labels.entries().all(|(key, _)| named.get(key).is_some()));
    lists_namespace(term, ns) || (by_name && Selector::from_label_selector(selector).matches(&named))
}

/// Whether it may be about pods of another namespace.
pub fn reaches_others(term: &Val, ns: &str) -> bool {
    let other = |name: &Val| name.as_str().is_none_or(|name| **name != *ns);
    let beyond = |selector: &Val| selector.at(&["matchLabels", "kubernetes.io/metadata.name"]).is_none_or(other);
    term.at_some(&["namespaceSelector"]).is_some_and(beyond) || term.items_at(&["namespaces"]).iter().any(other)
}
