//! Effects as declarations: for the pods of one workload, which fates each may meet and within which limits.
//!
//! | file | what |
//! |---|---|
//! | `group` | the group of a name, stratum by stratum |
//! | `survival`, `hazard` | what becomes of existing objects whatever their controllers do: deletion, eviction, taint, lost node |
//! | `steady` | on which nodes no pod goes so |
//! | `members` | which pods belong to which workload |
//! | `parents`, `desired`, `template_change` | what custom resources want, by their adapters |
//! | `builder`, `linear`, `memo`, `by_body` | what effects collect, and what is worked out once |
//! | `replica_set` | ReplicaSet and ReplicationController scale-down, replacement |
//! | `deployment`, `rollout` | Deployment rollout (RollingUpdate, Recreate) |
//! | `statefulset` | ordinals, partition, OrderedReady and Parallel, replacement |
//! | `daemonset` | rollout, nodes that come and go |
//! | `remade` | pods of controllers that are not modelled |
//! | `custom` | what an adapter says its operator does when `replicas` falls |
//! | `scheduling` | where new pods may go |
//! | `coarse` | how many may be on nodes that fail, where it is not told where they go |
//!
//! A pod that a request removes is not counted by its controller's arithmetic: the controller may have used its whole
//! allowance before the request lands. The requests of a custom resource's operator are judged like any other, so that
//! what they remove counts for it. Over-approximations stand with each effect.

mod builder;
mod by_body;
mod coarse;
mod custom;
mod daemonset;
mod deployment;
mod desired;
mod group;
mod hazard;
mod linear;
mod members;
mod memo;
mod parents;
mod remade;
mod replica_set;
mod rollout;
pub(crate) mod scheduling;
mod statefulset;
mod steady;
mod survival;
mod template_change;

pub use builder::{DELETION_TIME, View, when_down};
pub(crate) use by_body::ByBody;
pub use coarse::calm;
pub use desired::scaled_down;
pub use group::{group, own};
pub use hazard::{at_risk, not_ready};
pub use members::{group_name, heirs, may_move_pods, namesake, released};
pub use memo::Memo;
pub use scheduling::classifier::{node_classes, nodes_beside_others};
pub use scheduling::host_port::ports_of;
pub use scheduling::new_templates::new_templates;
pub use scheduling::node_classes::{AntiAffinityPresence, Demand, NodeClasses};
pub(crate) use steady::unsteady;
pub use template_change::propagate_template;

pub use crate::controllers::statefulset::ordinal_labels;

#[cfg(test)]
mod tests;
