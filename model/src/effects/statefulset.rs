//! StatefulSets: which ordinals go, one at a time or all at once, and when nothing moves.
//!
//! Source: `pkg/controller/statefulset/stateful_set_control.go` (`updateStatefulSet`): condemned ordinals go from the
//! highest; under OrderedReady nothing is removed or updated while a pod that stays is not running and ready; a rolling
//! update removes one outdated pod (maxUnavailable with KEP-961) from the highest ordinal down to `partition` and waits
//! for its replacement, and for every pod above the next one to be ready. Over-approximations: which of the outdated pods
//! is the one in transition is left open, except below the highest one that is not ready; what a set still does whose pods
//! have names that others keep; while `status.observedGeneration` lags, all are outdated. A set that is Parallel takes a pod
//! of the template before down beside one that an earlier rollout has taken (`updateStatefulSet`: outdated ones go before any
//! is waited for).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::builder::Builder;
use super::desired::desired_replicas;
use super::linear::{LOST, STAY, at_least, at_most, count};
use super::members::{group_name, pods_of};
use super::scheduling::places::place;
use super::scheduling::volumes;
use super::survival::Survival;
use crate::controllers::pod_template::is_kept;
use crate::controllers::replicas::{ReplicaRange, replicas, stated_replicas};
use crate::controllers::statefulset::{
    Intent, first_ordinal, intent, is_condemned, is_ordered, is_rolling, is_stuck, max_unavailable, pod_ordinal,
    rolls_out,
};
use crate::futures::{Count, Entity, Fate, FateKind, LimitLabel, SetId};
use crate::navigate;
use crate::object::{Key, Object};

/// How many pods of one StatefulSet that do not exist yet are described one by one.
const MISSING_MAX: i64 = 1000;

/// What the controller intends with a set, over all that may have been asked of it.
struct Plan {
    first: i64,
    wanted: i64,
    low: i64,
    /// How many fewer it wants by its own number than before.
    fewer: i64,
    /// Whether it may have any number of pods between `low` and `wanted` in the end.
    open: bool,
    ordered: bool,
    max_unavailable: i64,
    /// Whether any pod may be of another revision than the one that is rolled out.
    outdates_all: bool,
    /// How many rollouts take pods down beside one another.
    rollouts: i64,
}

fn plan(builder: &Builder<'_, '_>, set: &Object, pods: &[Arc<Object>]) -> Plan {
    let own = replicas(set);
    let desired_replicas = desired_replicas(builder.scenario, set, own).unwrap_or(ReplicaRange::of(own));
    let before = builder.state().base().get(&set.key).filter(|o| o.uid == set.uid);
    let same = before.is_some_and(|b| is_kept(b, set));
    let ordered = is_ordered(set);
    let template_changes = builder.scenario.template_changes.get(&set.key).copied().unwrap_or(0);
    let earlier = i64::from(template_changes > 0 && before.is_some_and(|b| is_rolling(b, pods)));
    Plan {
        first: first_ordinal(set),
        wanted: if builder.after() { desired_replicas.most } else { own.max(desired_replicas.most) },
        low: own.min(desired_replicas.least),
        fewer: (before.map_or(own, |b| stated_replicas(b)) - own).max(0),
        open: desired_replicas.is_open(),
        ordered,
        max_unavailable: max_unavailable(set, own.max(desired_replicas.most)),
        outdates_all: !same || before.is_some_and(|b| b.unobserved()),
        rollouts: if ordered { 1 } else { template_changes.saturating_add(earlier).max(1) },
    }
}

/// What a set makes its pods from.
struct Made {
    /// The different templates.
    templates: Vec<usize>,
    /// The one of each ordinal.
    by_ordinal: BTreeMap<i64, usize>,
}

impl Made {
    /// The templates of these ordinals, registered.
    fn of(builder: &mut Builder<'_, '_>, set: &Object, ordinals: Vec<i64>) -> Self {
        let Some(own) = navigate::template_of(builder.state(), set) else {
            return Self { templates: Vec::new(), by_ordinal: BTreeMap::new() };
        };
        // where it does not matter where pods are, their volumes do not
        let told = builder.wants_places() && !builder.view.coarse;
        let by_volume = told.then(|| volumes::templates(builder.state(), set, &own, &ordinals));
        let vals = by_volume.flatten();
        let unprovided = if told { volumes::unprovided(builder.state(), set) } else { Vec::new() };
        let mut by_ordinal: BTreeMap<i64, usize> = BTreeMap::new();
        for (number, at) in ordinals.into_iter().enumerate() {
            let val = vals.as_ref().and_then(|vals| vals.get(number)).unwrap_or(&own);
            let waits = volumes::lacks_any(builder.state(), set, &unprovided, at);
            by_ordinal.insert(at, builder.template_of(val, waits));
        }
        let templates: BTreeSet<usize> = by_ordinal.values().copied().collect();
        Self { templates: templates.into_iter().collect(), by_ordinal }
    }

