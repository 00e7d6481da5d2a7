//! Publications that did not come: they are numbered where they are published, and who receives
//! sees which numbers are left out (P-59).

use super::{Dispatcher, data};
use crate::publication::{AppId, Event, Outbox, Publication, Target};
use onym_tables::{HashKey, KeyedMap, Tick};
use onym_wire::push::{Frame, Id, Label, Strategy, option};
use onym_wire::tlv;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// Time without a publication after which an item says how far it is, about.
const QUIET: Duration = Duration::from_millis(500);
/// Items that are looked at in one go: frames do not wait for all of them.
const LOOKS_MAX: usize = 256;
/// Most streams of numbers that a node follows; beyond, all are forgotten and begin anew.
const STREAMS_MAX: usize = 65_536;
/// Octets of the option.
pub(super) const OPTION_LEN: usize = 14;

/// Numbers of the publications of one item of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    stream: u64,
    next: u32,
    /// The next one as receivers were told last without a publication.
    told: u32,
    /// The next one when it was looked at last.
    seen: u32,
    /// Whether it is looked at.
    is_watched: bool,
}

impl Numbers {
    /// The numbers of item number `count` of a node in this life of it: nobody else's, and they say
    /// nothing of the node.
    pub(super) fn new(node: Label, boot: u32, count: u64) -> Self {
        let stream = HashKey::new(node.to_u64(), boot.into()).words([count, 0]);
        Self { stream, next: 0, told: 0, seen: 0, is_watched: false }
    }

    /// The number of one more publication.
    pub(super) fn take(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        number
    }

    /// Whether it is to be looked at from now on.
    pub(super) fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.is_watched, true)
    }

    /// Appends an option, [`OPTION_LEN`] octets of which the last four are the number.
    pub(super) fn put(&self, typ: u32, number: u32, options: &mut Vec<u8>) {
        tlv::put_head(options, typ, 12);
        options.extend_from_slice(&self.stream.to_be_bytes());
        options.extend_from_slice(&number.to_be_bytes());
    }

    /// After a while: whether to say how far it is now; and whether to look again.
    fn look(&mut self) -> (bool, bool) {
        let is_quiet = std::mem::replace(&mut self.seen, self.next) == self.next;
        if !is_quiet {
            return (false, true);
        }
        self.is_watched = false;
        (std::mem::replace(&mut self.told, self.next) != self.next, false)
    }
}

/// Items of this node that may have to say how far they are.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// In the order in which they are looked at.
    items: VecDeque<(Tick, Id)>,
}

impl Watched {
    pub(super) fn add(&mut self, now: Tick, item: &Id) {
        self.items.push_back((now + QUIET, item.clone()));
    }

    pub(super) fn next_timeout(&self) -> Option<Tick> {
        self.items.front().map(|(due, _)| *due)
    }

    fn take_due(&mut self, now: Tick) -> Option<Id> {
        let is_due = self.next_timeout().is_some_and(|due| due <= now);
        if is_due { self.items.pop_front().map(|(_, id)| id) } else { None }
    }
}

/// The streams of numbers that were heard.
#[derive(Debug, Default)]
pub(super) struct Heard {
    streams: KeyedMap<u64, Stream>,
}

#[derive(Debug)]
struct Stream {
    item: Id,
    next: u32,
    /// Which of the last numbers before `next` came, the last one in the lowest bit.
    came: u64,
}

impl Stream {
    /// Whether this number, which is before `next`, comes for the first time; what is so late that
    /// nobody knows counts as if it came before.
    fn is_new(&mut self, number: u32) -> bool {
        let late = self.next.wrapping_sub(number).wrapping_sub(1);
        let bit = 1_u64.checked_shl(late).unwrap_or(0);
        let is_new = bit & !self.came != 0;
        self.came |= bit;
        is_new
    }
}

impl Heard {
    /// What is before `number` of `stream` should have come, and `next` is what comes next: how
    /// many did not come, and whether this one comes for the first time.
    fn note(&mut self, stream: u64, (number, next): (u32, u32), item: &Id) -> (u32, bool) {
        let is_publication = next != number;
        if let Some(known) = self.streams.get_mut(&stream) {
            let ahead = number.wrapping_sub(known.next);
            if ahead > u32::MAX / 2 {
                // Late or twice: it was told as missed, or is known.
                return (0, is_publication && known.is_new(number));
            }
            let steps = next.wrapping_sub(known.next);
            known.came = known.came.checked_shl(steps).unwrap_or(0) | u64::from(is_publication);
            known.next = next;
            return (ahead, true);
        }
        if self.streams.len() >= STREAMS_MAX {
            self.streams.clear();
        }
        // What was published before it was subscribed to is not missed.
        let came = u64::from(is_publication);
        self.streams.insert(stream, Stream { item: item.clone(), next, came });
        (0, true)
    }

    /// Notes that these numbers of `stream` came, as far as each is the next one: how many.
    pub(super) fn take_next(&mut self, stream: u64, numbers: impl Iterator<Item = u32>) -> usize {
        let Some(known) = self.streams.get_mut(&stream) else { return 0 };
        let mut count = 0;
        for number in numbers {
            if known.next != number {
                break;
            }
            (known.came, known.next) = (known.came << 1 | 1, number.wrapping_add(1));
            count += 1;
        }
        count
    }

    /// Nobody here has this subscription any more: what is published meanwhile is not missed.
    pub(super) fn forget(&mut self, name: &Id) {
        let is_of = |item: &Id| item == name || item.father() == name.labels();
        self.streams.retain(|_, stream| !is_of(&stream.item));
    }
}

