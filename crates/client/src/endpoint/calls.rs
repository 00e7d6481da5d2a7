//! The calls of an application.

use super::pending::Owner;
use super::{CommandError, Endpoint, FETCHES_MAX, TooMany};
use crate::command;
use crate::fetch::{Fetch, FetchError, FetchId, FetchOptions, Progress};
use crate::producer::{Incoming, Respond, ResponderId};
use crate::registration::{COMMAND_LIFETIME, RegistrationId, RouteOptions};
use crate::request::{Request, RequestId};
use onym_crypto::signer::{Freshness, Signer};
use onym_frame::Buf;
use onym_link::{LpOut, PacketKind, Payload};
use onym_tables::Tick;
use onym_wire::NackReason;
use onym_wire::interest::Hint;
use onym_wire::mgmt::ControlParameters;
use onym_wire::name::Name;

impl Endpoint {
    // --- consumer

    /// Sends `request`; its end is an [`Event::Answered`](super::Event::Answered).
    ///
    /// # Errors
    /// [`TooMany`] when [`PENDING_MAX`](super::PENDING_MAX) requests wait already.
    pub fn request(&mut self, now: Tick, request: &Request) -> Result<RequestId, TooMany> {
        self.express(now, request.encode(), Owner::Application, request.retries)
    }

    /// As [`Endpoint::request`] for an Interest element, sent once. Its Nonce is replaced.
    ///
    /// # Errors
    /// As there; what is no Interest counts as too many.
    pub fn request_encoded(&mut self, now: Tick, wire: Vec<u8>) -> Result<RequestId, TooMany> {
        self.express(now, wire, Owner::Application, 0)
    }

    /// Signs commands and registrations with `signer` from now on, instead of with a digest.
    pub fn sign_commands_with(&mut self, signer: Signer) {
        self.command_signer = signer;
    }

    /// Sends the signed management command `[module, verb]`. Its end is an [`Event::Answered`](super::Event::Answered)
    /// whose content is a [`ControlResponse`](onym_wire::mgmt::ControlResponse).
    ///
    /// # Errors
    /// [`CommandError`] when [`PENDING_MAX`](super::PENDING_MAX) requests wait already, or the signer fails.
    pub fn command(
        &mut self,
        now: Tick,
        verb: [&str; 2],
        parameters: &ControlParameters,
    ) -> Result<RequestId, CommandError> {
        let wire = self.encode_command(now, verb, parameters)?;
        Ok(self.express(now, wire, Owner::Application, 0)?)
    }

    /// As [`Endpoint::command`] to whoever takes commands under `prefix`, signed by `signer`.
    ///
    /// # Errors
    /// As there.
    pub fn command_to(
        &mut self,
        now: Tick,
        prefix: &Name,
        verb: [&str; 2],
        parameters: &ControlParameters,
        signer: &Signer,
    ) -> Result<RequestId, CommandError> {
        let fresh = self.freshness(now);
        let lifetime = COMMAND_LIFETIME;
        let wire = command::encode(prefix.as_ref(), verb, parameters, signer, fresh, lifetime)?;
        Ok(self.express(now, wire, Owner::Application, 0)?)
    }

    /// `/localhost/nfd`, or `/localhop/nfd` for a node on another machine.
    #[must_use]
    pub fn management_prefix(&self) -> Name {
        command::management_prefix(self.scope)
    }

    pub(super) fn encode_command(
        &mut self,
        now: Tick,
        verb: [&str; 2],
        parameters: &ControlParameters,
    ) -> Result<Vec<u8>, onym_crypto::Error> {
        let fresh = self.freshness(now);
        let prefix = match verb {
            ["log", _] => command::own_prefix(),
            _ => self.management_prefix(),
        };
        let signer = &self.command_signer;
        command::encode(prefix.as_ref(), verb, parameters, signer, fresh, COMMAND_LIFETIME)
    }

    /// A time later than every one before, and a random number.
    fn freshness(&mut self, now: Tick) -> Freshness {
        let ms = self.unix_ms_at_zero + now.0 / 1_000_000;
        self.last_command_ms = ms.max(self.last_command_ms + 1);
        Freshness {
            nonce: Some(self.rng.next_u64().to_be_bytes()),
            time_ms: Some(self.last_command_ms),
            seq: None,
        }
    }

    pub(super) fn express(
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

    pub(super) fn send_request(&mut self, now: Tick, id: RequestId) {
        let nonce = self.rng.nonce();
        let Some(entry) = self.pending.get_mut(id) else { return };
        entry.nonce = nonce;
        entry.sent = now;
        entry.resend = false;
        let deadline = now + entry.lifetime;
        self.arena.clear();
        entry.interest().write_forwarded(&mut self.arena, nonce, None, Hint::Keep);
        self.pending.arm(id, deadline);
        self.send_arena(now, PacketKind::Interest, LpOut::default());
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
        let (parameters, waiting) = self.registrations.remove(id)?;
        if let Some(request) = waiting {
            self.pending.remove(request);
        }
        self.command(now, ["rib", "unregister"], &parameters).ok()
    }

    /// Answers an Interest that a responder kept. `data` is a Data element.
    pub fn reply(&mut self, now: Tick, incoming: &Incoming, data: Buf) {
        let lp = LpOut { pit_token: incoming.token.clone(), ..LpOut::default() };
        self.send_data(now, Payload::Shared(data), lp);
    }

    /// Answers an Interest that a responder kept with a Nack.
    pub fn refuse(&mut self, now: Tick, incoming: &Incoming, reason: NackReason) {
        let (pit_token, nack) = (incoming.token.clone(), Some(reason));
        let lp = LpOut { pit_token, nack, ..LpOut::default() };
        self.send(now, PacketKind::Nack, Payload::Shared(incoming.bytes.clone()), lp);
    }

    /// Sends a Data element that no Interest asked for; the node must admit unsolicited Data.
    pub fn send_unsolicited(&mut self, now: Tick, data: Buf) {
        self.send_data(now, Payload::Shared(data), LpOut::default());
    }
}
