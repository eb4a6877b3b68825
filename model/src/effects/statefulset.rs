//! StatefulSets: which ordinals go, one at a time or all at once, and when nothing moves.
//!
//! Source: `pkg/controller/statefulset/stateful_set_control.go` (`updateStatefulSet`): condemned ordinals go from the
//! highest; under OrderedReady nothing is removed or updated while a pod that stays is not running and ready; a rolling
//! update removes one outdated pod (maxUnavailable with KEP-961) from the highest ordinal down to `partition` and waits
//! for its replacement, and for every pod above the next one to be ready. Over-approximations: which of the outdated pods
//! is the one in transition is left open, except below the highest one that is not ready; while
//! `status.observedGeneration` lags, all are outdated. A set that is Parallel takes a pod of the template before down beside
//! one that an earlier rollout has taken (`updateStatefulSet`: outdated ones go before any is waited for).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::custom::Wish;
use super::{Builder, LOST, STAY, Standing, at_least, at_most, count, pods_of, scaled, template};
use crate::futures::{Count, Entity, Fate, FateKind, LimitLabel, SetId};
use crate::navigate;
use crate::object::{Key, Object};
use crate::state::State;
use crate::value::Val;

/// How many pods of one StatefulSet that do not exist yet are described one by one.
const MISSING_MAX: i64 = 1000;

/// Those of a pod's labels by which its StatefulSet tells it from the others, and which the next pod of its name gets as well
/// (`pkg/controller/statefulset/stateful_set_utils.go`, `initIdentity`).
pub fn ordinal_labels(labels: &Val) -> impl Iterator<Item = (&'static str, &Val)> {
    let names = ["statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"];
    names.into_iter().filter_map(|name| Some((name, labels.get(name)?)))
}

/// The StatefulSets that make another pod under the name of one of these, with the labels that this one got for it, once it
/// has gone, although it is not the set's (any more).
pub fn heirs<'s>(state: &'s State<'_>, pods: &[&Arc<Object>]) -> Vec<&'s Arc<Object>> {
    // pods of one body have these labels or none has
    let alike = pods.chunk_by(|a, b| Arc::ptr_eq(&a.body, &b.body));
    let named = alike.filter(|pods| pods.first().is_some_and(|pod| ordinal_labels(pod.labels()).next().is_some()));
    let heir = |pod: &&Arc<Object>| {
        let set = Key::of("StatefulSet", &pod.key.ns, pod.key.name.rsplit_once('-')?.0);
        state.get(&set).filter(|set| pod.controller().is_some_and(|owner| owner.uid != set.uid))
    };
    named.flatten().filter_map(heir).collect()
}

/// The ordinal of a pod by its name, if the name is one that this StatefulSet gives.
pub fn ordinal(set: &Object, pod: &Object) -> Option<i64> {
    let rest = pod.key.name.strip_prefix(&*set.key.name)?.strip_prefix('-')?;
    let plain = rest == "0" || !rest.starts_with('0');
    if plain && rest.bytes().all(|b| b.is_ascii_digit()) { rest.parse().ok() } else { None }
}

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
    outdated_all: bool,
    update_revision: Option<crate::value::Str>,
    rolling: bool,
    /// How many rollouts take pods down beside one another.
    rollouts: i64,
}

fn plan(builder: &Builder<'_, '_>, set: &Object, pods: &[Arc<Object>]) -> Plan {
    let val = set.val();
    let own = val.int_at(&["spec", "replicas"]).unwrap_or(1).max(0);
    let desired_replicas =
        super::custom::desired_replicas(builder.scenario, set, own).unwrap_or(Wish { least: own, most: own });
    let strategy = ["spec", "updateStrategy", "type"];
    let before = builder.state().base().get(&set.key).filter(|o| o.uid == set.uid);
    let same = before.is_some_and(|b| template::is_kept(b, set));
    let ordered = is_ordered(set);
    let template_changes = builder.scenario.template_changes.get(&set.key).copied().unwrap_or(0);
    let earlier = i64::from(template_changes > 0 && before.is_some_and(|b| is_rolling(b, pods)));
    let rollouts = if ordered { 1 } else { template_changes.saturating_add(earlier).max(1) };
    Plan {
        first: val.int_at(&["spec", "ordinals", "start"]).unwrap_or(0),
        wanted: if builder.after() { desired_replicas.most } else { own.max(desired_replicas.most) },
        low: own.min(desired_replicas.least),
        fewer: (before.map_or(own, |b| b.val().int_at(&["spec", "replicas"]).unwrap_or(1)) - own).max(0),
        open: desired_replicas.least != desired_replicas.most,
        ordered,
        // rounded down (`stateful_set_utils.go`, `getStatefulSetMaxUnavailable`), whatever the comment on the field says
        max_unavailable: scaled(
            val.at(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]),
            own,
            false,
            "1",
        )
        .max(1),
        outdated_all: !same || before.is_some_and(|b| b.unobserved()),
        update_revision: val.str_at(&["status", "updateRevision"]).cloned(),
        rolling: val.str_at(&strategy).is_none_or(|t| &**t == "RollingUpdate"),
        rollouts,
    }
}

