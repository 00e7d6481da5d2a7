//! How far the publications of each node were delivered, and what to fetch next.

use super::fetch::What;
use super::key::Key;
use super::object::HistoryEntry;
use super::{Alo, AloEvent, Snapshots, names};
use onym_tables::Tick;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// First wait after a fetch that failed; it doubles up to the last one. Who is just heard of may have
/// no route yet, and has one a moment later.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_DOUBLINGS: u32 = 8;
/// After so many failures a short history is fetched piece by piece: the peer has no snapshots.
const SNAPSHOT_FAILURES: u32 = 4;

/// Vectors that were under way when we came, old ones among them, may be heard for so long: only
/// then is it known what is the newest.
const START_WAIT: Duration = Duration::from_millis(100);

/// After so many failures in a row publications are given up, where no snapshot stands for them.
const GIVE_UP_FAILURES: u32 = 8;

#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Newest publication that the group knows.
    latest: u64,
    /// Last one that was delivered; everything before it was, too.
    delivered: u64,
    has_started: bool,
    /// When it was first to be fetched.
    started: Option<Tick>,
    in_flight: BTreeSet<u64>,
    /// Fetched, and waiting for an earlier one.
    ready: BTreeMap<u64, Vec<u8>>,
    /// A snapshot is under way; publications wait for it.
    is_blocked: bool,
    /// `latest` when a snapshot was asked for the last time.
    snapshot_at: Option<u64>,
    /// The node seems to have no snapshots.
    has_none: bool,
    /// Bundles of history that are still to be fetched.
    bundles: Vec<u64>,
    failures: u32,
    retry_at: Tick,
}

impl Alo {
    /// The group knows of `seq`.
    pub(crate) fn advance(&mut self, now: Tick, key: Key, seq: u64) {
        let progress = self.progress.entry(key.clone()).or_default();
        progress.latest = progress.latest.max(seq);
        if matches!(self.config.snapshots, Snapshots::Latest { .. }) {
            let first = Key { node: key.node.clone(), boot: 0 };
            let older: Vec<Key> =
                self.progress.range(first..key.clone()).map(|(k, _)| k.clone()).collect();
            older.iter().for_each(|older| self.stop(older));
        }
        self.pump(now, &key);
    }

    /// Forgets nodes that the vector forgot.
    pub(crate) fn prune(&mut self) {
        let vector = self.svs.vector();
        if self.progress.len() <= 2 * vector.len() + 64 {
            return;
        }
        let gone = |key: &&Key| vector.seq(&key.node, key.boot) == 0;
        let keys: Vec<Key> = self.progress.keys().filter(gone).cloned().collect();
        for key in keys {
            self.stop(&key);
            self.progress.remove(&key);
        }
    }

    /// Stops fetching of `key`; what was delivered is remembered.
    pub(crate) fn stop(&mut self, key: &Key) {
        self.abandon(key, |_| true);
        let Some(progress) = self.progress.get_mut(key) else { return };
        progress.in_flight.clear();
        progress.is_blocked = false;
        progress.bundles.clear();
        self.held -= progress.ready.values().map(Vec::len).sum::<usize>();
        progress.ready.clear();
    }

    /// Starts what can be started for `key`.
    pub(crate) fn pump(&mut self, now: Tick, key: &Key) {
        if !self.is_subscribed(&key.node) {
            return;
        }
        let is_own = Some(&key.node) == self.config.svs.node.as_ref();
        if matches!(self.config.snapshots, Snapshots::Latest { .. })
            && (is_own || !self.is_newest(key))
        {
            return;
        }
        let snapshots = self.config.snapshots;
        let Some(progress) = self.progress.get_mut(key) else { return };
        if progress.retry_at > now {
            self.timers.insert((progress.retry_at, key.clone()));
            return;
        }
        if progress.is_blocked || progress.delivered >= progress.latest {
            return;
        }
        if let (Snapshots::None { last }, false) = (snapshots, progress.has_started) {
            let from = *progress.started.get_or_insert(now);
            if last != u64::MAX && now.since(from) < START_WAIT {
                self.timers.insert((from + START_WAIT, key.clone()));
                return;
            }
            progress.has_started = true;
            progress.delivered = progress.latest.saturating_sub(last);
        }
        if let Some(keyword) = progress.wants_snapshot(snapshots) {
            progress.is_blocked = true;
            progress.snapshot_at = Some(progress.latest);
            let base = names::special(&self.config, &key.node, key.boot, keyword);
            let what = if keyword == "SNAP" { What::SnapshotName } else { What::IndexName };
            return self.fetch(now, key, what, base);
        }
        self.fill(now, key);
    }

