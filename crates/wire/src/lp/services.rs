//! Header fields between the services of one chain (spec/services.md, section 2).

use crate::tlv::{Element, Malformed, Reader};
use crate::types;
use std::num::NonZeroU64;

/// Most next hops of one Interest.
pub const SERVICE_NEXT_HOPS_MAX: usize = 32;
/// Octets in front of the next hops: components of the prefix, flags.
const HEAD_LEN: usize = 2;
/// Octets of one next hop: origin, cost.
const HOP_LEN: usize = 16;

/// What a service says of a packet to the next one of its chain. Others ignore the fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceFields<'a> {
    /// Where the packet entered the chain.
    pub origin: Option<NonZeroU64>,
    /// The next hops of an Interest.
    pub next_hops: Option<&'a [u8]>,
}

impl<'a> ServiceFields<'a> {
    /// The fields of a frame that [`super::LpPacket::parse`] has checked.
    ///
    /// # Errors
    /// An origin that is not 8 octets or is 0; next hops that are cut, or more than
    /// [`SERVICE_NEXT_HOPS_MAX`].
    pub fn parse(frame: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Self::default();
        for element in Reader::new(Element::parse_as(frame, types::LP_PACKET)?.value) {
            let Element { typ, value, .. } = element?;
            match typ {
                types::LP_SERVICE_ORIGIN => {
                    let octets = value.try_into().map_err(|_| Malformed::Length(typ))?;
                    let origin = NonZeroU64::new(u64::from_be_bytes(octets));
                    fields.origin = Some(origin.ok_or(Malformed::Value(typ))?);
                }
                types::LP_SERVICE_NEXT_HOPS => {
                    let hops = value.get(HEAD_LEN..).ok_or(Malformed::Length(typ))?;
                    if hops.len() % HOP_LEN != 0 || hops.len() > SERVICE_NEXT_HOPS_MAX * HOP_LEN {
                        return Err(Malformed::Length(typ));
                    }
                    fields.next_hops = Some(value);
                }
                _ => {}
            }
        }
        Ok(fields)
    }
}
