//! What new pods require of other pods, and these of them.
//!
//! Sources: `pkg/scheduler/framework/plugins/{interpodaffinity,podtopologyspread}/filtering.go`; for `matchLabelKeys`,
//! `pkg/registry/core/pod/strategy.go`, `applyLabelKeysToLabelSelector`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cluster::Cluster;
use crate::effects::scheduling::template::Template;
use crate::effects::scheduling::topology::domain;
use crate::fields::{anti_affinity, hard_spreads, lists_namespace, pod_terms};
use crate::object::{Body, Key, Object};
use crate::selector::Selector;
use crate::state::State;
use crate::value::{Str, Val};

/// What a rule asks of the pods in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// None.
    Apart,
    /// One at least.
    Together,
    /// No more than `skew` beyond the emptiest domain.
    Spread {
        /// The largest difference.
        skew: i64,
        /// With fewer domains than that there is an empty one.
        min_domains: i64,
        /// Whether nodes do not count whose taints the pod does not tolerate.
        heeds_taints: bool,
        /// Whether nodes do not count that the pod does not select.
        heeds_selection: bool,
    },
}

/// A rule of new pods about other pods.
pub struct Rule {
    /// What it asks.
    pub asks: Asks,
    /// By which label of nodes.
    pub topology: Str,
    /// Whether it means the new pods themselves.
    pub own: bool,
    /// As it is written.
    val: Val,
}

/// The rules of a template; of one that names its node there are none, as its kubelet looks at no other pods.
pub fn rules(own: &Template, ns: &str, state: &State) -> Vec<Rule> {
    if own.pinned().is_some() {
        return Vec::new();
    }
    let apart = pod_terms(own.spec(), "podAntiAffinity").iter().map(|term| (Asks::Apart, term));
    let together = pod_terms(own.spec(), "podAffinity").iter().map(|term| (Asks::Together, term));
    let policy = |term: &Val, field: &str, name: &str| term.str_at(&[field]).is_some_and(|policy| **policy == *name);
    let hard = hard_spreads(own.spec()).map(|term| {
        let asks = Asks::Spread {
            skew: term.int_at(&["maxSkew"]).unwrap_or(1),
            min_domains: term.int_at(&["minDomains"]).unwrap_or(1),
            heeds_taints: policy(term, "nodeTaintsPolicy", "Honor"),
            heeds_selection: !policy(term, "nodeAffinityPolicy", "Ignore"),
        };
        (asks, term)
    });
    let all = apart.chain(together).chain(hard);
    let rules = all.filter_map(|(asks, term)| {
        let topology = term.str_at(&["topologyKey"])?.clone();
        let own_pods = means(state, term, ns, own.labels(), ns, own.labels(), true);
        Some(Rule { asks, topology, own: own_pods, val: term.clone() })
    });
    rules.collect()
}

impl Rule {
    /// The pods that stay and that it means, those aside that leave; `placed` are of the new pods' revision.
    pub fn pods<'s>(
        &self,
        cluster: &Cluster<'s, '_>,
        own: &Template,
        ns: &Str,
        leaving: &BTreeSet<Key>,
        placed: &BTreeSet<*const Object>,
    ) -> Vec<&'s Arc<Object>> {
        let Some(selector) = self.val.at_some(&["labelSelector"]) else { return Vec::new() };
        let selector = Selector::from_label_selector(selector);
        let is_spread = matches!(self.asks, Asks::Spread { .. });
        let namespaces = if is_spread { vec![ns.clone()] } else { namespaces(cluster.state, &self.val, ns) };
        let pods = namespaces.iter().flat_map(|ns| cluster.state.pods_matching(ns, &selector));
        pods.filter(|pod| !leaving.contains(&pod.key) && cluster.stays(pod))
            .filter(|pod| shares(&self.val, own.labels(), pod.labels(), placed.contains(&Arc::as_ptr(pod))))
            .collect()
    }
}

/// The domains that pods which are there keep new ones off: by topology key, their values.
pub type Closed = BTreeMap<Str, BTreeSet<Str>>;

