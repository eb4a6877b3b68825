//! PodTopologySpread: pods that are to be alike in number over domains.
//!
//! Source: `pkg/scheduler/framework/plugins/podtopologyspread`. Over-approximation: a spread constraint counts pods that have
//! gone since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::constraint::{Around, Constraint, Differences, Fit, NodeView, Placing, Waiting};
use super::room::Room;
use super::template::Template;
use super::term::Term;
use super::topology::domain;
use crate::controllers::deployment::most_pods;
use crate::controllers::replicas::replicas;
use crate::effects::desired::desired_replicas;
use crate::effects::linear::{STAY, always, at_least, at_most, count, placed_at};
use crate::fields::HOSTNAME;
use crate::fields::{SCHEDULING, node_constraint, tolerates};
use crate::futures::{Count, LimitLabel, Linear, SetId};
use crate::kinds::{Kind, KindTraits};
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::selector::{Selector, node_matches};
use crate::steps;
use crate::value::Str;

/// Beyond so many places, nodes are not compared one by one for a spread constraint over single nodes; [`most_on_a_node`] is
/// relied on alone.
pub const SPREAD_DOMAINS_MAX: usize = 32;

/// The plugin.
pub struct PodTopologySpread;

impl Constraint for PodTopologySpread {
    fn filter(&self, _: &Template, _: &NodeView<'_>) -> Fit {
        Fit::Takes(Room::default())
    }

    fn distinguishes<'t>(&self, around: &Around<'t, '_>, found: &mut Differences<'t>) {
        for (term, _) in around.templates.iter().flat_map(spreads) {
            found.topologies.insert(term.topology.clone());
            found.selectors.push(&term.selector);
        }
    }

    fn limits(&self, placing: &mut Placing<'_, '_, '_>) {
        let alike = Alike::of(placing);
        for (term, skew) in spreads(placing.own) {
            limit(placing, &alike, term, skew);
        }
    }

    /// A domain that has too many pods is closed: `limits` says which.
    fn may_block(&self, _: &Waiting<'_, '_, '_>) -> bool {
        false
    }

    fn is_sure(&self, own: &Template, _: &Object, _: &[&Arc<Object>]) -> bool {
        spreads(own).next().is_none()
    }
}

/// Whether a spread constraint of a template is over single nodes: it counts pods on each.
pub fn is_by_node(own: &Template) -> bool {
    spreads(own).any(|(term, _)| &*term.topology == HOSTNAME)
}

/// The spread constraints of a template that may not be ignored, each with the largest difference that it allows.
fn spreads(own: &Template) -> impl Iterator<Item = (&Term, i64)> {
    own.terms.iter().filter_map(|term| Some((term, term.max_skew?)))
}

/// The most new pods of a template that come to one node by its spread constraints over nodes; `None` where none of them says.
pub fn most_on_a_node(scenario: &Scenario<'_>, ns: &str, own: &Template) -> Option<i64> {
    spreads(own).filter_map(|(term, skew)| share_of_a_node(scenario, ns, own, term, skew)).min()
}

/// The most pods that a spread constraint over nodes means on one of them when the last new one of a template has come there.
///
/// All others were there then, and the emptiest domain that counts had no more than an equal share of all that it meant
/// (`filtering.go`, `Filter`: `matchNum + selfMatchNum - minMatchNum > maxSkew`).
fn share_of_a_node(scenario: &Scenario<'_>, ns: &str, own: &Template, term: &Term, skew: i64) -> Option<i64> {
    if &*term.topology != HOSTNAME || !term.selector.matches(own.labels()) {
        return None;
    }
    let others = live_at_once(scenario, ns, &term.selector)?.saturating_sub(1).max(0);
    let domains = nodes_that_count(scenario, own, term, usize::try_from(others).unwrap_or(usize::MAX));
    Some(skew.saturating_add(others.checked_div(domains)?))
}

