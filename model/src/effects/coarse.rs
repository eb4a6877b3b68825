//! Where new pods go as long as it is not told where: anywhere, up or down; but nodes that fail take no more of them than
//! nodes have room for.
//!
//! Over-approximation: each node is taken to be as roomy as the roomiest one, and empty. Of pods that keep apart by node
//! it takes one, of pods that are spread over nodes about their share.

use std::rc::Rc;

use super::builder::Described;
use super::linear::at_most;
use super::scheduling::affinity::is_alone_on_its_node;
use super::scheduling::spread::most_on_a_node;
use super::scheduling::template::Template;
use super::scheduling::usage::room_when_empty;
use crate::futures::{Count, Fate, FateKind, Group, LimitLabel};
use crate::kinds::Kind;
use crate::object::Key;
use crate::state::State;

/// The place of pods that were ready when their node failed.
const DOWN: usize = 1;

/// Writes down how many new pods may have been on what fails.
pub fn limited(mut builder: Described<'_, '_>) -> Group {
    let failed = i64::try_from(builder.view.outage.nodes.len()).unwrap_or(i64::MAX);
    if failed == 0 || builder.group.places.len() <= DOWN {
        return builder.group();
    }
    for (workload, set, template) in std::mem::take(&mut builder.placed) {
        let own = builder.templates.get(template);
        let spread = own.and_then(|own| most_on_a_node(builder.scenario, &workload.ns, own));
        let room = own.and_then(|own| roomiest(builder.state(), own));
        let Some(pods) = spread.into_iter().chain(room).min() else { continue };
        let down = Count { set, fates: vec![FateKind::NewReady], places: Some(vec![DOWN]) };
        builder.limit(LimitLabel::NodesTake { workload, pods }, vec![at_most(vec![down], pods.saturating_mul(failed))]);
    }
    builder.group()
}

/// A group that was described for nodes that fail, none of which holds its pods, as it is where no node fails.
pub fn calm(group: &Group) -> Group {
    let mut calm = group.clone();
    let is_down = |fate: &Fate| fate.place == Some(DOWN);
    for entity in calm.entities.iter_mut().filter(|entity| entity.fates.iter().any(is_down)) {
        Rc::make_mut(&mut entity.fates).retain(|fate| !is_down(fate));
    }
    calm.limits.retain(|limit| !matches!(limit.label, LimitLabel::NodesTake { .. }));
    calm.places.truncate(DOWN);
    calm
}

/// How many pods of a template the roomiest node would take, were it empty; `None` without a bound.
fn roomiest(state: &State<'_>, template: &Template) -> Option<i64> {
    if is_alone_on_its_node(template) {
        return Some(1);
    }
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
