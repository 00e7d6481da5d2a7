//! NDNLPv2: the link-layer packet, its header fields, Nacks.

mod context;
mod header;
mod path;
mod services;
#[cfg(test)]
mod tests;

pub use context::TraceContext;
pub use header::LpHeader;
pub use path::PathField;
pub use services::{SERVICE_NEXT_HOPS_MAX, ServiceFields};

use crate::tlv::{self, Element, Malformed, Reader, take};
use crate::types;

/// Most fragments of one packet, as in NFD.
pub const FRAGMENTS_MAX: u64 = 400;
/// Longest PIT token, in octets.
pub const PIT_TOKEN_LEN_MAX: usize = 32;

/// Why an Interest was refused. Other numbers count as unspecified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NackReason(pub u64);

impl NackReason {
    /// Not specified.
    pub const NONE: Self = Self(0);
    /// The link or node is congested.
    pub const CONGESTION: Self = Self(50);
    /// The Nonce was seen before.
    pub const DUPLICATE: Self = Self(100);
    /// No route to the name.
    pub const NO_ROUTE: Self = Self(150);

    /// This reason, or [`NackReason::NONE`] for a number without a meaning here.
    #[must_use]
    pub const fn known(self) -> Self {
        match self {
            Self::CONGESTION | Self::DUPLICATE | Self::NO_ROUTE => self,
            _ => Self::NONE,
        }
    }
}

/// From the least to the most severe: by number, and unspecified is the most severe.
impl Ord for NackReason {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0 == 0, self.0).cmp(&(other.0 == 0, other.0))
    }
}

impl PartialOrd for NackReason {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for NackReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::NONE => f.write_str("None"),
            Self::CONGESTION => f.write_str("Congestion"),
            Self::DUPLICATE => f.write_str("Duplicate"),
            Self::NO_ROUTE => f.write_str("NoRoute"),
            Self(n) => write!(f, "{n}"),
        }
    }
}

/// A checked link-layer packet. A bare Interest or Data is one without header fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LpPacket<'a> {
    /// The network-layer packet, or a piece of it; `None` when the packet only carries Acks.
    pub fragment: Option<&'a [u8]>,
    /// Sequence.
    pub sequence: Option<u64>,
    /// FragIndex, 0 when absent.
    pub frag_index: u64,
    /// FragCount, 1 when absent.
    pub frag_count: u64,
    /// PIT token, 1 to 32 octets.
    pub pit_token: Option<&'a [u8]>,
    /// The reason, when the packet is a Nack of the Interest in the fragment.
    pub nack: Option<NackReason>,
    /// IncomingFaceId.
    pub incoming_face: Option<u64>,
    /// NextHopFaceId.
    pub next_hop_face: Option<u64>,
    /// Whether the cache policy is NoCache.
    pub no_cache: bool,
    /// CongestionMark, 0 when absent.
    pub congestion_mark: u64,
    /// TxSequence.
    pub tx_sequence: Option<u64>,
    /// Whether the Interest is no discovery.
    pub non_discovery: bool,
    /// A prefix announcement: one Data element.
    pub prefix_announcement: Option<&'a [u8]>,
    /// The trace that an Interest belongs to, in octets that [`TraceContext::parse`] reads.
    pub trace_context: Option<&'a [u8]>,
    /// The Ack elements.
    acks: &'a [u8],
}

/// Token and packet of an LpPacket that has these two and nothing else, as nearly all have. `None` says
/// only that it is something else; what is found, [`LpPacket::parse`] would find.
#[inline]
#[must_use]
pub fn token_and_packet(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    let (value, []) = take(frame, types::LP_PACKET)? else { return None };
    let (token, rest) = take(value, types::LP_PIT_TOKEN)?;
    let (packet, []) = take(rest, types::LP_FRAGMENT)? else { return None };
    let is_token = !token.is_empty() && token.len() <= PIT_TOKEN_LEN_MAX;
    (is_token && !packet.is_empty()).then_some((token, packet))
}

/// Whether an unknown header field of this type can be ignored.
#[inline]
const fn is_ignorable(typ: u32) -> bool {
    typ >= 800 && typ <= 959 && typ & 3 == 0
}

fn fixed_u64(element: Element<'_>) -> Result<u64, Malformed> {
    let octets = element.value.try_into().map_err(|_| Malformed::Length(element.typ))?;
    Ok(u64::from_be_bytes(octets))
}

