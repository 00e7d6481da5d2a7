//! What the push thread does in a round.
//!
//! ```text
//! orders ─► what waits for shards ─► one batch of each shard ─► timers ─► batches out
//! ```
//!
//! While something waits for room to a shard, nothing is taken from any: applications wait, and
//! frames of neighbours that find no room are dropped by their shard (`push_backlog`).

use super::apps::Apps;
use super::settings::epoch_at;
use super::{Keeper, Link, PushOrder, Settings};
use crate::cross::{Batch, FromPeer, Leg, ToPeer};
use crate::shard::{Order, ShardPort};
use onym_engine::{Bell, Clock, FaceMap};
use onym_frame::Buf;
use onym_link::{Outgoing, Packet, Payload, Transmit};
use onym_pubsub::forwarder::LinkEntry;
use onym_pubsub::{Kept, Node, Output};
use onym_tables::{FaceId, Tick};
use onym_wire::push::Label;
use onym_wire::push::app::Message;
use onym_wire::types::PacketType;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long the thread sleeps at most.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// How often the clock is looked at for another epoch, where there are any.
const EPOCH_LOOK: Duration = Duration::from_millis(500);

/// The state of the push thread.
pub(crate) struct PushThread {
    clock: Clock,
    pub(super) now: Tick,
    /// When the thread looks at its timers at the latest.
    pub(super) wakes_at: Tick,
    pub(super) node: Node,
    pub(super) output: Output,
    pub(super) settings: Settings,
    pub(super) apps: Apps,
    /// The shard of each face.
    faces: FaceMap<usize>,
    pub(super) links: Vec<Link>,
    pub(super) bell: Arc<Bell>,
    /// By shard.
    pub(super) to: Vec<ToPeer>,
    pub(super) from: Vec<FromPeer>,
    /// Packets taken of each shard.
    pub(super) taken: Vec<u64>,
    /// By shard: until when it held faces back, [`Tick::NEVER`] while it does.
    held_until: Vec<Arc<AtomicU64>>,
    /// The same as it was seen last.
    held: Vec<Tick>,
    pub(crate) ports: Vec<ShardPort>,
    /// Number of the present epoch of keyed tags.
    epoch: Option<u8>,
    /// What found no room, with its shard.
    pub(super) late: VecDeque<(usize, Late)>,
    /// What outlives this node, where something does.
    keeper: Option<Keeper>,
    pub(super) running: bool,
}

/// What waits for room.
pub(super) enum Late {
    One(Transmit),
    /// A message for several faces.
    Fan(Arc<[FaceId]>, Buf),
}

/// Everything the push thread is given at start.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    pub(crate) node: Node,
    pub(crate) keeper: Option<Keeper>,
    /// Scopes of the life before.
    pub(crate) recalled: Vec<Kept>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) to: Vec<ToPeer>,
    pub(crate) from: Vec<FromPeer>,
    pub(crate) held_until: Vec<Arc<AtomicU64>>,
}

impl std::fmt::Debug for PushThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushThread").field("node", &self.node.label()).finish_non_exhaustive()
    }
}

impl PushThread {
    /// The push half, ready to run but for the ports of the shards.
    pub(crate) fn new(parts: Parts) -> Self {
        let mut thread = Self {
            now: parts.clock.now(),
            wakes_at: Tick(0),
            clock: parts.clock,
            epoch: parts.settings.node.routing.keyed.map(|keyed| keyed.epoch),
            node: parts.node,
            output: Output::default(),
            apps: Apps::default(),
            settings: parts.settings,
            faces: FaceMap::default(),
            links: Vec::new(),
            bell: parts.bell,
            to: parts.to,
            from: parts.from,
            taken: vec![0; parts.held_until.len()],
            held: vec![Tick(0); parts.held_until.len()],
            held_until: parts.held_until,
            ports: Vec::new(),
            late: VecDeque::new(),
            keeper: parts.keeper,
            running: true,
        };
        if !parts.recalled.is_empty() {
            thread.recall(parts.recalled);
        }
        thread
    }

    /// Scopes come back from the store.
    pub(super) fn recall(&mut self, kept: Vec<Kept>) {
        self.node.recall(self.now, kept, &mut self.output);
    }

    /// The store says which rendezvous nodes and topology managers serve.
    pub(super) fn roster(&mut self, nodes: BTreeSet<Label>) {
        self.node.roster(self.now, nodes);
    }

    /// Ends the loop after this round.
    pub(crate) fn stop(&mut self) {
        self.running = false;
    }

