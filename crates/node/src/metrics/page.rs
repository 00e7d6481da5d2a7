//! The metrics page of a node.

use crate::counts::{PushCounts, Snapshot};
use crate::mgmt::host::FaceCounters;
use onym_forward::stage::WatchCounts;
use onym_forward::verdict::Verdict;
use onym_guard::Status;
use onym_link::PacketKind;
use onym_metrics::{Metric, Page, Source, catalogue as m};
use onym_store::ShelfStats;
use std::fmt;
use std::sync::Arc;

/// The counters of a node at one moment.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) snapshot: Box<Snapshot>,
    /// What a program in the same process adds.
    pub(super) beside: Option<Arc<dyn Source>>,
}

/// About how many octets the samples of a face have.
const FACE_BYTES: usize = 512;

impl Source for Sample {
    fn size_hint(&self) -> usize {
        32 * 1024 + self.snapshot.faces.len() * FACE_BYTES
    }

    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let s = &*self.snapshot;
        page.family(&m::BUILD)?.sample([env!("CARGO_PKG_VERSION").into()], true)?;
        let mut packets = page.family(&m::PACKETS)?;
        for kind in PacketKind::ALL {
            for verdict in Verdict::ALL {
                let labels = [verdict.label(), kind.label()].map(Into::into);
                packets.sample(labels, s.verdict(kind, *verdict))?;
            }
        }
        words(page, &m::FRAMES_DROPPED, &s.frames_dropped())?;
        words(page, &m::PACKETS_UNSENT, &s.unsent())?;
        faces(page, s)?;
        tables(page, s)?;
        words(
            page,
            &m::MANAGEMENT_REQUESTS,
            &[
                ("command_done", s.management.commands_done),
                ("command_refused", s.management.commands_refused),
                ("dataset", s.management.datasets),
                ("ignored", s.management.ignored),
            ],
        )?;
        let sum = |of: fn(&WatchCounts) -> u64| s.sum(|shard| of(&shard.verify));
        let [good, refused] = s.verified;
        words(
            page,
            &m::CS_VERIFIED,
            &[
                ("held", sum(|c| c.held)),
                ("good", good),
                ("refused", refused),
                ("left_out", sum(|c| c.left_out)),
            ],
        )?;
        let exported = s.exported;
        words(
            page,
            &m::SPANS,
            &[
                ("begun", s.sum(|shard| shard.spans.begun)),
                ("left_out", s.sum(|shard| shard.spans.left_out)),
                ("exported", exported.exported),
                ("refused", exported.refused),
                ("lost", exported.lost),
            ],
        )?;
        trust(page, &s.trust)?;
        if let Some(counts) = &s.push {
            push(page, counts)?;
        }
        let mut busy = page.family(&m::SHARD_BUSY)?;
        for (shard, state) in s.shards.iter().enumerate() {
            #[allow(clippy::cast_precision_loss)]
            let seconds = state.busy_ns as f64 / 1e9;
            busy.sample([(shard as u64).into()], seconds)?;
        }
        self.beside.as_ref().map_or(Ok(()), |beside| beside.write(page))
    }
}

/// A metric whose one label is a word.
fn words(page: &mut Page<'_>, metric: &Metric<1>, list: &[(&str, u64)]) -> fmt::Result {
    let mut family = page.family(metric)?;
    list.iter().try_for_each(|(word, value)| family.sample([(*word).into()], *value))
}

/// What entries of trust judge by, and what they judged.
fn trust(page: &mut Page<'_>, entries: &[(String, Status)]) -> fmt::Result {
    type Row = fn(&Status) -> u64;
    let rows: [(&Metric<2>, &[(&str, Row)]); 3] = [
        (
            &m::TRUST_JUDGED,
            &[
                ("accepted", |s| s.counts.accepted),
                ("refused", |s| s.counts.refused),
                ("busy", |s| s.counts.busy),
            ],
        ),
        (&m::TRUST_FETCHES, &[("asked", |s| s.counts.fetches), ("failed", |s| s.counts.failed)]),
        (
            &m::TRUST_CERTIFICATES,
            &[
                ("anchor", |s| s.anchors.len() as u64),
                ("cached", |s| s.cached as u64),
                ("revoked", |s| s.revoked as u64),
            ],
        ),
    ];
    for (metric, words) in rows {
        let mut family = page.family(metric)?;
        for (name, status) in entries {
            for (word, of) in words {
                family.sample([name.as_str().into(), (*word).into()], of(status))?;
            }
        }
    }
    let now_s = i64::try_from(onym_engine::clock::unix_ms() / 1000).unwrap_or(i64::MAX);
    let mut left = page.family(&m::TRUST_ANCHOR_LEFT)?;
    for (name, status) in entries {
        if let Some(end) = status.anchors.iter().map(|(_, end)| *end).min() {
            #[allow(clippy::cast_precision_loss)]
            let seconds = end.saturating_sub(now_s) as f64;
            left.sample([name.as_str().into()], seconds)?;
        }
    }
    Ok(())
}

