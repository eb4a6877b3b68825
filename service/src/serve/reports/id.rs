//! What a report is called: a number that grows with time, as thirteen letters and digits that nobody mixes up.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Clock;

/// Crockford's base 32: no i, l, o and u (crockford.com/base32.html).
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: u32 = 13;
/// Below the milliseconds: what tells the reports of one of them apart.
const COUNT_BITS: u32 = 20;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The name of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReportId(pub(super) u64);

impl ReportId {
    /// The first one that a report may have which was made at this time.
    pub fn first_at(time: Clock) -> Self {
        let millis = u64::try_from(time.nanos().max(0) / NANOS_PER_MILLI).unwrap_or(u64::MAX);
        Self(millis.saturating_mul(1 << COUNT_BITS))
    }

    /// When a report of this id was made, in seconds since 1970.
    pub fn seconds(self) -> i64 {
        i64::try_from((self.0 >> COUNT_BITS) / 1_000).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for ReportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |at: u32| DIGITS.get(usize::try_from(self.0 >> (5 * at) & 31).unwrap_or_default()).copied();
        let text: String = (0..LENGTH).rev().filter_map(digit).map(char::from).collect();
        f.write_str(&text)
    }
}

/// Why a text names no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no report's id: one has {LENGTH} letters and digits")]
pub struct NoId(String);

impl FromStr for ReportId {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        let no_id = || NoId(text.chars().take(64).collect());
        let digit = |letter: u8| DIGITS.iter().position(|digit| *digit == letter.to_ascii_lowercase());
        if text.len() != LENGTH as usize {
            return Err(no_id());
        }
        let value =
            text.bytes().try_fold(0_u128, |value, letter| Some(value << 5 | u128::try_from(digit(letter)?).ok()?));
        value.and_then(|value| u64::try_from(value).ok()).map(Self).ok_or_else(no_id)
    }
}

/// Gives out ids, each later than all before.
#[derive(Debug)]
pub struct Ids {
    last: AtomicU64,
    /// Where the reports of a millisecond begin to be counted, so that two replicas hardly ever give out the same.
    begin: u64,
}

impl Ids {
    /// Ids of a replica, later than this one.
    pub fn after(last: Option<ReportId>, replica: &str) -> Self {
        // FNV-1a (datatracker.ietf.org/doc/html/draft-eastlake-fnv)
        let hash = replica
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self { last: AtomicU64::new(last.map_or(0, |id| id.0)), begin: hash >> (64 - COUNT_BITS) }
    }

    /// The next one.
    pub fn next(&self, now: Clock) -> ReportId {
        let at_least = ReportId::first_at(now).0 | self.begin;
        let next = |last: u64| Some(at_least.max(last.saturating_add(1)));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_else(|last| last);
        ReportId(at_least.max(last.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_and_are_read_as_they_are_written() {
        let ids = Ids::after(None, "suture-0");
        let now = Clock::parse("2026-11-01T12:00:00Z").unwrap();
        let earlier = Clock::parse("2026-11-01T11:00:00Z").unwrap();
        let made: Vec<ReportId> = [now, now, earlier, now].into_iter().map(|time| ids.next(time)).collect();
        assert!(made.is_sorted_by(|a, b| a < b), "{made:?}");
        for id in &made {
            let text = id.to_string();
            assert_eq!((text.len(), text.parse(), text.to_uppercase().parse()), (13, Ok(*id), Ok(*id)));
        }
        assert!(made[0] >= ReportId::first_at(now));
        assert_eq!(ReportId(u64::MAX).to_string().parse(), Ok(ReportId(u64::MAX)));
        for text in ["", "0", "0000000000000i", "zzzzzzzzzzzzz", "000000000000é"] {
            assert!(text.parse::<ReportId>().is_err(), "{text}");
        }
        assert!(Ids::after(Some(made[3]), "b").next(earlier) > made[3], "also after a restart with another clock");
    }
}
