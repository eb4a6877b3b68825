//! How many pods of a template a place takes.

/// How many pods of a template a place takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Room {
    /// At most, were the group's own pods all gone; `None` without a bound.
    pub most: Option<i64>,
    /// For certain, were they all to stay.
    pub least: Option<i64>,
}

impl Room {
    /// No more than either says.
    pub fn tighter(self, other: Self) -> Self {
        let least = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        Self { most: least(self.most, other.most), least: least(self.least, other.least) }
    }

    /// For no more than so many pods: what takes them all is without a bound.
    pub fn of(self, number: i64) -> Self {
        Self { most: self.most.filter(|most| *most < number), least: self.least.filter(|least| *least < number) }
    }
}
