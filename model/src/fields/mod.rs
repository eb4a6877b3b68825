//! What one object says by itself: readings of its fields that need no state. A custom resource is read by its adapter.

pub(crate) mod hosts;

mod accounts;
mod budget;
mod definition;
mod finalizers;
mod in_place;
mod quota;
mod resources;
mod scheduling;
mod selector;
mod storage;
mod taints;
mod workload;

pub use accounts::Accounts;
pub use budget::disruptions_allowed;
pub use definition::{defined_kind, defined_scale, path_names, served_versions};
pub use finalizers::orphans;
pub(crate) use finalizers::{FOREGROUND, ORPHAN, is_held, is_held_by_others};
pub use in_place::has_deadline;
pub(crate) use in_place::restarts_containers;
pub use quota::{
    has_no_scopes, quota_resource, quota_scopes_mean, quota_usage, refused_by_limits, unstated, with_limit_defaults,
};
pub(crate) use resources::{allocatable, requests_of};
pub use resources::{amount, requested, requests};
pub use scheduling::{
    HOSTNAME, NodeConstraint, anti_affinity, hard_spreads, lists_namespace, names_nodes, node_constraint, node_matches,
    node_zone, pod_terms, reaches, restricts_nodes, volume_admits, volume_affinity,
};
pub use selector::selected_labels;
pub(crate) use selector::{selector_by, selector_parts};
pub use storage::{
    claim_ordinal, claims_wanted, class_named, deletes_when_deleted, deletes_when_scaled, gives_up, wants_claim,
};
pub use taints::{SCHEDULING, Tolerance, daemon_pod_spec, tolerance, tolerates};
pub use workload::{finished, makes_no_more, pod_spec, same_template, template_path};
pub(crate) use workload::{is_spent, template_labels, template_labels_by};
