//! How many new pods find a place: a sum where they are independent, else a greedy witness, else what one spread constraint
//! bounds, else a search with a budget.

use std::collections::BTreeSet;

use super::board::{Board, Counted, Filling, Spot};
use super::greedy::greedy;
use super::rules::Asks;
use super::search::{classes, search};
use super::too_hard::TooHard;
use crate::fields::HOSTNAME;
use crate::steps;

/// The most pods of a board that can be placed, and where.
///
/// # Errors
/// When the search for more than what was found was given up.
pub fn fill(board: &Board) -> Result<Filling, TooHard> {
    let whole = board;
    let board = &folded(whole);
    steps::count_items(board.spots.len());
    if !board.rules.iter().any(Counted::is_dynamic) {
        return Ok(independent(board));
    }
    let all: i64 = board.kinds.iter().sum();
    let greedy = greedy(board);
    let most = all.min(bound(board));
    if total(&greedy) >= most {
        return Ok(greedy);
    }
    let mut board = board.clone();
    for (spot, class) in board.spots.iter_mut().zip(classes(whole)) {
        spot.class = class;
    }
    search(&board, greedy, most)
}

/// How many pods were placed.
pub fn total(filling: &Filling) -> i64 {
    filling.placed.iter().fold(0, |sum, placed| sum.saturating_add(*placed))
}

/// The same board where pods that keep apart by node have room for one each, and a rule that the new pods do not change
/// has closed its spots.
fn folded(board: &Board) -> Board {
    let mut folded = board.clone();
    let empty = board.empty();
    for spot in &mut folded.spots {
        let mut rules = board.rules.iter().zip(&empty.least).zip(&spot.domains);
        let here = |rule: &Counted, domain: &Option<usize>| domain.and_then(|domain| rule.counts.get(domain).copied());
        if rules.any(|((rule, least), domain)| !rule.own && !rule.allows(here(rule, domain), *least)) {
            spot.room = 0;
        }
        for (rule, domain) in board.rules.iter().zip(&spot.domains).filter(|(rule, _)| is_by_node(rule)) {
            let taken = domain.and_then(|domain| rule.counts.get(domain)).copied().unwrap_or(0);
            spot.room = spot.room.min(i64::from(taken == 0));
        }
    }
    let keep: Vec<bool> = board.rules.iter().map(|rule| rule.own && !is_by_node(rule)).collect();
    let mut kept = keep.iter();
    folded.rules.retain(|_| kept.next() == Some(&true));
    for spot in &mut folded.spots {
        let mut kept = keep.iter();
        spot.domains.retain(|_| kept.next() == Some(&true));
    }
    folded
}

/// Whether a rule lets one new pod onto each node.
fn is_by_node(rule: &Counted) -> bool {
    rule.own && rule.asks == Asks::Apart && &*rule.topology == HOSTNAME
}

/// The most where one pod's place is no matter to another but for its room: by augmenting paths over kinds and spots.
fn independent(board: &Board) -> Filling {
    let mut by_kind: Vec<Vec<i64>> = board.kinds.iter().map(|_| vec![0; board.spots.len()]).collect();
    let mut left: Vec<i64> = board.spots.iter().map(|spot| spot.room).collect();
    for (kind, number) in board.kinds.iter().enumerate() {
        let mut missing = *number;
        for (at, spot) in board.spots.iter().enumerate() {
            let (Some(left), Some(here)) = (left.get_mut(at), by_kind.get_mut(kind).and_then(|k| k.get_mut(at))) else {
                continue;
            };
            if missing > 0 && *left > 0 && spot.admits.get(kind) == Some(&true) {
                let taken = missing.min(*left);
                (*left, *here, missing) = (*left - taken, *here + taken, missing - taken);
            }
        }
        while missing > 0 && board.kinds.len() > 1 && augment(board, &mut by_kind, &mut left, kind) {
            missing -= 1;
        }
    }
    let placed = (0..board.spots.len()).map(|at| by_kind.iter().filter_map(|kind| kind.get(at)).sum()).collect();
    Filling { placed, counts: Vec::new(), least: Vec::new() }
}

