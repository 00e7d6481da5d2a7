//! What the node counts, put together for management, metrics and tests.

use super::Io;
use super::listeners;
use super::plane::Plane;
use crate::config::CsDisk;
use crate::counts::{LinkSums, ShardState, Snapshot, fullness};
use crate::disk::Disk;
use crate::mgmt::host::{FaceCounters, NodeView};
use onym_engine::clock::unix_ms;
use onym_forward::verdict::{Counters, Verdict};
use onym_link::PacketKind;
use serde_json::{Value, json};
use std::time::Duration;

/// The node looked at as a whole.
pub(super) struct Survey<'a> {
    pub(super) plane: &'a mut Plane,
    pub(super) io: &'a Io,
}

impl Survey<'_> {
    /// Everything that the node counts, each shard at one moment of its own, but for management; what
    /// the push half counted may be that of the last time when its thread does not say so within
    /// `patience`.
    pub(super) fn snapshot(&mut self, patience: Duration) -> Snapshot {
        let Plane { push, shards, .. } = &mut *self.plane;
        let push = push.as_mut().map(|push| push.counts(shards, patience));
        let mut links = self.links();
        for listener in self.io.listeners() {
            links.add_refused(&listener.counters());
        }
        let shards = self.plane.shards.states();
        // As in a shard's own tables, which have an even part of each bound.
        let config = &self.plane.settings.config;
        let part = |max: usize| max.div_ceil(shards.len().max(1));
        let fullest = |used: &dyn Fn(&ShardState) -> [(u64, usize); 2]| {
            shards.iter().map(|shard| fullness(used(shard))).fold(0.0, f64::max)
        };
        let (pit, cs) = (&config.pit, &config.cs);
        let pit_full = fullest(&|shard| {
            [(shard.pit_entries, part(pit.entries_max)), (shard.pit_bytes, part(pit.bytes_max))]
        });
        let cs_full = fullest(&|shard| {
            [(shard.cs_entries, part(cs.packets_max)), (shard.cs_bytes, part(cs.bytes_max))]
        });
        Snapshot {
            shards,
            links,
            faces: self.plane.face_counters(),
            faces_down: self.plane.faces.iter().filter(|record| !record.up).count() as u64,
            pit_full,
            cs_full,
            faces_refused: self.plane.faces.room.refused,
            listener_full: self.plane.listeners.late_frames,
            rib_routes: self.plane.routes.len() as u64,
            push,
            management: crate::mgmt::Counters::default(),
            trust: Vec::new(),
            verified: self.plane.verified,
            exported: self.plane.exported.counts(),
            disk: self.plane.disk.as_ref().map(Disk::stats),
        }
    }

    /// What link services and transports counted, of faces that are and were.
    fn links(&self) -> LinkSums {
        let mut links = self.plane.faces.gone.clone();
        self.plane.shards.owner_counters().values().for_each(|c| links.add(c));
        links
    }

    /// The state of the node as `status/general` says it.
    pub(super) fn view(&self) -> NodeView {
        let shards = self.plane.shards.states();
        let links = self.links();
        let sum = |of: fn(&ShardState) -> u64| shards.iter().map(of).sum::<u64>();
        let total = |of: fn(&Counters) -> u64| shards.iter().map(|s| of(&s.counters)).sum::<u64>();
        let fib_entries = shards.first().map_or(0, |s| s.fib_entries);
        NodeView {
            version: concat!("onym ", env!("CARGO_PKG_VERSION")).to_owned(),
            start_ms: self.plane.start_ms,
            now_ms: unix_ms(),
            // There is no name tree; what tables hold names is counted here.
            name_tree_entries: fib_entries + sum(|s| s.pit_entries) + sum(|s| s.cs_entries),
            fib_entries,
            pit_entries: sum(|s| s.pit_entries),
            measurements_entries: 0,
            cs_entries: sum(|s| s.cs_entries),
            counters: FaceCounters {
                in_interests: total(|c| c.received[0]),
                in_data: total(|c| c.received[1]),
                in_nacks: total(|c| c.received[2]),
                out_interests: total(|c| c.sent[0]),
                out_data: total(|c| c.sent[1]),
                out_nacks: total(|c| c.sent[2]),
                in_bytes: links.in_bytes,
                out_bytes: links.out_bytes,
                path_mtu: None,
            },
            satisfied_interests: total(|c| c.satisfied_interests),
            unsatisfied_interests: total(|c| c.unsatisfied_interests),
        }
    }

    /// `/localhost/onym/status/node`.
    pub(super) fn json(&mut self) -> String {
        self.value().to_string()
    }

    /// The same before it is written.
    pub(super) fn value(&mut self) -> Value {
        let snapshot = self.snapshot(crate::push::ANSWER_MAX);
        let verdicts = |kind: PacketKind| -> Value {
            let each = Verdict::ALL.iter().map(|v| (v.label(), snapshot.verdict(kind, *v)));
            each.filter(|(_, n)| *n > 0).map(|(w, n)| (w.to_owned(), Value::from(n))).collect()
        };
        let words = |list: Vec<(&'static str, u64)>| -> Value {
            let each = list.into_iter().filter(|(_, n)| *n > 0);
            each.map(|(w, n)| (w.to_owned(), Value::from(n))).collect()
        };
        let view = self.view();
        let config = &self.plane.settings.config;
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "start_ms": self.plane.start_ms,
            "now_ms": view.now_ms,
            "pid": std::process::id(),
            "shards": snapshot.shards.len(),
            "faces": snapshot.faces.len(),
            "faces_max": config.faces.count_max,
            "faces_refused": snapshot.faces_refused,
            "listeners": listeners::uris(self.io),
            "pit": {
                "entries": view.pit_entries,
                "entries_max": config.pit.entries_max,
                "bytes": snapshot.sum(|s| s.pit_bytes),
                "bytes_max": config.pit.bytes_max,
            },
            "cs": {
                "entries": view.cs_entries,
                "packets_max": config.cs.packets_max,
                "bytes_max": config.cs.bytes_max,
                "bytes": snapshot.sum(|s| s.cs_bytes),
                "hits": snapshot.sum(|s| s.counters.cs_hits),
                "misses": snapshot.sum(|s| s.counters.cs_misses),
                "disk": disk(&snapshot, &config.cs.disk),
            },
            "fib": { "entries": view.fib_entries, "routes_max": config.fib.routes_max },
            "rib": { "routes": self.plane.routes.len(), "routes_max": config.tables.rib_routes_max },
            "satisfied_interests": view.satisfied_interests,
            "unsatisfied_interests": view.unsatisfied_interests,
            "displaced_interests": snapshot.sum(|s| s.counters.displaced_interests),
            "interests": verdicts(PacketKind::Interest),
            "data": verdicts(PacketKind::Data),
            "nacks": verdicts(PacketKind::Nack),
            "dropped": words(snapshot.dropped()),
            "sent": {
                "interests": view.counters.out_interests,
                "data": view.counters.out_data,
                "nacks": view.counters.out_nacks,
            },
            "unsent": words(snapshot.unsent()),
            "frames_dropped": words(snapshot.frames_dropped()),
            "busy_ns": snapshot.shards.iter().map(|s| s.busy_ns).collect::<Vec<_>>(),
            "in_bytes": view.counters.in_bytes,
            "out_bytes": view.counters.out_bytes,
        })
    }
}

/// The second level of the content store; null without one.
fn disk(snapshot: &Snapshot, config: &CsDisk) -> Value {
    let (Some(stats), counts) = (&snapshot.disk, snapshot.disk()) else { return Value::Null };
    json!({
        "folder": config.folder,
        "packets": stats.packets,
        "packets_max": config.packets_max,
        "bytes": stats.octets,
        "bytes_max": config.bytes_max,
        "hits": counts.hits,
        "misses": counts.misses,
        "late": counts.late,
        "passed": counts.passed,
        "offered": counts.offers.offered,
        "left_out": counts.offers.left_out,
        "kept": stats.kept,
        "refused": stats.refused,
        "gone": stats.gone,
        "damaged": stats.damaged,
        "trouble": stats.trouble,
    })
}
