//! What the ReplicaSet controller intends: how many pods it removes and makes, and which go before others.
//!
//! Sources: `pkg/controller/replicaset/replica_set.go` (`manageReplicas`), `pkg/controller/controller_utils.go`
//! (`FilterActivePods`, `ActivePodsWithRanks`).

use std::sync::Arc;

use super::replicas::ReplicaRange;
use crate::annotations;
use crate::object::Object;

/// How many pods it removes and makes.
pub struct Plan {
    /// So many are in excess and will be removed, by rank.
    pub excess: i64,
    /// So many it may still make.
    pub missing: i64,
}

/// What it does with so many pods, of which so many may be lost whatever it does: it removes what is beyond the fewest that it
/// may want, and makes what lacks to the most.
pub fn plan(present: i64, lost: i64, wanted: ReplicaRange) -> Plan {
    let excess = (present - wanted.least).max(0);
    Plan { excess, missing: (wanted.most - (present - lost - excess)).max(0) }
}

/// Whether it counts a pod.
pub fn is_active(pod: &Object) -> bool {
    !pod.terminating() && !pod.finished()
}

/// How many pods it counts.
pub fn active(pods: &[Arc<Object>]) -> i64 {
    i64::try_from(pods.iter().filter(|pod| is_active(pod)).count()).unwrap_or(i64::MAX)
}

/// What orders victims independent of time: lower goes first.
pub type Rank = (bool, u8, bool, i64, i64);

/// The rank of a pod, the pods of its workload on its node left aside.
pub fn rank(pod: &Object) -> Rank {
    let phase = match pod.val().str_at(&["status", "phase"]).map_or("", |s| &**s) {
        "" | "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let cost = pod.annotation(annotations::POD_DELETION_COST).and_then(|c| c.parse().ok());
    (!pod.node.is_empty(), phase, pod.ready(), cost.unwrap_or(0), 0)
}
