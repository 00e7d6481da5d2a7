//! A Bloom filter over keyed hashes of names.

/// Bits for each entry; with [`PROBES`] about one absent name in 120 passes.
const BITS_PER_ENTRY: usize = 10;
/// Bits that a name sets.
const PROBES: u64 = 7;

/// A set that may say yes for what is not in it, and never no for what is.
#[derive(Debug)]
pub struct Bloom {
    words: Vec<u64>,
    mask: u64,
}

impl Bloom {
    /// A filter for `entries` names; more make it say yes more often.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        let bits = (entries * BITS_PER_ENTRY).next_power_of_two().max(64);
        Self { words: vec![0; bits / 64], mask: bits as u64 - 1 }
    }

    /// The places of a hash: double hashing (Kirsch and Mitzenmacher 2006).
    fn places(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let (step, mask) = (hash.rotate_left(32) | 1, self.mask);
        (0..PROBES).map(move |n| {
            let bit = hash.wrapping_add(n.wrapping_mul(step)) & mask;
            // No truncation: the mask is a length of this machine.
            #[allow(clippy::cast_possible_truncation)]
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    /// Puts a hash in.
    pub fn insert(&mut self, hash: u64) {
        for (word, bit) in self.places(hash) {
            self.words[word] |= bit;
        }
    }

    /// Whether a hash may be in.
    #[must_use]
    pub fn may_hold(&self, hash: u64) -> bool {
        self.places(hash).all(|(word, bit)| self.words[word] & bit != 0)
    }

    /// Octets of the filter.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.words.len() * 8
    }
}