/// Whether a rollout of the set is under way, as its status shows it, that may take another pod: the highest outdated one, if
/// the updated ones above it are ready.
fn is_rolling(set: &Object, pods: &[Arc<Object>]) -> bool {
    let revision = |field| set.val().str_at(&["status", field]).filter(|name| !name.is_empty());
    let Some(update) = revision("updateRevision") else { return set.unobserved() };
    let mut from_above: Vec<&Arc<Object>> = pods.iter().collect();
    from_above.sort_by_key(|pod| std::cmp::Reverse(ordinal(set, pod)));
    let is_updated = |pod: &Object| pod.label("controller-revision-hash").is_none_or(|of| of == update);
    let next = from_above.into_iter().find(|pod| !is_updated(pod) || !pod.ready());
    set.unobserved() || next.is_some_and(|pod| !is_updated(pod))
}

impl Plan {
    fn outdated(&self, pod: &Object) -> bool {
        if !self.rolling {
            return false;
        }
        let revision = pod.label("controller-revision-hash");
        self.outdated_all || matches!((revision, &self.update_revision), (Some(own), Some(update)) if own != update)
    }

    fn condemned(&self, ordinal: i64) -> bool {
        ordinal < self.first || ordinal >= self.first.saturating_add(self.low)
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
        let by_volume = told.then(|| super::volumes::templates(builder.state(), set, &own, &ordinals));
        let vals = by_volume.flatten();
        let unprovided = if told { super::volumes::unprovided(builder.state(), set) } else { Vec::new() };
        let mut by_ordinal: BTreeMap<i64, usize> = BTreeMap::new();
        for (number, at) in ordinals.into_iter().enumerate() {
            let val = vals.as_ref().and_then(|vals| vals.get(number)).unwrap_or(&own);
            let waits = super::volumes::lacks_any(builder.state(), set, &unprovided, at);
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
    let present: Vec<Option<i64>> = pods.iter().map(|pod| ordinal(set, pod)).collect();
    let taken: BTreeSet<i64> = present.iter().flatten().copied().collect();
    let last = plan.first.saturating_add(plan.wanted);
    let absent = (plan.first..last).filter(|at| !taken.contains(at)).take(MISSING_MAX as usize);
    let absent: Vec<i64> = absent.collect();
    let made = Made::of(builder, set, taken.iter().chain(&absent).copied().collect());
    builder.place(&pods, plan.wanted);
    let sets = Sets {
        condemned: builder.set(),
        updating: builder.set(),
        ready: builder.set(),
        unready: builder.set(),
        waited: builder.set(),
        missing: builder.set(),
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
        let entity = member(builder, set, &plan, &sets, pod, *at, template, place_of(template));
        builder.group.entities.push(entity);
    }
    if !made.templates.is_empty() {
        // one pod for each name
        let at_once = i64::try_from(pods.len() + absent.len()).unwrap_or(i64::MAX);
        builder.max_live_pods = (absent.len() < MISSING_MAX as usize).then(|| at_once.saturating_add(plan.fewer));
    }
    for at in absent {
        let Some(template) = made.of_ordinal(at) else { continue };
        let may_lack = !builder.after() || (plan.open && plan.condemned(at));
        let fates = builder.new_fates(template, &format!("{}-{at}", set.key.name), may_lack);
        ordinals.push((at, builder.group.entities.len()));
        let sets = std::iter::once(sets.missing).chain(place_of(Some(template))).collect();
        builder.group.entities.push(Entity::new(1, sets, fates));
    }
    for (template, set_of) in made.templates.iter().zip(&placed) {
        super::placement::limit(builder, set.key.clone(), *set_of, *template);
    }
    if !builder.after() && plan.max_unavailable == 1 && plan.rollouts == 1 {
        limit_order(builder, set, &plan, &sets, ordinals);
    }
    limits(builder, set, &plan, &sets);
}

/// A rolling update looks at the pods from the highest ordinal down to the partition, and no further than one that is not
/// ready: those below the highest such one wait until that one is ready, in the new revision if it is to be updated.
fn limit_order(builder: &mut Builder<'_, '_>, set: &Object, plan: &Plan, sets: &Sets, mut ordinals: Vec<(i64, usize)>) {
    ordinals.sort_unstable();
    let is_in = |builder: &Builder<'_, '_>, at: usize, set: SetId| {
        builder.group.entities.get(at).is_some_and(|entity| entity.sets.contains(&set))
    };
    let waited = |at: usize| [sets.unready, sets.waited, sets.missing].iter().any(|set| is_in(builder, at, *set));
    let highest = ordinals.iter().rposition(|(ordinal, at)| navigate::rolls_out(set, *ordinal) && waited(*at));
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
#[expect(clippy::too_many_arguments, reason = "a pod, its set, and what is known of both")]
fn member(
    builder: &Builder<'_, '_>,
    set: &Object,
    plan: &Plan,
    sets: &Sets,
    pod: &Arc<Object>,
    ordinal: Option<i64>,
    template: Option<usize>,
    placed: Option<SetId>,
) -> Entity {
    let standing = builder.standing(pod);
    let condemned = ordinal.is_none_or(|at| plan.condemned(at));
    let updating = !condemned
        && plan.outdated(pod)
        && ordinal.is_some_and(|at| navigate::rolls_out(set, at))
        && !pod.terminating()
        && standing == Standing::Kept;
    let mut member_of: Vec<SetId> = placed.into_iter().collect();
    if condemned && standing == Standing::Kept && !pod.terminating() {
        member_of.push(sets.condemned);
    }
    if updating {
        member_of.push(sets.updating);
    }
    if updating && pod.ready() && plan.max_unavailable > 1 {
        member_of.push(sets.ready);
    }
    if !condemned && standing == Standing::Kept && !pod.ready() {
        member_of.push(sets.unready);
    }
    // the successor of one that is being deleted is waited for as well
    let is_going = standing == Standing::Removed || (standing == Standing::Kept && pod.terminating());
    if !condemned && is_going && !pod.ready() {
        member_of.push(sets.waited);
    }
    let mut entity = builder.existing(pod, &member_of, condemned || updating || super::hazard::finished(pod));
    let replaced = !condemned && entity.fates.iter().any(|f| f.kind == FateKind::Gone);
    if let (true, Some(template)) = (replaced, template) {
        Rc::make_mut(&mut entity.fates).extend(builder.new_fates(template, &pod.key.name, false));
    }
    if builder.after() {
        settle_member(plan, &mut entity, condemned, set);
    }
    entity
}

/// Whether a set waits for a pod that is not ready, and goes no further.
pub(super) fn is_stuck(set: &Object) -> bool {
    is_ordered(set) && set.val().int_at(&["status", "readyReplicas"]) != set.val().int_at(&["status", "replicas"])
}

/// Whether a set makes and removes its pods one after the other (OrderedReady).
fn is_ordered(set: &Object) -> bool {
    set.val().str_at(&["spec", "podManagementPolicy"]).is_none_or(|policy| &**policy != "Parallel")
}

/// Once settled, condemned pods are gone, unless the set is stuck on a pod that is not ready.
fn settle_member(plan: &Plan, entity: &mut Entity, condemned: bool, set: &Object) {
    let stays = !condemned || plan.open || is_stuck(set);
    let keep = |fate: &Fate| match fate.kind {
        FateKind::Stays | FateKind::BecomesReady | FateKind::LosesReadiness => stays,
        FateKind::Terminating => false,
        FateKind::Gone => condemned,
        FateKind::NotMade | FateKind::NewUnready | FateKind::NewReady => true,
    };
    if entity.fates.iter().any(keep) {
        Rc::make_mut(&mut entity.fates).retain(keep);
    }
}

fn limits(builder: &mut Builder<'_, '_>, set: &Object, plan: &Plan, sets: &Sets) {
    let workload = set.key.clone();
    if builder.after() {
        // a rolling update ends, unless it hangs on a new pod that never becomes ready
        let outdated = at_most(vec![count(sets.updating, &STAY)], 0);
        let unready = [sets.updating, sets.missing].map(|set| count(set, &[FateKind::NewUnready]));
        if !is_stuck(set) {
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
