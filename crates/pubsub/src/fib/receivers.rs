//! Subscribers, and a cache of those that the last received publication had: the next one is mostly
//! of the same item, recognized by the octets before its number.

use super::numbers::NUMBER_LEN;
use super::{Effects, Found, There};
use crate::data::{Above, Name, names_above};
use crate::names::{Hashing, Key, Names};
use crate::publication::{AppId, To};
use onym_wire::push::{Frame, Id, option};
use onym_wire::tlv;
use onym_wire::types::PacketType;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Arc;

/// Those who subscribed to one identifier.
#[derive(Debug, Default)]
struct Receiving {
    /// Applications, in the order in which they came.
    apps: SmallVec<[AppId; 2]>,
    /// The same list for events, until it changes.
    shared: Option<Arc<[AppId]>>,
    /// Subscriptions that are asked for and not answered.
    awaiting: u32,
    /// Other shards with such, and why often.
    there: Option<Box<Elsewhere>>,
}

/// Other shards, and for how many reasons each.
#[derive(Debug, Default)]
struct Elsewhere(SmallVec<[(u16, u32); 2]>);

impl Receiving {
    fn is_over(&self) -> bool {
        self.apps.is_empty() && self.awaiting == 0 && self.there.is_none()
    }

    fn has_any(&self) -> bool {
        !self.apps.is_empty() || self.there.is_some()
    }

    fn there(&self) -> There {
        let add = |sum: There, (shard, count): &(u16, u32)| There {
            shards: sum.shards | 1 << shard,
            count: sum.count + *count as usize,
        };
        self.there.iter().flat_map(|there| &there.0).fold(There::default(), add)
    }
}

/// The last publication that came and that one list of applications got.
#[derive(Debug)]
struct Last {
    /// Version and form.
    first: u8,
    /// What stands between the hop limit and the number.
    head: Vec<u8>,
    stream: u64,
    found: Found,
    /// Its names, where other shards are told them.
    names: Option<Arc<[Id]>>,
}

/// A publication like the last one.
#[derive(Debug)]
pub(super) struct Alike<'s> {
    pub(super) stream: u64,
    /// Where its payload begins, right behind its number.
    pub(super) payload_at: usize,
    pub(super) found: &'s Found,
    pub(super) names: &'s Option<Arc<[Id]>>,
}

impl Alike<'_> {
    /// The number of `octets`, a frame that is the same as this one up to its number.
    pub(super) fn number(&self, octets: &[u8]) -> Option<u32> {
        let (number, _) = octets.get(self.number_at()..)?.split_first_chunk::<NUMBER_LEN>()?;
        Some(u32::from_be_bytes(*number))
    }

    /// Where its number begins.
    pub(super) const fn number_at(&self) -> usize {
        self.payload_at - NUMBER_LEN
    }
}

/// Those who subscribed, by identifier. Every change makes what was found before forgotten.
#[derive(Debug)]
pub(super) struct Receivers {
    by_id: Names<Receiving>,
    last: Option<Last>,
    /// Changes until now.
    changes: u64,
}

/// The names above those of a publication that have receivers.
enum Only<'a> {
    Nobody,
    /// One, with the id that it is above of.
    One(&'a Id, Name<'a>),
    Several,
}

/// Names with receivers, each with the id that it is above of.
type Matches<'a> = SmallVec<[(&'a Id, Name<'a>); 4]>;

impl Receivers {
    pub(super) fn new(hashing: &Hashing) -> Self {
        Self { by_id: Names::new(hashing), last: None, changes: 0 }
    }

    fn change(&mut self, key: Key) -> &mut Receiving {
        (self.last, self.changes) = (None, self.changes + 1);
        self.by_id.get_or_insert(key, Receiving::default)
    }

    /// A subscription is asked for.
    pub(super) fn await_answer(&mut self, key: Key) {
        self.change(key).awaiting += 1;
    }

    /// A shard has a subscription more.
    pub(super) fn there(&mut self, key: Key, shard: u16) {
        let there = &mut self.change(key).there.get_or_insert_default().0;
        match there.iter_mut().find(|(known, _)| *known == shard) {
            Some((_, count)) => *count += 1,
            None => there.push((shard, 1)),
        }
    }

    /// A shard has one less; whether nobody is left.
    pub(super) fn not_there(&mut self, key: &Key, shard: u16) -> bool {
        (self.last, self.changes) = (None, self.changes + 1);
        let leave = |entry: &mut Receiving| {
            if let Some(there) = entry.there.as_mut().map(|there| &mut there.0) {
                let of = there.iter_mut().find(|(known, _)| *known == shard);
                of.into_iter().for_each(|(_, count)| *count -= 1);
                there.retain(|(_, count)| *count > 0);
            }
            entry.there.take_if(|there| there.0.is_empty());
            entry.is_over()
        };
        self.by_id.remove_if(key, leave).is_some()
    }