impl Dispatcher {
    /// Looks at the number of a frame that came. Whether there is a publication in it that did not
    /// come before.
    pub(super) fn note_number(&mut self, ids: &[Id], frame: &Frame<'_>, out: &mut Outbox) -> bool {
        let (number, reached) = (frame.options.number, frame.options.reached);
        let Some(((stream, number), item)) = number.or(reached).zip(ids.first()) else {
            return true;
        };
        // What a filter brought by mistake is nobody's loss.
        if self.is_wanted(ids, false) {
            let next = if reached.is_some() { number } else { number.wrapping_add(1) };
            let (missed, is_new) = self.heard.note(stream, (number, next), item);
            if missed > 0 {
                self.tell_missed(ids, missed.into(), out);
            }
            if reached.is_none() && !is_new {
                self.counters.duplicates += 1;
                return false;
            }
        }
        reached.is_none()
    }

    /// Tells who subscribed to one of these names that so many publications did not come.
    pub(super) fn tell_missed(&mut self, ids: &[Id], count: u64, out: &mut Outbox) {
        self.counters.missing += count;
        let names = ids.iter().flat_map(|id| data::names_above(id, false));
        let entries = names.filter_map(|name| self.subscriptions.get(name));
        let mut told: HashSet<AppId> = HashSet::new();
        for app in entries.flat_map(|entry| entry.subscribers.iter()) {
            if told.insert(*app) {
                out.tell(*app, Event::Missed(count));
            }
        }
    }

    /// Items that were published and are quiet now say how far they are, once: who got not even
    /// the last publication hears of it.
    pub(super) fn numbers_timeout(&mut self, now: Tick, out: &mut Outbox) {
        for _ in 0..LOOKS_MAX {
            let Some(id) = self.watched.take_due(now) else { return };
            let Some(entry) = self.publications.get_mut(&id) else { continue };
            let (is_due, again) = entry.numbers.look();
            if let (true, Some(route)) = (is_due, &entry.route) {
                let mut options = Vec::new();
                entry.numbers.put(option::REACHED, entry.numbers.next, &mut options);
                out.publish(Publication {
                    target: Target::Route(route.clone()),
                    strategy: entry.strategy,
                    hop_limit: entry.hops.saturating_add(self.config.spare_hops),
                    ids: entry.aliases.to_vec(),
                    options,
                    payload: Vec::new(),
                });
            }
            if again {
                self.watched.add(now, &id);
            }
        }
    }

    /// The option with the number of the next publication of the item that `id` is, or that it is
    /// beneath.
    pub(super) fn put_number(&mut self, now: Tick, id: &Id, options: &mut Vec<u8>) {
        let father = Id::from_labels(id.father());
        let name = if self.publications.contains_key(id) { id } else { &father };
        let Some(entry) = self.publications.get_mut(name) else { return };
        let number = entry.numbers.take();
        entry.numbers.put(option::NUMBER, number, options);
        if entry.numbers.begins() {
            self.watched.add(now, name);
        }
    }
}

/// Whether publications of this strategy are numbered.
pub(super) const fn is_numbered(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::DOMAIN_LOCAL | Strategy::INTER_DOMAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_left_out_are_missed_once_and_late_ones_are_not_missed_again() {
        let (mut heard, item) = (Heard::default(), "/1/2".parse().unwrap());
        let mut came = |stream, n: u32| heard.note(stream, (n, n.wrapping_add(1)), &item).0;
        let told = [7, 8, 10, 9, 11, 15, 15].map(|n| came(3, n));
        assert_eq!(told, [0, 0, 1, 0, 0, 3, 0]);
        // Another stream, and the end of the numbers.
        assert_eq!([u32::MAX - 1, 1].map(|n| came(4, n)), [0, 2]);
        // How far the publisher is.
        assert_eq!([(18, 18), (18, 18), (18, 19)].map(|n| heard.note(3, n, &item).0), [2, 0, 0]);
        heard.forget(&"/1".parse().unwrap());
        assert_eq!(heard.note(3, (100, 101), &item).0, 0);
    }

    #[test]
    fn a_number_comes_once_however_often_and_late_it_comes() {
        let (mut heard, item) = (Heard::default(), "/1/2".parse().unwrap());
        let mut is_new = |n: u32| heard.note(3, (n, n.wrapping_add(1)), &item).1;
        let told = [7, 7, 8, 10, 9, 9, 10, 8, 7, 6, 6].map(&mut is_new);
        let once = [true, false, true, true, true, false, false, false, false, true, false];
        assert_eq!(told, once);
        // Before the first number there is, and what is too late to be known.
        let told = [u32::MAX, 1, 0, u32::MAX, 1, 70, 12, 8, 6, 70].map(&mut is_new);
        assert_eq!(told, [true, true, true, false, false, true, true, false, false, false]);
        // How far the publisher is brings nothing, and hides nothing.
        assert_eq!(heard.note(3, (72, 72), &item), (1, true));
        assert_eq!([71, 71].map(|n| heard.note(3, (n, n + 1), &item).1), [true, false]);
    }

    #[test]
    fn a_quiet_item_says_how_far_it_is_once() {
        let mut numbers = Numbers::new(Label::from_u64(1), 2, 3);
        assert!(numbers.begins() && !numbers.begins());
        numbers.take();
        assert_eq!([(); 2].map(|()| numbers.look()), [(false, true), (true, false)]);
        assert!(numbers.begins());
        assert_eq!(numbers.look(), (false, false));
    }
}
