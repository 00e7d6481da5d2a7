//! Desired and known routes of the forwarder; the difference becomes commands.

use super::CommandError;
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Commands without an answer, at most; the rest waits in order of names.
const IN_FLIGHT_MAX: usize = 64;
/// A command that failed is tried again after this time.
const RETRY_MS: u64 = 500;

/// One that the forwarder refused is tried again after this time.
const REFUSED_MS: u64 = 60_000;

type Hops = Vec<(u64, u64)>;

#[derive(Debug, Default)]
struct Prefix {
    wanted: Hops,
    installed: Hops,
    /// Commands under way.
    in_flight: usize,
}

/// Routes by prefix.
#[derive(Debug, Default)]
pub(super) struct Fib {
    prefixes: BTreeMap<Arc<Name>, Prefix>,
    dirty: BTreeSet<Arc<Name>>,
    retry: BTreeSet<(Tick, Arc<Name>)>,
    in_flight: usize,
    /// Commands of the prefix that is being worked on.
    ready: Vec<(Arc<Name>, u64, Option<u64>)>,
}

impl Fib {
    /// `prefix` shall go by `hops`: (face, cost), several costs of a face give the least.
    pub(super) fn set(&mut self, prefix: &Arc<Name>, hops: Hops) {
        let mut wanted: Hops = Vec::with_capacity(hops.len());
        for (face, cost) in hops {
            match wanted.iter_mut().find(|(known, _)| *known == face) {
                Some((_, known)) => *known = cost.min(*known),
                None => wanted.push((face, cost)),
            }
        }
        if !self.prefixes.contains_key(prefix) && wanted.is_empty() {
            return;
        }
        let entry = self.prefixes.entry(Arc::clone(prefix)).or_default();
        if entry.wanted != wanted {
            entry.wanted = wanted;
            self.dirty.insert(Arc::clone(prefix));
        }
    }

    /// The next command: prefix, face, and the cost to register or nothing to unregister.
    pub(super) fn next(&mut self, now: Tick) -> Option<(Arc<Name>, u64, Option<u64>)> {
        while self.retry.first().is_some_and(|(at, _)| *at <= now) {
            self.dirty.extend(self.retry.pop_first().map(|(_, name)| name));
        }
        while self.ready.is_empty() && self.in_flight < IN_FLIGHT_MAX {
            let name = self.dirty.pop_first()?;
            self.differ(&name);
        }
        self.ready.pop()
    }

    fn differ(&mut self, name: &Arc<Name>) {
        let Some(prefix) = self.prefixes.get_mut(name) else { return };
        // Its commands must not overtake each other: it comes again with their answers.
        if prefix.in_flight > 0 {
            return;
        }
        // Popped from the end: what is new first, so that there is no gap.
        for (face, _) in &prefix.installed {
            if !prefix.wanted.iter().any(|(wanted, _)| wanted == face) {
                self.ready.push((Arc::clone(name), *face, None));
            }
        }
        for hop in prefix.wanted.iter().rev().filter(|hop| !prefix.installed.contains(hop)) {
            self.ready.push((Arc::clone(name), hop.0, Some(hop.1)));
        }
        prefix.in_flight = self.ready.len();
        self.in_flight += self.ready.len();
        if self.ready.is_empty() && prefix.wanted.is_empty() {
            self.prefixes.remove(name);
        }
    }

    /// A command was carried out: the route has this cost, or is removed.
    pub(super) fn installed(&mut self, name: &Arc<Name>, face: u64, cost: Option<u64>) {
        let Some(prefix) = self.answered(name) else { return };
        prefix.installed.retain(|(installed, _)| *installed != face);
        prefix.installed.extend(cost.map(|cost| (face, cost)));
        self.dirty.insert(Arc::clone(name));
    }

    /// A command was refused, or not answered.
    pub(super) fn failed(
        &mut self,
        now: Tick,
        name: &Arc<Name>,
        face: u64,
        cost: Option<u64>,
        error: CommandError,
    ) {
        let Some(prefix) = self.answered(name) else { return };
        if cost.is_none() {
            // A route that cannot be removed is gone, or goes with its face.
            prefix.installed.retain(|(installed, _)| *installed != face);
        }
        // What the forwarder refuses, a name that is too long for it, is not asked again soon.
        let refused = matches!(error, CommandError::Refused(400..=499));
        let wait = if refused { REFUSED_MS } else { RETRY_MS };
        self.retry.insert((now.plus_ms(wait), Arc::clone(name)));
    }

    fn answered(&mut self, name: &Arc<Name>) -> Option<&mut Prefix> {
        self.in_flight = self.in_flight.saturating_sub(1);
        let prefix = self.prefixes.get_mut(name)?;
        prefix.in_flight = prefix.in_flight.saturating_sub(1);
        Some(prefix)
    }

    /// The forwarder took the routes of a face away with it.
    pub(super) fn face_gone(&mut self, face: u64) {
        for (name, prefix) in &mut self.prefixes {
            let before = prefix.installed.len();
            prefix.installed.retain(|(installed, _)| *installed != face);
            prefix.wanted.retain(|(wanted, _)| *wanted != face);
            if before != prefix.installed.len() {
                self.dirty.insert(Arc::clone(name));
            }
        }
    }

    /// The forwarder knows nothing any more.
    pub(super) fn forget_all(&mut self) {
        self.ready.clear();
        self.in_flight = 0;
        for (name, prefix) in &mut self.prefixes {
            prefix.installed.clear();
            prefix.in_flight = 0;
            self.dirty.insert(Arc::clone(name));
        }
    }

    /// Nothing shall be installed.
    pub(super) fn withdraw_all(&mut self) {
        let names: Vec<_> = self.prefixes.keys().cloned().collect();
        names.iter().for_each(|name| self.set(name, Vec::new()));
    }

    pub(super) fn next_due(&self) -> Tick {
        self.retry.first().map_or(Tick::NEVER, |(at, _)| *at)
    }

    /// Prefixes with next hops.
    pub(super) fn len(&self) -> usize {
        self.prefixes.len()
    }
}
