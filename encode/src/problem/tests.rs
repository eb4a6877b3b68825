//! The laws of canonical forms and of answers without a solver.

use suture_model::steps;

use super::*;
use crate::term::testing::{BoolTree, Lcg, assignments, random_vars};
use crate::term::{Int, VarInfo};

fn random_problem(rng: &mut Lcg) -> Problem {
    let vars = random_vars(rng);
    let labels = 1 + rng.below(3);
    let count = rng.below(5);
    // most random conditions are constants: draw some more
    let mut condition = |depth| {
        let mut draws = (0..12).map(|_| BoolTree::random(rng, &vars, depth).term(&vars).unwrap());
        draws.find(|drawn| drawn.as_constant().is_none()).unwrap_or(Bool::truth(true))
    };
    let conditions: Vec<Bool> = (0..count).map(|_| condition(2)).collect();
    let goal = condition(3);
    let assertions = conditions.into_iter().map(|c| (Label(7 * rng.below(labels) as u32), c)).collect();
    Problem { vars, assertions, goal }
}

/// The same problem with its variables and assertions in another order, other names and labels, and a variable that is not used.
fn disguised(rng: &mut Lcg, problem: &Problem) -> Problem {
    let mut places: Vec<usize> = (0..problem.vars.len()).collect();
    rng.shuffle(&mut places);
    let infos: Vec<VarInfo> = problem.vars.iter().map(|(_, info)| info.clone()).collect();
    let mut vars = Vars::new();
    vars.fresh(0, 5, "unused").unwrap();
    let mut renamed = vec![VarId(0); infos.len()];
    for place in places {
        renamed[place] = vars.fresh(infos[place].lo, infos[place].hi, "other").unwrap();
    }
    let rename = |var: VarId| renamed[var.index()];
    let mut assertions: Vec<_> =
        problem.assertions.iter().map(|(label, c)| (Label(90 - label.0), c.rename(&rename))).collect();
    rng.shuffle(&mut assertions);
    Problem { vars, assertions, goal: problem.goal.rename(&rename) }
}

#[test]
fn canonical_form_is_invariant_under_renaming() {
    for seed in 0..4000 {
        let mut rng = Lcg::new(seed);
        let problem = random_problem(&mut rng);
        let other = disguised(&mut rng, &problem);
        let (canon, other) = (problem.canonical().unwrap(), other.canonical().unwrap());
        assert_eq!(canon.key, other.key, "seed {seed}: {problem:?}");
        assert_eq!(canon.problem, other.problem, "seed {seed}");
    }
}

#[test]
fn canonical_form_is_a_fixpoint() {
    for seed in 0..1000 {
        let canon = random_problem(&mut Lcg::new(seed)).canonical().unwrap();
        let again = canon.problem.canonical().unwrap();
        assert_eq!(again.key, canon.key, "seed {seed}");
        assert_eq!(again.problem, canon.problem, "seed {seed}");
    }
}

#[test]
fn canonical_form_keeps_the_witnesses() {
    for seed in 0..1000 {
        let problem = random_problem(&mut Lcg::new(seed));
        let canon = problem.canonical().unwrap();
        for at in assignments(&problem.vars) {
            let translated = canon.translate(&at).unwrap();
            assert_eq!(problem.is_witness(&at), canon.problem.is_witness(&translated), "seed {seed}");
            let restored = canon.restore(&problem, &translated).unwrap();
            assert_eq!(problem.is_witness(&at), problem.is_witness(&restored), "seed {seed}");
        }
    }
}

#[test]
fn different_problems_have_different_keys() {
    let mut keys = std::collections::BTreeMap::new();
    for seed in 0..2000 {
        let canon = random_problem(&mut Lcg::new(seed)).canonical().unwrap();
        let known = keys.entry(canon.key.clone()).or_insert_with(|| canon.problem.clone());
        assert_eq!(*known, canon.problem);
    }
    assert!(keys.len() > 900, "{} keys", keys.len());
}

#[test]
fn interchangeable_classes_are_cheap_and_invariant() {
    // 20 classes with three fates each that nothing tells apart, and a second group of another size
    let build = |order: &[usize]| {
        let mut vars = Vars::new();
        let mut assertions = Vec::new();
        let mut gone = Vec::new();
        for class in order {
            let size = if *class < 20 { 10 } else { 7 };
            let fates: Vec<Int> = (0..3).map(|_| Int::var(vars.fresh(0, size, "").unwrap())).collect();
            let all = Bool::eq(&Int::sum(&fates).unwrap(), &size.into(), &vars).unwrap();
            assertions.push((Label(*class as u32), all));
            gone.push(fates[1].clone());
        }
        let goal = Bool::ge(&Int::sum(&gone).unwrap(), &12.into(), &vars).unwrap();
        Problem { vars, assertions, goal }
    };
    let mut order: Vec<usize> = (0..25).collect();
    let first = build(&order).canonical().unwrap();
    Lcg::new(3).shuffle(&mut order);
    assert_eq!(build(&order).canonical().unwrap().key, first.key);
}

#[test]
fn presolve_agrees_with_enumeration() {
    let mut open = 0;
    for seed in 0..3000 {
        let problem = random_problem(&mut Lcg::new(seed));
        let satisfiable = assignments(&problem.vars).iter().any(|at| problem.is_witness(at).unwrap());
        match problem.presolve(&[]).unwrap() {
            Presolved::Sat(at) => assert!(problem.is_witness(&at).unwrap(), "seed {seed}"),
            Presolved::Unsat { core } => {
                assert!(!satisfiable, "seed {seed}");
                let kept = problem.assertions.iter().filter(|(label, _)| core.contains(label)).cloned().collect();
                let smaller = Problem { assertions: kept, ..problem };
                assert!(!assignments(&smaller.vars).iter().any(|at| smaller.is_witness(at).unwrap()), "seed {seed}");
            }
            Presolved::Open => open += 1,
        }
    }
    assert!((1..3000).contains(&open), "{open} left open");
}

