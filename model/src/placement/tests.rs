//! How many pods find a place, against looking at every way to place them.

use std::collections::BTreeSet;

use super::board::{Board, Counted, Filling, Spot};
use super::fill::{fill, total};
use super::rules::Asks;
use super::unplaced::{Question, unplaced};
use crate::state::State;

/// A small generator of numbers (xorshift), the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn small(&mut self, bound: u64) -> i64 {
        i64::try_from(self.below(bound)).unwrap_or(0)
    }
}

fn rule(random: &mut Random, domains: usize) -> Counted {
    let asks = match random.below(6) {
        0 => Asks::Apart,
        1 => Asks::Together,
        _ => Asks::Spread {
            skew: 1 + random.small(2),
            min_domains: 1 + random.small(3),
            heeds_taints: false,
            heeds_selection: true,
        },
    };
    Counted {
        asks,
        own: random.below(5) > 0,
        topology: if random.below(2) == 0 { "kubernetes.io/hostname".into() } else { "zone".into() },
        counts: (0..domains).map(|_| if random.below(3) == 0 { random.small(3) } else { 0 }).collect(),
        eligible: (0..domains).map(|_| random.below(8) > 0).collect(),
        pods: BTreeSet::new(),
    }
}

/// A board on which each node is a domain of its own for a rule by hostname; spots are all told apart.
fn board(random: &mut Random) -> Board {
    let spots = 1 + usize::try_from(random.below(4)).unwrap_or(0);
    let kinds: Vec<i64> = (0..1 + random.below(2)).map(|_| 1 + random.small(3)).collect();
    let rules: Vec<Counted> = (0..random.below(3)).map(|_| rule(random, spots)).collect();
    let spots = (0..spots).map(|at| Spot {
        name: format!("n{at}").into(),
        room: random.small(4),
        domains: rules
            .iter()
            .map(|rule| match &*rule.topology {
                "zone" if random.below(6) == 0 => None,
                "zone" => Some(at / 2),
                _ => Some(at),
            })
            .collect(),
        admits: kinds.iter().map(|_| random.below(4) > 0).collect(),
        class: at,
    });
    let spots = spots.collect();
    Board { spots, rules, kinds }
}

/// The most pods that can be placed, by every order and place.
fn most(board: &Board, left: &mut Vec<i64>, filling: &mut Filling) -> i64 {
    let mut best = total(filling);
    for kind in 0..left.len() {
        for at in 0..board.spots.len() {
            if left[kind] > 0 && board.allows(filling, kind, at) {
                left[kind] -= 1;
                board.put(filling, at, 1);
                best = best.max(most(board, left, filling));
                board.put(filling, at, -1);
                left[kind] += 1;
            }
        }
    }
    best
}

#[test]
fn as_many_pods_are_placed_as_there_is_a_way_for() {
    let mut random = Random(0x5EED);
    let (mut full, mut short) = (0, 0);
    for case in 0..6_000 {
        let board = board(&mut random);
        let expected = most(&board, &mut board.kinds.clone(), &mut board.empty());
        let found = fill(&board).map(|filling| total(&filling));
        assert_eq!(found, Ok(expected), "case {case}: {board:#?}");
        *if expected == board.kinds.iter().sum::<i64>() { &mut full } else { &mut short } += 1;
    }
    assert!(full > 500 && short > 500, "{full} full, {short} short");
}

/// Nodes of two zones by turns, of which these have room for one pod, with a Deployment of two pods that are spread over zones.
fn zones(nodes: usize, roomy: &[usize]) -> crate::snapshot::Snapshot {
    let node = |at: usize| {
        let (zone, cpu) = (at % 2, u8::from(roomy.contains(&at)));
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: n{at:04}, labels: {{topology.kubernetes.io/zone: z{zone}}}}}, \
             status: {{allocatable: {{cpu: '{cpu}', pods: '9'}}, conditions: [{{type: Ready, status: 'True'}}]}}}}\n---\n"
        )
    };
    let nodes: String = (0..nodes).map(node).collect();
    crate::testing::cluster(&format!(
        "{nodes}{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: a, uid: d}}, spec: {{replicas: 2, \
         selector: {{matchLabels: {{app: web}}}}, template: {{metadata: {{labels: {{app: web}}}}, spec: {{\
         topologySpreadConstraints: [{{topologyKey: topology.kubernetes.io/zone, maxSkew: 1, labelSelector: \
         {{matchLabels: {{app: web}}}}}}], containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}}}}}\n"
    ))
}

#[test]
fn a_place_is_found_wherever_it_is_among_many_nodes() {
    let unplaced = |nodes: usize, roomy: &[usize]| {
        let snapshot = zones(nodes, roomy);
        let state = State::new(&snapshot);
        let web = state.get(&crate::testing::key("Deployment/a/web")).expect("it is there").clone();
        unplaced(&state, &web, &Question { wanted: 2, failures: 0, growing: None }).ok()
    };
    for nodes in [10, 700] {
        let last = nodes - 1;
        for (one, other) in [(0, 1), (0, last), (last - 1, last), (nodes / 4 * 2, 1), (4, nodes / 4 * 2 + 1)] {
            assert_eq!(unplaced(nodes, &[one, other]), Some(0), "{one} and {other} of {nodes}");
        }
        assert_eq!(unplaced(nodes, &[0, last - 1]), Some(1), "both are in one zone");
        assert_eq!(unplaced(nodes, &[last]), Some(1));
        assert_eq!(unplaced(nodes, &[]), Some(2));
    }
}
