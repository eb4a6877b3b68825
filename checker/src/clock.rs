//! The budget's clock: how long a decision took. Nothing is decided by it.

/// Measures one decision.
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts.
    #[expect(clippy::disallowed_methods, reason = "durations are reported, never decided by")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Microseconds since the start.
    pub fn micros(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
