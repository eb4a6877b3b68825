//! Where new pods may go: any node that their hard constraints admit, and when a pod stays pending.
//!
//! Source: `pkg/scheduler/framework/plugins/{nodeaffinity,nodeunschedulable,tainttoleration,noderesources,
//! interpodaffinity,podtopologyspread}`. Preferences are ignored: the scheduler may break every one of them.
//!
//! Over-approximations: what other workloads' pods keep free or apart is not relied on when a pod is placed (once all has
//! settled, see `foreign_pods`), but may keep it pending; a node that is not Ready may recover or not; a spread constraint
//! counts pods that have gone since; several kinds of new pods share a node's room each on its own; required pod affinity,
//! claims that a template names, scheduling gates and ports of init containers may always leave a pod pending. Once all has
//! settled, pods of other workloads are taken to keep the resources that they request; before that, they may have gone.
//! What a workload lacks already, and no request has to do with, may be placed on any node or stay pending: a request
//! elsewhere, of a node's labels say, is not to blame for either. Nodes that are not there yet are not looked at:
//! [`LimitLabel::NoNodeAdmits`] says where that matters.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::foreign_pods::Staying;
use super::room::{NodeUsage, room, selectors_of};
use super::template::{Room, Template, Term, host_ports, term};
use super::{Builder, STAY, View, at_least, at_most, count, foreign_pods, hazard};
use crate::futures::{Count, FateKind, Group, LimitLabel, Linear, Place, SetId};
use crate::kinds::Kind;
use crate::navigate::{SCHEDULING, anti_affinity, node_zone, restricts_nodes, tolerates};
use crate::node_names::NodeNames;
use crate::object::{Body, Key, Object};
use crate::scenario::Scenario;
use crate::selector::{Selector, node_matches};
use crate::snapshot::{HOSTNAME, Usage, names_nodes};
use crate::state::State;
use crate::value::{Str, Val};

/// Beyond so many places, a spread constraint over single nodes is not relied on.
const SPREAD_DOMAINS_MAX: usize = 32;

/// What makes two nodes alike to new pods: admission and room by template, and their domains; a node with pods that a
/// constraint is about stands alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Signature {
    admitted: Vec<bool>,
    room: Vec<Room>,
    domains: Vec<Option<Str>>,
    unwell: bool,
    /// Whether somebody has a port there that one of the templates wants.
    taken: bool,
    alone: Option<Str>,
}

/// The nodes of a scenario by what new pods of some templates find there.
#[derive(Debug, Default)]
pub struct NodeClasses {
    classes: Vec<(Signature, NodeNames)>,
    /// The class of every live node that is in no other: the longest, if every live node is in one.
    rest: Option<usize>,
}

impl NodeClasses {
    /// The nodes, class by class. A node that stands alone is a class of its own although others may be like it.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeNames> {
        self.classes.iter().map(|(_, nodes)| nodes)
    }

    /// The class of a live node, if it is in any.
    pub fn class_of(&self, node: &Str) -> Option<usize> {
        let mut others = self.nodes().enumerate().filter(|(at, _)| Some(*at) != self.rest);
        others.find(|(_, nodes)| nodes.contains(node)).map(|(at, _)| at).or(self.rest)
    }

    /// For each class the number of the first class that admits new pods alike, standing alone or not.
    pub fn admission(&self) -> Vec<usize> {
        let plain = |s: &Signature| (s.admitted.clone(), s.room.clone(), s.domains.clone(), s.unwell, s.taken);
        let mut first: BTreeMap<_, usize> = BTreeMap::new();
        self.classes.iter().enumerate().map(|(at, (s, _))| *first.entry(plain(s)).or_insert(at)).collect()
    }
}

/// What was worked out about a scenario's nodes, by namespace, templates and demand.
pub type NodeCache = RefCell<BTreeMap<(Str, Vec<Val>, Demand), Rc<NodeClasses>>>;

/// What else decides which nodes are alike to new pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Who keeps apart from them.
    pub anti_affinity: AntiAffinityPresence,
    /// How many there are at most.
    pub most: i64,
    /// Whether pods of other workloads are relied on to keep what they take.
    pub quiescent: bool,
    /// Whether nodes are relied on to be as they are.
    pub caused_by_request: bool,
}

/// Where existing pods are that keep apart from others, and by which topology keys: new pods may have no such constraint.
/// A pod that takes ports of its node keeps apart from others that do.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AntiAffinityPresence {
    topologies: BTreeSet<Str>,
    nodes: BTreeSet<Str>,
}

impl AntiAffinityPresence {
    /// Of these pods.
    pub fn of<'p>(pods: impl Iterator<Item = &'p Arc<Object>>) -> Self {
        let mut presence = Self::default();
        for pod in pods.filter(|pod| !pod.node.is_empty()) {
            let terms = anti_affinity(pod);
            presence.topologies.extend(terms.iter().filter_map(|t| t.str_at(&["topologyKey"]).cloned()));
            let takes_ports = || pod.val().get("spec").is_some_and(|spec| !host_ports(spec).is_empty());
            presence.nodes.extend((!terms.is_empty() || takes_ports()).then(|| pod.node.clone()));
        }
        presence
    }
}

