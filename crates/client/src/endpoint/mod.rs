//! The client as a state machine: frames, calls and `now` go in; frames and events come out.
//!
//! An endpoint owns no socket, no thread and no clock. A shell
//! 1. hands it the frames of the face ([`Endpoint::receive`]) and the calls of the application,
//! 2. calls [`Endpoint::advance`], which does what is due,
//! 3. sends what is in [`Endpoint::tx`], and waits for the face or [`Endpoint::next_timeout`],
//! 4. takes the [`Event`]s and the content of fetches.
//!
//! A shell that blocks is in this crate: [`crate::blocking`].

mod calls;
mod pending;
mod receive;

pub use pending::PENDING_MAX;

use crate::fetch::Fetch;
use crate::producer::Responders;
use crate::registration::{NotRegistered, RegistrationId, Registrations};
use crate::request::{Packet, RequestId, Unanswered};
use crate::rng::Rng;
use onym_crypto::signer::Signer;
use onym_frame::TxQueue;
use onym_link::{Link, LinkConfig, LpOut, Outgoing, PacketKind, Payload, Transmit};
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::Scope;
use pending::{Owner, Pending};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Fetches of one endpoint, at most.
pub const FETCHES_MAX: usize = 256;
/// Octets of frames that wait for the face, at most; what a producer answers beyond is dropped.
const TX_OCTETS_MAX: usize = 8 << 20;
/// A fetch sends no more Interests while this much waits.
const TX_OCTETS_BUSY: usize = 64 << 10;
/// Wait before the same request is sent again after a congestion Nack.
const CONGESTION_WAIT: Duration = Duration::from_millis(50);
/// The face's number for the link service; a client has one face.
const FACE: FaceId = FaceId::FIRST;

/// A bound of the endpoint was reached; nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many {0} at the same time")]
pub struct TooMany(pub &'static str);

/// Why a command was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// Too many requests wait already.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// It cannot be signed.
    #[error("cannot sign the command: {0}")]
    Sign(#[from] onym_crypto::Error),
}

/// Something that the application may want to know.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A request ended.
    Answered(RequestId, Result<Packet, Unanswered>),
    /// A prefix is registered (again).
    Registered(RegistrationId),
    /// A prefix is not registered; the endpoint tries again by itself.
    NotRegistered(RegistrationId, NotRegistered),
}

/// What one endpoint counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Frames that the link service dropped.
    pub frames_dropped: u64,
    /// Packets that cannot be parsed.
    pub malformed: u64,
    /// Data that nobody waited for.
    pub unsolicited: u64,
    /// Interests that arrived.
    pub interests: u64,
    /// Data sent.
    pub data_sent: u64,
    /// Octets of Data sent.
    pub data_octets: u64,
    /// Packets not sent because the queue was full or the face cannot carry them.
    pub unsent: u64,
}

/// The client's end of one face.
#[derive(Debug)]
pub struct Endpoint {
    link: Link,
    tx: TxQueue,
    up: bool,
    /// The node is on this machine, so that commands go to `/localhost/nfd`.
    scope: Scope,
    rng: Rng,
    unix_ms_at_zero: u64,
    last_command_ms: u64,
    command_signer: Signer,
    pending: Pending,
    fetches: BTreeMap<u64, Fetch>,
    fetch_next: u64,
    responders: Responders,
    registrations: Registrations,
    events: VecDeque<Event>,
    counters: EndpointCounters,
    arena: Vec<u8>,
    found: Vec<RequestId>,
}

impl Endpoint {
    /// An endpoint that is not connected yet. `seed` makes its Nonces; `unix_ms_at_zero` is the
    /// wall clock, in milliseconds, at [`Tick`] zero (commands carry it).
    #[must_use]
    pub fn new(seed: u64, unix_ms_at_zero: u64) -> Self {
        Self {
            link: Link::new(LinkConfig::stream()),
            tx: TxQueue::new(TX_OCTETS_MAX),
            up: false,
            scope: Scope::Local,
            rng: Rng::new(seed),
            unix_ms_at_zero,
            last_command_ms: 0,
            command_signer: Signer::digest(),
            pending: Pending::default(),
            fetches: BTreeMap::new(),
            fetch_next: 0,
            responders: Responders::default(),
            registrations: Registrations::default(),
            events: VecDeque::new(),
            counters: EndpointCounters::default(),
            arena: Vec::new(),
            found: Vec::new(),
        }
    }

    // --- connection

    /// The face is open. Sends again what waits, registers everything again.
    pub fn connected(&mut self, now: Tick, config: LinkConfig, scope: Scope) {
        self.link = Link::new(config);
        self.tx = TxQueue::new(TX_OCTETS_MAX);
        self.up = true;
        self.scope = scope;
        for id in self.pending.ids() {
            self.send_request(now, id);
        }
        self.registrations.start_again();
        for fetch in self.fetches.values_mut() {
            fetch.on_connected(now);
        }
    }