/// How many nodes count as domains of a spread constraint for certain, of which no more than one beyond `enough` are looked
/// for: those that have all labels that the pod spreads by (`common.go`, `nodeLabelsMatchSpreadConstraints`).
fn nodes_that_count(scenario: &Scenario<'_>, own: &Template, term: &Term, enough: usize) -> i64 {
    let state = &scenario.state;
    let changed: BTreeSet<&Key> = state.changed_keys(&Kind::new("", "Node")).collect();
    let mut domains: BTreeSet<Str> = BTreeSet::new();
    for node in state.admitted(own.spec()).iter().filter(|node| !changed.contains(&node.key)) {
        let counts = spreads(own).all(|(other, _)| domain(node, &other.topology).is_some())
            && (!term.heeds_taints || tolerates(own.spec(), node, SCHEDULING));
        domains.extend(counts.then(|| domain(node, HOSTNAME)).flatten());
        if domains.len() > enough {
            break;
        }
    }
    i64::try_from(domains.len()).unwrap_or(i64::MAX)
}

/// How many pods of a namespace that a selector means there may be at one time, terminating ones left aside: all that there
/// are, and all that the workloads which make such pods may want beside them. `None` where something makes them of which it
/// is not told how many it wants at most.
fn live_at_once(scenario: &Scenario<'_>, ns: &str, selector: &Selector) -> Option<i64> {
    let state = &scenario.state;
    let is_here = |key: &&Key| *key.ns == *ns;
    let runs = |kind: &Kind| state.list(kind, Some(ns)).into_iter().any(|custom| state.adapter(custom).is_some());
    if state.base().adapters().kinds().iter().any(runs) {
        return None;
    }
    let changed_pods = state.changed_keys(&Kind::new("", "Pod")).filter(is_here).count();
    let pods = state.pods_matching(ns, selector).len().saturating_add(changed_pods);
    let kinds: Vec<Kind> = Kind::with(|traits| traits.controller().is_some()).collect();
    let mut makers: BTreeSet<&Key> = state.making(&kinds, ns, selector).into_iter().map(|maker| &maker.key).collect();
    makers.extend(kinds.iter().flat_map(|kind| state.changed_keys(kind)).filter(is_here));
    let wanted = |key: &Key| {
        let versions = state.get(key).into_iter().chain(state.base().get(key));
        let by_version = versions.map(|maker| {
            let own = replicas(maker);
            most_pods(maker, desired_replicas(scenario, maker, own).map_or(own, |range| range.most.max(own)))
        });
        key.kind
            .has(KindTraits::has_scale)
            .then(|| by_version.chain(scenario.most_wanted.get(key).copied()).max().unwrap_or(0))
    };
    let wanted: Option<Vec<i64>> = makers.into_iter().map(wanted).collect();
    let pods = i64::try_from(pods).unwrap_or(i64::MAX);
    Some(wanted?.into_iter().fold(pods, i64::saturating_add))
}

/// The pods of one domain that a spread constraint means.
struct Held {
    /// Those of the group.
    existing: Option<SetId>,
    /// How many of these may be of the new pods' revision.
    present: i64,
    /// How many others there are.
    outside: i64,
}

/// A spread constraint over the domains of the places.
struct Spread<'t> {
    term: &'t Term,
    skew: i64,
    domains: BTreeMap<Str, Vec<usize>>,
    held: BTreeMap<Str, Held>,
    /// The domains that count.
    eligible: BTreeSet<Str>,
    /// New pods that it means.
    others: Vec<SetId>,
    /// New pods that have it and count the same domains.
    equals: Vec<SetId>,
}