    fn is_newest(&self, key: &Key) -> bool {
        let later = Key { node: key.node.clone(), boot: key.boot.saturating_add(1) };
        let next = self.progress.range(later..).next();
        next.is_none_or(|(other, _)| other.node != key.node)
    }

    fn fill(&mut self, now: Tick, key: &Key) {
        let limits = self.config.limits;
        loop {
            let is_full = self.fetches.len() >= limits.fetches_max;
            let Some(progress) = self.progress.get_mut(key) else { return };
            let Some(seq) = progress.next(limits.ahead_max) else { return };
            if is_full {
                // Others are under way: their ends are heard of soon.
                self.timers.insert((now + RETRY_FIRST, key.clone()));
                return;
            }
            progress.in_flight.insert(seq);
            let base = names::publication(&self.config, &key.node, key.boot, seq);
            self.fetch(now, key, What::Publication(seq), base);
        }
    }

    pub(crate) fn on_publication(&mut self, now: Tick, key: &Key, seq: u64, content: Vec<u8>) {
        let Some(progress) = self.progress.get_mut(key) else { return };
        progress.in_flight.remove(&seq);
        progress.failures = 0;
        if seq > progress.delivered {
            self.held += content.len();
            progress.ready.insert(seq, content);
        }
        self.deliver(key);
        self.pump(now, key);
    }

    /// Delivers what is ready and in turn.
    fn deliver(&mut self, key: &Key) {
        let Some(progress) = self.progress.get_mut(key) else { return };
        while let Some(content) = progress.ready.remove(&(progress.delivered + 1)) {
            progress.delivered += 1;
            self.held -= content.len();
            let (node, boot, seq) = (key.node.clone(), key.boot, progress.delivered);
            self.events.push_back(AloEvent::Publication { node, boot, seq, content });
        }
    }

    pub(crate) fn on_snapshot(&mut self, now: Tick, key: &Key, version: u64, content: Vec<u8>) {
        let Some(progress) = self.progress.get_mut(key) else { return };
        progress.is_blocked = false;
        progress.failures = 0;
        if version > progress.delivered {
            let (node, boot) = (key.node.clone(), key.boot);
            self.events.push_back(AloEvent::Snapshot { node, boot, seq: version, content });
            self.skip_to(key, version);
        }
        self.deliver(key);
        self.pump(now, key);
    }

    /// Everything up to `seq` was delivered otherwise.
    fn skip_to(&mut self, key: &Key, seq: u64) {
        self.abandon(key, |what| matches!(what, What::Publication(n) if n <= seq));
        let Some(progress) = self.progress.get_mut(key) else { return };
        progress.delivered = seq;
        progress.latest = progress.latest.max(seq);
        let later = progress.ready.split_off(&(seq + 1));
        self.held -= progress.ready.values().map(Vec::len).sum::<usize>();
        progress.ready = later;
        progress.in_flight = progress.in_flight.split_off(&(seq + 1));
    }

    pub(crate) fn on_index(&mut self, now: Tick, key: &Key, index: &[u64]) {
        let Some(progress) = self.progress.get_mut(key) else { return };
        let delivered = progress.delivered;
        // Fetched from the end of the list.
        progress.bundles = index.iter().rev().copied().filter(|seq| *seq > delivered).collect();
        self.next_bundle(now, key);
    }

