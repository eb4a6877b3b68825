//! How many pods of a workload find no place, also after some nodes are gone, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::{Wants, alike, template, wants};
use super::board::{Board, Filling};
use super::build::{Places, board_of, start};
use super::cluster::{Cluster, Leaving};
use super::fill::{fill, total};
use super::rules::{Asks, closed, is_closed, rules};
use super::too_hard::TooHard;
use crate::effects::scheduling::template::Template;
use crate::fields::{HOSTNAME, names_nodes};
use crate::object::{Body, Object};
use crate::selector::Selector;
use crate::state::State;
use crate::steps;
use crate::value::{Str, Val};

/// How many ways to lose nodes are looked at.
const OUTAGES_MAX: usize = 1_024;

/// What is asked about the pods of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// How many it is to have.
    pub wanted: i64,
    /// How many nodes may be gone.
    pub failures: i64,
    /// Which nodes are of groups that may grow.
    pub growing: Option<&'q Selector>,
}

/// How many of a workload's pods find no place beside what is placed, at worst after so many nodes are gone.
///
/// # Errors
/// When that was not found within the budget.
pub fn unplaced(state: &State<'_>, object: &Object, question: &Question<'_>) -> Result<i64, TooHard> {
    Ok(worst(state, object, question)?.short)
}

/// Why nodes take no more pods of a workload than they do, at worst: each reason with the nodes.
///
/// # Errors
/// As [`unplaced`].
pub fn obstacles(state: &State<'_>, object: &Object, question: &Question<'_>) -> Result<Vec<String>, TooHard> {
    let worst = worst(state, object, question)?;
    if worst.short == 0 {
        return Ok(Vec::new());
    }
    let cluster = Cluster::new(state, worst.gone.clone());
    let wants = open(&cluster, object, question.wanted);
    let full = short_of(&cluster, object, &wants, question.growing)?;
    let mut found = full.map_or_else(Vec::new, |full| reasons(&cluster, &wants, &full));
    if !worst.gone.is_empty() {
        found.insert(0, format!("gone: {}", names(&worst.gone.iter().collect::<Vec<_>>())));
    }
    Ok(found)
}

/// The worst outage.
struct Worst {
    short: i64,
    gone: BTreeSet<Str>,
}

fn worst(state: &State<'_>, object: &Object, question: &Question<'_>) -> Result<Worst, TooHard> {
    let none = BTreeSet::new();
    let cluster = Cluster::new(state, none.clone());
    if question.growing.is_some() && !cluster.has_nodes() {
        // what a group grows by is told by the nodes that it has
        return Ok(Worst { short: 0, gone: none });
    }
    let short = shortage(&cluster, object, &open(&cluster, object, question.wanted), question.growing)?;
    if question.failures <= 0 || question.wanted <= 0 || object.key.kind.is("DaemonSet") {
        return Ok(Worst { short, gone: none });
    }
    if let Some(worst) = by_sum(&cluster, object, question) {
        return Ok(worst);
    }
    let mut worst = Worst { short, gone: none };
    for gone in outages(&cluster, object, question.failures)? {
        let cluster = Cluster::new(state, gone.clone());
        let short = shortage(&cluster, object, &open(&cluster, object, question.wanted), question.growing)?;
        if short > worst.short {
            worst = Worst { short, gone };
        }
    }
    Ok(worst)
}

/// What an object [wants], without those new pods of a DaemonSet that find room on their nodes: each may be on one node only, so
/// that none takes it from another, as long as no rule is about where the others are.
pub fn open(cluster: &Cluster<'_, '_>, object: &Object, wanted: i64) -> Wants {
    let mut found = wants(cluster, object, wanted);
    let Some(own) = found.new.first().filter(|first| first.only.is_some()).map(|first| first.template.clone()) else {
        return found;
    };
    if !rules(&own, &object.key.ns, cluster.state).is_empty() {
        return found;
    }
    let closed = closed(cluster, &own, &object.key.ns, &found.leaving, &found.alike);
    let leaving = Leaving::of(cluster, &found.leaving);
    found.new.retain(|asked| {
        steps::count(1);
        let node = asked.only.as_ref().and_then(|name| cluster.node(name));
        let takes = |node: &Object| cluster.room(node, &own, asked.number, &leaving) >= asked.number;
        !node.is_some_and(|node| asked.rejects(node).is_none() && !is_closed(&closed, node) && takes(node))
    });
    found
}

/// How many of the pods that are wanted find no place.
pub fn shortage(
    cluster: &Cluster<'_, '_>,
    object: &Object,
    wants: &Wants,
    growing: Option<&Selector>,
) -> Result<i64, TooHard> {
    Ok(short_of(cluster, object, wants, growing)?.map_or(0, |full| full.short))
}

