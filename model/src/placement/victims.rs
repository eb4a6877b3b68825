//! Whom the new pods of one workload preempt where they find no place.
//!
//! Source: `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go` (`SelectVictimsOnNode`: all pods of lower
//! priority go, and as many are kept as can be, the most important ones first, those of exhausted budgets before all) and
//! `pkg/scheduler/framework/preemption/preemption.go` (`pickOneNodeForPreemption`). Over-approximations: which of nodes that
//! rank alike is chosen is left open; so it is where there are more candidates than the scheduler compares; that a pod is
//! preempted is not taken to bring it back elsewhere.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::{Asked, Wants, alike, pods_of, surge, template};
use super::board::{Board, Filling};
use super::cluster::{Cluster, Limit, room_beside};
use super::priority::{of_spec, outranks_any, pod_priority};
use super::rules::Asks;
use super::too_hard::TooHard;
use super::unplaced::{Full, open, short_of};
use crate::effects::scheduling::template::Template;
use crate::kinds::Kind;
use crate::navigate;
use crate::object::{Body, Key, Object};
use crate::snapshot::Usage;
use crate::state::State;
use crate::steps;
use crate::value::Str;

/// How many pods are followed that preempt others.
const STEPS_MAX: i64 = 64;
/// The fewest candidates that the scheduler compares (`minCandidateNodesAbsolute`), and which share of the nodes.
const CANDIDATES: usize = 100;

/// Pods that go together.
pub type Victims = Arc<[Arc<Object>]>;
/// What one new pod may make go: one of these sets of pods, in the order of their nodes.
pub type Choice = Vec<Victims>;

/// Whom the new pods of a workload may preempt, one choice for each of them that preempts somebody.
///
/// # Errors
/// When it was not found within the budget which of them find a place.
pub fn victims(state: &State<'_>, workload: &Object) -> Arc<Result<Vec<Choice>, TooHard>> {
    state.once("victims", &format!("{:?}", workload.key), || find(state, workload))
}

fn find(state: &State<'_>, workload: &Object) -> Result<Vec<Choice>, TooHard> {
    if !navigate::pod_spec(state, workload).is_some_and(|spec| outranks_any(state, &spec)) {
        return Ok(Vec::new());
    }
    let cluster = Cluster::new(state, BTreeSet::new());
    let wanted = navigate::wanted_replicas(state, workload).unwrap_or(0);
    let mut worst = preempting(&cluster, workload, &open(&cluster, workload, wanted))?;
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
    let surge = surge(cluster, workload, &pods_of(state, workload), wanted);
    let own = template(state, workload).filter(|_| surge > 0)?;
    Some(Wants { new: vec![alike(state, workload, &own, None, surge)], ..Wants::default() })
}

/// The choices of those of some pods that find no place.
fn preempting(cluster: &Cluster<'_, '_>, workload: &Object, wants: &Wants) -> Result<Vec<Choice>, TooHard> {
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
        found.push(best.iter().map(|candidate| candidate.victims.clone()).collect());
    }
    Ok(found)
}

/// A node on which pods would go.
struct Candidate {
    node: Str,
    victims: Victims,
    rank: (usize, i64, i128, usize),
}

/// The cluster as it is once some pods were preempted.
struct Scene<'s, 'c, 'a> {
    cluster: &'c Cluster<'s, 'a>,
    wants: &'c Wants,
    board: Board,
    /// The places by their nodes.
    spots: BTreeMap<Str, usize>,
    filling: Filling,
    priority: i64,
    budgets: Budgets<'s, 'a>,
    preempted: BTreeSet<Key>,
    /// The nodes that pods were preempted on.
    cleared: BTreeSet<Str>,
    /// How many of the new pods are on each node.
    added: BTreeMap<Str, i64>,
    /// Whom a node would lose, where no rule looks at other nodes.
    known: BTreeMap<Str, Option<Arc<Candidate>>>,
}

impl<'s, 'c, 'a> Scene<'s, 'c, 'a> {
    fn of(cluster: &'c Cluster<'s, 'a>, workload: &Object, wants: &'c Wants, board: Board, filling: Filling) -> Self {
        let state = cluster.state;
        let spec = navigate::pod_spec(state, workload).unwrap_or_default();
        let placed = board.spots.iter().zip(&filling.placed).filter(|(_, placed)| **placed > 0);
        let added = placed.map(|(spot, placed)| (spot.name.clone(), *placed)).collect();
        let spots = board.spots.iter().enumerate().map(|(at, spot)| (spot.name.clone(), at)).collect();
        Self {
            cluster,
            wants,
            board,
            spots,
            filling,
            priority: of_spec(state, &spec).value,
            budgets: Budgets { state, of: RefCell::default() },
            preempted: BTreeSet::new(),
            cleared: BTreeSet::new(),
            added,
            known: BTreeMap::new(),
        }
    }

