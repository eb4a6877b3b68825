//! InterPodAffinity: pods that keep apart, and pods that want to be together.
//!
//! Source: `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go` (`satisfyPodAntiAffinity`,
//! `satisfyExistingPodsAntiAffinity`): required anti-affinity holds both ways. Over-approximations: that pods of other
//! workloads keep apart is not relied on until all has settled, but may keep a pod pending; required pod affinity may always
//! leave a pod pending.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::constraint::{Around, Constraint, Differences, Fit, NodeView, Placing, Waiting};
use super::foreign_pods::{foreign_anti_affinity, keep_out};
use super::room::Room;
use super::template::Template;
use super::term::{Term, reaches_others, term};
use crate::effects::linear::{STAY, at_least, at_most, count, placed_at};
use crate::fields::{HOSTNAME, anti_affinity};
use crate::futures::{Count, FateKind, LimitLabel};
use crate::object::Object;
use crate::value::{Str, Val};

/// What new pods require of others.
pub struct InterPodAffinity;

/// What existing pods require of new ones.
pub struct ExistingPodsAntiAffinity;

impl Constraint for InterPodAffinity {
    fn filter(&self, _: &Template, _: &NodeView<'_>) -> Fit {
        Fit::Takes(Room::default())
    }

    fn distinguishes<'t>(&self, around: &Around<'t, '_>, found: &mut Differences<'t>) {
        for term in around.templates.iter().flat_map(own_terms) {
            found.topologies.insert(term.topology.clone());
            found.selectors.push(&term.selector);
        }
    }

    fn limits(&self, placing: &mut Placing<'_, '_, '_>) {
        for term in own_terms(placing.own) {
            apart(placing, term);
        }
    }

    fn may_block(&self, waiting: &Waiting<'_, '_, '_>) -> bool {
        let (own, ns) = (waiting.own, &*waiting.maker.ns);
        let wants_company = !own.affinity("podAffinity").is_empty();
        let terms = own.affinity("podAntiAffinity");
        let beyond = terms.iter().filter(|t| reaches_others(t, ns));
        wants_company
            || terms.iter().any(|t| term(t, ns, None).is_none())
            || keep_out(waiting.scenario, waiting.maker, beyond)
    }

    fn is_sure(&self, own: &Template, _: &Object, _: &[&Arc<Object>]) -> bool {
        own.affinity("podAffinity").is_empty() && own.affinity("podAntiAffinity").is_empty()
    }
}

/// The terms of required anti-affinity.
fn own_terms(own: &Template) -> impl Iterator<Item = &Term> {
    own.terms.iter().filter(|term| term.max_skew.is_none())
}

/// The term by which no node takes two pods of a template: they keep apart by hostname.
pub fn alone_on_its_node(own: &Template) -> Option<&Term> {
    own_terms(own).find(|term| &*term.topology == HOSTNAME && term.selector.matches(own.labels()))
}

/// What one term of required anti-affinity of the new pods' own limits.
fn apart(placing: &mut Placing<'_, '_, '_>, term: &Term) {
    let (own, set, topology) = (placing.own, placing.set, placing.topology);
    let workload = placing.maker.clone();
    let label = || LimitLabel::AntiAffinity { workload: workload.clone(), topology: term.topology.clone() };
    let others = placing.selected_new(&term.selector);
    let own_kind = term.selector.matches(own.labels());
    for (value, places) in topology.domains(&term.topology) {
        let size = topology.size(&term.topology, &places);
        let here: Vec<Count> = others.iter().map(|s| placed_at(*s, &places)).collect();
        if own_kind {
            // new pods of other templates are kept apart from these only, and where there are any
            let mut any_of = Vec::new();
            if others != [set] {
                any_of.push(placing.none_at(&places));
            }
            any_of.push(at_most(here.clone(), size));
            placing.limit(label(), any_of);
        } else {
            for other in &here {
                placing.limit(label(), vec![placing.none_at(&places), at_most(vec![other.clone()], 0)]);
            }
        }
        let means = |pod: &Object| term.selector.matches(pod.labels());
        let found = topology.existing_in(&term.topology, &value, means);
        let mut blocking = here;
        if let Some(existing) = placing.builder.gather(&found) {
            blocking.push(count(existing, &STAY));
            blocking.push(count(existing, &[FateKind::Terminating]));
            if !term.by_revision {
                let none = placing.none_at(&places);
                placing.limit(label(), vec![none, at_most(vec![count(existing, &STAY)], 0)]);
            }
        }
        let foreign = placing.foreign_pods_in(&term.topology, &value, &term.selector);
        if foreign.is_empty() {
            placing.block(&places, &at_least(blocking, size));
        } else {
            let keeps = !term.by_revision && foreign.iter().any(|pod| placing.stays(pod));
            placing.keep_off(&term.topology, &places, keeps);
        }
    }
}