    /// How long the thread sleeps at most; it says so itself by [`PushThread::wakes_at`].
    pub(super) fn rest(&mut self, has_order: bool) -> Duration {
        // Of a shard that found somebody else at it.
        self.to.iter_mut().for_each(|to| _ = to.flush());
        let has_work =
            has_order || !self.running || self.is_late_due() || self.takes() && self.has_batches();
        let rest = if has_work { Duration::ZERO } else { self.sleep() };
        self.wakes_at = self.clock.now() + rest;
        rest
    }

    /// Whether the first of what waits for room has it now; later its shard rings.
    fn is_late_due(&mut self) -> bool {
        self.late.front().is_some_and(|(shard, _)| self.to[*shard].has_place())
    }

    fn has_batches(&self) -> bool {
        self.from.iter().any(FromPeer::waits)
    }

    /// Whether there is room for what more frames and messages bring.
    pub(super) fn takes(&self) -> bool {
        self.late.is_empty() && !self.node.dispatcher.is_backlogged()
    }

    fn sleep(&self) -> Duration {
        let longest = self.settings.epoch_s.map_or(SLEEP_MAX, |_| EPOCH_LOOK);
        if !self.late.is_empty() {
            // Timers wait, too: what they send would only wait behind.
            return longest;
        }
        let next = self.node.next_timeout();
        if next == Tick::NEVER { longest } else { next.since(self.clock.now()).min(longest) }
    }

    pub(super) fn round(&mut self, orders: impl Iterator<Item = PushOrder>) {
        // It looks at its timers now.
        (self.now, self.wakes_at) = (self.clock.now(), Tick(0));
        for order in orders {
            self.obey_order(order);
            self.carry_out();
        }
        self.late_again();
        if self.takes() {
            self.take_batches();
        }
        for (held, until) in self.held.iter_mut().zip(&self.held_until) {
            *held = Tick(until.load(Ordering::Relaxed)).min(self.now).max(*held);
        }
        if self.late.is_empty() && self.node.next_timeout() <= self.now {
            self.excuse_held();
            self.node.handle_timeout(self.now, &mut self.output);
            self.carry_out();
            if self.node.take_emptied() {
                onym_sys::memory::hand_back();
            }
        }
        self.turn_epoch();
        if let Some(keeper) = &self.keeper {
            keeper.keep(&mut self.node);
        }
        for to in &mut self.to {
            to.flush();
        }
    }

    /// Neighbours of which a shard took nothing were not silent meanwhile.
    fn excuse_held(&mut self) {
        for link in &self.links {
            if let Some(shard) = self.faces.get(&link.face) {
                self.node.link_state.not_listened(link.face, self.held[*shard]);
            }
        }
    }

    /// Starts the next epoch of keyed tags when it is time.
    fn turn_epoch(&mut self) {
        let Some(epoch_s) = self.settings.epoch_s else { return };
        let number = epoch_at(epoch_s);
        if self.epoch != Some(number) {
            self.epoch = Some(number);
            self.node.epoch_start(self.now, number, &mut self.output);
            self.share_forwarder();
            self.carry_out();
        }
    }

    /// A batch of each shard; what these make the parts of the node say to other nodes leaves
    /// together.
    fn take_batches(&mut self) {
        self.node.hold();
        for shard in 0..self.from.len() {
            if let Some(batch) = self.from[shard].next() {
                self.obey_all(shard, batch);
            }
        }
        self.node.release(self.now, &mut self.output);
        self.carry_out();
    }

    /// Does what a batch of `shard` asks for.
    pub(super) fn obey_all(&mut self, shard: usize, mut batch: Box<Batch>) {
        for (leg, packet) in batch.packets.drain(..) {
            debug_assert_eq!(leg, Leg::Push, "shards send nothing else here");
            self.packet(&packet);
            self.taken[shard] += 1;
        }
        self.from[shard].give_back(batch);
    }

    fn packet(&mut self, packet: &Packet) {
        if PacketType::of(&packet.bytes) == Some(PacketType::PushApp) {
            self.message(packet.face, &packet.bytes);
        } else {
            self.node.deliver_frame(self.now, packet.face, &packet.bytes, &mut self.output);
        }
        self.carry_out();
    }

    /// Sends what the parts of the node want sent.
    pub(super) fn carry_out(&mut self) {
        let mut frames = std::mem::take(&mut self.output.frames);
        for frame in frames.drain(..) {
            let end = u32::try_from(frame.octets.len()).expect("invariant: frames are short");
            for face in frame.faces {
                let bytes = Payload::Arena(0..end);
                let item = Transmit { face, what: Outgoing::PushFrame, bytes };
                self.transmit(&frame.octets, item);
            }
            self.output.give_back(frame.octets);
        }
        self.output.frames = frames;
        if std::mem::take(&mut self.node.is_border_changed) {
            self.share_forwarder();
        }
        if !self.output.events.is_empty() {
            self.tell_apps();
        }
    }

