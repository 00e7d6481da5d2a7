//! Our PIT token: shard (1 octet), slot (3), generation (2), keyed check (2), big-endian.
//!
//! A token that comes back is a hint: the caller still compares the name. The check only keeps
//! tokens of others, and of an earlier life of this process, from being taken for ours.

use crate::hash::HashKey;

/// Octets of a token of ours. Not 6 or 7, the lengths by which other forwarders know their own.
pub const TOKEN_LEN: usize = 8;

/// Slots that a token can name.
pub const SLOTS_MAX: usize = 1 << 24;

/// Writes and reads tokens of one shard.
#[derive(Debug, Clone)]
pub struct TokenCodec {
    shard: u8,
    add: u64,
    multiply: u64,
}

impl TokenCodec {
    /// The codec of `shard`. All shards of a process use the same `key`.
    #[must_use]
    pub fn new(key: &HashKey, shard: u8) -> Self {
        Self { shard, add: key.words([0, u64::MAX]), multiply: key.words([1, u64::MAX]) | 1 }
    }

    #[inline(always)]
    fn check(&self, id: u64) -> u64 {
        (id ^ self.add).wrapping_mul(self.multiply) >> 48
    }

    /// The token of a slot in its generation.
    #[inline]
    #[must_use]
    pub fn encode(&self, slot: u32, generation: u16) -> [u8; TOKEN_LEN] {
        let id = u64::from(self.shard) << 40 | u64::from(slot) << 16 | u64::from(generation);
        (id << 16 | self.check(id)).to_be_bytes()
    }

    /// Slot and generation of a token of this shard; `None` for any other octets.
    #[inline]
    #[must_use]
    pub fn decode(&self, token: &[u8]) -> Option<(u32, u16)> {
        let word = u64::from_be_bytes(token.try_into().ok()?);
        let id = word >> 16;
        if id >> 40 != u64::from(self.shard) || word & 0xffff != self.check(id) {
            return None;
        }
        // Fields of 24 and 16 bits.
        #[allow(clippy::cast_possible_truncation)]
        Some(((id >> 16) as u32 & 0x00ff_ffff, id as u16))
    }

    /// The shard that a token of this process names: where to take a Data that carries it. The
    /// check holds for the tokens of all shards.
    #[inline]
    #[must_use]
    pub fn shard_of(&self, token: &[u8]) -> Option<u8> {
        let word = u64::from_be_bytes(token.try_into().ok()?);
        let id = word >> 16;
        // The top octet of the word.
        #[allow(clippy::cast_possible_truncation)]
        (word & 0xffff == self.check(id)).then_some((id >> 40) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_went_and_a_changed_one_does_not() {
        let key = HashKey::new(11, 12);
        let codec = TokenCodec::new(&key, 5);
        let token = codec.encode(0x0012_3456, 0xabcd);
        assert_eq!(codec.decode(&token), Some((0x0012_3456, 0xabcd)));
        assert_eq!(TokenCodec::new(&key, 0).shard_of(&token), Some(5));
        assert_eq!(TokenCodec::new(&key, 0).decode(&token), None);
        let mut accepted = 0;
        for bit in 0..64 {
            let mut other = token;
            other[bit / 8] ^= 1 << (bit % 8);
            accepted += usize::from(codec.decode(&other).is_some());
        }
        assert!(accepted <= 1, "the check sees nearly every change");
        assert_eq!(codec.decode(&token[..6]), None);
    }
}
