//! What was not read may be one thing or another. Whether an owner exists whose kind was not read decides whether its dependents
//! are collected: what is asked is answered as if it existed and as if it did not, and only what is so either way is said.
//!
//! Owners about which nothing was asked make no difference. Where there are too many to try all, they are tried for each
//! instance alone.

use std::collections::{BTreeMap, BTreeSet};

use suture_model::navigate::UnknownKind;
use suture_model::object::Owner;
use suture_model::snapshot::{Snapshot, asked_by};
use suture_model::steps;

use crate::causes::{is_refuted, named};
use crate::decision::{Finding, Verdict};
use crate::explain;
use crate::instance::Undecided;
use crate::judge::{Findings, Judge, Scope};
use crate::request::{Input, Settings};

/// So many suppositions are tried at most: that each of three owners is there or not.
const TRIED_MAX: usize = 8;

/// What was found out where these owners are gone, and all others there.
struct Supposed<T> {
    gone: BTreeSet<Owner>,
    found: T,
}

/// What is found out under each supposition that makes a difference; that nobody is gone is the first. Where there are too
/// many, the owners that were asked about so far.
fn each<T>(snapshot: &Snapshot, mut find: impl FnMut(&Snapshot) -> T) -> Result<Vec<Supposed<T>>, BTreeSet<Owner>> {
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    let mut open = vec![(BTreeSet::new(), BTreeSet::new())];
    while let Some((mut there, gone)) = open.pop() {
        let (found, asked) = asked_by(|| find(&snapshot.without_owners(gone.clone())));
        for owner in asked.difference(&gone) {
            if !there.contains(owner) {
                open.push((there.clone(), gone.iter().chain([owner]).cloned().collect()));
                there.insert(owner.clone());
            }
        }
        known.extend(asked);
        all.push(Supposed { gone, found });
        if all.len() + open.len() > TRIED_MAX {
            return Err(known);
        }
    }
    Ok(all)
}

fn unread(owner: &Owner) -> Undecided {
    Undecided::Refused(UnknownKind(owner.kind.kind.clone()).to_string())
}

/// [`Judge::all`], where what is said of an instance is so whichever owners there are of the kinds that were not read.
pub(crate) fn judge_all(judge: &mut Judge<'_>, input: &Input<'_>, scope: Scope<'_>) -> Findings {
    let (found, asked) = asked_by(|| judge.all(input, scope));
    if asked.is_empty() {
        return found;
    }
    let settings = Settings { verbose: true, ..judge.settings.clone() };
    let scope = Scope { first: false, in_full: true, ..scope };
    let mut whole = Judge { settings: &settings, verdicts: &mut *judge.verdicts, ..*judge };
    let found = match under_each(&mut whole, input, scope) {
        Ok(found) => found,
        Err(asked) => one_by_one(&mut whole, input, scope, asked),
    };
    judge.effort = whole.effort;
    found
}

/// The verdicts that are the same under each supposition.
fn under_each(judge: &mut Judge<'_>, input: &Input<'_>, scope: Scope<'_>) -> Result<Findings, BTreeSet<Owner>> {
    each(input.snapshot, |snapshot| judge.all(&Input { snapshot, ..*input }, scope)).map(agreed)
}

/// The same for each instance alone, of all that are reached if all these owners are there, or gone.
fn one_by_one(judge: &mut Judge<'_>, input: &Input<'_>, scope: Scope<'_>, asked: BTreeSet<Owner>) -> Findings {
    let why = asked.first().map(unread);
    let mut reached: BTreeMap<(String, String), Verdict> = BTreeMap::new();
    let mut all = Findings::default();
    for gone in [BTreeSet::new(), asked] {
        let snapshot = &input.snapshot.without_owners(gone);
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
    for (at, Supposed { gone, found }) in all.into_iter().enumerate() {
        suppositions.push(gone);
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

/// Why nothing is said of what some suppositions refute, and others do not: one owner at least that is there under the ones
/// and gone under the others.
fn deciding(suppositions: &[BTreeSet<Owner>], refuted: &BTreeSet<usize>) -> Option<Undecided> {
    let (with, without): (Vec<_>, Vec<_>) = (0..).zip(suppositions).partition(|(at, _)| refuted.contains(at));
    let differ = |a: &BTreeSet<Owner>, b: &BTreeSet<Owner>| a.symmetric_difference(b).cloned().collect::<Vec<_>>();
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
