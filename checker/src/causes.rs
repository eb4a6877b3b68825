//! Which requests of a batch break what is refused: as few as do it on their own, so that a denial tells their steps only.

use std::collections::BTreeSet;

use suture_model::change::{Change, Request};

use crate::decision::{Finding, Verdict};
use crate::judge::{Findings, Scope};
use crate::request::Input;

/// So many causes of one denial are told apart.
const CAUSES_MAX: usize = 8;
/// How many smaller batches are judged for one denial.
const TRIALS_MAX: u64 = 160;

/// Puts in place of each refuted verdict on a batch the one on those of its requests that break the instance alone, where
/// they are fewer. A trial judges one instance, hence there are some for each `trials` of all.
pub(crate) fn narrow(
    input: &Input<'_>,
    verdicts: &mut [Verdict],
    trials: u64,
    mut judge: impl FnMut(&Input<'_>, Scope<'_>) -> Findings,
) {
    let requests = &input.change.requests;
    let all: Vec<usize> = (0..requests.len()).collect();
    let mut trials = trials.saturating_mul(4).min(TRIALS_MAX);
    let mut open: BTreeSet<usize> = (0..).zip(&*verdicts).filter(|(_, v)| is_refuted(v)).map(|(at, _)| at).collect();
    for _ in 0..CAUSES_MAX {
        if requests.len() < 2 {
            return;
        }
        let Some(first) = open.first().copied() else { return };
        let only = BTreeSet::from([verdicts.get(first).map(named).unwrap_or_default()]);
        let few = fewest(&all, &mut trials, |few| {
            let change = Change { requests: chosen(requests, few) };
            let scope = Scope { only: Some(&only), ..Scope::default() };
            judge(&Input { change: &change, ..*input }, scope).verdicts.iter().any(is_refuted)
        });
        open.remove(&first);
        if few.len() == all.len() {
            continue;
        }
        let same: BTreeSet<(String, String)> =
            open.iter().chain([&first]).filter_map(|at| verdicts.get(*at)).map(named).collect();
        let change = Change { requests: chosen(requests, &few) };
        let alone = judge(&Input { change: &change, ..*input }, Scope { only: Some(&same), ..Scope::default() });
        for found in alone.verdicts.into_iter().filter(is_refuted) {
            let at = (0..).zip(&*verdicts).find(|(_, verdict)| named(verdict) == named(&found)).map(|(at, _)| at);
            if let Some((at, verdict)) = at.and_then(|at| Some((at, verdicts.get_mut(at)?))) {
                open.remove(&at);
                *verdict = Verdict { requests: few.clone(), ..found };
            }
        }
    }
}

/// The requests of a batch at these places.
pub(crate) fn chosen(requests: &[Request], few: &[usize]) -> Vec<Request> {
    few.iter().filter_map(|at| requests.get(*at)).cloned().collect()
}

/// What a verdict is about.
pub(crate) fn named(verdict: &Verdict) -> (String, String) {
    (verdict.invariant.clone(), verdict.instance.clone())
}

/// Whether an instance can break.
pub(crate) fn is_refuted(verdict: &Verdict) -> bool {
    verdict.outcome == Finding::Refuted
}

/// As few of these as still break it, in their order: halves are left out, then quarters, then single ones, as long as it
/// still breaks without them. All of them break it.
fn fewest(all: &[usize], trials: &mut u64, mut breaks: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let mut kept = all.to_vec();
    let mut size = kept.len().div_ceil(2);
    while kept.len() > 1 {
        let mut at = 0;
        while at < kept.len() && kept.len() > 1 {
            if *trials == 0 {
                return kept;
            }
            let end = kept.len().min(at + size);
            let without: Vec<usize> =
                (0..).zip(&kept).filter(|(i, _)| !(at..end).contains(i)).map(|(_, k)| *k).collect();
            *trials -= 1;
            if !without.is_empty() && breaks(&without) {
                kept = without;
            } else {
                at = end;
            }
        }
        if size == 1 {
            break;
        }
        size = size.div_ceil(2);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_requests_those_that_matter_are_found_in_few_trials() {
        let all: Vec<usize> = (0..62).collect();
        for needed in [vec![5], vec![3, 40], vec![0, 30, 61]] {
            let mut trials = TRIALS_MAX;
            let found = fewest(&all, &mut trials, |few| needed.iter().all(|n| few.contains(n)));
            assert_eq!(found, needed);
            assert!(TRIALS_MAX - trials <= 40, "{}", TRIALS_MAX - trials);
        }
    }

    #[test]
    fn where_trials_end_what_is_known_stays() {
        let all: Vec<usize> = (0..8).collect();
        let mut trials = 1;
        assert_eq!(fewest(&all, &mut trials, |few| few.contains(&6)), [4, 5, 6, 7]);
    }
}
