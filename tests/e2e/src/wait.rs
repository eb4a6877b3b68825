//! Waiting for something within a limit, and measuring how long it took.
#![expect(clippy::disallowed_methods, reason = "the control plane runs in real time")]

use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// Short enough not to be seen in a start of seconds, long enough to leave the machine to those who are waited for.
const PERIOD: Duration = Duration::from_millis(50);

/// Tries until it succeeds. An attempt's error says what is still missing.
pub fn until<T>(what: &str, limit: Duration, mut attempt: impl FnMut() -> Result<T, String>) -> Result<T, Error> {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(last) if start.elapsed() >= limit => return Err(Error::Late { what: what.to_owned(), limit, last }),
            Err(_) => thread::sleep(PERIOD),
        }
    }
}

/// Does something and says how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}
