//! What carries packets: the headers of links, IP, UDP and TCP.

use crate::record::{Carrier, Direction};
use std::net::SocketAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// EtherTypes: of NDN, and of ndnSIM's traces.
const NDN: [u16; 2] = [0x8624, 0x7777];
/// EtherTypes that tags of virtual LANs stand behind.
const TAGS: [u16; 2] = [0x8100, 0x88A8];
/// Most tags of a frame, and most extension headers of IPv6.
const HEADERS_MAX: usize = 8;

/// Who sent a frame, and to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ends {
    /// Stations of an Ethernet.
    Stations([u8; 6], [u8; 6]),
    /// Sockets.
    Sockets(SocketAddr, SocketAddr),
    /// The link does not say.
    Unknown,
}

impl Ends {
    /// Both as text.
    pub(crate) fn texts(self) -> Option<(String, String)> {
        let station = |o: [u8; 6]| {
            format!("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", o[0], o[1], o[2], o[3], o[4], o[5])
        };
        match self {
            Self::Stations(from, to) => Some((station(from), station(to))),
            Self::Sockets(from, to) => Some((from.to_string(), to.to_string())),
            Self::Unknown => None,
        }
    }
}

/// A piece of a TCP stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Number of its first octet.
    pub(crate) sequence: u32,
    /// Whether the stream begins: its first octet is the next one.
    pub(crate) is_first: bool,
}

/// What a frame of a link carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peeled<'a> {
    pub(crate) carrier: Carrier,
    pub(crate) ends: Ends,
    pub(crate) direction: Option<Direction>,
    pub(crate) segment: Option<Segment>,
    pub(crate) payload: &'a [u8],
}

/// Which ports carry packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports {
    /// Of UDP and TCP.
    pub packets: Vec<u16>,
    /// Of WebSockets without TLS.
    pub websocket: Vec<u16>,
}

impl Default for Ports {
    fn default() -> Self {
        Self { packets: vec![6363, 56363], websocket: vec![9696] }
    }
}

/// What a frame carries; `None` when it is nothing that carries packets.
pub(crate) fn peel<'a>(link_type: i32, octets: &'a [u8], ports: &Ports) -> Option<Peeled<'a>> {
    match link_type {
        // NULL: a family of addresses in the order of the machine.
        0 => ip(octets.get(4..)?, ports),
        1 => ethernet(octets, ports),
        9 => ppp(octets, ports),
        101 | 228 | 229 => ip(octets, ports),
        113 => {
            let way = if octets.get(..2)? == [0, 4] { Direction::Out } else { Direction::In };
            let proto = u16::from_be_bytes(*octets.get(14..)?.first_chunk()?);
            let inner = network(proto, octets.get(16..)?, Ends::Unknown, ports)?;
            Some(Peeled { direction: Some(way), ..inner })
        }
        // USER0: packets as they are.
        147 => Some(bare(Carrier::Bare, Ends::Unknown, octets)),
        276 => {
            let way = if *octets.get(10)? == 4 { Direction::Out } else { Direction::In };
            let proto = u16::from_be_bytes(*octets.first_chunk()?);
            let inner = network(proto, octets.get(20..)?, Ends::Unknown, ports)?;
            Some(Peeled { direction: Some(way), ..inner })
        }
        _ => None,
    }
}

const fn bare(carrier: Carrier, ends: Ends, payload: &[u8]) -> Peeled<'_> {
    Peeled { carrier, ends, direction: None, segment: None, payload }
}

fn ethernet<'a>(octets: &'a [u8], ports: &Ports) -> Option<Peeled<'a>> {
    let (to, rest) = octets.split_first_chunk::<6>()?;
    let (from, mut rest) = rest.split_first_chunk::<6>()?;
    for _ in 0..HEADERS_MAX {
        let (proto, payload) = rest.split_first_chunk::<2>()?;
        let proto = u16::from_be_bytes(*proto);
        if !TAGS.contains(&proto) {
            return network(proto, payload, Ends::Stations(*from, *to), ports);
        }
        rest = payload.get(2..)?;
    }
    None
}

fn ppp<'a>(octets: &'a [u8], ports: &Ports) -> Option<Peeled<'a>> {
    let octets = octets.strip_prefix(&[0xFF, 3]).unwrap_or(octets);
    let (proto, payload) = octets.split_first_chunk::<2>()?;
    match u16::from_be_bytes(*proto) {
        0x0021 | 0x0057 => ip(payload, ports),
        // ndnSIM puts two octets behind the protocol.
        0x0077 => {
            let is_packet = onym_wire::types::PacketType::of(payload).is_some();
            let packet = if is_packet { payload } else { payload.get(2..)? };
            Some(bare(Carrier::Ppp, Ends::Unknown, packet))
        }
        _ => None,
    }
}

