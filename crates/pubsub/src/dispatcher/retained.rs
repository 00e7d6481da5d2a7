//! Publications that are retained for who subscribes later (section 5.4): the last ones of an item,
//! at the node of its publisher and at those of its subscribers.

#[cfg(test)]
mod tests;

use super::source::{Holder, Source};
use super::terms::{LIFETIME_MAX, Promises, Terms};
use crate::data::{Aliases, Place, Told};
use crate::publication::AppId;
use onym_tables::Tick;
use onym_tables::shares::Shares;
use onym_wire::push::Id;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Most items of which some are retained, and streams of other nodes.
const ITEMS_MAX: usize = 65_536;
/// What a publication takes beside identifier and payload, about.
const OVERHEAD: usize = 256;
/// Most identifiers by which what came in one stream is found.
const NAMES_MAX: usize = 64;

/// What came from the node of a publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// A publication.
    Publication,
    /// Word of the number that comes next.
    Word,
}

/// A publication that is retained.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Its names, when it was published; the first one as its publisher calls it.
    pub(super) ids: Aliases,
    pub(super) payload: Arc<[u8]>,
    /// What never came between the one before it and this one.
    pub(super) gap: Gap,
    /// When it is forgotten for its age.
    pub(super) until: Option<Tick>,
    serial: u64,
}

/// Publications that never came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) missed: u64,
    /// Nobody was there yet to be told.
    pub(super) is_untold: bool,
}

/// The last publications of an item, in order.
#[derive(Debug)]
pub(super) struct History {
    pub(super) holder: Holder,
    pub(super) terms: Terms,
    /// When its first entry is forgotten for its age.
    due: Option<Tick>,
    /// The stream of its numbers, and the number of the first entry.
    pub(super) stream: u64,
    pub(super) first: u32,
    /// The number that comes next.
    next: u32,
    /// In order.
    pub(super) entries: VecDeque<Entry>,
    names: Vec<Id>,
    /// What never came behind the last one.
    pub(super) gap: Gap,
    /// Entries that were forgotten.
    popped: u64,
}

impl History {
    fn new(holder: Holder, terms: Terms) -> Self {
        Self {
            holder,
            terms,
            due: None,
            stream: 0,
            first: 0,
            next: 0,
            entries: VecDeque::new(),
            names: Vec::new(),
            gap: Gap::default(),
            popped: 0,
        }
    }

    /// Where its first entry stands among all that it ever had.
    pub(super) const fn popped(&self) -> u64 {
        self.popped
    }

    /// Entries beyond those that its publisher wants to be retained: who is behind needs them, and
    /// whoever comes later does not get them (P-93).
    fn excess(&self) -> u64 {
        (self.entries.len() as u64).saturating_sub(self.terms.depth.into())
    }

    /// Where the first one stands that who comes later gets.
    pub(super) fn start(&self) -> u64 {
        self.popped + self.excess()
    }

    /// Where the next one will stand.
    pub(super) fn end(&self) -> u64 {
        self.popped + self.entries.len() as u64
    }

    /// The entry that stands there.
    pub(super) fn entry(&self, at: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(at.checked_sub(self.popped)?).ok()?)
    }

    /// Whether this is the last of its publications.
    pub(super) fn ends_with(&self, payload: &Arc<[u8]>) -> bool {
        self.entries.back().is_some_and(|entry| Arc::ptr_eq(&entry.payload, payload))
    }

    /// The number that comes next.
    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// What its publications say of it: how many are retained, and the number of the first.
    pub(super) fn told(&self) -> Told {
        let Terms { depth, lifetime, deadline, priority, .. } = self.terms;
        let first = self.first.wrapping_add(u32::try_from(self.excess()).unwrap_or(u32::MAX));
        let ms = |time: Option<Duration>| time.map_or(0, milliseconds);
        let deadline_ms = u32::try_from(ms(deadline)).unwrap_or(u32::MAX);
        Told { depth, first, lifetime_ms: ms(lifetime), deadline_ms, priority }
    }

    /// What is retained of it, for people.
    pub(super) fn view(&self) -> HistoryView {
        let Terms { depth: most, lifetime, deadline, priority, waits } = self.terms;
        let publications = self.entries.len();
        HistoryView { publications, most, lifetime, deadline, priority, waits }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Entry {
    /// Milliseconds until it is forgotten for its age, as frames say it; 0: it is not.
    pub(super) fn left_ms(&self, now: Tick) -> u64 {
        self.until.map_or(0, |until| milliseconds(until.since(now)).max(1))
    }
}

/// What is retained of an item, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryView {
    /// Publications that are there.
    pub publications: usize,
    /// So many at most.
    pub most: u32,
    /// Each for so long.
    pub lifetime: Option<Duration>,
    /// The next one follows within so long.
    pub deadline: Option<Duration>,
    /// What an application that is behind in several items is told first.
    pub priority: u8,
    /// Its publisher waits for applications of this node that are behind.
    pub waits: bool,
}

