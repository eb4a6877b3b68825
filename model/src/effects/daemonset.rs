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

use super::template::Template;
use super::{Builder, Standing, at_most, count, mark_unready, pods_of, scaled, template};
use crate::futures::{Entity, FateKind, LimitLabel, Remains};
use crate::navigate;
use crate::object::{Key, Object};
use crate::state::State;
use crate::value::{Str, Val};

/// The pods of a DaemonSet.
pub fn daemon_set(builder: &mut Builder<'_, '_>, set: &Arc<Object>) {
    let state = builder.state();
    let pods = pods_of(state, set);
    if !set.live() {
        for pod in &pods {
            builder.passive(pod);
        }
        return;
    }
    let nodes: Vec<Str> = navigate::daemon_nodes(state, set).into_iter().map(|n| n.key.name.clone()).collect();
    let val = set.val();
    let before = state.base().get(&set.key).filter(|o| o.uid == set.uid);
    let changed = before.is_none_or(|b| !template::is_kept(b, set));
    let of_status = |field: &str| val.int_at(&["status", field]);
    // a status that its controller wrote leaves out a number that is 0; before the first update nothing is outdated
    let was_updated = |observed: i64| observed > 1 || each(&pods).iter().any(|pod| !is_like(set, pod));
    let none_updated = of_status("observedGeneration").filter(|observed| was_updated(*observed)).map(|_| 0);
    let updated = of_status("updatedNumberScheduled").or(none_updated);
    let lagging =
        matches!((updated, of_status("desiredNumberScheduled")), (Some(updated), Some(desired)) if updated < desired);
    let unseen = changed || before.is_some_and(|b| b.unobserved());
    let rolling = val.str_at(&["spec", "updateStrategy", "type"]).is_none_or(|t| &**t == "RollingUpdate");
    let template = navigate::template_of(state, set).map(|template| builder.template(&template));
    let outdated = rolling && template.is_some() && (unseen || lagging);
    // as many as the status says, so that it is about these pods
    let of = |present: &Str| i64::try_from(pods.iter().filter(|pod| revision(pod) == Some(present)).count()).ok();
    let present = (outdated && !unseen).then(|| present_revision(set, &pods)).flatten();
    let present = present.filter(|present| updated.is_some_and(|updated| updated > 0 && of(present) == Some(updated)));
    let is_outdated = |pod: &Object| outdated && present.is_none_or(|present| revision(pod) != Some(present));
    builder.place(&pods, i64::MAX);
    // what may not fit is looked at where a request has to do with it
    let is_touched = || match builder.view.coarse {
        true => builder.is_touched(&pods.iter().collect::<Vec<_>>()),
        false => builder.caused_by_request,
    };
    let looks = builder.after() && is_touched();
    let made_on = |builder: &Builder<'_, '_>, template: usize, name: &str, node: &Str, may_lack: bool| {
        let may_pend = builder.templates.get(template).is_some_and(|own| looks && !fits(state, set, own, node));
        on_node(builder, template, name, node, may_lack, may_pend)
    };

    let (updating, waiting) = (builder.set(), builder.set());
    let mut taken: Vec<Str> = Vec::new();
    for pod in &pods {
        let standing = builder.standing(pod);
        let elsewhere = !nodes.contains(&pod.node) && !pod.node.is_empty();
        let misplaced = elsewhere && (is_outdated(pod) || !navigate::keeps_daemon_pod(state, set, &pod.node));
        let replaceable = is_outdated(pod) && !misplaced && standing == Standing::Kept && !pod.terminating();
        if !elsewhere {
            taken.push(pod.node.clone());
        }
        let mut sets = Vec::new();
        if replaceable && pod.ready() {
            sets.push(updating);
        } else if !elsewhere && !pod.ready() && standing != Standing::AtRisk && (pod.terminating() || !is_outdated(pod))
        {
            // an outdated one that is not ready goes whatever others do
            sets.push(waiting);
        }
        let mut entity = builder.existing(pod, &sets, replaceable || misplaced || super::hazard::finished(pod));
        let comes_back = template.filter(|_| !elsewhere && entity.fates.iter().any(|f| f.kind == FateKind::Gone));
        if let Some(template) = comes_back {
            Rc::make_mut(&mut entity.fates).extend(made_on(builder, template, &pod.key.name, &pod.node, false));
        }
        if builder.after() && (replaceable || misplaced) {
            let goes =
                |kind: FateKind| !matches!(kind, FateKind::Stays | FateKind::BecomesReady | FateKind::Terminating);
            Rc::make_mut(&mut entity.fates).retain(|f| goes(f.kind) && (misplaced || f.kind != FateKind::Gone));
        } else if builder.after()
            && comes_back.is_some()
            && standing == Standing::Removed
            && !builder.expected.goes(set)
        {
            // the controller has made another one by then
            Rc::make_mut(&mut entity.fates).retain(|f| f.kind != FateKind::Gone);
        }
        if !pod.ready() {
            mark_unready(&mut entity);
        }
        builder.group.entities.push(entity);
    }
    if let Some(template) = template {
        for node in nodes.iter().filter(|n| !taken.contains(n)) {
            let fates = made_on(builder, template, &format!("{}-(new)", set.key.name), node, !builder.after());
            builder.group.entities.push(Entity::new(1, vec![waiting], fates));
        }
    }
    if outdated && !builder.after() {
        let field = val.at(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
        let desired = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
        let allowed = scaled(field, desired, true, "1");
        let lacking = [FateKind::LosesReadiness, FateKind::Terminating, FateKind::Gone, FateKind::NewUnready];
        let gone = || count(updating, &lacking);
        // what is on its way already counts as long as it is
        let on_its_way = count(waiting, &[&lacking[..], &[FateKind::Stays, FateKind::NotMade]].concat());
        builder.limit(
            LimitLabel::OneAtATime { workload: set.key.clone(), max_unavailable: allowed },
            vec![at_most(vec![gone()], 0), at_most(vec![gone(), on_its_way], allowed)],
        );
    }
}

fn revision(pod: &Object) -> Option<&Str> {
    pod.label("controller-revision-hash")
}

/// The revision of the pods that are up to date, of which there are some: the only one whose pods are like the template
/// (`pkg/controller/daemon/util/daemonset_util.go`, `IsPodUpdated`, goes by the revision). Pods of one revision were made
/// from one template.
fn present_revision<'p>(set: &Object, pods: &'p [Arc<Object>]) -> Option<&'p Str> {
    let revisions: BTreeSet<&Str> = pods.iter().map(|pod| revision(pod)).collect::<Option<_>>()?;
    let each = each(pods);
    let other = |of: &&Str| each.iter().any(|pod| revision(pod) == Some(*of) && !is_like(set, pod));
    let mut like = revisions.into_iter().filter(|of| !other(of));
    like.next().filter(|_| like.next().is_none())
}

