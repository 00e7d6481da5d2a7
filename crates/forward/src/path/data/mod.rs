//! The incoming Data pipeline.

mod cs_admit;
mod fan_out;
mod pit_match;

use super::is_localhost;
use crate::{Forwarder, Outbox, Packet, Verdict};
use onym_tables::Tick;
use onym_wire::data::Data;

pub(super) fn run(fw: &mut Forwarder, now: Tick, packet: &Packet, out: &mut Outbox) -> Verdict {
    let data = match guard(fw, packet) {
        Ok(data) => data,
        Err(verdict) => return verdict,
    };
    let hash = pit_match::run(fw, packet, &data);
    if fw.matched.is_empty() {
        return cs_admit::unsolicited(fw, now, packet, &data, hash);
    }
    cs_admit::run(fw, now, packet, &data, hash);
    fan_out::run(fw, now, packet, &data, out)
}

/// In: a packet that says it is Data.  Out: its view.
/// Drops: malformed, unexpected_field, ingress_gone, scope.  Counters: in_data of the face.
fn guard<'a>(fw: &mut Forwarder, packet: &'a Packet) -> Result<Data<'a>, Verdict> {
    let face = fw.faces.get_mut(packet.face).ok_or(Verdict::IngressGone)?;
    face.counters.in_data += 1;
    let lp = &packet.lp;
    if lp.nack.is_some() || lp.next_hop_face.is_some() || lp.non_discovery {
        return Err(Verdict::UnexpectedField);
    }
    let data = Data::parse(&packet.bytes).map_err(|_| Verdict::Malformed)?;
    if !face.is_local() && is_localhost(data.name.value()) {
        return Err(Verdict::Scope);
    }
    Ok(data)
}
