//! What the Deployment controller intends with its ReplicaSets.
//!
//! Source: `pkg/controller/deployment/{sync,rolling,recreate}.go`, `.../util/deployment_util.go`.

use std::sync::Arc;

use super::intstr::scaled;
use super::pod_template::same;
use super::replicas::{ReplicaRange, replicas};
use crate::object::Object;
use crate::value::Val;

/// Whether all old pods go before new ones come.
pub fn is_recreate(deployment: &Object) -> bool {
    deployment.val().str_at(&["spec", "strategy", "type"]).is_some_and(|kind| &**kind == "Recreate")
}

/// How many pods there may be beyond so many that are wanted: rounded up.
pub fn max_surge(deployment: &Object, wanted: i64) -> i64 {
    let field = deployment.val().at(&["spec", "strategy", "rollingUpdate", "maxSurge"]);
    if is_recreate(deployment) { 0 } else { scaled(field, wanted, true, "25%") }
}

/// How many pods a workload with a scale has at most by its own number: a Deployment has a surge while it rolls out.
pub fn most_pods(workload: &Object, wanted: i64) -> i64 {
    let surge = if workload.key.kind.is("Deployment") { max_surge(workload, wanted) } else { 0 };
    wanted.saturating_add(surge)
}

/// How many of so many pods may be unavailable: rounded down, and one where neither that nor the surge allows any
/// (`deployment_util.go`, `ResolveFenceposts`).
pub fn max_unavailable(deployment: &Object, wanted: i64, surge: i64) -> i64 {
    let field = deployment.val().at(&["spec", "strategy", "rollingUpdate", "maxUnavailable"]);
    let unavailable = scaled(field, wanted, false, "25%");
    if unavailable == 0 && surge == 0 { 1 } else { unavailable }
}

/// The ReplicaSet of a Deployment's template: the oldest one that was made from it
/// (`deployment_util.go`, `FindNewReplicaSet`, `ReplicaSetsByCreationTimestamp`).
pub fn newest(sets: &[Arc<Object>], template: &Val) -> Option<usize> {
    let made = sets.iter().enumerate().filter(|(_, set)| is_made_from(set, template));
    made.min_by_key(|(_, set)| &set.created).map(|(at, _)| at)
}

/// What the ReplicaSets of a paused Deployment are scaled to, each and together: it is not rolled, but it is scaled
/// (`pkg/controller/deployment/sync.go`, `scale`: the only active one, or else the newest, gets all replicas; several
/// share replicas and surge in proportion; the old ones go once the new one is saturated). Over-approximation: the
/// proportions are left open. Where a range is wanted, they are those for the most.
pub fn paused_goals(
    sets: &[Arc<Object>],
    current: Option<usize>,
    desired: ReplicaRange,
    surge: Option<i64>,
) -> (Vec<ReplicaRange>, ReplicaRange) {
    let wanted = desired.most;
    let active = sets.iter().filter(|set| replicas(set) > 0).count();
    if active <= 1 {
        let newest = sets.iter().map(|set| &set.created).max();
        let all = sets.iter().enumerate().map(|(at, set)| match current {
            _ if active == 1 => replicas(set) > 0,
            Some(current) => at == current,
            None => Some(&set.created) == newest,
        });
        let chosen: Vec<bool> = all.collect();
        let sure = chosen.iter().filter(|c| **c).count() == 1;
        let goals = chosen.iter().map(|chosen| match chosen {
            true => ReplicaRange { least: if sure { wanted } else { 0 }, most: wanted },
            false => ReplicaRange::of(0),
        });
        return (goals.collect(), ReplicaRange::of(if sets.is_empty() { 0 } else { wanted }));
    }
    let present: i64 = sets.iter().map(|set| replicas(set)).sum();
    // Recreate shares no replicas
    let allowed = surge.map_or(present, |surge| if wanted > 0 { wanted.saturating_add(surge) } else { 0 });
    let added = allowed - present;
    let saturated = current.is_some_and(|at| is_full(sets, at, desired));
    let goals = sets.iter().enumerate().map(|(at, set)| ReplicaRange {
        least: if saturated && Some(at) != current { 0 } else { (replicas(set) + added.min(0)).max(0) },
        most: replicas(set).saturating_add(added.max(0)),
    });
    let goals: Vec<ReplicaRange> = goals.collect();
    let least = goals.iter().map(|goal| goal.least).sum();
    (goals, ReplicaRange { least, most: present.max(allowed) })
}

/// Whether a ReplicaSet is scaled to all that its Deployment may want, and there are others that are not at 0.
pub fn is_full(sets: &[Arc<Object>], at: usize, wanted: ReplicaRange) -> bool {
    let is_wanted = |number: i64| (wanted.least..=wanted.most).contains(&number);
    sets.iter().filter(|set| replicas(set) > 0).count() > 1 && sets.get(at).is_some_and(|set| is_wanted(replicas(set)))
}

/// Whether a ReplicaSet was made from this pod template: equal but for the label that the Deployment adds.
fn is_made_from(set: &Object, template: &Val) -> bool {
    let hash = ["metadata", "labels", "pod-template-hash"];
    let own = set.val().at(&["spec", "template"]).cloned().unwrap_or_default().without_at(&hash);
    same(&own, &template.without_at(&hash))
}
