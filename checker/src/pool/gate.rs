//! Lets another thread interrupt a worker that will not end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// An interrupt that arrives between two checks is lost on Z3: it is repeated until the worker has ended.
const INTERRUPT_EVERY_MS: u64 = 10;

/// Between a worker and the thread that guards it.
#[derive(Default)]
pub(super) struct Gate {
    stopped: AtomicBool,
    /// Whether the worker has ended.
    open: Mutex<bool>,
    changed: Condvar,
}

/// Opens the gate when the worker leaves its scope, by a panic too.
pub(super) struct OpenOnDrop<'a>(&'a Gate);

impl Gate {
    /// Asks the worker to end.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        // under the lock, so that the guard is either before its look at `stopped` or asleep
        let _open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }

    /// Whether the worker was asked to end.
    pub(super) fn stopped(&self) -> &AtomicBool {
        &self.stopped
    }

    /// Runs on the guarding thread: interrupts once the worker was asked to end, and again until it has.
    pub(super) fn guard(&self, interrupt: impl Fn()) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = if self.stopped.load(Ordering::Relaxed) {
                interrupt();
                let pause = Duration::from_millis(INTERRUPT_EVERY_MS);
                self.changed.wait_timeout(open, pause).unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.changed.wait(open).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Ends the guard when the result is dropped.
    pub(super) fn open_on_drop(&self) -> OpenOnDrop<'_> {
        OpenOnDrop(self)
    }
}

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}
