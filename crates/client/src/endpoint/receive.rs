//! Received frames, and the requests that their packets belong to.

use super::pending::Owner;
use super::{CONGESTION_WAIT, Endpoint, Event, FACE};
use crate::producer::{Answer, Incoming};
use crate::registration::{NotRegistered, RegistrationId};
use crate::request::{Packet, RequestId, Unanswered};
use onym_frame::RxFrame;
use onym_link::{FrameVerdict, LpOut, PacketKind, Payload, Received};
use onym_tables::Tick;
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;
use onym_wire::mgmt::{Block as _, ControlResponse};
use onym_wire::types::PacketType;

impl Endpoint {
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

    fn receive_packet(&mut self, now: Tick, packet: onym_link::Packet) {
        let taken = match (packet.lp.nack, PacketType::of(&packet.bytes)) {
            (Some(reason), _) => self.receive_nack(now, &packet, reason),
            (None, Some(PacketType::Data)) => self.receive_data(now, &packet),
            _ => self.receive_interest(now, packet),
        };
        if taken.is_none() {
            self.counters.malformed += 1;
        }
    }

    fn receive_data(&mut self, now: Tick, packet: &onym_link::Packet) -> Option<()> {
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
        packet: &onym_link::Packet,
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

    fn receive_interest(&mut self, now: Tick, packet: onym_link::Packet) -> Option<()> {
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
                lp.nack = Some(reason);
                self.send(now, PacketKind::Nack, Payload::Shared(incoming.bytes), lp);
            }
            Answer::Nothing => {}
        }
        Some(())
    }

    /// Ends the request `id` and tells its owner.
    pub(super) fn finish(&mut self, now: Tick, id: RequestId, answer: Result<Packet, Unanswered>) {
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
}
