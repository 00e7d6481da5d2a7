//! The framing of old Blackadder nodes (section 7): no version, no hop limit.

use super::frame::{Ids, check_ids};
use super::{Filter, Id};
use crate::tlv::Malformed;
use crate::types;

/// EtherType of the old framing.
pub const OLD_ETHERTYPE: u16 = 0x080A;
/// UDP port, both ends, of the old framing.
pub const OLD_UDP_PORT: u16 = 55555;

/// A checked old frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldFrame<'a> {
    /// Where it goes; all ones: to the neighbours.
    pub filter: Filter,
    /// The names of the item.
    pub ids: Ids<'a>,
    /// What is published.
    pub payload: &'a [u8],
}

impl<'a> OldFrame<'a> {
    /// Checks an old frame.
    ///
    /// # Errors
    /// [`Malformed`], also without an id.
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        let (filter, rest) = octets.split_first_chunk().ok_or(Malformed::Truncated)?;
        let (count, rest) = rest.split_first().ok_or(Malformed::Truncated)?;
        if *count == 0 {
            return Err(Malformed::Missing(types::PUSH_FRAME));
        }
        let (ids, payload) = check_ids(u64::from(*count), rest)?;
        Ok(Self { filter: Filter::from_octets(filter), ids, payload })
    }

    /// Appends an old frame; of more than 255 ids the first.
    pub fn write(out: &mut Vec<u8>, filter: &Filter, ids: &[Id], payload: &[u8]) {
        let ids = ids.get(..255).unwrap_or(ids);
        out.extend_from_slice(&filter.octets());
        out.push(u8::try_from(ids.len()).unwrap_or(u8::MAX));
        for id in ids {
            out.push(u8::try_from(id.len()).unwrap_or(u8::MAX));
            out.extend_from_slice(id.octets());
        }
        out.extend_from_slice(payload);
    }
}
