//! A small seeded generator for nonces, probing and tie-breaking. Not for secrets.

/// SplitMix64. The shell gives the seed, so that a run can be repeated.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts at `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 32 uniform bits: a Nonce.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        // The upper half, on purpose.
        #[allow(clippy::cast_possible_truncation)]
        {
            (self.next_u64() >> 32) as u32
        }
    }

    /// A number from 0 to `bound - 1`; 0 when `bound` is 0. Biased by less than 2^-32 for bounds
    /// below 2^32.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high word of the product is below `bound`.
        #[allow(clippy::cast_possible_truncation)]
        {
            ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
        }
    }
}
