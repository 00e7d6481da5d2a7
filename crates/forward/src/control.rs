//! The interface of a forwarder for management and observers.

use crate::choice::{ChoiceError, Choices};
use crate::faces::{FaceCounters, FaceInfo, Faces};
use crate::path::{decide, finalize};
use crate::stage::{CacheStage, RouteStage, query, query_alone};
use crate::strategy::Strategy;
use crate::trace::Gate;
use crate::{Counters, Event, Forwarder, UnsolicitedPolicy};
use onym_frame::Buf;
use onym_link::Outbox;
use onym_tables::cs::{ContentStore, CsConfig};
use onym_tables::fib::{Fib, FibError, NextHop};
use onym_tables::hash::NameHashes;
use onym_tables::pit::Prefixes;
use onym_tables::{FaceId, HashKey, Prefix, Tick};
use onym_wire::NAME_COMPONENTS_MAX;
use onym_wire::interest::Interest;
use onym_wire::name::{Name, NameRef};

/// Packets that one call of an erasing operation takes out.
const ERASE_MAX: usize = 256;

/// Pending Interests of a face that ends from which on the memory of those that ended is given back.
const MANY: usize = 1024;

/// Prefix announcements known at once.
const ANNOUNCEMENTS_MAX: usize = 65_536;

/// Why a prefix was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// Tables hold prefixes of at most 32 components.
    #[error("the prefix has {0} components; at most 32 are allowed")]
    TooLong(usize),
    /// The FIB is at its limit.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The face does not exist.
    #[error("there is no {0:?}")]
    NoFace(FaceId),
}

fn prefix<'a>(key: &HashKey, name: NameRef<'a>) -> Option<Prefix<'a>> {
    (name.len() <= NAME_COMPONENTS_MAX).then(|| Prefix {
        bytes: name.value(),
        len: name.len(),
        hash: key.name(name.value()),
    })
}

impl<R: RouteStage, C> Forwarder<R, C> {
    /// Adds a face, or changes what is known of it.
    pub fn face_add(&mut self, id: FaceId, info: FaceInfo) {
        self.pending.faces.add(id, info);
    }

    /// Takes a face out, with its next hops and its part in pending Interests: those for which it
    /// alone waited end, others last as long as who is left waits. Returns what was counted for it.
    pub fn face_remove(&mut self, now: Tick, id: FaceId) -> Option<FaceCounters> {
        let counters = self.pending.faces.remove(id)?;
        self.routes.remove_face(id);
        let mut ended = 0;
        for slot in 0..self.pending.pit.slots() {
            if !self.pending.pit.is_live(slot) {
                continue;
            }
            // The face is gone, and its load with it; others keep theirs.
            let entry = self.pending.pit.entry_mut(slot);
            let before = entry.ins.len();
            entry.ins.retain(|r| r.face != id);
            entry.outs.retain(|r| r.face != id);
            let waits = entry.ins.len();
            let latest = entry.ins.iter().map(|r| r.expiry).max();
            match latest {
                Some(latest) if waits < before => self.pending.pit.set_expiry(slot, latest),
                None if before > 0 => {
                    finalize::run(&mut self.pending, now, slot);
                    ended += 1;
                }
                _ => {}
            }
        }
        if ended >= MANY {
            self.pending.pit.give_back_buffers();
        }
        Some(counters)
    }

    /// The faces.
    #[must_use]
    pub fn faces(&self) -> &Faces {
        &self.pending.faces
    }

    /// Makes `instance` the strategy of `name`; returns its full name. What strategies learned
    /// under the prefix is forgotten.
    ///
    /// # Errors
    /// [`ChoiceError`]; nothing is changed then.
    pub fn strategy_set(
        &mut self,
        name: NameRef<'_>,
        instance: NameRef<'_>,
    ) -> Result<Name, ChoiceError> {
        let prefix = prefix(&self.pending.key, name).ok_or(ChoiceError::TooLong(name.len()))?;
        let full = self.strategies.choices.set(&prefix, instance)?;
        self.forget_under(name);
        Ok(full)
    }

    /// Takes the strategy of `name` back, so that a shorter prefix decides; the root keeps its
    /// own. Says whether there was one.
    pub fn strategy_unset(&mut self, name: NameRef<'_>) -> bool {
        let Some(prefix) = prefix(&self.pending.key, name) else { return false };
        let unset = self.strategies.choices.unset(&prefix);
        if unset {
            self.forget_under(name);
        }
        unset
    }

