//! How far a Deployment's rolling update may take down what is ready.
//!
//! Sources: `pkg/controller/deployment/rolling.go`, `.../util/deployment_util.go` (maxUnavailable rounds down, maxSurge up,
//! both zero means one may be unavailable).

use std::sync::Arc;

use super::builder::Builder;
use super::linear::at_least;
use super::replica_set::{ScalePlan, may_choose, ready_in};
use crate::controllers::deployment::{is_recreate, max_surge, max_unavailable};
use crate::controllers::replicas::{ReplicaRange, replicas};
use crate::controllers::rollout::Rollout;
use crate::futures::{LimitLabel, SetId};
use crate::object::Object;

/// How far a rollout may go below what is wanted.
pub struct Floor {
    /// How many pods are wanted.
    pub wanted: i64,
    /// How many of them may be unavailable.
    pub unavailable: i64,
    /// How many there may be beyond.
    pub surge: i64,
    /// The ready pods that its ReplicaSets release.
    pub released: i64,
    /// What it was scaled from in the middle of a rollout, with the floor of that.
    pub interrupted_rollout: Option<(Rollout, i64)>,
}

/// Ready pods, old and new, stay at `replicas - maxUnavailable`, or at what is ready now if that is less, also where the
/// rollout hangs (`rolling.go`, `reconcileOldReplicaSets`: no old one goes beyond that).
pub fn rollout_floor(
    builder: &mut Builder<'_, '_>,
    deployment: &Object,
    pods: &[Vec<Arc<Object>>],
    scale_plans: &[ScalePlan],
    Floor { wanted, unavailable, surge, released, interrupted_rollout }: Floor,
    counted: &[SetId],
) {
    let ready = |stays: bool| -> i64 {
        let found = pods.iter().flatten().filter(|p| p.ready() && builder.survivals.stays_ready(p) == stays).count();
        i64::try_from(found).unwrap_or(i64::MAX)
    };
    let (ready_kept, ready_lost) = (ready(true), ready(false));
    // a ReplicaSet that has more than its number removes its own pods, those that are not ready first
    let unready = |pods: &Vec<Arc<Object>>| {
        let found = pods.iter().filter(|p| !p.ready() && may_choose(builder, p)).count();
        i64::try_from(found).unwrap_or(i64::MAX)
    };
    let taken = |(pods, scale_plan): (&Vec<Arc<Object>>, &ScalePlan)| match scale_plan.excess {
        0 => 0,
        excess => (excess - unready(pods)).max(0),
    };
    let committed: i64 = pods.iter().zip(scale_plans).map(taken).sum();
    // those that are gone may have counted when it took others
    let ready_lost = ready_lost + released;
    let mut kept = ready_kept + ready_lost - committed;
    if let Some((rollout, floor)) = interrupted_rollout {
        kept = Rollout { ready: kept.min(floor).max(0), ..rollout }.left(wanted, surge);
    }
    let floor = kept.min(wanted - unavailable) - ready_lost;
    if floor > 0 {
        let label = LimitLabel::RolloutKeeps { workload: deployment.key.clone(), floor, max_unavailable: unavailable };
        let ready = counted.iter().map(|set| ready_in(*set)).collect();
        builder.limit(label, vec![at_least(ready, floor)]);
    }
}

pub fn ready_released(builder: &Builder<'_, '_>, sets: &[Arc<Object>]) -> i64 {
    let released = sets.iter().flat_map(|set| builder.scenario.released_from(&set.uid));
    let ready = released.filter(|key| builder.state().get(key).is_some_and(|pod| pod.ready())).count();
    i64::try_from(ready).unwrap_or(i64::MAX)
}

/// The rollout that a Deployment may have been in the middle of when it was scaled, if it was, and how many ready pods that
/// kept by itself. A rollout that begins together with the scaling is not: its one ReplicaSet is scaled first.
pub fn interrupted_rollout(
    builder: &Builder<'_, '_>,
    deployment: &Object,
    sets: &[Arc<Object>],
    current: Option<usize>,
    desired_replicas: ReplicaRange,
) -> Option<(Rollout, i64)> {
    let scenario = builder.scenario;
    let before = scenario.seen_by_its_controller(&deployment.key).filter(|before| before.uid == deployment.uid);
    // of ReplicaSets that it adopts it is not known what they were scaled for
    let seen = before.filter(|before| !before.unobserved() && !adopts_any(sets));
    let is_scaled = seen
        .is_none_or(|before| (desired_replicas.least, desired_replicas.most) != (replicas(before), replicas(before)));
    let active: Vec<usize> = (0..sets.len()).filter(|at| sets.get(*at).is_some_and(|set| replicas(set) > 0)).collect();
    let began = scenario.template_changes.contains_key(&deployment.key) && scenario.steps.len() > 1;
    // what is not told how many it is to have may be scaled at any moment of a rollout that begins
    let begins = active.len() == 1 && desired_replicas.is_open();
    if !is_scaled || (active.len() < 2 && !began && !begins) {
        return None;
    }
    let number = |at: usize| sets.get(at).map_or(0, |set| replicas(set));
    let sum = active.iter().fold(0_i64, |sum, at| sum.saturating_add(number(*at)));
    let Some(before) = before else {
        return Some((Rollout { numbers: None, ready: 0, most: sum }, i64::MAX));
    };
    let own = replicas(before);
    let surge = max_surge(before, own);
    let most = own.saturating_add(surge);
    let numbers = match *active {
        _ if seen.is_none() || sum > most || is_recreate(before) => None,
        [one] if current != Some(one) => Some((number(one), 0)),
        [a, b] if !began && current == Some(a) => Some((number(b), number(a))),
        [a, b] if !began && current == Some(b) => Some((number(a), number(b))),
        _ => None,
    };
    let kept = own - max_unavailable(before, own, surge);
    Some((Rollout { numbers, ready: 0, most: most.max(sum) }, kept))
}

/// Whether a ReplicaSet is not controlled yet by the Deployment that selects it.
pub fn adopts_any(sets: &[Arc<Object>]) -> bool {
    sets.iter().any(|set| set.controller().is_none())
}
