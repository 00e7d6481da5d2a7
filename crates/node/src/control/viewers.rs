//! Viewers of the node's traffic: the state of each, and when its lease ends.

use super::shards::Shards;
use crate::mgmt::host::FaceCounters;
use crate::mgmt::look::Sight;
use crate::shard::{WatchOrder, Watched};
use onym_engine::OwnerCounters;
use onym_tables::{FaceId, Tick};
use onym_watch::{LEASE, PrefixRow};
use onym_wire::Name;
use serde::Serialize;
use std::collections::HashMap;
use std::time::Duration;

/// Viewers of `onym top` at the same time.
const VIEWERS_MAX: usize = 4;
/// Prefixes of an answer.
pub(super) const PREFIXES_MAX: usize = 100;
/// Standard deviations of a number that is told of samples; chance exceeds them once in twenty times.
const DEVIATIONS: u64 = 2;

/// What a face had counted when a viewer asked last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) packets: FaceCounters,
    pub(super) owner: OwnerCounters,
}

impl Counted {
    /// Packets for this face that were not sent.
    pub(super) fn losses(&self) -> u64 {
        let o = &self.owner;
        o.link.queue_full + o.link.over_mtu + o.traffic.face_gone + o.io.out_refused
    }
}

/// One viewer of `onym top`, with what it was told last.
#[derive(Debug)]
pub(super) struct Viewer {
    id: u64,
    /// It may see names.
    is_trusted: bool,
    pub(super) asked: Tick,
    pub(super) faces: HashMap<FaceId, Counted>,
    /// By shard.
    told: Vec<Told>,
}

/// What a shard had counted of prefixes when a viewer asked last.
#[derive(Debug)]
struct Told {
    rows: HashMap<Name, PrefixRow>,
    /// At most so many packets a prefix had that is not among them.
    unseen_max: u64,
}

/// The viewers of a node.
#[derive(Debug)]
pub(super) struct Watches {
    viewers: Vec<Viewer>,
    /// Draws samples: which packets they are is not to be guessed by who sends them.
    pub(super) seed: u64,
    /// What is between the shells' clock and Unix time, in nanoseconds; once found it stays, so that
    /// records of one viewer are in order.
    pub(super) unix_offset: Option<u64>,
    /// When leases that were not renewed are over.
    due: Tick,
}

impl Watches {
    pub(super) const fn new(seed: u64) -> Self {
        Self { viewers: Vec::new(), seed, unix_offset: None, due: Tick::NEVER }
    }

    pub(super) const fn poll_timeout(&self) -> Tick {
        self.due
    }

    /// Ends what nobody asked about for long, when that is due.
    pub(super) fn handle_timeout(&mut self, shards: &Shards, now: Tick) {
        if self.due <= now {
            self.due = Tick::NEVER;
            self.viewers.retain(|viewer| now.since(viewer.asked) <= LEASE);
            shards.tell_all(|| WatchOrder::EndLeases);
        }
    }

    /// Somebody asks: its lease begins anew.
    pub(super) fn asked(&mut self, now: Tick) {
        self.due = now + LEASE + Duration::from_millis(1);
    }
}

/// A prefix as a viewer is told, by samples. Rates are a second's.
#[derive(Debug, Serialize)]
pub(super) struct PrefixShown {
    pub(super) prefix: String,
    interests: f64,
    hits: f64,
    drops: f64,
    data: f64,
    bytes: f64,
    /// Interests and Data together may be so many more or fewer.
    error: f64,
}

/// Counts as rates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    pub(super) seconds: f64,
}

impl Rates {
    /// How many a second, rounded to tenths; 0 at a first question.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn of(self, before: u64, after: u64) -> f64 {
        if self.seconds <= 0.0 {
            return 0.0;
        }
        (after.saturating_sub(before) as f64 / self.seconds * 10.0).round() / 10.0
    }
}

impl Watches {
    /// The viewer with this number, a new one when there is room. One who may see names takes the
    /// place of one who may not.
    ///
    /// # Errors
    /// A sentence: there are too many.
    pub(super) fn viewer(
        &mut self,
        now: Tick,
        id: u64,
        sight: &Sight,
    ) -> Result<&mut Viewer, String> {
        let is_trusted = *sight == Sight::Names;
        let is_same = |viewer: &Viewer| (viewer.id, viewer.is_trusted) == (id, is_trusted);
        self.viewers.retain(|viewer| is_same(viewer) || now.since(viewer.asked) <= LEASE);
        let is_known = self.viewers.iter().any(is_same);
        if !is_known && is_trusted && self.viewers.len() >= VIEWERS_MAX {
            let stranger = self.viewers.iter().position(|viewer| !viewer.is_trusted);
            stranger.map(|at| self.viewers.swap_remove(at));
        }
        let place = match self.viewers.iter().position(is_same) {
            Some(place) => place,
            None if self.viewers.len() < VIEWERS_MAX => {
                let (faces, told) = (HashMap::new(), Vec::new());
                self.viewers.push(Viewer { id, is_trusted, asked: now, faces, told });
                self.viewers.len() - 1
            }
            None => {
                let what = "others look already; wait until one of them ends";
                return Err(format!("{VIEWERS_MAX} {what}"));
            }
        };
        Ok(&mut self.viewers[place])
    }
}

impl Viewer {
    /// Prefixes by their packets since the last question.
    pub(super) fn prefixes(&mut self, rates: Rates, watched: &[Watched]) -> Vec<PrefixShown> {
        let mut sums: HashMap<Name, PrefixRow> = HashMap::new();
        let mut told = Vec::new();
        for (shard, watched) in watched.iter().enumerate() {
            let before = self.told.get(shard);
            let mut rows = HashMap::new();
            for row in &watched.prefixes {
                let past = before.and_then(|told| told.rows.get(&row.name));
                let grown = row.since(past, before.map_or(0, |told| told.unseen_max));
                match sums.get_mut(&row.name) {
                    Some(sum) => sum.add(&grown),
                    None => drop(sums.insert(row.name.clone(), grown)),
                }
                rows.insert(row.name.clone(), row.clone());
            }
            told.push(Told { rows, unseen_max: watched.unseen_max });
        }
        self.told = told;
        let mut shown: Vec<PrefixShown> = sums
            .values()
            .map(|row| {
                let rate = |count| rates.of(0, count);
                PrefixShown {
                    prefix: row.name.to_string(),
                    interests: rate(row.interests),
                    hits: rate(row.hits),
                    drops: rate(row.drops),
                    data: rate(row.data),
                    bytes: rate(row.octets),
                    error: rate(DEVIATIONS * row.variance.isqrt() + row.missing),
                }
            })
            .filter(|row| row.interests + row.data > 0.0)
            .collect();
        shown.sort_by(|a, b| {
            (b.interests + b.data).total_cmp(&(a.interests + a.data)).then(a.prefix.cmp(&b.prefix))
        });
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_may_not_see_names_do_not_lock_out_those_who_may() {
        let mut watches = Watches::new(1);
        let counts = Sight::Counts { why: String::new() };
        for id in 0..9 {
            let done = watches.viewer(Tick(id), id, &counts);
            assert_eq!(done.is_ok(), id < VIEWERS_MAX as u64, "{id}");
        }
        for id in 0..9 {
            let done = watches.viewer(Tick(id), id, &Sight::Names);
            assert_eq!(done.is_ok(), id < VIEWERS_MAX as u64, "{id}");
        }
        assert!(watches.viewers.iter().all(|viewer| viewer.is_trusted));
        // Nobody is another one by saying the same number.
        assert!(watches.viewer(Tick(9), 0, &counts).is_err());
    }
}