/// Places one more pod of a kind by moving others; whether that works.
fn augment(board: &Board, by_kind: &mut [Vec<i64>], left: &mut [i64], kind: usize) -> bool {
    // how each spot was reached: by a pod of which kind, coming from which spot
    let mut reached: Vec<Option<(usize, Option<usize>)>> = vec![None; board.spots.len()];
    let mut open: Vec<(usize, Option<usize>)> = vec![(kind, None)];
    let mut seen: BTreeSet<(usize, usize)> = BTreeSet::new();
    while let Some((moving, from)) = open.pop() {
        for (at, spot) in board.spots.iter().enumerate() {
            if spot.room == 0 || spot.admits.get(moving) != Some(&true) || reached.get(at).is_none_or(Option::is_some) {
                continue;
            }
            if let Some(slot) = reached.get_mut(at) {
                *slot = Some((moving, from));
            }
            if left.get(at).is_some_and(|left| *left > 0) {
                settle(by_kind, &reached, at);
                if let Some(left) = left.get_mut(at) {
                    *left -= 1;
                }
                return true;
            }
            for (other, placed) in by_kind.iter().enumerate() {
                if placed.get(at).is_some_and(|placed| *placed > 0) && seen.insert((other, at)) {
                    open.push((other, Some(at)));
                }
            }
        }
    }
    false
}

/// Moves a pod along the path that leads to a spot.
fn settle(by_kind: &mut [Vec<i64>], reached: &[Option<(usize, Option<usize>)>], to: usize) {
    let mut at = Some(to);
    while let Some((spot, (kind, from))) = at.and_then(|at| Some((at, (*reached.get(at)?)?))) {
        if let Some(here) = by_kind.get_mut(kind).and_then(|placed| placed.get_mut(spot)) {
            *here += 1;
        }
        if let Some(left) = from.and_then(|from| by_kind.get_mut(kind).and_then(|placed| placed.get_mut(from))) {
            *left -= 1;
        }
        at = from;
    }
}

/// No more pods than each rule by itself lets come, and than there is room for.
fn bound(board: &Board) -> i64 {
    let usable = |spot: &&Spot| spot.admits.contains(&true);
    let room: i64 = board.spots.iter().filter(usable).map(|spot| spot.room).fold(0, i64::saturating_add);
    let by_rule = board.rules.iter().enumerate().map(|(number, rule)| {
        let mut capacity = vec![0_i64; rule.counts.len()];
        for spot in board.spots.iter().filter(usable) {
            let domain = spot.domains.get(number).copied().flatten();
            if let Some(capacity) = domain.and_then(|domain| capacity.get_mut(domain)) {
                *capacity = capacity.saturating_add(spot.room);
            }
        }
        let nowhere = |spot: &&Spot| usable(spot) && spot.domains.get(number).is_none_or(Option::is_none);
        match rule.asks {
            Asks::Apart => {
                let open = rule.counts.iter().zip(&capacity).filter(|(count, room)| **count == 0 && **room > 0).count();
                let apart: i64 = board.spots.iter().filter(nowhere).map(|spot| spot.room).fold(0, i64::saturating_add);
                apart.saturating_add(i64::try_from(open).unwrap_or(i64::MAX))
            }
            Asks::Together => i64::MAX,
            Asks::Spread { skew, min_domains, .. } => most_spread(rule, &capacity, skew, min_domains),
        }
    });
    by_rule.chain([room]).min().unwrap_or(0)
}

/// The most pods that a spread constraint by itself lets come into domains with so much room: the emptiest one can be filled
/// as far as it has room, and each other one `skew` beyond.
fn most_spread(rule: &Counted, capacity: &[i64], skew: i64, min_domains: i64) -> i64 {
    let all = || rule.counts.iter().zip(capacity).zip(&rule.eligible);
    let filled = |((count, room), _): ((&i64, &i64), &bool)| count.saturating_add(*room);
    let eligible = || all().filter(|(_, eligible)| **eligible);
    // nodes by which a group grows count once they have a pod
    let grown = || all().filter(|((count, room), eligible)| !**eligible && **count == 0 && **room > 0);
    let full = eligible().map(filled).min().or_else(|| grown().map(filled).max()).unwrap_or(0);
    let many = i64::try_from(eligible().count().saturating_add(grown().count())).unwrap_or(i64::MAX);
    let least = if many < min_domains { 0 } else { full };
    let each = rule.counts.iter().zip(capacity);
    let taken = each.map(|(count, room)| (least.saturating_add(skew)).saturating_sub(*count).clamp(0, *room));
    taken.fold(0, i64::saturating_add)
}
