//! Whom the new pods of one workload preempt where they find no place.
//!
//! Source: `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go` (`SelectVictimsOnNode`: all pods of lower
//! priority go, and as many are kept as can be, the most important ones first, those of exhausted budgets before all) and
//! `pkg/scheduler/framework/preemption/preemption.go` (`pickOneNodeForPreemption`). Over-approximations: which of nodes that
//! rank alike is chosen is left open; so it is where there are more candidates than the scheduler compares; that a pod is
//! preempted is not taken to bring it back elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::{Asked, Wants, alike, pods_of, template, wants};
use super::board::{Board, Filling};
use super::cluster::{Cluster, room_beside};
use super::priority::{of_pod, of_spec, outranks_any};
use super::rules::Asks;
use super::too_hard::TooHard;
use super::unplaced::{Full, short_of};
use crate::controllers::deployment::max_surge;
use crate::effects::scheduling::template::Template;
use crate::fields;
use crate::kinds::Kind;
use crate::navigate;
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::state::State;
use crate::steps;
use crate::value::Str;

/// How many pods are followed that preempt others.
const STEPS_MAX: i64 = 64;
/// The fewest candidates that the scheduler compares (`minCandidateNodesAbsolute`), and which share of the nodes.
const CANDIDATES: usize = 100;

/// What one new pod may make go: one of these sets of pods.
pub type Choice<'s> = Vec<Vec<&'s Arc<Object>>>;

/// Whom the new pods of a workload may preempt, one choice for each of them that preempts somebody.
///
/// # Errors
/// When it was not found within the budget which of them find a place.
pub fn victims<'s>(state: &'s State<'_>, workload: &Object) -> Result<Vec<Choice<'s>>, TooHard> {
    if !navigate::pod_spec(state, workload).is_some_and(|spec| outranks_any(state, &spec)) {
        return Ok(Vec::new());
    }
    let cluster = Cluster::new(state, BTreeSet::new());
    let wanted = navigate::wanted_replicas(state, workload).unwrap_or(0);
    let mut worst = preempting(&cluster, workload, &wants(&cluster, workload, wanted))?;
    if let Some(surge) = surging(&cluster, workload, wanted) {
        let beside = preempting(&cluster, workload, &surge)?;
        if beside.len() > worst.len() {
            worst = beside;
        }
    }
    Ok(worst)
}

/// The pods that a rollout which is not done makes beside the old ones.
fn surging(cluster: &Cluster<'_, '_>, workload: &Object, wanted: i64) -> Option<Wants> {
    let state = cluster.state;
    let is_old = |pod: &&&Arc<Object>| {
        navigate::controller_of(state, pod).is_some_and(|set| !fields::same_template(set, workload))
    };
    let rolls = workload.key.kind.is("Deployment")
        && pods_of(state, workload).iter().filter(|pod| cluster.stays(pod)).any(|pod| is_old(&pod));
    let surge = if rolls { max_surge(workload, wanted) } else { 0 };
    let own = template(state, workload).filter(|_| surge > 0)?;
    Some(Wants { new: vec![alike(state, workload, &own, None, surge)], ..Wants::default() })
}

/// The choices of those of some pods that find no place.
fn preempting<'s>(cluster: &Cluster<'s, '_>, workload: &Object, wants: &Wants) -> Result<Vec<Choice<'s>>, TooHard> {
    let Some(Full { board, filling, short }) = short_of(cluster, workload, wants, None)? else {
        return Ok(Vec::new());
    };
    if short > STEPS_MAX {
        return Err(TooHard);
    }
    let mut scene = Scene::of(cluster, workload, wants, board, filling);
    let mut found = Vec::new();
    for _ in 0..short {
        steps::check().map_err(|_| TooHard)?;
        if scene.settle() {
            continue;
        }
        let best = scene.best();
        let Some(first) = best.first() else { break };
        scene.take(first);
        found.push(best.into_iter().map(|candidate| candidate.victims).collect());
    }
    Ok(found)
}

/// A node on which pods would go.
struct Candidate<'s> {
    node: Str,
    victims: Vec<&'s Arc<Object>>,
    rank: (usize, i64, i128, usize),
}

/// The cluster as it is once some pods were preempted.
struct Scene<'s, 'c, 'a> {
    cluster: &'c Cluster<'s, 'a>,
    wants: &'c Wants,
    board: Board,
    filling: Filling,
    priority: i64,
    budgets: Vec<(Selector, Str, i64)>,
    preempted: BTreeSet<Key>,
    /// How many of the new pods are on each node.
    added: BTreeMap<Str, i64>,
}

impl<'s, 'c, 'a> Scene<'s, 'c, 'a> {
    fn of(cluster: &'c Cluster<'s, 'a>, workload: &Object, wants: &'c Wants, board: Board, filling: Filling) -> Self {
        let state = cluster.state;
        let spec = navigate::pod_spec(state, workload).unwrap_or_default();
        let budgets = state.list(&Kind::new("policy", "PodDisruptionBudget"), None).into_iter();
        let budgets = budgets.filter(|budget| budget.live()).filter_map(|budget| {
            let allowed = budget.val().int_at(&["status", "disruptionsAllowed"]).unwrap_or(0);
            Some((navigate::selector_of(state, budget)?, budget.key.ns.clone(), allowed))
        });
        let placed = board.spots.iter().zip(&filling.placed).filter(|(_, placed)| **placed > 0);
        let added = placed.map(|(spot, placed)| (spot.name.clone(), *placed)).collect();
        let budgets = budgets.collect();
        let priority = of_spec(state, &spec).value;
        Self { cluster, wants, board, filling, priority, budgets, preempted: BTreeSet::new(), added }
    }

