//! An integer or a percentage, as controllers read it.

use crate::value::{Str, Val};

/// An integer or percentage of `of`, as Deployments, StatefulSets and DaemonSets read it
/// (`apimachinery/pkg/util/intstr`, `GetScaledValueFromIntOrPercent`).
pub fn scaled(value: Option<&Val>, of: i64, round_up: bool, default: &str) -> i64 {
    let text: Str = match value {
        Some(Val::Int(i)) => return *i,
        Some(Val::Str(s)) => s.clone(),
        _ => default.into(),
    };
    let Some(percent) = text.strip_suffix('%').and_then(|p| p.parse::<i64>().ok()) else {
        return text.parse().unwrap_or(0);
    };
    let product = of.saturating_mul(percent);
    if round_up { product.saturating_add(99).div_euclid(100) } else { product.div_euclid(100) }
}
