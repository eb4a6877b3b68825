//! Ports that a pod takes of its node.

use crate::value::{Str, Val};

/// A port that a pod takes of its node, which one pod has at a time (`pkg/scheduler/framework/plugins/nodeports/
/// node_ports.go`; with `hostNetwork` every port is one: `pkg/apis/core/v1/defaults.go`, `defaultHostNetworkPorts`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    number: i64,
    protocol: Str,
    /// Of one address; `None` for all.
    address: Option<Str>,
}

impl HostPort {
    /// Whether not both can be had of a node (`pkg/scheduler/framework/types.go`, `HostPortInfo.CheckConflict`).
    pub fn excludes(&self, other: &Self) -> bool {
        let at_one = self.address.is_none() || other.address.is_none() || self.address == other.address;
        at_one && self.number == other.number && self.protocol == other.protocol
    }
}

/// The ports of its node that a pod takes for as long as it runs: those of init containers are left out.
pub fn host_ports(spec: &Val) -> Vec<HostPort> {
    ports_of(spec, "containers").collect()
}

/// The ports of its node that one part of its containers takes.
pub fn ports_of<'v>(spec: &'v Val, part: &str) -> impl Iterator<Item = HostPort> + use<'v> {
    let on_host = spec.bool_at(&["hostNetwork"]).unwrap_or(false);
    let ports = spec.items_at(&[part]).iter().flat_map(|container| container.items_at(&["ports"]));
    ports.filter_map(move |port| {
        let stated = port.int_at(&["hostPort"]).filter(|number| *number > 0);
        let number = stated.or_else(|| port.int_at(&["containerPort"]).filter(|_| on_host))?;
        let address = port.str_at(&["hostIP"]).filter(|ip| !matches!(&***ip, "" | "0.0.0.0"));
        let protocol = port.str_at(&["protocol"]).cloned().unwrap_or_else(|| "TCP".into());
        Some(HostPort { number, protocol, address: address.cloned() })
    })
}
