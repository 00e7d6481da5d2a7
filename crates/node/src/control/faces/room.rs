//! Limits of faces, and which strangers give way.

use super::block::{Block, Newcomer};
use super::record::Record;
use crate::mgmt::host::FaceCounters;
use onym_engine::FaceMap;
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::Persistency;
use std::collections::HashMap;
use std::time::Duration;

/// A stranger's face gives way when there is no room and it was idle for so long.
const GIVES_WAY_AFTER: Duration = Duration::from_secs(30);

/// How often faces that give way are looked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Faces that give way at once: closing one takes a moment, and the newcomer, and all of management,
/// waits.
const GIVE_WAY_AT_ONCE: usize = 128;

/// When there were more of them.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A stranger's face gives way when there is no room and nothing was answered by or through it for so
/// long after it was made.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Faces that a block may have whatever its share.
const SHARE_MIN: usize = 8;

/// What is counted of faces there are.
#[derive(Debug, Default)]
pub(in crate::control) struct Room {
    /// Faces there are.
    faces: usize,
    /// Faces that other machines made by sending something.
    strangers: usize,
    /// The same by block.
    blocks: HashMap<Block, usize>,
    /// Faces refused because of a limit.
    pub(in crate::control) refused: u64,
    /// When faces that give way are looked for again.
    look_at: Tick,
}

/// How many faces strangers may have of `faces_max`: an eighth is kept for applications and for
/// faces that are asked for.
fn strangers_max(faces_max: usize) -> usize {
    faces_max - (faces_max / 8).max(1).min(faces_max - 1)
}

impl Room {
    /// How many faces one block of strangers may have: any number while a quarter of their room is
    /// free, then its share.
    fn share(&self, faces_max: usize) -> usize {
        let max = strangers_max(faces_max);
        if self.strangers < max - max / 4 {
            return max;
        }
        // One more than there are: room for who comes next.
        (max / (self.blocks.len() + 1)).max(SHARE_MIN)
    }

    /// Whether one more face may be made.
    pub(in crate::control) fn has_for(&self, newcomer: Newcomer, faces_max: usize) -> bool {
        let is_full = self.faces >= faces_max;
        let Newcomer::Stranger(block) = newcomer else { return !is_full };
        let own = self.blocks.get(&block).copied().unwrap_or(0);
        !is_full && self.strangers < strangers_max(faces_max) && own < self.share(faces_max)
    }

    /// Whether faces that give way may be looked for: once in [`LOOK_INTERVAL`].
    pub(in crate::control) fn may_look(&mut self, now: Tick) -> bool {
        let is_due = now >= self.look_at;
        if is_due {
            self.look_at = now + LOOK_INTERVAL;
        }
        is_due
    }

    /// Those of `faces` that give way now, the ones made first; the others are looked for again soon.
    pub(in crate::control) fn at_once(&mut self, mut faces: Vec<FaceId>, now: Tick) -> Vec<FaceId> {
        if faces.len() > GIVE_WAY_AT_ONCE {
            faces.sort_unstable();
            faces.truncate(GIVE_WAY_AT_ONCE);
            self.look_at = now + LOOK_AGAIN;
        }
        faces
    }

    /// Counts one that was refused; the sentence with the limit.
    pub(in crate::control) fn refuse(&mut self, faces_max: usize) -> String {
        self.refused += 1;
        format!(
            "there are {} faces, {} of them of strangers in {} blocks of addresses, and \
             {faces_max} are allowed (faces.count_max)",
            self.faces,
            self.strangers,
            self.blocks.len(),
        )
    }

    /// Whether strangers have all the room that they may have.
    pub(in crate::control) fn is_full_of_strangers(&self, faces_max: usize) -> bool {
        self.strangers >= strangers_max(faces_max)
    }

    /// Faces of strangers beyond the share of their block, those used longest ago.
    pub(in crate::control) fn beyond_share<'a>(
        &self,
        records: impl Iterator<Item = &'a Record>,
        faces_max: usize,
    ) -> Vec<FaceId> {
        let share = self.share(faces_max);
        let mut over: HashMap<Block, Vec<(Tick, FaceId)>> = HashMap::new();
        for record in records.filter(|r| gives_way(r)) {
            if self.blocks.get(&record.block).is_some_and(|count| *count > share) {
                over.entry(record.block).or_default().push((record.active, record.id));
            }
        }
        let mut excess = Vec::new();
        for mut faces in over.into_values() {
            faces.sort_unstable();
            let kept = faces.len().min(share);
            faces.truncate(faces.len() - kept);
            excess.extend(faces.into_iter().map(|(_, id)| id));
        }
        excess
    }

    pub(super) fn enter(&mut self, record: &Record) {
        self.faces += 1;
        if record.is_stranger() {
            self.strangers += 1;
            *self.blocks.entry(record.block).or_default() += 1;
        }
    }

    pub(super) fn leave(&mut self, record: &Record) {
        self.faces -= 1;
        if !record.is_stranger() {
            return;
        }
        self.strangers -= 1;
        if let Some(count) = self.blocks.get_mut(&record.block) {
            *count -= 1;
            if *count == 0 {
                self.blocks.remove(&record.block);
            }
        }
    }
}

fn gives_way(record: &Record) -> bool {
    record.is_stranger() && record.persistency == Persistency::OnDemand
}

/// Faces of strangers that give way to `newcomer`: those that were idle for long, and for another
/// stranger also those that never had an answer.
pub(in crate::control) fn useless<'a>(
    records: impl Iterator<Item = &'a Record>,
    packets: &FaceMap<FaceCounters>,
    newcomer: Newcomer,
    now: Tick,
) -> Vec<FaceId> {
    let is_useless = |r: &&Record| {
        let c = packets.get(&r.id).copied().unwrap_or_default();
        let is_answered = c.out_data + c.in_data + c.out_interests > 0;
        now.since(r.active) >= GIVES_WAY_AFTER
            || newcomer != Newcomer::Own && !is_answered && now.since(r.made) >= ANSWERED_WITHIN
    };
    records.filter(|r| gives_way(r)).filter(is_useless).map(|r| r.id).collect()
}