    /// Places one more pod where those that have gone made room; whether there is such a node.
    fn settle(&mut self) -> bool {
        if self.preempted.is_empty() {
            return false;
        }
        let has_room = |name: &&Str| {
            let Some(node) = self.cluster.node(name) else { return false };
            let added = self.added.get(*name).copied().unwrap_or(0);
            let own = self.kind_for(node, added);
            own.is_some_and(|own| room_beside(node, own, added + 1, &self.others(name)) > added)
                && self.rules_allow(name, &[])
        };
        // elsewhere there was no room, unless a rule kept a pod off
        let open = self.board.spots.iter().zip(&self.filling.placed).filter(|_| !self.board.rules.is_empty());
        let open = open.filter(|(spot, placed)| **placed < spot.room).map(|(spot, _)| &spot.name);
        let nodes: BTreeSet<&Str> = open.chain(&self.cleared).collect();
        let Some(node) = nodes.into_iter().find(has_room).cloned() else { return false };
        self.take(&Candidate { node, victims: Arc::default(), rank: (0, 0, 0, 0) });
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
        if !(self.wants.leaving.is_empty() && self.preempted.is_empty()) {
            there.retain(|pod| !self.wants.leaving.contains(&pod.key) && !self.preempted.contains(&pod.key));
        }
        there
    }

    /// The nodes of which one is chosen.
    fn best(&mut self) -> Vec<Arc<Candidate>> {
        let nodes = self.cluster.nodes();
        let mut found: Vec<Arc<Candidate>> = nodes.iter().filter_map(|node| self.candidate(node)).collect();
        if found.len() <= CANDIDATES.max(nodes.len() / 10) {
            let best = found.iter().map(|candidate| candidate.rank).min();
            found.retain(|candidate| Some(candidate.rank) == best);
        }
        found
    }

    /// Whom one more pod would make go on a node.
    fn candidate(&mut self, node: &Object) -> Option<Arc<Candidate>> {
        if !self.board.rules.is_empty() {
            return self.look(node).map(Arc::new);
        }
        if let Some(known) = self.known.get(&node.key.name) {
            return known.clone();
        }
        let found = self.look(node).map(Arc::new);
        self.known.insert(node.key.name.clone(), found.clone());
        found
    }

    fn look(&self, node: &Object) -> Option<Candidate> {
        let name = &node.key.name;
        let added = self.added.get(name).copied().unwrap_or(0);
        let own = self.kind_for(node, added)?;
        let rank = |pod: &Object| pod_priority(self.cluster.state, pod);
        let (lower, kept): (Vec<_>, Vec<_>) = self.others(name).into_iter().partition(|pod| rank(pod) < self.priority);
        let mut beside = Beside::of(node, own, added + 1, kept);
        if lower.is_empty() || !beside.has_room() || !self.rules_allow(name, &lower) {
            return None;
        }
        let mut lower: Vec<(bool, i64, &'s Arc<Object>)> =
            self.budgets.exhausting(&lower).into_iter().map(|(pod, exhausts)| (exhausts, rank(pod), pod)).collect();
        lower.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.key.cmp(&b.2.key)));
        let mut going = Vec::new();
        for (exhausts, rank, pod) in lower {
            if !beside.keeps(pod) {
                going.push((exhausts, rank, pod));
            }
        }
        let highest = going.iter().map(|(_, rank, _)| *rank).max()?;
        let sum = going.iter().map(|(_, rank, _)| i128::from(*rank) + (1 << 31)).sum();
        let exhausted = going.iter().filter(|(exhausts, ..)| *exhausts).count();
        let rank = (exhausted, highest, sum, going.len());
        Some(Candidate { node: name.clone(), victims: going.into_iter().map(|(.., pod)| pod.clone()).collect(), rank })
    }

    /// Whether affinity, anti-affinity and spreading would let a pod onto a node without these pods on it.
    fn rules_allow(&self, name: &Str, without: &[&Arc<Object>]) -> bool {
        let Some(spot) = self.spots.get(name).and_then(|at| self.board.spots.get(*at)) else {
            // pods that keep off may be among those that go
            return true;
        };
        let counted = self.filling.counts.iter().zip(&self.filling.least);
        self.board.rules.iter().zip(counted).zip(&spot.domains).all(|((rule, (counts, least)), domain)| {
            let going = without.iter().filter(|pod| rule.pods.contains(&pod.key)).count();
            let here = domain.and_then(|domain| counts.get(domain).copied());
            if rule.asks == Asks::Together {
                return true;
            }
            if going == 0 {
                return rule.allows(here, *least);
            }
            let mut counts = counts.clone();
            if let Some(count) = domain.and_then(|domain| counts.get_mut(domain)) {
                *count -= i64::try_from(going).unwrap_or(0);
            }
            let here = domain.and_then(|domain| counts.get(domain).copied());
            rule.allows(here, rule.least(&counts))
        })
    }

    /// One more pod is on a node, and these are gone.
    fn take(&mut self, candidate: &Candidate) {
        self.preempted.extend(candidate.victims.iter().map(|pod| pod.key.clone()));
        if !candidate.victims.is_empty() {
            self.cleared.insert(candidate.node.clone());
        }
        self.known.remove(&candidate.node);
        *self.added.entry(candidate.node.clone()).or_default() += 1;
        if let Some(at) = self.spots.get(&candidate.node) {
            self.board.put(&mut self.filling, *at, 1);
        }
    }
}

