//! Files of captures, pcap and pcapng, fed in pieces of any length.

use crate::record::Direction;
use pcap_parser::nom::Err as Ended;
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{Block, InterfaceDescriptionBlock, OptionCode, PcapHeader};
use thiserror::Error;

/// Longest block that is read, in octets.
const BLOCK_LEN_MAX: usize = 16 << 20;
/// Most interfaces of a section.
const INTERFACES_MAX: usize = 65_536;
/// Type of a section header, the same in both orders of octets.
const SECTION: u32 = 0x0A0D_0D0A;

/// Why a capture cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// It begins like neither format.
    #[error("this is neither pcap nor pcapng")]
    Unknown,
    /// A block is not as the format wants it.
    #[error("the block at octet {0} is damaged")]
    Damaged(u64),
    /// A block is longer than any capture has them.
    #[error("the block at octet {0} says that it is longer than 16 MiB")]
    TooLong(u64),
    /// More interfaces than anybody has.
    #[error("the capture declares more than 65,536 interfaces")]
    Interfaces,
    /// It ends within a block.
    #[error("the capture ends in the middle of the block at octet {0}")]
    Cut(u64),
}

/// A frame of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// When, in nanoseconds of Unix time.
    pub time_ns: Option<u64>,
    /// Number of the interface in its section.
    pub interface: u32,
    /// Name of the interface.
    pub interface_name: Option<String>,
    /// What a frame begins with: a number of the registry of link types.
    pub link_type: i32,
    /// Which way it went, where the capture says so.
    pub direction: Option<Direction>,
    /// What the capture says about it.
    pub comment: Option<String>,
    /// Octets that are here.
    pub octets: Vec<u8>,
    /// Octets that it had.
    pub len: u64,
}

#[derive(Debug, Clone)]
struct Interface {
    name: Option<String>,
    link_type: i32,
    /// Units of its times in a second; `None` when nobody could count them.
    resolution: Option<u64>,
    offset_s: i64,
}

#[derive(Debug, Clone)]
enum Form {
    Unknown,
    Pcap { header: PcapHeader },
    Pcapng { is_big: bool, interfaces: Vec<Interface> },
}

/// Reads a capture.
///
/// Octets go in by [`Reader::feed`], frames come out of [`Reader::next_frame`].
#[derive(Debug, Clone)]
pub struct Reader {
    form: Form,
    octets: Vec<u8>,
    /// Octets of `octets` that were read.
    read: usize,
    /// Octets before `octets`.
    before: u64,
}

impl Default for Reader {
    fn default() -> Self {
        Self { form: Form::Unknown, octets: Vec::new(), read: 0, before: 0 }
    }
}

/// Whether octets begin like a capture, as far as four of them tell.
#[must_use]
pub fn is_capture(start: &[u8]) -> bool {
    let Some(magic) = start.first_chunk::<4>().map(|m| u32::from_be_bytes(*m)) else {
        return false;
    };
    magic == SECTION
        || matches!(magic, 0xA1B2_C3D4 | 0xD4C3_B2A1 | 0xA1B2_3C4D | 0x4D3C_B2A1 | 0x34CD_B2A1)
}

impl Reader {
    /// Takes more octets of the capture.
    pub fn feed(&mut self, octets: &[u8]) {
        if self.read > 0 {
            self.octets.drain(..self.read);
            self.before += self.read as u64;
            self.read = 0;
        }
        self.octets.extend_from_slice(octets);
    }

    /// The next frame; `None` when more octets are needed.
    ///
    /// # Errors
    /// [`CaptureError`]: what follows cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<Captured>, CaptureError> {
        loop {
            let rest = self.octets.get(self.read..).unwrap_or_default();
            let at = self.before + self.read as u64;
            let Some(len) = block_len(&self.form, rest) else { return Ok(None) };
            if len > BLOCK_LEN_MAX {
                return Err(CaptureError::TooLong(at));
            }
            let Some(block) = rest.get(..len) else { return Ok(None) };
            let frame = take(&mut self.form, block, at)?;
            self.read += len;
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }

    /// Checks that the capture ends where a block ends.
    ///
    /// # Errors
    /// [`CaptureError::Cut`], or [`CaptureError::Unknown`] for what is too short to be a capture.
    pub fn end(&self) -> Result<(), CaptureError> {
        match (&self.form, self.octets.len() == self.read) {
            (Form::Unknown, _) => Err(CaptureError::Unknown),
            (_, true) => Ok(()),
            (_, false) => Err(CaptureError::Cut(self.before + self.read as u64)),
        }
    }
}

/// Length of the block that `rest` begins; `None` when its head is not here yet. What is no block
/// has the length of its head, so that its reader refuses it.
fn block_len(form: &Form, rest: &[u8]) -> Option<usize> {
    let word = |at: usize, is_big: bool| {
        let octets = rest.get(at..)?.first_chunk::<4>()?;
        let n = if is_big { u32::from_be_bytes(*octets) } else { u32::from_le_bytes(*octets) };
        Some(n as usize)
    };
    let is_section = rest.first_chunk::<4>().is_some_and(|t| u32::from_be_bytes(*t) == SECTION);
    match form {
        // The magic of a section tells the order of the octets.
        Form::Unknown | Form::Pcapng { .. } if is_section => {
            let is_big = word(8, false)? != 0x1A2B_3C4D;
            Some(word(4, is_big)?.max(12))
        }
        Form::Unknown => rest.get(..24).map(<[u8]>::len),
        Form::Pcapng { is_big, .. } => Some(word(4, *is_big)?.max(12)),
        Form::Pcap { header } => {
            let head = if header.is_modified_format() { 24 } else { 16 };
            rest.get(..head)?;
            Some(word(8, header.is_bigendian())?.saturating_add(head))
        }
    }
}