impl Constraint for ExistingPodsAntiAffinity {
    fn filter(&self, _: &Template, _: &NodeView<'_>) -> Fit {
        Fit::Takes(Room::default())
    }

    fn distinguishes<'t>(&self, around: &Around<'t, '_>, found: &mut Differences<'t>) {
        let presence = &around.demand.anti_affinity;
        found.topologies.extend(presence.topologies.iter().cloned());
        found.alone.extend(presence.nodes.iter().cloned());
        for own in around.templates {
            for foreign in foreign_anti_affinity(around.survivals, around.ns, own, around.demand.quiescent) {
                found.alone.insert(foreign.pod.node.clone());
                found.topologies.insert(foreign.topology);
            }
        }
    }

    fn limits(&self, placing: &mut Placing<'_, '_, '_>) {
        // the kubelet looks at no other pods
        if placing.own.pinned().is_none() {
            of_the_group(placing);
            of_others(placing);
        }
    }

    /// Pods that are there close places, and `limits` says which.
    fn may_block(&self, _: &Waiting<'_, '_, '_>) -> bool {
        false
    }

    /// That other pods keep apart from those of a DaemonSet is left aside.
    fn is_sure(&self, _: &Template, _: &Object, _: &[&Arc<Object>]) -> bool {
        true
    }
}

/// Anti-affinity of existing pods of the group against the new ones.
fn of_the_group(placing: &mut Placing<'_, '_, '_>) {
    let (own, topology) = (placing.own, placing.topology);
    let is_by = |t: &Val, ns: &str, key: &Str| {
        term(t, ns, None).is_some_and(|t| t.topology == *key && !t.by_revision && t.selector.matches(own.labels()))
    };
    let against = |pod: &Object, key: &Str| anti_affinity(pod).iter().any(|t| is_by(t, &pod.key.ns, key));
    let mut keys: BTreeSet<Str> = BTreeSet::new();
    for (_, pod) in &topology.existing {
        keys.extend(anti_affinity(pod).iter().filter_map(|t| t.str_at(&["topologyKey"]).cloned()));
    }
    for key in keys {
        for (value, places) in topology.domains(&key) {
            let found = topology.existing_in(&key, &value, |pod| against(pod, &key));
            let Some(existing) = placing.builder.gather(&found) else { continue };
            let label = LimitLabel::AntiAffinity { workload: placing.maker.clone(), topology: key.clone() };
            placing.yield_to(label, &places, existing);
        }
    }
}

/// Anti-affinity of pods of other workloads against the new ones.
fn of_others(placing: &mut Placing<'_, '_, '_>) {
    let (own, topology) = (placing.own, placing.topology);
    let (inside, quiescent) = (topology.inside(), placing.builder.group.quiescent);
    let foreign = foreign_anti_affinity(&placing.builder.survivals, &placing.builder.name.ns, own, quiescent);
    let mut by_key: BTreeMap<Str, BTreeMap<Str, Vec<usize>>> = BTreeMap::new();
    for foreign in foreign.into_iter().filter(|foreign| !inside.contains(&foreign.pod.key)) {
        let key = &foreign.topology;
        let domains = by_key.entry(key.clone()).or_insert_with(|| topology.domains(key));
        let value = topology.domain_of(placing.builder.state(), foreign.pod, key);
        let Some(places) = value.and_then(|value| domains.get(&value)) else { continue };
        let keeps = foreign.certain && placing.stays(foreign.pod);
        placing.keep_off(key, places, keeps);
    }
}
