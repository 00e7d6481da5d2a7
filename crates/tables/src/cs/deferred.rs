//! An order that is built on demand, where lookups need it.
//!
//! A new packet waits in a group of names with the same first octets, which takes a few instructions
//! and compares no names. A lookup by prefix first enters packets that wait in the group of its
//! prefix, up to a limit; those beyond the limit are not in the order yet. So a packet is entered at
//! most once, and a lookup pays for a bounded number of packets whose names begin like its prefix.

use super::order::{NONE, Order};
use crate::{FoldKey, HashKey};

/// A name's group is told by so many of its first octets.
const GROUP_OCTETS: usize = 24;
/// Groups of a small store and of a larger one.
const GROUPS_FEW: usize = 16;
const GROUPS: usize = 1024;
/// A store is larger from so many slots on; its groups are made anew then, once.
pub(super) const REGROUP_AT: usize = 4096;

/// Neighbours of the slot entered last that are tried before the whole order is searched.
const FINGER_STEPS: usize = 8;

/// In place of a tower: the slot neither stands in the order nor waits.
const ABSENT: u32 = NONE - 1;
/// The same from here on: it waits in this group, linked in a ring through the fields of its place.
const WAITS: u32 = u32::MAX << 16;

/// Says which group a name belongs to, under a key of this process.
#[derive(Debug)]
pub(super) struct Marker(FoldKey);

impl Marker {
    pub(super) fn new(key: &HashKey) -> Self {
        Self(FoldKey::new(key))
    }

    /// The mark of a name; its upper bits are the group.
    #[inline(always)]
    pub(super) fn mark(&self, name: &[u8]) -> u64 {
        let begin = match name.first_chunk::<GROUP_OCTETS>() {
            Some(begin) => *begin,
            None => padded(name),
        };
        let (words, _) = begin.as_chunks::<8>();
        self.0.words([0, 1, 2].map(|n: usize| u64::from_le_bytes(words[n])))
    }

    /// Where the names under `prefix` wait.
    pub(super) fn under(&self, prefix: &[u8]) -> Under {
        if prefix.len() < GROUP_OCTETS { Under::All } else { Under::One(self.mark(prefix)) }
    }
}

#[cold]
fn padded(name: &[u8]) -> [u8; GROUP_OCTETS] {
    let mut begin = [0; GROUP_OCTETS];
    begin[..name.len()].copy_from_slice(name);
    begin
}

/// The groups in which names under a prefix may wait.
#[derive(Debug, Clone, Copy)]
pub(super) enum Under {
    All,
    /// That of this mark.
    One(u64),
}

#[derive(Debug, Clone, Copy)]
struct Group {
    /// Who waits longest.
    first: u32,
    waiting: u32,
    /// Who was entered last: a hint for the next.
    last: u32,
}

const EMPTY: Group = Group { first: NONE, waiting: 0, last: NONE };

/// An order of slots, and those that wait for a lookup to enter them.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) order: Order,
    groups: Vec<Group>,
    waiting: usize,
    /// The group that a lookup in all of them goes on with.
    cursor: usize,
    /// What lookups asked for and did not get wholly.
    owed: Option<Under>,
}

impl Deferred {
    pub(super) fn new(seed: u64) -> Self {
        let groups = vec![EMPTY; GROUPS_FEW];
        Self { order: Order::new(seed), groups, waiting: 0, cursor: 0, owed: None }
    }