/// A spread constraint that may not be ignored: when the last new pod came into a domain, no other domain had fewer
/// than `max_skew` less; what has gone since only makes the bound looser. All of them together held no more pods then than
/// there are at one time, which bounds it again: where pods come one for one, each comes to a domain that lacks it.
///
/// Other domains count if they have a node that the pod's node selector and affinity admit, pods that are being deleted do
/// not, and a node without the label takes none (`filtering.go`, `calPreFilterState`; `common.go`,
/// `countPodsMatchSelector`). With `matchLabelKeys`, pods of other revisions are not counted.
fn limit(placing: &mut Placing<'_, '_, '_>, alike: &Alike, term: &Term, skew: i64) {
    let topology = placing.topology;
    let domains = topology.domains(&term.topology);
    let by_node = term.topology.as_ref() == HOSTNAME;
    let too_many = by_node && (topology.nodes.len() > SPREAD_DOMAINS_MAX || topology.sizes.iter().any(|s| *s > 1));
    let is_told = term.selector.matches(placing.own.labels()) && !too_many;
    // nodes that are no place may be domains as well, and never get a pod
    let is_open = !is_told || !term.heeds_selection;
    let labelled: BTreeSet<usize> = domains.values().flatten().copied().collect();
    for place in (0..topology.nodes.len()).filter(|place| is_open || !labelled.contains(place)) {
        placing.block(&[place], &always());
    }
    if is_told {
        Spread::of(placing, alike, term, skew, domains).write(placing);
    } else if let Some(most) = share_of_a_node(placing.builder.scenario, &placing.maker.ns, placing.own, term, skew) {
        Spread::of(placing, alike, term, skew, domains).share(placing, most);
    }
}

/// The templates of new pods that are placed as these are, as far as their own constraints say.
struct Alike {
    /// Those with equal terms for equal nodes.
    terms: BTreeSet<usize>,
    /// Those that tolerate the same besides.
    tolerations: BTreeSet<usize>,
}

impl Alike {
    /// Compared once for all constraints of a template, which may be many.
    fn of(placing: &Placing<'_, '_, '_>) -> Self {
        let own = placing.own;
        let templates = || placing.builder.templates.iter().enumerate();
        steps::count_items(own.terms.len().saturating_mul(placing.builder.templates.len()));
        let constraint = node_constraint(own.spec());
        let is_same = |of: &Template| of.terms == own.terms && node_constraint(of.spec()) == constraint;
        let terms = templates().filter(|(_, of)| is_same(of)).map(|(at, _)| at).collect();
        let tolerated = own.spec().get("tolerations");
        let tolerations = templates().filter(|(_, of)| of.spec().get("tolerations") == tolerated);
        Self { terms, tolerations: tolerations.map(|(at, _)| at).collect() }
    }

    /// Whether a spread constraint means pods of a template, and counts the same domains for it.
    fn counts(&self, at: usize, of: &Template, term: &Term) -> bool {
        self.terms.contains(&at)
            && term.selector.matches(of.labels())
            && (!term.heeds_taints || self.tolerations.contains(&at))
    }
}

impl<'t> Spread<'t> {
    fn of(
        placing: &mut Placing<'_, '_, '_>,
        alike: &Alike,
        term: &'t Term,
        skew: i64,
        domains: BTreeMap<Str, Vec<usize>>,
    ) -> Self {
        let (own, topology) = (placing.own, placing.topology);
        steps::count_items(1 + topology.nodes.len());
        let others = placing.selected_new(&term.selector);
        // pods that have no such constraint may come at any time
        let bound = |at: &usize| {
            let template = placing.builder.templates.get(*at);
            template.is_some_and(|t| if term.by_revision { t.val == own.val } else { alike.counts(*at, t, term) })
        };
        let equals: Vec<SetId> = placing.asked.iter().filter(|(_, _, at)| bound(at)).map(|(_, set, _)| *set).collect();
        let is_eligible = |at: &usize| {
            topology.nodes.get(*at).is_some_and(|node| {
                node_matches(own.spec(), node) && (!term.heeds_taints || tolerates(own.spec(), node, SCHEDULING))
            })
        };
        let eligible = domains.iter().filter(|(_, places)| places.iter().any(is_eligible));
        let eligible = eligible.map(|(value, _)| value.clone()).collect();
        let means = |pod: &Object| !pod.terminating() && term.selector.matches(pod.labels());
        let mut held: BTreeMap<Str, Held> = BTreeMap::new();
        for value in domains.keys() {
            let found = topology.existing_in(&term.topology, value, means);
            let may_share = |pod: &Object| means(pod) && term.may_share(own.labels(), pod);
            let sharing = topology.existing_in(&term.topology, value, may_share);
            let outside = placing.foreign_pods_in(&term.topology, value, &term.selector).len();
            let here = Held {
                existing: placing.builder.gather(&found),
                present: i64::try_from(sharing.len()).unwrap_or(i64::MAX),
                outside: i64::try_from(outside).unwrap_or(i64::MAX),
            };
            held.insert(value.clone(), here);
        }
        Self { term, skew, domains, held, eligible, others, equals }
    }