/// What is retained, for the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetainedView {
    /// Items of applications of this node.
    pub items: usize,
    /// Streams of other nodes.
    pub streams: usize,
    /// Publications of both.
    pub publications: usize,
    /// Their octets, about.
    pub octets: usize,
    /// Most octets.
    pub octets_max: usize,
    /// Publications that were forgotten for want of room.
    pub evicted: u64,
    /// Publications that were forgotten for their age.
    pub expired: u64,
    /// Publications that did not come by their deadline.
    pub overdue: u64,
    /// Publications told to who subscribed later, in this node.
    pub told: u64,
    /// Publications sent once more for subscribers at other nodes.
    pub replayed: u64,
    /// Publications not sent to such, as too many histories were on their way.
    pub unsent: u64,
    /// Histories in which an application of this node is behind, for each of them.
    pub lagging: usize,
    /// Subscribers at other nodes to whom a history is on its way, for each history.
    pub replays: usize,
    /// Histories of which the publisher waits for who is behind.
    pub waiting: usize,
    /// How often one waited in vain.
    pub in_vain: u64,
}

/// The publications that are retained.
#[derive(Debug)]
pub(super) struct Retained {
    octets_max: usize,
    histories: BTreeMap<Source, History>,
    names: BTreeSet<(Id, Source)>,
    /// Who holds the publications.
    shares: Shares<Holder, Source>,
    /// Histories with something that is forgotten for its age.
    due: BTreeSet<(Tick, Source)>,
    pub(super) promises: Promises,
    pub(super) evicted: u64,
    expired: u64,
    pub(super) told: u64,
    pub(super) replayed: u64,
    pub(super) unsent: u64,
}

fn size(ids: &[Id], payload: &[u8]) -> usize {
    ids.iter().map(|id| id.octets().len()).sum::<usize>() + payload.len() + OVERHEAD
}

