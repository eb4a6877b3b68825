//! Which part of a log one of several processes judges.

use serde::{Deserialize, Serialize};

/// Which part of the entries is judged: entry number e (from 0) is of shard e mod `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which one, from 0.
    pub number: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    /// All.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Whether an entry is one of its own.
    pub fn has(self, entry: u64) -> bool {
        entry % self.of.max(1) == self.number
    }
}

/// `i/n`, from 0.
impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((number, of)) if number < of => Ok(Self { number, of }),
            Some((number, of)) => Err(format!("{number} of {of}: shards are counted from 0, as in 0/{of}")),
            None => Err("expected NUMBER/COUNT, such as 0/4".to_owned()),
        }
    }
}
