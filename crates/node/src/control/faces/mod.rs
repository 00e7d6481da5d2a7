//! The record of every face: how faces are found, by number, by where they lead, by peer, and how
//! many there are.

mod block;
mod heard;
mod log;
mod record;
pub(super) mod room;

pub(super) use block::{Block, Newcomer};
pub(super) use record::Doubt;
pub(crate) use record::{NewFace, Origin, Record};

use crate::counts::LinkSums;
use crate::mgmt::host::User;
use log::Logs;
use onym_engine::{FaceMap, OwnerCounters};
use onym_face::Transport;
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::{Persistency, Scope};
use room::Room;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The faces there are. Changes nothing in the shards.
#[derive(Debug)]
pub(super) struct Faces {
    records: BTreeMap<FaceId, Record>,
    /// The faces that lead to each remote URI, the oldest first.
    by_remote: HashMap<String, SmallVec<[FaceId; 1]>>,
    /// Faces of peers on listeners without connections.
    by_origin: HashMap<Origin, FaceId>,
    /// Faces by the shard that does their I/O.
    per_shard: Vec<usize>,
    next: FaceId,
    pub(super) room: Room,
    pub(super) logs: Logs,
    /// What the faces that are closed counted, so that totals never shrink.
    pub(super) gone: LinkSums,
    /// When idle faces are looked for again.
    pub(super) next_idle_check: Tick,
}

impl Faces {
    /// No faces yet, for `shards` shards.
    pub(super) fn new(shards: usize, now: Tick) -> Self {
        Self {
            records: BTreeMap::new(),
            by_remote: HashMap::new(),
            by_origin: HashMap::new(),
            per_shard: vec![0; shards],
            next: FaceId::FIRST,
            room: Room::default(),
            logs: Logs::default(),
            gone: LinkSums::default(),
            next_idle_check: now,
        }
    }

    // ----- one face

    pub(super) fn get(&self, id: FaceId) -> Option<&Record> {
        self.records.get(&id)
    }

    /// For changes of anything but number, remote URI, shard, and whether it is a stranger's: by
    /// these it is found and counted.
    pub(super) fn get_mut(&mut self, id: FaceId) -> Option<&mut Record> {
        self.records.get_mut(&id)
    }

    /// Whether a route may lead to `id`.
    pub(super) fn is_next_hop(&self, id: FaceId) -> bool {
        self.records.contains_key(&id) || id == FaceId::NULL
    }

    /// Whether a face leads to an application on this machine.
    pub(super) fn is_local(&self, id: FaceId) -> bool {
        self.get(id).is_some_and(|record| record.scope == Scope::Local)
    }

    /// Who is behind a face.
    pub(super) fn user(&self, id: FaceId) -> User {
        self.get(id).map_or(User::UNKNOWN, |record| record.user)
    }

    /// The face that leads to `remote`; the oldest when there are several.
    pub(super) fn to(&self, remote: &str) -> Option<FaceId> {
        self.by_remote.get(remote)?.first().copied()
    }

    /// The face that was made for the peer.
    pub(super) fn of(&self, origin: Origin) -> Option<FaceId> {
        self.by_origin.get(&origin).copied()
    }

    // ----- all of them

    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    pub(super) fn ids(&self) -> Vec<FaceId> {
        self.records.keys().copied().collect()
    }

    /// Permanent faces that are down and whose time to be connected again has come.
    pub(super) fn due(&self, now: Tick) -> Vec<FaceId> {
        #[cfg(test)]
        super::work::LOOKED_AT.with(|count| count.set(count.get() + self.records.len()));
        self.iter().filter(|r| r.reconnect <= now).map(|r| r.id).collect()
    }

    /// Faces that had no traffic for so long that they are closed.
    pub(super) fn idle(&self, now: Tick, timeout: Duration) -> Vec<FaceId> {
        let is_idle = |r: &&Record| r.idles() && now.since(r.active) >= timeout;
        self.iter().filter(is_idle).map(|r| r.id).collect()
    }

