//! Frames in.
//!
//! In: a frame.  Out: a packet with its link-layer fields.  Drops: all of [`FrameVerdict`] that
//! are not accepted.  Counters: one verdict for each frame.

use super::reassembly::{Fragment, Outcome};
use super::{FrameVerdict, Link, LinkConfig, Received};
use crate::{LpIn, Packet};
use onym_frame::{Buf, RxFrame};
use onym_tables::pit::Token;
use onym_tables::{FaceId, Tick};
use onym_wire::lp::{LpPacket, PathField, ServiceFields, token_and_packet};
use onym_wire::tlv::Malformed;
use onym_wire::types::PacketType;
use std::num::NonZeroU64;
use std::ops::Range;

impl Link {
    /// Takes one frame of the face: one TLV, without padding behind it.
    #[inline]
    pub fn receive(&mut self, now: Tick, face: FaceId, frame: RxFrame) -> Received {
        let (pit_token, bytes) = match PacketType::of(&frame.bytes) {
            Some(PacketType::Interest | PacketType::Data) => (Token::new(), frame.bytes),
            Some(PacketType::LpPacket) => match with_token(&frame.bytes) {
                Some((token, packet)) => (token, frame.bytes.into_slice(packet)),
                None => return self.receive_other(now, face, frame),
            },
            _ => return self.receive_other(now, face, frame),
        };
        self.counters.verdicts[FrameVerdict::Packet as usize] += 1;
        Received::Packet(Packet { face, bytes, lp: LpIn { pit_token, ..LpIn::default() } })
    }

    fn receive_other(&mut self, now: Tick, face: FaceId, frame: RxFrame) -> Received {
        let received = match PacketType::of(&frame.bytes) {
            Some(PacketType::LpPacket) => {
                self.receive_lp(now, face, &frame).unwrap_or_else(Received::Dropped)
            }
            Some(typ) if !typ.is_push() || self.config.push => {
                Received::Packet(Packet { face, bytes: frame.bytes, lp: LpIn::default() })
            }
            _ => Received::Dropped(FrameVerdict::LpMalformed),
        };
        let verdict = match &received {
            Received::Packet(_) => FrameVerdict::Packet,
            Received::Held => FrameVerdict::FragmentHeld,
            Received::Idle => FrameVerdict::Idle,
            Received::Dropped(verdict) => *verdict,
        };
        self.counters.verdicts[verdict as usize] += 1;
        received
    }

    /// Takes `count` push frames, which are packets as they are, if the face has the push half:
    /// whether it has.
    pub fn receive_push(&mut self, count: usize) -> bool {
        if self.config.push {
            self.counters.verdicts[FrameVerdict::Packet as usize] += count as u64;
        }
        self.config.push
    }

    fn receive_lp(
        &mut self,
        now: Tick,
        face: FaceId,
        frame: &RxFrame,
    ) -> Result<Received, FrameVerdict> {
        let packet = LpPacket::parse(&frame.bytes).map_err(refusal)?;
        let acks = self.receive_acks(now, &packet);
        let Some(fragment) = packet.fragment else {
            let any = self.receive_path(now, &frame.bytes) || acks;
            return if any { Ok(Received::Idle) } else { Err(FrameVerdict::LpEmpty) };
        };
        self.receive_sequence(now, &packet)?;
        let told = match self.config.services {
            true => told_by_service(&packet, &frame.bytes)?,
            false => Told { attached: self.context(&packet), ..Told::default() },
        };
        let (bytes, lp) = if !packet.is_fragmented() {
            let bytes = frame.bytes.slice_of(fragment);
            (bytes, fields(&packet, told, |part| frame.bytes.slice_of(part)))
        } else {
            match self.reassemble(now, frame.endpoint, &packet, told)? {
                Some(whole) => whole,
                None => return Ok(Received::Held),
            }
        };
        let lp = checked(&self.config, lp, &bytes)?;
        Ok(Received::Packet(Packet { face, bytes, lp }))
    }

    /// Whether a frame without a packet says something of the path, to a face that listens to it.
    fn receive_path(&mut self, now: Tick, frame: &[u8]) -> bool {
        let (Some(path), Some(field)) = (&mut self.path, PathField::parse(frame)) else {
            return false;
        };
        path.receive(now, field, frame.len());
        self.settle_lengths();
        true
    }

    /// The context of the trace of an Interest, where this face takes it.
    fn context<'a>(&self, packet: &LpPacket<'a>) -> Option<&'a [u8]> {
        packet.trace_context.filter(|_| self.config.traces && begins_interest(packet))
    }

    /// Whether there were acknowledgements.
    fn receive_acks(&mut self, now: Tick, packet: &LpPacket<'_>) -> bool {
        let mut any = false;
        for ack in packet.acks() {
            any = true;
            if let Some(reliability) = &mut self.reliability {
                reliability.acknowledge(now, ack);
            }
        }
        any
    }

    fn receive_sequence(&mut self, now: Tick, packet: &LpPacket<'_>) -> Result<(), FrameVerdict> {
        let Some(reliability) = &mut self.reliability else { return Ok(()) };
        let Some(tx_sequence) = packet.tx_sequence else { return Ok(()) };
        reliability.received_tx(now, tx_sequence);
        match packet.sequence {
            Some(sequence) if !reliability.is_new(now, sequence) => {
                Err(FrameVerdict::DuplicateSequence)
            }
            _ => Ok(()),
        }
    }

    fn reassemble(
        &mut self,
        now: Tick,
        endpoint: u64,
        packet: &LpPacket<'_>,
        told: Told<'_>,
    ) -> Result<Option<(Buf, LpIn)>, FrameVerdict> {
        if !self.config.reassembly {
            return Err(FrameVerdict::FragRefused);
        }
        if let Some(reliability) = &self.reliability {
            self.reassembler.set_patience(reliability.patience());
        }
        let fragment = Fragment {
            endpoint,
            sequence: packet.sequence,
            index: packet.frag_index,
            count: packet.frag_count,
            bytes: packet.fragment.unwrap_or_default(),
        };
        // A copy: the announcement must not keep the frame of its first fragment alive.
        match self.reassembler.insert(now, fragment, || fields(packet, told, Buf::copy_from)) {
            Outcome::Complete(bytes, lp) => Ok(Some((bytes, lp))),
            Outcome::Held => Ok(None),
            Outcome::Refused(verdict) => Err(verdict),
        }
    }
}

