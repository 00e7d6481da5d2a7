//! In: a PIT entry and something that happened to it.  Out: the strategy's actions, carried out by
//! [`act`]; for an Interest, its verdict.
//! Drops: no_route, no_eligible_next_hop, strategy_rejected, next_hop_face_invalid, congestion.
//! Counters: none of its own.

use super::act::{self, Done, Upstream};
use super::interest::{Incoming, fib_lookup};
use super::{finalize, is_localhop, is_localhost};
use crate::strategy::{Ctx, Refusal, Strategy};
use crate::{Forwarder, Verdict};
use onym_link::Outbox;
use onym_tables::hash::NameHashes;
use onym_tables::pit::FibMatch;
use onym_tables::{FaceId, Tick};
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;

/// The Interest about which a strategy decides.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) interest: &'a Interest<'a>,
    pub(crate) hashes: &'a NameHashes,
    pub(crate) by_hint: bool,
}

/// Lets the strategy of the name decide; its actions wait in `fw.actions`.
pub(crate) fn ask(
    fw: &mut Forwarder,
    now: Tick,
    slot: u32,
    target: &Target<'_>,
    ask: impl FnOnce(&dyn Strategy, &mut Ctx<'_>),
) {
    let name = target.interest.name.value();
    let (fib_prefix, next_hops) =
        fib_lookup::run(&fw.fib, &fw.key, target.interest, target.hashes, target.by_hint);
    let (_, choice) = fw.choices.effective(target.hashes, name);
    let entry = fw.pit.entry_mut(slot);
    let at = fib_prefix.bytes.as_ptr().addr().wrapping_sub(target.interest.wire.as_ptr().addr());
    entry.fib = FibMatch {
        hash: fib_prefix.hash,
        // Zero for the empty prefix, which lies nowhere.
        at: u16::try_from(at).unwrap_or(0),
        octets: u16::try_from(fib_prefix.bytes.len()).unwrap_or(0),
        len: u8::try_from(fib_prefix.len).unwrap_or(0),
    };
    let mut ctx = Ctx {
        now,
        name,
        entry,
        next_hops,
        fib_prefix,
        is_localhop: is_localhop(name),
        is_localhost: is_localhost(name),
        faces: &fw.faces,
        measurements: &mut fw.measurements,
        key: &fw.key,
        rng: &mut fw.rng,
        actions: &mut fw.actions,
    };
    ask(&*choice.strategy, &mut ctx);
}

/// An Interest has its in-record: where does it go?
pub(crate) fn interest(
    fw: &mut Forwarder,
    now: Tick,
    slot: u32,
    incoming: &Incoming<'_>,
    out: &mut Outbox,
) -> Verdict {
    let mut upstream = Upstream::new(incoming);
    if let Some(face) = incoming.packet.lp.next_hop_face {
        // The application chose: no strategy, no scope check.
        if fw.faces.get(face).is_none() {
            return Verdict::NextHopFaceInvalid;
        }
        let mut done = Done::default();
        act::send(fw, now, slot, &mut upstream, face, &mut done, out);
        return verdict(&done, false);
    }
    let is_first = fw.pit.entry(slot).outs.is_empty();
    upstream.is_new = is_first;
    let ingress = incoming.ingress;
    let by_hint = incoming.hint != 0;
    let target = Target { interest: incoming.interest, hashes: incoming.hashes, by_hint };
    ask(fw, now, slot, &target, |strategy, ctx| strategy.after_receive_interest(ctx, ingress));
    let (done, ended) = act::run_open(fw, now, slot, &mut upstream, out);
    if done.congested && done.sent == 0 {
        act::nack(fw, slot, incoming.interest, ingress, NackReason::CONGESTION, out);
        finalize::run(fw, now, slot);
        return Verdict::Congestion;
    }
    if ended {
        finalize::run(fw, now, slot);
    }
    verdict(&done, !is_first)
}

fn verdict(done: &Done, is_pending: bool) -> Verdict {
    if done.sent > 0 {
        return if done.sent == done.delivered { Verdict::Delivered } else { Verdict::Forwarded };
    }
    match done.refusal {
        Some(Refusal::NoRoute) => Verdict::NoRoute,
        Some(Refusal::NoEligibleNextHop) => Verdict::NoEligibleNextHop,
        Some(Refusal::Rejected) => Verdict::StrategyRejected,
        None if done.suppressed => Verdict::Suppressed,
        None if is_pending => Verdict::Aggregated,
        // What the strategy asked for could not be sent.
        None => Verdict::NoEligibleNextHop,
    }
}

/// Parses the pending Interest of `slot` again and lets the strategy decide about it, as after a
/// Nack, a timer or a new route. Returns what was done, and whether the strategy gave the entry up;
/// ending it is the caller's.
#[cold]
pub(crate) fn pending(
    fw: &mut Forwarder,
    now: Tick,
    slot: u32,
    out: &mut Outbox,
    question: impl FnOnce(&dyn Strategy, &mut Ctx<'_>),
) -> (Done, bool) {
    let lent = fw.pit.lend(slot);
    let interest = Interest::parse(lent.interest())
        .expect("invariant: the Interest parsed when it came, and was not changed");
    let lengths = fw.fib.lengths() | fw.choices.lengths();
    let hashes = NameHashes::new(&fw.key, lent.name(), lengths);
    let by_hint = fw.pit.hint(slot) != 0;
    let target = Target { interest: &interest, hashes: &hashes, by_hint };
    ask(fw, now, slot, &target, question);
    let mut upstream = Upstream::pending(fw, slot, &interest, by_hint);
    let result = act::run_open(fw, now, slot, &mut upstream, out);
    fw.pit.give_back(slot, lent);
    result
}

/// The face from which the latest Interest of `slot` came.
pub(crate) fn latest_downstream(fw: &Forwarder, slot: u32) -> Option<(FaceId, u32)> {
    fw.pit.entry(slot).ins.iter().max_by_key(|r| r.expiry).map(|r| (r.face, r.nonce))
}