/// The places of a scenario for these templates, and what each template finds there.
pub fn places(
    scenario: &Scenario<'_>,
    ns: &Str,
    templates: &mut [Template],
    demand: Demand,
    view: &View,
) -> Vec<Place> {
    let classes = classes(scenario, ns, templates, demand);
    let by_node = |t: &Template| t.terms.iter().any(|t| t.max_skew.is_some() && &*t.topology == HOSTNAME);
    let number: usize = classes.nodes().map(NodeNames::len).sum();
    // a spread over nodes counts pods on each
    let merge_equivalent_nodes =
        view.merge_equivalent_nodes && !(number <= SPREAD_DOMAINS_MAX && templates.iter().any(by_node));
    let mut found: Vec<(Place, usize)> = Vec::new();
    for (at, (_, nodes)) in classes.classes.iter().enumerate() {
        let down: Arc<[Str]> = view.outage.nodes.iter().filter(|n| nodes.contains(n)).cloned().collect();
        let up = nodes.but(&*down, Vec::new());
        for (nodes, down) in [(up, false), (NodeNames::of(down), true)] {
            if merge_equivalent_nodes && !nodes.is_empty() {
                found.push((Place { nodes, down }, at));
            } else {
                let each = nodes.iter().map(|node| Place { nodes: NodeNames::one(node.clone()), down });
                found.extend(each.map(|place| (place, at)));
            }
        }
    }
    // none is in two places
    found.sort_by(|a, b| a.0.nodes.first().cmp(&b.0.nodes.first()));
    for (number, template) in templates.iter_mut().enumerate() {
        let signatures = found.iter().filter_map(|(_, at)| classes.classes.get(*at).map(|(s, _)| s));
        template.admitted = signatures.clone().map(|s| s.admitted.get(number).copied().unwrap_or(false)).collect();
        template.room = signatures.map(|s| s.room.get(number).copied().unwrap_or_default()).collect();
    }
    found.into_iter().map(|(place, _)| place).collect()
}

/// The classes of nodes for the new pods of these templates in a namespace.
pub fn node_classes(scenario: &Scenario<'_>, ns: &Str, templates: &[Val], demand: Demand) -> Rc<NodeClasses> {
    let templates: Vec<Template> = templates.iter().map(|val| Template::new(val, ns)).collect();
    classes(scenario, ns, &templates, demand)
}

fn classes(scenario: &Scenario<'_>, ns: &Str, templates: &[Template], demand: Demand) -> Rc<NodeClasses> {
    let key = (ns.clone(), templates.iter().map(|t| t.val.clone()).collect::<Vec<_>>(), demand);
    if let Some(known) = scenario.nodes.borrow().get(&key) {
        return known.clone();
    }
    let classes = Rc::new(NodeClassifier::new(scenario, ns, templates, &key.2).classes());
    scenario.nodes.borrow_mut().insert(key, classes.clone());
    classes
}

/// Works out the classes of nodes for some templates.
struct NodeClassifier<'l, 'a> {
    scenario: &'l Scenario<'a>,
    templates: &'l [Template],
    restricted: Vec<bool>,
    topologies: BTreeSet<Str>,
    demand: &'l Demand,
    usage: NodeUsage<'l, 'a>,
    /// Nodes with pods that a constraint is about.
    busy: BTreeSet<Str>,
    /// Nodes where ports are taken.
    taken: BTreeSet<Str>,
}

impl<'l, 'a> NodeClassifier<'l, 'a> {
    fn new(scenario: &'l Scenario<'a>, ns: &'l Str, templates: &'l [Template], demand: &'l Demand) -> Self {
        let state = &scenario.state;
        let anti_affinity = &demand.anti_affinity;
        let foreign_anti_affinity =
            templates.iter().flat_map(|t| foreign_pods::foreign_anti_affinity(scenario, ns, t, demand.quiescent));
        let (repellers, keys): (Vec<Str>, Vec<Str>) =
            foreign_anti_affinity.map(|r| (r.pod.node.clone(), r.topology)).unzip();
        let terms = templates.iter().flat_map(|t| &t.terms).map(|t| &t.topology);
        let topologies =
            terms.chain(&anti_affinity.topologies).chain(&keys).filter(|t| &***t != HOSTNAME).cloned().collect();
        // constraints are about pods of the namespace only
        let related = templates.iter().any(|t| !t.terms.is_empty());
        let pods = if related { state.list(&Kind::new("", "Pod"), Some(ns)) } else { Vec::new() };
        let busy =
            pods.into_iter().filter(|p| !p.node.is_empty() && is_selected_by(templates, p)).map(|p| p.node.clone());
        Self {
            scenario,
            templates,
            restricted: templates.iter().map(|t| restricts_nodes(t.spec()) || t.pinned().is_some()).collect(),
            topologies,
            demand,
            usage: NodeUsage::new(scenario, ns, templates, demand),
            busy: busy.chain(anti_affinity.nodes.iter().cloned()).chain(repellers).collect(),
            taken: where_ports_are_taken(state, templates),
        }
    }

