//! Deployments: rolling update within maxUnavailable, Recreate, scaling while paused, through all their ReplicaSets.
//!
//! Sources: `pkg/controller/deployment/rolling.go`, `.../recreate.go`, `.../sync.go`. Over-approximations: pods of any old
//! revision may go during a rolling update as long as enough stay ready, those of the newest one as well where it may not
//! have been the newest for the controller, or where the number of replicas changes meanwhile.

use std::sync::Arc;

use super::builder::Builder;
use super::linear::{LOST, at_least, at_most, count};
use super::members::{pods_of, replica_sets_of};
use super::replica_set::{
    ScalePlan, THERE, add_new, add_set, chosen_count, idle, limit_scale_up, may_be_late, pods_per_node, range_of,
    ready_in, register, scale_plan, settle,
};
use super::rollout::{Floor, adopts_any, interrupted_rollout, ready_released, rollout_floor};
use super::scheduling::places::place;
use super::survival::Survival;
use crate::controllers::deployment::{is_full, is_recreate, max_surge, max_unavailable, newest, paused_goals};
use crate::controllers::replicas::{ReplicaRange, replicas};
use crate::futures::{FateKind, LimitLabel, SetId};
use crate::object::Object;
use crate::value::Val;

/// A Deployment with its ReplicaSets and their pods.
struct Rolled<'o> {
    deployment: &'o Object,
    sets: Vec<Arc<Object>>,
    pods: Vec<Vec<Arc<Object>>>,
    /// The ReplicaSet of its template.
    current: Option<usize>,
    desired_replicas: ReplicaRange,
    live: bool,
    paused: bool,
    recreate: bool,
    /// Whether pods of old ReplicaSets are there that it replaces.
    rolling: bool,
    surge: i64,
}

/// The sets of entities by which a Deployment's limits count.
struct Sets {
    old: SetId,
    newest: SetId,
    /// The new pods of each ReplicaSet.
    fresh: Vec<SetId>,
}

/// The pods of a Deployment, through all its ReplicaSets.
pub fn deployment(builder: &mut Builder<'_, '_>, deployment: &Arc<Object>) {
    let template = deployment.val().at(&["spec", "template"]).cloned().unwrap_or_default();
    let of = Rolled::of(builder, deployment, &template);
    // the newest one is scaled up only, unless it has more than the Deployment wants (`rolling.go`, `reconcileNewReplicaSet`)
    let grows = of.current.filter(|_| is_steady(builder, deployment, &of.sets, of.desired_replicas));
    let (goals, settled) = of.goals();
    let scale_plans = of.scale_plans(builder, &goals);
    let fresh_template = (of.live && !of.paused && (of.rolling || of.sets.is_empty() || of.current.is_none()))
        .then(|| (builder.template(&template), of.most_new(builder)));
    for (set, scale_plan) in of.sets.iter().zip(&scale_plans) {
        register(builder, set, scale_plan);
    }
    let missing: i64 = scale_plans.iter().map(|i| i.missing).sum();
    place(builder, of.pods.iter().flatten(), missing.saturating_add(fresh_template.map_or(0, |(_, pods)| pods)));
    // while it rolls a ReplicaSet may lag behind what it is scaled to, and there is no telling
    builder.max_live_pods = (!of.rolling && fresh_template.is_none()).then(|| of.max_live_pods(builder, &goals));

    let kept = builder.set();
    let (old, newest) = (builder.set(), builder.set());
    let mut sets = Sets { old, newest, fresh: Vec::new() };
    for (at, ((set, pods), scale_plan)) in of.sets.iter().zip(&of.pods).zip(&scale_plans).enumerate() {
        let age = if Some(at) == of.current { newest } else { old };
        let removable = of.rolling && Some(at) != grows;
        sets.fresh.push(add_set(builder, set, pods, scale_plan, kept, age, removable));
    }
    let is_told = of.live && !of.desired_replicas.is_open();
    if let Some(at) = of.current.filter(|at| of.paused && is_told && is_full(&of.sets, *at, of.desired_replicas)) {
        limit_paused(builder, &of, at, &scale_plans, &sets);
    }
    if let Some((template, pods)) = fresh_template {
        sets.fresh.push(add_new(builder, deployment.key.clone(), template, pods));
    }
    let mut counted = vec![kept];
    counted.extend(&sets.fresh);
    if of.rolling && !of.recreate {
        let least = of.desired_replicas.least;
        let floor = Floor {
            wanted: least,
            unavailable: max_unavailable(deployment, least, of.surge),
            surge: max_surge(deployment, least),
            released: ready_released(builder, &of.sets),
            interrupted_rollout: interrupted_rollout(builder, deployment, &of.sets, of.current, of.desired_replicas),
        };
        rollout_floor(builder, deployment, &of.pods, &scale_plans, floor, &counted);
    }
    let mut surplus = None;
    if of.rolling && builder.after() {
        let label = LimitLabel::Settled { workload: deployment.key.clone(), wanted: of.desired_replicas.most };
        let mut any_of = vec![at_most(vec![count(old, &THERE)], 0)];
        if !of.recreate {
            // a rollout hangs on a new pod that never becomes ready, with as many pods as the surge allows
            let unready: Vec<_> = sets.fresh.iter().map(|set| count(*set, &[FateKind::NewUnready])).collect();
            any_of.push(at_least(unready.clone(), 1));
            surplus = Some((unready, of.surge));
        }
        builder.limit(label, any_of);
    }
    limit_scale_up(builder, deployment.key.clone(), &counted, of.desired_replicas);
    settle(builder, deployment.key.clone(), &counted, settled, of.live, surplus);
}

