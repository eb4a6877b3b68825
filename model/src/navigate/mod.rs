//! How invariants and effects navigate a cluster: pure functions over a [`State`](crate::state::State). What an object says
//! by itself stands in [`fields`](crate::fields).
//!
//! Where a function would conclude that something does not exist, it says [`UnknownKind`] if that kind was not read;
//! where it lists objects, a sibling (`unread_users`, `unread_owners`) says of which kinds more may exist.

mod autoscalers;
mod budgets;
mod capacity;
mod claims;
mod confirmed;
mod definitions;
mod hosts;
mod known;
mod owners;
mod placement;
mod possible;
mod replicas;
mod rights;
mod selection;
mod standing;
mod template;
mod users;

pub use autoscalers::{autoscaled_range, autoscalers, replica_range, scale_target, scaled, scaler_range};
pub(crate) use budgets::child_workloads;
pub use budgets::{
    BudgetPods, budget_pods, counted, counted_workloads, disruptions_when_settled, has_scale, is_always_scaled,
    labelled_maker, pods_wanted, unscaled,
};
pub use capacity::{
    admitted_spec, admitting, counts, deciding, default_class, is_made, is_workload, may_be_priority, most_wanted,
    refusals, surge, workloads,
};
pub use claims::{claims_of, goes_with_pod, volume};
pub use confirmed::{confirming, is_confirmed, meant};
pub use definitions::{definition_of, definitions_of_scales, instances, scale_path};
pub use hosts::{HostClaim, host_claimants, host_claims, host_claims_as_named, host_rivals};
pub use known::{UnknownKind, failing_adapters, known};
pub use owners::{
    adopting_deployment, all_above, controller_of, directly_above, is_below, is_never_collected,
    leaves_with_controller, owner_object, owner_resolves, parents, top_controller, unread_owners, wanted_by,
};
pub use placement::{
    admitted_nodes, daemon_nodes, daemon_pod_on, differs_beyond_cordon, differs_beyond_scheduling, keeps_daemon_pod,
    matters_to_daemon_set, zone,
};
pub use possible::{follows_pods, placing, possible_nodes};
pub use replicas::wanted_replicas;
pub use rights::{entitled, granting, rights_lost};
pub use selection::{endpoint_slices, endpoints, listed_endpoints, pods_owned_by, selected, selected_by, selector_of};
pub use standing::{may_stand_for, standing_selector};
pub use template::{pod_spec, same_template, template_labels, template_of};
pub(crate) use users::users;
pub use users::{is_made_again, resolves, unread_users, writers};

#[cfg(test)]
mod tests;
