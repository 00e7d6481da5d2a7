//! Doors beside the node: bulk TCP, and the local socket by which commands of the same user reach a
//! repository that runs.

mod bulk;
mod local;

pub use bulk::{Bulk, BulkRule};
pub use local::{Ask, InBucket, Said, ask, listen, over};

use onym_wire::data::Data;
use onym_wire::{tlv, types};
use std::io::{self, Read};

/// Octets of packets that are given to the store at once.
const GROUP: usize = 1 << 20;

/// Packets from a stream, one behind the other.
#[derive(Debug)]
struct Packets<R> {
    from: R,
    buffer: Vec<u8>,
    at: usize,
}

impl<R: Read> Packets<R> {
    fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), at: 0 }
    }

    /// Whole packets, at least one unless the stream ended; waits for the first one only.
    fn group(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut packets = Vec::new();
        let mut octets = 0;
        loop {
            while let Some(packet) = self.whole()? {
                octets += packet.len();
                packets.push(packet);
                if octets >= GROUP {
                    return Ok(packets);
                }
            }
            if !packets.is_empty() || !self.fill()? {
                return Ok(packets);
            }
        }
    }

    fn whole(&mut self) -> io::Result<Option<Vec<u8>>> {
        let rest = &self.buffer[self.at..];
        let bad = |e| io::Error::new(io::ErrorKind::InvalidData, format!("no packet: {e}"));
        let Some(len) = tlv::frame_len(rest).map_err(bad)? else { return Ok(None) };
        let Some(packet) = rest.get(..len) else { return Ok(None) };
        if u32::from(packet[0]) != types::DATA || Data::parse(packet).is_err() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no Data packet"));
        }
        self.at += len;
        Ok(Some(packet.to_vec()))
    }

    /// Reads more; `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let len = self.buffer.len();
        self.buffer.resize(len + (256 << 10), 0);
        let read = self.from.read(&mut self.buffer[len..]);
        self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_crypto::signer::write_digest_data;
    use onym_wire::{DataBuilder, Name};

    #[test]
    fn a_stream_is_cut_into_packets_and_another_type_ends_it() {
        let mut stream = Vec::new();
        for n in 0..500 {
            let name: Name = format!("/p/{n}").parse().unwrap();
            write_digest_data(&DataBuilder::new(name.as_ref(), &[7; 3000]), &mut stream);
        }
        let whole = stream.len();
        stream.extend_from_slice(&[5, 3, 1, 2, 3]);
        let mut packets = Packets::new(&stream[..]);
        let (mut count, mut octets) = (0, 0);
        let error = loop {
            match packets.group() {
                Ok(group) => {
                    count += group.len();
                    octets += group.iter().map(Vec::len).sum::<usize>();
                }
                Err(error) => break error,
            }
        };
        assert!(count >= 300 && octets <= whole, "{count} packets");
        assert_eq!(error.to_string(), "no Data packet");
    }
}
