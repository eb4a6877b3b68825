//! A kind that was not read: what the checker says must be so whatever objects of it there are. Brute force is asked for one
//! content after the other: what the cluster has of it, nothing, each choice of a few, and what another cluster has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_checker::decision::Finding;
use suture_model::ingest::objects;
use suture_model::snapshot::Snapshot;
use suture_model::value::{Str, Val};
use suture_specs::spec::Violations;

use super::truth::{Truth, Unfit};
use super::{Engines, enumerate};
use crate::universe::adapters::Databases;
use crate::universe::focus::Focus;
use crate::universe::invariants::Pool;
use crate::universe::random::Random;
use crate::universe::{Case, Size, cluster};

/// So many objects of a kind are there or not, each by itself.
const TOLD_APART_MAX: usize = 2;
/// The contents of so many other clusters are tried.
const OTHERS: usize = 2;

/// A case in which a kind was not read.
#[derive(Clone, Debug)]
pub struct Unread {
    /// The case, with the objects that others only name.
    pub case: Case,
    /// The kind.
    pub kind: Str,
    /// What else there might be of it.
    pub others: Vec<Vec<Val>>,
}

/// What came of one comparison.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many instances that all contents have are decided.
    pub decided: u64,
    /// How many are undecided, by the reason.
    pub undecided: BTreeMap<String, u64>,
    /// How many of those would fare the same with each content that was tried.
    pub needless: BTreeMap<String, u64>,
    /// An instance of which something is said that is not so with this content.
    pub wrong: Option<String>,
}

fn kinds_of(val: &Val) -> Vec<Str> {
    objects(val).unwrap_or_default().into_iter().map(|object| object.key.kind.kind).collect()
}

fn is_of(val: &Val, kind: &str) -> bool {
    kinds_of(val).iter().any(|known| **known == *kind)
}

impl Unread {
    /// A case with one of the kinds of its objects unread; none where every kind is one that a request is about.
    pub fn of(random: &mut Random, case: Case, focus: Focus, size: Size) -> Option<Self> {
        let objects = case.snapshot().iter().map(|object| object.to_val()).collect();
        let case = Case { objects, ..case };
        let requests = case.change.requests.iter().chain(&case.in_flight);
        let asked: BTreeSet<Str> = requests.map(|request| request.target.kind.kind.clone()).collect();
        let all: BTreeSet<Str> = case.objects.iter().flat_map(kinds_of).collect();
        let kinds: Vec<Str> = all.difference(&asked).cloned().collect();
        if kinds.is_empty() {
            return None;
        }
        let kind = random.pick(&kinds).clone();
        let others = (0..OTHERS).map(|at| {
            let found = cluster::cluster(random, focus, size).into_iter().filter(|val| is_of(val, &kind));
            found.map(|val| case.fitting(&val, at)).collect()
        });
        let others = others.collect();
        Some(Self { case, kind, others })
    }

    /// The cluster where no object of the kind was read.
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new(Arc::new(Databases));
        snapshot.mark_unknown(&self.kind);
        for val in self.case.objects.iter().filter(|val| !is_of(val, &self.kind)) {
            objects(val).unwrap_or_default().into_iter().for_each(|object| snapshot.insert(object));
        }
        snapshot.complete();
        snapshot
    }

    /// What there may be of the kind. A namespace with something in it is there.
    fn contents(&self) -> Vec<Vec<Val>> {
        let all: Vec<Val> = self.case.objects.iter().filter(|val| is_of(val, &self.kind)).cloned().collect();
        if &*self.kind == "Namespace" {
            let name = |val: &Val| val.str_at(&["metadata", "name"]).cloned();
            let with_all = |other: &Vec<Val>| {
                let missing = all.iter().filter(|val| other.iter().all(|other| name(other) != name(val)));
                other.iter().chain(missing).cloned().collect()
            };
            return std::iter::once(all.clone()).chain(self.others.iter().map(with_all)).collect();
        }
        let mut contents = vec![all.clone()];
        if all.len() <= TOLD_APART_MAX {
            let chosen = |bits: usize| all.iter().enumerate().filter(move |(at, _)| bits & (1 << at) != 0);
            contents.extend((0..(1 << all.len()) - 1).map(|bits| chosen(bits).map(|(_, val)| val.clone()).collect()));
        } else {
            contents.push(Vec::new());
        }
        contents.extend(self.others.iter().cloned());
        contents
    }

    /// What the checker says, against what brute force says of each content.
    pub fn compare(&self, pool: &Pool, engines: &mut Engines, worlds_max: u64) -> Result<Outcome, Unfit> {
        let strict = pool.get(self.case.invariant).violations == Violations::Strict;
        let mut truths = Vec::new();
        let read: Vec<Val> = self.case.objects.iter().filter(|val| !is_of(val, &self.kind)).cloned().collect();
        for content in self.contents() {
            let objects = read.iter().chain(&content).cloned().collect();
            let case = Case { objects, ..self.case.clone() };
            truths.push((content, enumerate::truth(&case, pool.get(self.case.invariant), worlds_max)?));
        }
        let said = engines.check_in(&self.case, &self.snapshot(), pool);
        let mut found: BTreeMap<&String, (Finding, &str)> = BTreeMap::new();
        for (instance, (finding, reason)) in &said {
            let known = found.entry(instance).or_insert((*finding, reason));
            if *finding == Finding::Refuted {
                *known = (*finding, reason);
            }
        }
        // where an instance is undecided, so is the invariant: others may be reached as well
        let of_all = said.iter().find(|(_, (finding, _))| *finding == Finding::Undecided);
        let mut outcome = Outcome::default();
        let instances: BTreeSet<&String> =
            truths.iter().flat_map(|(_, truth)| truth.keys()).chain(found.keys().copied()).collect();
        for instance in instances {
            let fares: Vec<_> =
                truths.iter().filter_map(|(content, truth)| Some((content, truth.get(instance)?))).collect();
            let refuted = |truth: &Truth| *truth == Truth::Refuted;
            let undecided = match (found.get(instance), of_all) {
                (Some((Finding::Undecided, reason)), _) => Some(*reason),
                (Some((Finding::Refuted, _)), _) | (_, None) => None,
                (_, Some((_, (_, reason)))) => Some(reason.as_str()),
            };
            if let Some(reason) = undecided {
                if reason.starts_with("distrust") {
                    outcome.wrong.get_or_insert(format!("{instance}, {} not read: {said:?}", self.kind));
                }
                let reason = format!("{}: {reason}", self.kind);
                let all_alike = fares.iter().all(|(_, (truth, _))| refuted(truth))
                    || !fares.iter().any(|(_, (truth, _))| refuted(truth) || *truth == Truth::Fails);
                if all_alike {
                    *outcome.needless.entry(reason.clone()).or_default() += 1;
                }
                *outcome.undecided.entry(reason).or_default() += 1;
                continue;
            }
            outcome.decided += 1;
            let finding = found.get(instance).map(|(finding, _)| *finding);
            let wrong = fares.iter().find(|(_, (truth, before))| match finding {
                Some(Finding::Refuted) => !refuted(truth),
                _ => refuted(truth) && !(strict && before.broken && finding.is_none()),
            });
            if let Some((content, (truth, _))) = wrong {
                let content: Vec<String> =
                    content.iter().map(|val| serde_json::to_string(val).unwrap_or_default()).collect();
                outcome.wrong.get_or_insert(format!(
                    "{instance}: the checker says {finding:?}, brute force {truth:?} with {} not read and being\n{}\nof {said:?}",
                    self.kind,
                    content.join("\n")
                ));
            }
        }
        Ok(outcome)
    }
}
