//! The routing information base: routes by prefix and origin, from which the FIB is computed.
//!
//! A state machine without a clock: each change takes `now` and appends the resulting changes of the
//! FIB to a list. Expiry is driven by [`Rib::poll_timeout`] and
//! [`Rib::handle_timeout`].
//!
//! The FIB entry of a name that has routes (names without have none):
//!
//! - for each face the lowest cost among the routes at this name;
//! - unless a route at this name has [`Route::CAPTURE`]: for each other face the route of the
//!   nearest ancestor that has one with [`Route::CHILD_INHERIT`] for it (the lowest cost there),
//!   up to the nearest ancestor that captures.
//!
//! A change visits the name, its ancestors (at most 32) and those entries under it whose inherited
//! next hops really change; the rest of the table is not looked at.
//!
//! Bound: [`Rib::new`] takes the most routes; one more is refused.

mod inherit;
#[cfg(test)]
mod tests;

use inherit::{Hops, changes, inheritable, next_hops};
use onym_frame::Buf;
use onym_tables::{FaceId, Tick};
use onym_wire::NameRef;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// The value of a name, shared with the tables that it is told to.
pub type NameValue = Arc<[u8]>;

/// Origin of routes that applications register (NFD's `app`).
pub const ORIGIN_APP: u16 = 0;
/// Origin of routes learned from prefix announcements (NFD's `prefixann`).
pub const ORIGIN_PREFIX_ANNOUNCEMENT: u16 = 129;
/// Origin of routes that routing makes (NFD's `nlsr`).
pub const ORIGIN_ROUTING: u16 = 128;
/// Cost of routes learned from prefix announcements.
pub const COST_PREFIX_ANNOUNCEMENT: u64 = 2048;

/// One route. Its identity is name, face and origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Next hop.
    pub face: FaceId,
    /// Who registered it (0 to 65535, as the protocol numbers them).
    pub origin: u16,
    /// Flag bits: [`Route::CHILD_INHERIT`], [`Route::CAPTURE`].
    pub flags: u8,
    /// Cost.
    pub cost: u64,
    /// When it ends; [`Tick::NEVER`] when it does not.
    pub expiry: Tick,
    /// The prefix announcement that it was made of: one Data.
    pub announcement: Option<Buf>,
}

impl Route {
    /// Longer names inherit the route.
    pub const CHILD_INHERIT: u8 = 1;
    /// This name and longer ones do not inherit from shorter ones.
    pub const CAPTURE: u8 = 2;

    fn key(&self) -> (FaceId, u16) {
        (self.face, self.origin)
    }
}

/// What a change of the RIB changes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RibUpdate {
    /// The FIB gets this next hop, or its cost changes.
    AddNextHop {
        /// Value of the name.
        name: NameValue,
        /// Next hop.
        face: FaceId,
        /// Its cost.
        cost: u64,
    },
    /// The FIB loses this next hop.
    RemoveNextHop {
        /// Value of the name.
        name: NameValue,
        /// Next hop.
        face: FaceId,
    },
    /// The prefix announcement of a name changes; none when the last one went.
    Announcement {
        /// Value of the name.
        name: NameValue,
        /// The announcement: one Data.
        data: Option<Buf>,
    },
}

/// Why a route was not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RibError {
    /// The configured limit of routes is reached.
    #[error("the RIB holds its limit of {0} routes (tables.rib_routes_max)")]
    Full(usize),
}

/// The routes of one name, sorted by face and origin; never empty.
#[derive(Debug, Clone, Default)]
struct Entry {
    routes: SmallVec<[Route; 1]>,
}

impl Entry {
    fn announcement(&self) -> Option<&Buf> {
        self.routes.iter().find_map(|route| route.announcement.as_ref())
    }
}

/// The routing information base.
#[derive(Debug)]
pub struct Rib {
    entries: BTreeMap<NameValue, Entry>,
    routes: usize,
    routes_max: usize,
    by_face: HashMap<FaceId, BTreeSet<NameValue>>,
    expiries: BTreeSet<(Tick, NameValue, FaceId, u16)>,
    changes: u64,
}

