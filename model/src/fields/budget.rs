//! How many disruptions a PodDisruptionBudget allows over pods that are counted already.
//!
//! Source: `pkg/controller/disruption/disruption.go` (`getExpectedPodCount`, `updatePdbStatus`).

use crate::object::Object;
use crate::value::Val;

/// How many disruptions a budget allows over `healthy` ready pods whose controllers' scales sum up to `scale`; `None`
/// when one of them has none.
pub fn disruptions_allowed(budget: &Object, healthy: i64, scale: Option<i64>) -> i64 {
    let spec = |field: &str| budget.val().at_some(&["spec", field]);
    let (expected, desired) = match (spec("maxUnavailable"), spec("minAvailable")) {
        (Some(most), _) => {
            let Some((scale, most)) = scale.and_then(|n| Some((n, scaled_value(most, n)?))) else { return 0 };
            (scale, scale.saturating_sub(most).max(0))
        }
        (None, Some(Val::Int(least))) => (healthy, *least),
        (None, Some(least)) => {
            let Some((scale, least)) = scale.and_then(|n| Some((n, scaled_value(least, n)?))) else { return 0 };
            // the controller leaves the expected count at the scale, which is positive wherever a pod is managed
            (scale, least)
        }
        (None, None) => return 0,
    };
    if expected <= 0 { 0 } else { healthy.saturating_sub(desired).max(0) }
}

/// An integer, or a percentage of `total` rounded up (`intstr.GetScaledValueFromIntOrPercent`); `None` for neither.
fn scaled_value(value: &Val, total: i64) -> Option<i64> {
    match value {
        Val::Int(int) => Some(*int),
        Val::Str(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let product = total.checked_mul(percent)?;
            Some(product / 100 + i64::from(product % 100 > 0))
        }
        _ => None,
    }
}
