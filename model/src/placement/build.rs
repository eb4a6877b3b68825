//! The board of a cluster for the new pods of a workload.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::{Asked, Wants};
use super::board::{Board, Counted, Spot};
use super::cluster::{Cluster, Leaving, room_beside};
use super::rules::{Asks, Rule, closed, is_closed, rules};
use crate::effects::scheduling::template::Template;
use crate::effects::scheduling::topology::domain;
use crate::fields::{HOSTNAME, SCHEDULING, node_matches, tolerates};
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::steps;
use crate::value::{Str, Val};

/// How many nodes a group is taken to grow by at most.
const GROWTH_MAX: i64 = 64;

/// Where few places are enough, no more nodes are looked at.
const FEW_NODES: usize = 512;
/// Nor more places for one combination of domains than there are new pods, within these bounds.
const FEW_PLACES_MIN: i64 = 8;
const FEW_PLACES_MAX: i64 = 256;

/// Which nodes are places.
#[derive(Clone, Copy, Debug)]
pub enum Places<'q> {
    /// A few of them, from some node on, of each combination of domains: pods that find a place there find one.
    Few,
    /// All, with those that groups of these nodes may grow by.
    All(Option<&'q Selector>),
}

/// The nodes as places for new pods of a workload.
pub fn board_of(cluster: &Cluster<'_, '_>, object: &Object, wants: &Wants, places: Places<'_>) -> Board {
    let Some(first) = wants.new.first() else { return Board::default() };
    let (own, ns) = (&first.template, &object.key.ns);
    let placed = &wants.alike;
    let nodes = cluster.nodes();
    // what the pods select, or name, is all that they may be on
    let selected = cluster.admitted(own.spec());
    let rules = rules(own, ns, cluster.state);
    let mut tables: Vec<Table> = rules.into_iter().map(|rule| Table { rule, values: BTreeMap::new() }).collect();
    let mut counted: Vec<Counted> = tables.iter_mut().map(|table| table.of_nodes(&nodes, &selected, own)).collect();
    restrict_spreads(&tables, &mut counted, &nodes);
    for (table, rule) in tables.iter().zip(&mut counted) {
        for pod in table.rule.pods(cluster, own, ns, &wants.leaving, placed) {
            rule.pods.insert(pod.key.clone());
            let node = cluster.node(&pod.node).filter(|node| counts_there(&table.rule, &tables, own, node));
            let at = node.and_then(|node| table.values.get(&domain(node, &table.rule.topology)?));
            if let Some(count) = at.and_then(|at| rule.counts.get_mut(*at)) {
                *count += 1;
            }
        }
    }
    let closed = closed(cluster, own, ns, &wants.leaving, placed);
    let missing = wants.missing();
    let mut board = Board { spots: Vec::new(), rules: counted, kinds: wants.new.iter().map(|a| a.number).collect() };
    let leaving = Leaving::of(cluster, &wants.leaving);
    let (first, most, mut few) = match places {
        Places::Few => (start(object, selected.len()), FEW_NODES, Some(Few::of(&tables, missing))),
        Places::All(_) => (0, usize::MAX, None),
    };
    for node in selected.iter().cycle().skip(first).take(selected.len().min(most)) {
        steps::count(1);
        let domains: Vec<Option<usize>> = tables.iter().map(|table| table.domain(node)).collect();
        if few.as_ref().is_some_and(|few| !few.lacks(&board, &domains)) {
            continue;
        }
        let admits: Vec<bool> = wants.new.iter().map(|asked| asked.rejects(node).is_none()).collect();
        if !admits.contains(&true) || is_closed(&closed, node) {
            continue;
        }
        let room = cluster.room(node, own, missing, &leaving);
        if let Some(few) = few.as_mut().filter(|_| room > 0) {
            few.add(&domains);
        }
        board.spots.push(Spot { name: node.key.name.clone(), room, domains, admits, class: 0 });
    }
    if let Places::All(Some(growing)) = places {
        let like: Vec<&Arc<Object>> = nodes.iter().copied().filter(|node| growing.matches(node.labels())).collect();
        grow(cluster, &wants.new, &tables, &mut board, &like);
    }
    board
}

