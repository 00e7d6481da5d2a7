//! The context of a call of an element.

use crate::chain::Origin;
use crate::effect::Effect;
use crate::events::Event;
use crate::freeze::Freeze;
use crate::ports::{Ports, Side};
use crate::rendezvous;
use crate::settings::{Return, Settings};
use crate::verdict::{Unsent, Verdict};
use crate::verify::Job;
use onym_frame::Buf;
use onym_link::{LpOut, Outbox, Outgoing, Packet, PacketKind, Payload, Transmit};
use onym_tables::pit::Token;
use onym_tables::{FaceId, HashKey, Rng, Tick};
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;
use onym_wire::types::PacketType;

/// What an element works with during one call.
#[derive(Debug)]
pub struct Cx<'a> {
    /// Now.
    pub now: Tick,
    /// Unix time, in milliseconds.
    pub unix_ms: u64,
    /// The faces.
    pub ports: &'a mut Ports,
    /// What is to be sent.
    pub out: &'a mut Outbox,
    /// Sides that are frozen.
    pub freeze: &'a mut Freeze,
    /// What the manager should hear of.
    pub events: &'a mut Vec<Event>,
    /// What the shell should do.
    pub effects: &'a mut Vec<Effect>,
    /// Signatures to verify.
    pub jobs: &'a mut Vec<Job>,
    /// Key of name hashes.
    pub key: &'a HashKey,
    /// Nonces and choices.
    pub rng: &'a mut Rng,
    /// What all kinds have in common.
    pub settings: &'a Settings,
    /// Packets not sent.
    pub unsent: &'a mut [u64; Unsent::COUNT],
    /// No new Interests.
    pub draining: bool,
}

