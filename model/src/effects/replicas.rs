//! ReplicaSets, ReplicationControllers and Deployments: scale-down by rank, rolling update within maxUnavailable, replacement of lost pods.
//!
//! Sources: `pkg/controller/controller_utils.go` (`ActivePodsWithRanks`: not assigned, pending, not ready, cheaper pods
//! go first, then those that share their node with more of the same workload, where nothing else moves; what orders equals
//! beyond that depends on time and is left open), `pkg/controller/deployment/rolling.go`,
//! `.../util/deployment_util.go` (maxUnavailable rounds down, maxSurge up, both zero means one may be unavailable),
//! `.../recreate.go`. Over-approximations: pods of any old revision may go during a rolling update as long as enough stay
//! ready, those of the newest one as well where it may not have been the newest for the controller, or where the number of
//! replicas changes meanwhile; a ReplicaSet may make as many pods as it lacks at any moment; readiness stands for
//! availability.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::custom::Wish;
use super::scaling::Rollout;
use super::{
    Builder, LOST, Standing, at_least, at_most, count, mark_unready, pods_of, replica_sets_of, scaled, template,
};
use crate::annotations;
use crate::futures::{Count, Entity, FateKind, LimitLabel, Linear, SetId};
use crate::navigate;
use crate::object::{Key, Object};
use crate::value::{Str, Val};

/// Kinds, beside the controllers of pods, whose objects make pods come and go.
const MOVING: [&str; 5] = ["Pod", "Node", "Namespace", "HorizontalPodAutoscaler", "CustomResourceDefinition"];

/// What the controller intends with the pods of one ReplicaSet.
struct ScalePlan {
    /// How many pods are in excess and will be removed, by rank.
    excess: i64,
    /// How many pods it may still make.
    missing: i64,
    /// Whether fewer may be removed in the end.
    open: bool,
    /// How many pods are on each node, if that decides which go.
    pods_per_node: Rc<BTreeMap<Str, i64>>,
}

/// The pods of a ReplicaSet that no Deployment controls, or of a ReplicationController, whose manager is the same
/// (`pkg/controller/replication/replication_controller.go`).
pub fn replica_set(builder: &mut Builder<'_, '_>, set: &Arc<Object>) {
    let own = replicas(set);
    let goal = desired_replicas(builder, set);
    let pods = pods_of(builder.state(), set);
    let scale_plan = if set.live() {
        let open = goal.least != goal.most || may_be_late(builder, set, &pods);
        let scale_plan = scale_plan(builder, set, &pods, own.min(goal.least), goal.most);
        let still = !open && goal.most == own && scale_plan.excess > 0;
        let near = || pods_per_node(builder, set, std::slice::from_ref(set), std::slice::from_ref(&pods));
        ScalePlan { open, pods_per_node: if still { near() } else { Rc::default() }, ..scale_plan }
    } else {
        idle()
    };
    register(builder, set, &scale_plan);
    builder.place(&pods, scale_plan.missing);
    builder.max_live_pods = Some(max_live_pods(builder, set, &pods, goal.most.max(own)));
    let kept = builder.set();
    let age = builder.set();
    let fresh = add_set(builder, set, &pods, &scale_plan, kept, age, false);
    settle(builder, set.key.clone(), &[kept, fresh], goal, set.live(), None);
}

