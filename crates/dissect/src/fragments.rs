//! Fragments of NDNLPv2 put together.

use onym_wire::PACKET_LEN_MAX;
use onym_wire::lp::{FRAGMENTS_MAX, LpPacket};
use std::collections::BTreeMap;

/// Packets of which some fragments are here; the oldest gives way.
const PACKETS_MAX: usize = 256;

/// Between whom: interface, ends and direction, as text.
pub(crate) type Path = String;

#[derive(Debug)]
struct Parts {
    /// When the first one came: a number that grows.
    since: u64,
    count: u64,
    len: usize,
    parts: BTreeMap<u64, Vec<u8>>,
}

/// Packets of which some fragments are here, by path and number of the first fragment.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    packets: BTreeMap<(Path, u64), Parts>,
    turn: u64,
}

impl Fragments {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Takes a fragment; the network-layer packet when it is the last one that was missing.
    pub(crate) fn take(&mut self, path: &str, link: &LpPacket<'_>) -> Option<Vec<u8>> {
        let (sequence, fragment) = (link.sequence?, link.fragment?);
        if link.frag_index >= link.frag_count || link.frag_count > FRAGMENTS_MAX {
            return None;
        }
        let key = (path.to_owned(), sequence.wrapping_sub(link.frag_index));
        self.turn += 1;
        let since = self.turn;
        let new = || Parts { since, count: link.frag_count, len: 0, parts: BTreeMap::new() };
        let packet = self.packets.entry(key.clone()).or_insert_with(new);
        if packet.count != link.frag_count {
            *packet = new();
        }
        if packet.parts.insert(link.frag_index, fragment.to_vec()).is_none() {
            packet.len += fragment.len();
        }
        let (is_whole, is_long) =
            (packet.parts.len() as u64 == packet.count, packet.len > PACKET_LEN_MAX);
        if is_whole || is_long {
            let parts = self.packets.remove(&key)?.parts;
            return (!is_long).then(|| parts.into_values().flatten().collect());
        }
        if self.packets.len() > PACKETS_MAX {
            let oldest = self.packets.iter().min_by_key(|(_, p)| p.since).map(|(k, _)| k.clone());
            oldest.and_then(|key| self.packets.remove(&key));
        }
        None
    }
}
