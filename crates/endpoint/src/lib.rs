#![doc = include_str!("../README.md")]

mod packet;
mod pending;
mod request;
#[cfg(test)]
mod tests;

pub use packet::{Inbound, Incoming, Packet, Transmit};
pub use request::{Request, RequestId, Unanswered};

use onym_tables::{Rng, Tick};
use onym_wire::{Interest, Malformed, NackReason, Name, types};
use pending::Pending;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use thiserror::Error;

/// Wait before a request that met congestion is sent again.
const CONGESTION_WAIT: Duration = Duration::from_millis(50);

/// Bounds of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that wait for an answer.
    pub pending_max: usize,
    /// Octets of their Interests.
    pub pending_octets_max: usize,
    /// Prefixes that are served.
    pub prefixes_max: usize,
    /// Interests that wait in [`Endpoint::poll_event`].
    pub incoming_max: usize,
    /// Octets that wait in [`Endpoint::poll_transmit`].
    pub transmit_octets_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pending_max: 4096,
            pending_octets_max: 4 << 20,
            prefixes_max: 256,
            incoming_max: 1024,
            transmit_octets_max: 4 << 20,
        }
    }
}

/// Why a request or a prefix was not taken; nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// [`Limits::pending_max`] or [`Limits::pending_octets_max`] is reached.
    #[error("too many requests wait for an answer")]
    Pending,
    /// [`Limits::prefixes_max`] is reached.
    #[error("too many prefixes are served")]
    Prefixes,
    /// The Interest given is none.
    #[error("not an Interest: {0}")]
    Malformed(#[from] Malformed),
}

/// Identifies a prefix that an endpoint serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrefixId(u64);

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Data answered a request, which is thereby over. Its signature was not checked.
    Data {
        /// The request.
        id: RequestId,
        /// The Data.
        packet: Packet,
        /// IncomingFaceId, where the node tells it.
        face: Option<u64>,
        /// Round-trip time; `None` when the Interest was sent more than once.
        rtt: Option<Duration>,
    },
    /// A request is over without Data.
    Unanswered {
        /// The request.
        id: RequestId,
        /// Why.
        why: Unanswered,
    },
    /// Somebody asks under a prefix that is served.
    Interest {
        /// The longest prefix that matches.
        prefix: PrefixId,
        /// The Interest, to be given to [`Endpoint::reply`] or [`Endpoint::refuse`], now or later.
        incoming: Incoming,
    },
}

/// What an endpoint counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that cannot be parsed.
    pub malformed: u64,
    /// Data that no request waits for.
    pub unsolicited: u64,
    /// Nacks of nothing that waits, or of an earlier sending.
    pub stale_nacks: u64,
    /// Interests under no prefix that is served.
    pub unserved: u64,
    /// Interests dropped because nobody took the earlier ones.
    pub incoming_dropped: u64,
    /// Packets dropped because nobody took the earlier ones.
    pub transmit_dropped: u64,
    /// Interests sent, repeated ones too.
    pub interests_sent: u64,
    /// Data sent.
    pub data_sent: u64,
}

/// Consumer and producer; see the [crate].
#[derive(Debug)]
pub struct Endpoint {
    limits: Limits,
    rng: Rng,
    pending: Pending,
    prefixes: BTreeMap<Name, PrefixId>,
    prefix_next: u64,
    events: VecDeque<Event>,
    /// Events in `events` that are Interests.
    incoming: usize,
    transmit: VecDeque<Transmit>,
    transmit_octets: usize,
    counters: Counters,
}

impl Endpoint {
    /// An endpoint without requests and prefixes. `seed` gives the Nonces: it should differ from
    /// node to node and from run to run.
    #[must_use]
    pub fn new(seed: u64, limits: Limits) -> Self {
        Self {
            limits,
            rng: Rng::new(seed),
            pending: Pending::default(),
            prefixes: BTreeMap::new(),
            prefix_next: 0,
            events: VecDeque::new(),
            incoming: 0,
            transmit: VecDeque::new(),
            transmit_octets: 0,
            counters: Counters::default(),
        }
    }

