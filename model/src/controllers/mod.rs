//! What each controller intends with its pods: pure readings of what it observes, for effects, for what is wanted and for what
//! is not.

pub mod daemonset;
pub mod deployment;
pub mod intstr;
pub mod pod_template;
pub mod replicas;
pub mod replicaset;
pub mod rollout;
pub mod statefulset;

#[cfg(test)]
mod tests;
