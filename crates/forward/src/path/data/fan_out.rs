//! In: a Data and the entries it satisfies.  Out: one copy for each downstream that still waits,
//! with its own PIT token; the entries end, or linger when their strategy says so.
//! Drops: none.  Counters: satisfied per face, those of copies.

use super::Arrived;
use crate::Verdict;
use crate::faces::FaceSlot;
use crate::path::act::Done;
use crate::path::{decide, emit, finalize};
use crate::stage::{Pending, RouteStage, Strategies};
use crate::strategy::DataIn;
use onym_link::{LpOut, Outbox, Payload};
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::LinkType;
use std::ops::BitOrAssign;

/// The Data satisfies all of `pending.matched`.
pub(super) fn all<R: RouteStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &R,
    now: Tick,
    arrived: &Arrived<'_>,
    out: &mut Outbox,
) -> Verdict {
    let arrived = Arrived { is_for_several: pending.matched.len() > 1, ..*arrived };
    pending.told.clear();
    let mut reached = Reached::default();
    for at in 0..pending.matched.len() {
        let slot = pending.matched[at];
        reached |= one(pending, strategies, routes, now, slot, &arrived, out);
    }
    reached.verdict()
}

/// The Data satisfies the entry in `slot`.
#[inline(always)]
pub(super) fn one<R: RouteStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &R,
    now: Tick,
    slot: u32,
    arrived: &Arrived<'_>,
    out: &mut Outbox,
) -> Reached {
    let mut done = Done::default();
    if strategies.choices.any_minds_data() {
        done = before_satisfy(pending, strategies, routes, now, slot, arrived, out);
    }
    let waited_ns = satisfy(pending, now, slot, arrived.from, arrived.data.freshness_ms);
    pending.waited_ns = waited_ns;
    let attaches = done.attach_announcement.then_some(&*strategies);
    let reached = send(pending, now, slot, &Answer { arrived, waited_ns, attaches }, out);
    match done.linger {
        Some(time) => pending.pit.set_expiry(slot, now + time),
        None => finalize::run(pending, now, slot),
    }
    reached
}

/// Who was sent the Data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reached {
    management: bool,
    others: bool,
}

impl Reached {
    #[inline(always)]
    pub(super) const fn verdict(self) -> Verdict {
        if self.management && !self.others { Verdict::Delivered } else { Verdict::Satisfied }
    }
}

impl BitOrAssign for Reached {
    fn bitor_assign(&mut self, other: Self) {
        self.management |= other.management;
        self.others |= other.others;
    }
}

/// A Data on its way to the downstreams of one entry.
struct Answer<'a> {
    arrived: &'a Arrived<'a>,
    /// How long the upstream took.
    waited_ns: u64,
    /// Who knows the prefix announcement that is attached where none came.
    attaches: Option<&'a Strategies>,
}

/// Lets the strategy look at the Data.
#[cold]
fn before_satisfy<R: RouteStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &R,
    now: Tick,
    slot: u32,
    arrived: &Arrived<'_>,
    out: &mut Outbox,
) -> Done {
    let arrival = DataIn {
        face: arrived.packet.face,
        name: arrived.data.name.value(),
        announcement: arrived.packet.lp.prefix_announcement.as_ref(),
    };
    // It may linger, and end later.
    pending.attention.meet();
    // The entry ends below in any case.
    decide::pending(pending, strategies, routes, now, slot, out, |strategy, ctx| {
        strategy.before_satisfy(ctx, &arrival);
    })
    .0
}

/// Notes that Data satisfies the entry, and takes the out-record of the upstream that answers away.
/// Returns how long the Interest waited there, in nanoseconds: the upstream has used so much of itself.
#[inline(always)]
fn satisfy(pending: &mut Pending, now: Tick, slot: u32, from: FaceSlot, freshness_ms: u64) -> u64 {
    let face = pending.faces.at_mut(from);
    let entry = pending.pit.entry_mut(slot);
    entry.satisfied = true;
    entry.freshness_ms = u32::try_from(freshness_ms).unwrap_or(u32::MAX);
    // One is the rule, which needs no search and no moving.
    if let [only] = &entry.outs[..]
        && only.face == face.id
        && freshness_ms >= pending.lasting_ms
    {
        let waited_ns = now.0.saturating_sub(only.sent.0);
        entry.outs.clear();
        face.load.answers(waited_ns);
        return waited_ns;
    }
    satisfy_spread(pending, now, slot, from)
}

/// The same where the entry has several upstreams, or its Nonces are kept.
#[inline(never)]
fn satisfy_spread(pending: &mut Pending, now: Tick, slot: u32, from: FaceSlot) -> u64 {
    let face = pending.faces.at_mut(from);
    let entry = pending.pit.entry_mut(slot);
    let Some(at) = entry.outs.iter().position(|r| r.face == face.id) else { return 0 };
    let waited_ns = now.0.saturating_sub(entry.outs[at].sent.0);
    face.load.answers(waited_ns);
    let upstream = face.id;
    finalize::bury(pending, now, slot, Some(upstream));
    pending.pit.entry_mut(slot).outs.remove(at);
    waited_ns
}

/// Sends the Data to the downstreams of one entry, which stop waiting.
#[inline(always)]
fn send(
    pending: &mut Pending,
    now: Tick,
    slot: u32,
    answer: &Answer<'_>,
    out: &mut Outbox,
) -> Reached {
    let Answer { arrived, waited_ns, attaches } = *answer;
    let Arrived { packet, data, is_for_several, .. } = *arrived;
    let attached = attaches.and_then(|known| known.announcement_for(&pending.key, data.name));
    let own = packet.face == FaceId::INTERNAL;
    let source = pending.behind.unwrap_or(packet.face);
    let mut reached = Reached::default();
    let Pending { pit, faces, counters, told, .. } = pending;
    let entry = pit.entry_mut(slot);
    for record in entry.ins.iter().rev() {
        let back = record.face == source;
        let Some(to) = faces.slot(record.face) else { continue };
        let face = faces.at_mut(to);
        face.counters.satisfied += 1;
        if own {
            face.load.ended();
        } else {
            face.load.answered(waited_ns);
        }
        let refused = back && face.info.link != LinkType::AdHoc;
        if refused || record.expiry <= now || is_for_several && told.contains(&record.face) {
            continue;
        }
        let announcement = match (&packet.lp.prefix_announcement, &attached) {
            (None, Some(known)) if !record.non_discovery => Some(known.clone()),
            (came, _) => came.clone(),
        };
        let lp = move || LpOut {
            pit_token: record.token.clone(),
            congestion_mark: packet.lp.congestion_mark,
            incoming_face: packet.face.told(),
            prefix_announcement: announcement,
            ..LpOut::default()
        };
        let bytes = Payload::Shared(packet.bytes.clone());
        emit::data(faces, counters, bytes, to, data.name.value(), lp, out);
        if is_for_several {
            told.push(record.face);
        }
        match record.face {
            FaceId::INTERNAL => reached.management = true,
            _ => reached.others = true,
        }
    }
    entry.ins.clear();
    reached
}
