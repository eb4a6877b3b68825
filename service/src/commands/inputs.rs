//! What several commands read.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use suture_checker::engine::{Engine, Settings};
use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_specs::spec::{OnUndecided, ResourceAdapter};

use crate::arguments::{self, Common, State};
use crate::clock::Clock;
use crate::failure::Failure;
use crate::policy::{self, Policy};
use crate::recorded::{self, LiveCluster, RecordedCluster};
use crate::rules::watched;
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

/// Reads and compiles what must hold.
pub(super) fn load_policy(flags: &arguments::Policy) -> Result<Policy, Failure> {
    let arguments::Policy { profile, invariants, adapters } = flags;
    policy::load(profile.profile(), invariants, adapters)
}

/// The kinds that the policy and the effects read and of which a recorded cluster has no object. A live one was asked, and the
/// header of a dump says what was.
pub(super) fn taken_as_none(policy: &Policy, recorded: &RecordedCluster) -> Vec<String> {
    let RecordedCluster { snapshot, is_live: false, read, .. } = recorded else { return Vec::new() };
    // a shipped adapter says nothing about which kinds a cluster has
    let stated = policy.adapters.stated_kinds();
    let is_met = |kind: &Kind| stated.contains(kind) || !snapshot.list(kind, None).is_empty();
    let of = |adapter: &&ResourceAdapter| is_met(&Kind::new(&adapter.spec.group, &adapter.spec.kind));
    let met = policy.each_adapter().filter(of).cloned().collect();
    let policy = &Policy { written_adapters: met, defined_adapters: Arc::default(), ..policy.clone() };
    let is_none = |kind: &Kind| snapshot.list(kind, None).is_empty() && !snapshot.unknown().contains(&kind.kind);
    let none = watched(policy).into_iter().filter(is_none).map(|kind| kind.to_string());
    let mut none: Vec<String> = none.filter(|kind| !read.contains(kind.as_str())).collect();
    none.sort();
    none
}

/// An engine for a policy.
pub(super) fn engine(common: Common, policy: &Policy, unmodelled: OnUndecided) -> Result<Engine, Failure> {
    let settings = Settings { verbose: common.verbose, unmodelled, ..Settings::default() };
    Engine::new(policy.invariants.clone(), settings).map_err(Failure::invalid)
}

/// The recorded cluster, and the time it is there. The policy takes in what its definitions say.
pub(super) fn load_state(
    state: &State,
    policy: &mut Policy,
    wanted: &BTreeSet<Key>,
) -> Result<(RecordedCluster, Option<Clock>), Failure> {
    let State { state, unknown, time } = state;
    let recorded = recorded::load(state, unknown, wanted, policy, live)?;
    let time = match time {
        Some(time) => Some(Clock::parse(time).map_err(|error| Failure::invalid(format!("--time: {error}")))?),
        None if recorded.is_live => Some(Clock::now()),
        None => recorded.newest,
    };
    Ok((recorded, time))
}
