//! How invariants and effects navigate a cluster: pure functions over a [`State`].
//!
//! Where a function would conclude that something does not exist, it says [`UnknownKind`] if that kind was not read;
//! where it lists objects, a sibling (`unread_users`, `unread_owners`) says of which kinds more may exist.

mod budgets;
mod definitions;
mod hosts;
mod owners;
pub mod placement;
mod resources;
mod selection;
mod storage;
mod template;
mod users;

pub(crate) use budgets::child_workloads;
pub use budgets::{
    BudgetPods, budget_pods, counted_workloads, disruptions_allowed, disruptions_when_settled, has_scale,
    labelled_maker, pods_wanted, replica_range,
};
pub use definitions::{defined_kind, definition_of, instances, scale_path, served_versions};
pub use hosts::{HostClaim, host_claimants, host_claims, host_rivals, hosts_of};
pub use owners::{
    adopting_deployment, controller_of, is_never_collected, leaves_with_controller, orphans, owner_object,
    owner_resolves, parents, same_template, top_controller, unread_owners, wanted_by,
};
pub use placement::{
    SCHEDULING, Tolerance, admitted_nodes, anti_affinity, daemon_nodes, daemon_pod_spec, keeps_daemon_pod, node_zone,
    restricts_nodes, tolerance, tolerates, volume_admits, volume_affinity, zone,
};
pub use resources::{amount, requested, requests};
pub(crate) use selection::selector_by;
pub use selection::{endpoints, listed_endpoints, pods_owned_by, selected, selector_of};
pub use storage::{
    claim_of, claim_ordinal, claims_wanted, deletes_when_deleted, deletes_when_scaled, gives_up, goes_with_pod,
    ordinals, pod_ordinal, rolls_out, volume, wants_claim,
};
pub use template::{finished, makes_no_more, pod_spec, template_labels, template_of, template_path, wanted_replicas};
pub(crate) use users::users;
pub use users::{is_made_again, resolves, unread_users};

use crate::kinds::Kind;
use crate::state::State;
use crate::value::Str;

/// The answer depends on objects of a kind that was not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("objects of kind `{0}` were not read")]
pub struct UnknownKind(
    /// The short name of the kind.
    pub Str,
);

/// Whether objects of this kind were read at all.
///
/// # Errors
/// When they were not: nothing may be concluded from their absence.
pub fn known(state: &State, kind: &Kind) -> Result<(), UnknownKind> {
    if state.base().unknown().contains(&kind.kind) { Err(UnknownKind(kind.kind.clone())) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