    /// The classes: pool by pool where the nodes of a pool do not differ, else node by node.
    fn classes(&self) -> NodeClasses {
        let state = &self.scenario.state;
        let pools = state.base().pools();
        let changed = state.changed_keys(&Kind::new("", "Node")).map(|key| key.name.clone());
        let known = self.usage.changed.keys().chain(&self.busy).chain(&self.taken).cloned();
        let apart: BTreeSet<Str> = changed.chain(known).collect();
        let mut single = apart.clone();
        let mut by_signature: BTreeMap<Signature, (Vec<usize>, Vec<Str>)> = BTreeMap::new();
        let by_name = self.templates.iter().any(|t| names_nodes(t.spec()) || t.pinned().is_some());
        let mut every = true;
        for (at, pool) in pools.iter() {
            let first = pool.nodes().iter().find(|name| !apart.contains(*name));
            let Some(node) = first.and_then(|name| state.get(&Key::global("Node", name))) else { continue };
            let roomy = !self.usage.quiescent || self.has_room(node, pool.busiest(|name| state.base().usage(name)));
            if by_name || !roomy {
                single.extend(pool.nodes().iter().cloned());
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
        let takes_all = |t: &Template| room(t, node, self.demand.most, taken, taken) == Room::default();
        self.templates.iter().all(|t| t.others.is_empty() && takes_all(t))
    }

    /// What new pods find on a node; `None` when it is not for them.
    fn signature(&self, node: &Object) -> Option<Signature> {
        if !node.live() {
            return None;
        }
        let caused_by_request = self.demand.caused_by_request;
        let selected = |template: &Template| {
            template.pinned().is_none_or(|name| *name == node.key.name) && node_matches(template.spec(), node)
        };
        let matches =
            |(template, restricted): (&Template, &bool)| !restricted || !caused_by_request || selected(template);
        let matches: Vec<bool> = self.templates.iter().zip(&self.restricted).map(matches).collect();
        if !matches.iter().any(|m| *m) {
            return None;
        }
        let unwell = is_unwell(node);
        let recovered = unwell.then(|| recovered(node));
        let well = recovered.as_ref().unwrap_or(node);
        let room: Vec<Room> = self.templates.iter().map(|t| self.usage.room(t, node, self.demand.most)).collect();
        let admitted = self.templates.iter().zip(&matches).zip(&room).map(|((template, matches), room)| {
            // the kubelet heeds NoExecute only
            let effects = if template.pinned().is_some() { &["NoExecute"] } else { SCHEDULING };
            let admits = room.most != Some(0) && tolerates(template.spec(), well, effects);
            *matches && (admits || !caused_by_request)
        });
        Some(Signature {
            admitted: admitted.collect(),
            room,
            domains: self.topologies.iter().map(|t| domain(node, t)).collect(),
            unwell,
            taken: self.taken.contains(&node.key.name),
            alone: self.busy.contains(&node.key.name).then(|| node.key.name.clone()),
        })
    }
}

/// The taints that stand for a node's conditions: nobody asks for them to be set or removed
/// (`pkg/controller/nodelifecycle/node_lifecycle_controller.go`, `taintKeyToNodeConditionMap`).
const OF_CONDITIONS: [&str; 6] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
];

fn is_of_condition(taint: &Val) -> bool {
    taint.str_at(&["key"]).is_some_and(|key| OF_CONDITIONS.contains(&&**key))
}

/// Whether a node takes no new pods for reasons that may pass by themselves.
fn is_unwell(node: &Object) -> bool {
    hazard::not_ready(node) == Some(true) || node.val().items_at(&["spec", "taints"]).iter().any(is_of_condition)
}

/// The node once it is well again.
fn recovered(node: &Object) -> Object {
    let taints = node.val().items_at(&["spec", "taints"]).iter().filter(|taint| !is_of_condition(taint));
    let taints = Val::list(taints.cloned().collect());
    node.map_body(|val| val.with_at(&["spec", "taints"], taints.clone()))
}

/// Whether some constraint of the templates is about this pod, or the pod may have constraints of its own.
fn is_selected_by(templates: &[Template], pod: &Object) -> bool {
    templates.iter().flat_map(|t| &t.terms).any(|t| t.selector.matches(pod.labels()))
        || pod.val().at_some(&["spec", "affinity", "podAntiAffinity"]).is_some()
}

/// Nodes with pods, of any namespace, that take a port which one of the templates wants.
fn where_ports_are_taken(state: &State<'_>, templates: &[Template]) -> BTreeSet<Str> {
    if templates.iter().all(|t| t.ports.is_empty()) {
        return BTreeSet::new();
    }
    // equals stand together
    let mut last: Option<(*const Body, bool)> = None;
    let mut takes = |pod: &Object| {
        let body = Arc::as_ptr(&pod.body);
        let known = last.filter(|(of, _)| *of == body).map(|(_, takes)| takes);
        let takes = known.unwrap_or_else(|| templates.iter().any(|t| t.wants_port_of(pod)));
        last = Some((body, takes));
        takes
    };
    let pods = state.list(&Kind::new("", "Pod"), None).into_iter();
    pods.filter(|pod| !pod.node.is_empty() && takes(pod)).map(|pod| pod.node.clone()).collect()
}

fn domain(node: &Object, topology: &str) -> Option<Str> {
    match node.label(topology) {
        Some(value) => Some(value.clone()),
        None if topology == HOSTNAME => Some(node.key.name.clone()),
        None if topology == "topology.kubernetes.io/zone" => node_zone(node),
        None => None,
    }
}

/// The limits on where the new pods of `set` go, and on how many stay pending. Called when all entities are known.
pub fn limit(builder: &mut Builder<'_, '_>, maker: Key, set: SetId, template: usize) {
    builder.placed.push((maker, set, template));
}

/// Writes down the limits that [`limit`] asked for.
pub fn write_limits(builder: &mut Builder<'_, '_>) {
    if !builder.wants_places() {
        return;
    }
    let asked = std::mem::take(&mut builder.placed);
    let topology = Topology::new(builder);
    for (maker, set, template) in &asked {
        let Some(own) = builder.templates.get(*template).cloned() else { continue };
        if !own.admits_any() {
            let none = at_most(vec![count(*set, &NEW_PLACED)], 0);
            builder.limit(LimitLabel::NoNodeAdmits { workload: maker.clone() }, vec![none]);
        }
        capacity(builder, &topology, *set, &own);
        let mut pending_reasons: BTreeMap<usize, Vec<Linear>> = BTreeMap::new();
        for term in &own.terms {
            match term.max_skew {
                None => apart(builder, &topology, &asked, maker, *set, &own, term, &mut pending_reasons),
                Some(skew) => spread(builder, &topology, &asked, maker, *set, &own, term, skew, &mut pending_reasons),
            }
        }
        if own.pinned().is_none() {
            theirs(builder, &topology, maker, *set, &own, &mut pending_reasons);
        }
        port_by_port(builder, &topology, maker, *set, &own, &mut pending_reasons);
        let may_wait = || {
            own.may_always_pend
                || own.waits
                || own.claims.iter().any(|claim| !super::volumes::is_for_all(builder.state(), &maker.ns, claim))
                || foreign_pods::keep_out(builder.scenario, maker, &own.beyond)
        };
        if builder.after() && builder.caused_by_request && !may_wait() {
            pending(builder, &topology, maker, *set, &own, &asked, pending_reasons);
        }
    }
}

/// The nodes of the scenario by topology domain, and the group's existing pods in each.
struct Topology {
    /// For each place, its nodes' labels by topology key are alike except for the hostname.
    nodes: Vec<Arc<Object>>,
    sizes: Vec<i64>,
    /// Existing pods of the group that have not finished, which the scheduler does not see any more (`pkg/scheduler/
    /// scheduler.go`, `NewInformerFactory`): index into entities, object.
    existing: Vec<(usize, Arc<Object>)>,
    /// The node objects of existing pods.
    homes: BTreeMap<Str, Arc<Object>>,
    staying: Staying,
}

impl Topology {
    fn new(builder: &Builder<'_, '_>) -> Self {
        let state = builder.state();
        let node = |name: &Str| state.get(&Key::global("Node", name)).cloned();
        let nodes = builder.group.places.iter().filter_map(|p| p.nodes.first().and_then(node)).collect();
        let sizes = builder.group.places.iter().map(|p| i64::try_from(p.nodes.len()).unwrap_or(i64::MAX)).collect();
        let existing: Vec<_> = builder
            .group
            .entities
            .iter()
            .enumerate()
            .filter_map(|(at, e)| Some((at, state.get(e.key()?)?.clone())))
            .filter(|(_, o)| o.key.kind.is("Pod") && !o.node.is_empty() && !hazard::finished(o))
            .collect();
        let homes = existing.iter().filter_map(|(_, o)| Some((o.node.clone(), node(&o.node)?))).collect();
        Self { nodes, sizes, existing, homes, staying: Staying::default() }
    }

