//! In: a PIT entry and something that happened to it.  Out: the strategy's actions, carried out by
//! [`act`]; for an Interest, its verdict.
//! Drops: no_route, no_eligible_next_hop, strategy_rejected, next_hop_face_invalid, congestion.
//! Counters: none of its own.

use super::act::{self, Asked, Done, Upstream};
use super::finalize;
use super::incoming::Incoming;
use crate::Verdict;
use crate::stage::{Pending, RouteStage, Strategies, Target};
use crate::strategy::{Ctx, Refusal, Strategy, is_eligible};
use onym_link::Outbox;
use onym_tables::hash::NameHashes;
use onym_tables::{FaceId, Tick};
use onym_wire::interest::{Hint, Interest};
use onym_wire::lp::NackReason;

/// Lets the strategy of the name decide; its actions wait in `strategies.actions`.
pub(crate) fn ask<R: RouteStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &R,
    now: Tick,
    slot: u32,
    target: &Target<'_>,
    ask: impl FnOnce(&dyn Strategy, &mut Ctx<'_>),
) {
    let name = target.interest.name.value();
    let (fib_prefix, next_hops) = routes.next_hops(&pending.key, target, slot);
    let (_, choice) = strategies.choices.effective(target.hashes, name);
    let mut ctx = Ctx {
        now,
        name,
        entry: pending.pit.entry_mut(slot),
        next_hops,
        fib_prefix,
        faces: &pending.faces,
        measurements: &mut strategies.measurements,
        key: &pending.key,
        rng: &mut pending.rng,
        actions: &mut strategies.actions,
    };
    ask(&*choice.strategy, &mut ctx);
}

/// An Interest has its in-record: where does it go?
#[inline(always)]
pub(crate) fn interest<R: RouteStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &R,
    now: Tick,
    slot: u32,
    incoming: &Incoming<'_>,
    out: &mut Outbox,
) -> Verdict {
    if let Some(face) = incoming.next_hop {
        return by_choice(pending, now, slot, incoming, FaceId::of_told(face), out);
    }
    let is_first = pending.pit.entry(slot).outs.is_empty();
    let first = is_first.then(|| first_hop(pending, strategies, routes, slot, incoming)).flatten();
    let Some(face) = first else {
        return by_strategy(pending, strategies, routes, now, slot, incoming, out);
    };
    let mut upstream = Upstream::new(incoming, slot);
    upstream.is_new = true;
    match act::send(pending, now, &mut upstream, face, out) {
        Asked::Congested => congested(pending, now, slot, incoming, out),
        asked => asked.verdict(),
    }
}

/// The application chose, or it is a trace request for this node: no strategy, no scope check.
#[inline(never)]
fn by_choice(
    pending: &mut Pending,
    now: Tick,
    slot: u32,
    incoming: &Incoming<'_>,
    face: FaceId,
    out: &mut Outbox,
) -> Verdict {
    if pending.faces.get(face).is_none() {
        return Verdict::NextHopFaceInvalid;
    }
    let mut upstream = Upstream::new(incoming, slot);
    act::send(pending, now, &mut upstream, face, out).verdict()
}

/// The strategy says where.
#[inline(never)]
fn by_strategy<R: RouteStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &R,
    now: Tick,
    slot: u32,
    incoming: &Incoming<'_>,
    out: &mut Outbox,
) -> Verdict {
    let is_first = pending.pit.entry(slot).outs.is_empty();
    let mut upstream = Upstream::new(incoming, slot);
    upstream.is_new = is_first;
    let target = incoming.target();
    ask(pending, strategies, routes, now, slot, &target, |strategy, ctx| {
        strategy.after_receive_interest(ctx, incoming.packet.face);
    });
    let (done, ended) = act::run_open(pending, strategies, now, &mut upstream, out);
    if done.congested && done.sent == 0 {
        return congested(pending, now, slot, incoming, out);
    }
    if ended {
        finalize::run(pending, now, slot);
    }
    verdict(&done, !is_first)
}

/// No upstream takes more.
#[cold]
fn congested(
    pending: &mut Pending,
    now: Tick,
    slot: u32,
    incoming: &Incoming<'_>,
    out: &mut Outbox,
) -> Verdict {
    act::nack(pending, slot, incoming.interest, incoming.packet.face, NackReason::CONGESTION, out);
    finalize::run(pending, now, slot);
    Verdict::Congestion
}

/// Where a new Interest goes, where its strategy sends it to the first eligible next hop and there is one.
#[inline(always)]
fn first_hop<R: RouteStage>(
    pending: &Pending,
    strategies: &Strategies,
    routes: &R,
    slot: u32,
    incoming: &Incoming<'_>,
) -> Option<FaceId> {
    let target = incoming.target();
    let name = target.interest.name.value();
    if !strategies.choices.effective(target.hashes, name).1.takes_first {
        return None;
    }
    let (_, next_hops) = routes.next_hops(&pending.key, &target, slot);
    for hop in next_hops {
        if is_eligible(&pending.faces, name, incoming.packet.face, hop.face) {
            return Some(hop.face);
        }
    }
    None
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
pub(crate) fn pending<R: RouteStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &R,
    now: Tick,
    slot: u32,
    out: &mut Outbox,
    question: impl FnOnce(&dyn Strategy, &mut Ctx<'_>),
) -> (Done, bool) {
    let lent = pending.pit.lend(slot);
    let interest = Interest::parse(lent.interest())
        .expect("invariant: the Interest parsed when it came, and was not changed");
    let lengths = routes.lengths() | strategies.choices.lengths();
    let hashes = NameHashes::new(&pending.key, lent.name(), lengths);
    let by_hint = pending.pit.hint(slot) != 0;
    let target = Target { interest: &interest, hashes: &hashes, by_hint };
    ask(pending, strategies, routes, now, slot, &target, question);
    let is_beyond_region = !by_hint && !interest.forwarding_hint.is_empty();
    let hint = if is_beyond_region { Hint::Strip } else { Hint::Keep };
    let mut upstream = Upstream::pending(pending, slot, &interest, hint);
    let result = act::run_open(pending, strategies, now, &mut upstream, out);
    pending.pit.give_back(slot, lent);
    result
}
