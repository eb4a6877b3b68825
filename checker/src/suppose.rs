//! What was not read may be one thing or another: an owner may be there or gone, or go with what is deleted, which decides
//! whether its dependents are collected; pods may leave their node or not. What is asked is answered as if it were the one
//! and as if it were the other, and only what is so either way is said.
//!
//! What nothing asks for makes no difference. Where there is too much to try all, it is tried for each instance alone.

use std::collections::{BTreeMap, BTreeSet};

use suture_encode::question::Judged;
use suture_model::navigate::UnknownKind;
use suture_model::snapshot::{Snapshot, Supposition, asked_by};
use suture_model::state::State;
use suture_model::steps;

use crate::causes::{is_refuted, named};
use crate::decision::{Finding, Verdict};
use crate::explain;
use crate::instance::Undecided;
use crate::judge::{Findings, Judge, Scope};
use crate::request::{Input, Settings};

/// So many sets of suppositions are tried at most: each of three or not.
const TRIED_MAX: usize = 8;

/// What was found out where these are supposed, and no others.
struct Supposed<T> {
    supposed: BTreeSet<Supposition>,
    found: T,
}

/// What is found out under each set of suppositions that makes a difference; without any is the first. Where there are too
/// many, those that were asked for so far.
fn each<T>(
    snapshot: &Snapshot,
    mut find: impl FnMut(&Snapshot) -> T,
) -> Result<Vec<Supposed<T>>, BTreeSet<Supposition>> {
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    let mut open = vec![(BTreeSet::new(), BTreeSet::new())];
    while let Some((mut not, supposed)) = open.pop() {
        let (found, asked) = asked_by(|| find(&snapshot.supposing(supposed.clone())));
        for one in asked.difference(&supposed) {
            if !not.contains(one) {
                open.push((not.clone(), supposed.iter().chain([one]).cloned().collect()));
                not.insert(one.clone());
            }
        }
        known.extend(asked);
        all.push(Supposed { supposed, found });
        if all.len() + open.len() > TRIED_MAX {
            return Err(known);
        }
    }
    Ok(all)
}

fn unread(supposition: &Supposition) -> Undecided {
    Undecided::Refused(UnknownKind(supposition.kind().kind).to_string())
}

/// [`Judge::all`], where what is said of an instance is so whatever was not read.
pub(crate) fn judge_all(judge: &mut Judge<'_>, input: &Input<'_>, scope: Scope<'_>) -> Findings {
    let (found, asked) = asked_by(|| judge.all(input, scope));
    if asked.is_empty() {
        return found;
    }
    let settings = Settings { verbose: true, ..judge.settings.clone() };
    let scope = Scope { first: false, in_full: true, ..scope };
    let taken = std::mem::take(&mut judge.taken);
    let mut whole = Judge { settings: &settings, verdicts: &mut *judge.verdicts, taken, ..*judge };
    let found = match under_each(&mut whole, input, scope) {
        Ok(found) => found,
        Err(asked) => one_by_one(&mut whole, input, scope, asked),
    };
    (judge.effort, judge.taken) = (whole.effort, whole.taken);
    found
}

/// How an instance fares in the cluster as it is, if that is so whatever was not read.
pub(crate) fn judge_present(state: &State<'_>, judge: impl Fn(&State<'_>) -> Judged) -> Result<Judged, Undecided> {
    let (judged, asked) = asked_by(|| judge(state));
    let Some(first) = asked.first() else { return Ok(judged) };
    let all = each(state.base(), |snapshot| judge(&State::new(snapshot))).map_err(|_| unread(first))?;
    if let Some(failed) = all.iter().find(|supposed| matches!(supposed.found, Judged::Fails(_))) {
        return Ok(failed.found.clone());
    }
    let is_violated = |at: &usize| all.get(*at).is_some_and(|s| matches!(s.found, Judged::Violated { .. }));
    let violated: BTreeSet<usize> = (0..all.len()).filter(is_violated).collect();
    let suppositions: Vec<_> = all.into_iter().map(|supposed| supposed.supposed).collect();
    deciding(&suppositions, &violated).map_or(Ok(judged), Err)
}

/// The verdicts that are the same under each supposition.
fn under_each(judge: &mut Judge<'_>, input: &Input<'_>, scope: Scope<'_>) -> Result<Findings, BTreeSet<Supposition>> {
    each(input.snapshot, |snapshot| judge.all(&Input { snapshot, ..*input }, scope)).map(agreed)
}

