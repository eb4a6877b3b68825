//! A generator of pseudo-random numbers (SplitMix64): the same sequence on every machine.

/// A sequence of numbers that looks random.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of one case of a run.
    pub fn new(seed: u64, case: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        usize::try_from((self.next() >> 11) % n).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        let span = usize::try_from((high - low).max(0)).unwrap_or(0);
        low + i64::try_from(self.below(span + 1)).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    /// The same in another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