    pub(super) fn join(&mut self, key: Key, app: AppId) {
        let entry = self.change(key);
        entry.shared = None;
        if !entry.apps.contains(&app) {
            entry.apps.push(app);
        }
    }

    /// Whether nobody is left.
    pub(super) fn leave(&mut self, key: &Key, app: AppId) -> bool {
        (self.last, self.changes) = (None, self.changes + 1);
        let leave = |entry: &mut Receiving| {
            entry.shared = None;
            entry.apps.retain(|known| *known != app);
            entry.is_over()
        };
        self.by_id.remove_if(key, leave).is_some()
    }

    /// A subscription is answered; whether nobody has it. `None`: another one is not yet.
    pub(super) fn answered(&mut self, key: &Key) -> Option<bool> {
        let mut is_last = true;
        let answer = |entry: &mut Receiving| {
            entry.awaiting = entry.awaiting.saturating_sub(1);
            is_last = entry.awaiting == 0;
            entry.is_over()
        };
        let is_gone = self.by_id.remove_if(key, answer).is_some();
        is_last.then_some(is_gone)
    }

    pub(super) fn apps(&self, name: Name<'_>) -> &[AppId] {
        self.by_id.get(name).map_or(&[], |entry| &entry.apps)
    }

    /// Whether somebody here subscribed to one of these names, or is about to.
    pub(super) fn is_wanted(&self, ids: &[Id]) -> bool {
        !self.by_id.is_empty()
            && ids.iter().any(|id| names_above(id, false).any(|name| self.by_id.contains(name)))
    }

    /// Whether a subscription to one of these names waits for its answer.
    pub(super) fn is_awaited(&self, ids: &[Id]) -> bool {
        let waits = |name| self.by_id.get(name).is_some_and(|entry| entry.awaiting > 0);
        ids.iter().any(|id| names_above(id, false).any(waits))
    }

