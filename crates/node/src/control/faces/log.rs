//! Log lines about faces. Those that strangers can cause are bounded in number.

use super::record::Record;
use crate::throttle::Throttle;
use onym_tables::Tick;
use onym_wire::mgmt::Persistency;

/// What was written of each kind.
#[derive(Debug, Default)]
pub(in crate::control) struct Logs {
    faces: Throttle,
    refused: Throttle,
}

impl Logs {
    /// What happened to a face: always when it was asked for, else as far as the bound goes.
    pub(in crate::control) fn face(
        &mut self,
        now: Tick,
        record: &Record,
        what: &str,
        reason: &str,
    ) {
        let held = match record.persistency {
            Persistency::OnDemand => self.faces.pass(now),
            Persistency::Persistent | Persistency::Permanent => Some(0),
        };
        let Some(held_back) = held else { return };
        let (face, remote, local) = (record.id.0, &record.remote, &record.local);
        let persistency = record.persistency;
        if reason.is_empty() {
            tracing::info!(face, %remote, %local, ?persistency, held_back, "{what}");
        } else {
            tracing::info!(face, %remote, reason, held_back, "{what}");
        }
    }

    /// Somebody was refused.
    pub(in crate::control) fn refused(&mut self, now: Tick, who: &str, reason: &str) {
        if let Some(held_back) = self.refused.pass(now) {
            tracing::warn!(reason, held_back, "{who} was refused");
        }
    }
}