    fn of_ordinal(&self, at: i64) -> Option<usize> {
        self.by_ordinal.get(&at).copied()
    }
}

/// The sets of entities by which the limits count.
struct Sets {
    condemned: SetId,
    updating: SetId,
    /// Those of `updating` that are ready.
    ready: SetId,
    unready: SetId,
    /// Those that a request removes and that were not ready, or that are being deleted: the set waits for their successors.
    waited: SetId,
    missing: SetId,
    /// Those of ordinals that may be wanted or not: nothing waits for them.
    optional: SetId,
}

impl Plan {
    /// Whether a set may want this ordinal or not.
    fn is_optional(&self, set: &Object, ordinal: i64) -> bool {
        is_condemned(set, ordinal, self.low) && !is_condemned(set, ordinal, self.wanted)
    }
}

/// The pods of a StatefulSet.
pub fn stateful_set(builder: &mut Builder<'_, '_>, set: &Arc<Object>) {
    let pods = pods_of(builder.state(), set);
    let plan = plan(builder, set, &pods);
    if !set.live() {
        for pod in &pods {
            builder.passive(pod);
        }
        return;
    }
    let present: Vec<Option<i64>> = pods.iter().map(|pod| pod_ordinal(set, &pod.key.name)).collect();
    let taken: BTreeSet<i64> = present.iter().flatten().copied().collect();
    let last = plan.first.saturating_add(plan.wanted);
    let absent = (plan.first..last).filter(|at| !taken.contains(at)).take(MISSING_MAX as usize);
    let (absent, names) = free_names(builder, set, absent.collect());
    let made = Made::of(builder, set, taken.iter().chain(&absent).copied().collect());
    place(builder, &pods, plan.wanted);
    let sets = Sets {
        condemned: builder.set(),
        updating: builder.set(),
        ready: builder.set(),
        unready: builder.set(),
        waited: builder.set(),
        missing: builder.set(),
        optional: builder.set(),
    };
    let placed: Vec<SetId> = made.templates.iter().map(|_| builder.set()).collect();
    let place_of = |template: Option<usize>| {
        let at = made.templates.iter().position(|known| Some(*known) == template);
        at.and_then(|at| placed.get(at)).copied()
    };
    let mut ordinals = Vec::new();
    for (pod, at) in pods.iter().zip(&present) {
        ordinals.extend(at.map(|at| (at, builder.group.entities.len())));
        let template = at.and_then(|at| made.of_ordinal(at));
        let entity = member(builder, set, &plan, &sets, pod, template, place_of(template));
        builder.group.entities.push(entity);
    }
    if !made.templates.is_empty() {
        // one pod for each name
        let at_once = i64::try_from(pods.len() + absent.len()).unwrap_or(i64::MAX);
        builder.max_live_pods = (absent.len() < MISSING_MAX as usize).then(|| at_once.saturating_add(plan.fewer));
    }
    for at in absent {
        let Some(template) = made.of_ordinal(at) else { continue };
        let is_optional = (plan.open && plan.is_optional(set, at)) || names.may_stop(&plan, at);
        let may_lack = !builder.after() || is_optional;
        let fates = builder.new_fates(template, &format!("{}-{at}", set.key.name), may_lack);
        ordinals.push((at, builder.group.entities.len()));
        let waited = if is_optional { sets.optional } else { sets.missing };
        let sets = std::iter::once(waited).chain(place_of(Some(template))).collect();
        builder.group.entities.push(Entity::new(1, sets, fates));
    }
    for (template, set_of) in made.templates.iter().zip(&placed) {
        builder.schedule(set.key.clone(), *set_of, *template);
    }
    if !builder.after() && plan.max_unavailable == 1 && plan.rollouts == 1 {
        limit_order(builder, set, &plan, &sets, ordinals);
    }
    limits(builder, set, &plan, &sets, names.lowest.is_some());
}

/// The names of ordinals that pods have which are not the set's.
#[derive(Default)]
struct Names {
    /// The lowest of these ordinals.
    lowest: Option<i64>,
    /// Those whose pods may go.
    open: BTreeSet<i64>,
}

