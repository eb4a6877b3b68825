//! Works out which nodes are alike to new pods of some templates.
//!
//! Over-approximation: a node that is not Ready may recover or not. What a workload lacks already, and no request has to do
//! with, may be placed on any node or stay pending: a request elsewhere, of a node's labels say, is not to blame for either.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::constraint::{Around, Differences, Fit, NodeView};
use super::foreign_pods::foreign_anti_affinity;
use super::node_classes::{Demand, NodeClasses, Signature};
use super::plugins::PLUGINS;
use super::room::Room;
use super::taints::{is_unwell, recovered};
use super::template::Template;
use super::topology::domain;
use super::usage::{NodeUsage, room};
use crate::effects::memo::Memo;
use crate::effects::survival::Survivals;
use crate::fields::HOSTNAME;
use crate::kinds::Kind;
use crate::node_names::NodeNames;
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::selector::Selector;
use crate::snapshot::Usage;
use crate::state::State;
use crate::value::{Str, Val};

/// The classes of nodes for the new pods of these templates in a namespace.
pub fn node_classes(
    scenario: &Scenario<'_>,
    memo: &Memo,
    ns: &Str,
    templates: &[Val],
    demand: Demand,
) -> Rc<NodeClasses> {
    let templates: Vec<Template> = templates.iter().map(|val| Template::new(val, ns)).collect();
    classes(&Survivals::new(scenario, memo), ns, &templates, demand)
}

/// [`node_classes`] over what becomes of existing objects.
pub fn classes(survivals: &Survivals<'_, '_>, ns: &Str, templates: &[Template], demand: Demand) -> Rc<NodeClasses> {
    let key = (ns.clone(), templates.iter().map(|t| t.val.clone()).collect::<Vec<_>>(), demand);
    let known = &survivals.memo.nodes;
    if let Some(known) = known.borrow().get(&key) {
        return known.clone();
    }
    let around = Around { survivals, ns, templates, demand: &key.2 };
    let classes = Rc::new(NodeClassifier::new(&around).classes());
    known.borrow_mut().insert(key, classes.clone());
    classes
}

/// The nodes with pods of other workloads than a group's (`inside`) that a constraint of its new pods is about, or that keep
/// these off: what becomes of the new ones depends on which of them fail.
pub fn nodes_beside_others(
    scenario: &Scenario<'_>,
    memo: &Memo,
    ns: &Str,
    templates: &[Val],
    demand: &Demand,
    inside: &BTreeSet<&Key>,
) -> BTreeSet<Str> {
    let templates: Vec<Template> = templates.iter().map(|val| Template::new(val, ns)).collect();
    let survivals = Survivals::new(scenario, memo);
    let around = Around { survivals: &survivals, ns, templates: &templates, demand };
    let differences = differences(&around);
    let is_other = |pod: &Object| !pod.node.is_empty() && !inside.contains(&pod.key);
    let is_meant = |pod: &Object| differences.selectors.iter().any(|selector| selector.matches(pod.labels()));
    let pods = if differences.selectors.is_empty() {
        Vec::new()
    } else {
        scenario.state.list(&Kind::new("", "Pod"), Some(ns))
    };
    let meant = pods.into_iter().filter(|pod| is_other(pod) && is_meant(pod)).map(|pod| pod.node.clone());
    let against = templates.iter().flat_map(|own| foreign_anti_affinity(&survivals, ns, own, demand.quiescent));
    meant.chain(against.filter(|found| is_other(found.pod)).map(|found| found.pod.node.clone())).collect()
}

/// Works out the classes of nodes for some templates.
struct NodeClassifier<'t, 'a> {
    state: &'t State<'a>,
    templates: &'t [Template],
    demand: &'t Demand,
    usage: NodeUsage<'t, 'a>,
    differences: Differences<'t>,
}

impl<'t, 'a> NodeClassifier<'t, 'a> {
    fn new(around: &Around<'t, 'a>) -> Self {
        let Around { survivals, ns, templates, demand } = *around;
        let state = survivals.state();
        let mut differences = differences(around);
        differences.topologies.remove(HOSTNAME);
        differences.alone.extend(where_selected(state, ns, &differences.selectors));
        Self { state, templates, demand, usage: NodeUsage::new(survivals, ns, templates, demand), differences }
    }

    /// The classes: pool by pool where the nodes of a pool do not differ, or in no more than what is taken of them; else node by
    /// node.
    fn classes(&self) -> NodeClasses {
        let state = self.state;
        let pools = state.base().pools();
        let changed = state.changed_keys(&Kind::new("", "Node")).map(|key| key.name.clone());
        let Differences { by_name, alone, taken, .. } = &self.differences;
        let known = self.usage.changed.keys().chain(alone).chain(taken).cloned();
        let apart: BTreeSet<Str> = changed.chain(known).collect();
        let mut single = apart.clone();
        let mut by_signature: BTreeMap<Signature, (Vec<usize>, Vec<Str>)> = BTreeMap::new();
        let are_counted = self.templates.iter().all(|own| own.others.is_empty() && own.ports.is_empty());
        let mut every = true;
        for (at, pool) in pools.iter() {
            let first = pool.nodes().iter().find(|name| !apart.contains(*name));
            let Some(node) = first.and_then(|name| state.get(&Key::global("Node", name))) else { continue };
            let roomy = !self.usage.quiescent || self.has_room(node, pool.busiest(|name| state.base().usage(name)));
            if *by_name || !(roomy || are_counted) {
                single.extend(pool.nodes().iter().cloned());
            } else if !roomy {
                let found = self.by_room(node, pool.nodes().iter().filter(|name| !apart.contains(*name)));
                every &= !found.is_empty();
                for (signature, names) in found {
                    by_signature.entry(signature).or_default().1.extend(names);
                }
            } else if let Some(signature) = self.signature(node) {
                by_signature.entry(signature).or_default().0.push(at);
            } else {
                every = false;
            }
        }
        for name in single {
            let Some(node) = state.get(&Key::global("Node", &name)) else { continue };
            match self.signature(node) {
                Some(signature) => by_signature.entry(signature).or_default().1.push(name),
                None => every &= !node.live(),
            }
        }
        let nodes = |(in_pools, others): (Vec<usize>, Vec<Str>)| match in_pools.as_slice() {
            [] => NodeNames::of(others.into()),
            some => NodeNames::of(pools.joined(some)).but(&apart, others),
        };
        let classes: Vec<_> = by_signature.into_iter().map(|(signature, found)| (signature, nodes(found))).collect();
        let longest = classes.iter().enumerate().max_by_key(|(_, (_, nodes))| nodes.len()).map(|(at, _)| at);
        NodeClasses { classes, rest: longest.filter(|_| every) }
    }

