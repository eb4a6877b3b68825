//! Pods of other workloads that new pods keep apart from, or that keep apart from them.
//!
//! Source: `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go` (`satisfyExistingPodsAntiAffinity`,
//! `satisfyPodAntiAffinity`): required anti-affinity holds both ways. Where such a pod may go, it is not relied on, but
//! may keep a new pod pending; once all has settled, one that meets no other fate than to stay keeps its place.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::template::Template;
use super::term::term;
use crate::controllers::statefulset::is_stuck;
use crate::effects::desired::desired_replicas;
use crate::effects::members::group_name;
use crate::effects::survival::{Survival, Survivals};
use crate::fields::{anti_affinity, reaches};
use crate::kinds::{Kind, KindTraits, Makes};
use crate::navigate::{self};
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::selector::Selector;
use crate::state::State;
use crate::value::{Str, Val};

/// A pod that keeps new pods of a template off its domain.
pub struct ForeignAntiAffinity<'s> {
    pub pod: &'s Arc<Object>,
    pub topology: Str,
    /// Whether it is certain that the new pods are meant.
    pub certain: bool,
}

/// The pods, of any namespace, whose required anti-affinity may mean pods of this template in a namespace; where all has
/// settled, those that are there still.
pub fn foreign_anti_affinity<'s>(
    survivals: &Survivals<'s, '_>,
    ns: &str,
    own: &Template,
    quiescent: bool,
) -> Vec<ForeignAntiAffinity<'s>> {
    let mut found = Vec::new();
    // equals stand together
    let mut last: Option<(&Arc<Object>, Terms)> = None;
    for pod in survivals.state().keeping_apart(ns).into_iter().filter(|pod| !pod.node.is_empty() && !pod.finished()) {
        let known = last.take().filter(|(equal, _)| equal.key.ns == pod.key.ns && Arc::ptr_eq(&equal.body, &pod.body));
        let terms = known.map_or_else(|| against(pod, ns, own), |(_, terms)| terms);
        let is_there = || !quiescent || !has_gone(survivals, pod);
        if !terms.is_empty() && is_there() {
            found.extend(terms.iter().map(|(topology, certain)| ForeignAntiAffinity {
                pod,
                topology: topology.clone(),
                certain: *certain,
            }));
        }
        last = Some((pod, terms));
    }
    found
}

/// Whether pods of other namespaces may keep new ones of this maker off by these terms of theirs: there are some, or makers of
/// some.
pub fn keep_out<'t>(scenario: &Scenario<'_>, maker: &Key, mut terms: impl Iterator<Item = &'t Val>) -> bool {
    let state = &scenario.state;
    let is_meant = |ns: &Str, labels: &Val, term: &Val| {
        let selector = term.get("labelSelector").map(Selector::from_label_selector);
        *ns != maker.ns && reaches(term, &maker.ns, ns) && selector.is_none_or(|selector| selector.matches(labels))
    };
    let meets = |term: &Val| {
        let pods = state.list(&Kind::new("", "Pod"), None).into_iter();
        let made = |o: &Arc<Object>| {
            navigate::template_labels(state, o).is_some_and(|labels| is_meant(&o.key.ns, &labels, term))
        };
        pods.into_iter().any(|pod| is_meant(&pod.key.ns, pod.labels(), term))
            || Kind::deciding().iter().flat_map(|kind| state.list(kind, None)).any(made)
    };
    terms.any(meets)
}

/// Whether a pod has gone once all has settled, whatever happens: a request deletes it or what it belongs to, it is being
/// deleted, or its controller wants none.
pub fn has_gone(survivals: &Survivals<'_, '_>, pod: &Object) -> bool {
    survivals.is_gone(pod, || {
        pod.finalizers().next().is_none()
            && (survivals.once_settled(pod, survivals.of(pod)) == Survival::Goes
                || is_unwanted(survivals.scenario, pod))
    })
}

/// Whether a ReplicaSet, or a Deployment above it, is scaled to 0 pods, or a StatefulSet that waits for none of its pods.
fn is_unwanted(scenario: &Scenario<'_>, pod: &Object) -> bool {
    let state = &scenario.state;
    let is_set = |o: &&Arc<Object>| {
        let controller = o.key.kind.traits().and_then(KindTraits::controller);
        controller.is_some_and(|controller| controller.has_scale && controller.makes == Makes::Pods)
    };
    let Some(set) = navigate::controller_of(state, pod).filter(is_set) else { return false };
    if set.key.kind.is("StatefulSet") && is_stuck(set) {
        return false;
    }
    let wants = match set.controller() {
        Some(_) => navigate::controller_of(state, set).filter(|above| above.key.kind.is("Deployment")),
        None => Some(set),
    };
    wants.is_some_and(|maker| {
        let paused = maker.val().bool_at(&["spec", "paused"]) == Some(true);
        maker.live()
            && !paused
            && navigate::wanted_replicas(state, maker) == Some(0)
            && desired_replicas(scenario, maker, 0).is_none()
    })
}

/// Topology keys, each with whether it is certain that it keeps pods off.
type Terms = Vec<(Str, bool)>;

/// By what a pod may keep pods of this template in a namespace off.
fn against(pod: &Object, ns: &str, own: &Template) -> Terms {
    let terms = anti_affinity(pod).iter().filter(|val| reaches(val, &pod.key.ns, ns));
    let keyed = terms.filter_map(|val| {
        let certain = match term(val, ns, None) {
            Some(term) if !term.selector.matches(own.labels()) => return None,
            Some(term) => !term.by_revision && val.at_some(&["namespaceSelector"]).is_none(),
            None => false,
        };
        Some((val.str_at(&["topologyKey"])?.clone(), certain))
    });
    keyed.collect()
}

/// Which pods of other workloads stay whatever happens, worked out workload by workload.
pub struct Staying<'f> {
    /// The pods of a workload that meet no other fate than to stay once all has settled: what becomes of those that exist
    /// does not depend on where new ones go.
    find: &'f dyn Fn(&Key) -> BTreeSet<Key>,
    known: RefCell<BTreeMap<Key, BTreeSet<Key>>>,
}

impl<'f> Staying<'f> {
    /// As `find` says of a workload.
    pub fn new(find: &'f dyn Fn(&Key) -> BTreeSet<Key>) -> Self {
        Self { find, known: RefCell::default() }
    }

    /// Whether this pod does.
    pub fn has(&self, state: &State<'_>, pod: &Object) -> bool {
        let name = group_name(state, pod);
        let mut known = self.known.borrow_mut();
        known.entry(name).or_insert_with_key(|name| (self.find)(name)).contains(&pod.key)
    }
}
