//! Known answers, brute force on small problems, budgets, and that history does not matter.

use super::*;
use crate::testing::{self, Lcg, market_split, random, restricted, rollout, witnesses};
use suture_encode::problem::Label;
use suture_encode::smtlib;
use suture_encode::term::{Assignment, Bool, Int, Vars};
use z3::{SatResult, Solver};

const BUDGET: Budget = Budget { rlimit: 4_000_000, deadline_ms: 20_000 };

#[test]
fn a_violating_future_is_found() {
    let problem = rollout(4, false);
    let solved = solve_here(&problem, BUDGET);
    let Answer::Sat(witness) = &solved.answer else { panic!("{solved:?}") };
    assert!(problem.is_witness(witness).unwrap());
    assert!(solved.spent.rlimit > 0 && solved.spent.checks == 1);
}

#[test]
fn a_proof_names_what_it_relies_on() {
    let solved = solve_here(&rollout(4, true), BUDGET);
    // the sizes of the classes, at most a quarter gone, at most one node, at most four lost with a node
    let core = [0, 2, 4, 6, 8, 9, 10].map(Label).to_vec();
    assert_eq!(solved.answer, Answer::Unsat { core });
    assert!(solved.core_is_minimal);
}

#[test]
fn what_is_plain_needs_no_solver() {
    let mut problem = rollout(2, true);
    problem.goal = Bool::truth(false);
    assert_eq!(solve_here(&problem, BUDGET), Solved::free(Answer::Unsat { core: vec![] }));
    problem.vars = Vars::new();
    let refused = Reason::Other("the variable x6 is not in the table".to_owned());
    assert_eq!(solve_here(&problem, BUDGET), Solved::free(Answer::Unknown(refused)));
}

#[test]
fn a_plainly_false_assertion_is_the_core() {
    let mut problem = rollout(2, false);
    problem.assertions.push((Label(77), Bool::truth(false)));
    assert_eq!(solve_here(&problem, BUDGET).answer, Answer::Unsat { core: vec![Label(77)] });
}

#[test]
fn answers_agree_with_enumeration() {
    let (mut sat, mut unsat) = (0, 0);
    for seed in 0..400 {
        let problem = random(seed);
        let witnesses = witnesses(&problem);
        let solved = solve_here(&problem, BUDGET);
        match &solved.answer {
            Answer::Sat(witness) => {
                assert!(witnesses.contains(witness), "seed {seed}: {witness:?}");
                sat += 1;
            }
            Answer::Unsat { core } => {
                assert!(witnesses.is_empty() && solved.core_is_minimal, "seed {seed}");
                let unsat_with = |labels: &[Label]| testing::witnesses(&restricted(&problem, labels)).is_empty();
                assert!(unsat_with(core), "seed {seed}: {core:?}");
                for label in core {
                    let without: Vec<Label> = core.iter().copied().filter(|other| other != label).collect();
                    assert!(!unsat_with(&without), "seed {seed}: {label:?} is not needed in {core:?}");
                }
                unsat += 1;
            }
            Answer::Unknown(reason) => panic!("seed {seed}: {reason}"),
        }
    }
    assert!(sat > 80 && unsat > 80, "{sat} sat, {unsat} unsat");
}

#[test]
fn isomorphic_problems_share_an_answer() {
    for seed in 0..60 {
        let problem = random(seed);
        let canon = problem.canonical().unwrap();
        match (solve_here(&canon.problem, BUDGET).answer, solve_here(&problem, BUDGET).answer) {
            (Answer::Sat(witness), Answer::Sat(_)) => {
                let restored = canon.restore(&problem, &witness).unwrap();
                assert!(problem.is_witness(&restored).unwrap(), "seed {seed}");
            }
            (Answer::Unsat { core }, Answer::Unsat { .. }) => {
                let core = canon.restore_core(&core);
                assert!(witnesses(&restricted(&problem, &core)).is_empty(), "seed {seed}: {core:?}");
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
}

#[test]
fn constants_at_the_edge_of_64_bits_are_lowered_exactly() {
    let mut vars = Vars::new();
    let x = Int::var(vars.fresh(0, 3, "").unwrap());
    let steep = x.scale(i64::MAX).unwrap();
    let limit = Int::from(i64::MAX);
    let below = Bool::le(&steep, &limit, &vars).unwrap();
    let wide = Int::weighted([(&x, i64::MAX - 1), (&Int::var(vars.fresh(0, 1, "").unwrap()), 1)]).unwrap();
    let above = Bool::ge(&wide, &limit, &vars).unwrap();
    let problem = Problem { assertions: vec![(Label(0), below)], goal: above, vars };
    let Answer::Sat(witness) = solve_here(&problem, BUDGET).answer else { panic!() };
    assert_eq!(witness, Assignment(vec![1, 1]));
}

#[test]
fn the_printed_problem_means_the_same() {
    for seed in 0..200 {
        let problem = random(seed);
        let solver = Solver::new();
        solver.from_string(smtlib::print(&problem).unwrap());
        let expected = if witnesses(&problem).is_empty() { SatResult::Unsat } else { SatResult::Sat };
        assert_eq!(solver.check(), expected, "seed {seed}");
    }
}

#[test]
fn the_same_question_gets_the_same_bytes_whatever_was_asked_before() {
    let asked = [rollout(4, false), rollout(4, true), rollout(9, false), rollout(9, true), random(5), random(8)];
    let first: Vec<Solved> = asked.iter().map(|problem| solve_here(problem, BUDGET)).collect();
    let mut rng = Lcg::new(1);
    for round in 0..12 {
        for seed in 0..rng.range(0, 4) {
            solve_here(&random(seed.cast_unsigned() * 31 + round), BUDGET);
        }
        let place = rng.range(0, 5) as usize;
        assert_eq!(solve_here(&asked[place], BUDGET), first[place], "round {round}, problem {place}");
    }
    let threads = asked.map(|problem| std::thread::spawn(move || solve_here(&problem, BUDGET)));
    assert_eq!(threads.map(|thread| thread.join().unwrap()).to_vec(), first);
}

#[test]
fn a_spent_budget_is_unknown_and_repeatable() {
    let small = Budget { rlimit: 50_000, ..BUDGET };
    let solved = solve_here(&market_split(4, 30), small);
    assert_eq!(solved.answer, Answer::Unknown(Reason::Rlimit));
    assert!((50_000..60_000).contains(&solved.spent.rlimit), "{solved:?}");
    assert_eq!(solve_here(&market_split(4, 30), small), solved);
    let none = Budget { rlimit: 0, ..BUDGET };
    assert_eq!(solve_here(&rollout(4, true), none).answer, Answer::Unknown(Reason::Rlimit));
}

#[test]
fn a_core_that_the_budget_left_unminimised_says_so() {
    let problem = rollout(9, true);
    let full = solve_here(&problem, BUDGET);
    let first_check = (1..).map(|step| Budget { rlimit: step * 200, ..BUDGET });
    let mut solved = first_check.map(|budget| solve_here(&problem, budget));
    let solved = solved.find(|solved| matches!(solved.answer, Answer::Unsat { .. })).unwrap();
    assert!(!solved.core_is_minimal && full.core_is_minimal && full.spent.checks > 1, "{solved:?} {full:?}");
}

#[test]
fn the_deadline_ends_a_search_on_the_calling_thread() {
    let budget = Budget { rlimit: u32::MAX, deadline_ms: 30 };
    assert_eq!(solve_here(&market_split(4, 30), budget).answer, Answer::Unknown(Reason::Deadline));
}
