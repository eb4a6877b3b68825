//! A digest by which the parts of a replay are known to be of one: of a log, a state, a policy.

use std::fmt;

/// FNV-1a of 64 bits: the same on every machine and in every version, and fast enough for a log. It tells apart what was not
/// made alike on purpose, which is all that is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a text, and where it ends.
    pub fn add(&mut self, text: &[u8]) {
        for byte in text.iter().chain(&[0]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
