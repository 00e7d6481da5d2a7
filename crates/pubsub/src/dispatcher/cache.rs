//! Publications that are kept for who subscribes later (section 5.3): those with algorithmic
//! identifiers, and long ones of items, as the fragments that they came in. One owner, one bound.

mod long;
mod news;
#[cfg(test)]
mod tests;

pub(super) use long::{Piece, Whole};
pub(super) use news::News;

use crate::publication::{AppId, Event, algorithmic_scope};
use long::{At, Long, NAMES_MAX, Pieces};
use onym_tables::shares::Shares;
use onym_tables::{FaceId, Tick};
use onym_wire::push::{Flags, Id, Strategy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Longest lifetime that is honoured.
const LIFETIME_MAX: Duration = Duration::from_secs(3600);
/// What an entry takes beside identifiers and payload, about.
const OVERHEAD: usize = 256;
/// Most long publications that are kept, whole or in part: each counts as the share of one at least.
pub(super) const LONG_MAX: usize = 4096;

/// How often all that is held is told again.
const REPEAT: Duration = Duration::from_secs(10);

/// Whose share something is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// The application of this node that published it.
    App(AppId),
    /// The neighbour at this face, over which it came.
    Face(FaceId),
}

/// Who sent a fragment, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    pub(super) holder: Holder,
    pub(super) flags: Flags,
}

/// What is kept: under its identifier, or beneath what its fragments have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Short(Id),
    Long(Id),
}

#[derive(Debug)]
enum Body {
    /// One with an algorithmic identifier.
    Short(Arc<[u8]>, Strategy),
    /// One of an item.
    Long(Long),
}

#[derive(Debug)]
struct Entry {
    holder: Holder,
    serial: u64,
    size: usize,
    until: Tick,
    body: Body,
}

/// What a cache holds, for the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheView {
    /// Publications that are there, whole.
    pub publications: usize,
    /// Long ones that are not whole.
    pub partial: usize,
    /// Octets of all, about.
    pub octets: usize,
    /// Most octets.
    pub octets_max: usize,
    /// Publications that were forgotten for want of room.
    pub evicted: u64,
    /// Publications that were forgotten for their age.
    pub expired: u64,
    /// Times that one was told to an application of this node.
    pub told: u64,
    /// Times that one was sent to another node.
    pub sent: u64,
    /// Times that one was to be sent, and was not: too many were on their way.
    pub unsent: u64,
}

/// The publications that are kept.
#[derive(Debug)]
pub(super) struct Cache {
    octets_max: usize,
    entries: BTreeMap<Key, Entry>,
    shares: Shares<Holder, Key>,
    due: BTreeSet<(Tick, Key)>,
    /// Long ones that are whole, by each of their names.
    names: BTreeSet<(Id, Id)>,
    /// What other nodes were not told yet of that.
    pub(super) news: News,
    /// When all of it is told again.
    repeat: Option<Tick>,
    evicted: u64,
    expired: u64,
    pub(super) told: u64,
    pub(super) sent: u64,
    pub(super) unsent: u64,
}

impl Cache {
    pub(super) fn new(octets_max: usize) -> Self {
        Self {
            octets_max,
            entries: BTreeMap::new(),
            shares: Shares::new(),
            due: BTreeSet::new(),
            names: BTreeSet::new(),
            news: News::default(),
            repeat: None,
            evicted: 0,
            expired: 0,
            told: 0,
            sent: 0,
            unsent: 0,
        }
    }

    /// Keeps a publication with an algorithmic identifier for its lifetime, in place of an older
    /// one of that identifier.
    pub(super) fn insert(
        &mut self,
        now: Tick,
        id: &Id,
        payload: &[u8],
        strategy: Strategy,
        holder: Holder,
        lifetime_ms: u64,
    ) {
        let size = 2 * id.octets().len() + payload.len() + OVERHEAD;
        let lifetime = Duration::from_millis(lifetime_ms).min(LIFETIME_MAX);
        if !lifetime.is_zero() && size <= self.octets_max {
            let body = Body::Short(payload.into(), strategy);
            self.put(Key::Short(id.clone()), holder, size, now + lifetime, body);
        }
    }

