//! Where new pods go as long as it is not told where: anywhere, up or down; but nodes that fail take no more of them than
//! nodes have room for.
//!
//! Over-approximation: each node is taken to be as roomy as the roomiest one, and empty. Of pods that keep apart by node
//! it takes one, and none where such a pod stays; of pods that are spread over nodes it takes about their share.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::builder::{DOWN, Described};
use super::linear::at_most;
use super::scheduling::affinity::alone_on_its_node;
use super::scheduling::spread::most_on_a_node;
use super::scheduling::template::Template;
use super::scheduling::usage::room_when_empty;
use crate::fields::HOSTNAME;
use crate::futures::{Count, Fate, FateKind, Group, LimitLabel, SetId};
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::state::State;
use crate::value::Str;

/// Writes down how many new pods may have been on what fails.
pub fn limited(mut builder: Described<'_, '_>) -> Group {
    let failed = u32::try_from(builder.view.outage.nodes.len()).unwrap_or(u32::MAX);
    if failed == 0 || builder.group.places.len() <= DOWN {
        return builder.group();
    }
    for (workload, set, template) in std::mem::take(&mut builder.placed) {
        let Some(own) = builder.templates.get(template) else { continue };
        if let Some(term) = alone_on_its_node(own) {
            let selector = term.selector.clone();
            // a term that is narrowed to one revision is about no old pods
            let relied_on = if term.by_revision { Vec::new() } else { matching(&builder.group, &selector) };
            apart(&mut builder, workload, set, &relied_on, failed);
            continue;
        }
        let spread = most_on_a_node(builder.scenario, &workload.ns, own);
        let room = roomiest(builder.state(), own);
        let Some(pods) = spread.into_iter().chain(room).min() else { continue };
        let bound = at_most(vec![down(set, &[FateKind::NewReady])], pods.saturating_mul(i64::from(failed)));
        builder.limit(LimitLabel::NodesTake { workload, pods }, vec![bound]);
    }
    builder.group()
}

/// How many of a set met one of these fates on a node that fails.
fn down(set: SetId, fates: &[FateKind]) -> Count {
    Count { set, fates: fates.to_vec(), places: Some(vec![DOWN]) }
}

/// The existing pods of a group that a selector means and that are on a node.
fn matching(group: &Group, selector: &Selector) -> Vec<usize> {
    let means = |pod: &Object| !pod.node.is_empty() && selector.matches(pod.labels());
    let found = group.entities.iter().enumerate();
    found.filter(|(_, e)| e.object.as_ref().is_some_and(|pod| means(pod))).map(|(at, _)| at).collect()
}

/// Limits how many new pods that keep apart by node, and old ones that they keep apart from, are on nodes that fail: a node has
/// one new pod, or those old ones that it has already.
fn apart(builder: &mut Described<'_, '_>, workload: Key, set: SetId, old: &[usize], failed: u32) {
    let mut on_node: BTreeMap<&Str, i64> = BTreeMap::new();
    for pod in old.iter().filter_map(|at| builder.group.entities.get(*at)?.object.as_ref()) {
        *on_node.entry(&pod.node).or_default() += 1;
    }
    let mut crowded: Vec<i64> = on_node.into_values().filter(|pods| *pods > 1).collect();
    crowded.sort_unstable_by(|a, b| b.cmp(a));
    crowded.truncate(failed as usize);
    let most = crowded.iter().fold(i64::from(failed), |most, pods| most.saturating_add(pods - 1));
    let mut counts = vec![down(set, &[FateKind::NewReady])];
    counts.extend(builder.gather(old).map(|old| down(old, &[FateKind::Stays, FateKind::BecomesReady])));
    builder.limit(LimitLabel::AntiAffinity { workload, topology: HOSTNAME.into() }, vec![at_most(counts, most)]);
}

/// A group that was described for nodes that fail, none of which holds its pods, as it is where no node fails.
pub fn calm(group: &Group) -> Group {
    let mut calm = group.clone();
    let is_down = |fate: &Fate| fate.place == Some(DOWN);
    for entity in calm.entities.iter_mut().filter(|entity| entity.fates.iter().any(is_down)) {
        Rc::make_mut(&mut entity.fates).retain(|fate| !is_down(fate));
    }
    // what limits pods on such nodes counts them there, and nothing else counts by place
    calm.limits.retain(|limit| {
        let mut counted = limit.any_of.iter().flat_map(|linear| &linear.terms);
        counted.all(|(_, count)| count.places.is_none())
    });
    calm.places.truncate(DOWN);
    calm
}

/// How many pods of a template the roomiest node would take, were it empty; `None` without a bound.
fn roomiest(state: &State<'_>, template: &Template) -> Option<i64> {
    let base = state.base();
    // nodes of a pool have the same to allocate
    let pools = base.pools().iter().filter_map(|(_, pool)| pool.nodes().first());
    let unchanged = pools.map(|name| base.get(&Key::global("Node", name)));
    let changed = state.changed_keys(&Kind::new("", "Node")).map(|key| state.get(key).or_else(|| base.get(key)));
    let mut most = None;
    for node in unchanged.chain(changed) {
        let here = room_when_empty(template, node?, i64::MAX).most?;
        most = most.max(Some(here));
    }
    most
}
