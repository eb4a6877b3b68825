//! A way to place new pods: each in turn where the fewest are that it is spread with.

use std::collections::{BTreeMap, BTreeSet};

use super::board::{Board, Counted, Filling};
use super::rules::Asks;
use crate::steps;

/// Each pod in turn where the fewest are that it is spread with, of such places where the most room is left, of these the first.
pub fn greedy(board: &Board) -> Filling {
    let mut filling = board.empty();
    let mut places = Places::of(board, &filling);
    let mut kinds: Vec<(usize, usize)> = (0..board.kinds.len())
        .map(|kind| (board.spots.iter().filter(|spot| spot.admits.get(kind) == Some(&true)).count(), kind))
        .collect();
    kinds.sort_unstable();
    for (_, kind) in kinds {
        for _ in 0..board.kinds.get(kind).copied().unwrap_or(0) {
            let Some(at) = places.best(&filling, kind) else { break };
            places.put(&mut filling, at);
        }
    }
    filling
}

/// Where a spot stands among those of its district: how many are near it by the rules of which each spot is a domain of its own,
/// how much room is left, its number.
type Rank = (i64, i64, usize);

/// Spots that are in the same domains of those rules whose domains have several spots, and that admit the same kinds.
struct District {
    admits: Vec<bool>,
    domains: Vec<Option<usize>>,
    spots: BTreeSet<Rank>,
}

/// The spots with room left, by districts: for one pod all spots of a district are alike but for their rank.
struct Places<'b> {
    board: &'b Board,
    /// For each rule, whether each of its domains has one spot only.
    single: Vec<bool>,
    districts: Vec<District>,
    /// For each spot, its district.
    of: Vec<usize>,
}

impl<'b> Places<'b> {
    fn of(board: &'b Board, filling: &Filling) -> Self {
        let is_single = |rule: usize| {
            let mut seen = BTreeSet::new();
            board.spots.iter().filter_map(|spot| *spot.domains.get(rule)?).all(|domain| seen.insert(domain))
        };
        let single: Vec<bool> = (0..board.rules.len()).map(is_single).collect();
        let mut places = Self { board, single, districts: Vec::new(), of: Vec::new() };
        let mut known: BTreeMap<(Vec<bool>, Vec<Option<usize>>), usize> = BTreeMap::new();
        for (at, spot) in board.spots.iter().enumerate() {
            let domains: Vec<Option<usize>> =
                spot.domains.iter().zip(&places.single).filter(|(_, single)| !**single).map(|(d, _)| *d).collect();
            let next = places.districts.len();
            let district = *known.entry((spot.admits.clone(), domains)).or_insert(next);
            if district == next {
                let (admits, domains) = (spot.admits.clone(), spot.domains.clone());
                places.districts.push(District { admits, domains, spots: BTreeSet::new() });
            }
            places.of.push(district);
            places.enter(filling, at);
        }
        places
    }

    /// The rules of which each spot is a domain of its own, or those of which none is.
    fn rules(&self, single: bool) -> impl Iterator<Item = usize> {
        self.single.iter().enumerate().filter(move |(_, is)| **is == single).map(|(rule, _)| rule)
    }

    fn rank(&self, filling: &Filling, at: usize) -> Option<Rank> {
        let spot = self.board.spots.get(at)?;
        let count = |rule: usize| filling.counts.get(rule)?.get((*spot.domains.get(rule)?)?).copied();
        let near = self.rules(true).filter_map(count).fold(0, i64::saturating_add);
        Some((near, filling.placed.get(at).copied().unwrap_or(0) - spot.room, at))
    }

    fn enter(&mut self, filling: &Filling, at: usize) {
        let rank = self.rank(filling, at).filter(|(_, left, _)| *left < 0);
        // what lets a pod onto nodes of a domain only never lets one onto a node without
        let lost = self.board.spots.get(at).is_some_and(|spot| {
            let bare = spot.domains.iter().zip(&self.board.rules).zip(&self.single);
            bare.into_iter().any(|((domain, rule), single)| *single && domain.is_none() && rule.asks != Asks::Apart)
        });
        let district = self.of.get(at).and_then(|district| self.districts.get_mut(*district));
        if let (Some(rank), false, Some(district)) = (rank, lost, district) {
            district.spots.insert(rank);
        }
    }

    /// The best spot for one more pod of a kind.
    fn best(&self, filling: &Filling, kind: usize) -> Option<usize> {
        let open = self.districts.iter().filter(|district| district.admits.get(kind) == Some(&true));
        let best_of = |district: &District| {
            steps::count(1);
            let shared = |rule: usize| {
                let domain = (*district.domains.get(rule)?)?;
                filling.counts.get(rule)?.get(domain).copied()
            };
            let keeps_off = |rule: usize| {
                let least = filling.least.get(rule).copied().unwrap_or_default();
                self.board.rules.get(rule).is_none_or(|asks| !asks.allows(shared(rule), least))
            };
            if self.rules(false).any(keeps_off) {
                return None;
            }
            let near = self.rules(false).filter_map(shared).fold(0, i64::saturating_add);
            // where a spread alone tells spots apart, what keeps a pod off the emptiest keeps it off all
            let by_spread = |rule: usize| self.board.rules.get(rule).is_some_and(Counted::is_spread);
            let looked = if self.rules(true).count() < 2 && self.rules(true).all(by_spread) { 1 } else { usize::MAX };
            let allowed = district.spots.iter().take(looked).find(|(.., at)| {
                steps::count(1);
                self.board.allows(filling, kind, *at)
            });
            allowed.map(|(own, left, at)| (near.saturating_add(*own), *left, *at))
        };
        open.filter_map(best_of).min().map(|(.., at)| at)
    }

    fn put(&mut self, filling: &mut Filling, at: usize) {
        let district = self.of.get(at).copied().unwrap_or(0);
        if let (Some(rank), Some(district)) = (self.rank(filling, at), self.districts.get_mut(district)) {
            district.spots.remove(&rank);
        }
        self.board.put(filling, at, 1);
        self.enter(filling, at);
    }
}