    /// Makes `strategy` the one of every name that has no other; `name` is what it is called.
    pub fn strategy_install(&mut self, name: Name, strategy: Box<dyn Strategy>) {
        self.strategies.choices.install(name, strategy);
        self.forget_under(Name::new().as_ref());
    }

    fn forget_under(&mut self, name: NameRef<'_>) {
        self.strategies.measurements.clear_under(name.value());
        for slot in 0..self.pending.pit.slots() {
            if self.pending.pit.is_live(slot) {
                let (_, pending, entry) = self.pending.pit.parts(slot);
                if pending.starts_with(name.value()) {
                    entry.info = crate::strategy::Info::None;
                }
            }
        }
    }

    /// The strategy choices.
    #[must_use]
    pub fn strategies(&self) -> &Choices {
        &self.strategies.choices
    }

    /// What Interests with CanBePrefix are pending for, if that is different than when it was asked
    /// last: only such Data of other shards need be shown to this one.
    #[inline]
    pub fn changed_prefixes(&mut self) -> Option<&Prefixes> {
        let prefixes = self.pending.pit.prefixes_mut();
        prefixes.take_changed().then_some(prefixes)
    }

    /// Pending Interests.
    #[must_use]
    pub fn pit_len(&self) -> usize {
        self.pending.pit.len()
    }

    /// Changes the most pending Interests; those that are there stay.
    pub fn set_pit_entries_max(&mut self, entries_max: usize) {
        self.pending.config.pit_entries_max = entries_max;
        self.pending.pit.set_entries_max(entries_max);
    }

    /// Whether one upstream may send an Interest to several, from now on.
    pub fn set_spreads(&mut self, on: bool) {
        self.pending.set_spreads(on);
    }

    /// Longest InterestLifetime that is kept to from now on, in milliseconds.
    pub fn set_lifetime_max(&mut self, ms: u64) {
        self.pending.config.lifetime_max_ms = ms;
    }

    /// Octets of the pending Interests themselves.
    #[must_use]
    pub fn pit_octets(&self) -> usize {
        self.pending.pit.octets()
    }

    /// Name prefixes of the region that this node is in.
    pub fn set_regions(&mut self, regions: Vec<Name>) {
        self.pending.regions = regions;
    }

    /// What is done with unsolicited Data from now on.
    pub fn set_unsolicited(&mut self, policy: UnsolicitedPolicy) {
        self.pending.config.unsolicited = policy;
    }

    /// HopLimit added to Interests without one from now on; 0 adds none.
    pub fn set_default_hop_limit(&mut self, hop_limit: u8) {
        self.pending.config.default_hop_limit = hop_limit;
    }

    /// Whether shares bind under contention from now on.
    pub fn set_fairness(&mut self, on: bool) {
        self.pending.config.fairness = on;
    }

    /// Whether trace requests (RFC 9507) that end at this node are delivered to management.
    pub fn set_traces(&mut self, on: bool) {
        if on != self.pending.traces.is_some() {
            self.pending.traces = on.then(|| Box::new(Gate::new()));
        }
    }

    /// Everything that was counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.pending.counters
    }

    /// The prefix announcement (one Data) that a strategy may attach to Data under `name`; `None`
    /// forgets it. Says whether it was taken: at most 65,536 are.
    pub fn announcement_set(&mut self, name: NameRef<'_>, announcement: Option<Buf>) -> bool {
        let Some(prefix) = prefix(&self.pending.key, name) else { return false };
        match announcement {
            None => self.strategies.announcements.remove(&prefix).is_some(),
            Some(_) if self.strategies.announcements.len() >= ANNOUNCEMENTS_MAX => false,
            Some(bytes) => {
                self.strategies.announcements.insert(&prefix, bytes);
                true
            }
        }
    }

    /// Takes the events that have gathered, at most 1024.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.strategies.events)
    }
}

