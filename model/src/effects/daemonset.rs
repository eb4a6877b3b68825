//! DaemonSets: one pod per node that admits it, replaced within maxUnavailable.
//!
//! Source: `pkg/controller/daemon/{daemon_controller.go,update.go}` (`NodeShouldRunDaemonPod`, `rollingUpdate`): pods on
//! nodes that they do not select or tolerate no longer are removed, but a taint without NoExecute only keeps new pods away;
//! outdated pods go while fewer than maxUnavailable nodes lack one that is ready or an outdated one: those whose pod is being
//! deleted, is not made yet or is new; an outdated pod that is not ready goes whatever others do, and one on a node that
//! takes no new one is not missed. The default scheduler binds each new pod to its node
//! (`CreatePodTemplate`, `ReplaceDaemonSetPodNodeNameNodeAffinity`), if it has room for it. A node that has no
//! pod yet counts as one without an updated one (`updateDaemonSetStatus`). Over-approximations: when
//! `status.updatedNumberScheduled` lags, every pod may be the outdated one whose revision is not known to be the present
//! one; when `status.observedGeneration` does, every pod; a new pod that may stay pending holds up no other.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use super::builder::{Builder, mark_unready};
use super::linear::{at_most, count};
use super::members::pods_of;
use super::scheduling::places::{is_sure_to_fit, place};
use super::scheduling::template::Template;
use super::survival::Survival;
use crate::controllers::daemonset::{Outdated, max_unavailable, outdated};
use crate::controllers::pod_template::is_kept;
use crate::futures::{Entity, Fate, FateKind, LimitLabel, Remains, SetId};
use crate::navigate;
use crate::object::{Key, Object};
use crate::state::State;
use crate::value::Str;

/// What the rollout of a DaemonSet makes of its pods.
struct Rollout<'o> {
    set: &'o Object,
    /// The nodes that are to have a pod.
    nodes: BTreeSet<Str>,
    /// The template of new pods.
    template: Option<usize>,
    /// Which pods may be outdated.
    outdated: Outdated<'o>,
    /// Whether it matters where new pods do not fit.
    looks: bool,
}

/// The sets of entities by which its limit counts.
#[derive(Clone, Copy)]
struct Sets {
    updating: SetId,
    waiting: SetId,
}

/// The pods of a DaemonSet.
pub fn daemon_set(builder: &mut Builder<'_, '_>, set: &Arc<Object>) {
    let pods = pods_of(builder.state(), set);
    if !set.live() {
        for pod in &pods {
            builder.passive(pod);
        }
        return;
    }
    let rollout = Rollout::of(builder, set, &pods);
    let sets = Sets { updating: builder.set(), waiting: builder.set() };
    let mut taken: BTreeSet<Str> = BTreeSet::new();
    for pod in &pods {
        if pod.node.is_empty() || rollout.nodes.contains(&pod.node) {
            taken.insert(pod.node.clone());
        }
        let entity = member(builder, &rollout, sets, pod);
        builder.group.entities.push(entity);
    }
    if let Some(template) = rollout.template {
        for node in rollout.nodes.difference(&taken) {
            let name = format!("{}-(new)", set.key.name);
            let fates = rollout.made_on(builder, template, &name, node, !builder.after());
            builder.group.entities.push(Entity::new(1, vec![sets.waiting], fates));
        }
    }
    if rollout.outdated != Outdated::None && !builder.after() {
        let allowed = max_unavailable(set, i64::try_from(rollout.nodes.len()).unwrap_or(i64::MAX));
        let lacking = [FateKind::LosesReadiness, FateKind::Terminating, FateKind::Gone, FateKind::NewUnready];
        let gone = || count(sets.updating, &lacking);
        // what is on its way already counts as long as it is
        let on_its_way = count(sets.waiting, &[&lacking[..], &[FateKind::Stays, FateKind::NotMade]].concat());
        builder.limit(
            LimitLabel::OneAtATime { workload: set.key.clone(), max_unavailable: allowed },
            vec![at_most(vec![gone()], 0), at_most(vec![gone(), on_its_way], allowed)],
        );
    }
}