/// The pods of a Deployment, through all its ReplicaSets.
pub fn deployment(builder: &mut Builder<'_, '_>, deployment: &Arc<Object>) {
    let state = builder.state();
    let desired_replicas = desired_replicas(builder, deployment);
    let wanted = desired_replicas.most;
    let sets = replica_sets_of(state, deployment);
    let template = deployment.val().at(&["spec", "template"]).cloned().unwrap_or_default();
    let current = newest(&sets, &template);
    let paused = deployment.val().bool_at(&["spec", "paused"]).unwrap_or(false);
    let pods: Vec<Vec<Arc<Object>>> = sets.iter().map(|set| pods_of(state, set)).collect();
    let recreate = is_recreate(deployment);
    // an old one is left behind once its number is 0 (`rolling.go`, `reconcileOldReplicaSets`); Recreate waits for its pods
    // as well, but for those that have finished (`recreate.go`, `oldPodsRunning`)
    let remains = |set: &Object, pods: &[Arc<Object>]| {
        replicas(set) > 0 || (recreate && pods.iter().any(|pod| !super::hazard::finished(pod)))
    };
    let mut each = sets.iter().zip(&pods).enumerate();
    let old_remains = each.any(|(at, (set, pods))| Some(at) != current && set.live() && remains(set, pods));
    let live = deployment.live();
    let rolling = live && !paused && old_remains;
    // the newest one is scaled up only, unless it has more than the Deployment wants (`rolling.go`, `reconcileNewReplicaSet`)
    let grows = current.filter(|_| is_steady(builder, deployment, &sets, desired_replicas));

    let surge = max_surge(deployment, wanted);
    let (goals, settled) = if paused {
        let (mut goals, mut settled) = paused_goals(&sets, current, wanted, (!recreate).then_some(surge));
        if sets.iter().any(|set| !set.live()) {
            // a ReplicaSet that is being deleted makes no pods, whatever it is scaled to (`replica_set.go`, `syncReplicaSet`)
            goals.iter_mut().zip(&sets).filter(|(_, set)| !set.live()).for_each(|(goal, _)| goal.least = 0);
            settled.least = settled.least.min(goals.iter().map(|goal| goal.least).sum());
        }
        goals
            .iter_mut()
            .chain([&mut settled])
            .for_each(|goal| goal.least = (goal.least - (wanted - desired_replicas.least)).max(0));
        (goals, settled)
    } else {
        let goal = |(at, set): (_, &Arc<Object>)| match Some(at) == current {
            true if !rolling => desired_replicas,
            true => Goal { least: replicas(set).min(desired_replicas.least), most: replicas(set) },
            false => Goal::of(replicas(set)),
        };
        (sets.iter().enumerate().map(goal).collect(), desired_replicas)
    };

    let mut scale_plans = Vec::new();
    for ((set, pods), goal) in sets.iter().zip(&pods).zip(&goals) {
        scale_plans.push(if live && set.live() {
            // until the Deployment's controller comes round, the ReplicaSet goes by its own number
            let high = if builder.after() { goal.most } else { goal.most.max(replicas(set)) };
            let open = rolling || goal.least != goal.most || may_be_late(builder, set, pods);
            ScalePlan { open, ..scale_plan(builder, set, pods, goal.least.min(replicas(set)), high) }
        } else {
            idle()
        });
    }
    let still = !rolling
        && !paused
        && current.is_some()
        && (desired_replicas.least, desired_replicas.most) == (replicas(deployment), wanted);
    if still && scale_plans.iter().any(|scale_plan| scale_plan.excess > 0) {
        let pods_per_node = pods_per_node(builder, deployment, &sets, &pods);
        scale_plans.iter_mut().for_each(|scale_plan| scale_plan.pods_per_node = pods_per_node.clone());
    }
    // a paused Deployment makes no ReplicaSet; the newest one never gets more than all that is wanted
    // (`deployment_util.go`, `NewRSNewReplicas`), but for its share where the Deployment is scaled meanwhile
    let before = state.base().get(&deployment.key).map_or(0, |before| replicas(before));
    let grown = current.and_then(|at| sets.get(at)).filter(|set| set.live()).map_or(0, |set| replicas(set));
    let most_new = match interrupted_rollout(builder, deployment, &sets, current, desired_replicas) {
        Some(_) => wanted.saturating_add(surge),
        None => (wanted.max(before) - grown).max(0),
    };
    let fresh_template = (live && !paused && (rolling || sets.is_empty() || current.is_none()))
        .then(|| (builder.template(&template), most_new));
    for (set, scale_plan) in sets.iter().zip(&scale_plans) {
        register(builder, set, scale_plan);
    }
    let missing: i64 = scale_plans.iter().map(|i| i.missing).sum();
    builder.place(pods.iter().flatten(), missing.saturating_add(fresh_template.map_or(0, |(_, pods)| pods)));
    // while it rolls a ReplicaSet may lag behind what it is scaled to, and there is no telling
    builder.max_live_pods = (!rolling && fresh_template.is_none()).then(|| {
        let each = sets.iter().zip(&pods).zip(&goals);
        each.fold(0_i64, |sum, ((set, pods), goal)| {
            sum.saturating_add(max_live_pods(builder, set, pods, goal.most.max(replicas(set))))
        })
    });

    let kept = builder.set();
    let mut fresh = Vec::new();
    let (old, newest) = (builder.set(), builder.set());
    for (at, ((set, pods), scale_plan)) in sets.iter().zip(&pods).zip(&scale_plans).enumerate() {
        let age = if Some(at) == current { newest } else { old };
        fresh.push(add_set(builder, set, pods, scale_plan, kept, age, rolling && Some(at) != grows));
    }
    if let Some(at) = current.filter(|at| paused && live && is_full(&sets, *at, wanted)) {
        // the old ones are scaled to 0 once all pods of the newest one are ready (`deployment_util.go`, `IsSaturated`)
        let ready: Vec<_> = std::iter::once(newest).chain(fresh.get(at).copied()).map(ready_in).collect();
        // one that is lost may have been ready by then; a request does not wait for that
        let is_lost = |pod: &&Arc<Object>| {
            !may_choose(builder, pod) && (pod.ready() || builder.standing(pod) == Standing::AtRisk)
        };
        let lost = pods.get(at).map_or(0, |pods| pods.iter().filter(is_lost).count());
        let full = wanted - i64::try_from(lost).unwrap_or(i64::MAX);
        let others = sets.iter().zip(&pods).zip(&scale_plans).enumerate().filter(|(number, _)| *number != at);
        let beyond = |((set, pods), scale_plan): ((&Arc<Object>, &Vec<_>), &ScalePlan)| {
            (chosen_count(builder, pods) - replicas(set)).clamp(0, scale_plan.excess)
        };
        let beyond: i64 = others.map(|(_, other)| beyond(other)).sum();
        let shrinks: i64 = (sets.iter().map(|set| replicas(set)).sum::<i64>() - wanted - surge).max(0);
        let free = beyond.saturating_add(shrinks);
        let label = LimitLabel::ScaleDownRemoves { workload: deployment.key.clone(), pods: free };
        builder.limit(label, vec![at_most(vec![count(old, &LOST)], free), at_least(ready, full)]);
    }
    if let Some((template, pods)) = fresh_template {
        fresh.push(add_new(builder, deployment.key.clone(), template, pods));
    }
    let mut counted = vec![kept];
    counted.extend(&fresh);
    if rolling && !recreate {
        let floor = Floor {
            wanted: desired_replicas.least,
            unavailable: max_unavailable(deployment, desired_replicas.least, surge),
            surge: max_surge(deployment, desired_replicas.least),
            released: ready_released(builder, &sets),
            interrupted_rollout: interrupted_rollout(builder, deployment, &sets, current, desired_replicas),
        };
        rollout_floor(builder, deployment, &pods, &scale_plans, floor, &counted);
    }
    let mut surplus = None;
    if rolling && builder.after() {
        let label = LimitLabel::Settled { workload: deployment.key.clone(), wanted };
        let mut any_of = vec![at_most(vec![count(old, &THERE)], 0)];
        if !recreate {
            // a rollout hangs on a new pod that never becomes ready, with as many pods as the surge allows
            let unready: Vec<_> = fresh.iter().map(|set| count(*set, &[FateKind::NewUnready])).collect();
            any_of.push(at_least(unready.clone(), 1));
            surplus = Some((unready, surge));
        }
        builder.limit(label, any_of);
    }
    settle(builder, deployment.key.clone(), &counted, settled, live, surplus);
}

