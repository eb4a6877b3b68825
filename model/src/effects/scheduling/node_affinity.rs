//! NodeName, NodeAffinity: the nodes that a pod names or selects.

use std::sync::Arc;

use super::constraint::{Around, Constraint, Differences, Fit, NodeView, Placing, Waiting};
use super::room::Room;
use super::template::Template;
use crate::fields::names_nodes;
use crate::object::Object;
use crate::selector::node_matches;

/// The plugins.
pub struct NodeAffinity;

impl Constraint for NodeAffinity {
    fn filter(&self, own: &Template, node: &NodeView<'_>) -> Fit {
        let is_named = own.pinned().is_none_or(|name| *name == node.node.key.name);
        let is_selected = is_named && node_matches(own.spec(), node.node);
        if is_selected { Fit::Takes(Room::default()) } else { Fit::NotSelected }
    }

    fn distinguishes<'t>(&self, around: &Around<'t, '_>, found: &mut Differences<'t>) {
        found.by_name |= around.templates.iter().any(|t| names_nodes(t.spec()) || t.pinned().is_some());
    }

    /// A node that is not selected is no place.
    fn limits(&self, _: &mut Placing<'_, '_, '_>) {}

    fn may_block(&self, _: &Waiting<'_, '_, '_>) -> bool {
        false
    }

    /// Its controller chose the node by this rule.
    fn is_sure(&self, _: &Template, _: &Object, _: &[&Arc<Object>]) -> bool {
        true
    }
}