impl Forwarder {
    /// Adds a next hop, or changes its cost. Pending Interests under the prefix may be sent to it.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn fib_add(
        &mut self,
        now: Tick,
        name: NameRef<'_>,
        hop: NextHop,
        out: &mut Outbox,
    ) -> Result<(), RouteError> {
        if self.pending.faces.get(hop.face).is_none() {
            return Err(RouteError::NoFace(hop.face));
        }
        let prefix = prefix(&self.pending.key, name).ok_or(RouteError::TooLong(name.len()))?;
        if self.routes.fib.add(&prefix, hop)? {
            self.after_new_next_hop(now, name, hop, out);
        }
        Ok(())
    }

    fn after_new_next_hop(&mut self, now: Tick, name: NameRef<'_>, hop: NextHop, out: &mut Outbox) {
        if self.pending.pit.is_empty() || !self.strategies.choices.any_wants_new_next_hop() {
            return;
        }
        for slot in 0..self.pending.pit.slots() {
            // Not for names that a longer FIB prefix covers.
            let concerned = self.pending.pit.is_live(slot) && {
                let fib = &self.routes.fib;
                let (_, pending, _) = self.pending.pit.parts(slot);
                pending.starts_with(name.value()) && {
                    let hashes = NameHashes::new(&self.pending.key, pending, fib.lengths());
                    fib.lookup(&hashes, pending).is_some_and(|(p, _)| p.len == name.len())
                }
            };
            if concerned {
                let Self { pending, strategies, routes, .. } = self;
                let (_, ended) = decide::pending(
                    pending,
                    strategies,
                    routes,
                    now,
                    slot,
                    out,
                    |strategy, ctx| {
                        strategy.after_new_next_hop(ctx, hop);
                    },
                );
                if ended {
                    finalize::run(pending, now, slot);
                }
            }
        }
    }

    /// Takes a next hop away; says whether it was there.
    pub fn fib_remove(&mut self, name: NameRef<'_>, face: FaceId) -> bool {
        prefix(&self.pending.key, name).is_some_and(|p| self.routes.fib.remove(&p, face))
    }

    /// The routes.
    #[must_use]
    pub fn fib(&self) -> &Fib {
        &self.routes.fib
    }

    /// The content store.
    #[must_use]
    pub fn cs(&self) -> &ContentStore {
        &self.cache.store
    }

    /// Changes limits and flags of the content store. Returns whether packets beyond the new
    /// limits are left; each call evicts at most 256 of them.
    pub fn cs_configure(&mut self, now: Tick, config: CsConfig) -> bool {
        if *self.cache.store.config() != config {
            self.cache.store.set_config(now, config);
        }
        self.cache.store.evict(ERASE_MAX) == ERASE_MAX
    }

    /// Erases at most `limit` and at most 256 packets under `name`; says how many.
    /// [`ContentStore::may_have_under`] says whether to go on.
    pub fn cs_erase(&mut self, name: NameRef<'_>, limit: usize) -> usize {
        self.cache.store.erase(name.value(), limit.min(ERASE_MAX))
    }

    /// Whether an Interest is answered here, or waits with others for the same, so that nothing need be
    /// looked for on a second level of the store.
    pub fn is_at_hand(&mut self, now: Tick, interest: &Interest<'_>) -> bool {
        let pending = &mut self.pending;
        let hashes = NameHashes::new(&pending.key, interest.name.value(), 0);
        let store = &mut self.cache.store;
        if !store.config().serve || store.would_find(now, &query(interest, &hashes)) {
            return true;
        }
        let found = pending.pit.look(&pending.key_of(interest, &hashes)).found;
        found.is_some_and(|slot| !pending.pit.entry(slot).ins.is_empty())
    }

    /// Takes a packet of a second level into the store, fresh for so much longer.
    pub fn cs_promote(&mut self, now: Tick, bytes: &Buf, fresh_ms: u64) {
        self.cache.promote(now, &self.pending.key, bytes, fresh_ms);
    }

    /// The cached Data for an Interest (its whole element), as another shard asks for it.
    pub fn cs_find(&mut self, now: Tick, interest: &[u8]) -> Option<Buf> {
        let interest = Interest::parse(interest).ok()?;
        let body = self.cache.find(now, &query_alone(&self.pending.key, &interest))?;
        Some(match body {
            onym_tables::cs::Body::Small(bytes) => Buf::copy_from(bytes),
            onym_tables::cs::Body::Shared(buf) => buf.clone(),
        })
    }
}
