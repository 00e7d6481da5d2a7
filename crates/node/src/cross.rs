//! What crosses from one thread to another, in batches over bounded rings.
//!
//! Each ordered pair of threads has a ring of batches and a ring back for the emptied ones, so that
//! a crossing allocates nothing (`onym_engine::ring`). Room in it is credit: who finds none waits,
//! and is woken when a batch comes back. Packets of the pull half (`Batch`) that cross on behalf of
//! others cannot wait and are dropped and counted (`crossing_full`).

use crate::bounds::{BATCH_BYTES, BATCH_MAX, DEPTH, ROUND_MAX};
use onym_engine::ring::{Receiver, Sender, ring};
use onym_engine::{Bell, Waker};
use onym_link::{Outbox, Packet, Payload, Transmit};
use std::sync::Arc;

/// What fills a batch.
pub(crate) trait Load: Default {
    /// Things in it, and their octets.
    fn load(&self) -> (usize, usize);

    /// Forgets everything and keeps the memory.
    fn clear(&mut self);

    fn is_empty(&self) -> bool {
        self.load().0 == 0
    }

    /// Whether it is enough for once.
    fn is_full(&self) -> bool {
        let (things, octets) = self.load();
        things >= BATCH_MAX || octets >= BATCH_BYTES
    }

    /// Whether it is far more than enough.
    fn is_over(&self) -> bool {
        let (things, octets) = self.load();
        things >= 2 * BATCH_MAX || octets >= 2 * BATCH_BYTES
    }
}

/// Where a packet stands in its way over the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leg {
    /// The receiving shard is the one that decides.
    Home,
    /// Data with a token of this shard: if the token is wrong, the shard of the name decides.
    Token,
    /// An Interest with CanBePrefix: the content store is asked, shard after shard.
    Probe,
    /// Data that pending discovery Interests see first; then it goes home, to this shard.
    Discovery(u8),
    /// Data that satisfied a discovery Interest and is now at home.
    Solicited,
}

/// Packets that cross at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Packets for the forwarder of the peer.
    pub(crate) packets: Vec<(Leg, Packet)>,
    /// Packets for faces of the peer.
    pub(crate) out: Outbox,
}

impl Load for Batch {
    fn load(&self) -> (usize, usize) {
        (self.packets.len().max(self.out.items.len()), self.out.arena.len())
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.out.clear();
    }
}

/// The sending end to one peer.
#[derive(Debug)]
pub(crate) struct ToPeer<B = Batch> {
    ring: Sender<Box<B>, Waker>,
    current: Box<B>,
}

/// The receiving end from one peer.
#[derive(Debug)]
pub(crate) struct FromPeer<B = Batch> {
    ring: Receiver<Box<B>, Waker>,
}

/// The two ends of one direction, between the threads of these bells.
pub(crate) fn direction<B: Load>(from: &Arc<Bell>, to: &Arc<Bell>) -> (ToPeer<B>, FromPeer<B>) {
    let (sender, receiver) = ring(DEPTH, from, to, Box::default);
    (ToPeer { ring: sender, current: Box::default() }, FromPeer { ring: receiver })
}

/// The peer does not keep up; the packet was dropped and is to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CrossingFull;

impl ToPeer {
    /// Sends `packet` with the next batch.
    pub(crate) fn packet(&mut self, leg: Leg, packet: Packet) -> Result<(), CrossingFull> {
        if self.current.packets.len() >= BATCH_MAX {
            self.flush();
        }
        if self.current.packets.len() >= BATCH_MAX {
            return Err(CrossingFull);
        }
        self.current.packets.push((leg, packet));
        Ok(())
    }

