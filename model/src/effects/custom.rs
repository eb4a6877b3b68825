//! Custom resources by their adapter: when `replicas` falls, any of the selected pods may go, unless the one workload that
//! the custom resource has for them decides which. What a write changes in `template` the operator hands on to that
//! workload, which rolls it out; where there is none or several, a new template is not followed.
//!
//! Pods beyond `replicas` that workloads run, several for one custom resource, are no scale-down by themselves: they may be
//! two revisions of a rollout, or helpers that bear the label too. Only those that the custom resource runs itself are.
//! What an operator does about the others is a request of its own, which is judged when it comes.
//!
//! Over-approximations: nothing is known of the operator's order or pace; where it has none or several workloads for the
//! pods, each that runs some of them may lose as many as are in excess altogether; where `replicas` has no value any more,
//! any number of the pods may go. What more pods an operator makes is looked at only where it has one workload for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Builder, LOST, Standing, at_most, count};
use crate::adapter::AdapterFacts;
use crate::futures::LimitLabel;
use crate::navigate;
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::selector::Selector;
use crate::state::State;
use crate::value::{Str, Val};

/// Workloads that roll out another template; in the place of any other, an operator makes a new one.
const ROLLING: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// Workloads that say themselves how many pods they want.
const SCALED: [&str; 4] = ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"];

/// A live custom resource that wants a number of pods, with what its adapter says.
pub struct Parent {
    object: Arc<Object>,
    facts: Arc<AdapterFacts>,
    desired_replicas: Wish,
    /// How many it wants as the watch shows it, if that is known.
    before: Option<i64>,
}

/// A number of pods in this range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The fewest.
    pub least: i64,
    /// The most.
    pub most: i64,
}

impl Parent {
    fn of(state: &State<'_>, object: &Arc<Object>) -> Option<Self> {
        let facts = state.adapter(object).filter(|_| object.live())?;
        let observed = state.base().get(&object.key).filter(|observed| observed.uid == object.uid);
        let before = observed.and_then(|observed| match Arc::ptr_eq(observed, object) {
            true => facts.replicas,
            false => state.adapter(observed)?.replicas,
        });
        let before = before.map(|replicas| replicas.max(0));
        let desired_replicas = match (facts.replicas, before) {
            (Some(replicas), _) => Wish { least: replicas.max(0), most: replicas.max(0) },
            // what its operator makes of a number that is not there any more is not known
            (None, Some(before)) => Wish { least: 0, most: before },
            (None, None) => return None,
        };
        Some(Self { object: object.clone(), facts, desired_replicas, before })
    }

    fn selector(&self) -> Option<&Selector> {
        self.facts.selector.as_ref().filter(|s| !s.is_empty())
    }

    /// The one workload that runs its pods and that it owns or lists as its child, if there is just one: that decides
    /// which of them go.
    fn managed_workload(&self, state: &State<'_>) -> Option<Key> {
        let selector = self.selector()?;
        let listed = self.facts.children.iter().flatten().filter_map(|key| state.resolve(key));
        let own = state.owned_by(&self.object.uid).into_iter().chain(listed);
        let running: BTreeSet<&Key> = own.filter(|o| runs(state, o, selector)).map(|o| &o.key).collect();
        running.first().filter(|_| running.len() == 1).map(|key| (*key).clone())
    }

    /// That workload, where it is all that runs its pods: beside pods that the custom resource runs itself it may be a
    /// helper that bears the label too.
    fn sole_deputy(&self, state: &State<'_>) -> Option<Key> {
        let itself = |pod: &Arc<Object>| pod.live() && pod.controller().is_some() && self.runs_itself(state, pod);
        self.managed_workload(state).filter(|_| !self.pods(state).iter().any(itself))
    }

    /// The pods that it controls or selects.
    fn pods(&self, state: &State<'_>) -> Vec<Arc<Object>> {
        let owned = state.owned_by(&self.object.uid).into_iter().filter(|o| o.key.kind.is("Pod"));
        let selected = self.selector().map(|s| state.pods_matching(&self.object.key.ns, s)).unwrap_or_default();
        let mut pods: Vec<Arc<Object>> = owned.chain(selected).cloned().collect();
        pods.sort_by(|a, b| a.key.cmp(&b.key));
        pods.dedup_by(|a, b| a.key == b.key);
        pods
    }

