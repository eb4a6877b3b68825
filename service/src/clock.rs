//! The two clocks: the time that a cluster knows, which a suite states, and the one that durations are measured by.
//!
//! The time of a suite is stated, or the newest timestamp in its state; it moves only when a step says so.

use std::time::{Duration, Instant};

use suture_model::value::Val;
use suture_specs::time;

/// Fields that say when something happened. Others, such as a certificate's end, may lie in the future.
const PAST: [&str; 16] = [
    "acquireTime",
    "completionTime",
    "creationTimestamp",
    "deletionTimestamp",
    "finishedAt",
    "lastHeartbeatTime",
    "lastProbeTime",
    "lastScaleTime",
    "lastScheduleTime",
    "lastSuccessfulTime",
    "lastTransitionTime",
    "lastUpdateTime",
    "renewTime",
    "startTime",
    "startedAt",
    "time",
];

/// A point in time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clock(i128);

impl Clock {
    /// Where a clock starts that only tells what passes.
    pub const ANY: Self = Self(0);

    /// The time that an RFC 3339 text names.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        time::parse_timestamp(text).map(Self).map_err(|error| error.to_string())
    }

    /// The time that it is now.
    #[expect(clippy::disallowed_methods, reason = "what happens in a live cluster happens now")]
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(i128::try_from(since.as_nanos()).unwrap_or(i128::MAX))
    }

    /// The newest timestamp in a manifest.
    pub fn newest_in(manifest: &Val) -> Option<Self> {
        match manifest {
            Val::Map(map) => {
                let found = map.iter().filter_map(|(key, value)| match value {
                    Val::Str(text) if PAST.contains(&&**key) => Self::parse(text).ok(),
                    other => Self::newest_in(other),
                });
                found.max()
            }
            Val::List(items) => items.iter().filter_map(Self::newest_in).max(),
            _ => None,
        }
    }

    /// So much later (`30s`, `2h`).
    ///
    /// # Errors
    /// When the text is no duration, or is negative.
    pub fn later(self, duration: &str) -> Result<Self, String> {
        let nanos = time::parse_duration(duration).map_err(|error| error.to_string())?;
        if nanos < 0 {
            return Err(format!("time does not go back: `{duration}`"));
        }
        time::timestamp(self.0.saturating_add(nanos)).map(Self).map_err(|error| error.to_string())
    }

    /// So long ago (`30s`, `2h`, `7d`).
    ///
    /// # Errors
    /// When the text is no duration, or is negative.
    pub fn ago(self, duration: &str) -> Result<Self, String> {
        let days = duration.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
        let hours = days.map(|days| format!("{}h", u64::from(days) * 24));
        let nanos = time::parse_duration(hours.as_deref().unwrap_or(duration)).map_err(|error| error.to_string())?;
        if nanos < 0 {
            return Err(format!("`{duration}` is not in the past"));
        }
        time::timestamp(self.0.saturating_sub(nanos)).map(Self).map_err(|error| error.to_string())
    }

    /// So much earlier.
    #[must_use]
    pub fn earlier(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)))
    }

    /// The second that it is in.
    #[must_use]
    pub fn to_second(self) -> Self {
        Self(self.0.div_euclid(1_000_000_000) * 1_000_000_000)
    }

    /// In nanoseconds since 1970.
    pub fn nanos(self) -> i128 {
        self.0
    }

    /// How many whole seconds have passed since an earlier time.
    pub fn seconds_since(self, earlier: Self) -> i128 {
        self.0.saturating_sub(earlier.0) / 1_000_000_000
    }
}

/// RFC 3339, in UTC.
impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&time::format_timestamp(self.0))
    }
}

/// The clock that durations are measured by: how long something took, how far a watch lags, when an answer is due. No
/// verdict depends on it.
#[expect(clippy::disallowed_methods, reason = "a duration is measured; no verdict depends on it")]
pub fn now() -> Instant {
    Instant::now()
}
