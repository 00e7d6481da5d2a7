//! Room for faces: how many there may be, who of the strangers gives way, and who leads where.

use super::Control;
use super::record::{NewFace, Record};
use onym_face::Peer;
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::Persistency;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// A stranger's face gives way when there is no room and it was idle for so long.
const GIVES_WAY_AFTER: Duration = Duration::from_secs(30);

/// How often faces that give way are looked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A stranger's face gives way when there is no room and nothing was answered by or through it for so
/// long after it was made.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Faces that a block may have whatever its share.
const SHARE_MIN: usize = 8;

/// Strangers that are likely one: a network of 24 bits of IPv4, of 56 bits of IPv6, or all stations
/// of an Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block(u128);

impl Block {
    /// Of whom there is no address: no network has this number.
    const OTHERS: Self = Self(1);

    pub(super) fn of_peer(peer: Peer) -> Self {
        match peer {
            Peer::Udp(address) => Self::of_ip(address.ip()),
            Peer::Ether(_) => Self::OTHERS,
        }
    }

    /// The block that the other end of a new face is in.
    pub(super) fn of(new: &NewFace) -> Self {
        let ip = new.io.as_ref().and_then(|io| super::connect::ip_of(io.remote_uri()));
        ip.map_or(Self::OTHERS, Self::of_ip)
    }

    fn of_ip(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            // As an IPv6 address would write it, so that no two are one.
            IpAddr::V4(ip) => u128::from(ip.to_bits() >> 8) | 0xffff << 32,
            IpAddr::V6(ip) => ip.to_bits() >> 72 << 72,
        })
    }
}

/// What is counted of faces there are.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Faces that other machines made by sending something.
    pub(crate) strangers: usize,
    /// The same by block.
    blocks: HashMap<Block, usize>,
    /// Faces refused because of a limit.
    pub(crate) refused: u64,
    /// When faces that give way are looked for again.
    look_at: Tick,
}

impl Room {
    fn leave(&mut self, block: Block) {
        self.strangers -= 1;
        if let Some(count) = self.blocks.get_mut(&block) {
            *count -= 1;
            if *count == 0 {
                self.blocks.remove(&block);
            }
        }
    }
}

impl Control {
    /// How many faces strangers may have: an eighth is kept for applications and for faces that
    /// are asked for.
    fn strangers_max(&self) -> usize {
        let all = self.config.faces.count_max as usize;
        all - (all / 8).max(1).min(all - 1)
    }

    /// How many faces one block of strangers may have: any number while a quarter of their room is
    /// free, then its share.
    fn share(&self) -> usize {
        let max = self.strangers_max();
        if self.room.strangers < max - max / 4 {
            return max;
        }
        // One more than there are: room for who comes next.
        (max / (self.room.blocks.len() + 1)).max(SHARE_MIN)
    }

    /// Whether one more face may be made, for a stranger of the block `of` or for somebody else; the
    /// caller makes it then.
    ///
    /// # Errors
    /// A sentence with the limit.
    pub(crate) fn room_for_face(&mut self, of: Option<Block>) -> Result<(), String> {
        if self.has_room(of) {
            return Ok(());
        }
        self.make_room(of.is_some());
        if self.has_room(of) {
            return Ok(());
        }
        self.room.refused += 1;
        let (faces, strangers) = (self.faces.len(), self.room.strangers);
        Err(format!(
            "there are {faces} faces, {strangers} of them of strangers in {} blocks of addresses, \
             and {} are allowed (faces.count_max)",
            self.room.blocks.len(),
            self.config.faces.count_max
        ))
    }

    fn has_room(&self, of: Option<Block>) -> bool {
        let is_full = self.faces.len() >= self.config.faces.count_max as usize;
        let Some(block) = of else { return !is_full };
        let own = self.room.blocks.get(&block).copied().unwrap_or(0);
        !is_full && self.room.strangers < self.strangers_max() && own < self.share()
    }

