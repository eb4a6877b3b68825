//! Suture: tests.

use std::panic::resume_unwind;
use std::thread;

/// The parts that what takes long is run in, at the same time.
const PARTS: usize = 2;

/// Runs all parts of something, each on a thread of its own: `run` is told which part it is, and of how many. What came of each,
/// in their order.
pub fn in_parts<T: Send>(run: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..PARTS).map(|part| scope.spawn(move || run(part, PARTS))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
