//! Links of a network of push nodes: delay, loss, and what goes down.

use super::{Arrival, PushNetwork, Slot, Work, is_control, is_hello};
use onym_pubsub::forwarder::LinkEntry;
use onym_pubsub::node::Node;
use onym_tables::{FaceId, Tick};
use onym_wire::push::Label;
use std::cmp::Reverse;
use std::time::Duration;

/// What a link does to frames.
#[derive(Debug, Clone, Copy)]
pub struct LinkConfig {
    /// Time from end to end.
    pub delay: Duration,
    /// Frames of a million that are lost.
    pub loss_ppm: u32,
    /// It loses no hello: whatever it loses, its nodes stay neighbours.
    pub spares_hellos: bool,
    /// Cost in both directions.
    pub cost: u16,
    /// What it carries in each direction, in kilobits per second; 0: everything. What would
    /// wait for more than 100 ms is lost.
    pub capacity: u32,
}

/// Time that the last frame of a full queue waits.
const QUEUE: Duration = Duration::from_millis(100);

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(1),
            loss_ppm: 0,
            spares_hellos: false,
            cost: 1,
            capacity: 0,
        }
    }
}

/// Both directions of a link.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) ends: [(usize, FaceId); 2],
    pub(super) config: LinkConfig,
    pub(super) is_up: bool,
    /// Numbers of the two directions.
    pub(super) numbers: [u32; 2],
    /// Frames of applications that crossed, by direction.
    crossed: [u64; 2],
    /// All frames that crossed, by direction.
    frames: [u64; 2],
    /// Octets that were sent, by direction.
    octets: [u64; 2],
    /// Until when it is busy with them.
    busy: [Tick; 2],
}

impl Wire {
    /// When a frame that is sent at a moment has left, if there is room for it.
    fn leave(&mut self, side: usize, at: Tick, octets: usize) -> Option<Tick> {
        self.octets[side] += octets as u64;
        if self.config.capacity == 0 {
            return Some(at);
        }
        let begin = self.busy[side].max(at);
        if begin.since(at) > QUEUE {
            return None;
        }
        let nanos = octets as u64 * 8_000_000 / u64::from(self.config.capacity);
        self.busy[side] = begin + Duration::from_nanos(nanos);
        Some(self.busy[side])
    }
}

impl PushNetwork {
    /// Joins two nodes; returns the number of the link.
    pub fn link(&mut self, a: usize, b: usize, config: LinkConfig) -> usize {
        let number = self.wires.len();
        let face_of = |slot: &Slot| FaceId(FaceId::FIRST.0 + slot.faces.len() as u32);
        let ends = [(a, face_of(&self.slots[a])), (b, face_of(&self.slots[b]))];
        let numbers = [self.numbers, self.numbers + 1];
        self.numbers += 2;
        self.wires.push(Wire {
            ends,
            config,
            is_up: true,
            numbers,
            crossed: [0; 2],
            frames: [0; 2],
            octets: [0; 2],
            busy: [self.now; 2],
        });
        let domains = [a, b].map(|node| self.slots[node].config.domain);
        let own_domain = |node: usize| if node == a { domains[0] } else { domains[1] };
        for (end, number_of) in ends.into_iter().zip(numbers) {
            self.slots[end.0].faces.push(number);
            let now = self.now;
            if let Some(node) = &mut self.slots[end.0].node {
                let other = if end.0 == a { b } else { a };
                let domain = other_domain([own_domain(end.0), own_domain(other)]);
                add_link(node, now, end.1, number_of, config, domain);
            }
            self.slots[end.0].due = now;
        }
        number
    }

    /// The link between two nodes.
    #[must_use]
    pub fn link_between(&self, a: usize, b: usize) -> Option<usize> {
        let is_it = |w: &Wire| {
            let ends = [w.ends[0].0, w.ends[1].0];
            ends == [a, b] || ends == [b, a]
        };
        self.wires.iter().position(is_it)
    }

    /// Number within the domain of the directed link from `a` to `b`.
    #[must_use]
    pub fn link_number(&self, a: usize, b: usize) -> Option<u32> {
        let wire = &self.wires[self.link_between(a, b)?];
        Some(wire.numbers[usize::from(wire.ends[0].0 != a)])
    }