    /// The face is gone and will be opened again. Requests keep waiting for their lifetime,
    /// fetches stand still.
    pub fn disconnected(&mut self) {
        self.up = false;
        self.tx = TxQueue::new(TX_OCTETS_MAX);
        for id in self.pending.ids() {
            // Registrations start again by themselves, and so does discovery.
            let own = |o| matches!(o, Owner::Registration(_) | Owner::Fetch(_));
            if self.pending.get_mut(id).is_some_and(|e| own(e.owner)) {
                self.pending.remove(id);
            }
        }
        for fetch in self.fetches.values_mut() {
            fetch.on_disconnected();
        }
    }

    /// The face is gone for good: everything that waits fails.
    pub fn closed(&mut self) {
        self.disconnected();
        for id in self.pending.ids() {
            self.pending.remove(id);
            self.events.push_back(Event::Answered(id, Err(Unanswered::Disconnected)));
        }
        for fetch in self.fetches.values_mut() {
            fetch.on_closed();
        }
    }

    /// Whether a face is open.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up
    }

    // --- time

    /// When [`Endpoint::advance`] wants to be called even if nothing arrives.
    #[must_use]
    pub fn next_timeout(&self) -> Tick {
        let pending = self.pending.next_deadline();
        if !self.up {
            return pending;
        }
        let fetches = self.fetches.values().map(Fetch::next_timer).min().unwrap_or(Tick::NEVER);
        pending.min(fetches).min(self.registrations.next_due()).min(self.link.poll_timeout())
    }

    /// Does what is due and fills the windows of the fetches.
    pub fn advance(&mut self, now: Tick) {
        while let Some(id) = self.pending.pop_due(now) {
            self.on_deadline(now, id);
        }
        if !self.up {
            return;
        }
        if self.link.poll_timeout() <= now {
            self.link.handle_timeout(now, &mut self.tx);
        }
        while let Some((id, parameters)) = self.registrations.take_due(now) {
            let sent = self
                .encode_command(now, ["rib", "register"], &parameters)
                .map_err(CommandError::from)
                .and_then(|wire| Ok(self.express(now, wire, Owner::Registration(id), 0)?));
            match sent {
                Ok(request) => self.registrations.mark_sent(id, request),
                Err(_) => self.registrations.postpone(id, now),
            }
        }
        self.advance_fetches(now);
    }

    fn on_deadline(&mut self, now: Tick, id: RequestId) {
        let Some(entry) = self.pending.get_mut(id) else { return };
        if entry.resend {
            self.send_request(now, id);
        } else if entry.retries_left > 0 {
            entry.retries_left -= 1;
            self.send_request(now, id);
        } else {
            self.finish(now, id, Err(Unanswered::Timeout));
        }
    }

    fn advance_fetches(&mut self, now: Tick) {
        let mut asks = Vec::new();
        // Taken out, so that a fetch and the queue can be used side by side.
        let mut fetches = std::mem::take(&mut self.fetches);
        for (id, fetch) in &mut fetches {
            fetch.on_timer(now);
            if let Some(ask) = fetch.next_ask(now) {
                asks.push((*id, ask));
            }
            while self.tx.bytes() < TX_OCTETS_BUSY {
                self.arena.clear();
                if !fetch.next_interest(now, self.rng.nonce(), &mut self.arena) {
                    break;
                }
                self.send_arena(now, PacketKind::Interest, LpOut::default());
            }
        }
        self.fetches = fetches;
        for (id, ask) in asks {
            // Full: the next step of the discovery asks again.
            let _ = self.express(now, ask.encode(), Owner::Fetch(id), ask.retries);
        }
    }

    fn whole_arena(&self) -> Payload {
        Payload::Arena(0..u32::try_from(self.arena.len()).unwrap_or(u32::MAX))
    }

    fn send_arena(&mut self, now: Tick, kind: PacketKind, lp: LpOut) {
        self.send(now, kind, self.whole_arena(), lp);
    }

    fn send_data(&mut self, now: Tick, bytes: Payload, lp: LpOut) {
        let len = match &bytes {
            Payload::Arena(range) => range.len(),
            Payload::Shared(buf) => buf.len(),
        };
        if self.send(now, PacketKind::Data, bytes, lp) {
            self.counters.data_sent += 1;
            self.counters.data_octets += len as u64;
        }
    }

    fn send(&mut self, now: Tick, kind: PacketKind, bytes: Payload, lp: LpOut) -> bool {
        if !self.up {
            return false;
        }
        let item = Transmit { face: FACE, what: Outgoing::Pull(kind, lp), bytes };
        let sent = self.link.send(now, &item, &self.arena, &mut self.tx).is_ok();
        self.counters.unsent += u64::from(!sent);
        sent
    }

    // --- out

    /// The frames to send.
    pub fn tx(&mut self) -> &mut TxQueue {
        &mut self.tx
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> EndpointCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
