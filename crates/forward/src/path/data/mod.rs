//! The incoming Data pipeline.

mod cs_admit;
mod fan_out;
mod pit_match;

use super::is_localhost;
use crate::{Forwarder, Verdict};
use onym_link::{Outbox, Packet};
use onym_tables::Tick;
use onym_wire::data::Data;
use onym_wire::tlv::Malformed;

#[inline(never)]
pub(super) fn run(fw: &mut Forwarder, now: Tick, packet: &Packet, out: &mut Outbox) -> Verdict {
    // Looked at where it is: the view is not small.
    let parsed = Data::parse(&packet.bytes);
    let data = match guard(fw, packet, &parsed) {
        Ok(data) => data,
        Err(verdict) => return verdict,
    };
    let hash = pit_match::run(fw, packet, data);
    if fw.matched.is_empty() {
        return cs_admit::unsolicited(fw, now, packet, data, hash);
    }
    cs_admit::run(fw, now, packet, data, hash);
    fan_out::run(fw, now, packet, data, out)
}

/// Satisfies the Interests of this shard that wait for `packet`, which belongs to another shard;
/// whether there were any. The packet gets its verdict, and its place in the cache, there.
pub(crate) fn show(fw: &mut Forwarder, now: Tick, packet: &Packet, out: &mut Outbox) -> bool {
    let Some(face) = fw.faces.get(packet.face) else { return false };
    let is_local = face.is_local();
    let parsed = Data::parse(&packet.bytes);
    let Ok(data) = &parsed else { return false };
    if !is_local && is_localhost(data.name.value()) {
        return false;
    }
    pit_match::run(fw, packet, data);
    if fw.matched.is_empty() {
        return false;
    }
    fan_out::run(fw, now, packet, data, out);
    true
}

/// As [`run`] for a Data that satisfied Interests of another shard: it is not unsolicited.
pub(crate) fn run_shown(
    fw: &mut Forwarder,
    now: Tick,
    packet: &Packet,
    out: &mut Outbox,
) -> Verdict {
    // Looked at where it is: the view is not small.
    let parsed = Data::parse(&packet.bytes);
    let data = match guard(fw, packet, &parsed) {
        Ok(data) => data,
        Err(verdict) => return verdict,
    };
    let hash = pit_match::run(fw, packet, data);
    cs_admit::run(fw, now, packet, data, hash);
    if fw.matched.is_empty() {
        return Verdict::Satisfied;
    }
    fan_out::run(fw, now, packet, data, out)
}

/// In: a packet that says it is Data.  Out: its view.
/// Drops: malformed, unexpected_field, ingress_gone, scope.  Counters: in_data of the face.
#[inline]
fn guard<'a, 'p>(
    fw: &mut Forwarder,
    packet: &Packet,
    parsed: &'p Result<Data<'a>, Malformed>,
) -> Result<&'p Data<'a>, Verdict> {
    let face = fw.faces.get_mut(packet.face).ok_or(Verdict::IngressGone)?;
    face.counters.in_data += 1;
    let lp = &packet.lp;
    if lp.nack.is_some() || lp.next_hop_face.is_some() || lp.non_discovery {
        return Err(Verdict::UnexpectedField);
    }
    let data = parsed.as_ref().map_err(|_| Verdict::Malformed)?;
    if !face.is_local() && is_localhost(data.name.value()) {
        return Err(Verdict::Scope);
    }
    Ok(data)
}
