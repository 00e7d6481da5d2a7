//! The incoming Data pipeline.

mod cs_admit;
mod fan_out;
mod pit_match;

use crate::faces::FaceSlot;
use crate::stage::{CacheStage, Pending, RouteStage, rules};
use crate::{Forwarder, Verdict};
use onym_link::{Outbox, Packet};
use onym_tables::Tick;
use onym_wire::data::DataHead;
use onym_wire::tlv::Malformed;
use pit_match::{Only, Told};

/// What a Data is to this shard, where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// It belongs here, and no other shard had use for it.
    Own,
    /// It belongs here, and satisfied Interests of another shard: it is not unsolicited.
    Wanted,
    /// It belongs to another shard, which counts and caches it; Interests with CanBePrefix may
    /// wait for it here.
    Shown,
    /// Its token says that it belongs here. Where that leads to no entry that this Data alone
    /// satisfies, nothing is done and its name decides.
    Hinted,
}

/// Takes a Data of this shard alone.
#[inline(never)]
pub(super) fn run_own<R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    packet: &Packet,
    out: &mut Outbox,
) -> Verdict {
    run(fw, now, packet, Share::Own, out).expect("invariant: a Data of this shard has a verdict")
}

/// Takes a Data. `None` for one that is only shown and that nobody here waits for, and for one whose
/// token says nothing.
#[inline(always)]
pub(super) fn run<R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    packet: &Packet,
    share: Share,
    out: &mut Outbox,
) -> Option<Verdict> {
    let Forwarder { pending, strategies, routes, cache, .. } = fw;
    let told = pit_match::told(pending, packet);
    let expected = match told {
        Told::Entry(slot) => pending.pit.likely_name(slot),
        _ => None,
    };
    let parsed = DataHead::parse_expecting(&packet.bytes, expected);
    let only = match &parsed {
        Ok((_, true)) => pit_match::only_named(pending, told),
        Ok((data, false)) => pit_match::only(pending, told, data),
        Err(_) => None,
    };
    if share == Share::Hinted && only.is_none() && parsed.is_ok() {
        return None;
    }
    let arrived = match guard(pending, packet, &parsed, share) {
        Ok(arrived) => arrived,
        Err(verdict) => {
            pending.attention.meet();
            return (share != Share::Shown).then_some(verdict);
        }
    };
    let Some(Only { slot, hash }) = only else {
        return by_name(fw, now, told, &arrived, share, out);
    };
    pending.pit.prefetch(hash);
    cache.prefetch(hash);
    if share != Share::Shown {
        cs_admit::run(cache, now, packet, arrived.data, hash);
    }
    Some(fan_out::one(pending, strategies, routes, now, slot, &arrived, out).verdict())
}

/// The same where no token says all.
#[inline(never)]
fn by_name<R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    told: Told,
    arrived: &Arrived<'_>,
    share: Share,
    out: &mut Outbox,
) -> Option<Verdict> {
    let Forwarder { pending, strategies, routes, cache, .. } = fw;
    let Arrived { packet, data, .. } = *arrived;
    let hash = pit_match::run(pending, told, packet, data);
    cache.prefetch(hash);
    if pending.matched.is_empty() {
        pending.attention.meet();
        if share != Share::Wanted {
            return (share == Share::Own)
                .then(|| cs_admit::unsolicited(pending, cache, now, packet, data, hash));
        }
    }
    if share != Share::Shown {
        cs_admit::run(cache, now, packet, data, hash);
    }
    Some(fan_out::all(pending, strategies, routes, now, arrived, out))
}

/// A Data that passed the guard.
struct Arrived<'a> {
    packet: &'a Packet,
    /// Where its face is.
    from: FaceSlot,
    data: &'a DataHead<'a>,
    /// Whether it satisfies several entries; a face may wait in more than one of them.
    is_for_several: bool,
}

/// In: a packet that says it is Data.  Out: its face's place and its view.
/// Drops: malformed, unexpected_field, ingress_gone, scope.  Counters: in_data of the face.
#[inline]
fn guard<'a>(
    pending: &mut Pending,
    packet: &'a Packet,
    parsed: &'a Result<(DataHead<'a>, bool), Malformed>,
    share: Share,
) -> Result<Arrived<'a>, Verdict> {
    let from = pending.faces.slot(packet.face).ok_or(Verdict::IngressGone)?;
    let face = pending.faces.at_mut(from);
    face.counters.in_data += u64::from(share != Share::Shown);
    let info = face.info;
    rules::data_fields(&packet.lp)?;
    let (data, _) = parsed.as_ref().map_err(|_| Verdict::Malformed)?;
    rules::data(data.name, info)?;
    Ok(Arrived { packet, from, data, is_for_several: false })
}
