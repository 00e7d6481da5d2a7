//! Room for faces: how many there may be, who of the strangers gives way, and who leads where.

use super::Control;
use super::record::Record;
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::Persistency;
use std::time::Duration;

/// A stranger's face gives way when there is no room and it was idle for so long.
const GIVES_WAY_AFTER: Duration = Duration::from_secs(30);

/// How often faces that give way are looked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What is counted of faces there are.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Faces that other machines made by sending something.
    pub(crate) strangers: usize,
    /// Faces refused because of a limit.
    pub(crate) refused: u64,
    /// When faces that give way are looked for again.
    look_at: Tick,
}

impl Control {
    /// How many faces strangers may have: an eighth is kept for applications and for faces that
    /// are asked for.
    fn strangers_max(&self) -> usize {
        let all = self.config.faces.count_max as usize;
        all - (all / 8).max(1).min(all - 1)
    }

    /// Whether one more face may be made; the caller makes it then.
    ///
    /// # Errors
    /// A sentence with the limit.
    pub(crate) fn room_for_face(&mut self, is_stranger: bool) -> Result<(), String> {
        if self.has_room(is_stranger) {
            return Ok(());
        }
        self.make_room();
        if self.has_room(is_stranger) {
            return Ok(());
        }
        self.room.refused += 1;
        let (faces, strangers) = (self.faces.len(), self.room.strangers);
        Err(format!(
            "there are {faces} faces, {strangers} of them of strangers, and {} are allowed \
             (faces.count_max)",
            self.config.faces.count_max
        ))
    }

    fn has_room(&self, is_stranger: bool) -> bool {
        self.faces.len() < self.config.faces.count_max as usize
            && (!is_stranger || self.room.strangers < self.strangers_max())
    }

    /// Closes the faces of strangers that were idle for long, looking at most once a second.
    fn make_room(&mut self) {
        let now = self.clock.now();
        if now < self.room.look_at {
            return;
        }
        self.room.look_at = now + LOOK_INTERVAL;
        self.note_activity(now);
        let is_idle = |r: &Record| now.since(r.active) >= GIVES_WAY_AFTER;
        let gives_way =
            |r: &&Record| r.is_stranger() && r.persistency == Persistency::OnDemand && is_idle(r);
        let idle: Vec<FaceId> = self.faces.values().filter(gives_way).map(|r| r.id).collect();
        for id in idle {
            self.face_remove(id, "idle, and there is no room");
        }
    }

    /// Enters a new face into the lists.
    pub(super) fn enter(&mut self, record: Record) {
        self.room.strangers += usize::from(record.is_stranger());
        self.per_shard[record.owner] += 1;
        // The first one that leads somewhere is the one that is meant.
        self.by_remote.entry(record.remote.clone()).or_insert(record.id);
        self.faces.insert(record.id, record);
    }

    /// Takes a face out of the lists.
    pub(super) fn leave(&mut self, id: FaceId) -> Option<Record> {
        let record = self.faces.remove(&id)?;
        self.room.strangers -= usize::from(record.is_stranger());
        self.per_shard[record.owner] -= 1;
        if self.by_remote.get(&record.remote) == Some(&id) {
            self.by_remote.remove(&record.remote);
            // Faces on several interfaces may lead to the same address.
            if record.is_datagram()
                && let Some(other) = self.faces.values().find(|r| r.remote == record.remote)
            {
                self.by_remote.insert(record.remote.clone(), other.id);
            }
        }
        Some(record)
    }

    /// The face that leads to `remote`; the oldest when there are several.
    pub(crate) fn face_by_remote(&self, remote: &str) -> Option<FaceId> {
        self.by_remote.get(remote).copied()
    }

    pub(super) fn shard_with_fewest_faces(&self) -> usize {
        let each = self.per_shard.iter().enumerate();
        each.min_by_key(|(_, count)| **count).map_or(0, |(shard, _)| shard)
    }
}