#[test]
fn narrowing_names_what_it_needs() {
    // 250 pods, 4 of them on a node that fails; the rollout keeps 180, and another limit has nothing to do with it
    let mut vars = Vars::new();
    let [here, there, other] = [4, 246, 9].map(|pods| Int::var(vars.fresh(0, pods, "pods").unwrap()));
    let keeps = Bool::ge(&here.add(&there).unwrap(), &180.into(), &vars).unwrap();
    let apart = Bool::ge(&other, &3.into(), &vars).unwrap();
    let assertions = vec![(Label(1), apart), (Label(2), keeps)];
    let at_most = |pods: i64| Bool::le(&there, &pods.into(), &vars).unwrap();
    let problem = |pods| Problem { vars: vars.clone(), assertions: assertions.clone(), goal: at_most(pods) };
    assert_eq!(problem(175).presolve(&[]), Ok(Presolved::Unsat { core: vec![Label(2)] }));
    assert_eq!(problem(176).presolve(&[]), Ok(Presolved::Sat(Assignment(vec![4, 176, 3]))));
}

#[test]
fn narrowing_follows_what_is_left_of_a_class() {
    // of up to 313 new pods, those that are ready on the failed node are the remainder: the node takes 110
    let mut vars = Vars::new();
    let [kept, unmade, unready, up] = [250, 313, 313, 313].map(|pods| Int::var(vars.fresh(0, pods, "").unwrap()));
    let down = Int::weighted([(&313.into(), 1), (&unmade, -1), (&unready, -1), (&up, -1)]).unwrap();
    let keeps = Int::sum([&kept, &up, &down]).unwrap();
    let assertions = vec![
        (Label(0), Bool::ge(&down, &0.into(), &vars).unwrap()),
        (Label(1), Bool::ge(&keeps, &188.into(), &vars).unwrap()),
        (Label(2), Bool::le(&down, &110.into(), &vars).unwrap()),
    ];
    let left = Bool::le(&kept.add(&up).unwrap(), &77.into(), &vars).unwrap();
    let goal = Bool::le(&kept.add(&up).unwrap(), &78.into(), &vars).unwrap();
    let problem = |goal| Problem { vars: vars.clone(), assertions: assertions.clone(), goal };
    assert_eq!(problem(left).presolve(&[]), Ok(Presolved::Unsat { core: vec![Label(1), Label(2)] }));
    assert!(matches!(problem(goal).presolve(&[]), Ok(Presolved::Sat(_) | Presolved::Open)));
}

#[test]
fn disjunctions_that_come_to_the_same_need_no_solver() {
    // three pods, of which one is lost with its node: one waits only if all do, whichever place is asked
    let mut vars = Vars::new();
    let mut some = |name: &str| (0..3).map(|_| Int::var(vars.fresh(0, 1, name).unwrap())).collect::<Vec<_>>();
    let (waiting, lost) = (some("waiting"), some("lost"));
    let sum = |pods: &[Int]| Int::sum(pods).unwrap();
    let none = |pods: &[Int]| Bool::le(&sum(pods), &0.into(), &vars).unwrap();
    let all = none(&[waiting.as_slice(), &lost].concat());
    let one = Bool::le(&sum(&lost), &1.into(), &vars).unwrap();
    let only_if_stuck = Bool::or([none(&waiting), all]);
    let goal = Bool::ge(&sum(&waiting).add(&sum(&lost)).unwrap(), &2.into(), &vars).unwrap();
    let assertions = vec![(Label(0), one), (Label(1), only_if_stuck)];
    let problem = Problem { vars: vars.clone(), assertions, goal };
    assert_eq!(problem.presolve(&[]), Ok(Presolved::Unsat { core: vec![Label(0), Label(1)] }));
}

#[test]
fn presolve_tries_the_callers_candidates() {
    let mut vars = Vars::new();
    let x = Int::var(vars.fresh(0, 9, "x").unwrap());
    // cases are not looked into
    let high = Bool::ge(&x, &5.into(), &vars).unwrap();
    let cases = Int::ite(&high, &x, &x.add(&1.into()).unwrap(), &vars).unwrap();
    let goal = Bool::eq(&cases, &7.into(), &vars).unwrap();
    let problem = Problem { vars, assertions: Vec::new(), goal };
    assert_eq!(problem.presolve(&[]), Ok(Presolved::Open));
    let candidate = Assignment(vec![7]);
    assert_eq!(problem.presolve(&[Assignment(vec![12]), candidate.clone()]), Ok(Presolved::Sat(candidate)));
}

#[test]
fn variables_that_nothing_tells_apart_take_no_more_than_is_left() {
    let mut vars = Vars::new();
    let some = (0..200).map(|_| Int::var(vars.fresh(0, 1, "").unwrap())).collect::<Vec<_>>();
    let goal = Bool::or(some.iter().map(|one| Bool::ge(one, &1.into(), &vars).unwrap()));
    let problem = Problem { vars, assertions: Vec::new(), goal };
    assert!(problem.canonical().is_ok());
    assert_eq!(steps::within(10_000, || problem.canonical()), Err(steps::Spent.into()));
}

#[test]
fn a_problem_over_another_table_is_refused() {
    let mut vars = Vars::new();
    let x = Int::var(vars.fresh(0, 9, "x").unwrap());
    let goal = Bool::eq(&x, &4.into(), &vars).unwrap();
    let problem = Problem { vars: Vars::new(), assertions: Vec::new(), goal };
    assert_eq!(problem.check(), Err(TermError::UnknownVar(VarId(0))));
}