    /// The domain that the node of a pod is in.
    fn domain_of(&self, state: &State<'_>, pod: &Object, topology: &str) -> Option<Str> {
        state.get(&Key::global("Node", &pod.node)).and_then(|node| domain(node, topology))
    }

    /// The names of those pods.
    fn inside(&self) -> BTreeSet<&Key> {
        self.existing.iter().map(|(_, pod)| &pod.key).collect()
    }

    /// The places by domain. For the hostname every place is a domain of its own (of as many domains as it has nodes).
    fn domains(&self, topology: &str) -> BTreeMap<Str, Vec<usize>> {
        let mut out: BTreeMap<Str, Vec<usize>> = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(value) = domain(node, topology) {
                out.entry(value).or_default().push(at);
            }
        }
        out
    }

    /// How many domains these places of one domain value stand for.
    fn size(&self, topology: &str, places: &[usize]) -> i64 {
        if topology == HOSTNAME { places.iter().filter_map(|at| self.sizes.get(*at)).sum() } else { 1 }
    }

    /// Existing pods in a domain that satisfy `means`.
    fn existing_in(&self, topology: &str, value: &Str, means: impl Fn(&Object) -> bool) -> Vec<usize> {
        let here = self.existing.iter().filter(|(_, pod)| {
            self.homes.get(&pod.node).and_then(|n| domain(n, topology)).as_ref() == Some(value) && means(pod)
        });
        here.map(|(at, _)| *at).collect()
    }
}

