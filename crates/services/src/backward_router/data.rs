//! What answers: Data and Nacks from the producer side.

use super::BackwardRouter;
use crate::element::Cx;
use crate::verdict::Verdict;
use onym_link::{LpOut, Packet, PacketKind, Payload};
use onym_tables::{FaceId, NameHashes};
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;

impl BackwardRouter {
    pub(super) fn data(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Verdict {
        let Ok(data) = Data::parse(&packet.bytes) else { return Verdict::Malformed };
        self.counters.data += 1;
        let name = data.name.value();
        let hashes = NameHashes::new(cx.key, name, self.pit.prefix_lengths());
        let mut matched = std::mem::take(&mut self.matched);
        matched.clear();
        let digest = || onym_crypto::digest::implicit_digest(data.wire);
        self.pit.matches(cx.key, name, &hashes, digest, &mut matched);
        self.told.clear();
        for slot in &matched {
            self.satisfy(cx, packet, *slot, data.freshness_ms);
        }
        let any = !matched.is_empty();
        self.matched = matched;
        if any {
            return Verdict::Satisfied;
        }
        self.counters.unsolicited += 1;
        Verdict::Unsolicited
    }

    /// Sends Data to everyone who asked by this entry, once each, and ends it.
    fn satisfy(&mut self, cx: &mut Cx<'_>, packet: &Packet, slot: u32, freshness_ms: u64) {
        self.counters.satisfied += 1;
        let entry = self.pit.entry(slot);
        if let Some(out) = entry.out_record(packet.face).filter(|_| entry.info.tries == 0) {
            let us = u64::try_from(cx.now.since(out.sent).as_micros()).unwrap_or(u64::MAX);
            self.rtt.add(us);
            self.srtt_us = (self.srtt_us * 7 + us.min(10_000_000)) / 8;
        }
        for at in 0..self.pit.entry(slot).ins.len() {
            let record = &self.pit.entry(slot).ins[at];
            let (face, token) = (record.face, record.token.clone());
            let is_over = record.expiry <= cx.now;
            if is_over || self.told.iter().any(|(f, t)| *f == face && *t == token) {
                continue;
            }
            cx.pass(face, packet, token.clone());
            self.told.push((face, token));
        }
        self.remember(cx, slot, freshness_ms);
        self.pit.erase(slot);
    }

    /// A Nonce may come round again where the answer is not fresh that long.
    fn remember(&mut self, cx: &Cx<'_>, slot: u32, freshness_ms: u64) {
        if !self.pit.must_be_fresh(slot) || freshness_ms >= self.dead.lifetime_ms() {
            return;
        }
        let hash = self.pit.whole_hash(slot, cx.key);
        let Self { pit, dead, .. } = self;
        for out in &pit.entry(slot).outs {
            dead.insert(cx.now, hash, out.nonce);
        }
    }

    pub(super) fn nacked(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Verdict {
        let Ok(interest) = Interest::parse(&packet.bytes) else { return Verdict::Malformed };
        let hashes = NameHashes::new(cx.key, interest.name.value(), 0);
        let look = self.pit.look(&super::key_of(cx, &interest, &hashes));
        let Some(slot) = look.found else { return Verdict::NackNoEntry };
        let (nonce, now) = (interest.nonce.map(u32::from_be_bytes), cx.now);
        let entry = self.pit.entry_mut(slot);
        let out = entry.out_record_mut(packet.face).filter(|o| Some(o.nonce) == nonce);
        let Some(out) = out else { return Verdict::NackNoEntry };
        out.nack = Some(packet.lp.nack.and_then(|n| u8::try_from(n.0).ok()).unwrap_or(0));
        if entry.is_pending(now) {
            return Verdict::NackAbsorbed;
        }
        let least = entry.outs.iter().filter_map(|o| o.nack).filter(|n| *n > 0).min();
        let reason = NackReason(u64::from(least.unwrap_or(0)));
        for at in 0..entry_len(self, slot) {
            self.pass_nack(cx, slot, at, &interest, reason);
        }
        self.expire(cx, slot);
        // It ended by a Nack, not by its time.
        self.counters.expired -= 1;
        Verdict::NackForwarded
    }

    fn pass_nack(
        &mut self,
        cx: &mut Cx<'_>,
        slot: u32,
        at: usize,
        interest: &Interest<'_>,
        reason: NackReason,
    ) {
        let record = &self.pit.entry(slot).ins[at];
        if record.expiry <= cx.now {
            return;
        }
        let (face, nonce): (FaceId, u32) = (record.face, record.nonce);
        let lp = LpOut { pit_token: record.token.clone(), nack: Some(reason), ..LpOut::default() };
        let write = |arena: &mut Vec<u8>| {
            interest.write_forwarded(arena, nonce.to_be_bytes(), None, false);
        };
        let bytes = Payload::Arena(cx.out.write(write));
        cx.emit(face, PacketKind::Nack, bytes, lp);
    }
}

fn entry_len(router: &BackwardRouter, slot: u32) -> usize {
    router.pit.entry(slot).ins.len()
}