fn is_recreate(deployment: &Object) -> bool {
    deployment.val().str_at(&["spec", "strategy", "type"]).is_some_and(|kind| &**kind == "Recreate")
}

/// The ReplicaSet of a Deployment's template: the oldest one that was made from it
/// (`deployment_util.go`, `FindNewReplicaSet`, `ReplicaSetsByCreationTimestamp`).
fn newest(sets: &[Arc<Object>], template: &Val) -> Option<usize> {
    let made = sets.iter().enumerate().filter(|(_, set)| is_made_from(set, template));
    made.min_by_key(|(_, set)| &set.created).map(|(at, _)| at)
}

/// Whether what a Deployment wants is what its controller has gone by so far, or more: the same template, and no lower
/// number. Where they change otherwise, pods of what is the newest revision now may have gone as those of an old one, or go
/// in proportion (`sync.go`, `scale`).
fn is_steady(builder: &Builder<'_, '_>, deployment: &Object, sets: &[Arc<Object>], desired_replicas: Goal) -> bool {
    let before = builder.state().base().get(&deployment.key).filter(|before| before.uid == deployment.uid);
    let own = replicas(deployment);
    let all = |of: &Object| replicas(of).saturating_add(max_surge(of, replicas(of)));
    let no_fewer = |before: &Object| replicas(before) <= own && all(before) <= all(deployment);
    let steps = builder.scenario.steps.iter().filter(|step| step.objects.contains(&deployment.key)).count();
    before.is_some_and(|before| !before.unobserved() && no_fewer(before))
        && steps <= 1
        && (desired_replicas.least, desired_replicas.most) == (own, own)
        && !builder.scenario.template_changes.contains_key(&deployment.key)
        && !adopts_any(sets)
}

