//! The webhook's address has a segment that nobody can guess: who does not know it is not answered, and nothing of its body
//! is read. It stands in the webhook's configuration, which only administrators read; and in what the API server tells a
//! requester when it cannot reach the webhook (`apiserver/pkg/admission/plugin/webhook/errors`), so that it changes every six
//! hours.
//!
//! It follows from the key of the authority that signs our certificates and from the time, so that all replicas that share a
//! vault know it. Those of the authority before and of the one to come are taken as well ([`super::certificates`]), and those
//! of the six hours before and after, until the API server was told. Where somebody else keeps the certificates, a file has it; where
//! there is neither, the address has no such segment and anybody who reaches the port may ask.

use std::fmt::Write;
use std::sync::Arc;

use arc_swap::ArcSwap;
use ring::hmac;

/// Where the webhook is.
pub const PATH: &str = "/validate";
/// What is asked at an address, which ends by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Whether a request is admitted.
    Decide,
    /// The same of what a cluster needs to come up ([`super::configuration::essential`]).
    Essential,
    /// Whether one of Suture's own resources may be written: no decision stands in its way.
    Resources,
}

impl Door {
    const ALL: [Self; 3] = [Self::Essential, Self::Resources, Self::Decide];

    fn ending(self) -> &'static str {
        match self {
            Self::Decide => "",
            Self::Essential => "/essential",
            Self::Resources => "/resources",
        }
    }
}

/// What the segment is derived for: a key is used for nothing twice.
const PURPOSE: &[u8] = b"the path of suture's webhook";
/// How long the segment stays the same.
const PERIOD_SECS: i64 = 6 * 3_600;
/// Characters of a segment: 128 bits.
const SEGMENT_CHARS: usize = 32;

/// The address of the webhook, below its host.
pub fn path(segment: Option<&str>, door: Door) -> String {
    let segment = segment.map(|segment| format!("/{segment}")).unwrap_or_default();
    format!("{PATH}{segment}{}", door.ending())
}

/// By which segment, if any, a path asks, and for what; none where it is no path of the webhook.
pub fn asked(path: &str) -> Option<(Option<&str>, Door)> {
    let rest = path.strip_prefix(PATH)?;
    let (rest, door) = Door::ALL.into_iter().find_map(|door| Some((rest.strip_suffix(door.ending())?, door)))?;
    match rest.strip_prefix('/') {
        None => rest.is_empty().then_some((None, door)),
        Some(segment) => (!segment.contains('/')).then_some((Some(segment), door)),
    }
}

/// In which period a time lies, in seconds since 1970: another one has another segment.
pub fn period(secs: i64) -> i64 {
    secs.div_euclid(PERIOD_SECS)
}

/// The segment that follows from a key in a period.
pub fn derived(key: &str, period: i64) -> String {
    let what = [PURPOSE, &period.to_be_bytes()[..]].concat();
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()), &what);
    let mut text = String::new();
    for byte in tag.as_ref() {
        _ = write!(text, "{byte:02x}");
    }
    text.truncate(SEGMENT_CHARS);
    text
}

/// A segment that somebody chose.
///
/// # Errors
/// When it is none, or could be guessed.
pub fn chosen(text: &str) -> Result<String, String> {
    let text = text.trim();
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if plain && text.len() >= SEGMENT_CHARS {
        return Ok(text.to_owned());
    }
    Err(format!("a path token has at least {SEGMENT_CHARS} letters, digits, `-` or `_`, and nothing else"))
}

/// The segments that are taken; cheap to clone. None is needed before one is known.
#[derive(Clone, Default)]
pub struct Segments {
    known: Arc<ArcSwap<Known>>,
}

#[derive(Default)]
struct Known {
    current: Option<String>,
    others: Vec<String>,
}

impl Segments {
    /// From now on the address has `current`; `others` are taken as well.
    pub fn set(&self, current: String, others: Vec<String>) {
        self.known.store(Arc::new(Known { current: Some(current), others }));
    }

    /// The segment of the address; none where it has none.
    pub fn current(&self) -> Option<String> {
        self.known.load().current.clone()
    }

    /// Whether who asks by this segment may ask.
    pub fn admits(&self, segment: Option<&str>) -> bool {
        let known = self.known.load();
        match (&known.current, segment) {
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
            (Some(current), Some(segment)) => {
                // all are compared, and all of each: how long that takes tells nothing
                known.others.iter().fold(same(current, segment), |found, other| found | same(other, segment))
            }
        }
    }
}

/// Whether a secret is the one that is known; how long that takes tells nothing of it.
pub fn same(known: &str, given: &str) -> bool {
    let differing = known.bytes().zip(given.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    (known.len() == given.len()) & (differing == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_know_the_segment_may_not_ask() {
        let segments = Segments::default();
        assert!(segments.admits(None) && !segments.admits(Some("anything")));
        let [old, now] = ["old key", "new key"].map(|key| derived(key, 7));
        assert_eq!((now.len(), derived("new key", 7) == now, old == now), (SEGMENT_CHARS, true, false));
        assert!(derived("new key", 8) != now && period(PERIOD_SECS * 8 - 1) == 7);
        segments.set(now.clone(), vec![old.clone()]);
        assert!(segments.admits(Some(&now)) && segments.admits(Some(&old)));
        for wrong in [None, Some(""), Some("essential"), Some(&now[1..]), Some(&*derived("other key", 7))] {
            assert!(!segments.admits(wrong), "{wrong:?}");
        }
        for (segment, door) in Door::ALL.iter().flat_map(|door| [(None, *door), (Some(&*now), *door)]) {
            assert_eq!(asked(&path(segment, door)), Some((segment, door)));
        }
        assert_eq!((asked("/validated"), asked("/other"), asked("/validate/a/b")), (None, None, None));
        assert!(chosen("short").is_err() && chosen(&"../".repeat(20)).is_err());
        assert_eq!(chosen(&format!("{now}\n")), Ok(now));
    }
}
