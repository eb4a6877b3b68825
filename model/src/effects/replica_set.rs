//! ReplicaSets and ReplicationControllers: scale-down by rank, replacement of lost pods.
//!
//! Source: `pkg/controller/controller_utils.go` (`ActivePodsWithRanks`: not assigned, pending, not ready, cheaper pods
//! go first, then those that share their node with more of the same workload, where nothing else moves; what orders equals
//! beyond that depends on time and is left open). Over-approximations: a ReplicaSet may make as many pods as it lacks at any
//! moment; readiness stands for availability.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::builder::{Builder, mark_unready};
use super::desired::desired_replicas;
use super::linear::{LOST, at_least, at_most, count};
use super::members::{adopts, may_move_pods, pods_of};
use super::scheduling::places::place;
use super::survival::Survival;
use crate::controllers::replicas::{ReplicaRange, replicas};
use crate::controllers::replicaset::{Plan, Rank, active, is_active, plan, rank};
use crate::futures::{Count, Entity, FateKind, LimitLabel, Linear, SetId};
use crate::navigate;
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::value::Str;

/// What the controller intends with the pods of one ReplicaSet.
pub struct ScalePlan {
    /// How many pods are in excess and will be removed, by rank.
    pub excess: i64,
    /// How many pods it may still make.
    pub missing: i64,
    /// Whether fewer may be removed in the end.
    pub open: bool,
    /// How many pods are on each node, if that decides which go.
    pub pods_per_node: Rc<BTreeMap<Str, i64>>,
}

/// The pods of a ReplicaSet that no Deployment controls, or of a ReplicationController, whose manager is the same
/// (`pkg/controller/replication/replication_controller.go`).
pub fn replica_set(builder: &mut Builder<'_, '_>, set: &Arc<Object>) {
    let own = replicas(set);
    let goal = range_of(builder, set);
    let pods = pods_of(builder.state(), set);
    let scale_plan = if set.live() {
        let open = goal.least != goal.most || may_be_late(builder, set, &pods);
        let scale_plan = scale_plan(builder, set, &pods, ReplicaRange { least: own.min(goal.least), ..goal });
        let still = !open && goal.most == own && scale_plan.excess > 0;
        let near = || pods_per_node(builder, set, std::slice::from_ref(set), std::slice::from_ref(&pods));
        ScalePlan { open, pods_per_node: if still { near() } else { Rc::default() }, ..scale_plan }
    } else {
        idle()
    };
    register(builder, set, &scale_plan);
    place(builder, &pods, scale_plan.missing);
    builder.max_live_pods = Some(max_live_pods(builder, set, &pods, goal.most.max(own)));
    let kept = builder.set();
    let age = builder.set();
    let fresh = add_set(builder, set, &pods, &scale_plan, kept, age, false);
    limit_scale_up(builder, set.key.clone(), &[kept, fresh], goal);
    settle(builder, set.key.clone(), &[kept, fresh], goal, set.live(), None);
}

/// Fates in which a pod is there.
pub const THERE: [FateKind; 5] =
    [FateKind::Stays, FateKind::BecomesReady, FateKind::LosesReadiness, FateKind::NewUnready, FateKind::NewReady];

/// Entities of `set` that are ready: those that were and stay (the set holds no others that stay), became, or are new.
pub fn ready_in(set: SetId) -> Count {
    count(set, &[FateKind::Stays, FateKind::BecomesReady, FateKind::NewReady])
}

/// How many pods a workload is to have: by its own number, unless custom resources or autoscalers want otherwise.
pub fn range_of(builder: &Builder<'_, '_>, workload: &Object) -> ReplicaRange {
    let own = replicas(workload);
    desired_replicas(builder.scenario, workload, own).unwrap_or(ReplicaRange::of(own))
}

/// Whether the controller of a ReplicaSet may as well act after some of its pods have gone: then it removes fewer.
pub fn may_be_late(builder: &Builder<'_, '_>, set: &Object, pods: &[Arc<Object>]) -> bool {
    let follows = |pod: &Arc<Object>| pod.in_deletion_closure && !builder.scenario.removed.contains(&pod.key);
    pods.iter().any(follows) || builder.scenario.released_from(&set.uid).next().is_some()
}

/// How many pods of a ReplicaSet there are at most at one time: it makes none while it has as many as it wants
/// (`pkg/controller/replicaset/replica_set.go`, `manageReplicas`), now or before the request came.
pub fn max_live_pods(builder: &Builder<'_, '_>, set: &Object, pods: &[Arc<Object>], most: i64) -> i64 {
    let before = builder.state().base().get(&set.key).map_or(0, |before| replicas(before));
    active(pods).max(most).max(before)
}

/// Nothing to do.
pub fn idle() -> ScalePlan {
    ScalePlan { excess: 0, missing: 0, open: false, pods_per_node: Rc::default() }
}

/// What the controller of a ReplicaSet does with its pods. Those that a request removes, releases or takes a node away from are
/// counted and lost, for the controller may have acted before.
pub fn scale_plan(builder: &Builder<'_, '_>, set: &Object, pods: &[Arc<Object>], wanted: ReplicaRange) -> ScalePlan {
    let released = i64::try_from(builder.scenario.released_from(&set.uid).count()).unwrap_or(i64::MAX);
    let lost = pods.iter().filter(|p| builder.survival(p) != Survival::Stays).count();
    let lost = i64::try_from(lost).unwrap_or(i64::MAX).saturating_add(released);
    let Plan { excess, missing } = plan(active(pods).saturating_add(released), lost, wanted);
    ScalePlan { excess, missing, ..idle() }
}