const NEW_PLACED: [FateKind; 1] = [FateKind::NewReady];

fn placed_at(set: SetId, places: &[usize]) -> Count {
    Count { set, fates: NEW_PLACED.to_vec(), places: Some(places.to_vec()) }
}

/// What holds whatever happens.
fn always() -> Linear {
    Linear { terms: Vec::new(), at_most: 0 }
}

/// Puts these entities into a new set and returns it; `None` when there are none.
fn gather(builder: &mut Builder<'_, '_>, entities: &[usize]) -> Option<SetId> {
    if entities.is_empty() {
        return None;
    }
    let set = builder.set();
    for at in entities {
        if let Some(entity) = builder.group.entities.get_mut(*at) {
            Rc::make_mut(&mut entity.sets).push(set);
        }
    }
    Some(set)
}

/// A place takes no more pods than it has room for, beside those of the group that stay there: its room is that without any
/// pod that the labels of the templates mean.
fn capacity(builder: &mut Builder<'_, '_>, topology: &Topology, set: SetId, own: &Template) {
    let is_selected_by = selectors_of(&builder.templates);
    let takes_as_much = |pod: &Object| {
        let amount = |name: &str| pod.val().get("spec").map_or(0, |spec| crate::navigate::requests(spec, name));
        own.ports.is_empty()
            && is_selected_by.iter().any(|selector| selector.matches(pod.labels()))
            && own.requests.iter().all(|(name, each)| amount(name) >= *each)
            && own.others.iter().all(|(name, each)| amount(name) >= *each)
    };
    for (at, room) in own.room.iter().enumerate() {
        let (Some(most), true) = (room.most, own.admits(at)) else { continue };
        let Some(place) = builder.group.places.get(at) else { continue };
        let nodes = i64::try_from(place.nodes.len()).unwrap_or(i64::MAX);
        let node = place.nodes.first().cloned().unwrap_or_else(|| "".into());
        let bound = most.saturating_mul(nodes);
        let here = topology.existing.iter().filter(|(_, pod)| place.nodes.contains(&pod.node) && takes_as_much(pod));
        let here: Vec<usize> = here.map(|(entity, _)| *entity).collect();
        let staying = gather(builder, &here).map(|existing| count(existing, &STAY));
        let new = placed_at(set, &[at]);
        let taken = staying.into_iter().chain([new.clone()]).collect();
        // what is on a node stays, however little room it has by now
        builder.limit(LimitLabel::Capacity { node }, vec![at_most(vec![new], 0), at_most(taken, bound)]);
    }
}

type Asked = (Key, SetId, usize);

/// The sets of new pods that a selector means.
fn meant_new(builder: &Builder<'_, '_>, asked: &[Asked], selector: &Selector) -> Vec<SetId> {
    let mut sets: Vec<SetId> = asked
        .iter()
        .filter(|(_, _, template)| builder.templates.get(*template).is_some_and(|t| selector.matches(t.labels())))
        .map(|(_, set, _)| *set)
        .collect();
    sets.dedup();
    sets
}

/// Required anti-affinity of the new pods' own.
#[expect(clippy::too_many_arguments, reason = "one constraint needs the whole picture once")]
fn apart(
    builder: &mut Builder<'_, '_>,
    topology: &Topology,
    asked: &[Asked],
    maker: &Key,
    set: SetId,
    own: &Template,
    term: &Term,
    pending_reasons: &mut BTreeMap<usize, Vec<Linear>>,
) {
    let label = || LimitLabel::AntiAffinity { workload: maker.clone(), topology: term.topology.clone() };
    let others = meant_new(builder, asked, &term.selector);
    let own_kind = term.selector.matches(own.labels());
    for (value, places) in topology.domains(&term.topology) {
        let size = topology.size(&term.topology, &places);
        let here: Vec<Count> = others.iter().map(|s| placed_at(*s, &places)).collect();
        if own_kind {
            // new pods of other templates are kept apart from these only, and where there are any
            let mut any_of = Vec::new();
            if others != [set] {
                any_of.push(at_most(vec![placed_at(set, &places)], 0));
            }
            any_of.push(at_most(here.clone(), size));
            builder.limit(label(), any_of);
        } else {
            for other in &here {
                builder
                    .limit(label(), vec![at_most(vec![placed_at(set, &places)], 0), at_most(vec![other.clone()], 0)]);
            }
        }
        let means = |pod: &Object| term.selector.matches(pod.labels());
        let found = topology.existing_in(&term.topology, &value, means);
        let mut blocking = here;
        if let Some(existing) = gather(builder, &found) {
            blocking.push(count(existing, &STAY));
            blocking.push(count(existing, &[FateKind::Terminating]));
            if !term.by_revision {
                let apart = vec![at_most(vec![placed_at(set, &places)], 0), at_most(vec![count(existing, &STAY)], 0)];
                builder.limit(label(), apart);
            }
        }
        let foreign = foreign_pods_in(builder, topology, &term.topology, &value, &term.selector);
        if foreign.is_empty() {
            for place in &places {
                pending_reasons.entry(*place).or_default().push(at_least(blocking.clone(), size));
            }
        } else {
            let keeps = !term.by_revision && foreign.iter().any(|pod| topology.staying.has(builder, pod));
            keep_off(builder, maker, &term.topology, set, &places, keeps, pending_reasons);
        }
    }
}

