//! The push thread: an engine without faces that drives the control plane of the push half.
//!
//! ```text
//! orders ─► what waits for room ─► one batch of each shard ─► timers ─► batches out
//! ```

use super::lane::{Down, PushLanes};
use super::settings::epoch_at;
use super::{Keeper, Link, PushOrder, Settings};
use onym_engine::{Clock, Driver, Engine, FaceEvent, FaceMap, Idle, Io, Policy, Slot, Turn};
use onym_link::Packet;
use onym_pubsub::forwarder::LinkEntry;
use onym_pubsub::{AppId, ControlPlane, Kept, Output};
use onym_tables::{FaceId, Tick};
use onym_wire::push::Label;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often the clock is looked at for another epoch, where there are any.
const EPOCH_LOOK: Duration = Duration::from_millis(500);

/// Numbers of the engine of the push thread, which has no faces.
pub(crate) const POLICY: Policy = Policy {
    round_frames: 0,
    flush_frames: 0,
    flush_octets: usize::MAX,
    chunks: 0,
    is_rung_to_receive: true,
};

/// The push thread with its loop.
pub(crate) type PushEngine = Engine<PushThread>;

/// What the engine of the push thread drives.
pub(crate) struct PushThread {
    pub(super) now: Tick,
    pub(super) plane: ControlPlane,
    pub(super) output: Output,
    pub(super) settings: Settings,
    /// Applications with their faces and what they call themselves.
    pub(super) apps: BTreeMap<AppId, (FaceId, String)>,
    /// The shard of each face.
    faces: FaceMap<usize>,
    pub(super) links: Vec<Link>,
    /// By shard.
    pub(super) lanes: Vec<PushLanes>,
    /// Not every shard has a change in its lane, for want of room there: what stands behind it waits.
    pub(super) is_late: bool,
    pub(super) late: VecDeque<(usize, Down, usize)>,
    /// Applications that are not read until all shards settled what these published before a
    /// change; so many settlements are still to come.
    pub(super) settling: BTreeMap<AppId, usize>,
    /// Those of which none is.
    pub(super) settled: Vec<AppId>,
    /// How far each shard was told that the thread is.
    pub(super) done: Vec<u64>,
    /// By shard: until when it held faces back, [`Tick::NEVER`] while it does.
    held_until: Vec<Arc<AtomicU64>>,
    /// The same as it was seen last.
    held: Vec<Tick>,
    /// Number of the present epoch of keyed tags, and when the clock is looked at for the next.
    epoch: Option<u8>,
    epoch_look: Tick,
    /// What outlives this node, where something does.
    keeper: Option<Keeper>,
}

/// Everything the push thread is given at start.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    pub(crate) plane: ControlPlane,
    pub(crate) keeper: Option<Keeper>,
    /// Scopes of the life before.
    pub(crate) recalled: Vec<Kept>,
    pub(crate) lanes: Vec<PushLanes>,
    pub(crate) held_until: Vec<Arc<AtomicU64>>,
}

impl std::fmt::Debug for PushThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushThread").field("node", &self.plane.label()).finish_non_exhaustive()
    }
}

impl Driver for PushThread {
    type Face = ();
    type Order = PushOrder;

    fn receive(&mut self, _: &mut Io<()>, _: Slot, _: Packet) -> Option<&'static str> {
        None
    }

    fn poll_timeout(&self) -> Tick {
        // While something waits for room, timers do: what they say would only wait behind.
        let next = if self.is_late { Tick::NEVER } else { self.plane.next_timeout() };
        next.min(self.epoch_look)
    }

    fn handle_timeout(&mut self, io: &mut Io<()>) {
        self.now = io.now;
        if !self.is_late && self.plane.next_timeout() <= self.now {
            self.excuse_held();
            let is_full = self.lanes.iter_mut().any(|lanes| !lanes.data.has_place());
            self.plane.dispatcher.set_full(is_full);
            self.plane.handle_timeout(self.now, &mut self.output);
            self.carry_out();
            if self.plane.take_emptied() {
                onym_sys::memory::hand_back();
            }
        }
        self.turn_epoch();
    }

    fn dispatch(&mut self, _: &mut Io<()>) {}

    fn order(&mut self, io: &mut Io<()>, order: PushOrder) {
        self.now = io.now;
        self.obey_order(io, order);
        self.carry_out();
    }

    fn face_event(&mut self, _: &mut Io<()>, _: Slot, _: FaceId, _: FaceEvent) {}

    fn turn(&mut self, _: &mut Io<()>, _: Slot) -> Turn {
        Turn { receive: 0, handle: 0 }
    }

    fn begin_round(&mut self, io: &mut Io<()>) {
        self.now = io.now;
        self.late_again();
        self.take_batches();
        for (held, until) in self.held.iter_mut().zip(&self.held_until) {
            *held = Tick(until.load(Ordering::Relaxed)).min(self.now).max(*held);
        }
    }

    fn end_round(&mut self, _: &mut Io<()>) {
        if let Some(keeper) = &self.keeper {
            keeper.keep(&mut self.plane);
        }
        for lanes in &mut self.lanes {
            lanes.told.flush();
            lanes.data.flush();
        }
    }

    fn idle(&mut self, _: &mut Io<()>) -> Idle {
        let is_due = |lanes: &PushLanes| lanes.told.is_due() || lanes.data.is_due();
        // The end of the round may have handed over the change that the rest waited for: no room
        // is waited for then, and nobody rings.
        let is_handed_over = self.is_late && self.lanes.iter().all(|lanes| lanes.told.is_empty());
        let has_work = is_handed_over
            || self.lanes.iter().any(is_due)
            || (0..self.lanes.len()).any(|shard| self.lanes[shard].up.waits() && self.takes(shard));
        if has_work { Idle::Work } else { Idle::Sleep }
    }
}