/// Pods of one body in a namespace.
type Alike = (Str, *const Body);

/// What disruption budgets allow.
struct Budgets<'s, 'a> {
    state: &'s State<'a>,
    /// Those over pods that are alike.
    of: RefCell<BTreeMap<Alike, Vec<&'s Arc<Object>>>>,
}

impl<'s> Budgets<'s, '_> {
    /// The live budgets over a pod.
    fn over(&self, pod: &Object) -> Vec<&'s Arc<Object>> {
        let alike = (pod.key.ns.clone(), Arc::as_ptr(&pod.body));
        if let Some(known) = self.of.borrow().get(&alike) {
            return known.clone();
        }
        let mut found = self.state.selecting(&Kind::new("policy", "PodDisruptionBudget"), &pod.key.ns, pod.labels());
        found.retain(|budget| {
            let selector = || navigate::selector_of(self.state, budget);
            budget.live() && selector().is_some_and(|selector| selector.matches(pod.labels()))
        });
        self.of.borrow_mut().insert(alike, found.clone());
        found
    }

    /// Each pod with whether its going exceeds what a budget allows.
    fn exhausting(&self, pods: &[&'s Arc<Object>]) -> Vec<(&'s Arc<Object>, bool)> {
        let mut left: BTreeMap<&Key, i64> = BTreeMap::new();
        let mut found = Vec::new();
        for pod in pods {
            let mut exhausts = false;
            for budget in self.over(pod) {
                let allowed = || budget.val().int_at(&["status", "disruptionsAllowed"]).unwrap_or(0);
                let left = left.entry(&budget.key).or_insert_with(allowed);
                *left -= 1;
                exhausts |= *left < 0;
            }
            found.push((*pod, exhausts));
        }
        found
    }
}

/// The pods that are kept on a node beside so many new ones.
struct Beside<'s, 'n> {
    node: &'n Object,
    own: &'n Template,
    number: i64,
    kept: Vec<&'s Arc<Object>>,
    used: Usage,
    /// What they may take at most, where no more than that decides.
    limit: Option<Limit>,
}

impl<'s, 'n> Beside<'s, 'n> {
    fn of(node: &'n Object, own: &'n Template, number: i64, kept: Vec<&'s Arc<Object>>) -> Self {
        let mut used = Usage::default();
        kept.iter().for_each(|pod| used.add(pod, 1));
        let limit = Limit::of(node, own, number);
        Self { node, own, number, kept, used, limit }
    }

    fn has_room(&self) -> bool {
        match &self.limit {
            Some(limit) => limit.admits(self.used),
            None => room_beside(self.node, self.own, self.number, &self.kept) >= self.number,
        }
    }

    /// Whether one more is kept.
    fn keeps(&mut self, pod: &'s Arc<Object>) -> bool {
        let before = self.used;
        self.used.add(pod, 1);
        self.kept.push(pod);
        let keeps = self.has_room();
        if !keeps {
            self.kept.pop();
            self.used = before;
        }
        keeps
    }
}
