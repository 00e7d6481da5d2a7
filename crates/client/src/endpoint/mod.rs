//! The client as a state machine: frames, calls and `now` go in; frames and events come out.
//!
//! An endpoint owns no socket, no thread and no clock. A shell
//! 1. hands it the frames of the face ([`Endpoint::receive`]) and the calls of the application,
//! 2. calls [`Endpoint::advance`], which does what is due,
//! 3. sends what is in [`Endpoint::tx`], and waits for the face or [`Endpoint::next_timeout`],
//! 4. takes the [`Event`]s and the content of fetches.
//!
//! Two shells are in this crate: [`crate::blocking`] and [`crate::aio`].

mod pending;

pub use pending::PENDING_MAX;

use crate::command;
use crate::fetch::{Fetch, FetchError, FetchId, FetchOptions, Progress};
use crate::producer::{Answer, Incoming, Respond, ResponderId, Responders};
use crate::registration::{
    COMMAND_LIFETIME, NotRegistered, RegistrationId, Registrations, RouteOptions,
};
use crate::request::{Packet, Request, RequestId, Unanswered};
use crate::rng::Rng;
use onym_crypto::signer::{Freshness, Signer};
use onym_forward::link::{FrameVerdict, Link, LinkConfig, Received};
use onym_forward::packet::{self, Kind, LpOut, Payload, Transmit};
use onym_tables::{FaceId, Tick};
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::mgmt::{Block as _, ControlParameters, ControlResponse};
use onym_wire::name::Name;
use onym_wire::{Buf, NackReason, RxFrame, TxQueue, types};
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
    local: bool,
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
            local: true,
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
    pub fn connected(&mut self, now: Tick, config: LinkConfig, local: bool) {
        self.link = Link::new(config);
        self.tx = TxQueue::new(TX_OCTETS_MAX);
        self.up = true;
        self.local = local;
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

    // --- consumer

    /// Sends `request`; its end is an [`Event::Answered`].
    ///
    /// # Errors
    /// [`TooMany`] when [`PENDING_MAX`] requests wait already.
    pub fn request(&mut self, now: Tick, request: &Request) -> Result<RequestId, TooMany> {
        self.express(now, request.encode(), Owner::Application, request.retries)
    }

    /// Signs commands and registrations with `signer` from now on, instead of with a digest.
    pub fn sign_commands_with(&mut self, signer: Signer) {
        self.command_signer = signer;
    }

    /// Sends the signed management command `[module, verb]`. Its end is an [`Event::Answered`]
    /// whose content is a [`ControlResponse`].
    ///
    /// # Errors
    /// [`CommandError`] when [`PENDING_MAX`] requests wait already, or the signer fails.
    pub fn command(
        &mut self,
        now: Tick,
        verb: [&str; 2],
        parameters: &ControlParameters,
    ) -> Result<RequestId, CommandError> {
        let wire = self.encode_command(now, verb, parameters)?;
        Ok(self.express(now, wire, Owner::Application, 0)?)
    }

    /// `/localhost/nfd`, or `/localhop/nfd` for a node on another machine.
    #[must_use]
    pub fn management_prefix(&self) -> Name {
        command::management_prefix(self.local)
    }

    fn encode_command(
        &mut self,
        now: Tick,
        verb: [&str; 2],
        parameters: &ControlParameters,
    ) -> Result<Vec<u8>, onym_crypto::Error> {
        let ms = self.unix_ms_at_zero + now.0 / 1_000_000;
        self.last_command_ms = ms.max(self.last_command_ms + 1);
        let fresh = Freshness {
            nonce: Some(self.rng.next_u64().to_be_bytes()),
            time_ms: Some(self.last_command_ms),
            seq: None,
        };
        let (prefix, signer) = (self.management_prefix(), &self.command_signer);
        command::encode(prefix.as_ref(), verb, parameters, signer, fresh, COMMAND_LIFETIME)
    }

    fn express(
        &mut self,
        now: Tick,
        wire: Vec<u8>,
        owner: Owner,
        retries: u32,
    ) -> Result<RequestId, TooMany> {
        let id = self.pending.insert(wire, owner, retries).ok_or(TooMany("pending Interests"))?;
        self.send_request(now, id);
        Ok(id)
    }

    /// Forgets a request; there will be no event.
    pub fn cancel(&mut self, id: RequestId) {
        self.pending.remove(id);
    }

    fn send_request(&mut self, now: Tick, id: RequestId) {
        let nonce = self.rng.nonce();
        let Some(entry) = self.pending.get_mut(id) else { return };
        entry.nonce = nonce;
        entry.sent = now;
        entry.resend = false;
        let deadline = now + entry.lifetime;
        self.arena.clear();
        entry.interest().write_forwarded(&mut self.arena, nonce, None, false);
        self.pending.arm(id, deadline);
        self.send_arena(now, Kind::Interest, LpOut::default());
    }

    // --- fetch

    /// Starts to fetch the segmented object `name`; read it with [`Endpoint::fetch_read`].
    ///
    /// # Errors
    /// [`TooMany`] when [`FETCHES_MAX`] fetches run already.
    pub fn fetch(
        &mut self,
        now: Tick,
        name: Name,
        options: FetchOptions,
    ) -> Result<FetchId, TooMany> {
        if self.fetches.len() >= FETCHES_MAX {
            return Err(TooMany("fetches"));
        }
        let id = self.fetch_next;
        self.fetch_next += 1;
        let mut fetch = Fetch::new(now, name, options);
        if !self.up {
            fetch.on_disconnected();
        }
        self.fetches.insert(id, fetch);
        Ok(FetchId(id))
    }

    /// The next piece of content, in order, once it has come.
    pub fn fetch_read(&mut self, id: FetchId) -> Option<Buf> {
        self.fetches.get_mut(&id.0)?.read()
    }

    /// How far a fetch is.
    #[must_use]
    pub fn fetch_progress(&self, id: FetchId) -> Option<Progress> {
        self.fetches.get(&id.0).map(Fetch::progress)
    }

    /// `Some` when the fetch ended: everything was read, or it failed. The fetch is then forgotten.
    pub fn fetch_end(&mut self, id: FetchId) -> Option<Result<Progress, FetchError>> {
        let fetch = self.fetches.get_mut(&id.0)?;
        if let Some(error) = fetch.take_error() {
            self.fetches.remove(&id.0);
            return Some(Err(error));
        }
        if !fetch.is_done() {
            return None;
        }
        let progress = fetch.progress();
        self.fetches.remove(&id.0);
        Some(Ok(progress))
    }

    /// Stops a fetch.
    pub fn fetch_cancel(&mut self, id: FetchId) {
        self.fetches.remove(&id.0);
    }

    // --- producer

    /// Answers Interests under `prefix` with `respond`. Registering the prefix is another matter.
    ///
    /// # Errors
    /// [`TooMany`] responders.
    pub fn respond(
        &mut self,
        prefix: Name,
        respond: Box<dyn Respond>,
    ) -> Result<ResponderId, TooMany> {
        self.responders.add(prefix, respond).ok_or(TooMany("responders"))
    }

    /// Stops a responder.
    pub fn respond_stop(&mut self, id: ResponderId) {
        self.responders.remove(id);
    }

    /// Registers `prefix` with the node, and again when needed, until [`Endpoint::unregister`].
    ///
    /// # Errors
    /// [`TooMany`] registrations.
    pub fn register(
        &mut self,
        prefix: Name,
        options: RouteOptions,
    ) -> Result<RegistrationId, TooMany> {
        self.registrations.add(prefix, options).ok_or(TooMany("registrations"))
    }

    /// Ends a registration and tells the node. Returns the command, for those who wait for it.
    pub fn unregister(&mut self, now: Tick, id: RegistrationId) -> Option<RequestId> {
        let (prefix, waiting) = self.registrations.remove(id)?;
        if let Some(request) = waiting {
            self.pending.remove(request);
        }
        let parameters = ControlParameters { name: Some(prefix), ..ControlParameters::default() };
        self.command(now, ["rib", "unregister"], &parameters).ok()
    }

    /// Answers an Interest that a responder kept. `data` is a Data element.
    pub fn reply(&mut self, now: Tick, incoming: &Incoming, data: Buf) {
        let lp = LpOut { pit_token: incoming.token.clone(), ..LpOut::default() };
        self.send_data(now, Payload::Shared(data), lp);
    }

    // --- frames and time

    /// Takes one frame of the face.
    ///
    /// # Errors
    /// The verdict, when the peer does not speak the protocol: a stream face is to be closed.
    pub fn receive(&mut self, now: Tick, frame: RxFrame) -> Result<(), FrameVerdict> {
        match self.link.receive(now, FACE, frame) {
            Received::Packet(packet) => self.receive_packet(now, packet),
            Received::Held | Received::Idle => {}
            Received::Dropped(verdict) => {
                self.counters.frames_dropped += 1;
                if verdict.closes_stream() {
                    return Err(verdict);
                }
            }
        }
        Ok(())
    }

    fn receive_packet(&mut self, now: Tick, packet: packet::Packet) {
        let taken = match (packet.lp.nack, packet.bytes.first().copied().map(u32::from)) {
            (Some(reason), _) => self.receive_nack(now, &packet, NackReason(reason)),
            (None, Some(types::DATA)) => self.receive_data(now, &packet),
            _ => self.receive_interest(now, packet),
        };
        if taken.is_none() {
            self.counters.malformed += 1;
        }
    }

    fn receive_data(&mut self, now: Tick, packet: &packet::Packet) -> Option<()> {
        let data = Data::parse(&packet.bytes).ok()?;
        let mark = packet.lp.congestion_mark;
        let mut wanted = false;
        for fetch in self.fetches.values_mut() {
            wanted |= fetch.on_data(now, &data, &packet.bytes, mark);
        }
        if !self.pending.is_empty() {
            let mut found = std::mem::take(&mut self.found);
            self.pending.answered_by(&data, &mut found);
            wanted |= !found.is_empty();
            for id in found.drain(..) {
                let answer = Packet::checked(packet.bytes.clone(), mark);
                self.finish(now, id, Ok(answer));
            }
            self.found = found;
        }
        self.counters.unsolicited += u64::from(!wanted);
        Some(())
    }

    fn receive_nack(
        &mut self,
        now: Tick,
        packet: &packet::Packet,
        reason: NackReason,
    ) -> Option<()> {
        let interest = Interest::parse(&packet.bytes).ok()?;
        for fetch in self.fetches.values_mut() {
            fetch.on_nack(now, interest.name, reason);
        }
        let Some(id) = self.pending.nacked(&interest) else { return Some(()) };
        let may_pass = matches!(reason, NackReason::CONGESTION | NackReason::DUPLICATE);
        match self.pending.get_mut(id) {
            Some(entry) if may_pass && entry.retries_left > 0 => {
                entry.retries_left -= 1;
                entry.resend = true;
                self.pending.arm(id, now + CONGESTION_WAIT);
            }
            _ => self.finish(now, id, Err(Unanswered::Nack(reason))),
        }
        Some(())
    }

    fn receive_interest(&mut self, now: Tick, packet: packet::Packet) -> Option<()> {
        let interest = Interest::parse(&packet.bytes).ok()?;
        onym_crypto::verify::check_parameters_digest(&interest).ok()?;
        self.counters.interests += 1;
        let incoming = Incoming { bytes: packet.bytes, token: packet.lp.pit_token };
        let mut arena = std::mem::take(&mut self.arena);
        arena.clear();
        let answer = self.responders.answer(&incoming, &mut arena);
        self.arena = arena;
        let mut lp = LpOut { pit_token: incoming.token, ..LpOut::default() };
        match answer {
            Answer::Written => self.send_data(now, self.whole_arena(), lp),
            Answer::Shared(data) => self.send_data(now, Payload::Shared(data), lp),
            Answer::Nack(reason) => {
                lp.nack = Some(reason.0);
                self.send(now, Kind::Nack, Payload::Shared(incoming.bytes), lp);
            }
            Answer::Nothing => {}
        }
        Some(())
    }

    /// Ends the request `id` and tells its owner.
    fn finish(&mut self, now: Tick, id: RequestId, answer: Result<Packet, Unanswered>) {
        let Some(entry) = self.pending.remove(id) else { return };
        match entry.owner {
            Owner::Application => self.events.push_back(Event::Answered(id, answer)),
            Owner::Fetch(fetch) => {
                if let Some(fetch) = self.fetches.get_mut(&fetch) {
                    fetch.on_answer(now, answer);
                }
            }
            Owner::Registration(registration) => {
                let response = answer.map_err(NotRegistered::from).and_then(|packet| {
                    ControlResponse::parse(packet.data().content)
                        .map_err(|_| NotRegistered::Malformed)
                });
                let jitter = self.rng.next_u64();
                let id = RegistrationId(registration);
                let event = match self.registrations.on_answer(now, id.0, response, jitter) {
                    Ok(()) => Event::Registered(id),
                    Err(why) => Event::NotRegistered(id, why),
                };
                self.events.push_back(event);
            }
        }
    }

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
                self.send_arena(now, Kind::Interest, LpOut::default());
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

    fn send_arena(&mut self, now: Tick, kind: Kind, lp: LpOut) {
        self.send(now, kind, self.whole_arena(), lp);
    }

    fn send_data(&mut self, now: Tick, bytes: Payload, lp: LpOut) {
        let len = match &bytes {
            Payload::Arena(range) => range.len(),
            Payload::Shared(buf) => buf.len(),
        };
        if self.send(now, Kind::Data, bytes, lp) {
            self.counters.data_sent += 1;
            self.counters.data_octets += len as u64;
        }
    }

    fn send(&mut self, now: Tick, kind: Kind, bytes: Payload, lp: LpOut) -> bool {
        if !self.up {
            return false;
        }
        let item = Transmit { face: FACE, kind, bytes, lp };
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
