//! The plugins of the scheduler whose rules are hard.

use super::affinity::{ExistingPodsAntiAffinity, InterPodAffinity};
use super::constraint::Constraint;
use super::gates::SchedulingGates;
use super::node_affinity::NodeAffinity;
use super::ports::NodePorts;
use super::resources::NodeResourcesFit;
use super::spread::PodTopologySpread;
use super::taints::TaintToleration;
use super::volumes::VolumeBinding;

/// All of them, in the order in which their limits are written down. The first one says which nodes are places at all.
pub const PLUGINS: [&dyn Constraint; 9] = [
    &NodeAffinity,
    &TaintToleration,
    &SchedulingGates,
    &VolumeBinding,
    &NodeResourcesFit,
    &InterPodAffinity,
    &PodTopologySpread,
    &ExistingPodsAntiAffinity,
    &NodePorts,
];