    /// New pods of these sets in a domain.
    fn new_in<'s>(&self, sets: &'s [SetId], places: &'s [usize]) -> impl Iterator<Item = Count> + use<'s> {
        sets.iter().map(|set| placed_at(*set, places))
    }

    /// What the last new pod that came to these places found there, and itself.
    fn last(&self, held: &Held, places: &[usize]) -> Vec<Count> {
        let kept = held.existing.filter(|_| !self.term.by_revision).map(|s| count(s, &STAY));
        self.new_in(&self.equals, places).chain(kept).collect()
    }

    fn label(&self, placing: &Placing<'_, '_, '_>) -> LimitLabel {
        let (workload, topology) = (placing.maker.clone(), self.term.topology.clone());
        LimitLabel::Spread { workload, topology, max_skew: self.skew }
    }

    /// No node that gets new pods has more than `most` then, whatever the others have.
    fn share(&self, placing: &mut Placing<'_, '_, '_>, most: i64) {
        for (here, places) in &self.domains {
            let Some(held) = self.held.get(here) else { continue };
            let size = placing.topology.size(&self.term.topology, places);
            let last = at_most(self.last(held, places), most.saturating_mul(size));
            placing.limit(self.label(placing), vec![placing.none_at(places), last]);
        }
    }

    fn write(&self, placing: &mut Placing<'_, '_, '_>) {
        let Self { term, skew, .. } = *self;
        let too_few_domains = i64::try_from(self.eligible.len()).is_ok_and(|domains| domains < term.min_domains);
        let outside: i64 = self.held.values().map(|held| held.outside).sum();
        let max_live_pods = placing.builder.max_live_pods.filter(|_| outside == 0);
        for (here, places) in &self.domains {
            let Some(held) = self.held.get(here) else { continue };
            let last = self.last(held, places);
            let elsewhere = self.eligible.iter().filter(|value| **value != *here).count();
            let in_here = self.new_in(&self.others, places).chain(held.existing.map(|s| count(s, &STAY)));
            let in_here: Vec<Count> = in_here.collect();
            if too_few_domains {
                // one more pod here would exceed the skew against none: here >= skew
                placing.block(places, &at_least(in_here.clone(), skew - held.outside));
            }
            if let (Some(max_live_pods), Ok(elsewhere @ 1..)) = (max_live_pods, i64::try_from(elsewhere)) {
                // each of the others held at least `last - skew` then
                let terms = last.iter().map(|c| (elsewhere + 1, c.clone())).collect();
                let at_most = max_live_pods.saturating_add(elsewhere.saturating_mul(skew));
                placing.limit(self.label(placing), vec![placing.none_at(places), Linear { terms, at_most }]);
            }
            for (there, others) in self.domains.iter().filter(|(value, _)| *value != here) {
                let Some(held_there) = self.held.get(there) else { continue };
                if self.eligible.contains(there) {
                    let mut terms: Vec<(i64, Count)> = last.iter().map(|c| (1, c.clone())).collect();
                    terms.extend(self.new_in(&self.others, others).map(|c| (-1, c)));
                    let at_most = skew.saturating_add(held_there.present).saturating_add(held_there.outside);
                    placing.limit(self.label(placing), vec![placing.none_at(places), Linear { terms, at_most }]);
                }
                // one more pod here would exceed the skew: here - there >= skew
                let mut fuller: Vec<(i64, Count)> = in_here.iter().map(|c| (-1, c.clone())).collect();
                fuller.extend(self.new_in(&self.others, others).map(|c| (1, c)));
                fuller.extend(held_there.existing.filter(|_| !term.by_revision).map(|s| (1, count(s, &STAY))));
                placing.block(places, &Linear { terms: fuller, at_most: held.outside - skew });
            }
        }
    }
}

#[cfg(test)]
mod tests;
