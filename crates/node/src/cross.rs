//! Packets that cross from one shard to another, in batches over bounded rings.
//!
//! Each ordered pair of shards has a ring of batches and a ring back for the emptied ones, so that
//! a crossing allocates nothing (`onym_engine::ring`). When the peer does not keep up, the batch
//! under way fills and further packets are dropped and counted (`crossing_full`); a shard that waits
//! for room is woken when the peer gives a batch back.

use onym_engine::Bell;
use onym_engine::ring::{Receiver, Sender, ring};
use onym_link::{Outbox, Packet, Payload, Transmit};
use onym_sys::epoll::Waker;
use onym_tables::FaceId;
use std::ops::Range;
use std::sync::Arc;

/// Batches under way in one direction.
const DEPTH: usize = 8;
/// Most packets, and most transmissions, of one batch.
const BATCH_MAX: usize = 2048;
/// Octets of a batch that are enough for once.
const BATCH_BYTES: usize = 1 << 20;
/// What one round of a shard sends a peer at most of its own accord.
const ROUND_MAX: usize = 1024;

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
    /// For the push thread: a frame for this node, or a message of an application.
    Push,
}

/// What crosses at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Packets for the forwarder of the peer.
    pub(crate) packets: Vec<(Leg, Packet)>,
    /// Packets for faces of the peer.
    pub(crate) out: Outbox,
    /// Messages for many faces of the peer at once, in between.
    pub(crate) fans: Vec<Fan>,
    /// Those messages, one behind the other, and where each ends.
    pub(crate) messages: Vec<u8>,
    pub(crate) ends: Vec<usize>,
    /// Octets of transmissions that are not in the arena but shared.
    shared: usize,
    /// Whether something in it may take the push half long.
    pub(crate) is_long: bool,
}

/// Messages of the push half for the same applications, one behind the other.
#[derive(Debug)]
pub(crate) struct Fan {
    /// Packets of the batch that come before it.
    pub(crate) after: usize,
    /// Who gets it.
    pub(crate) faces: Arc<[FaceId]>,
    /// Its octets in [`Batch::messages`], and their ends in [`Batch::ends`].
    pub(crate) octets: Range<usize>,
    pub(crate) ends: Range<usize>,
}

impl Batch {
    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.packets.clear();
        self.out.clear();
        self.fans.clear();
        self.messages.clear();
        self.ends.clear();
        self.shared = 0;
        self.is_long = false;
    }

    /// Whether the push thread had better hand it over.
    fn is_full(&self) -> bool {
        self.out.items.len() >= BATCH_MAX
            || self.ends.len() >= BATCH_MAX
            || self.out.arena.len() + self.shared + self.messages.len() >= BATCH_BYTES
    }
}

/// The sending end to one peer.
#[derive(Debug)]
pub(crate) struct ToPeer {
    ring: Sender<Box<Batch>, Waker>,
    current: Box<Batch>,
}

/// The receiving end from one peer.
#[derive(Debug)]
pub(crate) struct FromPeer {
    ring: Receiver<Box<Batch>, Waker>,
}