    /// Takes `item`, whose arena is `arena`, and sends it with the next batch.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        arena: &[u8],
        item: &mut Transmit,
    ) -> Result<(), CrossingFull> {
        if self.current.out.items.len() >= BATCH_MAX {
            self.flush();
        }
        if self.current.out.items.len() >= BATCH_MAX {
            return Err(CrossingFull);
        }
        let Batch { out, .. } = &mut *self.current;
        if let Payload::Arena(range) = &mut item.bytes {
            let start = position(&out.arena);
            out.arena.extend_from_slice(&arena[range.start as usize..range.end as usize]);
            *range = start..position(&out.arena);
        }
        out.items.push(item.take());
        Ok(())
    }

    /// Whether what one more round sends fits, even if the peer takes nothing meanwhile.
    pub(crate) fn has_room(&self) -> bool {
        let batch = &self.current;
        batch.packets.len().max(batch.out.items.len()) <= BATCH_MAX - ROUND_MAX
    }
}

impl<B: Load> ToPeer<B> {
    /// What is filled now; it takes more than it should where the sender cannot wait at once.
    pub(crate) fn batch(&mut self) -> &mut B {
        &mut self.current
    }

    /// Whether more may be put in.
    pub(crate) fn has_place(&mut self) -> bool {
        if self.current.is_full() {
            self.flush();
        }
        !self.current.is_full()
    }

    /// Whether far more was put in than should be: there is no room for long.
    pub(crate) fn is_over(&self) -> bool {
        self.current.is_over()
    }

    /// Whether nothing waits to be handed over.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }

    /// Whether what found no room would find it now.
    pub(crate) fn is_due(&self) -> bool {
        !self.is_empty() && self.ring.has_room()
    }

    /// Hands the batch over, if there is one and the peer keeps up; whether nothing is left behind.
    /// If something is, the bell of this thread is rung when there is room.
    pub(crate) fn flush(&mut self) -> bool {
        self.is_empty() || self.ring.send(&mut self.current)
    }
}

impl<B: Load> FromPeer<B> {
    /// Whether a batch waits.
    pub(crate) fn waits(&self) -> bool {
        self.ring.has_next()
    }

    /// The next batch; give it back with [`FromPeer::give_back`].
    pub(crate) fn next(&mut self) -> Option<Box<B>> {
        self.ring.take()
    }

    /// Returns the emptied batch to its sender.
    pub(crate) fn give_back(&mut self, mut batch: Box<B>) {
        batch.clear();
        self.ring.give_back(batch);
    }
}

fn position(arena: &[u8]) -> u32 {
    u32::try_from(arena.len()).expect("invariant: a batch is bounded far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_frame::Buf;
    use onym_link::{LpIn, LpOut, Outgoing, PacketKind};
    use onym_tables::FaceId;

    fn ends() -> (ToPeer, FromPeer) {
        let bells = [(); 2].map(|()| Bell::new().unwrap());
        direction(&bells[0], &bells[1])
    }

    fn packet(n: u8) -> Packet {
        Packet { face: FaceId(256), bytes: Buf::copy_from(&[n]), lp: LpIn::default() }
    }

    #[test]
    fn a_peer_that_does_not_keep_up_costs_counted_packets_and_order_stays() {
        let (mut to, mut from) = ends();
        let mut dropped = 0;
        for n in 0..20_000_u32 {
            if to.packet(Leg::Home, packet(n.to_le_bytes()[0])).is_err() {
                dropped += 1;
            }
            to.flush();
        }
        assert!(dropped > 0);
        let mut got = 0;
        loop {
            let Some(batch) = from.next() else {
                if to.flush() && !from.waits() {
                    break;
                }
                continue;
            };
            got += batch.packets.len();
            from.give_back(batch);
        }
        assert_eq!(got + dropped, 20_000);
    }

    #[test]
    fn bytes_of_the_arena_cross_with_their_transmission() {
        let (mut to, mut from) = ends();
        for text in ["abc", "de"] {
            let bytes = Payload::Arena(0..u32::try_from(text.len()).unwrap());
            let mut item = Transmit {
                face: FaceId(300),
                what: Outgoing::Pull(PacketKind::Interest, LpOut::default()),
                bytes,
            };
            to.transmit(text.as_bytes(), &mut item).unwrap();
        }
        assert!(to.flush());
        let batch = from.next().unwrap();
        let texts: Vec<_> = batch.out.items.iter().map(|i| batch.out.bytes(i)).collect();
        assert_eq!(texts, [&b"abc"[..], b"de"]);
    }
}
