//! The 256-bit filter of LIPSIN.

use std::fmt;
use std::str::FromStr;

/// 256 bits; bit *i* is bit *i* mod 8, least significant first, of octet *i* / 8 (P-9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Filter([u64; 4]);

impl Filter {
    /// Bits of a filter.
    pub const BITS: u32 = 256;
    /// Octets of a filter.
    pub const LEN: usize = 32;
    /// No bit set: matches no link, and is part of every filter.
    pub const EMPTY: Self = Self([0; 4]);
    /// All bits set.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// The filter that these octets are.
    #[inline]
    #[must_use]
    pub fn from_octets(octets: &[u8; Self::LEN]) -> Self {
        let mut words = [0; 4];
        for (word, octets) in words.iter_mut().zip(octets.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*octets);
        }
        Self(words)
    }

    /// The octets on the wire.
    #[inline]
    #[must_use]
    pub fn octets(&self) -> [u8; Self::LEN] {
        let mut octets = [0; Self::LEN];
        for (octets, word) in octets.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *octets = word.to_le_bytes();
        }
        octets
    }

    /// The bits as four words, the lowest first.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> [u64; 4] {
        self.0
    }

    /// Sets bit `bit`.
    #[inline]
    pub fn set(&mut self, bit: u8) {
        if let Some(word) = self.0.get_mut(usize::from(bit >> 6)) {
            *word |= 1 << (bit & 63);
        }
    }

    /// Whether bit `bit` is set.
    #[inline]
    #[must_use]
    pub fn has(&self, bit: u8) -> bool {
        self.0.get(usize::from(bit >> 6)).is_some_and(|word| word & (1 << (bit & 63)) != 0)
    }

    /// Adds all bits of `other`.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
    }

    /// Whether all bits of `tag` are set (P-10).
    #[inline]
    #[must_use]
    pub const fn contains(&self, tag: &Self) -> bool {
        let ([a, b, c, d], [p, q, r, s]) = (self.0, tag.0);
        ((!a & p) | (!b & q) | (!c & r) | (!d & s)) == 0
    }

    /// Number of bits set, 0 to 256.
    #[inline]
    #[must_use]
    pub const fn ones(&self) -> u32 {
        let [a, b, c, d] = self.0;
        a.count_ones() + b.count_ones() + c.count_ones() + d.count_ones()
    }

    /// Whether no bit is set.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let [a, b, c, d] = self.0;
        a | b | c | d == 0
    }
}

impl fmt::Display for Filter {
    /// 256 digits, bit 255 first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().rev().try_for_each(|word| write!(f, "{word:064b}"))
    }
}

impl fmt::Debug for Filter {
    /// The positions of the ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((0..=255_u8).filter(|bit| self.has(*bit))).finish()
    }
}

/// A text that is not 256 binary digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a filter is written with 256 binary digits")]
pub struct FilterError;

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text.len() != 256 {
            return Err(FilterError);
        }
        let mut filter = Self::EMPTY;
        for (bit, digit) in (0..=255_u8).rev().zip(text.bytes()) {
            match digit {
                b'1' => filter.set(bit),
                b'0' => {}
                _ => return Err(FilterError),
            }
        }
        Ok(filter)
    }
}