/// A workload of which it is not told how many pods it is to have never has more than the most that there may be.
pub fn limit_scale_up(builder: &mut Builder<'_, '_>, workload: Key, counted: &[SetId], wanted: ReplicaRange) {
    let Some(most) = builder.max_live_pods.filter(|_| wanted.is_open() && !builder.after()) else { return };
    let there = counted.iter().map(|set| count(*set, &THERE)).collect();
    builder.limit(LimitLabel::ScalesUpTo { workload, pods: most }, vec![at_most(there, most)]);
}

/// How many pods of a workload are on each node, by which its ReplicaSets choose what to remove
/// (`replica_set.go`, `getPodsRankedByRelatedPodsOnSameNode`: when they remove some, all at once). Nothing if they may do so
/// more than once, or if pods come, go or are assigned meanwhile: then it is not known how many there will be.
pub fn pods_per_node(
    builder: &Builder<'_, '_>,
    workload: &Object,
    sets: &[Arc<Object>],
    pods: &[Vec<Arc<Object>>],
) -> Rc<BTreeMap<Str, i64>> {
    let base = builder.state().base();
    let of_base = |object: &Object| base.get(&object.key).map(|before| replicas(before));
    let mut on: BTreeMap<Str, i64> = BTreeMap::new();
    let moves = |key: &Key| {
        may_move_pods(builder.state(), key, &workload.key.ns) && !is_of_another(builder.scenario, key, sets)
    };
    let steps = builder.scenario.steps.iter().filter(|step| step.objects.iter().any(moves));
    let mut is_still = steps.count() <= 1 && base.get(&workload.key).is_some_and(|o| !o.unobserved());
    for (set, pods) in sets.iter().zip(pods) {
        let mut active = 0;
        for pod in pods.iter().filter(|pod| is_active(pod)) {
            active += 1;
            *on.entry(pod.node.clone()).or_default() += 1;
            is_still &= !pod.node.is_empty()
                && (builder.survivals.stays_ready(pod) || !pod.ready() && builder.survival(pod) == Survival::Stays);
        }
        is_still &= of_base(set) == Some(active);
    }
    is_still &= of_base(workload) == Some(on.values().sum());
    Rc::new(if is_still { on } else { BTreeMap::new() })
}

/// Whether an object is a pod that none of these ReplicaSets has, has had or may adopt.
fn is_of_another(scenario: &Scenario<'_>, key: &Key, sets: &[Arc<Object>]) -> bool {
    // of one that is written several times it is not looked up what it was in between
    if !key.kind.is("Pod") || scenario.steps.iter().filter(|step| step.objects.contains(key)).count() > 1 {
        return false;
    }
    let state = &scenario.state;
    let versions =
        |key: &Key| -> Vec<&Arc<Object>> { state.get(key).into_iter().chain(state.base().get(key)).collect() };
    let has = |set: &Object, pod: &Object| {
        pod.controller().is_some_and(|owner| owner.uid == set.uid) || adopts(state, set, pod)
    };
    let is_had = |pod: &Object| sets.iter().flat_map(|set| versions(&set.key)).any(|set| has(set, pod));
    let pods = versions(key);
    // of one that came and went it is not known what it was
    !pods.is_empty() && !pods.into_iter().any(|pod| is_had(pod))
}

pub fn register(builder: &mut Builder<'_, '_>, set: &Object, scale_plan: &ScalePlan) {
    let needed = scale_plan.missing > 0;
    if let Some(template) = navigate::template_of(builder.state(), set).filter(|_| needed) {
        builder.template(&template);
    }
}

/// Adds the pods of one ReplicaSet. Ready pods go into `kept`; returns the set of its new pods.
pub fn add_set(
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
    let (mut removed_sets, mut unranked) = (Vec::new(), None);
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
            // one that does not stay ready may go before others that were ready, and after others that were not
            let is_ranked = !pod.ready() || builder.survivals.stays_ready(pod);
            let ranked = ranks.iter().find(|(known, _)| is_ranked && *known == rank).map(|(_, id)| *id);
            let ranked = ranked.or(unranked.filter(|_| !is_ranked)).unwrap_or_else(|| {
                let id = builder.set();
                match is_ranked {
                    true => ranks.push((rank, id)),
                    false => unranked = Some(id),
                }
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

pub fn chosen_count(builder: &Builder<'_, '_>, pods: &[Arc<Object>]) -> i64 {
    let chosen = pods.iter().filter(|p| may_choose(builder, p)).count();
    i64::try_from(chosen).unwrap_or(i64::MAX)
}

/// Whether the controller counts this pod and may remove it; it leaves alone what has run to its end.
pub fn may_choose(builder: &Builder<'_, '_>, pod: &Object) -> bool {
    builder.survival(pod) == Survival::Stays && is_active(pod)
}

/// Adds up to `pods` new pods of a template.
pub fn add_new(builder: &mut Builder<'_, '_>, maker: Key, template: usize, pods: i64) -> SetId {
    let set = builder.set();
    let bound = u32::try_from(pods).unwrap_or(u32::MAX);
    let name = format!("{}-(new)", maker.name);
    let fates = builder.new_fates(template, &name, true);
    builder.group.entities.push(Entity::new(bound, vec![set], fates));
    builder.schedule(maker, set, template);
    set
}

/// Once settled, the workload has the pods it wants, a number within these (fewer only if the existing ones cannot be
/// replaced); so many more where one of the given pods is there.
pub fn settle(
    builder: &mut Builder<'_, '_>,
    workload: Key,
    counted: &[SetId],
    ReplicaRange { least, most }: ReplicaRange,
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