    fn next_bundle(&mut self, now: Tick, key: &Key) {
        let Some(progress) = self.progress.get_mut(key) else { return };
        if let Some(version) = progress.bundles.pop() {
            let mut base = names::special(&self.config, &key.node, key.boot, "HIST");
            base.append_version(version);
            return self.fetch(now, key, What::Bundle(version), base);
        }
        progress.is_blocked = false;
        progress.failures = 0;
        self.deliver(key);
        self.pump(now, key);
    }

    pub(crate) fn on_bundle(&mut self, now: Tick, key: &Key, last: u64, all: Vec<HistoryEntry>) {
        if all.last().is_none_or(|entry| entry.seq != last) {
            return self.on_failure(now, key, What::Bundle(last));
        }
        let delivered = self.progress.get(key).map_or(0, |p| p.delivered);
        for entry in all.into_iter().filter(|entry| entry.seq > delivered) {
            let (node, boot) = (key.node.clone(), key.boot);
            let (seq, content) = (entry.seq, entry.content);
            self.events.push_back(AloEvent::Publication { node, boot, seq, content });
        }
        self.skip_to(key, last);
        self.next_bundle(now, key);
    }

    pub(crate) fn on_failure(&mut self, now: Tick, key: &Key, what: What) {
        let Some(progress) = self.progress.get_mut(key) else { return };
        if let What::Publication(seq) = what {
            progress.in_flight.remove(&seq);
        } else {
            progress.is_blocked = false;
            progress.bundles.clear();
            progress.snapshot_at = None;
        }
        // What failed together counts once.
        if progress.retry_at > now {
            return;
        }
        progress.failures += 1;
        progress.has_none |= progress.delivered == 0 && progress.failures >= SNAPSHOT_FAILURES;
        let doublings = (progress.failures - 1).min(RETRY_DOUBLINGS);
        progress.retry_at = now + RETRY_FIRST * 2u32.pow(doublings);
        self.timers.insert((progress.retry_at, key.clone()));
        let (node, boot, failures) = (key.node.clone(), key.boot, progress.failures);
        self.events.push_back(AloEvent::Unreachable { node, boot, failures });
        if matches!(self.config.snapshots, Snapshots::None { .. }) && failures >= GIVE_UP_FAILURES {
            self.give_up(key);
        }
    }

    /// The next publications cannot be had: goes on with the first one that can, or behind all that
    /// were asked for.
    fn give_up(&mut self, key: &Key) {
        let ahead_max = self.config.limits.ahead_max;
        let Some(progress) = self.progress.get_mut(key) else { return };
        let low = progress.delivered + 1;
        let high = match progress.ready.keys().next() {
            Some(first) => first - 1,
            None => progress.latest.min(progress.delivered + ahead_max),
        };
        let (node, boot) = (key.node.clone(), key.boot);
        self.events.push_back(AloEvent::Lost { node, boot, low, high });
        self.skip_to(key, high);
        self.deliver(key);
    }
}

impl Progress {
    /// The keyword of the snapshot to fetch, if one is due.
    fn wants_snapshot(&self, snapshots: Snapshots) -> Option<&'static str> {
        let (keyword, threshold) = match snapshots {
            Snapshots::None { .. } => return None,
            Snapshots::Latest { threshold } => ("SNAP", threshold),
            Snapshots::History { threshold } => ("HIDX", threshold),
        };
        let far = threshold.saturating_mul(2);
        let from = self.delivered.max(self.snapshot_at.unwrap_or(0));
        let is_far = self.latest - from.min(self.latest) >= far;
        let is_new = self.delivered == 0 && self.snapshot_at.is_none();
        let is_short = self.has_none && self.latest <= far;
        ((is_far || is_new) && !is_short).then_some(keyword)
    }

    /// The next publication to ask for.
    fn next(&self, ahead_max: u64) -> Option<u64> {
        let end = self.latest.min(self.delivered.saturating_add(ahead_max));
        (self.delivered + 1..=end)
            .find(|n| !self.in_flight.contains(n) && !self.ready.contains_key(n))
    }
}
