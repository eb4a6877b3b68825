//! Whether pods can be placed, as a question about one concrete cluster: beside what is placed, by the rules of the
//! scheduler's plugins. The effects say where new pods *may* go; this says whether there is a way to place them all.
//!
//! | file | what |
//! |---|---|
//! | `cluster` | which nodes there are, which pods stay on them, what room is left |
//! | `asked` | what new pods of a workload ask for, and how many are missing |
//! | `lacking` | which workloads lack pods |
//! | `rules` | what they require of other pods: affinity, anti-affinity, spreading |
//! | `board`, `build` | nodes as places for them |
//! | `fill`, `greedy`, `search` | how many find a place: a sum, else a greedy witness, else a search with a budget |
//! | `unplaced` | how many of a workload's pods find none, also without some nodes; why |
//! | `too_hard` | that the budget was spent |
//! | `rollout` | whether the first new pod of a rollout finds one |
//! | `priority`, `victims`, `preemption` | whom new pods may preempt |
//!
//! Sources: `pkg/scheduler/framework/plugins`, as in `effects/scheduling`. A pod that may go by itself (it is being deleted, its
//! owner goes, a taint evicts it, its deadline ends it, its node is not ready) counts as gone, so that the answer is the
//! same whether it is there still. Preferences are ignored. Not looked at: limits of volumes per node, resource claims,
//! pods that wait elsewhere and may take the place first.

mod asked;
mod board;
mod build;
mod cluster;
mod fill;
mod greedy;
mod lacking;
mod preemption;
mod priority;
mod rollout;
mod rules;
mod search;
mod too_hard;
mod unplaced;
mod victims;

pub use lacking::Lacking;
pub use preemption::{Preemption, preempted_by, preemption};
pub use priority::{lacking_may_outrank, made_priority, pod_priority, priority};
pub use rollout::blocked_rollout;
pub use rules::may_mean;
pub use too_hard::TooHard;
pub use unplaced::{Question, obstacles, unplaced};

#[cfg(test)]
mod tests;
