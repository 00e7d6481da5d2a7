//! The index entry of a packet.

use crate::change::OwnerId;
use crate::record::Place;

/// Octets of an entry in the index.
pub(crate) const ENTRY: usize = 32;

/// What the index says about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub(crate) place: Place,
    /// Octets of the Data element.
    pub len: u32,
    /// Whose it is.
    pub owner: OwnerId,
    /// Until when it is fresh, in milliseconds since the Unix epoch; 0 never was.
    pub fresh_until_ms: u64,
    /// When it goes by itself; 0 is never.
    pub expires_ms: u64,
}

impl Entry {
    /// Whether its time is over.
    #[must_use]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms != 0 && self.expires_ms <= now_ms
    }

    /// Whether a cache would take it as fresh.
    #[must_use]
    pub fn is_fresh(&self, now_ms: u64) -> bool {
        self.fresh_until_ms > now_ms
    }

    pub(crate) fn encode(&self) -> [u8; ENTRY] {
        let mut out = [0; ENTRY];
        out[..4].copy_from_slice(&self.place.segment.to_le_bytes());
        out[4..8].copy_from_slice(&self.place.offset.to_le_bytes());
        out[8..12].copy_from_slice(&self.len.to_le_bytes());
        out[12..14].copy_from_slice(&self.owner.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.fresh_until_ms.to_le_bytes());
        out[24..].copy_from_slice(&self.expires_ms.to_le_bytes());
        out
    }

    pub(crate) fn decode(octets: &[u8; ENTRY]) -> Self {
        let u32_at = |at: usize| {
            u32::from_le_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        Self {
            place: Place { segment: u32_at(0), offset: u32_at(4) },
            len: u32_at(8),
            owner: OwnerId(u16::from_le_bytes([octets[12], octets[13]])),
            fresh_until_ms: u64_at(16),
            expires_ms: u64_at(24),
        }
    }
}
