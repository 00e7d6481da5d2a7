//! Missing publications: the publisher's node numbers them, and a receiver sees which numbers are
//! skipped (P-59).

use super::{Effects, Fib, Pass};
use crate::data::Place;
use onym_tables::{KeyedMap, SipKey, Tick};
use onym_wire::push::{FrameBuilder, Id, Label, Strategy, option};
use onym_wire::tlv;
use std::collections::VecDeque;
use std::time::Duration;

/// Time without a publication after which an item says how far it is, about.
const QUIET: Duration = Duration::from_millis(500);
/// Most streams of numbers that a node follows; beyond, all are forgotten and begin anew.
const STREAMS_MAX: usize = 65_536;
/// Octets of a number, the last ones of its option.
pub(super) const NUMBER_LEN: usize = 4;
/// Octets of the option.
pub(crate) const OPTION_LEN: usize = 14;

/// Numbers of the publications of one item at one shard of this node.
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
    /// The numbers of item number `count` at a shard of a node in this life of it: nobody else's,
    /// and they say nothing of the node.
    pub(super) fn new(node: Label, boot: u32, count: u64, shard: u16) -> Self {
        let stream = SipKey::new(node.to_u64(), boot.into()).words([count, shard.into()]);
        Self { stream, next: 0, told: 0, seen: 0, is_watched: false }
    }

    /// The number of one more publication.
    pub(super) fn take(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        number
    }

    pub(super) const fn stream(&self) -> u64 {
        self.stream
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
    /// The last frame of it that was passed to the control plane.
    fence: u64,
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
        self.make_room();
        // What was published before it was subscribed to is not missed.
        let came = u64::from(is_publication);
        self.streams.insert(stream, Stream { item: item.clone(), next, came, fence: 0 });
        (0, true)
    }

    fn make_room(&mut self) {
        if self.streams.len() >= STREAMS_MAX {
            self.streams.clear();
        }
    }

    /// Whether something of the stream is with the control plane, which is done with `done`.
    pub(super) fn is_fenced(&self, stream: u64, done: u64) -> bool {
        self.streams.get(&stream).is_some_and(|known| known.fence > done)
    }

    /// Number `number` of the stream is with the control plane from now on, as thing `fence`.
    pub(super) fn fence(&mut self, (stream, number): (u64, u32), fence: u64, item: &Id) {
        if let Some(known) = self.streams.get_mut(&stream) {
            known.fence = fence;
            return;
        }
        self.make_room();
        let item = item.clone();
        self.streams.insert(stream, Stream { item, next: number, came: 0, fence });
    }

    /// Notes that these numbers of `stream` came, as far as each is the next one: how many.
    #[inline]
    pub(super) fn take_next(
        &mut self,
        (stream, done): (u64, u64),
        numbers: impl Iterator<Item = u32>,
    ) -> usize {
        let known = self.streams.get_mut(&stream).filter(|known| known.fence <= done);
        let Some(known) = known else { return 0 };
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
        let is_of = |item: &Id| item == name || item.parent() == name.labels();
        self.streams.retain(|_, stream| !is_of(&stream.item));
    }
}

impl Fib {
    /// Looks at the place of a publication that came in its stream. Whether there is a publication
    /// in it that did not come before.
    pub(super) fn note(&mut self, ids: &[Id], place: Place, effects: &mut Effects) -> bool {
        let (stream, number, is_publication) = match place {
            Place::None => return true,
            Place::Number(stream, number) => (stream, number, true),
            Place::Reached(stream, number) => (stream, number, false),
        };
        // What a filter brought by mistake is nobody's loss.
        let Some(item) = ids.first().filter(|_| self.receivers.is_wanted(ids)) else {
            return is_publication;
        };
        let next = number.wrapping_add(is_publication.into());
        let (missed, is_new) = self.heard.note(stream, (number, next), item);
        if missed > 0 {
            self.tell_missed(ids, missed.into(), effects);
        }
        if is_publication && !is_new {
            self.counters.duplicates += 1;
        }
        is_publication && is_new
    }

    /// A publication that will not be whole: who waited for it hears so, unless they did already.
    pub(super) fn given_up(&mut self, ids: &[Id], place: Place, effects: &mut Effects) {
        let missed = match (place, ids.first()) {
            (Place::Number(stream, number), Some(item)) if self.receivers.is_wanted(ids) => {
                let next = number.wrapping_add(1);
                self.heard.note(stream, (next, next), item).0
            }
            _ => 1,
        };
        if missed > 0 {
            self.tell_missed(ids, missed.into(), effects);
        }
    }

    /// Tells who subscribed to one of these names that so many publications did not come.
    fn tell_missed(&mut self, ids: &[Id], count: u64, effects: &mut Effects) {
        self.counters.missing += count;
        self.receivers.note_missed(ids, count, effects);
        let there = self.receivers.shards_of(ids);
        if there.shards != 0 {
            (effects.lost_at, effects.lost, effects.names) =
                (there.shards, count, Some(ids.into()));
        }
    }

    /// Items that were published and are quiet now say how far they are, once: who got not even
    /// the last publication hears of it. Whether there is a frame of one in `effects`, whose payload
    /// is empty; `left` bounds how many items are looked at.
    pub fn next_reached(&mut self, now: Tick, left: &mut usize, effects: &mut Effects) -> bool {
        effects.clear();
        while *left > 0 {
            *left -= 1;
            let Some(id) = self.watched.take_due(now) else { return false };
            let Some(item) = self.items.get_mut(&id) else { continue };
            // What the control plane has of it comes first.
            let is_busy = item.fence > self.done;
            let (is_due, again) = if is_busy { (false, true) } else { item.numbers.look() };
            if again {
                self.watched.add(now, &id);
            }
            if is_due && self.say_reached(&id, effects) {
                return true;
            }
        }
        false
    }

    fn say_reached(&mut self, id: &Id, effects: &mut Effects) -> bool {
        let Some(item) = self.items.get_mut(id) else { return false };
        let Some(way) = item.way.as_ref().filter(|way| way.route.is_some()) else { return false };
        let Numbers { stream, next, .. } = item.numbers;
        if self.config.reserve > 0 || item.retains.is_some() {
            self.passed += 1;
            item.fence = self.passed;
            let place = Place::Reached(stream, next);
            let item = Some(id.clone());
            effects.pass = Some(Pass { number: self.passed, place, item, is_retained: false });
            return true;
        }
        let Some(route) = &way.route else { return false };
        let mut options = Vec::new();
        item.numbers.put(option::REACHED, next, &mut options);
        FrameBuilder {
            hop_limit: way.hops.saturating_add(self.config.spare_hops),
            strategy: item.head.as_ref().map_or(Strategy::DOMAIN_LOCAL, |(strategy, _)| *strategy),
            route,
            ids: &way.aliases,
            options: &options,
            payload: &[],
        }
        .write(&mut effects.head);
        true
    }
}

/// Items that are looked at in one go: frames do not wait for all of them.
pub const LOOKS_MAX: usize = 256;

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
        let mut numbers = Numbers::new(Label::from_u64(1), 2, 3, 0);
        assert!(numbers.begins() && !numbers.begins());
        numbers.take();
        assert_eq!([(); 2].map(|()| numbers.look()), [(false, true), (true, false)]);
        assert!(numbers.begins());
        assert_eq!(numbers.look(), (false, false));
    }
}
