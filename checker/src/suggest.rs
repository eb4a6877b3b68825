//! What would have been allowed in place of a refused request. Nothing is said that the checker did not find to be allowed.

use std::collections::BTreeSet;

use suture_model::change::{Change, Request};

mod confirm;
mod state;
mod trials;
mod variants;

use crate::causes::{chosen, is_refuted, named};
use crate::decision::{Outcome, Verdict};
use crate::judge::{Findings, Scope};
use crate::request::Input;
use trials::Trials;

/// How many nearby requests and states are judged for one denial.
const TRIALS_MAX: u64 = 32;
/// More causes of one denial get no suggestion.
const CAUSES_MAX: usize = 4;

/// Adds to each refuted verdict what would have been allowed: nearest requests, what to wait for, and how to say that what
/// goes is meant to. No more than so many trials are made for each cause. `is_about_places` says of an invariant, by its name,
/// whether it is about where pods are: only then it helps to spread them.
pub(crate) fn suggest(
    input: &Input<'_>,
    verdicts: &mut [Verdict],
    trials_max: u64,
    is_about_places: impl Fn(&str) -> bool,
    mut judge: impl FnMut(&Input<'_>, Scope<'_>) -> Findings,
) {
    let warned = verdicts.iter().any(|v| v.decides() == Outcome::Warned);
    let causes: BTreeSet<Vec<usize>> = verdicts.iter().filter(|v| is_refuted(v)).map(|v| v.requests.clone()).collect();
    for cause in causes.into_iter().take(CAUSES_MAX) {
        let of_cause = |verdict: &&Verdict| is_refuted(verdict) && verdict.requests == cause;
        let same = verdicts.iter().filter(of_cause).map(named).collect();
        let denies = verdicts.iter().filter(of_cause).any(|verdict| verdict.decides() == Outcome::Denied);
        let requests = match cause.as_slice() {
            [] => input.change.requests.clone(),
            few => chosen(&input.change.requests, few),
        };
        let change = Change { requests };
        let asked = Input { change: &change, ..*input };
        let mut trials = Trials { judge: &mut judge, left: trials_max.min(TRIALS_MAX), warned, same };
        let spreads = verdicts.iter().filter(of_cause).any(|verdict| is_about_places(&verdict.invariant));
        let mut found: Vec<String> = instead(&asked, &mut trials, spreads).into_iter().collect();
        if found.is_empty() {
            // what breaks on the way through the whole batch may hold in another order of it
            found.extend(in_order(&asked, &mut trials).or_else(|| in_order(input, &mut trials)));
        }
        let allowed = found.is_empty().then(|| state::once(&asked, &mut trials)).flatten();
        found.extend(allowed);
        found.extend(denies.then(|| confirm::once_meant(&asked, &mut trials)).flatten());
        for verdict in verdicts.iter_mut().filter(|verdict| is_refuted(verdict) && verdict.requests == cause) {
            verdict.nearest_allowed.splice(..0, found.iter().cloned());
        }
    }
}

/// The nearest change that is allowed, in words; `spreads` says whether pods are spread for it.
fn instead(input: &Input<'_>, trials: &mut Trials<'_>, spreads: bool) -> Option<String> {
    let requests = &input.change.requests;
    for (at, request) in requests.iter().enumerate().take(variants::REQUESTS_MAX) {
        let mut allowed = |variant: &Request| {
            let mut requests = requests.clone();
            requests.splice(at..=at, [variant.clone()]);
            trials.is_allowed(&Input { change: &Change { requests }, ..*input })
        };
        let it = if requests.len() == 1 { "it".to_owned() } else { request.target.to_string() };
        if let Some(text) = variants::nearest(input.snapshot, request, &it, spreads, &mut allowed) {
            return Some(text);
        }
    }
    None
}

/// The requests of a batch in an order that is allowed, or one by one.
fn in_order(input: &Input<'_>, trials: &mut Trials<'_>) -> Option<String> {
    variants::in_another_order(&input.change.requests, &mut |requests| {
        trials.is_allowed(&Input { change: &Change { requests }, ..*input })
    })
}