/// How many pods a ReplicaSet is to have in the end: a number in this range.
#[derive(Clone, Copy)]
struct Goal {
    least: i64,
    most: i64,
}

impl Goal {
    fn of(pods: i64) -> Self {
        Self { least: pods, most: pods }
    }
}

/// What the ReplicaSets of a paused Deployment are scaled to, each and together: it is not rolled, but it is scaled
/// (`pkg/controller/deployment/sync.go`, `scale`: the only active one, or else the newest, gets all replicas; several
/// share replicas and surge in proportion; the old ones go once the new one is saturated). Over-approximation: the
/// proportions are left open.
fn paused_goals(sets: &[Arc<Object>], current: Option<usize>, wanted: i64, surge: Option<i64>) -> (Vec<Goal>, Goal) {
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
            true => Goal { least: if sure { wanted } else { 0 }, most: wanted },
            false => Goal::of(0),
        });
        return (goals.collect(), Goal::of(if sets.is_empty() { 0 } else { wanted }));
    }
    let present: i64 = sets.iter().map(|set| replicas(set)).sum();
    // Recreate shares no replicas
    let allowed = surge.map_or(present, |surge| if wanted > 0 { wanted.saturating_add(surge) } else { 0 });
    let added = allowed - present;
    let saturated = current.is_some_and(|at| is_full(sets, at, wanted));
    let goals = sets.iter().enumerate().map(|(at, set)| Goal {
        least: if saturated && Some(at) != current { 0 } else { (replicas(set) + added.min(0)).max(0) },
        most: replicas(set).saturating_add(added.max(0)),
    });
    let goals: Vec<Goal> = goals.collect();
    let least = goals.iter().map(|goal| goal.least).sum();
    (goals, Goal { least, most: present.max(allowed) })
}

/// Whether a ReplicaSet is scaled to all that its Deployment wants, and there are others that are not at 0.
fn is_full(sets: &[Arc<Object>], at: usize, wanted: i64) -> bool {
    sets.iter().filter(|set| replicas(set) > 0).count() > 1 && sets.get(at).is_some_and(|set| replicas(set) == wanted)
}

/// How far a rollout may go below what is wanted.
struct Floor {
    wanted: i64,
    unavailable: i64,
    surge: i64,
    /// The ready pods that its ReplicaSets release.
    released: i64,
    /// What it was scaled from in the middle of a rollout, with the floor of that.
    interrupted_rollout: Option<(Rollout, i64)>,
}

