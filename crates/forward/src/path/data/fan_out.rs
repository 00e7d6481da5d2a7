//! In: a Data and the entries it satisfies.  Out: one copy for each downstream that still waits,
//! with its own PIT token; the entries end, or linger when their strategy says so.
//! Drops: none.  Counters: satisfied per face, those of copies.

use crate::path::act::Done;
use crate::path::{decide, emit, finalize, is_localhost};
use crate::strategy::DataIn;
use crate::{Forwarder, Verdict};
use onym_link::{LpOut, Outbox, Packet, Payload};
use onym_tables::{FaceId, Tick};
use onym_wire::data::Data;
use onym_wire::mgmt::LinkType;

pub(super) fn run(
    fw: &mut Forwarder,
    now: Tick,
    packet: &Packet,
    data: &Data<'_>,
    out: &mut Outbox,
) -> Verdict {
    fw.told.clear();
    let mut to_others = false;
    for at in 0..fw.matched.len() {
        let slot = fw.matched[at];
        let mut done = Done::default();
        if fw.choices.any_minds_data() {
            done = before_satisfy(fw, now, slot, packet, data, out);
        }
        let entry = fw.pit.entry_mut(slot);
        entry.satisfied = true;
        entry.freshness_ms = u32::try_from(data.freshness_ms).unwrap_or(u32::MAX);
        let waited_ns = take_upstream(fw, now, slot, packet.face);
        to_others |= send(fw, now, slot, packet, data, (&done, waited_ns), out);
        match done.linger {
            Some(time) => fw.pit.set_expiry(slot, now + time),
            None => finalize::run(fw, now, slot),
        }
    }
    if !to_others && fw.told.contains(&FaceId::INTERNAL) {
        Verdict::Delivered
    } else {
        Verdict::Satisfied
    }
}

/// Lets the strategy look at the Data.
#[cold]
fn before_satisfy(
    fw: &mut Forwarder,
    now: Tick,
    slot: u32,
    packet: &Packet,
    data: &Data<'_>,
    out: &mut Outbox,
) -> Done {
    let arrival = DataIn {
        face: packet.face,
        name: data.name.value(),
        announcement: packet.lp.prefix_announcement.as_ref(),
    };
    // The entry ends below in any case.
    decide::pending(fw, now, slot, out, |strategy, ctx| strategy.before_satisfy(ctx, &arrival)).0
}

/// Takes the out-record of the upstream that answers away. Returns how long the Interest waited
/// there, in nanoseconds: the upstream has used so much of itself.
fn take_upstream(fw: &mut Forwarder, now: Tick, slot: u32, upstream: FaceId) -> u64 {
    let entry = fw.pit.entry_mut(slot);
    let Some(at) = entry.outs.iter().position(|r| r.face == upstream) else { return 0 };
    let waited_ns = now.0.saturating_sub(entry.outs[at].sent.0);
    finalize::bury(fw, now, slot, Some(upstream));
    // One is the rule, and needs no moving.
    let outs = &mut fw.pit.entry_mut(slot).outs;
    if outs.len() == 1 {
        outs.clear();
    } else {
        outs.remove(at);
    }
    if let Some(face) = fw.faces.get_mut(upstream) {
        face.load.answers(waited_ns);
    }
    waited_ns
}

/// Sends the Data to the downstreams of one entry, which stop waiting. Says whether one of them
/// was not the management.
fn send(
    fw: &mut Forwarder,
    now: Tick,
    slot: u32,
    packet: &Packet,
    data: &Data<'_>,
    (done, waited_ns): (&Done, u64),
    out: &mut Outbox,
) -> bool {
    let localhost = is_localhost(data.name.value());
    let own = packet.face == FaceId::INTERNAL;
    let mut to_others = false;
    let attached = done.attach_announcement.then(|| fw.announcement_for(data.name)).flatten();
    while let Some(record) = fw.pit.entry_mut(slot).ins.pop() {
        let back = record.face == packet.face;
        let Some(face) = fw.faces.get_mut(record.face) else { continue };
        face.counters.satisfied += 1;
        if own {
            face.load.ended();
        } else {
            face.load.answered(waited_ns);
        }
        let refused = back && face.info.link != LinkType::AdHoc;
        if refused || record.expiry <= now || fw.told.contains(&record.face) {
            continue;
        }
        let announcement = match (&packet.lp.prefix_announcement, &attached) {
            (None, Some(known)) if !record.non_discovery => Some(known.clone()),
            (came, _) => came.clone(),
        };
        let lp = LpOut {
            pit_token: record.token,
            congestion_mark: packet.lp.congestion_mark,
            incoming_face: Some(packet.face),
            prefix_announcement: announcement,
            ..LpOut::default()
        };
        let bytes = Payload::Shared(packet.bytes.clone());
        emit::data(fw, bytes, record.face, localhost, lp, out);
        fw.told.push(record.face);
        to_others |= record.face != FaceId::INTERNAL;
    }
    to_others
}
