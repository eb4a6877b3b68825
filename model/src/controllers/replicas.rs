//! How many pods a workload is to have.

use crate::object::Object;

/// A number of pods in this range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaRange {
    /// The fewest.
    pub least: i64,
    /// The most.
    pub most: i64,
}

impl ReplicaRange {
    /// Just so many.
    pub fn of(pods: i64) -> Self {
        Self { least: pods, most: pods }
    }

    /// Any number of both, and in between.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// Whether it is not told how many.
    pub fn is_open(self) -> bool {
        self.least != self.most
    }
}

/// `spec.replicas`, 1 when absent.
pub fn stated_replicas(workload: &Object) -> i64 {
    workload.val().int_at(&["spec", "replicas"]).unwrap_or(1)
}

/// `spec.replicas`, 1 when absent, 0 when negative.
pub fn replicas(workload: &Object) -> i64 {
    stated_replicas(workload).max(0)
}