impl PushThread {
    /// The push half, ready to run.
    pub(crate) fn new(parts: Parts) -> Self {
        let epoch = parts.settings.node.routing.keyed.map(|keyed| keyed.epoch);
        let mut thread = Self {
            now: parts.clock.now(),
            epoch,
            epoch_look: if epoch.is_some() { Tick(0) } else { Tick::NEVER },
            plane: parts.plane,
            output: Output::default(),
            apps: BTreeMap::new(),
            settings: parts.settings,
            faces: FaceMap::default(),
            links: Vec::new(),
            done: vec![0; parts.lanes.len()],
            lanes: parts.lanes,
            held: vec![Tick(0); parts.held_until.len()],
            held_until: parts.held_until,
            is_late: false,
            late: VecDeque::new(),
            settling: BTreeMap::new(),
            settled: Vec::new(),
            keeper: parts.keeper,
        };
        if !parts.recalled.is_empty() {
            thread.recall(parts.recalled);
        }
        thread
    }

    /// Scopes come back from the store.
    pub(super) fn recall(&mut self, kept: Vec<Kept>) {
        self.plane.recall(self.now, kept, &mut self.output);
    }

    /// The store says which rendezvous nodes and topology managers serve.
    pub(super) fn roster(&mut self, nodes: BTreeSet<Label>) {
        self.plane.roster(self.now, nodes);
    }

    /// Whether there is room for what more things of a shard bring.
    pub(super) fn takes(&mut self, shard: usize) -> bool {
        !self.is_late
            && !self.plane.dispatcher.is_backlogged()
            && self.lanes.iter_mut().all(|lanes| lanes.told.has_place())
            && self.lanes.get_mut(shard).is_some_and(|lanes| lanes.data.has_place())
    }

    /// Neighbours of which a shard took nothing were not silent meanwhile.
    fn excuse_held(&mut self) {
        for link in &self.links {
            if let Some(shard) = self.faces.get(&link.face) {
                self.plane.link_state.not_listened(link.face, self.held[*shard]);
            }
        }
    }

    /// Starts the next epoch of keyed tags when it is time.
    fn turn_epoch(&mut self) {
        let Some(epoch_s) = self.settings.epoch_s else { return };
        self.epoch_look = self.now + EPOCH_LOOK;
        let number = epoch_at(epoch_s);
        if self.epoch != Some(number) {
            self.epoch = Some(number);
            self.plane.epoch_start(self.now, number, &mut self.output);
            self.share_forwarder();
            self.carry_out();
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

    /// A face is gone, with its link. Its application leaves by what its shard says behind the last
    /// of its own (P-57).
    pub(crate) fn face_remove(&mut self, face: FaceId) {
        self.link_remove(face);
        self.faces.remove(&face);
    }

    /// A face is no link of the domain any more.
    pub(crate) fn link_remove(&mut self, face: FaceId) {
        let before = self.links.len();
        self.links.retain(|link| link.face != face);
        if self.links.len() != before {
            self.plane.link_remove(self.now, face, &mut self.output);
            self.share_forwarder();
        }
    }

    /// The transport of a link ended; it comes again, or the face goes.
    pub(crate) fn face_down(&mut self, face: FaceId) {
        self.plane.link_down(self.now, face, &mut self.output);
    }

    /// The network refused what was sent over a link.
    pub(crate) fn face_refused(&mut self, face: FaceId) {
        self.plane.link_refused(self.now, face, &mut self.output);
    }

    /// So many octets were sent by the face of a link since it is there.
    pub(crate) fn link_sent(&mut self, face: FaceId, octets: u64) {
        self.plane.link_sent(self.now, face, octets);
    }

    /// The number of a link of the configuration.
    pub(crate) fn link_number(&self, link: &crate::config::PushLink) -> u32 {
        self.settings.link_number(link)
    }

    /// Makes a face a link of the domain; one that is it already costs what `link` says.
    pub(crate) fn link_add(&mut self, link: Link) {
        if let Some(own) = self.links.iter_mut().find(|l| l.face == link.face) {
            if (own.number, own.domain) == (link.number, link.domain) {
                (own.cost, own.capacity) = (link.cost, link.capacity);
                self.plane.link_cost(self.now, link.face, link.cost);
                self.plane.link_capacity(self.now, link.face, link.capacity);
                return;
            }
            self.link_remove(link.face);
        }
        // A neighbour that connects anew: its connection from before is no link any more.
        if let Some(before) = self.links.iter().find(|l| l.number == link.number) {
            self.link_remove(before.face);
        }
        let is_external = link.domain.is_some();
        let entry = LinkEntry { face: link.face, number: link.number, is_external };
        let added = match link.domain {
            Some(domain) => self.plane.exit_add(self.now, entry, domain),
            None => self.plane.link_add(self.now, entry, link.cost),
        };
        if let Err(error) = added {
            tracing::error!(face = link.face.0, %error, "no link of the push half");
            return;
        }
        self.plane.link_capacity(self.now, link.face, link.capacity);
        if link.is_connected {
            self.plane.link_state.link_connected(link.face);
        }
        self.links.push(link);
        self.share_forwarder();
    }

    /// Gives every shard the forwarder as it is now.
    pub(super) fn share_forwarder(&mut self) {
        for lanes in &mut self.lanes {
            let forwarder = Box::new(self.plane.forwarder.clone());
            lanes.told.batch().push(Down::Forwarder(forwarder), 0);
        }
    }
}