/// Anti-affinity of existing pods of the group against the new ones.
fn theirs(
    builder: &mut Builder<'_, '_>,
    topology: &Topology,
    maker: &Key,
    set: SetId,
    own: &Template,
    pending_reasons: &mut BTreeMap<usize, Vec<Linear>>,
) {
    let against = |pod: &Object, key: &Str| {
        anti_affinity(pod)
            .iter()
            .filter_map(|t| term(t, &pod.key.ns, None))
            .any(|t| t.topology == *key && !t.by_revision && t.selector.matches(own.labels()))
    };
    let mut keys: BTreeSet<Str> = BTreeSet::new();
    for (_, pod) in &topology.existing {
        keys.extend(anti_affinity(pod).iter().filter_map(|t| t.str_at(&["topologyKey"]).cloned()));
    }
    for key in keys {
        for (value, places) in topology.domains(&key) {
            let found = topology.existing_in(&key, &value, |pod| against(pod, &key));
            let Some(existing) = gather(builder, &found) else { continue };
            let label = LimitLabel::AntiAffinity { workload: maker.clone(), topology: key.clone() };
            yield_to(builder, label, set, &places, existing, pending_reasons);
        }
    }
    let inside = topology.inside();
    let (scenario, ns, quiescent) = (builder.scenario, builder.name.ns.clone(), builder.group.quiescent);
    let mut by_key: BTreeMap<Str, BTreeMap<Str, Vec<usize>>> = BTreeMap::new();
    for foreign_anti_affinity in foreign_pods::foreign_anti_affinity(scenario, &ns, own, quiescent)
        .into_iter()
        .filter(|r| !inside.contains(&r.pod.key))
    {
        let key = &foreign_anti_affinity.topology;
        let domains = by_key.entry(key.clone()).or_insert_with(|| topology.domains(key));
        let value = topology.domain_of(builder.state(), foreign_anti_affinity.pod, key);
        let Some(places) = value.and_then(|value| domains.get(&value)) else { continue };
        let keeps = foreign_anti_affinity.certain && topology.staying.has(builder, foreign_anti_affinity.pod);
        keep_off(builder, maker, key, set, places, keeps, pending_reasons);
    }
}

/// Pods of others, there already, keep new ones off these places: for certain (`keeps`), or they may.
fn keep_off(
    builder: &mut Builder<'_, '_>,
    maker: &Key,
    topology: &Str,
    set: SetId,
    places: &[usize],
    keeps: bool,
    pending_reasons: &mut BTreeMap<usize, Vec<Linear>>,
) {
    for place in places {
        pending_reasons.entry(*place).or_default().push(always());
    }
    if keeps {
        let label = LimitLabel::AntiAffinity { workload: maker.clone(), topology: topology.clone() };
        builder.limit(label, vec![at_most(vec![placed_at(set, places)], 0)]);
    }
}

/// None of these new pods comes to places where one of these existing pods stays; there they may be stuck for as long as one
/// is still on its way out.
fn yield_to(
    builder: &mut Builder<'_, '_>,
    label: LimitLabel,
    set: SetId,
    places: &[usize],
    existing: SetId,
    pending_reasons: &mut BTreeMap<usize, Vec<Linear>>,
) {
    builder.limit(label, vec![at_most(vec![placed_at(set, places)], 0), at_most(vec![count(existing, &STAY)], 0)]);
    for place in places {
        let held = vec![count(existing, &STAY), count(existing, &[FateKind::Terminating])];
        pending_reasons.entry(*place).or_default().push(at_least(held, 1));
    }
}