    /// Sends `item`, whose arena is `arena`, to the shard of its face, or keeps it until there is
    /// room.
    pub(super) fn transmit(&mut self, arena: &[u8], item: Transmit) {
        let Some(&shard) = self.faces.get(&item.face) else { return };
        if self.late.is_empty() && self.to[shard].has_place() {
            let sent = self.to[shard].transmit(arena, item);
            debug_assert!(sent.is_ok(), "there was a place");
            return;
        }
        let bytes = match item.bytes {
            own @ Payload::Arena(_) => Payload::Shared(Buf::copy_from(own.octets(arena))),
            shared @ Payload::Shared(_) => shared,
        };
        self.late.push_back((shard, Late::One(Transmit { bytes, ..item })));
    }

    /// Sends a message to several faces of `shard`, or keeps it until there is room.
    pub(super) fn fan(&mut self, shard: usize, faces: &Arc<[FaceId]>, message: &Message<'_>) {
        if self.late.is_empty() && self.to[shard].has_place() {
            return self.to[shard].fan(faces, |out| message.write(out));
        }
        let message = Buf::copy_from(&message.octets());
        self.late.push_back((shard, Late::Fan(Arc::clone(faces), message)));
    }

    fn late_again(&mut self) {
        while let Some((shard, _)) = self.late.front() {
            let shard = *shard;
            if !self.to[shard].has_place() {
                return;
            }
            match self.late.pop_front() {
                Some((_, Late::One(item))) => {
                    let sent = self.to[shard].transmit(&[], item);
                    debug_assert!(sent.is_ok(), "there was a place");
                }
                Some((_, Late::Fan(faces, message))) => {
                    self.to[shard].fan(&faces, |out| out.extend_from_slice(&message));
                }
                None => {}
            }
        }
    }

    /// The shard of a face.
    pub(super) fn shard_of(&self, face: FaceId) -> Option<usize> {
        self.faces.get(&face).copied()
    }

    /// A face is there, and `shard` does its I/O.
    pub(crate) fn face_add(&mut self, face: FaceId, shard: usize) {
        self.faces.insert(face, shard);
    }

    /// A face is gone, with its link. Its application leaves by a message that its shard sends
    /// behind the last one of its own (P-57).
    pub(crate) fn face_remove(&mut self, face: FaceId) {
        self.link_remove(face);
        self.faces.remove(&face);
    }

    /// A face is no link of the domain any more.
    pub(crate) fn link_remove(&mut self, face: FaceId) {
        let before = self.links.len();
        self.links.retain(|link| link.face != face);
        if self.links.len() != before {
            self.node.link_remove(self.now, face, &mut self.output);
            self.share_forwarder();
        }
    }

    /// The transport of a link ended; it comes again, or the face goes.
    pub(crate) fn face_down(&mut self, face: FaceId) {
        self.node.link_down(self.now, face, &mut self.output);
    }

    /// The number of a link of the configuration.
    pub(crate) fn link_number(&self, link: &crate::config::PushLink) -> u32 {
        self.settings.link_number(link)
    }

    /// Makes a face a link of the domain, unless it is one.
    pub(crate) fn link_add(&mut self, link: Link) {
        if self.links.iter().any(|l| l.face == link.face) {
            return;
        }
        // A neighbour that connects anew: its connection from before is no link any more.
        if let Some(before) = self.links.iter().find(|l| l.number == link.number) {
            self.link_remove(before.face);
        }
        let is_external = link.domain.is_some();
        let entry = LinkEntry { face: link.face, number: link.number, is_external };
        let added = match link.domain {
            Some(domain) => self.node.exit_add(self.now, entry, domain),
            None => self.node.link_add(self.now, entry, link.cost),
        };
        if let Err(error) = added {
            tracing::error!(face = link.face.0, %error, "no link of the push half");
            return;
        }
        if link.is_connected {
            self.node.link_state.link_connected(link.face);
        }
        self.links.push(link);
        self.share_forwarder();
    }

    /// Gives every shard the forwarder as it is now.
    fn share_forwarder(&self) {
        for port in &self.ports {
            port.tell(Order::PushForwarder(Box::new(self.node.forwarder.clone())));
        }
    }
}