    pub(super) fn poll_timeout(&self) -> Tick {
        let due = |r: &Record| r.reconnect.min(r.doubt.map_or(Tick::NEVER, |doubt| doubt.until));
        self.iter().map(due).min().unwrap_or(Tick::NEVER).min(self.next_idle_check)
    }

    /// Whether the time of a doubted face is over.
    pub(super) fn has_doubts(&self, now: Tick) -> bool {
        self.iter().any(|r| r.doubt.is_some_and(|doubt| doubt.until <= now))
    }

    /// Ends the doubts whose time is over; the faces whose peers were silent meanwhile.
    pub(super) fn silent(&mut self, counters: &FaceMap<OwnerCounters>, now: Tick) -> Vec<FaceId> {
        let mut silent = Vec::new();
        for record in self.records.values_mut() {
            let Some(doubt) = record.doubt.filter(|doubt| doubt.until <= now) else { continue };
            record.doubt = None;
            if counters.get(&record.id).map_or(0, |c| c.traffic.in_frames) == doubt.in_frames {
                silent.push(record.id);
            }
        }
        silent
    }

    /// Notes which faces had traffic since this was called last.
    pub(super) fn note_activity(&mut self, counters: &FaceMap<OwnerCounters>, now: Tick) {
        for record in self.records.values_mut() {
            let c = counters.get(&record.id).copied().unwrap_or_default();
            let frames = c.traffic.in_frames + c.link.frames_out;
            if frames != record.frames {
                (record.frames, record.active) = (frames, now);
            }
        }
    }

    // ----- in and out

    /// The number of the next face.
    pub(super) fn next(&self) -> FaceId {
        self.next
    }

    pub(super) fn shard_with_fewest(&self) -> usize {
        let each = self.per_shard.iter().enumerate();
        each.min_by_key(|(_, count)| **count).map_or(0, |(shard, _)| shard)
    }

    /// Enters a face.
    pub(super) fn enter(&mut self, record: Record) {
        self.next = self.next.max(FaceId(record.id.0 + 1));
        self.room.enter(&record);
        self.per_shard[record.owner] += 1;
        // Faces on several interfaces may lead to the same address.
        let there = self.by_remote.entry(record.remote.clone()).or_default();
        there.insert(there.partition_point(|id| *id < record.id), record.id);
        if let Some(origin) = record.origin {
            self.by_origin.insert(origin, record.id);
        }
        self.records.insert(record.id, record);
    }

    /// Takes a face out.
    pub(super) fn leave(&mut self, id: FaceId) -> Option<Record> {
        let record = self.records.remove(&id)?;
        self.room.leave(&record);
        self.per_shard[record.owner] -= 1;
        if let Some(origin) = record.origin {
            self.by_origin.remove(&origin);
        }
        if let Some(there) = self.by_remote.get_mut(&record.remote) {
            there.retain(|other| *other != id);
            if there.is_empty() {
                self.by_remote.remove(&record.remote);
            }
        }
        Some(record)
    }

    /// The transport of a face has become one of another kind: an application on the Unix socket
    /// asked for shared memory.
    pub(super) fn carried_by(
        &mut self,
        id: FaceId,
        transport: Transport,
        local: String,
        remote: String,
    ) {
        // Out and in again: others look it up by where it leads.
        let Some(mut record) = self.leave(id) else { return };
        tracing::info!(face = id.0, ?transport, local, "face carried by another transport");
        (record.transport, record.local, record.remote) = (transport, local, remote);
        self.enter(record);
    }

    /// A line in the log about a face.
    pub(super) fn log(&mut self, now: Tick, id: FaceId, what: &str, reason: &str) {
        if let Some(record) = self.records.get(&id) {
            self.logs.face(now, record, what, reason);
        }
    }

    /// A face that a peer made is now one that was asked for, and can be made again.
    pub(super) fn keep(
        &mut self,
        id: FaceId,
        persistency: Persistency,
        again: super::target::Target,
    ) {
        let Some(record) = self.records.get_mut(&id) else { return };
        if record.persistency == Persistency::OnDemand {
            record.persistency = persistency;
            record.target = Some(again);
        }
    }
}