/// A node gives a port to one pod at a time: where an existing one of the group has it, no new one comes. That pods of others
/// have it is not relied on, but may keep a pod pending.
fn port_by_port(
    builder: &mut Builder<'_, '_>,
    topology: &Topology,
    maker: &Key,
    set: SetId,
    own: &Template,
    pending_reasons: &mut BTreeMap<usize, Vec<Linear>>,
) {
    if own.ports.is_empty() {
        return;
    }
    for (value, places) in topology.domains(HOSTNAME) {
        let found = topology.existing_in(HOSTNAME, &value, |pod| own.wants_port_of(pod));
        let Some(existing) = gather(builder, &found) else { continue };
        yield_to(builder, LimitLabel::HostPorts { workload: maker.clone() }, set, &places, existing, pending_reasons);
    }
    let (state, inside) = (builder.state(), topology.inside());
    for (at, place) in builder.group.places.iter().enumerate() {
        let pods = place.nodes.iter().flat_map(|node| state.pods_on(node));
        let keeps = |pod: &Arc<Object>| {
            !inside.contains(&pod.key)
                && own.wants_port_of(pod)
                && (!builder.group.quiescent || !foreign_pods::has_gone(builder.scenario, pod))
        };
        if pods.into_iter().any(keeps) {
            pending_reasons.entry(at).or_default().push(always());
        }
    }
}

/// The pods outside the group that a selector means in a domain.
fn foreign_pods_in<'s>(
    builder: &Builder<'s, '_>,
    topology: &Topology,
    key: &str,
    value: &Str,
    selector: &Selector,
) -> Vec<&'s Arc<Object>> {
    let (state, inside) = (builder.state(), topology.inside());
    let pods = state.pods_matching(&builder.name.ns, selector).into_iter();
    let here = pods.filter(|pod| {
        !inside.contains(&pod.key)
            && !hazard::finished(pod)
            && topology.domain_of(state, pod, key).as_ref() == Some(value)
            && (!builder.group.quiescent || !foreign_pods::has_gone(builder.scenario, pod))
    });
    here.collect()
}

/// A spread constraint that may not be ignored: when the last new pod came into a domain, no other domain had fewer
/// than `max_skew` less; what has gone since only makes the bound looser. All of them together held no more pods then than
/// there are at one time, which bounds it again: where pods come one for one, each comes to a domain that lacks it.
///
/// Other domains count if they have a node that the pod's node selector and affinity admit, pods that are being deleted do
/// not, and a node without the label takes none (`filtering.go`, `calPreFilterState`; `common.go`,
/// `countPodsMatchSelector`). With `matchLabelKeys`, pods of other revisions are not counted.
#[expect(clippy::too_many_arguments, reason = "one constraint needs the whole picture once")]
fn spread(
    builder: &mut Builder<'_, '_>,
    topology: &Topology,
    asked: &[Asked],
    maker: &Key,
    set: SetId,
    own: &Template,
    term: &Term,
    skew: i64,
    pending_reasons: &mut BTreeMap<usize, Vec<Linear>>,
) {
    let domains = topology.domains(&term.topology);
    let by_node = term.topology.as_ref() == HOSTNAME;
    let too_many = by_node && (topology.nodes.len() > SPREAD_DOMAINS_MAX || topology.sizes.iter().any(|s| *s > 1));
    let is_told = term.selector.matches(own.labels()) && !too_many;
    // nodes that are no place may be domains as well, and never get a pod
    let is_open = !is_told || !term.heeds_selection;
    let labelled: BTreeSet<usize> = domains.values().flatten().copied().collect();
    for place in (0..topology.nodes.len()).filter(|place| is_open || !labelled.contains(place)) {
        pending_reasons.entry(place).or_default().push(always());
    }
    if !is_told {
        return;
    }
    let others = meant_new(builder, asked, &term.selector);
    // pods that have no such constraint may come at any time
    let bound = |at: &usize| {
        let template = builder.templates.get(*at);
        template.is_some_and(|t| t.terms.contains(term) && (!term.by_revision || t.val == own.val))
    };
    let equals: Vec<SetId> = asked.iter().filter(|(_, _, at)| bound(at)).map(|(_, set, _)| *set).collect();
    let is_eligible = |at: &usize| {
        topology.nodes.get(*at).is_some_and(|node| {
            node_matches(own.spec(), node) && (!term.heeds_taints || tolerates(own.spec(), node, SCHEDULING))
        })
    };
    let eligible: BTreeSet<&Str> =
        domains.iter().filter(|(_, places)| places.iter().any(is_eligible)).map(|(value, _)| value).collect();
    let too_few_domains = i64::try_from(eligible.len()).is_ok_and(|domains| domains < term.min_domains);
    let means = |pod: &Object| !pod.terminating() && term.selector.matches(pod.labels());
    let mut held: BTreeMap<Str, (Option<SetId>, i64, i64)> = BTreeMap::new();
    for value in domains.keys() {
        let found = topology.existing_in(&term.topology, value, means);
        let sharing = topology.existing_in(&term.topology, value, |pod| means(pod) && term.may_share(own, pod));
        let present = i64::try_from(sharing.len()).unwrap_or(i64::MAX);
        let outside = foreign_pods_in(builder, topology, &term.topology, value, &term.selector).len();
        let outside = i64::try_from(outside).unwrap_or(i64::MAX);
        held.insert(value.clone(), (gather(builder, &found), present, outside));
    }
    let in_domain = |sets: &[SetId], value: &Str| -> Vec<Count> {
        let places = domains.get(value).cloned().unwrap_or_default();
        sets.iter().map(|s| placed_at(*s, &places)).collect()
    };
    let label = || LimitLabel::Spread { workload: maker.clone(), topology: term.topology.clone(), max_skew: skew };
    let outside: i64 = held.values().map(|(_, _, outside)| *outside).sum();
    let max_live_pods = builder.max_live_pods.filter(|_| outside == 0);
    for (here, places) in &domains {
        let Some((here_set, _, here_outside)) = held.get(here) else { continue };
        let none = || at_most(vec![placed_at(set, places)], 0);
        let kept = here_set.filter(|_| !term.by_revision).map(|s| count(s, &STAY));
        let last: Vec<Count> = in_domain(&equals, here).into_iter().chain(kept).collect();
        let elsewhere = eligible.iter().filter(|value| **value != here).count();
        let in_here = in_domain(&others, here).into_iter().chain(here_set.map(|s| count(s, &STAY)));
        let in_here: Vec<Count> = in_here.collect();
        if too_few_domains {
            // one more pod here would exceed the skew against none: here >= skew
            for place in places {
                pending_reasons.entry(*place).or_default().push(at_least(in_here.clone(), skew - *here_outside));
            }
        }
        if let (Some(max_live_pods), Ok(elsewhere @ 1..)) = (max_live_pods, i64::try_from(elsewhere)) {
            // each of the others held at least `last - skew` then
            let terms = last.iter().map(|c| (elsewhere + 1, c.clone())).collect();
            let at_most = max_live_pods.saturating_add(elsewhere.saturating_mul(skew));
            builder.limit(label(), vec![none(), Linear { terms, at_most }]);
        }
        for there in domains.keys().filter(|v| *v != here) {
            let Some((there_set, there_present, there_outside)) = held.get(there) else { continue };
            if eligible.contains(there) {
                let mut terms: Vec<(i64, Count)> = last.iter().map(|c| (1, c.clone())).collect();
                terms.extend(in_domain(&others, there).into_iter().map(|c| (-1, c)));
                let at_most = skew.saturating_add(*there_present).saturating_add(*there_outside);
                builder.limit(label(), vec![none(), Linear { terms, at_most }]);
            }
            // one more pod here would exceed the skew: here - there >= skew
            let mut fuller: Vec<(i64, Count)> = in_here.iter().map(|c| (-1, c.clone())).collect();
            fuller.extend(in_domain(&others, there).into_iter().map(|c| (1, c)));
            fuller.extend(there_set.filter(|_| !term.by_revision).map(|s| (1, count(s, &STAY))));
            let exceeds = Linear { terms: fuller, at_most: *here_outside - skew };
            for place in places {
                pending_reasons.entry(*place).or_default().push(exceeds.clone());
            }
        }
    }
}

