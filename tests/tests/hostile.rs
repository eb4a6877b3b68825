//! Malformed and oversized input: documents, reviews, expressions and whole suites, mutated at random. Whatever comes, it
//! is read or refused: no panic, none takes over a second, and memory stays bounded.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what the test itself gets wrong may end it")]

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use suture_service::bench::measure::{resident_kib, resident_peak_kib};
use suture_service::bench::prng::Prng;

mod malice;

use malice::Target;

/// Cases when `SUTURE_HOSTILE_CASES` does not say.
const CASES: usize = 1_000;
/// The longest that one case may take.
const CASE_MAX: Duration = Duration::from_secs(1);
/// How often a case is timed before it counts as slow.
const TRIES: usize = 3;
/// The most that the peak of resident memory may grow over all cases.
const GROWTH_KIB_MAX: u64 = 256 << 10;
/// The same cases every time.
const SEED: u64 = 0x5u64 << 32 | 0x17;

#[test]
fn nothing_that_comes_in_panics_hangs_or_swells() {
    let cases = std::env::var("SUTURE_HOSTILE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let targets = Target::all();
    let start = resident_kib().unwrap_or(0);
    let panics = Arc::new(AtomicUsize::new(0));
    let seen = panics.clone();
    let before = take_hook();
    set_hook(Box::new(move |_| _ = seen.fetch_add(1, Ordering::Relaxed)));
    let (mut slowest, mut problems) = ((Duration::ZERO, String::new()), Vec::new());
    let mut tallies = vec![(0_usize, 0_usize); targets.len()];
    for case in 0..cases {
        let mut prng = Prng::new(SEED ^ (case as u64).wrapping_mul(0x9e37_79b9));
        let at = case % targets.len();
        let input = targets[at].input(&mut prng);
        let name = format!("case {case} ({}, {} bytes)", targets[at].name(), input.len());
        let count = panics.load(Ordering::Relaxed);
        let (outcome, took) = timed(|| catch_unwind(AssertUnwindSafe(|| targets[at].feed(&input))));
        match outcome {
            Ok(accepted) if panics.load(Ordering::Relaxed) == count => {
                tallies[at].0 += usize::from(accepted);
                tallies[at].1 += 1;
            }
            // a panic on another thread counts as well
            _ => problems.push(format!("{name} panicked on:\n{}", head(&input))),
        }
        // on a busy machine the first time says little
        let slow =
            || (1..TRIES).all(|_| timed(|| catch_unwind(AssertUnwindSafe(|| targets[at].feed(&input)))).1 > CASE_MAX);
        if took > CASE_MAX && slow() {
            problems.push(format!("{name} took {took:?} on:\n{}", head(&input)));
        }
        if took > slowest.0 {
            slowest = (took, name);
        }
    }
    set_hook(before);
    for (target, (accepted, fed)) in targets.iter().zip(&tallies) {
        println!("{}: {fed} cases, {accepted} of them accepted", target.name());
    }
    let (peak, panicked) = (resident_peak_kib().unwrap_or(0), panics.load(Ordering::Relaxed));
    println!("{cases} cases, {panicked} panics, slowest {:?}: {}", slowest.0, slowest.1);
    println!("resident at the start {} MiB, at most {} MiB", start >> 10, peak >> 10);
    assert!(
        problems.is_empty(),
        "{} problems, the first of them: {}",
        problems.len(),
        problems[..problems.len().min(5)].join("\n")
    );
    assert_eq!(panicked, 0);
    assert!(peak.saturating_sub(start) < GROWTH_KIB_MAX, "memory grew by {} MiB", (peak - start) >> 10);
    // mutations that are always refused would test the parser alone
    assert!(tallies.iter().all(|(accepted, fed)| *fed < 200 || *accepted > 0), "{tallies:?}");
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "the test is about time")]
    let clock = Instant::now();
    let done = work();
    (done, clock.elapsed())
}

/// The start of an input, to find it again.
fn head(input: &str) -> String {
    input.chars().take(400).collect()
}