impl Cx<'_> {
    /// The side of a face; `None` when it is gone.
    #[must_use]
    pub fn side_of(&self, id: FaceId) -> Option<Side> {
        self.ports.get(id).map(|p| p.side)
    }

    /// Puts one packet into the outbox.
    pub fn emit(&mut self, face: FaceId, kind: PacketKind, bytes: Payload, lp: LpOut) {
        if self.ports.get(face).is_none() {
            self.unsent[Unsent::FaceGone as usize] += 1;
            return;
        }
        self.count(face, kind);
        self.out.items.push(Transmit { face, what: Outgoing::Pull(kind, lp), bytes });
    }

    /// Counts what a whole forwarder put into the outbox behind position `from`.
    pub fn count_sent(&mut self, from: usize) {
        for at in from..self.out.items.len() {
            let item = &self.out.items[at];
            if let Some((kind, _)) = item.as_pull() {
                self.count(item.face, kind);
            }
        }
    }

    fn count(&mut self, face: FaceId, kind: PacketKind) {
        if let Some(port) = self.ports.get_mut(face) {
            match kind {
                PacketKind::Interest => port.sent.interests += 1,
                PacketKind::Data => port.sent.data += 1,
                PacketKind::Nack => port.sent.nacks += 1,
            }
        }
    }

    /// Sends `packet` unchanged on `face`, with `token`. Says where it entered the chain, and who
    /// takes an Interest in from outside says that it was here.
    pub fn pass(&mut self, face: FaceId, packet: &Packet, token: Token) {
        self.pass_with(face, packet, token, self.origin(packet));
    }

    /// Sends `packet` unchanged on `face`, without token, as one that entered the chain there.
    pub fn pass_as(&mut self, face: FaceId, packet: &Packet, origin: Option<Origin>) {
        self.pass_with(face, packet, Token::new(), origin);
    }

    /// Where `packet` entered the chain; none where answers find back by other means.
    #[must_use]
    pub fn origin(&self, packet: &Packet) -> Option<Origin> {
        if let Some(origin) = Origin::of_packet(&packet.lp) {
            return Some(origin);
        }
        let port = self.ports.get(packet.face)?;
        (self.settings.return_by == Return::Token).then(|| port.entrance(self.key))
    }

    /// Sends `packet` on `face` with these fields of a chain.
    pub fn pass_with(
        &mut self,
        face: FaceId,
        packet: &Packet,
        token: Token,
        origin: Option<Origin>,
    ) {
        let lp = LpOut {
            pit_token: token,
            congestion_mark: packet.lp.congestion_mark,
            nack: packet.lp.nack,
            incoming_face: origin.map(Origin::told),
            no_cache: packet.lp.no_cache,
            non_discovery: packet.lp.non_discovery,
            prefix_announcement: packet.lp.prefix_announcement.clone(),
        };
        self.emit(face, packet.kind(), Payload::Shared(packet.bytes.clone()), lp);
    }

    /// The token that an Interest from `face` leaves with, so that its answer finds back.
    #[must_use]
    pub fn token_onward(&self, face: FaceId, token: &Token) -> Token {
        if self.settings.return_by != Return::Token {
            return Token::new();
        }
        let Some(side) = self.side_of(face) else { return Token::new() };
        if token.is_empty() && self.ports.side(side).len() < 2 {
            return Token::new();
        }
        let Some(tag) = self.ports.tag(face) else { return Token::new() };
        let mut octets = [0; 35];
        octets[..3].copy_from_slice(&tag);
        let Some(room) = octets.get_mut(3..3 + token.len()) else { return Token::new() };
        room.copy_from_slice(token);
        Token::try_from(&octets[..3 + token.len()]).unwrap_or_default()
    }

    /// Sends what answers (Data, Nack) back to `side`: to the face that its token names, else by
    /// the configured way. How many copies left.
    pub fn send_back(&mut self, packet: &Packet, side: Side) -> usize {
        if let Some((face, rest)) = self.ports.untag(&packet.lp.pit_token, side) {
            let rest = Token::try_from(rest).unwrap_or_default();
            self.pass(face, packet, rest);
            return 1;
        }
        let faces = self.ports.side(side).len();
        if self.settings.return_by == Return::Hash
            && faces > 1
            && let Some(face) = self.hashed(packet, side)
        {
            self.pass(face, packet, Token::new());
            return 1;
        }
        for at in 0..faces {
            let face = self.ports.side(side)[at];
            self.pass(face, packet, Token::new());
        }
        faces
    }

    fn hashed(&self, packet: &Packet, side: Side) -> Option<FaceId> {
        let cut = rendezvous::cut(name_of(packet)?, self.settings.hash_components);
        self.ports.choose(side, rendezvous::stable_hash(cut))
    }

    /// Answers an Interest by a Nack.
    pub fn nack(&mut self, packet: &Packet, reason: NackReason) {
        let lp = LpOut {
            pit_token: packet.lp.pit_token.clone(),
            nack: Some(reason),
            ..LpOut::default()
        };
        self.emit(packet.face, PacketKind::Nack, Payload::Shared(packet.bytes.clone()), lp);
    }

    /// Answers `packet` by `data`.
    pub fn answer(&mut self, packet: &Packet, data: Buf) {
        let lp = LpOut { pit_token: packet.lp.pit_token.clone(), ..LpOut::default() };
        self.emit(packet.face, PacketKind::Data, Payload::Shared(data), lp);
    }

    /// Keeps `packet` when `side` is frozen: its verdict, or the packet back.
    ///
    /// # Errors
    /// The verdict, when it is frozen.
    pub fn hold(&mut self, side: Side, packet: Packet) -> Result<Packet, Verdict> {
        self.freeze.hold(side, packet)
    }
}

/// The value of a packet's name; `None` when it is malformed.
pub(crate) fn name_of(packet: &Packet) -> Option<&[u8]> {
    match PacketType::of(&packet.bytes)? {
        PacketType::Interest => Interest::parse(&packet.bytes).ok().map(|i| i.name.value()),
        PacketType::Data => Data::parse(&packet.bytes).ok().map(|d| d.name.value()),
        _ => None,
    }
}
