//! Nodes as places for new pods that are alike, and what each pod that is placed changes for the next one.

use std::collections::BTreeSet;

use super::rules::Asks;
use crate::object::Key;
use crate::value::Str;

/// A node as a place.
#[derive(Clone, Debug)]
pub struct Spot {
    /// The node; of one that a group may grow by, the one that it is like.
    pub name: Str,
    /// How many new pods it takes at most.
    pub room: i64,
    /// For each rule, its domain.
    pub domains: Vec<Option<usize>>,
    /// For each kind of new pods, whether it is a place for them.
    pub admits: Vec<bool>,
    /// Spots of a class may be swapped.
    pub class: usize,
}

/// A rule over the domains of the spots.
#[derive(Clone, Debug)]
pub struct Counted {
    /// What it asks.
    pub asks: Asks,
    /// Whether it means the new pods.
    pub own: bool,
    /// The label of nodes.
    pub topology: Str,
    /// How many pods it means in each domain.
    pub counts: Vec<i64>,
    /// Which domains count for a spread; of a node that is not there yet, once there is a pod.
    pub eligible: Vec<bool>,
    /// The pods that it means.
    pub pods: BTreeSet<Key>,
}

/// All places.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// The places.
    pub spots: Vec<Spot>,
    /// The rules.
    pub rules: Vec<Counted>,
    /// How many pods are to be placed of each kind.
    pub kinds: Vec<i64>,
}

/// New pods on the places of a board.
#[derive(Clone, Debug)]
pub struct Filling {
    /// How many on each spot.
    pub placed: Vec<i64>,
    /// For each rule, what it counts in each domain.
    pub counts: Vec<Vec<i64>>,
    /// For each rule, what its emptiest domain holds, and whether it means no pod at all.
    pub least: Vec<(i64, bool)>,
}

impl Counted {
    /// Whether one more pod may come to a domain that holds so many (`None` where the node is in none), by what the emptiest
    /// one holds and whether no pod is meant at all.
    pub fn allows(&self, here: Option<i64>, (least, none): (i64, bool)) -> bool {
        let Some(here) = here else {
            // without the label a node is in no domain
            return self.asks == Asks::Apart;
        };
        match self.asks {
            Asks::Apart => here == 0,
            Asks::Together => here > 0 || (self.own && none),
            Asks::Spread { skew, .. } => here.saturating_add(i64::from(self.own)).saturating_sub(least) <= skew,
        }
    }

    /// What the emptiest domain holds (`podtopologyspread/filtering.go`, `minMatchNum`), and whether no pod is meant.
    pub fn least(&self, counts: &[i64]) -> (i64, bool) {
        match self.asks {
            Asks::Spread { min_domains, .. } => (self.emptiest(counts, min_domains), false),
            Asks::Together => (0, counts.iter().all(|count| *count == 0)),
            Asks::Apart => (0, false),
        }
    }

    fn emptiest(&self, counts: &[i64], min_domains: i64) -> i64 {
        // a node by which a group grows counts once it has a pod
        let is_grown = |at: usize, count: i64| count > 0 && self.counts.get(at) == Some(&0);
        let counted = counts.iter().enumerate();
        let counted = counted.filter(|(at, n)| self.eligible.get(*at) == Some(&true) || is_grown(*at, **n));
        let (mut domains, mut least) = (0_i64, i64::MAX);
        for (_, count) in counted {
            domains += 1;
            least = least.min(*count);
        }
        if domains < min_domains || domains == 0 { 0 } else { least }
    }

    /// Whether it spreads pods.
    pub fn is_spread(&self) -> bool {
        matches!(self.asks, Asks::Spread { .. })
    }

    /// Whether what it allows changes with the new pods.
    pub fn is_dynamic(&self) -> bool {
        self.own
    }
}

impl Board {
    /// No new pod anywhere.
    pub fn empty(&self) -> Filling {
        Filling {
            placed: vec![0; self.spots.len()],
            counts: self.rules.iter().map(|rule| rule.counts.clone()).collect(),
            least: self.rules.iter().map(|rule| rule.least(&rule.counts)).collect(),
        }
    }

    /// So many new pods on each spot.
    pub fn filled(&self, placed: &[i64]) -> Filling {
        let mut filling = self.empty();
        placed.iter().enumerate().for_each(|(at, placed)| self.put(&mut filling, at, *placed));
        filling
    }

    /// Whether a pod of a kind may come to a spot.
    pub fn allows(&self, filling: &Filling, kind: usize, at: usize) -> bool {
        let Some(spot) = self.spots.get(at) else { return false };
        let room = filling.placed.get(at).is_some_and(|placed| *placed < spot.room);
        room && spot.admits.get(kind) == Some(&true) && self.obstacle(filling, at).is_none()
    }

    /// The first rule that keeps a pod off a spot.
    pub fn obstacle(&self, filling: &Filling, at: usize) -> Option<&Counted> {
        let spot = self.spots.get(at)?;
        let counted = filling.counts.iter().zip(&filling.least);
        let mut rules = self.rules.iter().zip(counted).zip(&spot.domains);
        let here = |counts: &[i64], domain: &Option<usize>| domain.and_then(|domain| counts.get(domain).copied());
        let keeps = |rule: &Counted, counts: &[i64], least: (i64, bool), domain: &Option<usize>| {
            !rule.allows(here(counts, domain), least)
        };
        rules.find(|((rule, (counts, least)), domain)| keeps(rule, counts, **least, domain)).map(|((rule, _), _)| rule)
    }

    /// Places a pod, or takes it back.
    pub fn put(&self, filling: &mut Filling, at: usize, times: i64) {
        if let Some(placed) = filling.placed.get_mut(at) {
            *placed += times;
        }
        let Some(spot) = self.spots.get(at) else { return };
        let counted = filling.counts.iter_mut().zip(&mut filling.least);
        for ((rule, (counts, least)), domain) in self.rules.iter().zip(counted).zip(&spot.domains) {
            if let (true, Some(count)) = (rule.own, domain.and_then(|domain| counts.get_mut(domain))) {
                *count += times;
                *least = rule.least(counts);
            }
        }
    }
}
