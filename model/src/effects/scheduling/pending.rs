//! When a new pod stays pending: only where every place that admits it is full or closed to it.
//!
//! Over-approximations: several kinds of new pods share a node's room each on its own; a node that is not Ready may recover
//! or not.

use std::collections::BTreeSet;

use super::constraint::{Placing, Waiting};
use super::plugins::PLUGINS;
use super::taints::is_unwell;
use crate::effects::linear::{at_least, at_most, count, placed_at};
use crate::futures::{FateKind, LimitLabel};

/// Writes down when new pods stay pending, unless they may wait for good whatever nodes there are.
pub fn limit_pending(mut placing: Placing<'_, '_, '_>) {
    let Placing { maker, set, own, asked, .. } = placing;
    let waiting = Waiting { scenario: placing.builder.scenario, maker, own };
    if PLUGINS.iter().any(|plugin| plugin.may_block(&waiting)) {
        return;
    }
    let mut limits = Vec::new();
    let several = asked.iter().map(|(_, _, t)| t).collect::<BTreeSet<_>>().len() > 1;
    for at in 0..placing.builder.group.places.len() {
        // a node that is unwell may stay so
        if !own.admits(at) || placing.topology.nodes.get(at).is_none_or(|node| is_unwell(node)) {
            continue;
        }
        let mut any_of = vec![at_most(vec![count(set, &[FateKind::NewUnready])], 0)];
        any_of.append(&mut placing.blocked.remove(&at).unwrap_or_default());
        let room = own.room.get(at).copied().unwrap_or_default();
        if let Some(least) = room.least {
            let place = placing.builder.group.places.get(at);
            let nodes = place.map_or(1, |p| i64::try_from(p.nodes.len()).unwrap_or(i64::MAX));
            let full = if several { 0 } else { least.saturating_mul(nodes) };
            any_of.push(at_least(asked.iter().map(|(_, s, _)| placed_at(*s, &[at])).collect(), full));
        }
        // where one has room whatever comes, the others make no difference
        if any_of.len() == 1 {
            limits = vec![any_of];
            break;
        }
        limits.push(any_of);
    }
    for any_of in limits {
        placing.limit(LimitLabel::PendingOnlyIfStuck { workload: maker.clone() }, any_of);
    }
}
