//! What pods take of a node.

use crate::fields::{finished, requests_of};
use crate::object::Object;

/// What pods take of a node. Pods that have run to their end take nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many pods.
    pub pods: i64,
    /// Requested cpu, in milli.
    pub cpu: i64,
    /// Requested memory, in bytes.
    pub memory: i64,
}

impl Usage {
    /// This and so many times another.
    #[must_use]
    pub fn plus(self, other: Self, times: i64) -> Self {
        let sum = |a: i64, b: i64| a.saturating_add(b.saturating_mul(times));
        Self { pods: sum(self.pods, other.pods), cpu: sum(self.cpu, other.cpu), memory: sum(self.memory, other.memory) }
    }

    /// What a pod takes.
    pub fn of(pod: &Object) -> Self {
        let mut usage = Self::default();
        usage.add(pod, 1);
        usage
    }

    /// Whether something else is taken of a node once an object is another one, came or went.
    pub fn differs(before: Option<&Object>, after: Option<&Object>) -> bool {
        let taken = |object: Option<&Object>| object.map(|object| (object.node.clone(), Self::of(object)));
        taken(before) != taken(after)
    }

    /// Adds a pod so many times.
    pub fn add(&mut self, pod: &Object, times: i64) {
        if !pod.key.kind.is("Pod") || finished(pod) {
            return;
        }
        let (cpu, memory) = requests_of(pod);
        self.pods += times;
        self.cpu = self.cpu.saturating_add(cpu.saturating_mul(times));
        self.memory = self.memory.saturating_add(memory.saturating_mul(times));
    }
}