/// The entity of one existing pod.
fn member(builder: &Builder<'_, '_>, rollout: &Rollout<'_>, sets: Sets, pod: &Arc<Object>) -> Entity {
    let survival = builder.survival(pod);
    let is_outdated = rollout.outdated.has(pod);
    let elsewhere = !rollout.nodes.contains(&pod.node) && !pod.node.is_empty();
    let misplaced = elsewhere && (is_outdated || !navigate::keeps_daemon_pod(builder.state(), rollout.set, &pod.node));
    let replaceable = is_outdated && !misplaced && survival == Survival::Stays && !pod.terminating();
    let mut member_of = Vec::new();
    if replaceable && builder.survivals.stays_ready(pod) {
        member_of.push(sets.updating);
    } else if !elsewhere && !pod.ready() && survival != Survival::MayGo && (pod.terminating() || !is_outdated) {
        // an outdated one that is not ready goes whatever others do
        member_of.push(sets.waiting);
    }
    let mut entity = builder.existing(pod, &member_of, replaceable || misplaced || pod.finished());
    let is_replaced = !elsewhere && entity.fates.iter().any(|f| f.kind == FateKind::Gone);
    let comes_back = rollout.template.filter(|_| is_replaced);
    if let Some(template) = comes_back {
        let made = rollout.made_on(builder, template, &pod.key.name, &pod.node, false);
        Rc::make_mut(&mut entity.fates).extend(made);
    }
    if builder.after() && (replaceable || misplaced) {
        let goes = |kind: FateKind| !matches!(kind, FateKind::Stays | FateKind::BecomesReady | FateKind::Terminating);
        Rc::make_mut(&mut entity.fates).retain(|f| goes(f.kind) && (misplaced || f.kind != FateKind::Gone));
    } else if builder.after()
        && comes_back.is_some()
        && survival == Survival::Goes
        && !builder.survivals.is_expected(rollout.set)
    {
        // the controller has made another one by then
        Rc::make_mut(&mut entity.fates).retain(|f| f.kind != FateKind::Gone);
    }
    if !pod.ready() {
        mark_unready(&mut entity);
    }
    entity
}

impl<'o> Rollout<'o> {
    fn of(builder: &mut Builder<'_, '_>, set: &'o Object, pods: &'o [Arc<Object>]) -> Self {
        let state = builder.state();
        let nodes: BTreeSet<Str> = navigate::daemon_nodes(state, set).into_iter().map(|n| n.key.name.clone()).collect();
        let before = state.base().get(&set.key).filter(|o| o.uid == set.uid);
        let unseen = before.is_none_or(|b| !is_kept(b, set) || b.unobserved());
        let template = navigate::template_of(state, set).map(|template| builder.template(&template));
        let outdated = if template.is_some() { outdated(set, pods, unseen) } else { Outdated::None };
        place(builder, pods, i64::MAX);
        // what may not fit is looked at where a request has to do with it
        let is_touched = || match builder.view.coarse {
            true => builder.is_touched(&pods.iter().collect::<Vec<_>>()),
            false => builder.caused_by_request,
        };
        let looks = builder.after() && is_touched();
        Self { set, nodes, template, outdated, looks }
    }

    /// The fates of a new pod on one node.
    fn made_on(&self, builder: &Builder<'_, '_>, template: usize, name: &str, node: &Str, may_lack: bool) -> Vec<Fate> {
        let down = builder.view.outage.nodes.contains(node);
        let Some(template) = builder.templates.get(template) else { return Vec::new() };
        let may_pend = self.looks && !fits(builder.state(), self.set, template, node);
        let pod = builder.new_pod(template, name);
        let fate = |kind, remains| Fate { kind, place: None, remains };
        let mut fates = Vec::new();
        if may_lack {
            fates.push(fate(FateKind::NotMade, Remains::Nothing));
        }
        if !builder.after() || may_pend {
            fates.push(fate(FateKind::NewUnready, Remains::New(Arc::new(pod.on(node.clone(), false)))));
        }
        fates.push(fate(FateKind::NewReady, Remains::New(Arc::new(pod.on(node.clone(), !down)))));
        fates
    }
}

/// Whether a new pod of a DaemonSet finds room on a node for certain, beside all pods there but the set's own: that pods
/// of others go is not relied on.
fn fits(state: &State<'_>, set: &Object, template: &Template, node: &Str) -> bool {
    let own = |pod: &Object| pod.controller().is_some_and(|owner| owner.uid == set.uid);
    let others: Vec<&Arc<Object>> = state.pods_on(node).into_iter().filter(|pod| !own(pod)).collect();
    state.get(&Key::global("Node", node)).is_some_and(|node| is_sure_to_fit(template, node, &others))
}
