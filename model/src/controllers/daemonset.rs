//! What the DaemonSet controller intends with the pods of a set.
//!
//! Source: `pkg/controller/daemon/{daemon_controller,update}.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::intstr::scaled;
use crate::object::Object;
use crate::value::{Str, Val};

/// Which pods of a set a rolling update may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outdated<'o> {
    /// None.
    None,
    /// All but those of this revision.
    AllBut(&'o Str),
    /// All.
    All,
}

impl Outdated<'_> {
    /// Whether it may replace this one.
    pub fn has(self, pod: &Object) -> bool {
        match self {
            Self::None => false,
            Self::AllBut(present) => revision(pod) != Some(present),
            Self::All => true,
        }
    }
}

/// Which of a set's pods may be outdated, as its status and they show it; `unseen` says that the controller has not seen the
/// template yet.
pub fn outdated<'o>(set: &Object, pods: &'o [Arc<Object>], unseen: bool) -> Outdated<'o> {
    // before the first update nothing is outdated
    let was_updated = |observed: i64| observed > 1 || each(pods).iter().any(|pod| !is_like(set, pod));
    if !rolls(set) || !(unseen || lags(set, was_updated)) {
        return Outdated::None;
    }
    // as many as the status says, so that it is about these pods
    let of = |present: &Str| i64::try_from(pods.iter().filter(|pod| revision(pod) == Some(present)).count()).ok();
    let updated = set.val().int_at(&["status", "updatedNumberScheduled"]).filter(|updated| *updated > 0);
    let present = (!unseen).then(|| present_revision(set, pods)).flatten();
    let present = present.filter(|present| updated.is_some() && of(present) == updated);
    present.map_or(Outdated::All, Outdated::AllBut)
}

/// Whether none of a set's pods is [outdated], whatever they are, as long as its template stays: what becomes of one of them
/// is nothing to those on other nodes.
pub fn is_settled(set: &Object) -> bool {
    !rolls(set) || !(set.unobserved() || lags(set, |_| true))
}

fn rolls(set: &Object) -> bool {
    set.val().str_at(&["spec", "updateStrategy", "type"]).is_none_or(|kind| &**kind == "RollingUpdate")
}

/// Whether its status counts fewer updated pods than it wants. A number that is 0 is left out of a status that its controller
/// wrote: it may be one of before the first update, which is seen by the generation that it is of.
fn lags(set: &Object, was_updated: impl Fn(i64) -> bool) -> bool {
    let of_status = |field: &str| set.val().int_at(&["status", field]);
    let none_updated = || of_status("observedGeneration").filter(|observed| was_updated(*observed)).map(|_| 0);
    let updated = of_status("updatedNumberScheduled").or_else(none_updated);
    updated.zip(of_status("desiredNumberScheduled")).is_some_and(|(updated, desired)| updated < desired)
}

/// How many nodes may have an old pod and its successor at a time: rounded up (`pkg/controller/daemon/util`, `SurgeCount`).
pub fn max_surge(set: &Object, nodes: i64) -> i64 {
    let on_delete = set.val().str_at(&["spec", "updateStrategy", "type"]).is_some_and(|kind| &**kind == "OnDelete");
    let field = set.val().at(&["spec", "updateStrategy", "rollingUpdate", "maxSurge"]);
    if on_delete { 0 } else { scaled(field, nodes, true, "0") }
}

/// How many of the nodes that are to have a pod may lack an updated one: rounded up.
pub fn max_unavailable(set: &Object, nodes: i64) -> i64 {
    scaled(set.val().at(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]), nodes, true, "1")
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