    /// How many of its pods its operator will remove itself: down to what it wants, from what it wanted, or from what it
    /// runs without a workload in between. What goes already, and is not made again, is not among them.
    fn excess(&self, scenario: &Scenario<'_>) -> i64 {
        let state = &scenario.state;
        if self.sole_deputy(state).is_some() {
            return 0;
        }
        let (mut present, mut itself) = (0_i64, 0_i64);
        let mut workloads: BTreeSet<Key> = BTreeSet::new();
        for pod in self.pods(state).iter().filter(|p| !navigate::finished(p)) {
            let name = super::group_name(state, pod);
            if SCALED.iter().any(|kind| name.kind.is(kind)) {
                workloads.insert(name);
            } else if !pod.terminating() && !pod.in_deletion_closure {
                present = present.saturating_add(1);
                itself = itself.saturating_add(i64::from(self.runs_itself(state, pod)));
            }
        }
        for workload in workloads.iter().filter_map(|key| state.get(key)).filter(|o| o.live() && !o.in_deletion_closure)
        {
            let own = workload.val().int_at(&["spec", "replicas"]).unwrap_or(1);
            present = present.saturating_add(own.max(0));
        }
        let before = self.before.unwrap_or(present);
        (before.max(itself).min(present) - self.desired_replicas.least).max(0)
    }

    /// Whether no workload makes this pod, but this custom resource, or another one that it has for that, or nobody.
    fn runs_itself(&self, state: &State<'_>, pod: &Object) -> bool {
        let mut at = navigate::controller_of(state, pod);
        for _ in 0..super::CONTROLLER_DEPTH_MAX {
            let Some(owner) = at.filter(|owner| owner.key.kind.builtin_namespaced().is_none()) else { break };
            if owner.uid == self.object.uid || self.lists(&owner.key) {
                return true;
            }
            at = navigate::controller_of(state, owner);
        }
        pod.controller().is_none()
    }

    fn lists(&self, key: &Key) -> bool {
        self.facts.children.iter().flatten().any(|child| child.means(key))
    }

    /// The one of these that has this one for its pods, the nearest.
    fn above(&self, state: &State<'_>, all: &[Self]) -> Option<usize> {
        let mut at = Some(&self.object);
        for _ in 0..super::CONTROLLER_DEPTH_MAX {
            let below = at?;
            let owner = below.controller().map(|owner| &owner.uid);
            let has =
                |p: &Self| p.object.key != self.object.key && (Some(&p.object.uid) == owner || p.lists(&below.key));
            if let Some(found) = all.iter().position(has) {
                return Some(found);
            }
            at = navigate::controller_of(state, below);
        }
        None
    }
}

/// How many pods go for the sake of these custom resources: a pod that several select may go for the sake of any of them,
/// but what one wants and what those want that it has for its pods is the same.
fn excess(scenario: &Scenario<'_>, all: &[Parent]) -> i64 {
    let own: Vec<i64> = all.iter().map(|parent| parent.excess(scenario)).collect();
    let above: Vec<Option<usize>> = all.iter().map(|parent| parent.above(&scenario.state, all)).collect();
    let next = |at: &usize| above.get(*at).copied().flatten();
    // where custom resources have one another, each counts
    let ends = |at: usize| std::iter::successors(Some(at), next).take(all.len() + 1).count() <= all.len();
    let above: Vec<Option<usize>> = (0..all.len()).map(|at| next(&at).filter(|_| ends(at))).collect();
    excess_below(None, &own, &above)
}

/// How many pods go for the sake of those directly below one, or below none; `above` has no cycles.
fn excess_below(at: Option<usize>, own: &[i64], above: &[Option<usize>]) -> i64 {
    let here = own.iter().zip(above).enumerate().filter(|(_, (_, above))| **above == at);
    let each = here.map(|(place, (one, _))| excess_below(Some(place), own, above).max(*one));
    each.fold(0, i64::saturating_add)
}

/// Whether the pods of this workload are among those that the selector means.
fn runs(state: &State<'_>, workload: &Object, selector: &Selector) -> bool {
    let labels = ["metadata", "labels"];
    !workload.key.kind.is("Pod")
        && navigate::template_of(state, workload).is_some_and(|t| selector.matches(t.at(&labels).unwrap_or(&Val::Null)))
}

