//! The backward router: remembers Interests and takes Data back (the PIT).
//!
//! In: Interests from the consumer side, Data and Nacks from the producer side; the rest is
//! `wrong_side`.  Out: an Interest to every face of the producer side, Data to everyone who asked.
//! Tables: the PIT of `onym-tables` with one downstream for each face and token, bounded by
//! `capacity`; full, the Interest not asked for longest gives way. Dead nonces.
//! Verdicts: `forwarded` `aggregated` `suppressed` `satisfied` `unsolicited` `duplicate_nonce`
//! `hop_limit_zero` `nack_forwarded` `nack_absorbed` `nack_no_entry` `wrong_side` `no_face`
//! `draining` `malformed`.

mod data;
mod hand_over;
mod recency;

use crate::element::{Cx, Element, Method, Refusal, Request, read};
use crate::histogram::Histogram;
use crate::ports::Side;
use crate::verdict::Verdict;
use onym_link::{LpOut, Packet, PacketKind, Payload};
use onym_tables::dead_nonces::{self, DeadNonces};
use onym_tables::pit::{Due, InRecord, Key, Look, OutRecord, Pit, PitError};
use onym_tables::{FaceId, NameHashes, Tick};
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;
use recency::Recency;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// Downstreams of one pending Interest: the oldest gives way.
const DOWNSTREAMS_MAX: usize = 64;
/// First interval of suppression, and the least time between retransmissions of our own.
const INTERVAL_MIN_MS: u64 = 10;
/// Timers that one call carries out at most.
const DUE_MAX: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Retransmission {
    Suppress,
    Active,
    Paper,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    capacity: usize,
    retransmission: Retransmission,
    window_ms: u64,
    retries: u32,
    lifetime_max_ms: u64,
    nack: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            capacity: 65_536,
            retransmission: Retransmission::Suppress,
            window_ms: 250,
            retries: 3,
            lifetime_max_ms: 60_000,
            nack: true,
        }
    }
}

/// What the router keeps with a pending Interest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Info {
    sent: Tick,
    interval_ms: u64,
    tries: u32,
    /// Its latest place in the order of use.
    stamp: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counters {
    retransmitted: u64,
    unsolicited: u64,
    inserted: u64,
    aggregated: u64,
    suppressed: u64,
    satisfied: u64,
    expired: u64,
    evicted: u64,
    loops: u64,
    data: u64,
}

/// The element.
#[derive(Debug)]
pub(crate) struct BackwardRouter {
    config: Config,
    pit: Pit<Info>,
    dead: DeadNonces,
    recency: Recency,
    counters: Counters,
    rtt: Histogram,
    /// Smoothed round trip, in microseconds.
    srtt_us: u64,
    matched: Vec<u32>,
    told: Vec<(FaceId, onym_tables::pit::Token)>,
    period_start: (u64, u64),
    period: (u64, u64),
}

/// An Interest on its way in.
struct Incoming<'a> {
    packet: &'a Packet,
    interest: Interest<'a>,
    hash: u64,
    nonce: u32,
    until: Tick,
}

impl BackwardRouter {
    pub(crate) fn new() -> Self {
        let config = Config::default();
        Self {
            pit: Pit::new(config.capacity),
            config,
            dead: DeadNonces::new(1 << 18, dead_nonces::LIFETIME_MS),
            recency: Recency::default(),
            counters: Counters::default(),
            rtt: Histogram::default(),
            srtt_us: 100_000,
            matched: Vec::new(),
            told: Vec::new(),
            period_start: (0, 0),
            period: (0, 0),
        }
    }

