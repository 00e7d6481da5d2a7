//! Publications that are retained for who subscribes later (section 5.4): the last ones of an item,
//! at the node of its publisher and at those of its subscribers.

use crate::data::Aliases;
use crate::publication::AppId;
use onym_wire::push::Id;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Most publications of one item.
pub const DEPTH_MAX: u32 = 65_535;
/// Most items of which some are retained, and streams of other nodes.
const ITEMS_MAX: usize = 65_536;
/// What a publication takes beside identifier and payload, about.
const OVERHEAD: usize = 256;
/// Most identifiers by which what came in one stream is found.
const NAMES_MAX: usize = 64;

/// Whose share something is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// An application of this node that publishes it.
    App(AppId),
    /// Publishers at other nodes.
    Network,
}

/// What a history is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// An item that an application of this node publishes.
    Own(Id),
    /// A stream of numbers of another node.
    Stream(u64),
}

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
    pub(super) depth: u32,
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
    fn new(holder: Holder, depth: u32) -> Self {
        Self {
            holder,
            depth,
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
    pub(super) fn told(&self) -> (u32, u32) {
        (self.depth, self.first)
    }
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
}

/// The publications that are retained.
#[derive(Debug)]
pub(super) struct Retained {
    octets_max: usize,
    octets: usize,
    histories: BTreeMap<Source, History>,
    names: BTreeSet<(Id, Source)>,
    /// Octets of each holder, and the same the other way round.
    held: BTreeMap<Holder, usize>,
    weights: BTreeSet<(usize, Holder)>,
    /// The entries of each holder, the oldest first.
    order: BTreeMap<(Holder, u64), Source>,
    serial: u64,
    pub(super) evicted: u64,
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
            octets: 0,
            histories: BTreeMap::new(),
            names: BTreeSet::new(),
            held: BTreeMap::new(),
            weights: BTreeSet::new(),
            order: BTreeMap::new(),
            serial: 0,
            evicted: 0,
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
            publications: self.order.len(),
            octets: self.octets,
            octets_max: self.octets_max,
            evicted: self.evicted,
            told: self.told,
            replayed: self.replayed,
            unsent: self.unsent,
            lagging: 0,
            replays: 0,
        }
    }

    pub(super) fn get(&self, source: &Source) -> Option<&History> {
        self.histories.get(source)
    }

    /// The last `depth` publications of an item are retained from now on; whether there is room for
    /// one more item.
    pub(super) fn open(&mut self, item: &Id, app: AppId, depth: u32) -> bool {
        let source = Source::Own(item.clone());
        let holder = Holder::App(app);
        if self.histories.get(&source).is_some_and(|known| known.holder != holder) {
            self.remove(&source);
        }
        if !self.histories.contains_key(&source) {
            if self.histories.len() >= ITEMS_MAX {
                return false;
            }
            self.histories.insert(source.clone(), History::new(holder, depth));
            self.name(&source, std::slice::from_ref(item));
        }
        if let Some(history) = self.histories.get_mut(&source) {
            history.depth = depth;
        }
        self.trim(&source);
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

    /// Retains a publication of this node with its number; what its frames say.
    pub(super) fn push(
        &mut self,
        source: &Source,
        stream: u64,
        number: u32,
        ids: Aliases,
        payload: Arc<[u8]>,
    ) -> Option<(u32, u32)> {
        let history = self.histories.get(source)?;
        let is_next = history.stream == stream && history.next == number;
        if !is_next {
            self.clear(source);
        }
        let history = self.histories.get_mut(source)?;
        (history.stream, history.next) = (stream, number.wrapping_add(1));
        self.add(source, ids, payload);
        self.histories.get(source).map(History::told)
    }

    /// A publication of another node came, or word of how far it is: how many before it never came,
    /// and whether it comes for the first time. `None`: its numbers are not followed, as there are
    /// too many.
    pub(super) fn note(
        &mut self,
        stream: u64,
        number: u32,
        came: Came,
        depth: u32,
        first: u32,
        ids: &[Id],
    ) -> Option<(u32, bool)> {
        let source = Source::Stream(stream);
        if !self.histories.contains_key(&source) {
            if self.histories.len() >= ITEMS_MAX {
                return None;
            }
            let mut history = History::new(Holder::Network, depth);
            // What is retained is to come before anything else.
            let is_behind = number.wrapping_sub(first) <= depth.min(DEPTH_MAX);
            history.next = if is_behind { first } else { number };
            history.stream = stream;
            self.supersede(ids);
            self.histories.insert(source.clone(), history);
        }
        let history = self.histories.get_mut(&source)?;
        history.depth = depth.min(DEPTH_MAX);
        let ahead = number.wrapping_sub(history.next);
        if ahead > u32::MAX / 2 {
            return Some((0, false));
        }
        let is_publication = came == Came::Publication;
        history.next = number.wrapping_add(is_publication.into());
        Some((ahead, is_publication))
    }

    /// Retains a publication of another node, whose number was looked at.
    pub(super) fn keep(&mut self, stream: u64, ids: Aliases, payload: Arc<[u8]>) {
        let source = Source::Stream(stream);
        self.name(&source, &ids);
        self.add(&source, ids, payload);
    }

    /// Another stream of the same item began: what came in those before is not its last value.
    fn supersede(&mut self, ids: &[Id]) {
        let known: Vec<Source> = ids.iter().flat_map(|id| self.named(id)).collect();
        for source in known.iter().filter(|source| matches!(source, Source::Stream(_))) {
            self.clear(source);
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
        if let Some(history) = self.histories.remove(source) {
            for name in history.names {
                self.names.remove(&(name, source.clone()));
            }
        }
    }

    fn add(&mut self, source: &Source, ids: Aliases, payload: Arc<[u8]>) {
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
        while self.octets + len > self.octets_max && self.evict() {}
        self.serial += 1;
        let serial = self.serial;
        let Some(history) = self.histories.get_mut(source) else { return };
        if history.entries.is_empty() {
            history.first = history.next.wrapping_sub(1);
        }
        let gap = std::mem::take(&mut history.gap);
        history.entries.push_back(Entry { ids, payload, gap, serial });
        self.order.insert((holder, serial), source.clone());
        self.weigh(holder, len, 0);
        self.trim(source);
    }

    /// Forgets the oldest publication of who holds most; whether there was one.
    fn evict(&mut self) -> bool {
        let Some((_, holder)) = self.weights.last().copied() else { return false };
        let oldest = self.order.range((holder, 0)..=(holder, u64::MAX)).next();
        let Some(source) = oldest.map(|(_, source)| source.clone()) else { return false };
        self.evicted += 1;
        self.pop(&source)
    }

    fn trim(&mut self, source: &Source) {
        let is_long = |history: &History| history.entries.len() as u64 > u64::from(history.depth);
        while self.histories.get(source).is_some_and(is_long) && self.pop(source) {}
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
        self.order.remove(&(holder, entry.serial));
        self.weigh(holder, 0, size(&entry.ids, &entry.payload));
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
        self.order.remove(&(holder, entry.serial));
        self.weigh(holder, 0, size(&entry.ids, &entry.payload));
    }

    fn weigh(&mut self, holder: Holder, more: usize, less: usize) {
        self.octets = self.octets + more - less;
        let before = self.held.get(&holder).copied().unwrap_or(0);
        self.weights.remove(&(before, holder));
        let now = before + more - less;
        if now == 0 {
            self.held.remove(&holder);
        } else {
            self.held.insert(holder, now);
            self.weights.insert((now, holder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_tables::Rng;

    fn id(text: &str) -> Id {
        text.parse().unwrap()
    }

    fn publish(retained: &mut Retained, item: &str, number: u32, len: usize) -> (u32, u32) {
        let source = Source::Own(id(item));
        let (ids, payload) = (Aliases::from_elem(id(item), 1), vec![number as u8; len].into());
        retained.push(&source, 7, number, ids, payload).unwrap()
    }

    fn numbers(retained: &Retained, item: &str) -> Vec<u8> {
        let history = retained.get(&Source::Own(id(item))).unwrap();
        history.entries.iter().map(|entry| entry.payload[0]).collect()
    }

    #[test]
    fn so_many_are_retained_in_order_and_their_frames_say_which() {
        let mut retained = Retained::new(1 << 20);
        assert!(retained.open(&id("/1/2"), AppId(1), 3));
        let told: Vec<_> = (5..10).map(|n| publish(&mut retained, "/1/2", n, 1)).collect();
        assert_eq!(told, [(3, 5), (3, 5), (3, 5), (3, 6), (3, 7)]);
        assert_eq!(numbers(&retained, "/1/2"), [7, 8, 9]);
        // A number that is left out was not retained: what is must have no holes.
        publish(&mut retained, "/1/2", 11, 1);
        assert_eq!(numbers(&retained, "/1/2"), [11]);
        assert!(retained.open(&id("/1/2"), AppId(1), 1));
        publish(&mut retained, "/1/2", 12, 1);
        assert_eq!(numbers(&retained, "/1/2"), [12]);
        // Another application begins anew.
        assert!(retained.open(&id("/1/2"), AppId(2), 1));
        assert!(numbers(&retained, "/1/2").is_empty());
    }

    #[test]
    fn at_the_bound_who_holds_most_loses_the_oldest_and_nobody_else_anything() {
        let mut retained = Retained::new(20_000);
        for (item, app) in [("/1/1", 1), ("/1/2", 1), ("/1/3", 2)] {
            assert!(retained.open(&id(item), AppId(app), 1000));
        }
        publish(&mut retained, "/1/3", 0, 500);
        for number in 0..200 {
            publish(&mut retained, ["/1/1", "/1/2"][number as usize % 2], number / 2, 500);
            assert!(retained.octets <= 20_000);
        }
        assert_eq!(numbers(&retained, "/1/3"), [0]);
        let (one, two) = (numbers(&retained, "/1/1"), numbers(&retained, "/1/2"));
        assert!(one.len() + two.len() > 20 && one.len().abs_diff(two.len()) <= 1);
        assert_eq!((one.last(), two.last()), (Some(&99), Some(&99)));
        assert_eq!(retained.evicted, 200 - (one.len() + two.len()) as u64);
        // What has no room at all leaves no old value behind.
        let (_, first) = publish(&mut retained, "/1/3", 1, 30_000);
        assert!(numbers(&retained, "/1/3").is_empty());
        assert_eq!(first, 2);
        publish(&mut retained, "/1/3", 2, 10);
        assert_eq!(numbers(&retained, "/1/3"), [2]);
    }

    #[test]
    fn what_another_node_retains_comes_first_once_and_what_is_lost_of_it_is_missed() {
        let mut retained = Retained::new(1 << 20);
        let ids = [id("/1/2")];
        let mut note = |stream, number, first| {
            retained.note(stream, number, Came::Publication, 3, first, &ids)
        };
        // All of it comes; twice; and what is new.
        assert_eq!(
            [7, 8, 7, 8, 9].map(|n| note(1, n, 7).unwrap().1),
            [true, true, false, false, true]
        );
        // The first two of three are lost.
        assert_eq!(note(2, 9, 7), Some((2, true)));
        // The numbers go round.
        assert_eq!(note(3, 1, u32::MAX), Some((2, true)));
        // What its publisher retains has no room there: nothing comes before.
        assert_eq!(note(4, 9, 10), Some((0, true)));
        // How far it is.
        assert_eq!(retained.note(4, 12, Came::Word, 3, 10, &ids), Some((2, false)));
        assert_eq!(retained.note(4, 12, Came::Publication, 3, 10, &ids), Some((0, true)));
    }

    #[test]
    fn subscriptions_find_items_by_all_names_and_those_right_beneath() {
        let mut retained = Retained::new(1 << 20);
        for item in ["/1/2", "/1/2/3", "/1/20", "/2"] {
            assert!(retained.open(&id(item), AppId(1), 1));
        }
        retained.name(&Source::Own(id("/1/2")), &[id("/7/8")]);
        let found = |name: &str| -> Vec<String> {
            let all = retained.find(&id(name)).into_iter();
            all.map(
                |source| if let Source::Own(id) = source { id.to_string() } else { String::new() },
            )
            .collect()
        };
        assert_eq!(found("/1"), ["/0001/0002", "/0001/0020"]);
        assert_eq!(found("/1/2"), ["/0001/0002", "/0001/0002/0003"]);
        assert_eq!(found("/1/2/9"), ["/0001/0002"]);
        assert_eq!(
            (found("/7"), found("/7/8")),
            (vec!["/0001/0002".into()], vec!["/0001/0002".into()])
        );
        assert!(found("/3").is_empty());
        retained.remove(&Source::Own(id("/1/2")));
        assert!(retained.find(&id("/7/8")).is_empty());
    }

    #[test]
    fn octets_and_order_are_those_of_what_is_there_whatever_happens() {
        let seed = 5;
        println!("seed {seed}");
        let (mut retained, mut rng) = (Retained::new(6000), Rng::new(seed));
        let items: Vec<String> = (1..6).map(|n| format!("/1/{n}")).collect();
        let mut next = [0_u32; 5];
        for _ in 0..5000 {
            let at = rng.below(5) as usize;
            let source = Source::Own(id(&items[at]));
            match rng.below(20) {
                0 => retained.remove(&source),
                1 => retained.unpush(&source),
                2..6 => {
                    let (app, depth) = (AppId(1 + rng.below(2)), 1 + rng.below(9) as u32);
                    assert!(retained.open(&id(&items[at]), app, depth));
                }
                _ if retained.get(&source).is_some() => {
                    next[at] += 1;
                    publish(&mut retained, &items[at], next[at], rng.below(2000) as usize + 1);
                }
                _ => {}
            }
            let entries = || retained.histories.values().flat_map(|h| &h.entries);
            let octets: usize = entries().map(|e| size(&e.ids, &e.payload)).sum();
            assert_eq!((retained.octets, retained.order.len()), (octets, entries().count()));
            assert_eq!(retained.held.values().sum::<usize>(), octets);
            assert!(retained.octets <= 6000 && retained.weights.len() == retained.held.len());
        }
    }
}