/// A cluster that takes no more of the pods that are wanted.
pub struct Full {
    /// The places.
    pub board: Board,
    /// As many of the pods as can be placed, on them.
    pub filling: Filling,
    /// How many are left.
    pub short: i64,
}

/// The cluster with as many of the pods that are wanted as can be placed; none where all find a place.
///
/// # Errors
/// As [`unplaced`].
pub fn short_of(
    cluster: &Cluster<'_, '_>,
    object: &Object,
    wants: &Wants,
    growing: Option<&Selector>,
) -> Result<Option<Full>, TooHard> {
    let missing = wants.missing();
    if missing == 0 || is_plain(cluster, object, wants) {
        return Ok(None);
    }
    let is_enough = |board: &Board| fill(board).is_ok_and(|filling| total(&filling) >= missing);
    if is_enough(&board_of(cluster, object, wants, Places::Few)) {
        return Ok(None);
    }
    let board = board_of(cluster, object, wants, Places::All(growing));
    let found = fill(&board)?;
    let short = missing - total(&found);
    Ok((short > 0).then(|| Full { filling: board.filled(&found.placed), board, short }))
}

/// Whether a few nodes soon turn out to have room for pods that ask nothing of one another.
fn is_plain(cluster: &Cluster<'_, '_>, object: &Object, wants: &Wants) -> bool {
    let [only] = wants.new.as_slice() else { return false };
    let asks_nothing = only.template.pinned().is_none()
        && wants.leaving.is_empty()
        && rules(&only.template, &object.key.ns, cluster.state).is_empty();
    if !asks_nothing {
        return false;
    }
    let closed = closed(cluster, &only.template, &object.key.ns, &wants.leaving, &wants.alike);
    let mut missing = only.number;
    let nodes = cluster.state.admitted(only.template.spec());
    for node in nodes.iter().cycle().skip(start(object, nodes.len())).take(nodes.len()) {
        if missing <= 0 {
            break;
        }
        steps::count(1);
        let is_place = node.live()
            && !cluster.gone.contains(&node.key.name)
            && only.rejects(node).is_none()
            && !is_closed(&closed, node);
        missing -= if is_place { cluster.least_room(node, &only.template, missing) } else { 0 };
    }
    missing <= 0
}

/// The worst outage of pods that ask nothing of one another: that of the nodes which hold and take most of them.
fn by_sum(cluster: &Cluster<'_, '_>, object: &Object, question: &Question<'_>) -> Option<Worst> {
    let own = template(cluster.state, object)?;
    let is_told =
        own.pinned().is_none() && question.growing.is_none() && rules(&own, &object.key.ns, cluster.state).is_empty();
    if !is_told || object.key.kind.is("StatefulSet") {
        return None;
    }
    let now = wants(cluster, object, question.wanted);
    let all = Wants {
        new: vec![alike(cluster.state, object, &own, None, question.wanted)],
        placed: BTreeMap::new(),
        alike: now.alike.clone(),
        leaving: now.leaving.clone(),
    };
    let board = board_of(cluster, object, &all, Places::All(question.growing));
    let mut room = 0_i64;
    let mut held: BTreeMap<&Str, i64> = now.placed.iter().map(|(node, pods)| (node, *pods)).collect();
    for spot in &board.spots {
        room = room.saturating_add(spot.room);
        let all = held.entry(&spot.name).or_default();
        *all = all.saturating_add(spot.room);
    }
    let mut lost: Vec<(i64, &Str)> = held.into_iter().map(|(node, pods)| (pods, node)).collect();
    lost.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    lost.truncate(usize::try_from(question.failures).unwrap_or(usize::MAX));
    let missing: i64 = now.missing();
    let short = missing.saturating_sub(room).saturating_add(lost.iter().map(|(pods, _)| *pods).sum());
    let gone = lost.into_iter().map(|(_, node)| node.clone()).collect();
    Some(Worst { short: short.max(0), gone })
}