    fn interest(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Verdict {
        let Ok(interest) = Interest::parse(&packet.bytes) else { return Verdict::Malformed };
        if interest.hop_limit == Some(0) {
            return Verdict::HopLimitZero;
        }
        if cx.draining {
            cx.nack(packet, NackReason::CONGESTION);
            return Verdict::Draining;
        }
        let hashes = NameHashes::new(cx.key, interest.name.value(), 0);
        let nonce = interest.nonce.map_or_else(|| cx.rng.next_u32(), u32::from_be_bytes);
        let lifetime = interest.lifetime_or_default().min(self.config.lifetime_max_ms);
        let until = cx.now.plus_ms(lifetime);
        let incoming = Incoming { packet, interest, hash: hashes.whole, nonce, until };
        if self.dead.contains(cx.now, incoming.hash, nonce) {
            return self.looped(cx, &incoming);
        }
        let key = key_of(cx, &interest, &hashes);
        let look = self.pit.look(&key);
        match look.found {
            Some(slot) => self.again(cx, &incoming, slot),
            None => self.first(cx, &incoming, &key, look),
        }
    }

    fn looped(&mut self, cx: &mut Cx<'_>, incoming: &Incoming<'_>) -> Verdict {
        self.counters.loops += 1;
        if self.config.nack {
            cx.nack(incoming.packet, NackReason::DUPLICATE);
        }
        Verdict::DuplicateNonce
    }

    /// An Interest that is not pending yet.
    fn first(
        &mut self,
        cx: &mut Cx<'_>,
        incoming: &Incoming<'_>,
        key: &Key<'_>,
        look: Look,
    ) -> Verdict {
        let mut look = look;
        while self.pit.len() >= self.pit.entries_max() {
            let Some(oldest) = self.oldest() else { return Verdict::NoEntry };
            self.counters.evicted += 1;
            self.pit.erase(oldest);
            look = self.pit.look(key);
        }
        let slot = match self.pit.insert(&look, key, incoming.interest.wire) {
            Ok(slot) => slot,
            Err(PitError::Full | PitError::Variants) => return Verdict::NoEntry,
            Err(_) => return Verdict::NoEntry,
        };
        self.counters.inserted += 1;
        self.join(cx, incoming, slot);
        self.pit.entry_mut(slot).info.interval_ms = INTERVAL_MIN_MS;
        self.send(cx, incoming.packet, slot, incoming.nonce)
    }

    /// The pending Interest that was asked for longest ago.
    fn oldest(&mut self) -> Option<u32> {
        let Self { recency, pit, .. } = self;
        recency.pop(|slot, stamp| pit.is_live(slot) && pit.entry(slot).info.stamp == stamp)
    }

    /// An Interest that is pending already.
    fn again(&mut self, cx: &mut Cx<'_>, incoming: &Incoming<'_>, slot: u32) -> Verdict {
        let (face, token) = (incoming.packet.face, &incoming.packet.lp.pit_token);
        let entry = self.pit.entry(slot);
        let is_own = |r: &InRecord| r.face == face && r.token == *token;
        let known = entry.ins.iter().any(is_own);
        let elsewhere = |r: &InRecord| r.nonce == incoming.nonce && !is_own(r);
        if entry.ins.iter().any(elsewhere) {
            return self.looped(cx, incoming);
        }
        let info = entry.info;
        self.join(cx, incoming, slot);
        let interval = match self.config.retransmission {
            Retransmission::Paper => self.config.window_ms,
            _ => info.interval_ms,
        };
        if cx.now < info.sent.plus_ms(interval) {
            if known {
                self.counters.suppressed += 1;
                return Verdict::Suppressed;
            }
            self.counters.aggregated += 1;
            return Verdict::Aggregated;
        }
        let next = (info.interval_ms * 2).min(self.config.window_ms).max(INTERVAL_MIN_MS);
        self.pit.entry_mut(slot).info.interval_ms = next;
        self.counters.retransmitted += 1;
        self.send(cx, incoming.packet, slot, incoming.nonce)
    }

    /// Notes who asked.
    fn join(&mut self, cx: &mut Cx<'_>, incoming: &Incoming<'_>, slot: u32) {
        let record = InRecord {
            face: incoming.packet.face,
            nonce: incoming.nonce,
            expiry: incoming.until,
            token: incoming.packet.lp.pit_token.clone(),
            non_discovery: false,
        };
        self.join_record(cx.now, slot, record);
    }

    fn join_record(&mut self, now: Tick, slot: u32, record: InRecord) {
        let stamp = self.recency.push(slot);
        let entry = self.pit.entry_mut(slot);
        entry.info.stamp = stamp;
        let same = |r: &&mut InRecord| r.face == record.face && r.token == record.token;
        match entry.ins.iter_mut().find(same) {
            Some(known) => *known = record,
            None => {
                if entry.ins.len() >= DOWNSTREAMS_MAX {
                    entry.ins.remove(0);
                }
                entry.ins.push(record);
            }
        }
        let until = entry.ins.iter().map(|r| r.expiry).max().unwrap_or(now);
        self.pit.set_expiry(slot, until);
        let Self { recency, pit, .. } = self;
        recency.tidy(pit.len(), |slot, stamp| {
            pit.is_live(slot) && pit.entry(slot).info.stamp == stamp
        });
    }

    /// Sends the Interest upstream, or keeps it while that side is frozen.
    fn send(&mut self, cx: &mut Cx<'_>, packet: &Packet, slot: u32, nonce: u32) -> Verdict {
        let info = &mut self.pit.entry_mut(slot).info;
        (info.sent, info.tries) = (cx.now, 0);
        self.arm(cx, slot);
        if cx.freeze.is_frozen(Side::Producer) {
            let held = cx.hold(Side::Producer, packet.clone());
            return held.err().unwrap_or(Verdict::Held);
        }
        if self.upstream(cx, slot, packet, nonce) { Verdict::Forwarded } else { Verdict::NoFace }
    }

    /// Writes the Interest once and sends it to every face of the producer side.
    fn upstream(&mut self, cx: &mut Cx<'_>, slot: u32, packet: &Packet, nonce: u32) -> bool {
        let Ok(interest) = Interest::parse(&packet.bytes) else { return false };
        let hop_limit = interest.hop_limit.map(|n| n.saturating_sub(1));
        let write = |arena: &mut Vec<u8>| {
            interest.write_forwarded(arena, nonce.to_be_bytes(), hop_limit, false);
        };
        let range = cx.out.write(write);
        let (mark, until) = (packet.lp.congestion_mark, self.until(slot));
        let mut any = false;
        for at in 0..cx.ports.side(Side::Producer).len() {
            let face = cx.ports.side(Side::Producer)[at];
            if cx.ports.get(face).is_none_or(|p| p.draining) {
                continue;
            }
            let lp = LpOut { congestion_mark: mark, ..LpOut::default() };
            cx.emit(face, PacketKind::Interest, Payload::Arena(range.clone()), lp);
            self.note_out(slot, face, nonce, cx.now, until);
            any = true;
        }
        any
    }

    fn until(&self, slot: u32) -> Tick {
        self.pit.entry(slot).ins.iter().map(|r| r.expiry).max().unwrap_or_default()
    }

    fn note_out(&mut self, slot: u32, face: FaceId, nonce: u32, sent: Tick, expiry: Tick) {
        let entry = self.pit.entry_mut(slot);
        if let Some(out) = entry.out_record_mut(face) {
            (out.nonce, out.sent, out.expiry, out.nack) = (nonce, sent, expiry, None);
            return;
        }
        let (nack, interval_us, marks) = (None, 0, 0);
        let deadline = Tick::NEVER;
        entry.outs.push(OutRecord {
            face,
            nonce,
            sent,
            expiry,
            nack,
            interval_us,
            deadline,
            marks,
        });
    }

    /// When the router sends again by itself.
    fn arm(&mut self, cx: &Cx<'_>, slot: u32) {
        let tries = self.pit.entry(slot).info.tries;
        if self.config.retransmission != Retransmission::Active || tries >= self.config.retries {
            return;
        }
        let rto = Duration::from_micros((self.srtt_us * 2) << tries.min(16));
        self.pit.set_timer(slot, cx.now + rto.max(Duration::from_millis(INTERVAL_MIN_MS)));
    }

    /// Sends a pending Interest again, with a new Nonce.
    fn again_by_itself(&mut self, cx: &mut Cx<'_>, slot: u32) {
        let info = &mut self.pit.entry_mut(slot).info;
        info.tries += 1;
        info.sent = cx.now;
        self.counters.retransmitted += 1;
        let face = self.pit.entry(slot).ins.first().map_or(FaceId::INVALID, |r| r.face);
        let bytes = onym_frame::Buf::copy_from(self.pit.interest(slot));
        let packet = Packet { face, bytes, lp: onym_link::LpIn::default() };
        let nonce = cx.rng.next_u32();
        self.upstream(cx, slot, &packet, nonce);
        self.arm(cx, slot);
    }

    /// Ends a pending Interest that nothing answered.
    fn expire(&mut self, cx: &Cx<'_>, slot: u32) {
        self.counters.expired += 1;
        let hash = self.pit.whole_hash(slot, cx.key);
        let Self { pit, dead, .. } = self;
        let entry = pit.entry(slot);
        let ours = entry.outs.iter().map(|o| o.nonce);
        for nonce in entry.ins.iter().map(|r| r.nonce).chain(ours) {
            dead.insert(cx.now, hash, nonce);
        }
        self.pit.erase(slot);
    }
}

/// What tells pending Interests apart: as everywhere, name, flags and hint.
fn key_of<'a>(cx: &Cx<'_>, interest: &Interest<'a>, hashes: &NameHashes) -> Key<'a> {
    let hint = &interest.forwarding_hint;
    Key {
        can_be_prefix: interest.can_be_prefix,
        must_be_fresh: interest.must_be_fresh,
        hint: if hint.is_empty() { 0 } else { cx.key.name(hint.value()).max(1) },
        ..Key::new(interest.name.value(), hashes)
    }
}

impl Element for BackwardRouter {
    fn receive(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Option<Verdict> {
        let side = cx.side_of(packet.face)?;
        Some(match (side, packet.kind()) {
            (Side::Consumer, PacketKind::Interest) => self.interest(cx, &packet),
            (Side::Producer, PacketKind::Data) => self.data(cx, &packet),
            (Side::Producer, PacketKind::Nack) => self.nacked(cx, &packet),
            _ => Verdict::WrongSide,
        })
    }

    fn resume(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        let Ok(interest) = Interest::parse(&packet.bytes) else { return };
        let hashes = NameHashes::new(cx.key, interest.name.value(), 0);
        let look = self.pit.look(&key_of(cx, &interest, &hashes));
        if let Some(slot) = look.found {
            let nonce = interest.nonce.map_or_else(|| cx.rng.next_u32(), u32::from_be_bytes);
            self.pit.entry_mut(slot).info.sent = cx.now;
            self.upstream(cx, slot, &packet, nonce);
        }
    }

    fn face_removed(&mut self, _: &mut Cx<'_>, face: FaceId, _: &str) {
        for slot in 0..self.pit.slots() {
            if !self.pit.is_live(slot) {
                continue;
            }
            let entry = self.pit.entry_mut(slot);
            entry.ins.retain(|r| r.face != face);
            entry.outs.retain(|r| r.face != face);
            if entry.ins.is_empty() {
                self.pit.erase(slot);
            }
        }
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        for _ in 0..DUE_MAX {
            match self.pit.pop_due(cx.now) {
                Some((slot, Due::Expiry)) => self.expire(cx, slot),
                Some((slot, Due::Strategy)) => self.again_by_itself(cx, slot),
                None => return,
            }
        }
    }

    fn poll_timeout(&self) -> Option<Tick> {
        self.pit.next_due()
    }

    fn config(&self) -> Value {
        serde_json::to_value(&self.config).unwrap_or_default()
    }

    fn configure(&mut self, _: &mut Cx<'_>, config: Value) -> Result<(), Refusal> {
        let config: Config = read(config)?;
        if config.capacity == 0 {
            return Err(Refusal::field("capacity", "at least 1"));
        }
        self.pit.set_entries_max(config.capacity);
        self.config = config;
        // At once: a smaller table must not stay large.
        while self.pit.len() > self.pit.entries_max() {
            let Some(oldest) = self.oldest() else { break };
            self.counters.evicted += 1;
            self.pit.erase(oldest);
        }
        Ok(())
    }

    fn stats(&self, cx: &Cx<'_>) -> (&'static str, Value) {
        let c = &self.counters;
        let value = json!({
            "retransmitted": c.retransmitted, "unsolicited": c.unsolicited,
            "entries": self.pit.len(), "capacity": self.config.capacity,
            "inserted": c.inserted, "aggregated": c.aggregated, "suppressed": c.suppressed,
            "satisfied": c.satisfied, "expired": c.expired, "evicted": c.evicted,
            "loops": c.loops, "rtt_ms": self.rtt.to_json(1000.0),
            "period": {
                "ms": cx.settings.report_ms, "unsolicited": self.period.0, "data": self.period.1,
            },
        });
        ("backward_router", value)
    }

    fn control(&mut self, cx: &mut Cx<'_>, request: &Request<'_>) -> Result<Value, Refusal> {
        match (request.resource, request.method) {
            ("table", Method::Get) => Ok(self.export(cx, request)),
            ("table", Method::Post) => self.import(cx, request),
            _ => Err(Refusal::no_path()),
        }
    }

    fn pending(&self) -> usize {
        self.pit.len()
    }

    fn period(&mut self, _: &mut Cx<'_>) {
        let now = (self.counters.unsolicited, self.counters.data);
        self.period = (now.0 - self.period_start.0, now.1 - self.period_start.1);
        self.period_start = now;
    }
}