    /// Closes faces of strangers, looking at most once a second: those that were idle for long; for
    /// another stranger also those that never had an answer, and if that is not enough, those that
    /// were used longest ago of blocks with more than their share.
    fn make_room(&mut self, for_stranger: bool) {
        let now = self.clock.now();
        if now < self.room.look_at {
            return;
        }
        self.room.look_at = now + LOOK_INTERVAL;
        self.note_activity(now);
        let packets = self.packet_counters();
        let is_useless = |r: &&Record| {
            let c = packets.get(&r.id).copied().unwrap_or_default();
            let is_answered = c.out_data + c.in_data + c.out_interests > 0;
            now.since(r.active) >= GIVES_WAY_AFTER
                || for_stranger && !is_answered && now.since(r.made) >= ANSWERED_WITHIN
        };
        let gives_way = |r: &&Record| r.is_stranger() && r.persistency == Persistency::OnDemand;
        let useless = self.faces.values().filter(gives_way).filter(is_useless);
        for id in useless.map(|r| r.id).collect::<Vec<FaceId>>() {
            self.face_remove(id, "idle or never answered, and there is no room");
        }
        if for_stranger && self.room.strangers >= self.strangers_max() {
            self.shrink_blocks();
        }
    }

    /// Takes from each block what it has beyond its share, used longest ago first.
    fn shrink_blocks(&mut self) {
        let share = self.share();
        let mut over: HashMap<Block, Vec<(Tick, FaceId)>> = HashMap::new();
        for record in self.faces.values().filter(|r| r.is_stranger()) {
            let count = self.room.blocks.get(&record.block).copied().unwrap_or(0);
            if count > share && record.persistency == Persistency::OnDemand {
                over.entry(record.block).or_default().push((record.active, record.id));
            }
        }
        for mut faces in over.into_values() {
            faces.sort_unstable();
            let excess = faces.len().saturating_sub(share);
            for (_, id) in faces.drain(..excess) {
                self.face_remove(id, "its addresses have more than their share of the room");
            }
        }
    }

    /// Enters a new face into the lists.
    pub(super) fn enter(&mut self, record: Record) {
        if record.is_stranger() {
            self.room.strangers += 1;
            *self.room.blocks.entry(record.block).or_default() += 1;
        }
        self.per_shard[record.owner] += 1;
        // The first one that leads somewhere is the one that is meant.
        self.by_remote.entry(record.remote.clone()).or_insert(record.id);
        self.faces.insert(record.id, record);
    }

    /// Takes a face out of the lists.
    pub(super) fn leave(&mut self, id: FaceId) -> Option<Record> {
        let record = self.faces.remove(&id)?;
        if record.is_stranger() {
            self.room.leave(record.block);
        }
        self.per_shard[record.owner] -= 1;
        if self.by_remote.get(&record.remote) == Some(&id) {
            self.by_remote.remove(&record.remote);
            // Faces on several interfaces may lead to the same address.
            if record.is_datagram()
                && let Some(other) = self.faces.values().find(|r| r.remote == record.remote)
            {
                self.by_remote.insert(record.remote.clone(), other.id);
            }
        }
        Some(record)
    }

    /// The face that leads to `remote`; the oldest when there are several.
    pub(crate) fn face_by_remote(&self, remote: &str) -> Option<FaceId> {
        self.by_remote.get(remote).copied()
    }

    pub(super) fn shard_with_fewest_faces(&self) -> usize {
        let each = self.per_shard.iter().enumerate();
        each.min_by_key(|(_, count)| **count).map_or(0, |(shard, _)| shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_block() {
        let block = |ip: &str| Block::of_ip(ip.parse().unwrap());
        assert_eq!(block("192.0.2.1"), block("192.0.2.200"));
        assert_eq!(block("192.0.2.1"), block("::ffff:192.0.2.9"));
        assert_ne!(block("192.0.2.1"), block("192.0.3.1"));
        assert_eq!(block("2001:db8:0:1::1"), block("2001:db8:0:ff:9::2"));
        assert_ne!(block("2001:db8:0:100::1"), block("2001:db8::1"));
        assert_ne!(block("::1"), Block::OTHERS);
    }
}