    /// Frames of applications that crossed from `a` to `b`, and all frames that did.
    #[must_use]
    pub fn crossed(&self, a: usize, b: usize) -> (u64, u64) {
        let Some(link) = self.link_between(a, b) else { return (0, 0) };
        let wire = &self.wires[link];
        let side = usize::from(wire.ends[0].0 != a);
        (wire.crossed[side], wire.frames[side])
    }

    /// Frames of applications that crossed any link.
    #[must_use]
    pub fn all_crossed(&self) -> u64 {
        self.wires.iter().flat_map(|w| w.crossed).sum()
    }

    /// Takes a link up.
    pub fn link_up(&mut self, link: usize) {
        self.wires[link].is_up = true;
    }

    /// Takes a link down; its nodes notice by silence.
    pub fn link_down(&mut self, link: usize) {
        self.wires[link].is_up = false;
    }

    /// Takes a link down; its nodes are told at once.
    pub fn link_down_told(&mut self, link: usize) {
        self.link_down(link);
        for (node, face) in self.wires[link].ends {
            self.with(node, Work::Free, 1, |n, now, out| n.link_down(now, face, out));
        }
    }

    /// From now on a link loses so many frames of a million.
    pub fn set_loss(&mut self, link: usize, loss_ppm: u32) {
        self.wires[link].config.loss_ppm = loss_ppm;
    }

    /// From now on a link costs so much, in both directions.
    pub fn set_cost(&mut self, link: usize, cost: u16) {
        self.wires[link].config.cost = cost;
        for (node, face) in self.wires[link].ends {
            self.with(node, Work::Free, 1, |n, now, _| n.link_cost(now, face, cost));
        }
    }

    pub(super) fn send(&mut self, node: usize, face: FaceId, at: Tick, octets: Vec<u8>) {
        let Some(number) = self.wire_of(node, face) else { return };
        let wire = &mut self.wires[number];
        if !wire.is_up {
            return;
        }
        let side = usize::from(wire.ends[0] != (node, face));
        wire.frames[side] += 1;
        wire.crossed[side] += u64::from(!is_control(&octets));
        let LinkConfig { loss_ppm, spares_hellos, .. } = wire.config;
        let is_lost = loss_ppm > 0 && self.rng.below(1_000_000) < u64::from(loss_ppm);
        if is_lost && !(spares_hellos && is_hello(&octets)) {
            return;
        }
        let (to, face) = wire.ends[1 - side];
        let Some(left) = wire.leave(side, at, octets.len()) else { return };
        self.order += 1;
        let (at, order) = (left + wire.config.delay, self.order);
        self.arrivals.push(Reverse(Arrival { at, order, node: to, face, octets }));
    }

    /// Tells a node what was sent over its links that have a capacity.
    pub(super) fn measure(&mut self, node: usize) {
        let Slot { faces, node: Some(running), .. } = &mut self.slots[node] else { return };
        for wire in faces.iter().map(|wire| &self.wires[*wire]).filter(|w| w.config.capacity > 0) {
            let side = usize::from(wire.ends[0].0 != node);
            running.link_sent(self.now, wire.ends[side].1, wire.octets[side]);
        }
    }

    pub(super) fn wire_of(&self, node: usize, face: FaceId) -> Option<usize> {
        let at = face.0.checked_sub(FaceId::FIRST.0)?;
        self.slots[node].faces.get(at as usize).copied()
    }

    /// Puts a frame on the link from `a` to `b`, as if `a` had sent it.
    pub fn inject(&mut self, a: usize, b: usize, octets: Vec<u8>) {
        let Some(link) = self.link_between(a, b) else { return };
        let wire = &self.wires[link];
        let side = usize::from(wire.ends[0].0 != a);
        let (node, face) = wire.ends[side];
        self.send(node, face, self.now, octets);
    }
}

/// The domain at the other end of a link, when it is another one than the own.
pub(super) fn other_domain([own, other]: [Option<Label>; 2]) -> Option<Label> {
    other.filter(|other| own.is_some_and(|own| own != *other))
}

pub(super) fn add_link(
    node: &mut Node,
    now: Tick,
    face: FaceId,
    number: u32,
    config: LinkConfig,
    domain: Option<Label>,
) {
    let link = LinkEntry { face, number, is_external: false };
    let added = match domain {
        Some(domain) => node.exit_add(now, link, domain),
        None => node.link_add(now, link, config.cost),
    };
    added.expect("invariant: the faces of a node differ");
    node.link_capacity(now, face, config.capacity);
}