/// Where to begin among so many nodes: elsewhere for each object, so that few read of the same nodes what requests in flight
/// change there.
pub fn start(object: &Object, nodes: usize) -> usize {
    let sum = object.key.name.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    sum.checked_rem(nodes).unwrap_or_default()
}

/// The places of each combination of domains, those of single nodes aside.
struct Few<'t> {
    tables: &'t [Table],
    /// How many of each are enough.
    most: i64,
    held: BTreeMap<Vec<Option<usize>>, i64>,
}

impl<'t> Few<'t> {
    /// None so far, for so many new pods.
    fn of(tables: &'t [Table], missing: i64) -> Self {
        Self { tables, most: missing.clamp(FEW_PLACES_MIN, FEW_PLACES_MAX), held: BTreeMap::new() }
    }

    fn key(&self, domains: &[Option<usize>]) -> Vec<Option<usize>> {
        let shared = self.tables.iter().zip(domains).filter(|(table, _)| &*table.rule.topology != HOSTNAME);
        shared.map(|(_, domain)| *domain).collect()
    }

    /// Whether another place in these domains may be of use.
    fn lacks(&self, board: &Board, domains: &[Option<usize>]) -> bool {
        let is_taken = |(rule, domain): (&Counted, &Option<usize>)| {
            rule.asks == Asks::Apart && domain.and_then(|at| rule.counts.get(at)).is_some_and(|count| *count > 0)
        };
        let held = self.held.get(&self.key(domains)).copied().unwrap_or(0);
        held < self.most && !board.rules.iter().zip(domains).any(is_taken)
    }

    fn add(&mut self, domains: &[Option<usize>]) {
        *self.held.entry(self.key(domains)).or_default() += 1;
    }
}

/// A rule, and its domains by their values.
struct Table {
    rule: Rule,
    values: BTreeMap<Str, usize>,
}

impl Table {
    /// Nothing counted yet. Pods beside which a new one has to be may be anywhere; what is counted elsewhere does not matter to
    /// the nodes that are selected.
    fn of_nodes(&mut self, nodes: &[&Arc<Object>], selected: &[Arc<Object>], own: &Template) -> Counted {
        let mut eligible: Vec<bool> = Vec::new();
        let everywhere = match self.rule.asks {
            Asks::Together => true,
            Asks::Spread { heeds_selection, .. } => !heeds_selection,
            Asks::Apart => false,
        };
        let all = nodes.iter().copied().filter(|_| everywhere);
        for node in all.chain(selected.iter().filter(|_| !everywhere)) {
            let Some(value) = domain(node, &self.rule.topology) else { continue };
            let next = self.values.len();
            let at = *self.values.entry(value).or_insert(next);
            if at == eligible.len() {
                eligible.push(false);
            }
            if let Some(eligible) = eligible.get_mut(at) {
                *eligible |= heeds(&self.rule, own, node);
            }
        }
        Counted {
            asks: self.rule.asks,
            own: self.rule.own,
            topology: self.rule.topology.clone(),
            counts: vec![0; eligible.len()],
            eligible,
            pods: BTreeSet::new(),
        }
    }

    fn domain(&self, node: &Object) -> Option<usize> {
        self.values.get(&domain(node, &self.rule.topology)?).copied()
    }
}

/// Whether a spread constraint counts a node, as its policies say (`podtopologyspread/common.go`, `matchNodeInclusionPolicies`).
fn heeds(rule: &Rule, own: &Template, node: &Object) -> bool {
    match rule.asks {
        Asks::Spread { heeds_taints, heeds_selection, .. } => {
            (!heeds_selection || node_matches(own.spec(), node))
                && (!heeds_taints || tolerates(own.spec(), node, SCHEDULING))
        }
        Asks::Apart | Asks::Together => true,
    }
}

