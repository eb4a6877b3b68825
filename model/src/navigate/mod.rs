//! How invariants and effects navigate a cluster: pure functions over a [`State`](crate::state::State). What an object says
//! by itself stands in [`fields`](crate::fields).
//!
//! Where a function would conclude that something does not exist, it says [`UnknownKind`] if that kind was not read;
//! where it lists objects, a sibling (`unread_users`, `unread_owners`) says of which kinds more may exist.

mod budgets;
mod claims;
mod definitions;
mod hosts;
mod known;
mod owners;
mod placement;
mod replicas;
mod selection;
mod template;
mod users;

pub(crate) use budgets::child_workloads;
pub use budgets::{
    BudgetPods, budget_pods, counted_workloads, disruptions_when_settled, has_scale, labelled_maker, pods_wanted,
    replica_range,
};
pub use claims::{claim_of, goes_with_pod, volume};
pub use definitions::{definition_of, instances, scale_path};
pub use hosts::{HostClaim, host_claimants, host_claims, host_rivals};
pub use known::{UnknownKind, known};
pub use owners::{
    adopting_deployment, controller_of, is_never_collected, leaves_with_controller, owner_object, owner_resolves,
    parents, top_controller, unread_owners, wanted_by,
};
pub use placement::{admitted_nodes, daemon_nodes, keeps_daemon_pod, zone};
pub use replicas::wanted_replicas;
pub use selection::{endpoints, listed_endpoints, pods_owned_by, selected, selector_of};
pub use template::{pod_spec, template_labels, template_of};
pub(crate) use users::users;
pub use users::{is_made_again, resolves, unread_users};

pub use crate::controllers::statefulset::{ordinals, pod_ordinal, rolls_out};
// until their callers name `fields`
pub use crate::fields::{
    SCHEDULING, Tolerance, amount, anti_affinity, claim_ordinal, claims_wanted, daemon_pod_spec, defined_kind,
    deletes_when_deleted, deletes_when_scaled, disruptions_allowed, finished, gives_up, hosts_of, makes_no_more,
    node_zone, orphans, requested, requests, restricts_nodes, same_template, served_versions, template_path, tolerance,
    tolerates, volume_admits, volume_affinity, wants_claim,
};

#[cfg(test)]
mod tests;