impl<'a> LpPacket<'a> {
    /// Checks a whole frame: an LpPacket, or a bare Interest or Data, which are not looked into.
    ///
    /// # Errors
    /// [`Malformed::UnknownHeader`] for an unknown field that must not be ignored, others when the
    /// frame is no such packet or its fields are not in ascending order with Fragment last.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Result<Self, Malformed> {
        let outer = Element::parse(frame)?;
        let mut packet = Self { frag_count: 1, ..Self::default() };
        match outer.typ {
            types::INTEREST | types::DATA => {
                packet.fragment = Some(frame);
                Ok(packet)
            }
            types::LP_PACKET => packet.take_fields(outer.value),
            typ => Err(Malformed::Unexpected(typ)),
        }
    }

    fn take_fields(mut self, value: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let mut last = 0;
        let mut acks_at = 0;
        while !reader.is_empty() {
            let at = value.len() - reader.rest().len();
            let element = reader.element()?;
            let typ = element.typ;
            // Fragment goes last although its number is the smallest.
            let order = if typ == types::LP_FRAGMENT { u32::MAX } else { typ };
            if order < last || (order == last && typ != types::LP_ACK) {
                return Err(Malformed::OutOfOrder(typ));
            }
            if typ == types::LP_ACK {
                fixed_u64(element)?;
                // Acks stand next to each other by the order rule.
                acks_at = if last == typ { acks_at } else { at };
                let end = value.len() - reader.rest().len();
                self.acks = value.get(acks_at..end).unwrap_or_default();
            } else {
                self.take_field(element)?;
            }
            last = order;
        }
        Ok(self)
    }

    fn take_field(&mut self, element: Element<'a>) -> Result<(), Malformed> {
        let value = element.value;
        match element.typ {
            types::LP_FRAGMENT if value.is_empty() => return Err(Malformed::Length(element.typ)),
            types::LP_FRAGMENT => self.fragment = Some(value),
            // Others write short numbers, and none in a packet that is whole needs it: what is no
            // number is as good as absent.
            types::LP_SEQUENCE => self.sequence = element.nni().ok(),
            types::LP_FRAG_INDEX => self.frag_index = element.nni()?,
            types::LP_FRAG_COUNT => self.frag_count = element.nni()?,
            types::LP_HOP_COUNT => drop(element.nni()?),
            types::LP_PIT_TOKEN => {
                if value.is_empty() || value.len() > PIT_TOKEN_LEN_MAX {
                    return Err(Malformed::Length(element.typ));
                }
                self.pit_token = Some(value);
            }
            types::LP_NACK => self.nack = Some(nack_reason(value)?),
            types::LP_INCOMING_FACE_ID => self.incoming_face = Some(element.nni()?),
            types::LP_NEXT_HOP_FACE_ID => self.next_hop_face = Some(element.nni()?),
            types::LP_CACHE_POLICY => self.no_cache = cache_policy(value)?,
            types::LP_CONGESTION_MARK => self.congestion_mark = element.nni()?,
            types::LP_TX_SEQUENCE => self.tx_sequence = Some(fixed_u64(element)?),
            types::LP_NON_DISCOVERY if !value.is_empty() => {
                return Err(Malformed::Length(element.typ));
            }
            types::LP_NON_DISCOVERY => self.non_discovery = true,
            types::LP_PREFIX_ANNOUNCEMENT => {
                Element::parse_as(value, types::DATA)?;
                self.prefix_announcement = Some(value);
            }
            types::LP_TRACE_CONTEXT if TraceContext::parse(value).is_some() => {
                self.trace_context = Some(value);
            }
            typ if is_ignorable(typ) => {}
            typ => return Err(Malformed::UnknownHeader(typ)),
        }
        Ok(())
    }

    /// The TxSequences that this packet acknowledges.
    pub fn acks(&self) -> impl Iterator<Item = u64> + use<'a> {
        Reader::new(self.acks).filter_map(|element| fixed_u64(element.ok()?).ok())
    }

    /// Whether there is no header field: the frame could have been a bare packet.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        *self == Self { fragment: self.fragment, frag_count: 1, ..Self::default() }
    }

    /// Whether the fragment is a piece of a larger packet.
    #[inline]
    #[must_use]
    pub fn is_fragmented(&self) -> bool {
        self.frag_count != 1 || self.frag_index != 0
    }
}

fn nack_reason(value: &[u8]) -> Result<NackReason, Malformed> {
    let mut reason = NackReason::NONE;
    for element in Reader::new(value) {
        let element = element?;
        match element.typ {
            types::LP_NACK_REASON => reason = NackReason(element.nni()?),
            typ if tlv::is_critical(typ) => return Err(Malformed::UnknownCritical(typ)),
            _ => {}
        }
    }
    Ok(reason)
}

fn cache_policy(value: &[u8]) -> Result<bool, Malformed> {
    const NO_CACHE: u64 = 1;
    let policy = Reader::new(value).expect(types::LP_CACHE_POLICY_TYPE)?.nni()?;
    if policy == NO_CACHE { Ok(true) } else { Err(Malformed::Value(types::LP_CACHE_POLICY_TYPE)) }
}
