//! SipHash-1-3, word by word: for what is short, and to make the secret words of other hashes.

/// The state of SipHash between two words.
#[derive(Clone, Copy)]
pub(crate) struct Sip([u64; 4]);

impl Sip {
    #[inline(always)]
    pub(crate) const fn start([k0, k1]: [u64; 2]) -> Self {
        Self([
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ])
    }

    #[inline(always)]
    const fn round(&mut self) {
        let v = &mut self.0;
        v[0] = v[0].wrapping_add(v[1]);
        v[2] = v[2].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[1]);
        v[0] = v[0].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].rotate_left(32);
    }

    #[inline(always)]
    pub(crate) const fn word(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    #[inline(always)]
    pub(crate) const fn finish(mut self) -> u64 {
        self.0[2] ^= 0xff;
        self.round();
        self.round();
        self.round();
        self.0[0] ^ self.0[1] ^ self.0[2] ^ self.0[3]
    }
}

/// A key of SipHash-1-3, for what is short and no name. Nodes compare some of these hashes, so they stay
/// what they are.
#[derive(Clone, Copy)]
pub struct SipKey([u64; 2]);

impl std::fmt::Debug for SipKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SipKey(..)")
    }
}

impl SipKey {
    /// The key made of two words.
    #[must_use]
    pub const fn new(k0: u64, k1: u64) -> Self {
        Self([k0, k1])
    }

    /// [`words`](Self::words) of which the first is given now and the second later, many times.
    #[inline]
    #[must_use]
    pub const fn first_word(&self, word: u64) -> FirstWord {
        let mut sip = Sip::start(self.0);
        sip.word(word);
        FirstWord(sip)
    }

    /// Hash of two words, such as a token's slot and generation.
    #[inline]
    #[must_use]
    pub const fn words(&self, words: [u64; 2]) -> u64 {
        self.first_word(words[0]).then(words[1])
    }

    /// SipHash-1-3 of octets.
    #[must_use]
    pub fn octets(&self, octets: &[u8]) -> u64 {
        let mut sip = Sip::start(self.0);
        let (words, rest) = octets.as_chunks::<8>();
        for word in words {
            sip.word(u64::from_le_bytes(*word));
        }
        let last = rest.iter().rev().fold(0, |word, octet| (word << 8) | u64::from(*octet));
        sip.word(last | (octets.len() as u64) << 56);
        sip.finish()
    }
}

/// A hash of two words of which the first was given.
#[derive(Clone, Copy)]
pub struct FirstWord(Sip);

impl std::fmt::Debug for FirstWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FirstWord(..)")
    }
}

impl FirstWord {
    /// The hash of both words.
    #[inline]
    #[must_use]
    pub const fn then(self, word: u64) -> u64 {
        let mut sip = self.0;
        sip.word(word);
        sip.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher as _;

    #[test]
    fn the_hash_of_octets_is_siphash_1_3() {
        let octets: Vec<u8> = (0..70).collect();
        for len in 0..70 {
            let mut reference = siphasher::sip::SipHasher13::new_with_keys(7, 9);
            reference.write(&octets[..len]);
            assert_eq!(SipKey::new(7, 9).octets(&octets[..len]), reference.finish(), "{len}");
        }
    }
}
