//! In: a Data and the entries it satisfies.  Out: one copy for each downstream that still waits,
//! with its own PIT token; the entries end, or linger when their strategy says so.
//! Drops: none.  Counters: satisfied per face, those of copies.

use crate::Verdict;
use crate::path::act::Done;
use crate::path::emit::{self, Reach};
use crate::path::{decide, finalize};
use crate::stage::{Pending, RouteStage, Strategies};
use crate::strategy::DataIn;
use onym_link::{LpOut, Outbox, Packet, Payload};
use onym_tables::{FaceId, Tick};
use onym_wire::data::Data;
use onym_wire::mgmt::LinkType;

#[inline(always)]
pub(super) fn run<R: RouteStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &R,
    now: Tick,
    packet: &Packet,
    data: &Data<'_>,
    out: &mut Outbox,
) -> Verdict {
    pending.told.clear();
    let mut to_others = false;
    for at in 0..pending.matched.len() {
        let slot = pending.matched[at];
        let mut done = Done::default();
        if strategies.choices.any_minds_data() {
            let arrival = DataIn {
                face: packet.face,
                name: data.name.value(),
                announcement: packet.lp.prefix_announcement.as_ref(),
            };
            done = before_satisfy(pending, strategies, routes, now, slot, &arrival, out);
        }
        let entry = pending.pit.entry_mut(slot);
        entry.satisfied = true;
        entry.freshness_ms = u32::try_from(data.freshness_ms).unwrap_or(u32::MAX);
        let waited_ns = take_upstream(pending, now, slot, packet.face);
        pending.waited_ns = waited_ns;
        let attaches = done.attach_announcement.then_some(&*strategies);
        let answer = Answer { packet, data, waited_ns, attaches };
        to_others |= send(pending, now, slot, &answer, out);
        match done.linger {
            Some(time) => pending.pit.set_expiry(slot, now + time),
            None => finalize::run(pending, now, slot),
        }
    }
    if !to_others && pending.told.contains(&FaceId::INTERNAL) {
        Verdict::Delivered
    } else {
        Verdict::Satisfied
    }
}

/// A Data on its way to the downstreams of one entry.
struct Answer<'a> {
    packet: &'a Packet,
    data: &'a Data<'a>,
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
    arrival: &DataIn<'_>,
    out: &mut Outbox,
) -> Done {
    // It may linger, and end later.
    pending.attention.meet();
    // The entry ends below in any case.
    decide::pending(pending, strategies, routes, now, slot, out, |strategy, ctx| {
        strategy.before_satisfy(ctx, arrival);
    })
    .0
}

/// Takes the out-record of the upstream that answers away. Returns how long the Interest waited
/// there, in nanoseconds: the upstream has used so much of itself.
#[inline(always)]
fn take_upstream(pending: &mut Pending, now: Tick, slot: u32, upstream: FaceId) -> u64 {
    let entry = pending.pit.entry_mut(slot);
    let Some(at) = entry.outs.iter().position(|r| r.face == upstream) else { return 0 };
    let waited_ns = now.0.saturating_sub(entry.outs[at].sent.0);
    finalize::bury(pending, now, slot, Some(upstream));
    // One is the rule, and needs no moving.
    let outs = &mut pending.pit.entry_mut(slot).outs;
    if outs.len() == 1 {
        outs.clear();
    } else {
        outs.remove(at);
    }
    if let Some(face) = pending.faces.get_mut(upstream) {
        face.load.answers(waited_ns);
    }
    waited_ns
}

/// Sends the Data to the downstreams of one entry, which stop waiting. Says whether one of them
/// was not the management.
#[inline(always)]
fn send(
    pending: &mut Pending,
    now: Tick,
    slot: u32,
    answer: &Answer<'_>,
    out: &mut Outbox,
) -> bool {
    let Answer { packet, data, waited_ns, attaches } = *answer;
    let attached = attaches.and_then(|known| known.announcement_for(&pending.key, data.name));
    let reach = Reach::of(data.name.value());
    let own = packet.face == FaceId::INTERNAL;
    let source = pending.behind.unwrap_or(packet.face);
    let mut to_others = false;
    while let Some(record) = pending.pit.entry_mut(slot).ins.pop() {
        let back = record.face == source;
        let Some(face) = pending.faces.get_mut(record.face) else { continue };
        face.counters.satisfied += 1;
        if own {
            face.load.ended();
        } else {
            face.load.answered(waited_ns);
        }
        let refused = back && face.info.link != LinkType::AdHoc;
        if refused || record.expiry <= now || pending.told.contains(&record.face) {
            continue;
        }
        let announcement = match (&packet.lp.prefix_announcement, &attached) {
            (None, Some(known)) if !record.non_discovery => Some(known.clone()),
            (came, _) => came.clone(),
        };
        let lp = LpOut {
            pit_token: record.token,
            congestion_mark: packet.lp.congestion_mark,
            incoming_face: packet.face.told(),
            prefix_announcement: announcement,
            ..LpOut::default()
        };
        let bytes = Payload::Shared(packet.bytes.clone());
        emit::data(pending, bytes, record.face, reach, lp, out);
        pending.told.push(record.face);
        to_others |= record.face != FaceId::INTERNAL;
    }
    to_others
}
