//! Shared by transparent elements: a packet goes to the other side.

use crate::cx::Cx;
use crate::ports::Side;
use crate::verdict::Verdict;
use onym_link::{Packet, PacketKind};

/// Carries `packet` to the other side, or keeps it while that is frozen.
pub(crate) fn cross(cx: &mut Cx<'_>, packet: Packet) -> Verdict {
    let Some(side) = cx.side_of(packet.face) else { return Verdict::NoFace };
    match cx.hold(side.other(), packet) {
        Ok(packet) => send(cx, &packet, side.other()),
        Err(verdict) => verdict,
    }
}

/// Sends `packet` to all faces of `side` (an Interest), or to the one that asked (what answers).
pub(crate) fn send(cx: &mut Cx<'_>, packet: &Packet, side: Side) -> Verdict {
    let (count, good) = match packet.kind() {
        PacketKind::Interest => {
            let token = cx.token_onward(packet.face, &packet.lp.pit_token);
            let mut count = 0;
            for at in 0..cx.ports.side(side).len() {
                let face = cx.ports.side(side)[at];
                if cx.ports.get(face).is_some_and(|p| !p.draining) {
                    cx.pass(face, packet, token.clone());
                    count += 1;
                }
            }
            (count, Verdict::Forwarded)
        }
        PacketKind::Data => (cx.send_back(packet, side), Verdict::Forwarded),
        PacketKind::Nack => (cx.send_back(packet, side), Verdict::NackForwarded),
    };
    if count == 0 { Verdict::NoFace } else { good }
}
