//! Streams of TCP: segments in order, cut into packets or into messages of a WebSocket.

use crate::carrier::Segment;
use onym_wire::PACKET_LEN_MAX;
use onym_wire::tlv::frame_len;
use onym_wire::types::PacketType;
use std::collections::BTreeMap;

/// Octets of segments that wait for one before them, per stream.
const WAITING_MAX: usize = 256 << 10;
/// Segments that wait, per stream.
const SEGMENTS_MAX: usize = 256;
/// Octets of a message of a WebSocket.
const MESSAGE_MAX: usize = PACKET_LEN_MAX;
/// Octets of a request or an answer of HTTP before it.
const HANDSHAKE_MAX: usize = 16 << 10;

/// How a stream is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Packet behind packet.
    Packets,
    /// HTTP, then frames of a WebSocket.
    Websocket,
}

/// One direction of a TCP connection.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Number of the octet behind `octets`; `None` before the stream is followed.
    next: Option<u32>,
    /// In order, and not cut yet.
    octets: Vec<u8>,
    /// Segments that came early, by number.
    waiting: BTreeMap<u32, Vec<u8>>,
    /// Pieces of a message of a WebSocket.
    message: Vec<u8>,
}

impl Stream {
    /// Takes a segment; packets that are whole go to `out`. How often the stream was lost.
    pub(crate) fn take(
        &mut self,
        cut: Cut,
        segment: Segment,
        payload: &[u8],
        out: &mut Vec<Vec<u8>>,
    ) -> u64 {
        if segment.is_first {
            *self = Self { next: Some(segment.sequence), ..Self::default() };
        }
        if payload.is_empty() {
            return 0;
        }
        let mut lost = 0;
        let held: usize = self.waiting.values().map(Vec::len).sum();
        let ahead = self.next.map(|next| segment.sequence.wrapping_sub(next));
        match ahead {
            // Behind by less than half of the numbers: sent again, perhaps with more at its end.
            Some(ahead) if ahead >= 1 << 31 => {
                let known = ahead.wrapping_neg() as usize;
                if let Some(new) = payload.get(known..).filter(|new| !new.is_empty()) {
                    self.append(new);
                }
            }
            Some(0) => self.append(payload),
            Some(_) if held + payload.len() <= WAITING_MAX && self.waiting.len() < SEGMENTS_MAX => {
                self.waiting.entry(segment.sequence).or_insert_with(|| payload.to_vec());
            }
            // Not followed yet, or what is missing does not come: go on where a packet begins.
            was => {
                lost += u64::from(was.is_some());
                if !may_begin(cut, payload) {
                    *self = Self::default();
                    return lost;
                }
                *self = Self { next: Some(segment.sequence), ..Self::default() };
                self.append(payload);
            }
        }
        self.append_waiting();
        lost + self.cut(cut, out)
    }

    fn append(&mut self, new: &[u8]) {
        self.octets.extend_from_slice(new);
        // Numbers go round; a segment is shorter than that.
        #[allow(clippy::cast_possible_truncation)]
        let len = new.len() as u32;
        self.next = self.next.map(|next| next.wrapping_add(len));
    }

    /// Takes what waited for the octets that are here now.
    fn append_waiting(&mut self) {
        while let Some(next) = self.next {
            let is_due = |at: &u32| at.wrapping_sub(next) == 0 || at.wrapping_sub(next) >= 1 << 31;
            let Some(at) = self.waiting.keys().copied().find(is_due) else { return };
            let segment = self.waiting.remove(&at).unwrap_or_default();
            let known = next.wrapping_sub(at) as usize;
            if let Some(new) = segment.get(known..) {
                self.append(new);
            }
        }
    }

    /// Cuts off what is whole.
    fn cut(&mut self, cut: Cut, out: &mut Vec<Vec<u8>>) -> u64 {
        let mut read = 0;
        let mut lost = 0;
        loop {
            let rest = self.octets.get(read..).unwrap_or_default();
            let step = match cut {
                Cut::Packets => packet(rest, out),
                Cut::Websocket => message(rest, &mut self.message, out),
            };
            match step {
                Step::Taken(len) if len > 0 => read += len,
                Step::Taken(_) | Step::More => break,
                Step::Lost => {
                    *self = Self::default();
                    lost = 1;
                    break;
                }
            }
        }
        self.octets.drain(..read.min(self.octets.len()));
        lost
    }
}

enum Step {
    /// Octets that were taken.
    Taken(usize),
    /// More octets are needed.
    More,
    /// No packet begins here.
    Lost,
}

/// Whether a stream whose beginning was not seen can be followed from these octets on.
fn may_begin(cut: Cut, octets: &[u8]) -> bool {
    match cut {
        Cut::Packets => {
            PacketType::of(octets).is_some() && matches!(frame_len(octets), Ok(Some(_)))
        }
        Cut::Websocket => {
            is_http(octets) || (octets.first() == Some(&0x82) && head(octets).is_some())
        }
    }
}

fn is_http(octets: &[u8]) -> bool {
    octets.starts_with(b"GET ") || octets.starts_with(b"HTTP/1.")
}

fn packet(rest: &[u8], out: &mut Vec<Vec<u8>>) -> Step {
    match frame_len(rest) {
        Ok(Some(len)) => match rest.get(..len) {
            Some(packet) if len > 0 => {
                out.push(packet.to_vec());
                Step::Taken(len)
            }
            _ => Step::More,
        },
        Ok(None) => Step::More,
        Err(_) => Step::Lost,
    }
}

/// The head of a frame of a WebSocket: its octets, the octets of its payload, its mask.
fn head(octets: &[u8]) -> Option<(usize, usize, [u8; 4])> {
    let second = *octets.get(1)?;
    let (at, len) = match second & 127 {
        126 => (4, u16::from_be_bytes(*octets.get(2..)?.first_chunk()?).into()),
        127 => (10, u64::from_be_bytes(*octets.get(2..)?.first_chunk()?)),
        len => (2, u64::from(len)),
    };
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if second & 128 == 0 {
        return Some((at, len, [0; 4]));
    }
    Some((at + 4, len, *octets.get(at..)?.first_chunk()?))
}

fn message(rest: &[u8], message: &mut Vec<u8>, out: &mut Vec<Vec<u8>>) -> Step {
    if is_http(rest) {
        return match rest.windows(4).position(|end| end == b"\r\n\r\n") {
            Some(at) => Step::Taken(at + 4),
            None if rest.len() > HANDSHAKE_MAX => Step::Lost,
            None => Step::More,
        };
    }
    let Some(first) = rest.first() else { return Step::More };
    let Some((at, len, mask)) = head(rest) else { return Step::More };
    let is_known = matches!(first & 0x7F, 0 | 1 | 2 | 8 | 9 | 10);
    if !is_known || message.len().saturating_add(len) > MESSAGE_MAX {
        return Step::Lost;
    }
    let Some(payload) = rest.get(at..at + len) else { return Step::More };
    // Frames of control stand between those of a message.
    if first & 8 == 0 {
        if first & 15 != 0 {
            message.clear();
        }
        message.extend(payload.iter().zip(mask.iter().cycle()).map(|(octet, mask)| octet ^ mask));
        if first & 0x80 != 0 {
            out.push(std::mem::take(message));
        }
    }
    Step::Taken(at + len)
}