impl<'o> Rolled<'o> {
    fn of(builder: &Builder<'_, '_>, deployment: &'o Object, template: &Val) -> Self {
        let state = builder.state();
        let desired_replicas = range_of(builder, deployment);
        let sets = replica_sets_of(state, deployment);
        let current = newest(&sets, template);
        let paused = deployment.val().bool_at(&["spec", "paused"]).unwrap_or(false);
        let pods: Vec<Vec<Arc<Object>>> = sets.iter().map(|set| pods_of(state, set)).collect();
        let recreate = is_recreate(deployment);
        // an old one is left behind once its number is 0 (`rolling.go`, `reconcileOldReplicaSets`); Recreate waits for its
        // pods as well, but for those that have finished (`recreate.go`, `oldPodsRunning`)
        let remains = |set: &Object, pods: &[Arc<Object>]| {
            replicas(set) > 0 || (recreate && pods.iter().any(|pod| !pod.finished()))
        };
        let mut each = sets.iter().zip(&pods).enumerate();
        let old_remains = each.any(|(at, (set, pods))| Some(at) != current && set.live() && remains(set, pods));
        let live = deployment.live();
        let rolling = live && !paused && old_remains;
        let surge = max_surge(deployment, desired_replicas.most);
        Self { deployment, sets, pods, current, desired_replicas, live, paused, recreate, rolling, surge }
    }

    /// What the ReplicaSets are scaled to, each and together.
    fn goals(&self) -> (Vec<ReplicaRange>, ReplicaRange) {
        let (sets, wanted) = (&self.sets, self.desired_replicas);
        if !self.paused {
            let goal = |(at, set): (_, &Arc<Object>)| match Some(at) == self.current {
                true if !self.rolling => wanted,
                // a scaling in the middle of a rollout is told by its floor
                true if wanted.is_open() => ReplicaRange { least: replicas(set).min(wanted.most), most: replicas(set) },
                true => ReplicaRange { least: replicas(set).min(wanted.least), most: replicas(set) },
                false => ReplicaRange::of(replicas(set)),
            };
            return (sets.iter().enumerate().map(goal).collect(), wanted);
        }
        let (mut goals, mut settled) = paused_goals(sets, self.current, wanted, (!self.recreate).then_some(self.surge));
        if sets.iter().any(|set| !set.live()) {
            // a ReplicaSet that is being deleted makes no pods, whatever it is scaled to (`replica_set.go`, `syncReplicaSet`)
            goals.iter_mut().zip(sets).filter(|(_, set)| !set.live()).for_each(|(goal, _)| goal.least = 0);
            settled.least = settled.least.min(goals.iter().map(|goal| goal.least).sum());
        }
        let fewer = wanted.most - wanted.least;
        goals.iter_mut().chain([&mut settled]).for_each(|goal| goal.least = (goal.least - fewer).max(0));
        (goals, settled)
    }