fn network<'a>(proto: u16, payload: &'a [u8], ends: Ends, ports: &Ports) -> Option<Peeled<'a>> {
    match proto {
        0x0800 | 0x86DD => ip(payload, ports),
        proto if NDN.contains(&proto) => {
            // Short frames are padded.
            let len = onym_wire::tlv::frame_len(payload).ok().flatten();
            let packet = len.and_then(|len| payload.get(..len)).unwrap_or(payload);
            Some(bare(Carrier::Ethernet, ends, packet))
        }
        _ => None,
    }
}

fn ip<'a>(octets: &'a [u8], ports: &Ports) -> Option<Peeled<'a>> {
    match octets.first()? >> 4 {
        4 => ipv4(octets, ports),
        6 => ipv6(octets, ports),
        _ => None,
    }
}

fn ipv4<'a>(octets: &'a [u8], ports: &Ports) -> Option<Peeled<'a>> {
    let head = usize::from(octets.first()? & 15) * 4;
    let total = usize::from(u16::from_be_bytes(*octets.get(2..)?.first_chunk()?));
    // A later piece of a datagram has no ports; the first one is shown as far as it goes.
    let offset = u16::from_be_bytes(*octets.get(6..)?.first_chunk()?) & 0x1FFF;
    let address =
        |at: usize| Some(IpAddr::from(Ipv4Addr::from(*octets.get(at..)?.first_chunk::<4>()?)));
    let (proto, from, to) = (*octets.get(9)?, address(12)?, address(16)?);
    // Zero where the card was to fill it in.
    let end = if total == 0 { octets.len() } else { total.min(octets.len()) };
    let payload = octets.get(head.max(20)..end)?;
    if offset == 0 { transport(proto, from, to, payload, ports) } else { None }
}

fn ipv6<'a>(octets: &'a [u8], ports: &Ports) -> Option<Peeled<'a>> {
    let len = usize::from(u16::from_be_bytes(*octets.get(4..)?.first_chunk()?));
    let address =
        |at: usize| Some(IpAddr::from(Ipv6Addr::from(*octets.get(at..)?.first_chunk::<16>()?)));
    let (mut next, from, to) = (*octets.get(6)?, address(8)?, address(24)?);
    let rest = octets.get(40..)?;
    let mut rest = if len == 0 { rest } else { rest.get(..len).unwrap_or(rest) };
    for _ in 0..HEADERS_MAX {
        match next {
            // Hop by hop, routing, destination.
            0 | 43 | 60 => {
                let len = 8 + 8 * usize::from(*rest.get(1)?);
                next = *rest.first()?;
                rest = rest.get(len..)?;
            }
            _ => return transport(next, from, to, rest, ports),
        }
    }
    None
}

fn transport<'a>(
    proto: u8,
    from: IpAddr,
    to: IpAddr,
    octets: &'a [u8],
    ports: &Ports,
) -> Option<Peeled<'a>> {
    let port = |at: usize| Some(u16::from_be_bytes(*octets.get(at..)?.first_chunk()?));
    let both = [port(0)?, port(2)?];
    let ends = Ends::Sockets(SocketAddr::new(from, both[0]), SocketAddr::new(to, both[1]));
    let is_of = |known: &[u16]| both.iter().any(|port| known.contains(port));
    match proto {
        17 if is_of(&ports.packets) => {
            let end = usize::from(port(4)?).clamp(8, octets.len().max(8));
            Some(bare(Carrier::Udp, ends, octets.get(8..end)?))
        }
        6 if is_of(&ports.packets) || is_of(&ports.websocket) => {
            let carrier = if is_of(&ports.packets) { Carrier::Tcp } else { Carrier::Websocket };
            let sequence = u32::from_be_bytes(*octets.get(4..)?.first_chunk()?);
            let head = usize::from(*octets.get(12)? >> 4) * 4;
            let is_first = octets.get(13)? & 2 != 0;
            let segment = Segment { sequence: sequence.wrapping_add(is_first.into()), is_first };
            let payload = octets.get(head.max(20)..)?;
            Some(Peeled { segment: Some(segment), ..bare(carrier, ends, payload) })
        }
        _ => None,
    }
}