    // --- consumer

    /// Sends `request`. It ends in one [`Event::Data`] or one [`Event::Unanswered`].
    ///
    /// # Errors
    /// [`Refused::Pending`]; [`Refused::Malformed`] when the name is empty.
    pub fn express(&mut self, now: Tick, request: &Request) -> Result<RequestId, Refused> {
        self.start(now, request.encode(), request)
    }

    /// As [`Endpoint::express`] for an Interest that is encoded already, a signed one for example.
    /// Of `request` only `tries`, `interval` and `next_hop_face` count. The Nonce is replaced.
    ///
    /// # Errors
    /// As [`Endpoint::express`].
    pub fn express_encoded(
        &mut self,
        now: Tick,
        interest: Vec<u8>,
        request: &Request,
    ) -> Result<RequestId, Refused> {
        self.start(now, interest, request)
    }

    fn start(&mut self, now: Tick, wire: Vec<u8>, how: &Request) -> Result<RequestId, Refused> {
        Interest::parse(&wire)?;
        let octets = self.pending.octets().saturating_add(wire.len());
        if self.pending.len() >= self.limits.pending_max || octets > self.limits.pending_octets_max
        {
            return Err(Refused::Pending);
        }
        let id = self.pending.insert(wire, how);
        self.send(now, id);
        Ok(id)
    }

    /// Forgets a request: there will be no event. Does nothing when it is over.
    pub fn cancel(&mut self, id: RequestId) {
        self.pending.remove(id);
    }