fn faces(page: &mut Page<'_>, s: &Snapshot) -> fmt::Result {
    page.single(&m::FACES, s.faces.len() as u64)?;
    page.single(&m::FACES_DOWN, s.faces_down)?;
    page.single(&m::FACES_REFUSED, s.faces_refused)?;
    type Packets = fn(&FaceCounters) -> [u64; 3];
    let packets: [(&Metric<2>, Packets); 2] = [
        (&m::FACE_RECEIVED_PACKETS, |c| [c.in_interests, c.in_data, c.in_nacks]),
        (&m::FACE_SENT_PACKETS, |c| [c.out_interests, c.out_data, c.out_nacks]),
    ];
    for (metric, of) in packets {
        let mut family = page.family(metric)?;
        for (id, counters) in &s.faces {
            for (kind, value) in PacketKind::ALL.iter().zip(of(counters)) {
                family.sample([u64::from(id.0).into(), kind.label().into()], value)?;
            }
        }
    }
    type Octets = fn(&FaceCounters) -> u64;
    let octets: [(&Metric<1>, Octets); 2] =
        [(&m::FACE_RECEIVED_BYTES, |c| c.in_bytes), (&m::FACE_SENT_BYTES, |c| c.out_bytes)];
    for (metric, of) in octets {
        let mut family = page.family(metric)?;
        for (id, counters) in &s.faces {
            family.sample([u64::from(id.0).into()], of(counters))?;
        }
    }
    Ok(())
}

fn tables(page: &mut Page<'_>, s: &Snapshot) -> fmt::Result {
    page.single(&m::PIT_ENTRIES, s.sum(|s| s.pit_entries))?;
    page.single(&m::PIT_BYTES, s.sum(|s| s.pit_bytes))?;
    page.single(&m::PIT_FULL, s.pit_full)?;
    page.single(&m::PIT_SATISFIED, s.sum(|s| s.counters.satisfied_interests))?;
    page.single(&m::PIT_UNSATISFIED, s.sum(|s| s.counters.unsatisfied_interests))?;
    page.single(&m::PIT_DISPLACED, s.sum(|s| s.counters.displaced_interests))?;
    page.single(&m::CS_ENTRIES, s.sum(|s| s.cs_entries))?;
    page.single(&m::CS_BYTES, s.sum(|s| s.cs_bytes))?;
    page.single(&m::CS_FULL, s.cs_full)?;
    let (hits, misses) = (s.sum(|s| s.counters.cs_hits), s.sum(|s| s.counters.cs_misses));
    words(page, &m::CS_LOOKUPS, &[("hit", hits), ("miss", misses)])?;
    disk(page, s, &s.disk.clone().unwrap_or_default())?;
    // Every shard has the whole FIB.
    page.single(&m::FIB_ENTRIES, s.shards.first().map_or(0, |s| s.fib_entries))?;
    page.single(&m::RIB_ROUTES, s.rib_routes)
}

/// The second level of the content store; nothing was counted of it where there is none.
fn disk(page: &mut Page<'_>, s: &Snapshot, stats: &ShelfStats) -> fmt::Result {
    let counts = s.disk();
    page.single(&m::CS_DISK_ENTRIES, stats.packets)?;
    page.single(&m::CS_DISK_BYTES, stats.octets)?;
    page.single(&m::CS_DISK_TROUBLE, u64::from(stats.trouble.is_some()))?;
    words(
        page,
        &m::CS_DISK_LOOKUPS,
        &[
            ("hit", counts.hits),
            ("miss", counts.misses),
            ("late", counts.late),
            ("passed", counts.passed),
        ],
    )?;
    words(
        page,
        &m::CS_DISK_PACKETS,
        &[
            ("offered", counts.offers.offered),
            ("left_out", counts.offers.left_out),
            ("kept", stats.kept),
            ("refused", stats.refused),
            ("gone", stats.gone),
            ("damaged", stats.damaged),
        ],
    )
}

fn push(page: &mut Page<'_>, push: &PushCounts) -> fmt::Result {
    let mut frames = page.family(&m::PUSH_FRAMES)?;
    for (verdict, value) in onym_pubsub::Verdict::ALL.iter().zip(push.verdicts) {
        frames.sample([verdict.label().into()], value)?;
    }
    page.single(&m::PUSH_FRAMES_SENT, push.copies)?;
    words(
        page,
        &m::PUSH_DROPPED,
        &[
            ("push_not_local", push.dropped.not_local),
            ("push_backlog", push.dropped.backlog),
            ("push_app_malformed", push.app_malformed),
        ],
    )?;
    page.single(&m::PUSH_MESSAGES, push.messages)?;
    let [sent, delivered, lost] = push.publications;
    page.single(&m::PUSH_SENT, sent)?;
    page.single(&m::PUSH_DELIVERED, delivered)?;
    page.single(&m::PUSH_MISSED, push.dropped.missed)?;
    page.single(&m::PUSH_LOST, lost)?;
    let cache = &push.cache;
    words(page, &m::PUSH_CACHE_HITS, &[("told", cache.told), ("sent", cache.sent)])?;
    words(page, &m::PUSH_CACHE_FORGOTTEN, &[("room", cache.evicted), ("age", cache.expired)])?;
    page.single(&m::PUSH_CACHE_ENTRIES, cache.publications as u64)?;
    page.single(&m::PUSH_CACHE_BYTES, cache.octets as u64)?;
    page.single(&m::PUSH_APPLICATIONS, push.apps)?;
    page.single(&m::PUSH_VERTICES, push.vertices)
}