/// Ready pods, old and new, stay at `replicas - maxUnavailable`, or at what is ready now if that is less, also where the
/// rollout hangs (`rolling.go`, `reconcileOldReplicaSets`: no old one goes beyond that).
fn rollout_floor(
    builder: &mut Builder<'_, '_>,
    deployment: &Object,
    pods: &[Vec<Arc<Object>>],
    scale_plans: &[ScalePlan],
    Floor { wanted, unavailable, surge, released, interrupted_rollout }: Floor,
    counted: &[SetId],
) {
    let ready = |standing: &dyn Fn(Standing) -> bool| -> i64 {
        let found = pods.iter().flatten().filter(|p| p.ready() && standing(builder.standing(p))).count();
        i64::try_from(found).unwrap_or(i64::MAX)
    };
    let (ready_kept, ready_lost) = (ready(&|s| s == Standing::Kept), ready(&|s| s != Standing::Kept));
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

fn ready_released(builder: &Builder<'_, '_>, sets: &[Arc<Object>]) -> i64 {
    let released = sets.iter().flat_map(|set| builder.scenario.released_from(&set.uid));
    let ready = released.filter(|key| builder.state().get(key).is_some_and(|pod| pod.ready())).count();
    i64::try_from(ready).unwrap_or(i64::MAX)
}

/// The rollout that a Deployment may have been in the middle of when it was scaled, if it was, and how many ready pods that
/// kept by itself. A rollout that begins together with the scaling is not: its one ReplicaSet is scaled first.
fn interrupted_rollout(
    builder: &Builder<'_, '_>,
    deployment: &Object,
    sets: &[Arc<Object>],
    current: Option<usize>,
    desired_replicas: Goal,
) -> Option<(Rollout, i64)> {
    let scenario = builder.scenario;
    let before = scenario.state.base().get(&deployment.key).filter(|before| before.uid == deployment.uid);
    // of ReplicaSets that it adopts it is not known what they were scaled for
    let seen = before.filter(|before| !before.unobserved() && !adopts_any(sets));
    let is_scaled = seen
        .is_none_or(|before| (desired_replicas.least, desired_replicas.most) != (replicas(before), replicas(before)));
    let active: Vec<usize> = (0..sets.len()).filter(|at| sets.get(*at).is_some_and(|set| replicas(set) > 0)).collect();
    let began = scenario.template_changes.contains_key(&deployment.key) && scenario.steps.len() > 1;
    if !is_scaled || (active.len() < 2 && !began) {
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
        [one] if current.is_none() => Some((number(one), 0)),
        [a, b] if !began && current == Some(a) => Some((number(b), number(a))),
        [a, b] if !began && current == Some(b) => Some((number(a), number(b))),
        _ => None,
    };
    let kept = own - max_unavailable(before, own, surge);
    Some((Rollout { numbers, ready: 0, most: most.max(sum) }, kept))
}

/// Whether a ReplicaSet is not controlled yet by the Deployment that selects it.
fn adopts_any(sets: &[Arc<Object>]) -> bool {
    sets.iter().any(|set| set.controller().is_none())
}

fn max_surge(deployment: &Object, wanted: i64) -> i64 {
    let field = deployment.val().at(&["spec", "strategy", "rollingUpdate", "maxSurge"]);
    if is_recreate(deployment) { 0 } else { scaled(field, wanted, true, "25%") }
}

fn max_unavailable(deployment: &Object, wanted: i64, surge: i64) -> i64 {
    let field = deployment.val().at(&["spec", "strategy", "rollingUpdate", "maxUnavailable"]);
    let unavailable = scaled(field, wanted, false, "25%");
    if unavailable == 0 && surge == 0 { 1 } else { unavailable }
}

/// Fates in which a pod is there.
const THERE: [FateKind; 5] =
    [FateKind::Stays, FateKind::BecomesReady, FateKind::LosesReadiness, FateKind::NewUnready, FateKind::NewReady];

/// Entities of `set` that are ready: those that were and stay (the set holds no others that stay), became, or are new.
fn ready_in(set: SetId) -> Count {
    count(set, &[FateKind::Stays, FateKind::BecomesReady, FateKind::NewReady])
}

/// `spec.replicas`, 1 when absent.
fn replicas(object: &Object) -> i64 {
    object.val().int_at(&["spec", "replicas"]).unwrap_or(1).max(0)
}

/// How many pods a workload is to have: by its own number, unless custom resources want otherwise.
fn desired_replicas(builder: &Builder<'_, '_>, workload: &Object) -> Goal {
    let own = replicas(workload);
    let asked = super::custom::desired_replicas(builder.scenario, workload, own);
    asked.map_or(Goal::of(own), |Wish { least, most }| Goal { least, most })
}

/// Active pods that a ReplicaSet's controller counts: those that a request removes, releases or takes a node away from are
/// still among them, for the controller may have acted before.
fn present(builder: &Builder<'_, '_>, set: &Object, pods: &[Arc<Object>]) -> i64 {
    let active = pods.iter().filter(|p| !p.terminating() && !super::hazard::finished(p)).count();
    let released = builder.scenario.released_from(&set.uid).count();
    i64::try_from(active.saturating_add(released)).unwrap_or(i64::MAX)
}

/// Whether the controller of a ReplicaSet may as well act after some of its pods have gone: then it removes fewer.
fn may_be_late(builder: &Builder<'_, '_>, set: &Object, pods: &[Arc<Object>]) -> bool {
    let follows = |pod: &Arc<Object>| pod.in_deletion_closure && !builder.scenario.removed.contains(&pod.key);
    pods.iter().any(follows) || builder.scenario.released_from(&set.uid).next().is_some()
}

/// How many pods of a ReplicaSet there are at most at one time: it makes none while it has as many as it wants
/// (`pkg/controller/replicaset/replica_set.go`, `manageReplicas`), now or before the request came.
fn max_live_pods(builder: &Builder<'_, '_>, set: &Object, pods: &[Arc<Object>], most: i64) -> i64 {
    let active = pods.iter().filter(|p| !p.terminating() && !super::hazard::finished(p)).count();
    let before = builder.state().base().get(&set.key).map_or(0, |before| replicas(before));
    i64::try_from(active).unwrap_or(i64::MAX).max(most).max(before)
}

fn idle() -> ScalePlan {
    ScalePlan { excess: 0, missing: 0, open: false, pods_per_node: Rc::default() }
}

fn scale_plan(builder: &Builder<'_, '_>, set: &Object, pods: &[Arc<Object>], low: i64, high: i64) -> ScalePlan {
    let present = present(builder, set, pods);
    let excess = (present - low).max(0);
    let lost = pods.iter().filter(|p| builder.standing(p) != Standing::Kept).count();
    let lost = i64::try_from(lost.saturating_add(builder.scenario.released_from(&set.uid).count())).unwrap_or(i64::MAX);
    let missing = (high - (present - lost - excess)).max(0);
    ScalePlan { excess, missing, ..idle() }
}

/// How many pods of a workload are on each node, by which its ReplicaSets choose what to remove
/// (`replica_set.go`, `getPodsRankedByRelatedPodsOnSameNode`: when they remove some, all at once). Nothing if they may do so
/// more than once, or if pods come, go or are assigned meanwhile: then it is not known how many there will be.
fn pods_per_node(
    builder: &Builder<'_, '_>,
    workload: &Object,
    sets: &[Arc<Object>],
    pods: &[Vec<Arc<Object>>],
) -> Rc<BTreeMap<Str, i64>> {
    let base = builder.state().base();
    let of_base = |object: &Object| base.get(&object.key).map(|before| replicas(before));
    let mut on: BTreeMap<Str, i64> = BTreeMap::new();
    let steps = builder.scenario.steps.iter().filter(|step| step.objects.iter().any(|key| may_move(key, workload)));
    let mut is_still = steps.count() <= 1 && base.get(&workload.key).is_some_and(|o| !o.unobserved());
    for (set, pods) in sets.iter().zip(pods) {
        let mut active = 0;
        for pod in pods.iter().filter(|pod| !pod.terminating() && !super::hazard::finished(pod)) {
            active += 1;
            *on.entry(pod.node.clone()).or_default() += 1;
            is_still &= !pod.node.is_empty() && builder.standing(pod) == Standing::Kept;
        }
        is_still &= of_base(set) == Some(active);
    }
    is_still &= of_base(workload) == Some(on.values().sum());
    Rc::new(if is_still { on } else { BTreeMap::new() })
}

/// Whether what happens to an object may make pods of a workload come or go: not what pods only name, nor what is in
/// another namespace.
fn may_move(key: &Key, workload: &Object) -> bool {
    let is_elsewhere = !key.ns.is_empty() && key.ns != workload.key.ns;
    let moves = MOVING.iter().chain(&super::DECIDING).any(|kind| key.kind.is(kind));
    key.kind.builtin_namespaced().is_none() || (moves && !is_elsewhere)
}

/// Whether a ReplicaSet was made from this pod template: equal but for the label that the Deployment adds.
fn is_made_from(set: &Object, template: &Val) -> bool {
    let hash = ["metadata", "labels", "pod-template-hash"];
    let own = set.val().at(&["spec", "template"]).cloned().unwrap_or_default().without_at(&hash);
    template::same(&own, &template.without_at(&hash))
}

fn register(builder: &mut Builder<'_, '_>, set: &Object, scale_plan: &ScalePlan) {
    let needed = scale_plan.missing > 0;
    if let Some(template) = navigate::template_of(builder.state(), set).filter(|_| needed) {
        builder.template(&template);
    }
}

/// Adds the pods of one ReplicaSet. Ready pods go into `kept`; returns the set of its new pods.
fn add_set(
    builder: &mut Builder<'_, '_>,
    set: &Object,
    pods: &[Arc<Object>],
    scale_plan: &ScalePlan,
    kept: SetId,
    age: SetId,
    removable: bool,
) -> SetId {
    // ranks of the pods that the controller may choose from, lowest first
    let mut ranks: Vec<(Rank, SetId)> = Vec::new();
    let mut removed_sets = Vec::new();
    // equals that are all assigned, or all not, rank alike
    let mut last: Option<(&Arc<Object>, Rank)> = None;
    for pod in pods {
        let chosen = may_choose(builder, pod);
        let mut sets = Vec::new();
        if chosen {
            let alike = |o: &Object| Arc::ptr_eq(&o.body, &pod.body) && o.node.is_empty() == pod.node.is_empty();
            let mut rank = last.filter(|(known, _)| alike(known)).map_or_else(|| rank(pod), |(_, rank)| rank);
            rank.4 = -scale_plan.pods_per_node.get(&pod.node).copied().unwrap_or(0);
            last = Some((pod, rank));
            let ranked = ranks.iter().find(|(known, _)| *known == rank).map(|(_, id)| *id);
            let ranked = ranked.unwrap_or_else(|| {
                let id = builder.set();
                ranks.push((rank, id));
                removed_sets.push(id);
                id
            });
            sets.push(ranked);
            sets.extend([kept, age]);
        }
        let mut entity = builder.existing(pod, &sets, chosen && (removable || scale_plan.excess > 0));
        if chosen && !pod.ready() {
            mark_unready(&mut entity);
        }
        builder.group.entities.push(entity);
    }
    if scale_plan.excess > 0 && !removable {
        limit_scale_down(builder, set, pods, scale_plan, ranks, &removed_sets);
    }
    let template = (scale_plan.missing > 0).then(|| navigate::template_of(builder.state(), set)).flatten();
    match template {
        Some(template) => {
            let template = builder.template(&template);
            add_new(builder, set.key.clone(), template, scale_plan.missing)
        }
        None => builder.set(),
    }
}

fn limit_scale_down(
    builder: &mut Builder<'_, '_>,
    set: &Object,
    pods: &[Arc<Object>],
    scale_plan: &ScalePlan,
    mut ranks: Vec<(Rank, SetId)>,
    removed_sets: &[SetId],
) {
    let workload = set.key.clone();
    let removed = |sets: &[SetId]| -> Vec<Count> { sets.iter().map(|s| count(*s, &LOST)).collect() };
    let label = LimitLabel::ScaleDownRemoves { workload: workload.clone(), pods: scale_plan.excess };
    builder.limit(label, vec![at_most(removed(removed_sets), scale_plan.excess)]);
    if builder.after() && !scale_plan.open {
        builder.limit(
            LimitLabel::ScaleDownRemoves { workload: workload.clone(), pods: scale_plan.excess },
            vec![at_least(removed(removed_sets), scale_plan.excess.min(chosen_count(builder, pods)))],
        );
    }
    ranks.sort();
    for boundary in 1..ranks.len() {
        let (earlier, later) = ranks.split_at(boundary);
        let earlier: Vec<SetId> = earlier.iter().map(|(_, id)| *id).collect();
        let later: Vec<SetId> = later.iter().map(|(_, id)| *id).collect();
        let size = builder.group.entities.iter().filter(|e| e.sets.iter().any(|s| earlier.contains(s))).count();
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let mut terms: Vec<_> = removed(&later).into_iter().map(|c| (1, c)).collect();
        terms.extend(earlier.iter().map(|s| (-1, count(*s, &[FateKind::BecomesReady]))));
        let in_order = Linear { terms, at_most: scale_plan.excess - size };
        let label = LimitLabel::VictimOrder { workload: workload.clone() };
        builder.limit(label, vec![at_most(removed(&later), 0), in_order]);
    }
}

fn chosen_count(builder: &Builder<'_, '_>, pods: &[Arc<Object>]) -> i64 {
    let chosen = pods.iter().filter(|p| may_choose(builder, p)).count();
    i64::try_from(chosen).unwrap_or(i64::MAX)
}

/// Whether the controller counts this pod and may remove it; it leaves alone what has run to its end.
fn may_choose(builder: &Builder<'_, '_>, pod: &Object) -> bool {
    builder.standing(pod) == Standing::Kept && !pod.terminating() && !super::hazard::finished(pod)
}

/// What orders victims independent of time: lower goes first.
type Rank = (bool, u8, bool, i64, i64);

fn rank(pod: &Object) -> Rank {
    let phase = match pod.val().str_at(&["status", "phase"]).map_or("", |s| &**s) {
        "" | "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let cost = pod.annotation(annotations::POD_DELETION_COST).and_then(|c| c.parse().ok());
    (!pod.node.is_empty(), phase, pod.ready(), cost.unwrap_or(0), 0)
}

/// Adds up to `pods` new pods of a template.
fn add_new(builder: &mut Builder<'_, '_>, maker: Key, template: usize, pods: i64) -> SetId {
    let set = builder.set();
    let bound = u32::try_from(pods).unwrap_or(u32::MAX);
    let name = format!("{}-(new)", maker.name);
    let fates = builder.new_fates(template, &name, true);
    builder.group.entities.push(Entity::new(bound, vec![set], fates));
    super::placement::limit(builder, maker, set, template);
    set
}

/// Once settled, the workload has the pods it wants, a number within these (fewer only if the existing ones cannot be
/// replaced); so many more where one of the given pods is there.
fn settle(
    builder: &mut Builder<'_, '_>,
    workload: Key,
    counted: &[SetId],
    Goal { least, most }: Goal,
    live: bool,
    surplus: Option<(Vec<Count>, i64)>,
) {
    if !builder.after() || !live {
        return;
    }
    let counts: Vec<_> = counted.iter().map(|set| count(*set, &THERE)).collect();
    let label = LimitLabel::Settled { workload, wanted: most };
    let mut no_more = vec![at_most(counts.clone(), most)];
    if let Some((pods, surplus)) = surplus {
        builder.limit(label.clone(), vec![at_most(counts.clone(), most.saturating_add(surplus))]);
        no_more.push(at_least(pods, 1));
    }
    builder.limit(label.clone(), no_more);
    let makes_new = builder.group.entities.iter().any(|e| e.object.is_none());
    if makes_new && least > 0 {
        builder.limit(label, vec![at_least(counts, least)]);
    }
}
