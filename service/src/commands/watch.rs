//! Waits until a file changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use notify_debouncer_mini::notify::{self, RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{DebounceEventResult, Debouncer, new_debouncer};

use crate::failure::Failure;

/// An editor writes a file in several steps; they count as one change.
const SETTLED: Duration = Duration::from_millis(200);

/// The changes of files since the watch began.
pub struct Changes {
    events: Receiver<DebounceEventResult>,
    _watcher: Debouncer<RecommendedWatcher>,
}

impl Changes {
    /// Watches files and folders. A file is watched by its folder, since editors put a new file in its place.
    ///
    /// # Errors
    /// When one cannot be watched.
    pub fn of(paths: &[PathBuf]) -> Result<Self, Failure> {
        let (events_of, events) = channel();
        let mut watcher = new_debouncer(SETTLED, events_of).map_err(|error| failure(&error))?;
        for (folder, mode) in paths.iter().map(|path| watched(path)).collect::<BTreeSet<_>>() {
            let mode = if mode { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            watcher.watcher().watch(&folder, mode).map_err(|error| failure(&error))?;
        }
        Ok(Self { events, _watcher: watcher })
    }

    /// Waits for the next change.
    ///
    /// # Errors
    /// When the system does not tell changes any more.
    pub fn wait(&self) -> Result<(), Failure> {
        let changed = self.events.recv().map_err(Failure::invalid)?;
        changed.map(|_| ()).map_err(|error| failure(&error))
    }
}

/// A folder to watch, and whether what is in its folders counts.
fn watched(path: &Path) -> (PathBuf, bool) {
    if path.is_dir() {
        return (path.to_path_buf(), true);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    (parent.unwrap_or(Path::new(".")).to_path_buf(), false)
}

fn failure(error: &notify::Error) -> Failure {
    Failure::invalid(format!("--watch: {error}"))
}
