//! Custom resources by their adapter: when `replicas` falls, any of the selected pods may go, unless a workload of
//! their own decides which.
//!
//! Over-approximation: nothing is known of the operator's order or pace.

use std::sync::Arc;

use super::{Builder, LOST, Standing, at_most, count};
use crate::futures::LimitLabel;
use crate::navigate;
use crate::object::Object;
use crate::selector::Selector;
use crate::state::State;

/// What a live custom resource wants of the one workload that runs its pods: its own `replicas`. `None` when no adapter
/// says so, or when several workloads share the pods.
pub fn wish(state: &State<'_>, workload: &Object) -> Option<i64> {
    let owner = workload.controller()?;
    let parent = state.by_uid(&owner.uid).filter(|o| o.live())?;
    let facts = state.adapter(parent)?;
    let (replicas, selector) = (facts.replicas?, facts.selector.as_ref()?);
    if !runs(state, workload, selector) {
        return None;
    }
    let siblings = state.owned_by(&parent.uid);
    let sharing = siblings.iter().filter(|o| o.key.kind != workload.key.kind || o.key != workload.key);
    let shared = sharing.filter(|o| !o.key.kind.is("Pod")).any(|o| runs(state, o, selector));
    (!shared).then_some(replicas)
}

/// Whether the pods of this workload are among those that the selector means.
fn runs(state: &State<'_>, workload: &Object, selector: &Selector) -> bool {
    !workload.key.kind.is("Pod")
        && navigate::template_of(state, workload)
            .is_some_and(|t| selector.matches(t.at(&["metadata", "labels"]).unwrap_or(&crate::value::Val::Null)))
}

/// The pods that a custom resource runs without a workload in between.
pub fn custom_resource(builder: &mut Builder<'_, '_>, parent: &Arc<Object>) {
    let state = builder.state();
    let Some(facts) = state.adapter(parent) else { return builder.passive(parent) };
    let owned = state.owned_by(&parent.uid).into_iter();
    let mut pods: Vec<Arc<Object>> = owned.filter(|o| o.key.kind.is("Pod")).cloned().collect();
    if let Some(selector) = &facts.selector {
        let selected = state.pods_matching(&parent.key.ns, selector).into_iter();
        let theirs = selected.filter(|p| super::group_name(state, p) == parent.key);
        pods.extend(theirs.cloned());
    }
    pods.sort_by(|a, b| a.key.cmp(&b.key));
    pods.dedup_by(|a, b| a.key == b.key);
    let counted = |p: &&Arc<Object>| !p.terminating() && (!p.leaving || builder.scenario.removed.contains(&p.key));
    let present = i64::try_from(pods.iter().filter(counted).count()).unwrap_or(i64::MAX);
    let excess = match facts.replicas {
        Some(wanted) if parent.live() => (present - wanted).max(0),
        _ => 0,
    };
    let chosen = builder.set();
    for pod in &pods {
        let may_go = excess > 0 && builder.standing(pod) == Standing::Kept && !pod.terminating();
        let sets = if may_go { vec![chosen] } else { Vec::new() };
        let entity = builder.existing(pod, &sets, may_go);
        builder.group.entities.push(entity);
    }
    if excess > 0 {
        let label = LimitLabel::ScaleDownRemoves { workload: parent.key.clone(), pods: excess };
        builder.limit(label, vec![at_most(vec![count(chosen, &LOST)], excess)]);
    }
}
