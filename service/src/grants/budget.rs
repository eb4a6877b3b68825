//! Budgets over time: how many objects of a kind may be deleted, and which part of a workload's pods disrupted, within a
//! window that ends now.

use std::collections::{BTreeMap, BTreeSet};

use suture_model::navigate::wanted_replicas;
use suture_model::object::Key;
use suture_model::state::State;

use super::grant::{Grant, GrantQuestion};
use super::history::{Spent, Taken};
use super::limit::Limit;
use super::spent::present;

/// How many objects a message names.
const NAMED_MAX: usize = 3;

/// What is wrong, if the change goes beyond the limit.
pub(super) fn exceeded(
    limit: &Limit,
    grant: &Grant,
    spent: &Spent,
    state: &State<'_>,
    asked: &GrantQuestion<'_>,
) -> Option<Result<String, String>> {
    let (before, scaled) = asked.history.within(&grant.name, limit.window, asked.now);
    if limit.percent.is_some() {
        return disrupted(limit, spent, &before, &scaled, state).map(Ok);
    }
    let counted = |taken: &&Taken| limit.counts(taken);
    let new: BTreeSet<&Taken> = spent.taken.iter().filter(counted).filter(|taken| !before.contains(taken)).collect();
    let old = before.iter().copied().filter(counted).count();
    if new.is_empty() {
        // of a kind that was not read, a closure may hold any number
        let unread = state.base().unknown().iter().any(|kind| **kind == *limit.kind.kind);
        let closes = spent.taken.iter().any(|taken| !counted(&taken));
        return (unread && closes).then(|| Err(format!("objects of kind `{}` were not read", limit.kind)));
    }
    let max = usize::try_from(limit.max).unwrap_or(usize::MAX);
    (old + new.len() > max).then(|| {
        let before = if old == 0 { String::new() } else { format!(", after {old} within the last {}", limit.text) };
        let names = named(new.iter().map(|taken| &taken.key));
        Ok(format!("it deletes {names}{before}; at most {max} {} may be deleted within {}", limit.kind, limit.text))
    })
}

/// The first workload of which the change disrupts too many pods.
fn disrupted(
    limit: &Limit,
    spent: &Spent,
    before: &BTreeSet<&Taken>,
    scaled: &BTreeMap<&Key, u64>,
    state: &State<'_>,
) -> Option<String> {
    let fresh: Vec<&Taken> = spent.taken.iter().filter(|taken| !before.contains(taken)).collect();
    let groups: BTreeSet<&Key> =
        fresh.iter().filter_map(|taken| taken.group.as_ref()).chain(spent.scaled.keys()).collect();
    groups.into_iter().find_map(|group| {
        let of = |taken: &&Taken| taken.group.as_ref() == Some(group);
        let pods = fresh.iter().copied().filter(|taken| of(taken)).count() as u64;
        let new = pods + spent.scaled.get(group).copied().unwrap_or(0);
        let old =
            before.iter().copied().filter(|taken| of(taken)).count() as u64 + scaled.get(group).copied().unwrap_or(0);
        let workload = state.get(group)?;
        let wanted = wanted_replicas(state, workload).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let base = wanted.max(present(state, workload) as u64);
        let allowed = base.saturating_mul(u64::from(limit.max)) / 100;
        (new + old > allowed).then(|| {
            let before = if old == 0 { String::new() } else { format!(", after {old} within the last {}", limit.text) };
            format!(
                "it disrupts {new} of {base} pods of {group}{before}; {} % within {} are {allowed}",
                limit.max, limit.text
            )
        })
    })
}

fn named<'k>(keys: impl Iterator<Item = &'k Key>) -> String {
    let all: Vec<String> = keys.map(ToString::to_string).collect();
    let shown = all.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > NAMED_MAX { format!("{shown} and {} more", all.len() - NAMED_MAX) } else { shown }
}
