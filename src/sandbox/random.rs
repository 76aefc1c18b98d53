//! Chance that can be repeated.

/// `SplitMix64` (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug)]
pub(super) struct SplitMix(u64);

impl SplitMix {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True in `percent` of a hundred cases.
    pub(super) fn happens(&mut self, percent: u8) -> bool {
        self.next() % 100 < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference implementation for seed 1234567.
    #[test]
    fn gives_the_reference_sequence() {
        let mut random = SplitMix::seeded(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn never_and_always_are_exact() {
        let mut random = SplitMix::seeded(7);
        assert!((0..1000).all(|_| !random.happens(0)));
        assert!((0..1000).all(|_| random.happens(100)));
    }
}
