//! The resource `sessions`.

use super::{PacketDispatcher, Path, Session};
use crate::element::Cx;
use crate::ports::Counts;
use onym_link::PacketKind;
use serde_json::{Value, json};

pub(super) fn count(counts: &mut Counts, kind: PacketKind) {
    match kind {
        PacketKind::Interest => counts.interests += 1,
        PacketKind::Data => counts.data += 1,
        PacketKind::Nack => counts.nacks += 1,
    }
}

impl PacketDispatcher {
    pub(super) fn list(&self, cx: &Cx<'_>) -> Value {
        let one = |s: &Session| {
            let up = Path::BOTH.iter().all(|p| {
                self.uri(*p).is_none()
                    || s.paths[*p as usize].is_some_and(|f| cx.ports.get(f).is_some_and(|p| p.up))
            });
            json!({
                "session": s.number, "client": cx.ports.label(s.client),
                "id": s.client.0, "in": s.received, "out": s.sent,
                "since_ms": s.since_ms, "state": if up { "up" } else { "connecting" },
            })
        };
        json!({ "sessions": self.sessions.values().map(one).collect::<Vec<_>>() })
    }
}