/// The two ends of one direction, between the threads of these bells.
pub(crate) fn direction(from: &Arc<Bell>, to: &Arc<Bell>) -> (ToPeer, FromPeer) {
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

    /// As [`ToPeer::packet`], for what may take the push half long.
    pub(crate) fn long_packet(&mut self, leg: Leg, packet: Packet) -> Result<(), CrossingFull> {
        self.packet(leg, packet)?;
        self.current.is_long = true;
        Ok(())
    }

    /// Hands the batch over now, unless something in it may take long.
    pub(crate) fn flush_short(&mut self) {
        if !self.current.is_long {
            self.flush();
        }
    }

    /// Sends `item`, whose arena is `arena`, with the next batch.
    pub(crate) fn transmit(&mut self, arena: &[u8], item: Transmit) -> Result<(), CrossingFull> {
        if self.current.out.items.len() >= BATCH_MAX {
            self.flush();
        }
        if self.current.out.items.len() >= BATCH_MAX {
            return Err(CrossingFull);
        }
        let Batch { out, shared, .. } = &mut *self.current;
        let bytes = match item.bytes {
            Payload::Shared(buf) => {
                *shared += buf.len();
                Payload::Shared(buf)
            }
            own @ Payload::Arena(_) => {
                let start = position(&out.arena);
                out.arena.extend_from_slice(own.octets(arena));
                Payload::Arena(start..position(&out.arena))
            }
        };
        out.items.push(Transmit { bytes, ..item });
        Ok(())
    }

    /// Whether one more transmission can be put in.
    pub(crate) fn has_place(&mut self) -> bool {
        if self.current.is_full() {
            self.flush();
        }
        !self.current.is_full()
    }

    /// Sends the message that `write` appends to all of `faces`; where there is a place.
    pub(crate) fn fan(&mut self, faces: &Arc<[FaceId]>, write: impl FnOnce(&mut Vec<u8>)) {
        let Batch { out, fans, messages, ends, .. } = &mut *self.current;
        let (after, start, first) = (out.items.len(), messages.len(), ends.len());
        write(messages);
        ends.push(messages.len());
        match fans.last_mut() {
            Some(fan) if fan.after == after && Arc::ptr_eq(&fan.faces, faces) => {
                (fan.octets.end, fan.ends.end) = (messages.len(), ends.len());
            }
            _ => fans.push(Fan {
                after,
                faces: Arc::clone(faces),
                octets: start..messages.len(),
                ends: first..ends.len(),
            }),
        }
    }

    /// Whether what one more round sends fits, even if the peer takes nothing meanwhile.
    pub(crate) fn has_room(&self) -> bool {
        let batch = &self.current;
        batch.packets.len().max(batch.out.items.len()) <= BATCH_MAX - ROUND_MAX
    }

    /// Whether nothing waits to be handed over.
    pub(crate) fn is_empty(&self) -> bool {
        let batch = &self.current;
        batch.packets.is_empty() && batch.out.items.is_empty() && batch.fans.is_empty()
    }

    /// What waits to be handed over, for a peer that is here itself; `emptied` is filled next.
    pub(crate) fn exchange(&mut self, emptied: Box<Batch>) -> Box<Batch> {
        std::mem::replace(&mut self.current, emptied)
    }

    /// Whether the peer has taken every batch that was handed over.
    pub(crate) fn is_taken(&self) -> bool {
        self.ring.is_taken()
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

impl FromPeer {
    /// Whether a batch waits.
    pub(crate) fn waits(&self) -> bool {
        self.ring.has_next()
    }

    /// The next batch; give it back with [`FromPeer::give_back`].
    pub(crate) fn next(&mut self) -> Option<Box<Batch>> {
        self.ring.take()
    }

    /// The next batch, unless something in it may take long.
    pub(crate) fn next_short(&mut self) -> Option<Box<Batch>> {
        let is_short = self.ring.peek().is_some_and(|batch| !batch.is_long);
        is_short.then(|| self.next()).flatten()
    }

    /// Returns the emptied batch to its sender.
    pub(crate) fn give_back(&mut self, mut batch: Box<Batch>) {
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
    fn messages_for_the_same_faces_are_one_fan_unless_something_comes_between() {
        let (mut to, mut from) = ends();
        let faces: [Arc<[FaceId]>; 2] = [[FaceId(300)].into(), [FaceId(301), FaceId(302)].into()];
        let say = |to: &mut ToPeer, which: usize, text: &str| {
            assert!(to.has_place());
            to.fan(&faces[which], |out| out.extend_from_slice(text.as_bytes()));
        };
        say(&mut to, 0, "a");
        say(&mut to, 0, "bc");
        say(&mut to, 1, "d");
        let what = Outgoing::Pull(PacketKind::Data, LpOut::default());
        let bytes = Payload::Arena(0..0);
        to.transmit(&[], Transmit { face: FaceId(300), what, bytes }).unwrap();
        say(&mut to, 1, "e");
        assert!(to.flush());
        let batch = from.next().unwrap();
        let fans: Vec<_> = batch
            .fans
            .iter()
            .map(|f| (f.after, f.faces.len(), &batch.messages[f.octets.clone()], f.ends.len()))
            .collect();
        assert_eq!(fans, [(0, 1, &b"abc"[..], 2), (0, 2, b"d", 1), (1, 2, b"e", 1)]);
        assert_eq!(batch.ends, [1, 3, 4, 5]);
        from.give_back(batch);
        assert!(to.is_empty());
    }

    #[test]
    fn a_batch_is_full_by_octets_whether_they_are_shared_or_not() {
        let (mut to, mut from) = ends();
        let long = vec![7; BATCH_BYTES / 4];
        let own = Payload::Arena(0..u32::try_from(long.len()).unwrap());
        for bytes in [own, Payload::Shared(Buf::copy_from(&long))] {
            // Not more than that comes to the shard at once, which then looks at its queues.
            for _ in 0..DEPTH * 4 {
                assert!(to.has_place());
                let what = Outgoing::Pull(PacketKind::Data, LpOut::default());
                let item = Transmit { face: FaceId(300), what, bytes: bytes.clone() };
                to.transmit(&long, item).unwrap();
            }
            assert!(to.flush());
            assert!(to.has_place());
            for _ in 0..DEPTH {
                let batch = from.next().unwrap();
                assert_eq!(batch.out.items.len(), 4);
                from.give_back(batch);
            }
            assert!(from.next().is_none());
        }
    }

    #[test]
    fn bytes_of_the_arena_cross_with_their_transmission() {
        let (mut to, mut from) = ends();
        for text in ["abc", "de"] {
            let bytes = Payload::Arena(0..u32::try_from(text.len()).unwrap());
            let item = Transmit {
                face: FaceId(300),
                what: Outgoing::Pull(PacketKind::Interest, LpOut::default()),
                bytes,
            };
            to.transmit(text.as_bytes(), item).unwrap();
        }
        assert!(to.flush());
        let batch = from.next().unwrap();
        let texts: Vec<_> = batch.out.items.iter().map(|i| batch.out.bytes(i)).collect();
        assert_eq!(texts, [&b"abc"[..], b"de"]);
    }
}
