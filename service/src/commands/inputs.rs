//! What several commands read.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::policy::Policy;
use crate::recorded::LiveCluster;
#[cfg(feature = "serve")]
use crate::serve::live;

/// The cluster of the current kubeconfig context.
#[cfg(feature = "serve")]
pub(super) fn live(policy: &Policy) -> Result<LiveCluster, Failure> {
    live::read(policy)
}

#[cfg(not(feature = "serve"))]
pub(super) fn live(_: &Policy) -> Result<LiveCluster, Failure> {
    Err(Failure::invalid("`--state cluster` needs a build with what runs in front of a cluster: `make build`"))
}

/// Standard input can be read once.
pub(super) fn one_standard_input(paths: &[&[PathBuf]]) -> Result<(), Failure> {
    let count = paths.iter().flat_map(|paths| paths.iter()).filter(|path| path.as_os_str() == "-").count();
    if count > 1 { Err(Failure::invalid("only one input can be `-`, standard input")) } else { Ok(()) }
}
