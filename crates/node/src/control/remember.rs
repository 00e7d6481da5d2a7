//! What the last hour is made of: counters that the shards have anyway, asked for once a row.

use super::history::{Busy, Moment};
use super::shards::Shards;
use super::viewers::Counted;
use super::{Io, Plane};
use crate::counts::{LinkSums, ShardState};
use onym_engine::clock::unix_ms;
use onym_forward::verdict::Verdict;
use onym_tables::FaceId;
use std::collections::HashMap;

impl Plane {
    /// Takes a row when it is due: until then it costs nobody anything.
    pub(super) fn remember(&mut self, io: &Io) {
        if self.history.is_due(io.now) {
            let now = self.moment();
            self.history.take(now);
        }
    }

    fn moment(&self) -> Moment {
        let states = self.shards.states();
        let faces = counted(&self.shards, self.faces.iter().map(|record| record.id));
        let mut links: LinkSums = self.faces.gone.clone();
        faces.values().for_each(|c| links.add(&c.owner));
        let sum = |of: &dyn Fn(&ShardState) -> u64| states.iter().map(of).sum::<u64>();
        let drops = |verdicts: &[u64; Verdict::COUNT]| -> u64 {
            let each = Verdict::ALL.iter().zip(verdicts);
            each.filter(|(verdict, _)| verdict.is_drop()).map(|(_, count)| count).sum()
        };
        let lost = links.queue_full + links.face_gone + links.over_mtu;
        let counts = [
            sum(&|s| s.counters.received[0]),
            sum(&|s| s.counters.received[1]),
            sum(&|s| s.counters.sent[0]),
            sum(&|s| s.counters.sent[1]),
            links.in_bytes,
            links.out_bytes,
            sum(&|s| s.counters.verdicts.iter().map(drops).sum::<u64>()),
            sum(&|s| s.counters.unsent.iter().sum::<u64>() + s.crossing_full + s.face_gone) + lost,
            sum(&|s| s.counters.cs_hits),
            sum(&|s| s.counters.cs_misses),
        ];
        let queued = faces.values().map(|c| c.owner.queued as u64).sum();
        let levels = [sum(&|s| s.pit_entries), sum(&|s| s.cs_entries), queued, faces.len() as u64];
        let faces = faces.iter().map(|(id, counted)| (*id, Busy::of(counted))).collect();
        Moment { at_ms: unix_ms(), counts, levels, faces }
    }
}

/// What each of these faces counted.
pub(super) fn counted(
    shards: &Shards,
    faces: impl Iterator<Item = FaceId>,
) -> HashMap<FaceId, Counted> {
    let (packets, owners) = (shards.packet_counters(), shards.owner_counters());
    let each = faces.map(|id| {
        let packets = packets.get(&id).copied().unwrap_or_default();
        (id, Counted { packets, owner: owners.get(&id).copied().unwrap_or_default() })
    });
    each.collect()
}