    // A number below the length.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    fn group(&self, mark: u64) -> usize {
        ((u128::from(mark) * self.groups.len() as u128) >> 64) as usize
    }

    #[inline(always)]
    fn state(&self, slot: u32) -> u32 {
        self.order.bases.get(slot as usize).map_or(ABSENT, |base| base.tower)
    }

    /// Whether `slot` stands in the order.
    #[inline(always)]
    pub(super) fn has(&self, slot: u32) -> bool {
        let state = self.state(slot);
        state < WAITS || state == NONE
    }

    /// Has `slot`, whose name has this mark, wait, unless it does or stands in the order.
    #[inline(always)]
    pub(super) fn note(&mut self, slot: u32, mark: u64) {
        if slot as usize >= self.order.bases.len() {
            self.order.cover(slot, ABSENT);
        }
        if self.order.bases[slot as usize].tower == ABSENT {
            self.wait(slot, self.group(mark));
        }
    }

    // A group's number, below 1024.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    fn wait(&mut self, slot: u32, number: usize) {
        let (group, bases) = (&mut self.groups[number], &mut self.order.bases);
        let (mut left, mut right) = (slot, slot);
        if group.waiting == 0 {
            group.first = slot;
        } else {
            right = group.first;
            left = std::mem::replace(&mut bases[right as usize].left, slot);
            bases[left as usize].right = slot;
        }
        let place = &mut bases[slot as usize];
        (place.left, place.right, place.tower) = (left, right, WAITS + number as u32);
        group.waiting += 1;
        self.waiting += 1;
    }

    /// Takes `slot`, which waits in this group, out of it.
    #[inline(always)]
    fn wait_no_more(&mut self, slot: u32, number: usize) {
        let (group, bases) = (&mut self.groups[number], &mut self.order.bases);
        let place = &mut bases[slot as usize];
        let (left, right) = (place.left, place.right);
        place.tower = ABSENT;
        bases[left as usize].right = right;
        bases[right as usize].left = left;
        if group.first == slot {
            group.first = right;
        }
        group.waiting -= 1;
        self.waiting -= 1;
    }

    /// Has the processor fetch the place of `slot`.
    #[inline(always)]
    pub(super) fn prefetch(&self, slot: u32) {
        if let Some(base) = self.order.bases.get(slot as usize) {
            onym_mem::prefetch(base);
        }
    }

    /// Has the processor fetch the neighbours of `slot`, in the order or among those that wait.
    #[inline(always)]
    pub(super) fn prefetch_neighbours(&self, slot: u32) {
        if let Some(base) = self.order.bases.get(slot as usize) {
            self.prefetch(base.left);
            self.prefetch(base.right);
        }
    }

    /// Takes `slot` out of the order or of its group.
    #[inline(always)]
    pub(super) fn leave(&mut self, slot: u32) {
        match self.state(slot) {
            ABSENT => {}
            state if (WAITS..ABSENT).contains(&state) => {
                self.wait_no_more(slot, (state - WAITS) as usize);
            }
            _ => {
                self.order.remove(slot);
                self.order.bases[slot as usize].tower = ABSENT;
            }
        }
    }

    /// Puts `to`, which has the same name and is in neither, where `slot` is.
    #[cold]
    pub(super) fn replace(&mut self, slot: u32, to: u32) {
        self.order.cover(to, ABSENT);
        match self.state(slot) {
            ABSENT => {}
            state if (WAITS..ABSENT).contains(&state) => {
                let number = (state - WAITS) as usize;
                self.wait_no_more(slot, number);
                self.wait(to, number);
            }
            _ => {
                self.order.replace(slot, to);
                self.order.bases[slot as usize].tower = ABSENT;
            }
        }
    }

    /// Enters at most `most` of those that wait under a prefix; says how many, and how many names
    /// were compared for it.
    pub(super) fn enter<'a>(
        &mut self,
        under: Under,
        most: u32,
        name_of: impl Fn(u32) -> &'a [u8],
    ) -> (u32, u32) {
        let (mut entered, mut compared) = (0, 0);
        while entered < most
            && let Some(slot) = self.longest_waiting(under)
        {
            compared += self.enter_one(slot, &name_of);
            entered += 1;
        }
        (entered, compared)
    }

    /// The next to enter under a prefix.
    pub(super) fn longest_waiting(&mut self, under: Under) -> Option<u32> {
        let number = match under {
            Under::One(mark) => self.group(mark),
            Under::All if self.waiting == 0 => return None,
            Under::All => {
                while self.groups[self.cursor].waiting == 0 {
                    self.cursor = (self.cursor + 1) % self.groups.len();
                }
                self.cursor
            }
        };
        let group = self.groups[number];
        (group.waiting > 0).then_some(group.first)
    }

    /// Keeps in mind that a lookup did not get all of what waits under a prefix.
    #[cold]
    pub(super) fn owe(&mut self, under: Under) {
        self.owed = Some(match (self.owed, under) {
            (None, under) => under,
            (Some(Under::One(a)), Under::One(b)) if self.group(a) == self.group(b) => under,
            _ => Under::All,
        });
    }

    /// Enters at most `most` of what lookups did not get; says how many.
    pub(super) fn pay<'a>(&mut self, most: u32, name_of: impl Fn(u32) -> &'a [u8]) -> u32 {
        let Some(under) = self.owed else { return 0 };
        let (entered, _) = self.enter(under, most, name_of);
        if self.is_complete(under) {
            self.owed = None;
        }
        entered
    }

    pub(super) fn is_owing(&self) -> bool {
        self.owed.is_some()
    }

    /// How many wait where names under a prefix may.
    pub(super) fn waiting(&self, under: Under) -> usize {
        match under {
            Under::All => self.waiting,
            Under::One(mark) => self.groups[self.group(mark)].waiting as usize,
        }
    }

    /// Whether nobody waits there.
    pub(super) fn is_complete(&self, under: Under) -> bool {
        self.waiting(under) == 0
    }

    /// Enters `slot`, which waits; says how many names were compared.
    fn enter_one<'a>(&mut self, slot: u32, name_of: &impl Fn(u32) -> &'a [u8]) -> u32 {
        let number = (self.state(slot) - WAITS) as usize;
        let last = self.groups[number].last;
        self.wait_no_more(slot, number);
        let name = name_of(slot);
        let mut compared = 0;
        let hint = if self.has(last) { last } else { NONE };
        let mut less = |other: u32| {
            compared += 1;
            name_of(other) < name
        };
        let left =
            near(&self.order, hint, &mut less).unwrap_or_else(|| self.order.last_where(less));
        self.order.insert_behind(left, slot);
        self.groups[number].last = slot;
        compared
    }

    /// Makes the groups of a larger store; `mark_of` says the mark of a slot's name.
    #[cold]
    pub(super) fn regroup(&mut self, mark_of: impl Fn(u32) -> u64) {
        self.groups = vec![EMPTY; GROUPS];
        (self.waiting, self.cursor) = (0, 0);
        for slot in 0..self.order.bases.len() {
            let slot = u32::try_from(slot).expect("invariant: fewer than 2^32 packets");
            if (WAITS..ABSENT).contains(&self.state(slot)) {
                self.order.bases[slot as usize].tower = ABSENT;
                self.note(slot, mark_of(slot));
            }
        }
    }
}

/// The last slot for which `less` holds, when it is near `from`, which stands in the order or is
/// `NONE`.
fn near(order: &Order, from: u32, less: &mut impl FnMut(u32) -> bool) -> Option<u32> {
    if from == NONE {
        return None;
    }
    let mut at = from;
    if less(at) {
        for _ in 0..FINGER_STEPS {
            let right = order.right(at);
            if right == NONE || !less(right) {
                return Some(at);
            }
            at = right;
        }
    } else {
        for _ in 0..FINGER_STEPS {
            at = order.left(at);
            if at == NONE || less(at) {
                return Some(at);
            }
        }
    }
    None
}