    /// What each ReplicaSet does to come there.
    fn scale_plans(&self, builder: &Builder<'_, '_>, goals: &[ReplicaRange]) -> Vec<ScalePlan> {
        let plan = |((set, pods), goal): ((&Arc<Object>, &Vec<Arc<Object>>), &ReplicaRange)| {
            if !self.live || !set.live() {
                return idle();
            }
            // until the Deployment's controller comes round, the ReplicaSet goes by its own number
            let high = if builder.after() { goal.most } else { goal.most.max(replicas(set)) };
            let open = self.rolling || goal.is_open() || may_be_late(builder, set, pods);
            let wanted = ReplicaRange { least: goal.least.min(replicas(set)), most: high };
            ScalePlan { open, ..scale_plan(builder, set, pods, wanted) }
        };
        let mut scale_plans: Vec<ScalePlan> = self.sets.iter().zip(&self.pods).zip(goals).map(plan).collect();
        let wanted = self.desired_replicas;
        let still = !self.rolling
            && !self.paused
            && self.current.is_some()
            && wanted == ReplicaRange::of(replicas(self.deployment));
        if still && scale_plans.iter().any(|scale_plan| scale_plan.excess > 0) {
            let pods_per_node = pods_per_node(builder, self.deployment, &self.sets, &self.pods);
            scale_plans.iter_mut().for_each(|scale_plan| scale_plan.pods_per_node = pods_per_node.clone());
        }
        scale_plans
    }

    /// How many pods may come of the template as it is now: a paused Deployment makes no ReplicaSet; the newest one never
    /// gets more than all that is wanted (`deployment_util.go`, `NewRSNewReplicas`), but for its share where the Deployment
    /// is scaled meanwhile.
    fn most_new(&self, builder: &Builder<'_, '_>) -> i64 {
        let wanted = self.desired_replicas.most;
        let before = builder.state().base().get(&self.deployment.key).map_or(0, |before| replicas(before));
        let grown = self.current.and_then(|at| self.sets.get(at)).filter(|set| set.live());
        let grown = grown.map_or(0, |set| replicas(set));
        match interrupted_rollout(builder, self.deployment, &self.sets, self.current, self.desired_replicas) {
            Some(_) => wanted.saturating_add(self.surge),
            None => (wanted.max(before) - grown).max(0),
        }
    }

    /// How many pods there are at most at one time.
    fn max_live_pods(&self, builder: &Builder<'_, '_>, goals: &[ReplicaRange]) -> i64 {
        let each = self.sets.iter().zip(&self.pods).zip(goals);
        each.fold(0_i64, |sum, ((set, pods), goal)| {
            let most = goal.most.max(replicas(set));
            sum.saturating_add(super::replica_set::max_live_pods(builder, set, pods, most))
        })
    }
}

/// While a Deployment is paused, the old ReplicaSets are scaled to 0 once all pods of the newest one, the one at `at`, are
/// ready (`deployment_util.go`, `IsSaturated`).
fn limit_paused(builder: &mut Builder<'_, '_>, of: &Rolled<'_>, at: usize, scale_plans: &[ScalePlan], by: &Sets) {
    let wanted = of.desired_replicas.most;
    let ready: Vec<_> = std::iter::once(by.newest).chain(by.fresh.get(at).copied()).map(ready_in).collect();
    // one that is lost may have been ready by then; a request does not wait for that
    let is_lost = |pod: &&Arc<Object>| match pod.ready() {
        true => !builder.survivals.stays_ready(pod),
        false => builder.survival(pod) == Survival::MayGo,
    };
    let lost = of.pods.get(at).map_or(0, |pods| pods.iter().filter(is_lost).count());
    let full = wanted - i64::try_from(lost).unwrap_or(i64::MAX);
    let others = of.sets.iter().zip(&of.pods).zip(scale_plans).enumerate().filter(|(number, _)| *number != at);
    let beyond = |((set, pods), scale_plan): ((&Arc<Object>, &Vec<_>), &ScalePlan)| {
        (chosen_count(builder, pods) - replicas(set)).clamp(0, scale_plan.excess)
    };
    let beyond: i64 = others.map(|(_, other)| beyond(other)).sum();
    let shrinks: i64 = (of.sets.iter().map(|set| replicas(set)).sum::<i64>() - wanted - of.surge).max(0);
    let free = beyond.saturating_add(shrinks);
    let label = LimitLabel::ScaleDownRemoves { workload: of.deployment.key.clone(), pods: free };
    builder.limit(label, vec![at_most(vec![count(by.old, &LOST)], free), at_least(ready, full)]);
}

/// Whether what a Deployment wants is what its controller has gone by so far, or more: the same template, and no lower
/// number. Where they change otherwise, pods of what is the newest revision now may have gone as those of an old one, or go
/// in proportion (`sync.go`, `scale`).
fn is_steady(
    builder: &Builder<'_, '_>,
    deployment: &Object,
    sets: &[Arc<Object>],
    desired_replicas: ReplicaRange,
) -> bool {
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
