//! A search for the most pods that can be placed, with a budget.

use std::collections::{BTreeMap, BTreeSet};

use super::board::{Board, Filling, Spot};
use super::too_hard::TooHard;
use crate::steps;

/// How many positions a search looks at.
const POSITIONS_MAX: usize = 20_000;

/// The most pods that can be placed, by looking at every way to place one after the other; ways that differ in alike spots
/// only are one.
pub fn search(board: &Board, found: Filling, target: i64) -> Result<Filling, TooHard> {
    let mut best = found;
    let mut seen: BTreeSet<(Vec<i64>, Position)> = BTreeSet::new();
    let mut open: Vec<(Vec<i64>, Filling)> = vec![(board.kinds.clone(), board.empty())];
    while let Some((left, filling)) = open.pop() {
        if placed(&filling) > placed(&best) {
            best = filling.clone();
        }
        if placed(&best) >= target {
            return Ok(best);
        }
        if !seen.insert((left.clone(), position(board, &filling))) {
            continue;
        }
        if seen.len() > POSITIONS_MAX || steps::check().is_err() {
            return Err(TooHard);
        }
        steps::count_items(board.spots.len());
        let mut tried: BTreeSet<(usize, usize, i64)> = BTreeSet::new();
        for kind in (0..left.len()).filter(|kind| left.get(*kind).is_some_and(|left| *left > 0)) {
            for at in (0..board.spots.len()).filter(|at| board.allows(&filling, kind, *at)) {
                let class = board.spots.get(at).map_or(0, |spot| spot.class);
                if tried.insert((kind, class, filling.placed.get(at).copied().unwrap_or(0))) {
                    let (mut left, mut longer) = (left.clone(), filling.clone());
                    left.iter_mut().skip(kind).take(1).for_each(|left| *left -= 1);
                    board.put(&mut longer, at, 1);
                    open.push((left, longer));
                }
            }
        }
    }
    Ok(best)
}

/// Classes of spots, each with how many pods are on one of them.
type Position = Vec<(usize, i64)>;

/// Where how many pods are, up to alike spots.
fn position(board: &Board, filling: &Filling) -> Position {
    let placed = board.spots.iter().zip(&filling.placed).filter(|(_, placed)| **placed > 0);
    let mut found: Position = placed.map(|(spot, placed)| (spot.class, *placed)).collect();
    found.sort_unstable();
    found
}

/// How many pods were placed.
fn placed(filling: &Filling) -> i64 {
    filling.placed.iter().fold(0, |sum, placed| sum.saturating_add(*placed))
}

/// For each spot its class: those that nothing tells apart have one.
pub fn classes(board: &Board) -> Vec<usize> {
    let mut spots_in: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new(); board.rules.len()];
    for spot in &board.spots {
        for (domain, spots) in spot.domains.iter().zip(&mut spots_in) {
            if let Some(domain) = domain {
                *spots.entry(*domain).or_default() += 1;
            }
        }
    }
    let mut classes: BTreeMap<(i64, Vec<bool>, Vec<Place>), usize> = BTreeMap::new();
    let class = |spot: &Spot| {
        let places = spot.domains.iter().zip(&board.rules).zip(&spots_in).map(|((domain, rule), spots)| match domain {
            None => Place::Nowhere,
            Some(at) if spots.get(at) == Some(&1) => Place::Alone(
                rule.counts.get(*at).copied().unwrap_or(0),
                rule.eligible.get(*at).copied().unwrap_or(false),
            ),
            Some(at) => Place::In(*at),
        });
        let key = (spot.room, spot.admits.clone(), places.collect());
        let next = classes.len();
        *classes.entry(key).or_insert(next)
    };
    board.spots.iter().map(class).collect()
}

/// Where a spot is for a rule.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// In no domain.
    Nowhere,
    /// The only spot of a domain that counts so much, and whether it is eligible.
    Alone(i64, bool),
    /// In this domain.
    In(usize),
}