impl Rib {
    /// An empty RIB of at most `routes_max` routes.
    #[must_use]
    pub fn new(routes_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            routes: 0,
            routes_max,
            by_face: HashMap::new(),
            expiries: BTreeSet::new(),
            changes: 0,
        }
    }

    /// Routes that came, went or changed cost or flags since the start, those of routing apart.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Changes the bound; routes that are there stay.
    pub fn set_routes_max(&mut self, routes_max: usize) {
        self.routes_max = routes_max;
    }

    /// Routes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routes
    }

    /// Whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes == 0
    }

    /// Names with a route over `face`.
    #[must_use]
    pub fn len_of_face(&self, face: FaceId) -> usize {
        self.by_face.get(&face).map_or(0, BTreeSet::len)
    }

    /// The routes of exactly this name, sorted by face and origin.
    #[must_use]
    pub fn get(&self, name: NameRef<'_>) -> &[Route] {
        self.entries.get(name.value()).map_or(&[], |entry| &entry.routes)
    }

    /// Every name with its routes, in canonical order.
    pub fn iter(&self) -> impl Iterator<Item = (&NameValue, &[Route])> {
        self.entries.iter().map(|(name, entry)| (name, entry.routes.as_slice()))
    }

    /// Every name that starts with `prefix`, with its routes, in canonical order.
    pub fn under<'a>(
        &'a self,
        prefix: NameRef<'a>,
    ) -> impl Iterator<Item = (&'a NameValue, &'a [Route])> {
        let prefix = prefix.value();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let rest = self.entries.range::<[u8], _>(from);
        rest.take_while(move |(name, _)| name.starts_with(prefix))
            .map(|(name, entry)| (name, entry.routes.as_slice()))
    }

    /// The announcement of the longest prefix of `name` that has one.
    #[must_use]
    pub fn announcement(&self, name: NameRef<'_>) -> Option<&Buf> {
        let prefixes = (0..=name.len()).rev().map(|len| name.prefix(len));
        prefixes.filter_map(|prefix| self.entries.get(prefix.value())).find_map(Entry::announcement)
    }

    /// Adds a route, or changes the one of the same face and origin.
    ///
    /// # Errors
    /// [`RibError::Full`] when it would be one too many; nothing changes then.
    pub fn register(
        &mut self,
        name: NameRef<'_>,
        route: Route,
        updates: &mut Vec<RibUpdate>,
    ) -> Result<(), RibError> {
        let known = self.entries.get_key_value(name.value());
        let before = known.map(|(_, entry)| entry.clone()).unwrap_or_default();
        let name_value =
            known.map_or_else(|| NameValue::from(name.value()), |(n, _)| Arc::clone(n));
        let at = before.routes.binary_search_by_key(&route.key(), Route::key);
        if at.is_err() && self.routes >= self.routes_max {
            return Err(RibError::Full(self.routes_max));
        }
        let expiry = (route.expiry, Arc::clone(&name_value), route.face, route.origin);
        self.by_face.entry(route.face).or_default().insert(Arc::clone(&name_value));
        let told = before.routes.get(at.unwrap_or(usize::MAX)).map(|old| (old.cost, old.flags));
        if told != Some((route.cost, route.flags)) {
            self.count(route.origin);
        }
        let entry = self.entries.entry(Arc::clone(&name_value)).or_default();
        match at {
            Ok(at) => {
                let old = std::mem::replace(&mut entry.routes[at], route);
                self.expiries.remove(&(old.expiry, Arc::clone(&name_value), old.face, old.origin));
            }
            Err(at) => {
                entry.routes.insert(at, route);
                self.routes += 1;
            }
        }
        if expiry.0 != Tick::NEVER {
            self.expiries.insert(expiry);
        }
        self.update(&name_value, &before, updates);
        Ok(())
    }

    /// Takes a route away; says whether it was there.
    pub fn unregister(
        &mut self,
        name: NameRef<'_>,
        face: FaceId,
        origin: u16,
        updates: &mut Vec<RibUpdate>,
    ) -> bool {
        self.remove(name.value(), |route| route.key() == (face, origin), updates)
    }

    /// Takes away every route over a face that is gone.
    pub fn remove_face(&mut self, face: FaceId, updates: &mut Vec<RibUpdate>) {
        for name in self.by_face.get(&face).cloned().unwrap_or_default() {
            self.remove(&name, |route| route.face == face, updates);
        }
    }

    /// When [`Self::handle_timeout`] wants to be called; [`Tick::NEVER`] when it does not.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        self.expiries.first().map_or(Tick::NEVER, |(at, ..)| *at)
    }

    /// Takes away the routes that have expired.
    pub fn handle_timeout(&mut self, now: Tick, updates: &mut Vec<RibUpdate>) {
        while let Some((at, name, face, origin)) = self.expiries.first() {
            if *at > now {
                return;
            }
            let (name, key) = (Arc::clone(name), (*face, *origin));
            self.remove(&name, |route| route.key() == key, updates);
        }
    }

    /// Takes the routes of one name away that `which` picks; whether there were any.
    fn remove(
        &mut self,
        name: &[u8],
        which: impl Fn(&Route) -> bool,
        updates: &mut Vec<RibUpdate>,
    ) -> bool {
        let Some((name, entry)) = self.entries.get_key_value(name) else { return false };
        if !entry.routes.iter().any(&which) {
            return false;
        }
        let (name, before) = (Arc::clone(name), entry.clone());
        for route in before.routes.iter().filter(|route| which(route)) {
            self.routes -= 1;
            self.count(route.origin);
            self.expiries.remove(&(route.expiry, Arc::clone(&name), route.face, route.origin));
        }
        let entry = self.entries.entry(Arc::clone(&name)).or_default();
        entry.routes.retain(|route| !which(route));
        let left: BTreeSet<FaceId> = entry.routes.iter().map(|route| route.face).collect();
        if entry.routes.is_empty() {
            self.entries.remove(&name);
        }
        for route in before.routes.iter().filter(|route| !left.contains(&route.face)) {
            if let Some(names) = self.by_face.get_mut(&route.face) {
                names.remove(&name);
                if names.is_empty() {
                    self.by_face.remove(&route.face);
                }
            }
        }
        self.update(&name, &before, updates);
        true
    }

    fn count(&mut self, origin: u16) {
        self.changes += u64::from(origin != ORIGIN_ROUTING);
    }

    /// Tells what follows from the change of `name`, whose routes were `before`.
    fn update(&self, name: &NameValue, before: &Entry, updates: &mut Vec<RibUpdate>) {
        let gone = Entry::default();
        let after = self.entries.get(name).unwrap_or(&gone);
        let inherited = self.inherited(name);
        changes(name, &next_hops(before, &inherited), &next_hops(after, &inherited), updates);
        if before.announcement() != after.announcement() {
            let data = after.announcement().cloned();
            updates.push(RibUpdate::Announcement { name: Arc::clone(name), data });
        }
        let (old, new) = (inheritable(before, &inherited), inheritable(after, &inherited));
        if old != new {
            self.update_descendants(name, old, new, updates);
        }
    }

    /// What `name` inherits from its ancestors, sorted by face.
    fn inherited(&self, name: &[u8]) -> Hops {
        // Every name in the table came from a checked one.
        let name = NameRef::parse_value(name).unwrap_or_default();
        let mut hops = Hops::new();
        // From the shortest prefix on: a nearer ancestor overrides what farther ones gave.
        for len in 0..name.len() {
            if let Some(entry) = self.entries.get(name.prefix(len).value()) {
                hops = inheritable(entry, &hops);
            }
        }
        hops
    }

    /// Tells what changes under `name`, which passes on `new` instead of `old`.
    fn update_descendants(
        &self,
        name: &NameValue,
        old: Hops,
        new: Hops,
        updates: &mut Vec<RibUpdate>,
    ) {
        let mut ancestors = vec![(Arc::clone(name), old, new)];
        let mut from = Bound::Excluded(name.to_vec());
        // Each turn of the outer loop goes on behind a subtree to which nothing changes.
        'jump: loop {
            let rest = (from.as_ref().map(Vec::as_slice), Bound::Unbounded);
            for (below, entry) in self.entries.range::<[u8], _>(rest) {
                if !below.starts_with(name) {
                    return;
                }
                while ancestors.last().is_some_and(|(above, ..)| !below.starts_with(above)) {
                    ancestors.pop();
                }
                let Some((_, old, new)) = ancestors.last() else { return };
                changes(below, &next_hops(entry, old), &next_hops(entry, new), updates);
                let (old, new) = (inheritable(entry, old), inheritable(entry, new));
                if old != new {
                    ancestors.push((Arc::clone(below), old, new));
                } else if let Some(next) = behind(below) {
                    from = Bound::Included(next);
                    continue 'jump;
                } else {
                    return;
                }
            }
            return;
        }
    }
}

/// The smallest octets behind all that start with `prefix`; `None` when there are none.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|octet| *octet != u8::MAX)?;
    let mut next = prefix[..=kept].to_vec();
    next[kept] += 1;
    Some(next)
}
