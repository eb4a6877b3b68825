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

    /// A bar over so many bytes, with the time that is left; over an unknown number it only says what is being done.
    pub fn of_bytes(bytes: Option<u64>) -> Self {
        let (bar, template) = match bytes {
            Some(bytes) => (ProgressBar::new(bytes), "{bar:24} {bytes}/{total_bytes} {eta} {wide_msg}"),
            None => (ProgressBar::new_spinner(), "{spinner} {bytes} {wide_msg}"),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(TICK_MS));
        Self { bar }
    }

    /// How far it has come, and what is being done.
    pub fn reach(&self, position: u64, what: &str) {
        self.bar.set_position(position);
        self.bar.set_message(what.to_owned());
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