    /// Keeps a fragment of a long publication of an item, which has these ids, its own first, and may
    /// be kept for so long. What is not sound is passed over, and what a cache sent where there is
    /// one of the same name: that is not older.
    pub(super) fn insert_piece(
        &mut self,
        now: Tick,
        Sender { holder, flags }: Sender,
        ids: &[Id],
        lifetime_ms: u64,
        piece: Piece,
    ) {
        let Some((own, names)) = ids.split_first() else { return };
        let lifetime = Duration::from_millis(lifetime_ms).min(LIFETIME_MAX);
        let label = own.last().unwrap_or_default().to_u64();
        let (count, index) = ((label >> 32) as u32, (label & 0xffff_ffff) as u32);
        if lifetime.is_zero() || index >= count || piece.payload.is_empty() {
            return;
        }
        let key = Key::Long(Id::from_labels(own.parent()));
        if !self.entries.contains_key(&key) {
            let is_old = flags.is_cached() && names.iter().any(|name| self.holds(name));
            let entry = OVERHEAD + self.octets_max / LONG_MAX;
            let size = names.iter().map(|id| 2 * id.octets().len()).sum::<usize>() + entry;
            // All fragments are as long as this one, about.
            let whole = (count as usize).saturating_mul(piece.size()).saturating_add(size);
            if is_old || !is_beneath(own, names) {
                return;
            }
            if whole > self.octets_max {
                // What is there would be an old one.
                return self.forget(names);
            }
            let mut pieces = Pieces::new(names, count, lifetime);
            pieces.is_own = matches!(holder, Holder::App(_));
            let until = now + flags.left(lifetime);
            self.put(key.clone(), holder, size, until, Body::Long(Long::Partial(pieces)));
        }
        self.add_piece(&key, names, At { count, index }, piece);
    }

