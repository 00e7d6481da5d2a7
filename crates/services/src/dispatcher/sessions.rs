//! The resource `sessions`.

use super::{PacketDispatcher, Path, Session};
use crate::control::{Answer, SessionInfo, SessionState};
use crate::cx::Cx;
use crate::ports::Counts;
use onym_link::PacketKind;

pub(super) fn count(counts: &mut Counts, kind: PacketKind) {
    match kind {
        PacketKind::Interest => counts.interests += 1,
        PacketKind::Data => counts.data += 1,
        PacketKind::Nack => counts.nacks += 1,
    }
}

impl PacketDispatcher {
    pub(super) fn list(&self, cx: &Cx<'_>) -> Answer {
        let one = |s: &Session| {
            let up = Path::BOTH.iter().all(|p| {
                self.uri(*p).is_none()
                    || s.paths[*p as usize].is_some_and(|f| cx.ports.get(f).is_some_and(|p| p.up))
            });
            SessionInfo {
                session: s.number,
                client: cx.ports.label(s.client).to_owned(),
                id: s.client.0,
                received: s.received,
                sent: s.sent,
                since_ms: s.since_ms,
                state: if up { SessionState::Up } else { SessionState::Connecting },
            }
        };
        Answer::Sessions { sessions: self.sessions.values().map(one).collect() }
    }
}