    /// The names above these that `has` says something of.
    fn matches<'a>(
        &self,
        ids: &'a [Id],
        is_deep: bool,
        has: impl Fn(&Receiving) -> bool,
    ) -> Matches<'a> {
        let mut found = Matches::new();
        if self.by_id.is_empty() {
            return found;
        }
        let has = |name: &Name<'_>| self.by_id.get(*name).is_some_and(&has);
        for id in ids {
            found.extend(names_above(id, is_deep).filter(has).map(|name| (id, name)));
        }
        found
    }

    /// The one name above these that has receivers.
    #[inline]
    fn only<'a>(&self, ids: &'a [Id]) -> Only<'a> {
        let mut only = Only::Nobody;
        if self.by_id.is_empty() {
            return only;
        }
        for id in ids {
            for name in names_above(id, false) {
                if !self.by_id.get(name).is_some_and(Receiving::has_any) {
                    continue;
                }
                if matches!(only, Only::One(..)) {
                    return Only::Several;
                }
                only = Only::One(id, name);
            }
        }
        only
    }

    /// The applications that have the subscription `name`, above `id`, as one list, but when `except`
    /// is one of them; and the other shards that have it.
    fn list_of(&mut self, id: &Id, name: Name<'_>, except: Option<AppId>) -> Option<Found> {
        let entry = self.by_id.get_mut(name)?;
        let there = if entry.there.is_none() { There::default() } else { entry.there() };
        let Receiving { apps, shared, .. } = entry;
        if apps.is_empty() {
            return Some(Found { list: None, there });
        }
        if except.is_some_and(|app| apps.contains(&app)) {
            return None;
        }
        let shared = shared.get_or_insert_with(|| apps.as_slice().into());
        Some(Found { list: Some((Arc::clone(shared), id.clone())), there })
    }

    /// Who gets what is published under these names, where that is one list at most.
    pub(super) fn one_list(&mut self, ids: &[Id]) -> Option<Found> {
        let Only::One(id, name) = self.only(ids) else { return None };
        self.list_of(id, name, None)
    }

    /// Finds who gets what `app` publishes under these names, as `found` says if nothing changed
    /// since that was found; how many of this shard.
    pub(super) fn find_again(
        &mut self,
        ids: &[Id],
        app: AppId,
        known: &mut Option<(u64, Found)>,
        effects: &mut Effects,
    ) -> usize {
        if let Some((changes, found)) = known
            && *changes == self.changes
        {
            return effects.take(found);
        }
        let found = match self.only(ids) {
            Only::Nobody => Some(Found::default()),
            Only::One(id, name) => self.list_of(id, name, Some(app)),
            Only::Several => None,
        };
        *known = found.map(|found| (self.changes, found));
        match known {
            Some((_, found)) => effects.take(found),
            None => self.find(ids, Above::Parent, Some(app), effects),
        }
    }

    /// Finds who subscribed to one of these names (P-28); how many of this shard.
    pub(super) fn find(
        &mut self,
        ids: &[Id],
        above: Above,
        except: Option<AppId>,
        effects: &mut Effects,
    ) -> usize {
        let found = self.matches(ids, above == Above::All, Receiving::has_any);
        let there = found.iter().filter_map(|(_, name)| self.by_id.get(*name));
        for there in there.filter(|entry| entry.there.is_some()).map(Receiving::there) {
            effects.add(there);
        }
        self.find_of(found, except, effects)
    }

    /// As [`Receivers::find`], of this shard only.
    pub(super) fn find_here(&mut self, ids: &[Id], above: Above, effects: &mut Effects) -> usize {
        let found = self.matches(ids, above == Above::All, |entry| !entry.apps.is_empty());
        self.find_of(found, None, effects)
    }

    fn find_of(
        &mut self,
        found: Matches<'_>,
        except: Option<AppId>,
        effects: &mut Effects,
    ) -> usize {
        if found.is_empty() {
            return 0;
        }
        if let [(id, name)] = found[..]
            && let Some(Found { list, .. }) = self.list_of(id, name, except)
        {
            // One list as it is: nobody gets it twice.
            return effects.take_list(list);
        }
        let mut served: HashSet<AppId> = except.into_iter().collect();
        let before = served.len();
        for (id, name) in found {
            for app in self.apps(name) {
                if served.insert(*app) {
                    effects.to.push((To::One(*app), id.clone()));
                }
            }
        }
        served.len() - before
    }

    /// Notes for those of this shard who subscribed to one of these names that so many publications
    /// did not come.
    pub(super) fn note_missed(&self, ids: &[Id], count: u64, effects: &mut Effects) {
        let mut told: HashSet<AppId> = HashSet::new();
        let names = ids.iter().flat_map(|id| names_above(id, false));
        for app in names.flat_map(|name| self.apps(name)) {
            if told.insert(*app) {
                effects.missed.push((*app, count));
            }
        }
    }

    /// Other shards that have one of these names.
    pub(super) fn shards_of(&self, ids: &[Id]) -> There {
        let names = ids.iter().flat_map(|id| names_above(id, false));
        let all = names.filter_map(|name| self.by_id.get(name)).map(Receiving::there);
        all.fold(There::default(), |sum, there| There {
            shards: sum.shards | there.shards,
            count: sum.count + there.count,
        })
    }

    /// Whether the whole frame `octets` is one of the last publication's item, by the same way.
    pub(super) fn alike(&self, octets: &[u8]) -> Option<Alike<'_>> {
        let Last { first, head, stream, found, names } = self.last.as_ref()?;
        let (octet, rest) = octets.get(value_at(octets)?..)?.split_first()?;
        // Behind the hop limit.
        let rest = rest.get(1..)?.strip_prefix(&head[..]).filter(|_| octet == first)?;
        let payload_at = octets.len() - rest.len().checked_sub(NUMBER_LEN)?;
        Some(Alike { stream: *stream, payload_at, found, names })
    }

    /// Remembers a frame that these got, where its number comes right before its payload.
    pub(super) fn remember(
        &mut self,
        octets: &[u8],
        frame: &Frame<'_>,
        found: Found,
        names: Option<Arc<[Id]>>,
    ) {
        let Some((stream, _)) = frame.options.number else { return };
        let last = tlv::Reader::new(frame.options.octets()).last();
        let is_last = last.is_some_and(|o| o.is_ok_and(|o| o.typ == option::NUMBER));
        let end = octets.len() - frame.payload.len() - NUMBER_LEN;
        let Some(at) = value_at(octets).filter(|_| is_last) else { return };
        let (Some(first), Some(part)) = (octets.get(at), octets.get(at + 2..end)) else { return };
        let mut head = self.last.take().map(|last| last.head).unwrap_or_default();
        head.clear();
        head.extend_from_slice(part);
        self.last = Some(Last { first: *first, head, stream, found, names });
    }
}

/// Where the value of a whole push frame begins.
fn value_at(octets: &[u8]) -> Option<usize> {
    let is_frame = PacketType::of(octets) == Some(PacketType::PushFrame);
    let is_whole = tlv::frame_len(octets).is_ok_and(|len| len == Some(octets.len()));
    let at = if octets.get(1).is_some_and(|len| *len < 253) { 2 } else { 4 };
    (is_frame && is_whole).then_some(at)
}
