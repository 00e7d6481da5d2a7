//! From frames of captures to records.

use crate::capture::Captured;
use crate::carrier::{Ends, Peeled, Ports, peel};
use crate::fragments::Fragments;
use crate::record::{Carrier, Direction, Record};
use crate::stream::{Cut, Stream};
use onym_wire::lp::LpPacket;
use onym_wire::tlv::Element;
use std::collections::BTreeMap;

/// Streams that are followed; the one silent for longest gives way.
const STREAMS_MAX: usize = 1024;

/// What was met and is no record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Frames that carry no packets: other protocols, other ports, links of unknown types.
    pub others: u64,
    /// Times that a stream could not be followed, for what is missing or is no packet.
    pub lost: u64,
}

/// Puts streams and fragments together, with bounds for both.
#[derive(Debug, Default)]
pub struct Dissector {
    ports: Ports,
    streams: BTreeMap<(u32, Ends), (u64, Stream)>,
    fragments: Fragments,
    turn: u64,
    passed: Passed,
}

impl Dissector {
    /// A dissector that looks at these ports.
    #[must_use]
    pub fn new(ports: Ports) -> Self {
        Self { ports, ..Self::default() }
    }

    /// What was met and is no record.
    #[must_use]
    pub const fn passed(&self) -> Passed {
        self.passed
    }

    /// Streams that are followed, and packets with some fragments.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> [usize; 2] {
        [self.streams.len(), self.fragments.len()]
    }

    /// The packets that `frame` completes.
    #[must_use]
    pub fn frame(&mut self, frame: &Captured) -> Vec<Record> {
        let Some(peeled) = peel(frame.link_type, &frame.octets, &self.ports) else {
            self.passed.others += 1;
            return Vec::new();
        };
        let mut packets = Vec::new();
        match peeled.segment {
            None => packets.push(peeled.payload.to_vec()),
            Some(segment) => {
                let cut = match peeled.carrier {
                    Carrier::Websocket => Cut::Websocket,
                    _ => Cut::Packets,
                };
                let stream = self.stream(frame.interface, peeled.ends);
                let lost = stream.take(cut, segment, peeled.payload, &mut packets);
                self.passed.lost += lost;
            }
        }
        let ends = peeled.ends.texts();
        packets
            .into_iter()
            .map(|packet| self.record(frame, &peeled, ends.clone(), packet))
            .collect()
    }

    fn stream(&mut self, interface: u32, ends: Ends) -> &mut Stream {
        let key = (interface, ends);
        self.turn += 1;
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&key) {
            let oldest = self.streams.iter().min_by_key(|(_, (used, _))| *used);
            let oldest = oldest.map(|(key, _)| *key);
            oldest.and_then(|key| self.streams.remove(&key));
        }
        let (used, stream) = self.streams.entry(key).or_default();
        *used = self.turn;
        stream
    }

    fn record(
        &mut self,
        frame: &Captured,
        peeled: &Peeled<'_>,
        ends: Option<(String, String)>,
        octets: Vec<u8>,
    ) -> Record {
        let (from, to) = ends.unzip();
        let direction = frame.direction.or(peeled.direction);
        let whole =
            LpPacket::parse(&octets).ok().filter(LpPacket::is_fragmented).and_then(|link| {
                let way = match direction {
                    Some(Direction::Out) => '>',
                    Some(Direction::In) => '<',
                    None => ' ',
                };
                let ends = [from.as_deref().unwrap_or_default(), to.as_deref().unwrap_or_default()];
                self.fragments
                    .take(&format!("{}{way}{}{way}{}", frame.interface, ends[0], ends[1]), &link)
            });
        Record {
            time_ns: frame.time_ns,
            interface: frame.interface_name.clone(),
            direction,
            carrier: peeled.carrier,
            from,
            to,
            comment: frame.comment.clone(),
            missing: frame.len.saturating_sub(frame.octets.len() as u64),
            whole,
            octets,
        }
    }
}

/// The elements in octets that no link carries, one record each; what follows the last whole one is
/// the last record.
#[must_use]
pub fn octets(mut rest: &[u8]) -> Vec<Record> {
    let mut fragments = Fragments::default();
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (element, tail) = match Element::split(rest) {
            Ok((element, tail)) => (element.wire, tail),
            Err(_) => (rest, &[][..]),
        };
        let link = LpPacket::parse(element).ok().filter(LpPacket::is_fragmented);
        let whole = link.and_then(|link| fragments.take("", &link));
        records.push(Record { octets: element.to_vec(), whole, ..Record::default() });
        rest = tail;
    }
    records
}