    fn add_piece(&mut self, key: &Key, names: &[Id], at: At, piece: Piece) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Body::Long(Long::Partial(pieces)) = &mut entry.body else { return };
        let size = piece.size();
        if !pieces.add(names, at, piece) {
            return;
        }
        entry.size += size;
        self.shares.grow(entry.holder, size);
        if pieces.is_whole()
            && let Key::Long(scope) = key
        {
            let whole = Arc::new(pieces.take(scope, entry.until));
            entry.body = Body::Long(Long::Whole(Arc::clone(&whole)));
            self.supersede(&whole);
        }
        self.make_room();
    }

    /// A long publication is whole: it takes the place of those of the same names.
    fn supersede(&mut self, whole: &Whole) {
        self.forget(&whole.names);
        for name in &whole.names {
            self.names.insert((name.clone(), whole.scope.clone()));
            self.news.came(name);
        }
    }

    /// Forgets the long publications of these names.
    fn forget(&mut self, names: &[Id]) {
        for name in names {
            let all: Vec<Id> = self.scopes(name).cloned().collect();
            all.into_iter().for_each(|scope| self.remove(&Key::Long(scope)));
        }
    }

    /// The long publications of this name that are whole.
    fn scopes(&self, name: &Id) -> impl Iterator<Item = &Id> {
        let from = self.names.range((name.clone(), Id::default())..);
        from.take_while(move |(known, _)| known == name).map(|(_, scope)| scope)
    }

    fn holds(&self, name: &Id) -> bool {
        self.scopes(name).next().is_some()
    }

    /// The names of all long publications that are whole.
    pub(super) fn held(&self) -> BTreeSet<Id> {
        self.names.iter().map(|(name, _)| name.clone()).collect()
    }

    fn put(&mut self, key: Key, holder: Holder, size: usize, until: Tick, body: Body) {
        self.remove(&key);
        let serial = self.shares.add(holder, key.clone(), size);
        self.due.insert((until, key.clone()));
        self.entries.insert(key, Entry { holder, serial, size, until, body });
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.shares.octets() > self.octets_max {
            let Some(key) = self.shares.oldest().cloned() else { return };
            self.evicted += 1;
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &Key) {
        let Some(entry) = self.entries.remove(key) else { return };
        self.shares.remove(entry.holder, entry.serial, entry.size);
        self.due.remove(&(entry.until, key.clone()));
        let Body::Long(Long::Whole(whole)) = entry.body else { return };
        for name in &whole.names {
            self.names.remove(&(name.clone(), whole.scope.clone()));
            if !self.holds(name) {
                self.news.went(name);
            }
        }
    }

    /// Forgets what is too old.
    pub(super) fn expire(&mut self, now: Tick) {
        while let Some((_, key)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            self.expired += 1;
            self.remove(&key);
        }
    }

    /// When something is too old, or to be told.
    pub(super) fn next_timeout(&self) -> Option<Tick> {
        let repeat = self.repeat.filter(|_| !self.names.is_empty());
        let age = self.due.first().map(|(due, _)| *due);
        [age, self.news.due(), repeat].into_iter().flatten().min()
    }

    /// Whether all that is held is to be told now.
    pub(super) fn is_repeated(&mut self, now: Tick) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let is_due = *self.repeat.get_or_insert(now + REPEAT) <= now;
        if is_due {
            self.repeat = Some(now + REPEAT);
        }
        is_due
    }

    /// What is kept under an algorithmic identifier that is `id` or beneath it, but not what `app`
    /// published itself.
    pub(super) fn beneath(&self, id: &Id, app: AppId) -> Vec<Event> {
        let from = self.entries.range(Key::Short(id.clone())..);
        let found = from.map_while(|(key, entry)| match (key, &entry.body) {
            (Key::Short(known), Body::Short(payload, strategy)) if known.starts_with(id) => {
                Some((known, entry.holder, payload, *strategy))
            }
            _ => None,
        });
        found
            .filter(|(_, holder, ..)| *holder != Holder::App(app))
            .map(|(id, _, payload, strategy)| Event::Data {
                id: id.clone(),
                payload: Arc::clone(payload),
                came_by: Some(strategy),
            })
            .collect()
    }

    /// The long publications of items that a subscription to `name` covers, each with the name that
    /// it matches, but not those of `app` itself; `most` of them.
    pub(super) fn find(&self, name: &Id, app: Option<AppId>, most: usize) -> Vec<(Id, Arc<Whole>)> {
        let from = self.names.range((name.clone(), Id::default())..);
        let beneath = from.take_while(|(known, _)| known.starts_with(name));
        let mut seen = BTreeSet::new();
        beneath
            .filter(|(known, _)| known.len() <= name.len() + 1)
            .filter(|(_, scope)| seen.insert(scope.clone()))
            .filter_map(|(known, scope)| {
                let entry = self.entries.get(&Key::Long(scope.clone()))?;
                let is_own = app.is_some_and(|app| entry.holder == Holder::App(app));
                match &entry.body {
                    Body::Long(Long::Whole(whole)) if !is_own => {
                        Some((known.clone(), Arc::clone(whole)))
                    }
                    _ => None,
                }
            })
            .take(most)
            .collect()
    }

    /// The long publication of this name.
    pub(super) fn whole(&self, name: &Id) -> Option<&Arc<Whole>> {
        self.beneath_scope(self.scopes(name).next()?)
    }

    /// The long publication whose fragments are beneath `scope`, if it is whole.
    pub(super) fn beneath_scope(&self, scope: &Id) -> Option<&Arc<Whole>> {
        match &self.entries.get(&Key::Long(scope.clone()))?.body {
            Body::Long(Long::Whole(whole)) => Some(whole),
            _ => None,
        }
    }

    /// Whether anything is kept at all.
    pub(super) const fn is_on(&self) -> bool {
        self.octets_max > 0
    }

    pub(super) fn view(&self) -> CacheView {
        let is_partial = |e: &&Entry| matches!(e.body, Body::Long(Long::Partial(_)));
        let partial = self.entries.values().filter(is_partial).count();
        CacheView {
            publications: self.entries.len() - partial,
            partial,
            octets: self.shares.octets(),
            octets_max: self.octets_max,
            evicted: self.evicted,
            expired: self.expired,
            told: self.told,
            sent: self.sent,
            unsent: self.unsent,
        }
    }
}

/// Whether a fragment has an identifier beneath the scope of the first name of its item.
fn is_beneath(own: &Id, names: &[Id]) -> bool {
    let Some((_, above)) = own.parent().split_last() else { return false };
    let first = names.first().filter(|_| names.len() <= NAMES_MAX);
    first.is_some_and(|first| algorithmic_scope(first).labels() == above)
}
