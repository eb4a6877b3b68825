//! Pods of other workloads that new pods keep apart from, or that keep apart from them.
//!
//! Source: `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go` (`satisfyExistingPodsAntiAffinity`,
//! `satisfyPodAntiAffinity`): required anti-affinity holds both ways. Where such a pod may go, it is not relied on, but
//! may keep a new pod pending; once all has settled, one that meets no other fate than to stay keeps its place.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::template::{Template, reaches, term};
use super::{Builder, View, group, group_name};
use crate::futures::{FateKind, Moment};
use crate::navigate::anti_affinity;
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::value::Str;

/// A pod that keeps new pods of a template off its domain.
pub(super) struct Repelling<'s> {
    pub(super) pod: &'s Arc<Object>,
    pub(super) topology: Str,
    /// Whether it is certain that the new pods are meant.
    pub(super) certain: bool,
}

/// The pods, of any namespace, whose required anti-affinity may mean pods of this template in a namespace.
pub(super) fn repelling<'s>(scenario: &'s Scenario<'_>, ns: &str, own: &Template) -> Vec<Repelling<'s>> {
    let mut found = Vec::new();
    // equals stand together
    let mut last: Option<(&Arc<Object>, Terms)> = None;
    for pod in scenario.state.keeping_apart(ns).into_iter().filter(|pod| !pod.node.is_empty() && !pod.finished()) {
        let known = last.take().filter(|(equal, _)| equal.key.ns == pod.key.ns && Arc::ptr_eq(&equal.body, &pod.body));
        let terms = known.map_or_else(|| against(pod, ns, own), |(_, terms)| terms);
        found.extend(terms.iter().map(|(topology, certain)| Repelling {
            pod,
            topology: topology.clone(),
            certain: *certain,
        }));
        last = Some((pod, terms));
    }
    found
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
#[derive(Default)]
pub(super) struct Staying(RefCell<BTreeMap<Key, BTreeSet<Key>>>);

impl Staying {
    /// Whether this one does, once all has settled.
    pub(super) fn has(&self, builder: &Builder<'_, '_>, pod: &Object) -> bool {
        if !builder.group.settled {
            return false;
        }
        let name = group_name(builder.state(), pod);
        let mut known = self.0.borrow_mut();
        let stay = known.entry(name.clone()).or_insert_with(|| {
            // what becomes of those that exist does not depend on where new ones go
            let view = View { moment: Moment::After, coarse: true, ..View::default() };
            let entities = group(builder.scenario, &name, &view).entities.into_iter();
            let stays = entities.filter(|entity| entity.fates.iter().all(|fate| fate.kind == FateKind::Stays));
            stays.filter_map(|entity| entity.key().cloned()).collect()
        });
        stay.contains(&pod.key)
    }
}