fn take(form: &mut Form, block: &[u8], at: u64) -> Result<Option<Captured>, CaptureError> {
    let damaged = CaptureError::Damaged(at);
    match form {
        Form::Unknown if !is_capture(block) => Err(CaptureError::Unknown),
        Form::Unknown if !block.starts_with(&SECTION.to_be_bytes()) => {
            let (_, header) = pcap_parser::parse_pcap_header(block).map_err(|_| damaged)?;
            *form = Form::Pcap { header };
            Ok(None)
        }
        Form::Unknown => {
            *form = Form::Pcapng { is_big: false, interfaces: Vec::new() };
            take(form, block, at)
        }
        Form::Pcap { header } => old_frame(header, block).map(Some).ok_or(damaged),
        Form::Pcapng { is_big, interfaces } => {
            let parse =
                if *is_big { pcap_parser::parse_block_be } else { pcap_parser::parse_block_le };
            match parse(block) {
                Ok((_, Block::SectionHeader(section))) => {
                    *is_big = section.big_endian();
                    interfaces.clear();
                    Ok(None)
                }
                Ok((_, Block::InterfaceDescription(new))) if interfaces.len() < INTERFACES_MAX => {
                    interfaces.push(interface(&new));
                    Ok(None)
                }
                Ok((_, Block::InterfaceDescription(_))) => Err(CaptureError::Interfaces),
                Ok((_, packet)) => new_frame(interfaces, &packet).map_err(|()| damaged),
                Err(Ended::Incomplete(_) | Ended::Error(_) | Ended::Failure(_)) => Err(damaged),
            }
        }
    }
}

fn old_frame(header: &PcapHeader, block: &[u8]) -> Option<Captured> {
    let parsed = if header.is_modified_format() {
        pcap_parser::parse_pcap_frame_modified(block)
    } else if header.is_bigendian() {
        pcap_parser::parse_pcap_frame_be(block)
    } else {
        pcap_parser::parse_pcap_frame(block)
    };
    let (_, frame) = parsed.ok()?;
    let unit = if header.is_nanosecond_precision() { 1 } else { 1000 };
    let time_ns = u64::from(frame.ts_sec) * 1_000_000_000 + u64::from(frame.ts_usec) * unit;
    Some(Captured {
        time_ns: Some(time_ns),
        // Above are bits about the checksum of a frame.
        link_type: header.network.0 & 0x0FFF_FFFF,
        octets: frame.data.to_vec(),
        len: frame.origlen.into(),
        ..Captured::default()
    })
}

fn interface(block: &InterfaceDescriptionBlock<'_>) -> Interface {
    Interface {
        name: block.if_name().and_then(Result::ok).map(str::to_owned),
        link_type: block.linktype.0,
        resolution: block.ts_resolution().filter(|r| *r > 0),
        offset_s: block.if_tsoffset,
    }
}

fn new_frame(interfaces: &[Interface], block: &Block<'_>) -> Result<Option<Captured>, ()> {
    match block {
        Block::EnhancedPacket(packet) => {
            let interface = interfaces.get(packet.if_id as usize).ok_or(())?;
            let option = |code: OptionCode| packet.options.iter().find(|o| o.code == code);
            let comment = option(OptionCode::Comment).and_then(|o| o.as_bytes().ok());
            // epb_flags: the low two bits are the direction.
            let flags = option(OptionCode(2)).and_then(|o| o.as_bytes().ok()).unwrap_or_default();
            let low = if packet.big_endian() { flags.last() } else { flags.first() };
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            Ok(Some(Captured {
                time_ns: time_ns(interface, units),
                interface: packet.if_id,
                interface_name: interface.name.clone(),
                link_type: interface.link_type,
                direction: match low.map(|flags| flags & 3) {
                    Some(1) => Some(Direction::In),
                    Some(2) => Some(Direction::Out),
                    _ => None,
                },
                comment: comment.map(|text| String::from_utf8_lossy(text).into_owned()),
                octets: packet.packet_data().to_vec(),
                len: packet.origlen.into(),
            }))
        }
        Block::SimplePacket(packet) => {
            let interface = interfaces.first().ok_or(())?;
            Ok(Some(Captured {
                interface_name: interface.name.clone(),
                link_type: interface.link_type,
                octets: packet.packet_data().to_vec(),
                len: packet.origlen.into(),
                ..Captured::default()
            }))
        }
        // Names of hosts, statistics, secrets and what others put there.
        _ => Ok(None),
    }
}

fn time_ns(interface: &Interface, units: u64) -> Option<u64> {
    let resolution = u128::from(interface.resolution?);
    let ns = u128::from(units).checked_mul(1_000_000_000)? / resolution;
    let offset = i128::from(interface.offset_s) * 1_000_000_000;
    u64::try_from(i128::try_from(ns).ok()?.checked_add(offset)?).ok()
}