/// PIT token and packet of a frame that holds a whole Interest or Data and no other field, as nearly all
/// do: a look at it before it is received.
#[inline]
#[must_use]
pub fn glance(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    match PacketType::of(frame)? {
        PacketType::Interest | PacketType::Data => Some((&[], frame)),
        PacketType::LpPacket => token_and_packet(frame),
        _ => None,
    }
}

/// Token, and where the Interest or Data is, of a frame that has nothing beside it: no rule of this
/// face is about such.
#[inline]
fn with_token(frame: &[u8]) -> Option<(Token, Range<usize>)> {
    let (token, packet) = token_and_packet(frame)?;
    if !matches!(PacketType::of(packet), Some(PacketType::Interest | PacketType::Data)) {
        return None;
    }
    // The packet is what the frame ends with.
    Some((Token::try_from(token).ok()?, frame.len() - packet.len()..frame.len()))
}

fn refusal(malformed: Malformed) -> FrameVerdict {
    match malformed {
        Malformed::UnknownHeader(_) => FrameVerdict::LpUnknownCritical,
        _ => FrameVerdict::LpMalformed,
    }
}

/// What a frame says beside the fields of NDNLPv2 itself.
#[derive(Clone, Copy, Default)]
struct Told<'a> {
    /// Where the packet entered a chain of services.
    origin: Option<NonZeroU64>,
    /// What goes with an Interest in the place of an announcement: next hops, or a context.
    attached: Option<&'a [u8]>,
}

/// Whether an Interest begins in this frame.
fn begins_interest(packet: &LpPacket<'_>) -> bool {
    packet.frag_index == 0
        && packet.nack.is_none()
        && packet.fragment.and_then(PacketType::of) == Some(PacketType::Interest)
}

/// What a service of the same chain says of a packet, by the frame that has its beginning.
fn told_by_service<'a>(packet: &LpPacket<'_>, frame: &'a [u8]) -> Result<Told<'a>, FrameVerdict> {
    let told = ServiceFields::parse(frame).map_err(refusal)?;
    let begins = begins_interest(packet);
    // Next hops take the place of an announcement, and an origin that of a face.
    let is_forbidden = packet.next_hop_face.is_some()
        || begins && packet.prefix_announcement.is_some()
        || !begins && told.next_hops.is_some();
    if is_forbidden {
        return Err(FrameVerdict::UnexpectedField);
    }
    Ok(Told { origin: told.origin, attached: told.next_hops })
}

/// The fields of a packet that matter to forwarding. `IncomingFaceId` of a peer is ignored.
fn fields(packet: &LpPacket<'_>, told: Told<'_>, keep: impl FnOnce(&[u8]) -> Buf) -> LpIn {
    let mut pit_token = Token::new();
    if let Some(token) = packet.pit_token {
        pit_token = Token::try_from(token).expect("invariant: the parser allows 32 octets");
    }
    // No face has the number 0, nor the largest one.
    let face = |number: u64| NonZeroU64::new(number).unwrap_or(NonZeroU64::MAX);
    LpIn {
        pit_token,
        congestion_mark: u8::try_from(packet.congestion_mark).unwrap_or(u8::MAX),
        nack: packet.nack,
        next_hop_face: packet.next_hop_face.map(face).or(told.origin),
        no_cache: packet.no_cache,
        non_discovery: packet.non_discovery,
        prefix_announcement: packet.prefix_announcement.or(told.attached).map(keep),
    }
}

/// Applies the rules about which field may go with which packet, and what this face allows.
fn checked(config: &LinkConfig, mut lp: LpIn, bytes: &[u8]) -> Result<LpIn, FrameVerdict> {
    let is_face_chosen = lp.next_hop_face.is_some() && !config.services;
    // An announcement is a Data element and begins as one.
    let is_context =
        |octets: &Buf| config.traces && PacketType::of(octets) != Some(PacketType::Data);
    let has_context = lp.prefix_announcement.as_ref().is_some_and(is_context);
    let forbidden = match (PacketType::of(bytes), lp.nack) {
        (Some(PacketType::Interest), None) => {
            lp.no_cache
                || (lp.prefix_announcement.is_some() && !config.services && !has_context)
                || (is_face_chosen && !config.local_fields)
        }
        (Some(PacketType::Interest), Some(_)) => {
            is_face_chosen || lp.no_cache || lp.non_discovery || lp.prefix_announcement.is_some()
        }
        (Some(PacketType::Data), nack) => nack.is_some() || is_face_chosen || lp.non_discovery,
        (Some(PacketType::PushFrame), nack) if config.push => {
            nack.is_some()
                || lp.next_hop_face.is_some()
                || lp.no_cache
                || lp.non_discovery
                || lp.prefix_announcement.is_some()
        }
        _ => return Err(FrameVerdict::LpMalformed),
    };
    if forbidden {
        return Err(FrameVerdict::UnexpectedField);
    }
    if !config.self_learning && !config.services {
        lp.non_discovery = false;
        lp.prefix_announcement = lp.prefix_announcement.filter(|_| has_context);
    }
    Ok(lp)
}
