//! SchedulingGates: somebody else opens a gate, or does not.

use std::sync::Arc;

use super::constraint::{Around, Constraint, Differences, Fit, NodeView, Placing, Waiting};
use super::room::Room;
use super::template::Template;
use crate::object::Object;

/// The plugin.
pub struct SchedulingGates;

impl Constraint for SchedulingGates {
    fn filter(&self, _: &Template, _: &NodeView<'_>) -> Fit {
        Fit::Takes(Room::default())
    }

    /// A gate is the pod's, whatever the node.
    fn distinguishes<'t>(&self, _: &Around<'t, '_>, _: &mut Differences<'t>) {}

    fn limits(&self, _: &mut Placing<'_, '_, '_>) {}

    fn may_block(&self, waiting: &Waiting<'_, '_, '_>) -> bool {
        is_gated(waiting.own)
    }

    fn is_sure(&self, own: &Template, _: &Object, _: &[&Arc<Object>]) -> bool {
        !is_gated(own)
    }
}

fn is_gated(own: &Template) -> bool {
    !own.spec().items_at(&["schedulingGates"]).is_empty()
}
