//! Octets that came, as fields.

use super::name::{self, Component};
use super::tlv::{children, read_nni, split};
use super::types as t;

/// One frame or one joined packet as the script's end sees it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The frame as it came (of a joined packet: its first frame).
    pub frame: Vec<u8>,
    /// Link fields.
    pub lp: LpFields,
    /// The network-layer packet without link header; of a fragment, its octets.
    pub net: Option<Vec<u8>>,
}

/// Link fields of a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LpFields {
    pub wrapped: bool,
    pub token: Option<Vec<u8>>,
    pub mark: Option<u64>,
    pub next_face: Option<u64>,
    pub in_face: Option<u64>,
    pub no_cache: bool,
    pub no_discovery: bool,
    pub announce: Option<Vec<u8>>,
    pub seq: Option<u64>,
    pub frag: Option<(u64, u64)>,
    pub tx: Option<u64>,
    pub acks: Vec<u64>,
    pub nack: Option<u64>,
    pub others: Vec<(u64, Vec<u8>)>,
}

/// An Interest as fields.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct Interest {
    pub name: Vec<Component>,
    pub can_be_prefix: bool,
    pub must_be_fresh: bool,
    pub hint: Vec<Vec<Component>>,
    pub nonce: Option<Vec<u8>>,
    pub lifetime: Option<u64>,
    pub hop_limit: Option<u64>,
    pub params: Option<Vec<u8>>,
}

/// Data as fields.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct Data {
    pub name: Vec<Component>,
    pub content_type: Option<u64>,
    pub freshness: Option<u64>,
    pub final_block: Option<Component>,
    pub content: Option<Vec<u8>>,
    pub sig_type: Option<u64>,
}

impl Seen {
    /// Reads a frame; a frame that is no TLV is an error in words.
    ///
    /// # Errors
    /// What is wrong with the frame.
    pub fn read(frame: Vec<u8>) -> Result<Self, String> {
        let (typ, value, rest) = split(&frame).ok_or("a frame that is no TLV")?;
        if !rest.is_empty() {
            return Err(format!("{} octets behind the element of the frame", rest.len()));
        }
        if typ != t::LP_PACKET {
            return Ok(Self { net: Some(frame.clone()), frame, lp: LpFields::default() });
        }
        let (lp, net) = LpFields::read(value)?;
        Ok(Self { lp, net, frame })
    }

    /// The packet as an Interest, if it is one.
    #[must_use]
    pub fn interest(&self) -> Option<Interest> {
        Interest::read(self.net.as_deref()?)
    }

    /// The packet as Data, if it is one.
    #[must_use]
    pub fn data(&self) -> Option<Data> {
        Data::read(self.net.as_deref()?)
    }
}

impl LpFields {
    fn read(value: &[u8]) -> Result<(Self, Option<Vec<u8>>), String> {
        let mut lp = Self { wrapped: true, ..Self::default() };
        let (mut net, mut last) = (None, 0);
        let (mut index, mut count) = (None, None);
        let number = |v: &[u8], what: &str| read_nni(v).ok_or(format!("{what} is no number"));
        for (typ, v) in children(value).ok_or("an LpPacket whose fields do not fill it")? {
            if net.is_some() {
                return Err("a header field behind the Fragment".into());
            }
            // What a forwarder writes must be in order, whatever it accepts.
            if typ != t::FRAGMENT && (typ < last || (typ == last && typ != t::ACK)) {
                return Err(format!("LpPacket header {typ} out of order"));
            }
            last = typ;
            match typ {
                t::FRAGMENT => net = Some(v.to_vec()),
                t::SEQUENCE => lp.seq = Some(eight(v)?),
                t::FRAG_INDEX => index = Some(number(v, "FragIndex")?),
                t::FRAG_COUNT => count = Some(number(v, "FragCount")?),
                t::PIT_TOKEN => lp.token = Some(v.to_vec()),
                t::NACK => {
                    let reason = children(v).ok_or("a Nack that is no TLV")?;
                    lp.nack = Some(reason.first().and_then(|(_, r)| read_nni(r)).unwrap_or(0));
                }
                t::INCOMING_FACE => lp.in_face = Some(number(v, "IncomingFaceId")?),
                t::NEXT_HOP_FACE => lp.next_face = Some(number(v, "NextHopFaceId")?),
                t::CACHE_POLICY => lp.no_cache = true,
                t::CONGESTION_MARK => lp.mark = Some(number(v, "CongestionMark")?),
                t::ACK => lp.acks.push(eight(v)?),
                t::TX_SEQUENCE => lp.tx = Some(eight(v)?),
                t::NON_DISCOVERY => lp.no_discovery = true,
                t::PREFIX_ANNOUNCEMENT => lp.announce = Some(v.to_vec()),
                _ => lp.others.push((typ, v.to_vec())),
            }
        }
        if index.is_some() || count.is_some() {
            lp.frag = Some((index.unwrap_or(0), count.unwrap_or(1)));
        }
        Ok((lp, net))
    }
}

fn eight(v: &[u8]) -> Result<u64, String> {
    let octets: [u8; 8] = v.try_into().map_err(|_| format!("a sequence of {} octets", v.len()))?;
    Ok(u64::from_be_bytes(octets))
}

impl Interest {
    /// Reads an Interest TLV, leniently.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (t::INTEREST, value, []) = split(bytes)? else { return None };
        let mut out = Self::default();
        for (typ, v) in children(value)? {
            match typ {
                t::NAME => out.name = name::decode(v)?,
                t::CAN_BE_PREFIX => out.can_be_prefix = true,
                t::MUST_BE_FRESH => out.must_be_fresh = true,
                t::HINT => {
                    for (_, n) in children(v)? {
                        out.hint.push(name::decode(n)?);
                    }
                }
                t::NONCE => out.nonce = Some(v.to_vec()),
                t::LIFETIME => out.lifetime = Some(read_nni(v)?),
                t::HOP_LIMIT => out.hop_limit = Some(read_nni(v)?),
                t::PARAMS => out.params = Some(v.to_vec()),
                _ => {}
            }
        }
        Some(out)
    }
}

impl Data {
    /// Reads a Data TLV, leniently.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (t::DATA, value, []) = split(bytes)? else { return None };
        let mut out = Self::default();
        for (typ, v) in children(value)? {
            match typ {
                t::NAME => out.name = name::decode(v)?,
                t::META_INFO => out.read_meta(v)?,
                t::CONTENT => out.content = Some(v.to_vec()),
                t::SIG_INFO => out.sig_type = children(v)?.first().and_then(|(_, s)| read_nni(s)),
                _ => {}
            }
        }
        Some(out)
    }

    fn read_meta(&mut self, value: &[u8]) -> Option<()> {
        for (typ, v) in children(value)? {
            match typ {
                t::CONTENT_TYPE => self.content_type = Some(read_nni(v)?),
                t::FRESHNESS => self.freshness = Some(read_nni(v)?),
                t::FINAL_BLOCK => {
                    let (typ, c) = *children(v)?.first()?;
                    self.final_block = Some((typ, c.to_vec()));
                }
                _ => {}
            }
        }
        Some(())
    }
}