impl Names {
    /// Whether the set may make no pod of this ordinal: where it makes them in order, it stops at the first name that is taken.
    fn may_stop(&self, plan: &Plan, at: i64) -> bool {
        self.open.contains(&at) || (plan.ordered && self.lowest.is_some_and(|lowest| at >= lowest))
    }
}

/// Those of these ordinals for which pods may be made: none under a name that another pod has and keeps (`pkg/controller/
/// statefulset/stateful_pod_control.go`, `CreateStatefulPod`: to create it fails, time and again).
fn free_names(builder: &Builder<'_, '_>, set: &Object, mut absent: Vec<i64>) -> (Vec<i64>, Names) {
    let mut names = Names::default();
    absent.retain(|at| {
        let key = Key::of("Pod", &set.key.ns, &format!("{}-{at}", set.key.name));
        let Some(holder) = builder.state().get(&key) else { return true };
        let fates = builder.existing(holder, &[], false).fates;
        if fates.iter().all(|fate| fate.kind == FateKind::Gone) {
            return true;
        }
        names.lowest.get_or_insert(*at);
        // others decide about it, or it is on its way
        let stays = group_name(builder.state(), holder) == key && fates.iter().all(|fate| STAY.contains(&fate.kind));
        if !stays {
            names.open.insert(*at);
        }
        !stays
    });
    (absent, names)
}

/// A rolling update looks at the pods from the highest ordinal down to the partition, and no further than one that is not
/// ready: those below the highest such one wait until that one is ready, in the new revision if it is to be updated.
fn limit_order(builder: &mut Builder<'_, '_>, set: &Object, plan: &Plan, sets: &Sets, mut ordinals: Vec<(i64, usize)>) {
    ordinals.sort_unstable();
    let is_in = |builder: &Builder<'_, '_>, at: usize, set: SetId| {
        builder.group.entities.get(at).is_some_and(|entity| entity.sets.contains(&set))
    };
    let waited = |at: usize| [sets.unready, sets.waited, sets.missing].iter().any(|set| is_in(builder, at, *set));
    let highest = ordinals.iter().rposition(|(ordinal, at)| rolls_out(set, *ordinal) && waited(*at));
    let Some((below, [(_, highest), ..])) = highest.and_then(|place| ordinals.split_at_checked(place)) else { return };
    let lower: Vec<usize> = below.iter().map(|(_, at)| *at).filter(|at| is_in(builder, *at, sets.updating)).collect();
    if lower.is_empty() {
        return;
    }
    let mut unsettled = vec![FateKind::NotMade, FateKind::NewUnready, FateKind::Stays, FateKind::LosesReadiness];
    if is_in(builder, *highest, sets.updating) || is_in(builder, *highest, sets.waited) {
        unsettled.extend([FateKind::BecomesReady, FateKind::Terminating, FateKind::Gone]);
    }
    let (first, rest) = (builder.set(), builder.set());
    for (at, set) in lower.into_iter().map(|at| (at, rest)).chain([(*highest, first)]) {
        if let Some(entity) = builder.group.entities.get_mut(at) {
            Rc::make_mut(&mut entity.sets).push(set);
        }
    }
    let label = LimitLabel::OneAtATime { workload: set.key.clone(), max_unavailable: plan.max_unavailable };
    let untouched = at_most(vec![count(rest, &TOUCHED)], 0);
    builder.limit(label, vec![untouched, at_most(vec![count(first, &unsettled)], 0)]);
}

/// Fates of a pod that an update has come to.
const TOUCHED: [FateKind; 4] = [FateKind::Terminating, FateKind::Gone, FateKind::NewUnready, FateKind::NewReady];