/// All ways to lose so many nodes, up to nodes that are alike.
fn outages(cluster: &Cluster<'_, '_>, object: &Object, failures: i64) -> Result<Vec<BTreeSet<Str>>, TooHard> {
    let own = template(cluster.state, object).map(|own| own.spec().clone()).unwrap_or_default();
    let by_name = names_nodes(&own) || object.key.kind.is("StatefulSet") || !own.items_at(&["volumes"]).is_empty();
    type Alike = (Str, Val, Vec<Val>, Vec<(Str, *const Body)>);
    let mut known: BTreeMap<Alike, usize> = BTreeMap::new();
    let mut classes: Vec<Vec<&Str>> = Vec::new();
    for node in cluster.nodes() {
        let pods = cluster.staying_on(&node.key.name).into_iter();
        let mut pods: Vec<_> = pods.map(|pod| (pod.key.ns.clone(), Arc::as_ptr(&pod.body))).collect();
        pods.sort();
        let paths = [&["spec", "taints"][..], &["spec", "unschedulable"], &["status", "allocatable"]];
        let parts = paths.map(|path| node.val().at(path).cloned().unwrap_or_default());
        let name = if by_name { node.key.name.clone() } else { "".into() };
        let key = (name, node.labels().without_at(&[HOSTNAME]), parts.to_vec(), pods);
        let next = classes.len();
        let at = *known.entry(key).or_insert(next);
        match classes.get_mut(at) {
            Some(class) => class.push(&node.key.name),
            None => classes.push(vec![&node.key.name]),
        }
    }
    let mut found: Vec<(usize, BTreeSet<Str>)> = vec![(0, BTreeSet::new())];
    let mut at = 0;
    while let Some((first, gone)) = found.get(at).cloned() {
        at += 1;
        if i64::try_from(gone.len()).is_ok_and(|gone| gone >= failures) {
            continue;
        }
        for (number, class) in classes.iter().enumerate().skip(first) {
            let Some(next) = class.iter().find(|name| !gone.contains(**name)) else { continue };
            let mut more = gone.clone();
            more.insert((*next).clone());
            found.push((number, more));
        }
        if found.len() > OUTAGES_MAX {
            return Err(TooHard);
        }
    }
    Ok(found.into_iter().map(|(_, gone)| gone).filter(|gone| !gone.is_empty()).collect())
}

/// Why no node takes another pod, each reason with its nodes.
pub fn reasons(cluster: &Cluster<'_, '_>, wants: &Wants, full: &Full) -> Vec<String> {
    let Full { board, filling, .. } = full;
    let mut found: BTreeMap<String, Vec<&Str>> = BTreeMap::new();
    let Some(first) = wants.new.first() else { return Vec::new() };
    if let Some(name) = first.template.pinned()
        && cluster.node(name).is_none()
    {
        return vec![format!("there is no node {name}")];
    }
    let mut spots: BTreeMap<&Str, usize> = BTreeMap::new();
    for (at, spot) in board.spots.iter().enumerate() {
        spots.entry(&spot.name).or_insert(at);
    }
    let leaving = Leaving::of(cluster, &wants.leaving);
    for node in cluster.nodes() {
        let name = &node.key.name;
        let at = spots.get(name).copied();
        let placed = at.and_then(|at| filling.placed.get(at)).copied().unwrap_or(0);
        let reason = match at.filter(|at| board.spots.get(*at).is_some_and(|spot| placed < spot.room)) {
            Some(at) => board.obstacle(filling, at).map(|rule| explained(rule.asks, &rule.topology)),
            None => wants.new.iter().find_map(|asked| asked.rejects(node)).filter(|_| at.is_none()).map(str::to_owned),
        };
        let reason = reason.or_else(|| lacks(cluster, node, &first.template, placed, &leaving));
        found.entry(reason.unwrap_or_else(|| "other pods keep off".to_owned())).or_default().push(name);
    }
    // what keeps off by the node itself is of less help than what could be changed
    found.into_iter().map(|(reason, nodes)| format!("{reason} on {}", names(&nodes))).collect()
}

/// A rule in words.
fn explained(asks: Asks, topology: &str) -> String {
    let over = match topology {
        HOSTNAME => "node",
        "topology.kubernetes.io/zone" => "zone",
        other => other,
    };
    match asks {
        Asks::Apart => format!("one per {over} only (anti-affinity)"),
        Asks::Together => format!("no pod that it wants to be near (affinity by {over})"),
        Asks::Spread { skew, .. } => format!("spread over {over} (maxSkew {skew})"),
    }
}

/// What a node has not enough of for one more pod.
fn lacks(cluster: &Cluster<'_, '_>, node: &Object, own: &Template, placed: i64, leaving: &Leaving) -> Option<String> {
    let none = Template { requests: Vec::new(), others: Vec::new(), ports: Vec::new(), ..own.clone() };
    let is_short = |part: &Template| cluster.room(node, part, placed.saturating_add(1), leaving) <= placed;
    let counted = own
        .requests
        .iter()
        .map(|(name, each)| ((*name).to_owned(), Template { requests: vec![(*name, *each)], ..none.clone() }));
    let extended = own
        .others
        .iter()
        .map(|(name, each)| (name.to_string(), Template { others: vec![(name.clone(), *each)], ..none.clone() }));
    let short: Vec<String> = counted.chain(extended).filter(|(_, part)| is_short(part)).map(|(name, _)| name).collect();
    if !short.is_empty() {
        return Some(format!("not enough {}", short.join(" and ")));
    }
    if is_short(&none) {
        return Some("too many pods".to_owned());
    }
    is_short(&Template { ports: own.ports.clone(), ..none }).then(|| "its port is taken".to_owned())
}

/// The first of some names.
fn names(all: &[&Str]) -> String {
    let shown: Vec<&str> = all.iter().take(3).map(|name| &***name).collect();
    match all.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
