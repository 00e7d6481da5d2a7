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

/// Lists of next hops that no prefix uses are looked for when there are twice as many as after the last
/// look, and this many at least.
const POOL_MIN: usize = 64;

/// Faces and costs, best first.
type Hops = Vec<(u64, u64)>;

/// Each list of next hops once: the prefixes of a router mostly have the same ones.
#[derive(Debug, Default)]
struct Pool {
    lists: BTreeSet<Arc<Hops>>,
    kept: usize,
}

impl Pool {
    /// The one list that equals `hops`.
    fn shared(&mut self, hops: Hops) -> Arc<Hops> {
        if let Some(known) = self.lists.get(&hops) {
            return Arc::clone(known);
        }
        if self.lists.len() >= POOL_MIN.max(2 * self.kept) {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
            self.kept = self.lists.len();
        }
        let hops = Arc::new(hops);
        self.lists.insert(Arc::clone(&hops));
        hops
    }
}

#[derive(Debug)]
struct Prefix {
    wanted: Arc<Hops>,
    installed: Arc<Hops>,
    /// Commands under way.
    in_flight: usize,
}

impl Prefix {
    /// The installed hops are others: without `face`, and with it at `cost`.
    fn set_installed(&mut self, pool: &mut Pool, face: u64, cost: Option<u64>) {
        let mut hops: Hops = Vec::with_capacity(self.installed.len() + 1);
        hops.extend(self.installed.iter().filter(|(known, _)| *known != face));
        hops.extend(cost.map(|cost| (face, cost)));
        hops.sort_unstable_by_key(|(face, cost)| (*cost, *face));
        self.installed = pool.shared(hops);
    }
}

/// Routes by prefix.
#[derive(Debug, Default)]
pub(super) struct Fib {
    prefixes: BTreeMap<Arc<Name>, Prefix>,
    pool: Pool,
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
        let empty = || {
            let none = self.pool.shared(Vec::new());
            Prefix { wanted: Arc::clone(&none), installed: none, in_flight: 0 }
        };
        let entry = self.prefixes.entry(Arc::clone(prefix)).or_insert_with(empty);
        if *entry.wanted != wanted {
            entry.wanted = self.pool.shared(wanted);
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
        for (face, _) in prefix.installed.iter() {
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
        let Some((prefix, pool)) = self.answered(name) else { return };
        prefix.set_installed(pool, face, cost);
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
        let Some((prefix, pool)) = self.answered(name) else { return };
        if cost.is_none() {
            // A route that cannot be removed is gone, or goes with its face.
            prefix.set_installed(pool, face, None);
        }
        // What the forwarder refuses, a name that is too long for it, is not asked again soon.
        let refused = matches!(error, CommandError::Refused(400..=499));
        let wait = if refused { REFUSED_MS } else { RETRY_MS };
        self.retry.insert((now.plus_ms(wait), Arc::clone(name)));
    }

    fn answered(&mut self, name: &Arc<Name>) -> Option<(&mut Prefix, &mut Pool)> {
        self.in_flight = self.in_flight.saturating_sub(1);
        let prefix = self.prefixes.get_mut(name)?;
        prefix.in_flight = prefix.in_flight.saturating_sub(1);
        Some((prefix, &mut self.pool))
    }

    /// The forwarder took the routes of a face away with it.
    pub(super) fn face_gone(&mut self, face: u64) {
        for (name, prefix) in &mut self.prefixes {
            let has = |hops: &Hops| hops.iter().any(|(known, _)| *known == face);
            if has(&prefix.wanted) {
                let others = prefix.wanted.iter().filter(|(known, _)| *known != face);
                prefix.wanted = self.pool.shared(others.copied().collect());
            }
            if has(&prefix.installed) {
                prefix.set_installed(&mut self.pool, face, None);
                self.dirty.insert(Arc::clone(name));
            }
        }
    }

    /// The forwarder knows nothing any more.
    pub(super) fn forget_all(&mut self) {
        self.ready.clear();
        self.in_flight = 0;
        for (name, prefix) in &mut self.prefixes {
            prefix.installed = self.pool.shared(Vec::new());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn name(i: usize) -> Arc<Name> {
        Arc::new(format!("/p/{i}").parse().unwrap())
    }

    /// Carries out all commands.
    fn obey(fib: &mut Fib) {
        while let Some((prefix, face, cost)) = fib.next(Tick(0)) {
            fib.installed(&prefix, face, cost);
        }
    }

    #[test]
    fn prefixes_with_the_same_next_hops_share_one_list_of_them() {
        let mut fib = Fib::default();
        (0..1000).for_each(|i| fib.set(&name(i), vec![(300, 2), (301, 2), (302, 5)]));
        obey(&mut fib);
        let lists: BTreeSet<_> = fib.prefixes.values().map(|p| Arc::as_ptr(&p.installed)).collect();
        assert_eq!(lists.len(), 1);
        assert!(fib.prefixes.values().all(|p| Arc::ptr_eq(&p.wanted, &p.installed)));
        fib.face_gone(301);
        assert!(fib.prefixes.values().all(|p| *p.installed == [(300, 2), (302, 5)]));
    }

    #[test]
    fn lists_that_no_prefix_uses_any_more_go() {
        let mut fib = Fib::default();
        for cost in 0..10_000 {
            (0..3).for_each(|i| fib.set(&name(i), vec![(300 + i as u64, cost)]));
            obey(&mut fib);
        }
        assert!(fib.pool.lists.len() <= 2 * POOL_MIN, "{}", fib.pool.lists.len());
        (0..3).for_each(|i| fib.set(&name(i), Vec::new()));
        obey(&mut fib);
        assert_eq!(fib.len(), 0);
    }
}
