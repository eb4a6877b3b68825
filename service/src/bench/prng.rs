//! A small deterministic generator of pseudo-random numbers (SplitMix64, Steele et al. 2014): the same seed makes the
//! same cluster on every machine and with every version of every dependency.

/// The generator.
#[derive(Clone, Debug)]
pub struct Prng(u64);

impl Prng {
    /// A generator that starts from this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when there is none.
    pub fn below(&mut self, end: usize) -> usize {
        let end = end as u64;
        usize::try_from(self.bits().checked_rem(end).unwrap_or(0)).unwrap_or(0)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of the items, if there are any.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> Option<&'t T> {
        let at = self.below(items.len());
        items.get(at)
    }
}
