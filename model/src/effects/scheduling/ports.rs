//! NodePorts: a node gives a port to one pod at a time.
//!
//! Source: `pkg/scheduler/framework/plugins/nodeports/node_ports.go`. Over-approximations: that pods of other workloads have
//! a port is not relied on, but may keep a pod pending; ports of init containers may always leave a pod pending.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::constraint::{Around, Constraint, Differences, Fit, NodeView, Placing, Waiting};
use super::host_port::ports_of;
use super::template::Template;
use crate::effects::linear::always;
use crate::fields::HOSTNAME;
use crate::futures::LimitLabel;
use crate::kinds::Kind;
use crate::object::{Body, Object};
use crate::state::State;
use crate::value::Str;

/// The plugin.
pub struct NodePorts;

impl Constraint for NodePorts {
    fn filter(&self, own: &Template, node: &NodeView<'_>) -> Fit {
        Fit::Takes(own.room_by_ports(node.number))
    }

    fn distinguishes<'t>(&self, around: &Around<'t, '_>, found: &mut Differences<'t>) {
        found.taken = where_ports_are_taken(around.survivals.state(), around.templates);
    }

    /// Where an existing pod of the group has a port, no new one comes that wants it.
    fn limits(&self, placing: &mut Placing<'_, '_, '_>) {
        let (own, topology) = (placing.own, placing.topology);
        if own.ports.is_empty() {
            return;
        }
        for (value, places) in topology.domains(HOSTNAME) {
            let found = topology.existing_in(HOSTNAME, &value, |pod| own.wants_port_of(pod));
            let Some(existing) = placing.builder.gather(&found) else { continue };
            placing.yield_to(LimitLabel::HostPorts { workload: placing.maker.clone() }, &places, existing);
        }
        let (state, inside) = (placing.builder.state(), topology.inside());
        for at in 0..placing.builder.group.places.len() {
            let Some(place) = placing.builder.group.places.get(at) else { continue };
            let keeps =
                |pod: &&Arc<Object>| !inside.contains(&pod.key) && own.wants_port_of(pod) && placing.may_be_there(pod);
            let is_taken = place.nodes.iter().any(|node| state.pods_on(node).iter().any(keeps));
            if is_taken {
                placing.block(&[at], &always());
            }
        }
    }

    fn may_block(&self, waiting: &Waiting<'_, '_, '_>) -> bool {
        has_init_ports(waiting.own)
    }

    fn is_sure(&self, own: &Template, _: &Object, others: &[&Arc<Object>]) -> bool {
        !has_init_ports(own) && !others.iter().any(|pod| own.wants_port_of(pod))
    }
}

fn has_init_ports(own: &Template) -> bool {
    ports_of(own.spec(), "initContainers").next().is_some()
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
