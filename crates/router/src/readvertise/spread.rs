//! Routes announced to one destination, and when each is repeated: a state machine.

use onym_tables::Tick;
use onym_wire::Name;
use std::collections::BTreeMap;

/// Prefixes told to one place, at most; further ones are not, and the log says so.
const PREFIXES_MAX: usize = 65_536;

/// When something is said again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    refresh_ms: u64,
    retry_ms: u64,
    retry_max_ms: u64,
}

impl Timing {
    /// As NFD does.
    pub(super) const NLSR: Self =
        Self { refresh_ms: 3_600_000, retry_ms: 100_000, retry_max_ms: 3_600_000 };
    /// As NFD's configuration has it.
    pub(super) const HUB: Self =
        Self { refresh_ms: 300_000, retry_ms: 50_000, retry_max_ms: 3_600_000 };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// At this cost.
    Register(u64),
    Unregister,
}

/// Whether somebody takes commands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    There,
    Away,
}

/// What became of something said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Failed,
}

/// Something to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) prefix: Name,
    pub(super) verb: Verb,
}

#[derive(Debug)]
struct Entry {
    /// None: it shall not be there.
    wanted: Option<u64>,
    /// What the other side has, as far as it said.
    there: Option<u64>,
    due: Tick,
    failures: u32,
}

/// What one place is told.
#[derive(Debug)]
pub(super) struct Spread {
    timing: Timing,
    place: Place,
    is_full: bool,
    entries: BTreeMap<Name, Entry>,
}

impl Spread {
    pub(super) fn new(timing: Timing) -> Self {
        Self { timing, place: Place::Away, is_full: false, entries: BTreeMap::new() }
    }

    /// Somebody is there or not, and these prefixes are to be there.
    pub(super) fn look(&mut self, now: Tick, place: Place, wanted: BTreeMap<Name, u64>) {
        if place == Place::There && self.place == Place::Away {
            // It begins and knows nothing: all is said again.
            for entry in self.entries.values_mut() {
                (entry.there, entry.due, entry.failures) = (None, now, 0);
            }
        }
        self.place = place;
        for (name, entry) in &mut self.entries {
            let want = wanted.get(name).copied();
            if want != entry.wanted {
                (entry.wanted, entry.due, entry.failures) = (want, now, 0);
            }
        }
        self.entries.retain(|_, entry| entry.wanted.is_some() || entry.there.is_some());
        let before = self.is_full;
        self.is_full = false;
        for (name, cost) in wanted {
            if self.entries.contains_key(&name) {
                continue;
            }
            if self.entries.len() >= PREFIXES_MAX {
                self.is_full = true;
                break;
            }
            let entry = Entry { wanted: Some(cost), there: None, due: now, failures: 0 };
            self.entries.insert(name, entry);
        }
        if self.is_full && !before {
            tracing::warn!(target: "onym::readvertise", "more than {PREFIXES_MAX} prefixes: the rest is not told");
        }
    }

    /// Something to say now.
    pub(super) fn next(&self, now: Tick) -> Option<Told> {
        let mut entries = self.entries.iter().filter(|_| self.place == Place::There);
        let (prefix, entry) = entries.find(|(_, entry)| entry.due <= now)?;
        let verb = entry.wanted.map_or(Verb::Unregister, Verb::Register);
        Some(Told { prefix: prefix.clone(), verb })
    }

    /// It was said, with this outcome.
    pub(super) fn answered(&mut self, now: Tick, told: &Told, outcome: Outcome) {
        let is_done = outcome == Outcome::Done;
        let timing = self.timing;
        // Not wanted any more since it was said: it has to be taken back.
        let gone = || Entry { wanted: None, there: None, due: now, failures: 0 };
        let entry = match told.verb {
            Verb::Register(_) if is_done => {
                self.entries.entry(told.prefix.clone()).or_insert_with(gone)
            }
            _ => match self.entries.get_mut(&told.prefix) {
                Some(entry) => entry,
                None => return,
            },
        };
        if is_done {
            entry.failures = 0;
            entry.there = match told.verb {
                Verb::Register(cost) => Some(cost),
                Verb::Unregister => None,
            };
            let is_so = entry.there == entry.wanted;
            entry.due = if is_so { now.plus_ms(timing.refresh_ms) } else { now };
            if is_so && entry.there.is_none() {
                self.entries.remove(&told.prefix);
            }
            return;
        }
        let wait = timing.retry_ms.saturating_mul(1 << entry.failures.min(16));
        entry.failures += 1;
        entry.due = now.plus_ms(wait.min(timing.retry_max_ms));
    }
}