    /// Requests that wait.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    fn send(&mut self, now: Tick, id: RequestId) {
        let nonce = self.rng.next_u32().to_be_bytes();
        let Some((wire, next_hop_face)) = self.pending.send(now, id, nonce) else { return };
        self.counters.interests_sent += 1;
        self.put(Transmit { wire, next_hop_face, ..Transmit::default() });
    }

    // --- producer

    /// Serves `prefix`: Interests under it become events. The longest prefix wins. Serving one
    /// twice gives the same identifier. Routes to it are another matter.
    ///
    /// # Errors
    /// [`Refused::Prefixes`].
    pub fn serve(&mut self, prefix: Name) -> Result<PrefixId, Refused> {
        if let Some(id) = self.prefixes.get(&prefix) {
            return Ok(*id);
        }
        if self.prefixes.len() >= self.limits.prefixes_max {
            return Err(Refused::Prefixes);
        }
        let id = PrefixId(self.prefix_next);
        self.prefix_next += 1;
        self.prefixes.insert(prefix, id);
        Ok(id)
    }

    /// Serves a prefix no longer.
    pub fn stop_serving(&mut self, id: PrefixId) {
        self.prefixes.retain(|_, other| *other != id);
    }

    /// The prefixes that are served.
    pub fn served(&self) -> impl Iterator<Item = (PrefixId, &Name)> {
        self.prefixes.iter().map(|(name, id)| (*id, name))
    }

    /// Answers `incoming` with a Data element.
    pub fn reply(&mut self, incoming: &Incoming, data: Vec<u8>) {
        self.counters.data_sent += 1;
        let pit_token = incoming.token.clone();
        self.put(Transmit { wire: data, pit_token, ..Transmit::default() });
    }

    /// Answers `incoming` with a Nack.
    pub fn refuse(&mut self, incoming: &Incoming, reason: NackReason) {
        let (wire, pit_token) = (incoming.interest().wire.to_vec(), incoming.token.clone());
        self.put(Transmit { wire, pit_token, nack: Some(reason), next_hop_face: None });
    }

    /// Sends an Interest that nobody waits for an answer to, such as a Sync Interest, as it is.
    pub fn notify(&mut self, interest: Vec<u8>, next_hop_face: Option<u64>) {
        self.counters.interests_sent += 1;
        self.put(Transmit { wire: interest, next_hop_face, ..Transmit::default() });
    }

    fn put(&mut self, transmit: Transmit) {
        let octets = self.transmit_octets + transmit.wire.len();
        if octets > self.limits.transmit_octets_max {
            self.counters.transmit_dropped += 1;
            return;
        }
        self.transmit_octets = octets;
        self.transmit.push_back(transmit);
    }

    // --- packets

    /// Takes a packet. Says whether it was for this endpoint: a Data or Nack that a request waited
    /// for, an Interest under a served prefix.
    pub fn receive(&mut self, now: Tick, packet: &Inbound<'_>) -> bool {
        let taken = match packet.wire.first().copied().map(u32::from) {
            Some(types::INTEREST) if packet.nack.is_some() => self.on_nack(now, packet),
            Some(types::INTEREST) => self.on_interest(packet),
            Some(types::DATA) => self.on_data(now, packet),
            _ => Err(Malformed::Missing(types::INTEREST)),
        };
        taken.unwrap_or_else(|_| {
            self.counters.malformed += 1;
            false
        })
    }

    fn on_data(&mut self, now: Tick, inbound: &Inbound<'_>) -> Result<bool, Malformed> {
        let packet = Packet::parse(inbound.wire)?;
        let found = self.pending.answered_by(&packet.data());
        if found.is_empty() {
            self.counters.unsolicited += 1;
            return Ok(false);
        }
        for id in found {
            let Some(entry) = self.pending.remove(id) else { continue };
            let rtt = (entry.sendings == 1).then(|| now.since(entry.sent));
            let (packet, face) = (packet.clone(), inbound.incoming_face);
            self.events.push_back(Event::Data { id, packet, face, rtt });
        }
        Ok(true)
    }

    fn on_nack(&mut self, now: Tick, inbound: &Inbound<'_>) -> Result<bool, Malformed> {
        let interest = Interest::parse(inbound.wire)?;
        let Some(id) = self.pending.nacked(&interest) else {
            self.counters.stale_nacks += 1;
            return Ok(false);
        };
        let reason = inbound.nack.unwrap_or(NackReason::NONE);
        let again = self.pending.tries_left(id) > 0;
        match reason {
            NackReason::DUPLICATE if again => self.send(now, id),
            NackReason::CONGESTION if again => self.pending.arm(id, now + CONGESTION_WAIT),
            _ => self.end(id, Unanswered::Nack(reason)),
        }
        Ok(true)
    }

    fn on_interest(&mut self, inbound: &Inbound<'_>) -> Result<bool, Malformed> {
        let interest = Interest::parse(inbound.wire)?;
        let name = interest.name;
        let mut prefixes = (0..=name.len()).rev().map(|len| name.prefix(len));
        let Some(prefix) = prefixes.find_map(|p| self.prefixes.get(p.value()).copied()) else {
            self.counters.unserved += 1;
            return Ok(false);
        };
        if self.incoming >= self.limits.incoming_max {
            self.counters.incoming_dropped += 1;
            return Ok(true);
        }
        self.incoming += 1;
        let incoming = Incoming::new(inbound);
        self.events.push_back(Event::Interest { prefix, incoming });
        Ok(true)
    }

    fn end(&mut self, id: RequestId, why: Unanswered) {
        self.pending.remove(id);
        self.events.push_back(Event::Unanswered { id, why });
    }

    // --- time and output

    /// When [`Endpoint::handle_timeout`] wants to be called; [`Tick::NEVER`] when it does not.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        self.pending.next_deadline()
    }

    /// Sends again or ends what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        while let Some(id) = self.pending.pop_due(now) {
            if self.pending.tries_left(id) > 0 {
                self.send(now, id);
            } else {
                self.end(id, Unanswered::Timeout);
            }
        }
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let transmit = self.transmit.pop_front()?;
        self.transmit_octets -= transmit.wire.len();
        Some(transmit)
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.incoming -= usize::from(matches!(event, Event::Interest { .. }));
        Some(event)
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}
