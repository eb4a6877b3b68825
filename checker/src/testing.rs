//! Problems for the tests of this crate.

use suture_encode::problem::{Label, Problem};
use suture_encode::term::{Assignment, Bool, Int, Vars};

/// A linear congruential generator: the same sequence on every machine.
pub(crate) struct Lcg(u64);

impl Lcg {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn range(&mut self, lo: i64, hi: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        lo + ((self.0 >> 33) % (hi - lo + 1).cast_unsigned()).cast_signed()
    }
}

/// `classes` classes of pods, each a number that stay, are gone, are lost with their node; at most a quarter gone, at most one of two
/// nodes down. Three variables a class and one for the nodes. Whether enough stay is false by one pod (`tight`) or can be broken.
pub(crate) fn rollout(classes: usize, tight: bool) -> Problem {
    let mut vars = Vars::new();
    let nodes = Int::var(vars.fresh(0, 2, "nodes down").unwrap());
    let mut assertions = Vec::new();
    let mut fates = [const { Vec::new() }; 3];
    let mut total = 0;
    for class in 0..classes {
        let size = 10 + 3 * class as i64;
        let [stay, gone, lost] = ["stay", "gone", "lost"].map(|fate| Int::var(vars.fresh(0, size, fate).unwrap()));
        let all = Int::sum([&stay, &gone, &lost]).unwrap();
        assertions.push(Bool::eq(&all, &size.into(), &vars).unwrap());
        let on_nodes = nodes.scale(2 + class as i64 % 3).unwrap();
        assertions.push(Bool::le(&lost, &on_nodes, &vars).unwrap());
        fates.iter_mut().zip([stay, gone, lost]).for_each(|(fates, fate)| fates.push(fate));
        total += size;
    }
    let [stay, gone, lost] = fates.map(|fates| Int::sum(&fates).unwrap());
    assertions.push(Bool::le(&gone, &(total / 4).into(), &vars).unwrap());
    assertions.push(Bool::le(&nodes, &1.into(), &vars).unwrap());
    assertions.push(Bool::le(&lost, &nodes.scale(4).unwrap(), &vars).unwrap());
    let enough = total - total / 4 - if tight { 4 } else { 3 };
    let goal = Bool::lt(&stay, &enough.into(), &vars).unwrap();
    let assertions = (0..).map(Label).zip(assertions).collect();
    Problem { vars, assertions, goal }
}

/// Splits a market: choose among 0/1 variables so that several weighted sums hit exactly one half. Nobody knows a fast way.
pub(crate) fn market_split(rows: u32, columns: usize) -> Problem {
    let mut rng = Lcg::new(41);
    let mut vars = Vars::new();
    let choices: Vec<_> = (0..columns).map(|_| Int::var(vars.fresh(0, 1, "").unwrap())).collect();
    let row = |rng: &mut Lcg| {
        let weights: Vec<i64> = choices.iter().map(|_| rng.range(0, 99)).collect();
        let sum = Int::weighted(choices.iter().zip(weights.iter().copied())).unwrap();
        Bool::eq(&sum, &(weights.iter().sum::<i64>() / 2).into(), &vars).unwrap()
    };
    let assertions = (0..rows).map(|label| (Label(label), row(&mut rng))).collect();
    Problem { assertions, goal: Bool::truth(true), vars }
}

/// A small random problem: linear comparisons over up to four counts, joined at random, some of them with cases.
pub(crate) fn random(seed: u64) -> Problem {
    let mut rng = Lcg::new(seed);
    let mut vars = Vars::new();
    for _ in 0..=rng.range(1, 3) {
        let lo = rng.range(-2, 1);
        let hi = lo + rng.range(1, 3);
        vars.fresh(lo, hi, "").unwrap();
    }
    let assertions = (0..rng.range(1, 5)).map(|_| (Label(rng.range(0, 3) as u32 * 11), condition(&mut rng, &vars, 1)));
    let assertions = assertions.collect();
    let goal = condition(&mut rng, &vars, 2);
    Problem { vars, assertions, goal }
}

pub(crate) fn sum(rng: &mut Lcg, vars: &Vars, depth: u32) -> Int {
    let counts: Vec<Int> = vars.iter().map(|(var, _)| Int::var(var)).collect();
    let plain = Int::weighted(counts.iter().map(|count| (count, rng.range(-3, 3)))).unwrap();
    let plain = plain.add(&rng.range(-4, 4).into()).unwrap();
    if depth == 0 || rng.range(0, 2) > 0 {
        return plain;
    }
    let guard = condition(rng, vars, depth - 1);
    plain.add(&Int::ite(&guard, &sum(rng, vars, 0), &sum(rng, vars, 0), vars).unwrap()).unwrap()
}

fn condition(rng: &mut Lcg, vars: &Vars, depth: u32) -> Bool {
    if depth == 0 || rng.range(0, 2) == 0 {
        let (a, b) = (sum(rng, vars, depth), sum(rng, vars, depth));
        let compare = [Bool::le, Bool::eq, Bool::ne, Bool::gt][rng.range(0, 3) as usize];
        return compare(&a, &b, vars).unwrap();
    }
    let parts: Vec<Bool> = (0..rng.range(2, 3)).map(|_| condition(rng, vars, depth - 1)).collect();
    match rng.range(0, 4) {
        0 | 1 => Bool::and(parts),
        2 | 3 => Bool::or(parts),
        _ => Bool::iff(&parts[0], &parts[1]),
    }
}

/// All violating futures.
pub(crate) fn witnesses(problem: &Problem) -> Vec<Assignment> {
    let mut all = vec![Assignment::default()];
    for (_, info) in problem.vars.iter() {
        let longer = all.iter().flat_map(|assignment| {
            (info.lo..=info.hi).map(|value| Assignment(assignment.0.iter().copied().chain([value]).collect()))
        });
        all = longer.collect();
    }
    all.retain(|assignment| problem.is_witness(assignment).unwrap());
    all
}

/// The problem with only the assertions of these labels.
pub(crate) fn restricted(problem: &Problem, labels: &[Label]) -> Problem {
    let kept = problem.assertions.iter().filter(|(label, _)| labels.contains(label)).cloned().collect();
    Problem { assertions: kept, ..problem.clone() }
}