/// A pod stays pending only when every place that admits it is full or forbidden.
fn pending(
    builder: &mut Builder<'_, '_>,
    topology: &Topology,
    maker: &Key,
    set: SetId,
    own: &Template,
    asked: &[Asked],
    mut pending_reasons: BTreeMap<usize, Vec<Linear>>,
) {
    let several = asked.iter().map(|(_, _, t)| t).collect::<BTreeSet<_>>().len() > 1;
    for at in 0..builder.group.places.len() {
        // a node that is unwell may stay so
        if !own.admits(at) || topology.nodes.get(at).is_none_or(|node| is_unwell(node)) {
            continue;
        }
        let mut any_of = vec![at_most(vec![count(set, &[FateKind::NewUnready])], 0)];
        any_of.append(&mut pending_reasons.remove(&at).unwrap_or_default());
        let room = own.room.get(at).copied().unwrap_or_default();
        if let Some(least) = room.least {
            let nodes = builder.group.places.get(at).map_or(1, |p| i64::try_from(p.nodes.len()).unwrap_or(i64::MAX));
            let full = if several { 0 } else { least.saturating_mul(nodes) };
            any_of.push(at_least(asked.iter().map(|(_, s, _)| placed_at(*s, &[at])).collect(), full));
        }
        builder.limit(LimitLabel::PendingOnlyIfStuck { workload: maker.clone() }, any_of);
    }
}

/// The templates of the new pods that a group may have.
pub fn new_templates(group: &Group) -> Vec<Val> {
    let mut found: Vec<Val> = Vec::new();
    for entity in &group.entities {
        let made = entity.fates.iter().find(|f| f.kind == FateKind::NewUnready || f.kind == FateKind::NewReady);
        let Some(pod) = made.and_then(|f| entity.object_in(f)) else { continue };
        let template = Val::object([
            ("metadata", pod.val().get("metadata").cloned().unwrap_or_default()),
            ("spec", pod.val().get("spec").cloned().unwrap_or_default()),
        ]);
        if !found.contains(&template) {
            found.push(template);
        }
    }
    found
}