/// The custom resources that select pods with these labels, in the order of their keys.
fn parents(state: &State<'_>, ns: &Str, labels: &Val) -> Vec<Parent> {
    let mut found: Vec<Parent> = Vec::new();
    for kind in state.base().adapters().kinds() {
        let selecting = state.selecting(&kind, ns, labels).into_iter().filter_map(|o| Parent::of(state, o));
        found.extend(selecting.filter(|p| p.selector().is_some_and(|s| s.matches(labels))));
    }
    found.sort_by(|a, b| a.object.key.cmp(&b.object.key));
    found
}

/// Whether what is requested has to do with a custom resource that selects the pods of a workload which can be scaled.
pub fn is_asked(state: &State<'_>, workload: &Object) -> bool {
    if workload.key.kind.is("DaemonSet") {
        return false;
    }
    let labels = navigate::template_labels(state, workload).unwrap_or_default();
    let is_changed = |parent: &Parent| state.delta().contains_key(&parent.object.key);
    parents(state, &workload.key.ns, &labels).iter().any(is_changed)
}

/// Whether a custom resource has a say in how many pods there are.
pub fn decides(state: &State<'_>, object: &Arc<Object>) -> bool {
    Parent::of(state, object).is_some()
}

/// The custom resource that decides about a pod for which no workload does.
pub fn decider(state: &State<'_>, pod: &Object) -> Option<Key> {
    parents(state, &pod.key.ns, pod.labels()).into_iter().next().map(|parent| parent.object.key.clone())
}

/// What custom resources want of a workload that wants `own` pods itself; `None` when they leave it at that.
pub fn desired_replicas(scenario: &Scenario<'_>, workload: &Object, own: i64) -> Option<Wish> {
    let state = &scenario.state;
    let labels = navigate::template_labels(state, workload)?;
    let is_its = |parent: &Parent| parent.sole_deputy(state).as_ref() == Some(&workload.key);
    let (deciding, others): (Vec<Parent>, Vec<Parent>) =
        parents(state, &workload.key.ns, &labels).into_iter().partition(is_its);
    let is_above =
        |parent: &Parent| deciding.iter().any(|one| one.above(state, std::slice::from_ref(parent)).is_some());
    let (above, others): (Vec<Parent>, Vec<Parent>) = others.into_iter().partition(is_above);
    let wider = |a: Wish, b: Wish| Wish { least: a.least.min(b.least), most: a.most.max(b.most) };
    let asked = deciding.iter().map(|parent| parent.desired_replicas).reduce(wider);
    let excess_above = excess(scenario, &above);
    let excess = excess(scenario, &others);
    if asked.is_none() && excess == 0 {
        return None;
    }
    let Wish { least, most } = asked.unwrap_or(Wish { least: own, most: own });
    // what has the deciding one for its pods wants the same of them
    let least = if excess_above > 0 { least.min(own - excess_above) } else { least };
    Some(Wish { least: (least - excess).max(0), most })
}

/// The StatefulSet that a custom resource's operator scales down since a write lowered `replicas`: as it is, and as it will be.
pub fn scaled_down(scenario: &Scenario<'_>, old: &Object, new: &Arc<Object>) -> Option<(Arc<Object>, Object)> {
    let state = &scenario.state;
    let before = state.adapter(old)?.replicas?;
    let parent = Parent::of(state, new).filter(|parent| parent.desired_replicas.least < before)?;
    let set = state.get(&parent.managed_workload(state)?).filter(|set| set.key.kind.is("StatefulSet"))?.clone();
    let own = set.val().int_at(&["spec", "replicas"]).unwrap_or(1);
    let least = desired_replicas(scenario, &set, own)?.least;
    (least < own).then(|| {
        let scaled = set.map_body(|val| val.with_at(&["spec", "replicas"], Val::Int(least)));
        (set, scaled)
    })
}

