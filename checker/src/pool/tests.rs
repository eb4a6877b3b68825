//! Deadlines, replacement, shedding, and that a pool answers like the calling thread does.

use super::*;
use crate::solve::{Answer, solve_here};
use crate::testing::{market_split, random, rollout};

const BUDGET: Budget = Budget { rlimit: 4_000_000, deadline_ms: 20_000 };
/// Never ends by itself within the test.
const ENDLESS: Budget = Budget { rlimit: u32::MAX, deadline_ms: 60 };

fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = now() + Duration::from_secs(20);
    while !holds() {
        assert!(now() < deadline, "waited in vain");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_pool_answers_like_the_calling_thread() {
    let pool = Pool::new(2, 64).unwrap();
    for seed in 0..60 {
        assert_eq!(pool.solve(random(seed), BUDGET), solve_here(&random(seed), BUDGET), "seed {seed}");
    }
    for problem in [rollout(4, false), rollout(4, true)] {
        assert_eq!(pool.solve(problem.clone(), BUDGET), solve_here(&problem, BUDGET));
    }
}

#[test]
fn many_callers_get_their_own_answers() {
    let pool = Pool::new(2, 64).unwrap();
    thread::scope(|scope| {
        for caller in 0..8 {
            let pool = &pool;
            scope.spawn(move || {
                for seed in (caller..80).step_by(8) {
                    assert_eq!(pool.solve(random(seed), BUDGET), solve_here(&random(seed), BUDGET), "seed {seed}");
                }
            });
        }
    });
    wait_until(|| pool.load() == Load { queued: 0, serving: 2, abandoned: 0 });
}

#[test]
fn an_overrun_worker_is_abandoned_and_replaced() {
    let pool = Pool::new(1, 4).unwrap();
    for _ in 0..3 {
        let start = now();
        let solved = pool.solve(market_split(4, 30), ENDLESS);
        assert_eq!(solved.answer, Answer::Unknown(Reason::Deadline));
        assert!(start.elapsed() < Duration::from_secs(2));
        assert_eq!(pool.load().serving, 1);
    }
    assert!(matches!(pool.solve(rollout(4, true), BUDGET).answer, Answer::Unsat { .. }));
    // what was interrupted ends
    wait_until(|| pool.load() == Load { queued: 0, serving: 1, abandoned: 0 });
}

#[test]
fn a_budget_in_resource_units_is_unknown_too() {
    let pool = Pool::new(1, 4).unwrap();
    let solved = pool.solve(market_split(4, 30), Budget { rlimit: 50_000, ..BUDGET });
    assert_eq!(solved.answer, Answer::Unknown(Reason::Rlimit));
}

#[test]
fn a_full_queue_sheds_and_a_question_in_it_can_expire() {
    let pool = Pool::new(1, 1).unwrap();
    // long beyond what waits behind it, also where the machine stalls for a second
    let slow = Budget { rlimit: u32::MAX, deadline_ms: 5_000 };
    thread::scope(|scope| {
        let busy = scope.spawn(|| pool.solve(market_split(4, 30), slow));
        let taken = || lock(&pool.shared.state).queue.is_empty();
        wait_until(|| !taken() || busy.is_finished());
        wait_until(taken);
        let waiting = scope.spawn(|| pool.solve(rollout(2, true), Budget { deadline_ms: 300, ..BUDGET }));
        wait_until(|| pool.load().queued == 1);
        assert_eq!(pool.solve(rollout(2, true), BUDGET).answer, Answer::Unknown(Reason::QueueFull));
        assert_eq!(waiting.join().unwrap().answer, Answer::Unknown(Reason::Deadline));
        assert_eq!(pool.load().queued, 0);
        assert_eq!(busy.join().unwrap().answer, Answer::Unknown(Reason::Deadline));
    });
}

#[test]
fn a_pool_can_be_dropped_at_any_time() {
    drop(Pool::new(3, 1).unwrap());
    let pool = Pool::new(1, 1).unwrap();
    assert_eq!(pool.solve(market_split(4, 30), ENDLESS).answer, Answer::Unknown(Reason::Deadline));
    let shared = Arc::clone(&pool.shared);
    drop(pool);
    assert!(lock(&shared.state).threads.is_empty());
}