/// Those of a cluster for new pods of a template.
pub fn closed(
    cluster: &Cluster<'_, '_>,
    own: &Template,
    ns: &Str,
    leaving: &BTreeSet<Key>,
    placed: &BTreeSet<*const Object>,
) -> Closed {
    let mut found = Closed::new();
    if own.pinned().is_some() {
        return found;
    }
    // equals stand together
    let mut last: Option<(*const Body, bool, Vec<&Str>)> = None;
    for pod in cluster.state.keeping_apart(ns).into_iter().filter(|pod| !leaving.contains(&pod.key)) {
        let (body, alike) = (Arc::as_ptr(&pod.body), placed.contains(&Arc::as_ptr(pod)));
        let known = last.take().filter(|(of, was_alike, _)| *of == body && *was_alike == alike);
        let meaning = |term: &&Val| means(cluster.state, term, &pod.key.ns, pod.labels(), ns, own.labels(), alike);
        let keys =
            || anti_affinity(pod).iter().filter(meaning).filter_map(|term| term.str_at(&["topologyKey"])).collect();
        let keys = known.map_or_else(keys, |(.., keys)| keys);
        if !keys.is_empty() && cluster.stays(pod) {
            let node = cluster.node(&pod.node);
            for key in &keys {
                let value = node.and_then(|node| domain(node, key));
                found.entry((*key).clone()).or_default().extend(value);
            }
        }
        last = Some((body, alike, keys));
    }
    found
}

/// Whether pods keep new ones off a node.
pub fn is_closed(closed: &Closed, node: &Object) -> bool {
    closed.iter().any(|(key, values)| domain(node, key).is_some_and(|value| values.contains(&value)))
}

/// Whether a term that a pod with these labels has may be about pods that these pods touch: by its namespaces and selector.
pub fn may_mean(state: &State, object: &Object, pod: &Object) -> bool {
    let Some(spec) = crate::navigate::pod_spec(state, object) else { return false };
    let affinity = ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|kind| pod_terms(&spec, kind));
    let mut terms = affinity.chain(spec.items_at(&["topologySpreadConstraints"]));
    let meant = |term: &Val| {
        let selector = term.at_some(&["labelSelector"]).map(Selector::from_label_selector);
        let here = object.key.ns == pod.key.ns || reaches(state, term, &object.key.ns, &pod.key.ns);
        here && selector.is_some_and(|selector| selector.matches(pod.labels()))
    };
    terms.any(meant)
}

/// Whether a term of a pod with these labels in one namespace means a pod with other labels in another one; `alike` says that
/// both are of one revision.
fn means(state: &State, term: &Val, own_ns: &str, own: &Val, ns: &str, labels: &Val, alike: bool) -> bool {
    let Some(selector) = term.at_some(&["labelSelector"]) else { return false };
    let is_spread = term.at_some(&["maxSkew"]).is_some();
    Selector::from_label_selector(selector).matches(labels)
        && if is_spread { own_ns == ns } else { reaches(state, term, own_ns, ns) }
        && shares(term, own, labels, alike)
}

/// Whether a pod has the labels that a term asks it to share, or not to, with the pod that has the term.
fn shares(term: &Val, own: &Val, labels: &Val, alike: bool) -> bool {
    let same = |key: &Val| {
        let Some(key) = key.as_str() else { return true };
        match own.get(key) {
            Some(value) => labels.get(key) == Some(value),
            // the label that a Deployment adds
            None => &**key != "pod-template-hash" || alike,
        }
    };
    let other =
        |key: &Val| key.as_str().is_none_or(|key| own.get(key).is_none_or(|value| labels.get(key) != Some(value)));
    term.items_at(&["matchLabelKeys"]).iter().all(same) && term.items_at(&["mismatchLabelKeys"]).iter().all(other)
}

/// Whether a term of pod affinity of a pod in one namespace is about pods of another one, or of the same
/// (`core/v1/types.go`, `PodAffinityTerm`).
fn reaches(state: &State, term: &Val, own: &str, ns: &str) -> bool {
    let listed = term.items_at(&["namespaces"]);
    let Some(selector) = term.at_some(&["namespaceSelector"]) else {
        return if listed.is_empty() { own == ns } else { lists_namespace(term, ns) };
    };
    // every namespace bears its name
    let labels =
        state.get(&Key::of("Namespace", "", ns)).map_or_else(|| Val::object([]), |found| found.labels().clone());
    let labels = labels.with("kubernetes.io/metadata.name", Val::str(ns));
    lists_namespace(term, ns) || Selector::from_label_selector(selector).matches(&labels)
}

/// The namespaces that a term of a pod in one namespace is about.
fn namespaces(state: &State, term: &Val, own: &Str) -> Vec<Str> {
    if term.at_some(&["namespaceSelector"]).is_none() && term.items_at(&["namespaces"]).is_empty() {
        return vec![own.clone()];
    }
    let known = state.list(&crate::kinds::Kind::new("", "Namespace"), None).into_iter().map(|ns| ns.key.name.clone());
    let listed = term.items_at(&["namespaces"]).iter().filter_map(Val::as_str).cloned();
    let all: BTreeSet<Str> = known.chain(listed).chain([own.clone()]).collect();
    all.into_iter().filter(|ns| reaches(state, term, own, ns)).collect()
}