impl Retained {
    pub(super) fn new(octets_max: usize) -> Self {
        Self {
            octets_max,
            histories: BTreeMap::new(),
            names: BTreeSet::new(),
            shares: Shares::new(),
            due: BTreeSet::new(),
            promises: Promises::default(),
            evicted: 0,
            expired: 0,
            told: 0,
            replayed: 0,
            unsent: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.histories.is_empty()
    }

    pub(super) fn view(&self) -> RetainedView {
        let items = self.histories.keys().filter(|s| matches!(s, Source::Own(_))).count();
        RetainedView {
            items,
            streams: self.histories.len() - items,
            publications: self.shares.len(),
            octets: self.shares.octets(),
            octets_max: self.octets_max,
            evicted: self.evicted,
            expired: self.expired,
            overdue: self.promises.overdue,
            told: self.told,
            replayed: self.replayed,
            unsent: self.unsent,
            lagging: 0,
            replays: 0,
            waiting: 0,
            in_vain: 0,
        }
    }

    pub(super) fn get(&self, source: &Source) -> Option<&History> {
        self.histories.get(source)
    }

    /// Publications of an item are retained from now on, of those that are there as many as that
    /// leaves; whether there is room for one more item.
    pub(super) fn open(&mut self, item: &Id, app: AppId, terms: Terms) -> bool {
        let source = Source::Own(item.clone());
        let holder = Holder::App(app);
        if self.histories.get(&source).is_some_and(|known| known.holder != holder) {
            self.remove(&source);
        }
        if !self.histories.contains_key(&source) {
            if self.histories.len() >= ITEMS_MAX {
                return false;
            }
            self.histories.insert(source.clone(), History::new(holder, terms));
            self.name(&source, std::slice::from_ref(item));
        }
        if let Some(history) = self.histories.get_mut(&source) {
            history.terms = terms;
        }
        if !terms.waits {
            self.trim(&source, None);
        }
        true
    }

    /// The history of an item that an application of this node publishes, or of the one that it is
    /// beneath.
    pub(super) fn own(&self, id: &Id) -> Option<Source> {
        let above = || Id::from_labels(id.parent());
        [Source::Own(id.clone()), Source::Own(above())]
            .into_iter()
            .find(|source| self.histories.contains_key(source))
    }

    /// Further names of an item.
    pub(super) fn name(&mut self, source: &Source, ids: &[Id]) {
        let Some(history) = self.histories.get_mut(source) else { return };
        for id in ids {
            if history.names.len() < NAMES_MAX && !history.names.contains(id) {
                history.names.push(id.clone());
                self.names.insert((id.clone(), source.clone()));
            }
        }
    }

    /// Retains a publication of this node with its number; what its frames say, and whether it is one
    /// too many for an item whose publisher waits: then there is something to be forgotten.
    pub(super) fn push(
        &mut self,
        now: Tick,
        source: &Source,
        place: Place,
        ids: Aliases,
        payload: Arc<[u8]>,
    ) -> Option<(Told, bool)> {
        let Place::Number(stream, number) = place else { return None };
        let history = self.histories.get(source)?;
        let is_next = history.stream == stream && history.next == number;
        if !is_next {
            self.clear(source);
        }
        let history = self.histories.get_mut(source)?;
        (history.stream, history.next) = (stream, number.wrapping_add(1));
        let Terms { lifetime, deadline, .. } = history.terms;
        self.promises.came(now, source, deadline);
        self.add(source, ids, payload, lifetime.map(|lifetime| now + lifetime));
        let history = self.histories.get(source)?;
        Some((history.told(), history.terms.waits && self.is_over(source, history)))
    }

    /// A publication of another node came, or word of how far it is: how many before it never came,
    /// and whether it comes for the first time. `None`: its numbers are not followed, as there are
    /// too many.
    pub(super) fn note(
        &mut self,
        stream: u64,
        number: u32,
        came: Came,
        told: Told,
        ids: &[Id],
    ) -> Option<(u32, bool)> {
        let (source, terms) = (Source::Stream(stream), Terms::told(told));
        if !self.histories.contains_key(&source) {
            if self.histories.len() >= ITEMS_MAX {
                return None;
            }
            let mut history = History::new(Holder::Network, terms);
            // What is retained is to come before anything else.
            let is_behind = number.wrapping_sub(told.first) <= terms.depth;
            history.next = if is_behind { told.first } else { number };
            history.stream = stream;
            self.supersede(ids);
            self.histories.insert(source.clone(), history);
        }
        let history = self.histories.get_mut(&source)?;
        history.terms = terms;
        let ahead = number.wrapping_sub(history.next);
        if ahead > u32::MAX / 2 {
            return Some((0, false));
        }
        let is_publication = came == Came::Publication;
        history.next = number.wrapping_add(is_publication.into());
        Some((ahead, is_publication))
    }

    /// Retains a publication of another node, whose number was looked at, for no longer than that
    /// said.
    pub(super) fn keep(
        &mut self,
        now: Tick,
        stream: u64,
        ids: Aliases,
        payload: Arc<[u8]>,
        lifetime_ms: u64,
    ) {
        let source = Source::Stream(stream);
        self.name(&source, &ids);
        let lifetime = Duration::from_millis(lifetime_ms).min(LIFETIME_MAX);
        let until = (lifetime_ms > 0).then(|| now + lifetime);
        let deadline = self.histories.get(&source).and_then(|history| history.terms.deadline);
        self.promises.came(now, &source, deadline);
        self.add(&source, ids, payload, until);
    }

    /// Forgets what is too old; whether something was.
    pub(super) fn expire(&mut self, now: Tick) -> bool {
        let before = self.expired;
        while let Some((_, source)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            self.expired += 1;
            if !self.pop(&source) {
                self.due.pop_first();
            }
        }
        self.expired > before
    }

    /// When something is too old, or does not come in time.
    pub(super) fn next_timeout(&self) -> Option<Tick> {
        let due = self.due.first().map(|(due, _)| *due);
        due.into_iter().chain(self.promises.next_timeout()).min()
    }

    /// The first entry of a history may be another one.
    fn plan(&mut self, source: &Source) {
        let Some(history) = self.histories.get_mut(source) else { return };
        let due = history.entries.front().and_then(|entry| entry.until);
        if due == history.due {
            return;
        }
        if let Some(before) = std::mem::replace(&mut history.due, due) {
            self.due.remove(&(before, source.clone()));
        }
        if let Some(due) = due {
            self.due.insert((due, source.clone()));
        }
    }

    /// Another stream of the same item began: what came in those before is not its last value.
    fn supersede(&mut self, ids: &[Id]) {
        let known: Vec<Source> = ids.iter().flat_map(|id| self.named(id)).collect();
        for source in known.iter().filter(|source| matches!(source, Source::Stream(_))) {
            self.clear(source);
            self.promises.forget(source);
        }
    }

    fn named(&self, id: &Id) -> Vec<Source> {
        let from = self.names.range((id.clone(), Source::Own(Id::default()))..);
        from.take_while(|(known, _)| known == id).map(|(_, source)| source.clone()).collect()
    }

    /// The histories that may have something for a subscription to `name`: of an item of that name
    /// or right beneath it, or of the item that it is beneath.
    pub(super) fn find(&self, name: &Id) -> Vec<Source> {
        let from = self.names.range((name.clone(), Source::Own(Id::default()))..);
        let beneath = from.take_while(|(known, _)| known.starts_with(name));
        let near = beneath.filter(|(known, _)| known.len() <= name.len() + 1);
        let mut found: Vec<Source> = near.map(|(_, source)| source.clone()).collect();
        found.extend(self.named(&Id::from_labels(name.parent())));
        let mut seen = BTreeSet::new();
        found.retain(|source| seen.insert(source.clone()));
        found
    }

    /// The names by which a history is found.
    pub(super) fn names(&self, source: &Source) -> Vec<Id> {
        self.histories.get(source).map(|history| history.names.clone()).unwrap_or_default()
    }

    /// So many publications never came, of which so many applications were told.
    pub(super) fn note_gap(&mut self, stream: u64, missed: u64, told: usize) {
        if let Some(history) = self.histories.get_mut(&Source::Stream(stream)) {
            history.gap.missed += missed;
            history.gap.is_untold |= told == 0;
        }
    }

    /// Somebody was told of everything that never came.
    pub(super) fn note_told(&mut self, source: &Source, count: u64) {
        self.told += count;
        let Some(history) = self.histories.get_mut(source) else { return };
        history.gap.is_untold = false;
        if let Some(first) = history.entries.front_mut() {
            first.gap.is_untold = false;
        }
    }

    /// Forgets an item or a stream with all that is retained of it.
    pub(super) fn remove(&mut self, source: &Source) {
        self.clear(source);
        self.promises.forget(source);
        if let Some(history) = self.histories.remove(source) {
            for name in history.names {
                self.names.remove(&(name, source.clone()));
            }
        }
    }

    fn add(&mut self, source: &Source, ids: Aliases, payload: Arc<[u8]>, until: Option<Tick>) {
        let Some(holder) = self.histories.get(source).map(|history| history.holder) else { return };
        let len = size(&ids, &payload);
        if len > self.octets_max {
            // The last value would be an old one: there is none.
            let more = self.histories.get(source).map_or(0, |history| history.entries.len() + 1);
            self.evicted += more as u64;
            self.clear(source);
            if let Some(history) = self.histories.get_mut(source) {
                history.first = history.next;
            }
            return;
        }
        while self.shares.octets() + len > self.octets_max && self.evict() {}
        let serial = self.shares.add(holder, source.clone(), len);
        let Some(history) = self.histories.get_mut(source) else { return };
        if history.entries.is_empty() {
            history.first = history.next.wrapping_sub(1);
        }
        let gap = std::mem::take(&mut history.gap);
        history.entries.push_back(Entry { ids, payload, gap, until, serial });
        if !history.terms.waits {
            self.trim(source, None);
        }
        self.plan(source);
    }

    /// Forgets the oldest publication of who holds most; whether there was one.
    fn evict(&mut self) -> bool {
        let Some(source) = self.shares.oldest().cloned() else { return false };
        self.evicted += 1;
        self.pop(&source)
    }

    /// Whether a history has more than it may. Where the publisher waits, that is so before there is
    /// no room at all, for what is on its way when it begins to wait.
    fn is_over(&self, source: &Source, history: &History) -> bool {
        let is_near = || self.shares.octets() > self.octets_max / 4 * 3;
        let has_some = || history.terms.waits && history.entries.len() > 1;
        history.excess() > 0 || has_some() && is_near() && self.shares.oldest() == Some(source)
    }

    /// Forgets what a history has more than it may, but nothing from `kept` on; whether it still has
    /// too much.
    pub(super) fn trim(&mut self, source: &Source, kept: Option<u64>) -> bool {
        while let Some(history) = self.histories.get(source) {
            if !self.is_over(source, history) {
                return false;
            }
            if kept.is_some_and(|kept| kept <= history.popped) {
                return true;
            }
            self.evicted += u64::from(history.excess() == 0);
            self.pop(source);
        }
        false
    }

    fn clear(&mut self, source: &Source) {
        while self.pop(source) {}
    }

    /// Forgets the first publication of an item; whether there was one.
    fn pop(&mut self, source: &Source) -> bool {
        let Some(history) = self.histories.get_mut(source) else { return false };
        let Some(entry) = history.entries.pop_front() else { return false };
        history.first = history.first.wrapping_add(1);
        history.popped += 1;
        let holder = history.holder;
        self.shares.remove(holder, entry.serial, size(&entry.ids, &entry.payload));
        self.plan(source);
        true
    }

    /// The last publication was refused after all: nothing is retained, so that there is no hole.
    pub(super) fn unpush(&mut self, source: &Source) {
        // As if that one had never been there.
        self.pop_last(source);
        self.clear(source);
        if let Some(history) = self.histories.get_mut(source) {
            history.first = history.next;
        }
    }

    fn pop_last(&mut self, source: &Source) {
        let Some(history) = self.histories.get_mut(source) else { return };
        let Some(entry) = history.entries.pop_back() else { return };
        let holder = history.holder;
        self.shares.remove(holder, entry.serial, size(&entry.ids, &entry.payload));
        self.plan(source);
    }
}
