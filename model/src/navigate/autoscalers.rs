//! Who sets the replicas of a workload beside its author: HorizontalPodAutoscalers, and custom resources by their adapter.
//!
//! Source: `pkg/controller/podautoscaler/horizontal.go` (`reconcileAutoscaler`). What a reference does not resolve to is
//! not scaled.

use std::sync::Arc;

use crate::controllers::replicas::stated_replicas;
use crate::kinds::KindTraits;
use crate::object::{Key, Object};
use crate::references::typed;
use crate::state::State;

/// The autoscalers that name a workload as what they scale, in the order of their keys.
pub fn autoscalers<'s>(state: &'s State, workload: &Key) -> Vec<&'s Arc<Object>> {
    let mut found = state.referrers(workload);
    found.retain(|scaler| scale_target(state, scaler).is_some_and(|target| target.means(workload)));
    found
}

/// The lowest and the highest number that autoscalers which stay may set a workload to; `None` when nothing scales it.
pub fn replica_range(state: &State, workload: &Object) -> Option<(i64, i64)> {
    within(state, workload, |scaler| scaler.live())
}

/// The same of all that are there: what goes may act until then.
pub fn autoscaled_range(state: &State, workload: &Object) -> Option<(i64, i64)> {
    within(state, workload, |_| true)
}

/// The object that an autoscaler scales, if it is there.
pub fn scaled<'s>(state: &'s State, scaler: &Object) -> Option<&'s Arc<Object>> {
    state.resolve(&scale_target(state, scaler)?)
}

/// What an autoscaler names as what it scales.
pub fn scale_target(state: &State, scaler: &Object) -> Option<Key> {
    if scaler.key.kind.has(KindTraits::scales) {
        return scaler.val().at_some(&["spec", "scaleTargetRef"]).and_then(|target| typed(target, &scaler.key.ns));
    }
    state.adapter(scaler)?.scale_target.clone()
}

/// What these autoscalers may set a workload to. A HorizontalPodAutoscaler leaves one at 0 alone unless its own minimum is
/// 0; so does it where nothing else takes the workload from there.
fn within(state: &State, workload: &Object, acts: impl Fn(&Object) -> bool) -> Option<(i64, i64)> {
    let is_idle = match workload.key.kind.has(KindTraits::has_scale) {
        true => stated_replicas(workload) == 0,
        false => state.adapter(workload)?.replicas == Some(0),
    };
    let scalers = autoscalers(state, &workload.key).into_iter().filter(|scaler| acts(scaler));
    let ranges = scalers.filter_map(|scaler| {
        let range = scaler_range(state, scaler)?;
        Some((scaler.key.kind.has(KindTraits::scales) && range.0 != 0, range))
    });
    let (asleep, mut awake): (Vec<_>, Vec<_>) = ranges.partition(|(sleeps, _)| *sleeps && is_idle);
    if awake.iter().any(|(_, (_, high))| *high > 0) {
        awake.extend(asleep);
    }
    let low = awake.iter().map(|(_, (low, _))| *low).min()?;
    let high = awake.iter().map(|(_, (_, high))| *high).max()?;
    Some((low, high.max(low)))
}

/// The lowest and the highest number that an autoscaler sets; `None` for an object that scales nothing.
pub fn scaler_range(state: &State, scaler: &Object) -> Option<(i64, i64)> {
    if scaler.key.kind.has(KindTraits::scales) {
        let bound = |field| scaler.val().int_at(&["spec", field]);
        let low = bound("minReplicas").unwrap_or(1);
        return Some((low, bound("maxReplicas").unwrap_or(low)));
    }
    state.adapter(scaler)?.replica_range
}