/// The one workload that runs the pods of a custom resource, once its operator has handed on what a write changed in the
/// adapter's `template`: what else the operator put there stays.
pub fn propagate_template(state: &State<'_>, old: &Object, new: &Arc<Object>) -> Option<Object> {
    let (before, facts) = (state.adapter(old)?, state.adapter(new).filter(|_| new.live())?);
    let (before, after) = (before.template.clone()?, facts.template.clone()?);
    if before == after {
        return None;
    }
    let desired_replicas = Wish { least: 0, most: 0 };
    let parent = Parent { object: new.clone(), facts, desired_replicas, before: None };
    let rolls_out = |o: &&Arc<Object>| ROLLING.iter().any(|kind| o.key.kind.is(kind));
    let workload = state.get(&parent.managed_workload(state)?).filter(rolls_out)?;
    let path = navigate::template_path(workload)?;
    let own = workload.val().at_some(path)?;
    let next = carried(own, &before, &after);
    (next != *own).then(|| workload.map_body(|val| val.with_at(path, next.clone())))
}

/// A value with what differs between two others; of lists whose items have names, item by item.
fn carried(own: &Val, before: &Val, after: &Val) -> Val {
    match (own, before, after) {
        _ if before == after => own.clone(),
        (Val::Map(_), Val::Map(_), Val::Map(_)) => {
            let keys: BTreeSet<&Str> = before.entries().chain(after.entries()).map(|(key, _)| key).collect();
            keys.into_iter().fold(own.clone(), |own, key| match (before.get(key), after.get(key)) {
                (was, Some(now)) if was == Some(now) => own,
                (_, None) => own.without_at(&[key]),
                (was, Some(now)) => {
                    let (mine, was) = (own.get(key).unwrap_or(&Val::Null), was.unwrap_or(&Val::Null));
                    let next = carried(mine, was, now);
                    own.with(key, next)
                }
            })
        }
        (Val::List(_), Val::List(_), Val::List(_)) => match (by_name(own), by_name(before), by_name(after)) {
            (Some(own), Some(before), Some(after)) => {
                let next = |(name, mine): &(&Str, &Val)| match (find(&before, name), find(&after, name)) {
                    (Some(_), None) => None,
                    (was, Some(now)) => Some(carried(mine, was.unwrap_or(&Val::Null), now)),
                    (None, None) => Some((*mine).clone()),
                };
                let kept = own.iter().filter_map(next);
                let made = after.iter().filter(|(name, _)| find(&own, name).is_none()).map(|(_, val)| (*val).clone());
                Val::list(kept.chain(made).collect())
            }
            _ => after.clone(),
        },
        _ => after.clone(),
    }
}

/// The items of a list by their names, if each has one.
fn by_name(list: &Val) -> Option<Vec<(&Str, &Val)>> {
    list.items().iter().map(|item| Some((item.str_at(&["name"])?, item))).collect()
}

fn find<'v>(items: &[(&Str, &'v Val)], name: &Str) -> Option<&'v Val> {
    items.iter().find(|(known, _)| *known == name).map(|(_, item)| *item)
}

/// The pods that a custom resource runs without a workload in between.
pub fn custom_resource(builder: &mut Builder<'_, '_>, object: &Arc<Object>) {
    let state = builder.state();
    let parent = Parent::of(state, object);
    let mut pods: Vec<Arc<Object>> = navigate::pods_owned_by(state, object).into_iter().cloned().collect();
    pods.extend(parent.iter().flat_map(|p| p.pods(state)));
    pods.sort_by(|a, b| a.key.cmp(&b.key));
    pods.dedup_by(|a, b| a.key == b.key);
    pods.retain(|p| super::group_name(state, p) == object.key);
    let mut all: Vec<Parent> = parent.into_iter().collect();
    for pod in &pods {
        let others = parents(state, &pod.key.ns, pod.labels());
        let known = |other: &Parent| all.iter().any(|one| one.object.key == other.object.key);
        let found: Vec<Parent> = others.into_iter().filter(|other| !known(other)).collect();
        all.extend(found);
    }
    let excess = excess(builder.scenario, &all);
    let chosen = builder.set();
    for pod in &pods {
        let may_go = excess > 0 && builder.standing(pod) == Standing::Kept && !pod.terminating();
        let sets = if may_go { vec![chosen] } else { Vec::new() };
        let entity = builder.existing(pod, &sets, may_go);
        builder.group.entities.push(entity);
    }
    if excess > 0 {
        let label = LimitLabel::ScaleDownRemoves { workload: object.key.clone(), pods: excess };
        builder.limit(label, vec![at_most(vec![count(chosen, &LOST)], excess)]);
    }
}