/// One of each kind of pods that are alike: equals stand together.
fn each(pods: &[Arc<Object>]) -> Vec<&Arc<Object>> {
    pods.chunk_by(|a, b| Arc::ptr_eq(&a.body, &b.body)).filter_map(|equals| equals.first()).collect()
}

/// Whether a pod shows nothing that is not in the template: its labels, and the images of its containers.
fn is_like(set: &Object, pod: &Object) -> bool {
    let template = |path: &[&str]| set.val().at(&[&["spec", "template"], path].concat()).cloned().unwrap_or_default();
    let (labels, containers) = (template(&["metadata", "labels"]), template(&["spec", "containers"]));
    let image = |containers: &Val, name: &Val| {
        let named = containers.items().iter().find(|container| container.get("name") == Some(name));
        named.and_then(|container| container.get("image").cloned())
    };
    let own = pod.val().at(&["spec", "containers"]).cloned().unwrap_or_default();
    let mut names = containers.items().iter().filter_map(|container| container.get("name"));
    labels.entries().all(|(key, value)| pod.labels().get(key) == Some(value))
        && names.all(|name| image(&own, name) == image(&containers, name))
}

/// Whether a new pod of a DaemonSet finds room on a node for certain, beside all pods there but the set's own: that pods
/// of others go is not relied on.
fn fits(state: &State<'_>, set: &Object, template: &Template, node: &Str) -> bool {
    let own = |pod: &Object| pod.controller().is_some_and(|owner| owner.uid == set.uid);
    let others: Vec<&Arc<Object>> = state.pods_on(node).into_iter().filter(|pod| !own(pod)).collect();
    state.get(&Key::global("Node", node)).is_some_and(|node| template.is_sure_to_fit(node, &others))
}

/// The fates of a new pod on one node.
fn on_node(
    builder: &Builder<'_, '_>,
    template: usize,
    name: &str,
    node: &Str,
    may_lack: bool,
    may_pend: bool,
) -> Vec<crate::futures::Fate> {
    let down = builder.view.outage.nodes.contains(node);
    let Some(template) = builder.templates.get(template) else { return Vec::new() };
    let pod = builder.new_pod(template, name);
    let fate = |kind, remains| crate::futures::Fate { kind, place: None, remains };
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
