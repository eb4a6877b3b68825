//! What decisions are made by at one time: the policy that compiles, what it reads, and what was left out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_encode::analysis::Analysis;
use suture_model::kinds::Kind;

use super::resources::ResourceName;
use crate::no_op::RelevantFields;
use crate::policy::Policy;

/// Which kinds are to be followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// These.
    pub kinds: BTreeSet<Kind>,
    /// And all others that the cluster serves, custom ones included.
    pub every: bool,
}

/// What decisions are made by at one time.
#[derive(Debug)]
pub struct Loaded {
    /// The invariants, adapters and exemptions that compile.
    pub policy: Policy,
    /// What is known of its invariants, in their order.
    pub analyses: Arc<[Analysis]>,
    /// What has to be told apart.
    pub relevant_fields: RelevantFields,
    /// Which load this is; engines are made anew when it rises.
    pub generation: u64,
    /// The kinds that they read.
    pub wanted: Wanted,
    /// Those of them that nothing reads but what a definition says of their scale: no decision waits for them.
    pub beside: BTreeSet<Kind>,
    /// The kinds that each invariant reads, in their order.
    pub reads: Vec<ReadKinds>,
    /// What does not compile and is left out.
    pub problems: Vec<Problem>,
    /// The resources of the cluster, whether they compile or not.
    pub resources: BTreeMap<ResourceName, Edition>,
}

/// The kinds that an invariant reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadKinds {
    /// Those that it names, and that the effects read for it.
    pub kinds: BTreeSet<Kind>,
    /// Whether it reads all others as well.
    pub every: bool,
}

/// A document that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `Kind/name` or `Kind/namespace/name`.
    pub resource: String,
    /// What is wrong with it.
    pub message: String,
}

/// Which edition of a resource it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edition {
    /// Its uid: another one of the same name has another.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
}

#[cfg(test)]
impl Loaded {
    /// The same, by which no kind is wanted: a test tells which are.
    pub fn wanting_nothing(self) -> Self {
        Self { wanted: Wanted::default(), ..self }
    }
}
