//! NodeResourcesFit: a node takes no more than it can allocate.
//!
//! Source: `pkg/scheduler/framework/plugins/noderesources/fit.go`.

use std::sync::Arc;

use super::constraint::{Around, Constraint, Differences, Fit, NodeView, Placing, Waiting};
use super::template::Template;
use super::usage::{is_sure_to_have_room, selectors_of};
use crate::effects::linear::{STAY, at_most, count, placed_at};
use crate::fields;
use crate::futures::LimitLabel;
use crate::object::Object;

/// The plugin.
pub struct NodeResourcesFit;

impl Constraint for NodeResourcesFit {
    fn filter(&self, own: &Template, node: &NodeView<'_>) -> Fit {
        Fit::Takes(node.usage.room(own, node.node, node.number))
    }

    /// What is taken of nodes changes the room that [`Self::filter`] finds there.
    fn distinguishes<'t>(&self, _: &Around<'t, '_>, _: &mut Differences<'t>) {}

    /// A place takes no more pods than it has room for, beside those of the group that stay there: its room is that without
    /// any pod that the labels of the templates mean.
    fn limits(&self, placing: &mut Placing<'_, '_, '_>) {
        let own = placing.own;
        let is_selected_by = selectors_of(&placing.builder.templates);
        let takes_as_much = |pod: &Object| {
            let amount = |name: &str| pod.val().get("spec").map_or(0, |spec| fields::requests(spec, name));
            own.ports.is_empty()
                && is_selected_by.iter().any(|selector| selector.matches(pod.labels()))
                && own.requests.iter().all(|(name, each)| amount(name) >= *each)
                && own.others.iter().all(|(name, each)| amount(name) >= *each)
        };
        for (at, room) in own.room.iter().enumerate() {
            let (Some(most), true) = (room.most, own.admits(at)) else { continue };
            let Some(place) = placing.builder.group.places.get(at) else { continue };
            let nodes = i64::try_from(place.nodes.len()).unwrap_or(i64::MAX);
            let node = place.nodes.first().cloned().unwrap_or_else(|| "".into());
            let bound = most.saturating_mul(nodes);
            let existing = placing.topology.existing.iter();
            let here = existing.filter(|(_, pod)| place.nodes.contains(&pod.node) && takes_as_much(pod));
            let here: Vec<usize> = here.map(|(entity, _)| *entity).collect();
            let staying = placing.builder.gather(&here).map(|existing| count(existing, &STAY));
            let new = placed_at(placing.set, &[at]);
            let taken = staying.into_iter().chain([new.clone()]).collect();
            // what is on a node stays, however little room it has by now
            placing.limit(LimitLabel::Capacity { node }, vec![at_most(vec![new], 0), at_most(taken, bound)]);
        }
    }

    /// Only nodes that are full keep a pod waiting: `pending` says which.
    fn may_block(&self, _: &Waiting<'_, '_, '_>) -> bool {
        false
    }

    fn is_sure(&self, own: &Template, node: &Object, others: &[&Arc<Object>]) -> bool {
        is_sure_to_have_room(own, node, others)
    }
}