/// The same for each instance alone, of all that are reached if all these are supposed, or none.
fn one_by_one(judge: &mut Judge<'_>, input: &Input<'_>, scope: Scope<'_>, asked: BTreeSet<Supposition>) -> Findings {
    let why = asked.first().map(unread);
    let mut reached: BTreeMap<(String, String), Verdict> = BTreeMap::new();
    let mut all = Findings::default();
    for supposed in [BTreeSet::new(), asked] {
        let snapshot = &input.snapshot.supposing(supposed);
        let found = judge.all(&Input { snapshot, ..*input }, scope);
        reached.extend(found.verdicts.iter().map(|verdict| (named(verdict), verdict.clone())));
        all = Findings { verdicts: Vec::new(), proved: 0, not_worse: 0, ..found };
    }
    for (name, verdict) in reached {
        let only = BTreeSet::from([name]);
        let scope = Scope { only: Some(&only), ..scope };
        let found = steps::check().ok().and_then(|()| under_each(judge, input, scope).ok()).unwrap_or_else(|| {
            let verdicts = why.iter().map(|why| explain::undecided_instead(&verdict, why)).collect();
            Findings { verdicts, ..Findings::default() }
        });
        all.proved += found.proved;
        all.not_worse += found.not_worse;
        all.overran.extend(found.overran);
        found.verdicts.into_iter().for_each(|verdict| add(&mut all.verdicts, verdict));
    }
    all
}

/// What all suppositions agree in: what is undecided under one is, as is what is refuted under some only.
fn agreed(all: Vec<Supposed<Findings>>) -> Findings {
    let mut agreed = Findings::default();
    let mut suppositions = Vec::new();
    let mut decided: BTreeMap<(String, String), Vec<(usize, Verdict)>> = BTreeMap::new();
    for (at, Supposed { supposed, found }) in all.into_iter().enumerate() {
        suppositions.push(supposed);
        agreed.overran.extend(found.overran);
        agreed.exempted.extend(found.exempted);
        agreed.operators.unmodelled.extend(found.operators.unmodelled);
        agreed.operators.assumed.extend(found.operators.assumed);
        for verdict in found.verdicts {
            if !is_undecided(&verdict) {
                decided.entry(named(&verdict)).or_default().push((at, verdict));
            } else {
                add(&mut agreed.verdicts, verdict);
            }
        }
    }
    agreed.exempted.sort();
    agreed.exempted.dedup();
    let undecided: BTreeSet<(String, String)> = agreed.verdicts.iter().map(named).collect();
    for (name, found) in decided {
        let refuted: BTreeSet<usize> = found.iter().filter(|(_, v)| is_refuted(v)).map(|(at, _)| *at).collect();
        if refuted.len() < suppositions.len() && undecided.contains(&name) {
            continue;
        }
        let why = deciding(&suppositions, &refuted);
        let broken = found.iter().find(|(_, verdict)| verdict.outcome == Finding::NotWorse);
        let Some((_, verdict)) = broken.or(found.first()) else { continue };
        agreed.proved += u64::from(verdict.outcome == Finding::Proved);
        agreed.not_worse += u64::from(verdict.outcome == Finding::NotWorse);
        agreed.verdicts.push(why.map_or_else(|| verdict.clone(), |why| explain::undecided_instead(verdict, &why)));
    }
    agreed
}

/// Why nothing is said of what some suppositions refute, and others do not: one at least that is among the ones and not among
/// the others.
fn deciding(suppositions: &[BTreeSet<Supposition>], refuted: &BTreeSet<usize>) -> Option<Undecided> {
    let (with, without): (Vec<_>, Vec<_>) = (0..).zip(suppositions).partition(|(at, _)| refuted.contains(at));
    let differ =
        |a: &BTreeSet<Supposition>, b: &BTreeSet<Supposition>| a.symmetric_difference(b).cloned().collect::<Vec<_>>();
    let pairs = with.iter().flat_map(|(_, a)| without.iter().map(|(_, b)| differ(a, b)));
    pairs.min_by_key(Vec::len)?.first().map(unread)
}

fn is_undecided(verdict: &Verdict) -> bool {
    verdict.outcome == Finding::Undecided
}

/// Adds a verdict, unless it was said already.
fn add(verdicts: &mut Vec<Verdict>, verdict: Verdict) {
    let same = |other: &Verdict| named(other) == named(&verdict) && other.reason == verdict.reason;
    if !verdicts.iter().any(same) {
        verdicts.push(verdict);
    }
}