/// The entity of one existing pod; its place is counted in `placed`, if it is made anew.
fn member(
    builder: &Builder<'_, '_>,
    set: &Object,
    plan: &Plan,
    sets: &Sets,
    pod: &Arc<Object>,
    template: Option<usize>,
    placed: Option<SetId>,
) -> Entity {
    let survival = builder.survival(pod);
    let intent = intent(set, pod, plan.low, plan.outdates_all);
    let condemned = intent.is_none_or(|intent| intent == Intent::Removes);
    let updating = intent == Some(Intent::Updates) && !pod.terminating() && survival == Survival::Stays;
    let mut member_of: Vec<SetId> = placed.into_iter().collect();
    if condemned && survival == Survival::Stays && !pod.terminating() {
        member_of.push(sets.condemned);
    }
    if updating {
        member_of.push(sets.updating);
    }
    if updating && pod.ready() && plan.max_unavailable > 1 {
        member_of.push(sets.ready);
    }
    if !condemned && survival == Survival::Stays && !pod.ready() {
        member_of.push(sets.unready);
    }
    // the successor of one that is being deleted is waited for as well
    let is_going = survival == Survival::Goes || (survival == Survival::Stays && pod.terminating());
    if !condemned && is_going && !pod.ready() {
        member_of.push(sets.waited);
    }
    let mut entity = builder.existing(pod, &member_of, condemned || updating || pod.finished());
    let is_optional = plan.open && pod_ordinal(set, &pod.key.name).is_some_and(|at| plan.is_optional(set, at));
    if is_optional {
        Rc::make_mut(&mut entity.sets).push(sets.optional);
    }
    let replaced = (!condemned || is_optional) && entity.fates.iter().any(|f| f.kind == FateKind::Gone);
    if let (true, Some(template)) = (replaced, template) {
        Rc::make_mut(&mut entity.fates).extend(builder.new_fates(template, &pod.key.name, false));
    }
    if builder.after() {
        settle_member(&mut entity, condemned, is_optional, set);
    }
    entity
}

/// Once settled, condemned pods are gone, unless the set is stuck on a pod that is not ready.
fn settle_member(entity: &mut Entity, condemned: bool, is_optional: bool, set: &Object) {
    let stays = !condemned || is_optional || is_stuck(set);
    let keep = |fate: &Fate| match fate.kind {
        FateKind::Stays | FateKind::BecomesReady | FateKind::LosesReadiness | FateKind::Ends => stays,
        FateKind::Terminating => false,
        FateKind::Gone => condemned,
        FateKind::NotMade | FateKind::NewUnready | FateKind::NewReady => true,
    };
    if entity.fates.iter().any(keep) {
        Rc::make_mut(&mut entity.fates).retain(keep);
    }
}

fn limits(builder: &mut Builder<'_, '_>, set: &Object, plan: &Plan, sets: &Sets, lacks_names: bool) {
    let workload = set.key.clone();
    if builder.after() {
        // a rolling update ends, unless it hangs on a new pod that never becomes ready
        let outdated = at_most(vec![count(sets.updating, &STAY)], 0);
        let unready = [sets.updating, sets.missing, sets.optional].map(|set| count(set, &[FateKind::NewUnready]));
        if !is_stuck(set) && !lacks_names {
            let label = LimitLabel::Settled { workload, wanted: plan.wanted };
            builder.limit(label, vec![outdated, at_least(unready.to_vec(), 1)]);
        }
        return;
    }
    let transit = [FateKind::Terminating, FateKind::Gone, FateKind::NewUnready];
    let most = plan.max_unavailable.saturating_mul(plan.rollouts);
    builder.limit(
        LimitLabel::OneAtATime { workload: workload.clone(), max_unavailable: most },
        vec![at_most(vec![count(sets.updating, &transit)], most)],
    );
    if plan.max_unavailable > 1 && plan.rollouts == 1 {
        // what is not ready already counts, whatever its revision and ordinal (`updateStatefulSetAfterInvariantEstablished`);
        // where maxUnavailable is not in force, one goes all the same
        let taken = || count(sets.ready, &transit);
        let unready = [&transit[..], &[FateKind::Stays, FateKind::LosesReadiness]].concat();
        builder.limit(
            LimitLabel::OneAtATime { workload: workload.clone(), max_unavailable: most },
            vec![at_most(vec![taken()], 1), at_most(vec![taken(), count(sets.unready, &unready)], most)],
        );
    }
    if !plan.ordered {
        return;
    }
    let still_unready = || -> Vec<Count> {
        vec![
            count(sets.unready, &[FateKind::Stays, FateKind::LosesReadiness]),
            count(sets.waited, &[FateKind::Terminating, FateKind::Gone, FateKind::NewUnready]),
            count(sets.missing, &[FateKind::NotMade, FateKind::NewUnready]),
        ]
    };
    let label = LimitLabel::OrderedReady { workload };
    builder.limit(label.clone(), vec![at_most(vec![count(sets.updating, &TOUCHED)], 0), at_most(still_unready(), 0)]);
    builder.limit(label, vec![at_most(vec![count(sets.condemned, &LOST)], 0), at_most(still_unready(), 0)]);
}
