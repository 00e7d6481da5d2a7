//! The Bloom filter in which a subscriber of partial synchronisation says what it wants.

use super::iblt::murmur3;
use onym_wire::{Malformed, Name, types};

/// The first salts of A. Partow's filter; a probability of a thousandth, the least that travels, has
/// ten hashes.
const SALTS: [u32; 10] = [
    0xAAAA_AAAA,
    0x5555_5555,
    0x3333_3333,
    0xCCCC_CCCC,
    0x6666_6666,
    0x9999_9999,
    0xB5B5_B5B5,
    0x4B4B_4B4B,
    0xAA55_AA55,
    0x5533_5533,
];
/// What its default seed is, in 32 bits.
const SEED: u32 = 0x5A5A_5A5A_u32.wrapping_mul(0xA5A5_A5A5).wrapping_add(1);
/// Elements that a filter is made for, at most: it is part of a name.
const COUNT_MAX: u64 = 4096;
const THOUSAND: u64 = 1000;

/// A set of names, some of which may be in it by mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bloom {
    count: u64,
    /// Probability of a mistake, in thousandths.
    mistakes: u64,
    salts: Vec<u32>,
    octets: Vec<u8>,
}

impl Bloom {
    /// An empty filter for about `count` names, of which `mistakes` in a thousand others are mistaken
    /// for one. `None` when it would be too long, or the probability is none.
    #[must_use]
    pub fn new(count: u64, mistakes: u64) -> Option<Self> {
        if !(1..=COUNT_MAX).contains(&count) || !(1..THOUSAND).contains(&mistakes) {
            return None;
        }
        #[allow(clippy::cast_precision_loss)]
        let (elements, probability) = (count as f64, mistakes as f64 / THOUSAND as f64);
        let bits = |hashes: u32| {
            let hashes = f64::from(hashes);
            -hashes * elements / (1.0 - probability.powf(1.0 / hashes)).ln()
        };
        let hashes = (1..1000).min_by(|a, b| bits(*a).total_cmp(&bits(*b)))?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let octets = (bits(hashes) as usize).div_ceil(8).max(1);
        let mut salts = SALTS.get(..hashes as usize)?.to_vec();
        for at in 0..salts.len() {
            let (own, other) = (salts.get(at)?, salts.get((at + 3) % salts.len())?);
            let salt = own.wrapping_mul(*other).wrapping_add(SEED);
            *salts.get_mut(at)? = salt;
        }
        Some(Self { count, mistakes, salts, octets: vec![0; octets] })
    }

    fn bits(&self, name: &Name) -> impl Iterator<Item = (usize, u8)> + use<> {
        let size = self.octets.len() * 8;
        let value = name.value().to_vec();
        self.salts.clone().into_iter().map(move |salt| {
            let bit = murmur3(salt, &value) as usize % size;
            (bit / 8, 1 << (bit % 8))
        })
    }

    /// Adds a name.
    pub fn insert(&mut self, name: &Name) {
        for (at, bit) in self.bits(name) {
            if let Some(octet) = self.octets.get_mut(at) {
                *octet |= bit;
            }
        }
    }

    /// Whether `name` was added, or is mistaken for one that was.
    #[must_use]
    pub fn contains(&self, name: &Name) -> bool {
        self.bits(name).all(|(at, bit)| self.octets.get(at).is_some_and(|octet| octet & bit != 0))
    }

    /// Appends it as three components.
    pub fn append_to(&self, name: &mut Name) {
        name.append_number(types::GENERIC_COMPONENT, self.count);
        name.append_number(types::GENERIC_COMPONENT, self.mistakes);
        name.append_generic(&self.octets);
    }

    /// Reads what [`Bloom::append_to`] wrote.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(count: u64, mistakes: u64, octets: &[u8]) -> Result<Self, Malformed> {
        let wrong = Malformed::Value(types::GENERIC_COMPONENT);
        let empty = Self::new(count, mistakes).ok_or(wrong)?;
        if empty.octets.len() != octets.len() {
            return Err(Malformed::Length(types::GENERIC_COMPONENT));
        }
        Ok(Self { octets: octets.to_vec(), ..empty })
    }
}