/// Whether pods on a node count for a rule: for a spread, nodes that have all labels by which the pod spreads
/// (`podtopologyspread/common.go`, `nodeLabelsMatchSpreadConstraints`).
fn counts_there(rule: &Rule, tables: &[Table], own: &Template, node: &Object) -> bool {
    let is_spread = |rule: &Rule| matches!(rule.asks, Asks::Spread { .. });
    let mut keys = tables.iter().filter(|table| is_spread(&table.rule));
    !is_spread(rule) || (heeds(rule, own, node) && keys.all(|table| domain(node, &table.rule.topology).is_some()))
}

/// Domains of nodes that lack another label by which the pod spreads count for no spread.
fn restrict_spreads(tables: &[Table], counted: &mut [Counted], nodes: &[&Arc<Object>]) {
    let spreads: Vec<&Table> = tables.iter().filter(|t| matches!(t.rule.asks, Asks::Spread { .. })).collect();
    if spreads.len() < 2 {
        return;
    }
    let has_all = |node: &Object| spreads.iter().all(|table| domain(node, &table.rule.topology).is_some());
    let whole: Vec<&&Arc<Object>> = nodes.iter().filter(|node| has_all(node)).collect();
    for (table, rule) in tables.iter().zip(counted) {
        if matches!(rule.asks, Asks::Spread { .. }) {
            let there: BTreeSet<usize> = whole.iter().filter_map(|node| table.domain(node)).collect();
            for (at, eligible) in rule.eligible.iter_mut().enumerate() {
                *eligible &= there.contains(&at);
            }
        }
    }
}

/// Adds nodes like these: each with the labels but for the hostname, as large, and with what runs on each node of the group.
fn grow(cluster: &Cluster<'_, '_>, new: &[Asked], tables: &[Table], board: &mut Board, like: &[&Arc<Object>]) {
    let Some(own) = new.first().map(|asked| &asked.template) else { return };
    let missing = board.kinds.iter().fold(0_i64, |sum, number| sum.saturating_add(*number));
    let mut known: BTreeSet<(Val, Val, Vec<bool>, i64)> = BTreeSet::new();
    for node in like {
        let fresh = fresh(node);
        let admits: Vec<bool> =
            new.iter().map(|asked| asked.only.is_none() && asked.rejects(&fresh).is_none()).collect();
        let pods = cluster.staying_on(&node.key.name).into_iter();
        let everywhere = pods.filter(|pod| pod.controller().is_some_and(|c| c.kind.is("DaemonSet")));
        let room = room_beside(node, own, missing, &everywhere.collect::<Vec<_>>());
        let labels = node.labels().without_at(&[HOSTNAME]);
        let taints = fresh.val().at(&["spec", "taints"]).cloned().unwrap_or_default();
        if room == 0 || !admits.contains(&true) || !known.insert((labels, taints, admits.clone(), room)) {
            continue;
        }
        for _ in 0..missing.min(GROWTH_MAX) {
            let domains = tables.iter().zip(&mut board.rules).map(|(table, rule)| {
                if &*table.rule.topology != HOSTNAME {
                    return table.domain(node);
                }
                rule.counts.push(0);
                rule.eligible.push(false);
                Some(rule.counts.len() - 1)
            });
            let domains = domains.collect();
            board.spots.push(Spot { name: node.key.name.clone(), room, domains, admits: admits.clone(), class: 0 });
        }
    }
}

/// A node as it is when it has just been added: without what its condition, or a cordon, puts on it, and under another name.
fn fresh(node: &Object) -> Object {
    let of_condition = |taint: &&Val| {
        let key = taint.str_at(&["key"]);
        key.is_some_and(|key| key.starts_with("node.kubernetes.io/"))
    };
    let taints = node.val().items_at(&["spec", "taints"]).iter().filter(|taint| !of_condition(taint));
    let taints = Val::list(taints.cloned().collect());
    let body = node.map_body(|val| {
        val.with_at(&["spec", "taints"], taints.clone())
            .without_at(&["spec", "unschedulable"])
            .without_at(&["status", "conditions"])
            .without_at(&["metadata", "labels", HOSTNAME])
    });
    Object { key: Key::of("Node", "", "new node"), ..body }
}
