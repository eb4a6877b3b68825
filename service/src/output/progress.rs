//! A progress bar on standard error: only where somebody looks at it, and never mixed into an answer.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar, or nothing where standard error is no terminal.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

/// How often a bar is drawn while nothing moves.
const TICK_MS: u64 = 120;

impl Progress {
    /// A bar over so many steps. indicatif draws nothing where standard error is no terminal.
    pub fn of(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(TICK_MS));
        Self { bar }
    }

    /// No bar.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    /// One step more, and what is being done now.
    pub fn say(&self, what: &str) {
        self.bar.inc(1);
        self.bar.set_message(what.to_owned());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