    /// Whether a node of which so much is taken takes all new pods of any template.
    fn has_room(&self, node: &Object, taken: Usage) -> bool {
        let number = self.demand.most;
        let takes_all = |t: &Template| {
            t.room_by_ports(number) == Room::default() && room(t, node, number, taken, taken) == Room::default()
        };
        self.templates.iter().all(|t| t.others.is_empty() && takes_all(t))
    }

    /// What new pods find on nodes that differ from a live one in what pods take of cpu, memory and the number of pods only; none
    /// when they are not for them.
    fn by_room<'n>(&self, like: &Object, nodes: impl Iterator<Item = &'n Str>) -> Vec<(Signature, Vec<Str>)> {
        let unwell = is_unwell(like);
        let Some(judged) = self.judged(like, unwell).filter(|_| like.live()) else { return Vec::new() };
        let mut by_room: BTreeMap<Vec<Room>, Vec<Str>> = BTreeMap::new();
        for name in nodes {
            let room = |own: &Template| self.usage.room_counted(own, like, name, self.demand.most);
            by_room.entry(self.templates.iter().map(room).collect()).or_default().push(name.clone());
        }
        let signature = |room: Vec<Room>| {
            let found = judged.iter().zip(room).map(|((admitted, _), room)| (*admitted, room)).collect();
            self.found_on(like, unwell, found)
        };
        by_room.into_iter().map(|(room, names)| (signature(room), names)).collect()
    }

    /// What new pods find on a node; `None` when it is not for them.
    fn signature(&self, node: &Object) -> Option<Signature> {
        if !node.live() {
            return None;
        }
        let unwell = is_unwell(node);
        Some(self.found_on(node, unwell, self.judged(node, unwell)?))
    }

    /// What new pods find on a node that plugins judge so, by template.
    fn found_on(&self, node: &Object, unwell: bool, mut judged: Vec<(bool, Room)>) -> Signature {
        if self.demand.caused_by_request {
            for (admitted, room) in &mut judged {
                *admitted &= room.most != Some(0);
                // before all has settled nothing is certain
                room.least = room.least.filter(|_| self.demand.quiescent);
            }
        }
        let (admitted, room) = judged.into_iter().unzip();
        let Differences { topologies, alone, taken, .. } = &self.differences;
        let name = &node.key.name;
        Signature {
            admitted,
            room,
            domains: topologies.iter().map(|t| domain(node, t)).collect(),
            unwell,
            taken: taken.contains(name),
            alone: alone.contains(name).then(|| name.clone()),
        }
    }

    /// By template, whether the plugins let new pods onto a live node, and how many; `None` when no template selects it. Where no
    /// request has to do with the workload, every node admits any number.
    fn judged(&self, node: &Object, unwell: bool) -> Option<Vec<(bool, Room)>> {
        let templates = self.templates;
        if !self.demand.caused_by_request {
            return (!templates.is_empty()).then(|| vec![(true, Room::default()); templates.len()]);
        }
        let recovered = unwell.then(|| recovered(node));
        let view =
            NodeView { node, well: recovered.as_ref().unwrap_or(node), usage: &self.usage, number: self.demand.most };
        let mut selected = vec![true; templates.len()];
        let mut found = vec![(true, Room::default()); templates.len()];
        for plugin in PLUGINS {
            for ((own, selected), (admitted, room)) in templates.iter().zip(&mut selected).zip(&mut found) {
                match plugin.filter(own, &view) {
                    Fit::NotSelected => (*selected, *admitted) = (false, false),
                    Fit::Rejected => *admitted = false,
                    Fit::Takes(number) => *room = room.tighter(number),
                }
            }
            if !selected.contains(&true) {
                return None;
            }
        }
        Some(found)
    }
}

/// What all plugins tell nodes apart by.
fn differences<'t>(around: &Around<'t, '_>) -> Differences<'t> {
    let mut found = Differences::default();
    for plugin in PLUGINS {
        plugin.distinguishes(around, &mut found);
    }
    found
}

/// The nodes with pods of a namespace that a constraint is about, or that may have constraints of their own.
fn where_selected(state: &State<'_>, ns: &str, selectors: &[&Selector]) -> Vec<Str> {
    if selectors.is_empty() {
        return Vec::new();
    }
    let is_selected = |pod: &Object| {
        selectors.iter().any(|selector| selector.matches(pod.labels()))
            || pod.val().at_some(&["spec", "affinity", "podAntiAffinity"]).is_some()
    };
    let pods = state.list(&Kind::new("", "Pod"), Some(ns)).into_iter();
    pods.filter(|pod| !pod.node.is_empty() && is_selected(pod)).map(|pod| pod.node.clone()).collect()
}