    /// Places one more pod where those that have gone made room; whether there is such a node.
    fn settle(&mut self) -> bool {
        let has_room = |node: &&Arc<Object>| {
            let name = &node.key.name;
            let added = self.added.get(name).copied().unwrap_or(0);
            let own = self.kind_for(node, added);
            let others = self.others(name);
            !self.preempted.is_empty()
                && own.is_some_and(|own| room_beside(node, own, added + 1, &others) > added)
                && self.rules_allow(name, &[])
        };
        let Some(node) = self.cluster.nodes().into_iter().find(has_room) else { return false };
        self.take(&Candidate { node: node.key.name.clone(), victims: Vec::new(), rank: (0, 0, 0, 0) });
        true
    }

    /// The template of new pods that a node may have, of which there are so many on it.
    fn kind_for(&self, node: &Object, added: i64) -> Option<&'c Template> {
        let is_open = |only: Option<&Str>| only.is_none() || added == 0;
        let fits = |asked: &&Asked| asked.rejects(node).is_none() && is_open(asked.only.as_ref());
        self.wants.new.iter().find(fits).map(|asked| &asked.template)
    }

    /// The pods that stay on a node so far.
    fn others(&self, node: &Str) -> Vec<&'s Arc<Object>> {
        let mut there = self.cluster.staying_on(node);
        there.retain(|pod| !self.wants.leaving.contains(&pod.key) && !self.preempted.contains(&pod.key));
        there
    }

    /// The nodes of which one is chosen.
    fn best(&self) -> Vec<Candidate<'s>> {
        let nodes = self.cluster.nodes();
        let mut found: Vec<Candidate<'s>> = nodes.iter().filter_map(|node| self.candidate(node)).collect();
        if found.len() <= CANDIDATES.max(nodes.len() / 10) {
            let best = found.iter().map(|candidate| candidate.rank).min();
            found.retain(|candidate| Some(candidate.rank) == best);
        }
        found
    }

    /// Whom one more pod would make go on a node.
    fn candidate(&self, node: &Object) -> Option<Candidate<'s>> {
        let name = &node.key.name;
        let added = self.added.get(name).copied().unwrap_or(0);
        let own = self.kind_for(node, added)?;
        let there = self.others(name);
        let rank = |pod: &Object| of_pod(self.cluster.state, pod);
        let (lower, mut kept): (Vec<_>, Vec<_>) = there.into_iter().partition(|pod| rank(pod) < self.priority);
        let has_room = |others: &[&'s Arc<Object>]| room_beside(node, own, added + 1, others) > added;
        if lower.is_empty() || !has_room(&kept) || !self.rules_allow(name, &lower) {
            return None;
        }
        let mut lower: Vec<(bool, i64, &'s Arc<Object>)> =
            self.exhausting(&lower).into_iter().map(|(pod, exhausts)| (exhausts, rank(pod), pod)).collect();
        lower.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.key.cmp(&b.2.key)));
        let mut going = Vec::new();
        for (exhausts, rank, pod) in lower {
            kept.push(pod);
            if !has_room(&kept) {
                kept.pop();
                going.push((exhausts, rank, pod));
            }
        }
        let highest = going.iter().map(|(_, rank, _)| *rank).max()?;
        let sum = going.iter().map(|(_, rank, _)| i128::from(*rank) + (1 << 31)).sum();
        let exhausted = going.iter().filter(|(exhausts, ..)| *exhausts).count();
        let rank = (exhausted, highest, sum, going.len());
        Some(Candidate { node: name.clone(), victims: going.into_iter().map(|(.., pod)| pod).collect(), rank })
    }

    /// Whether affinity, anti-affinity and spreading would let a pod onto a node without these pods on it.
    fn rules_allow(&self, name: &Str, without: &[&Arc<Object>]) -> bool {
        let Some(spot) = self.board.spots.iter().find(|spot| spot.name == *name) else {
            // pods that keep off may be among those that go
            return true;
        };
        self.board.rules.iter().zip(&self.filling.counts).zip(&spot.domains).all(|((rule, counts), domain)| {
            let going = without.iter().filter(|pod| rule.pods.contains(&pod.key)).count();
            let mut counts = counts.clone();
            if let Some(count) = domain.and_then(|domain| counts.get_mut(domain)) {
                *count -= i64::try_from(going).unwrap_or(0);
            }
            let here = domain.and_then(|domain| counts.get(domain).copied());
            rule.asks == Asks::Together || rule.allows(here, rule.least(&counts))
        })
    }

    /// Each pod with whether its going exceeds what a budget allows.
    fn exhausting(&self, pods: &[&'s Arc<Object>]) -> Vec<(&'s Arc<Object>, bool)> {
        let mut left: Vec<i64> = self.budgets.iter().map(|(.., allowed)| *allowed).collect();
        let mut found = Vec::new();
        for pod in pods {
            let mut exhausts = false;
            for ((selector, ns, _), left) in self.budgets.iter().zip(&mut left) {
                if *ns == pod.key.ns && selector.matches(pod.labels()) {
                    *left -= 1;
                    exhausts |= *left < 0;
                }
            }
            found.push((*pod, exhausts));
        }
        found
    }

    /// One more pod is on a node, and these are gone.
    fn take(&mut self, candidate: &Candidate<'s>) {
        self.preempted.extend(candidate.victims.iter().map(|pod| pod.key.clone()));
        *self.added.entry(candidate.node.clone()).or_default() += 1;
        if let Some(at) = self.board.spots.iter().position(|spot| spot.name == candidate.node) {
            self.board.put(&mut self.filling, at, 1);
        }
    }
}
