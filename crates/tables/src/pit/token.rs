//! Our PIT token: shard (1 octet), slot (3), keyed generation (2), big-endian.
//!
//! A token that comes back is a hint: the caller still compares generation and name. The key only
//! keeps tokens of others, and of an earlier life of this process, from being taken for ours. Why
//! six octets: docs/decisions/0002-tokens-of-six-octets.md.

use crate::hash::HashKey;
use std::fmt;
use std::ops::Deref;

/// Octets of a token of ours. ndnd ends itself when a downstream sent one of another length.
pub const TOKEN_LEN: usize = 6;

/// Slots that a token can name.
pub const SLOTS_MAX: usize = 1 << 24;

/// Most octets of any token.
pub const TOKEN_LEN_MAX: usize = onym_wire::lp::PIT_TOKEN_LEN_MAX;

/// The opaque token of a downstream, 1 to 32 octets; empty when there is none. Plain octets, so
/// that a copy is two moves.
#[derive(Clone, Default)]
pub struct Token {
    len: u8,
    octets: [u8; TOKEN_LEN_MAX],
}

/// A token of more than 32 octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a PIT token has {0} octets; at most 32 are allowed")]
pub struct TokenTooLong(pub usize);

impl Token {
    /// No token.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { len: 0, octets: [0; TOKEN_LEN_MAX] }
    }

    /// Its octets where they are as many as ours has.
    #[inline]
    #[must_use]
    pub fn as_ours(&self) -> Option<&[u8; TOKEN_LEN]> {
        if usize::from(self.len) == TOKEN_LEN { self.octets.first_chunk() } else { None }
    }
}

impl Deref for Token {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl TryFrom<&[u8]> for Token {
    type Error = TokenTooLong;
    #[inline]
    fn try_from(octets: &[u8]) -> Result<Self, TokenTooLong> {
        let mut token = Self::new();
        let place = token.octets.get_mut(..octets.len()).ok_or(TokenTooLong(octets.len()))?;
        place.copy_from_slice(octets);
        // No truncation: at most 32.
        #[allow(clippy::cast_possible_truncation)]
        {
            token.len = octets.len() as u8;
        }
        Ok(token)
    }
}

impl From<[u8; TOKEN_LEN]> for Token {
    #[inline]
    fn from(octets: [u8; TOKEN_LEN]) -> Self {
        let mut token = Self { len: TOKEN_LEN as u8, octets: [0; TOKEN_LEN_MAX] };
        token.octets[..TOKEN_LEN].copy_from_slice(&octets);
        token
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:02x?})", &**self)
    }
}

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

    /// What the generation of a slot is written with.
    #[inline(always)]
    fn mask(&self, place: u32) -> u16 {
        // The top 16 bits of the word.
        #[allow(clippy::cast_possible_truncation)]
        (((u64::from(place) ^ self.add).wrapping_mul(self.multiply) >> 48) as u16)
    }

    /// The token of a slot (below [`SLOTS_MAX`]) in its generation.
    #[inline]
    #[must_use]
    pub fn encode(&self, slot: u32, generation: u16) -> [u8; TOKEN_LEN] {
        let place = u32::from(self.shard) << 24 | slot;
        let [a, b, c, d] = place.to_be_bytes();
        let [e, f] = (generation ^ self.mask(place)).to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// Slot and generation of a token of this shard; `None` for octets that cannot be one. Octets
    /// of another give a generation that the slot most likely does not have.
    #[inline]
    #[must_use]
    pub fn decode(&self, token: &[u8]) -> Option<(u32, u16)> {
        let &[a, b, c, d, e, f] = token else { return None };
        if a != self.shard {
            return None;
        }
        let generation = u16::from_be_bytes([e, f]) ^ self.mask(u32::from_be_bytes([a, b, c, d]));
        Some((u32::from_be_bytes([0, b, c, d]), generation))
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
        assert_eq!(TokenCodec::new(&key, 0).decode(&token), None);
        for bit in 0..48 {
            let mut other = token;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(codec.decode(&other), Some((0x0012_3456, 0xabcd)));
        }
        assert_eq!(codec.decode(&token[..5]), None);
        assert_eq!(codec.decode(&[&token[..], &[0, 0]].concat()), None);
    }

    #[test]
    fn a_token_of_an_earlier_process_seldom_hits_a_generation() {
        let now = TokenCodec::new(&HashKey::new(1, 2), 0);
        let before = TokenCodec::new(&HashKey::new(3, 4), 0);
        let same = (0..10_000).filter(|slot| {
            now.decode(&before.encode(*slot, 1)).is_some_and(|(_, generation)| generation == 1)
        });
        assert!(same.count() < 10);
    }
}
