//! Whether this process stood still: stopped by a signal, or with its machine. What was seen before is old then, however
//! short the lag that was measured before; nothing is decided on it until everything that is watched was read again.
//!
//! A thread beats. Between two of its beats lies little time, unless nothing ran; so does between its last beat and any
//! decision. Time goes on in a suspended machine (`CLOCK_BOOTTIME`, `clock_gettime(2)`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::clock::now;

/// Between two beats.
const BEAT: Duration = Duration::from_millis(100);
/// What a busy machine does not reach between two beats. A replica that stands still for longer has lost its Lease, and what
/// it was asked meanwhile has been answered by the API server's timeout.
const PAUSE_MIN: Duration = Duration::from_secs(3);

/// Notices pauses; cheap to clone.
#[derive(Clone)]
pub struct Pauses {
    shared: Arc<Shared>,
}

struct Shared {
    /// The last beat, in milliseconds of the time since the machine was started.
    beat_millis: AtomicU64,
    /// What has to be read again.
    due: Mutex<Option<Due>>,
}

/// Everything that is watched is to be read after an instant.
#[derive(Clone, Copy, Debug)]
struct Due {
    after: Instant,
    paused: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        let shared = Shared { beat_millis: AtomicU64::new(millis()), due: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }
}

impl Pauses {
    /// Beats for ever, on a thread of its own; `paused` is called after each pause, to have everything read again.
    pub fn watch(&self, paused: impl Fn() + Send + 'static) {
        let pauses = self.clone();
        let beating = move || loop {
            if pauses.beat(millis()) {
                paused();
            }
            thread::sleep(BEAT);
        };
        if let Err(error) = thread::Builder::new().name("suture-beat".to_owned()).spawn(beating) {
            tracing::error!(%error, "pauses are not noticed");
        }
    }

    /// One beat; whether there was a pause before it.
    fn beat(&self, millis: u64) -> bool {
        // what is due is said before the beat that hides the pause
        let mut due = self.due();
        let gap = Duration::from_millis(millis.saturating_sub(self.shared.beat_millis.load(Ordering::Acquire)));
        let is_pause = gap > PAUSE_MIN;
        if is_pause {
            tracing::warn!(secs = gap.as_secs(), "stood still: everything is read again before anything is decided");
            *due = Some(Due { after: now(), paused: gap });
        }
        self.shared.beat_millis.store(millis, Ordering::Release);
        is_pause
    }

    /// Whether what was seen counts.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self) -> Result<(), String> {
        self.check_at(millis())
    }

    fn check_at(&self, millis: u64) -> Result<(), String> {
        let due = self.due();
        let gap = Duration::from_millis(millis.saturating_sub(self.shared.beat_millis.load(Ordering::Acquire)));
        let paused = due.map(|due| due.paused).or((gap > PAUSE_MIN).then_some(gap));
        match paused {
            None => Ok(()),
            Some(paused) => {
                Err(format!("suture stood still for {} s and reads the cluster first; try again", paused.as_secs()))
            }
        }
    }

    /// How long ago the pause ended after which not everything was read yet.
    pub fn since(&self) -> Option<Duration> {
        self.due().map(|due| now().saturating_duration_since(due.after))
    }

    /// Everything that is watched was read after this.
    pub fn settle(&self, at: Instant) {
        let mut due = self.due();
        due.take_if(|due| due.after <= at);
    }

    fn due(&self) -> MutexGuard<'_, Option<Due>> {
        self.shared.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Pauses {
    /// As if the process had just stood still for a minute.
    pub fn pause(&self) {
        self.beat(millis() + 60_000);
    }
}

/// The time since the machine was started, also while it was suspended, in milliseconds.
fn millis() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec * 1_000 + time.tv_nsec / 1_000_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_counts_after_a_pause_until_everything_was_read() {
        let pauses = Pauses::default();
        let start = millis();
        let before = now();
        assert!(!pauses.beat(start + 1_000) && !pauses.beat(start + 3_500));
        assert_eq!(pauses.check_at(start + 3_600), Ok(()));
        // whoever runs first after the pause
        assert!(pauses.check_at(start + 9_600).unwrap_err().contains("stood still for 6 s"));
        assert!(pauses.beat(start + 9_600));
        assert!(pauses.check_at(start + 9_600).is_err());
        // what was read before it says nothing
        pauses.settle(before);
        assert!(pauses.check_at(start + 9_700).is_err());
        pauses.settle(now());
        assert_eq!(pauses.check_at(start + 9_700), Ok(()));
    }
}
