//! Packets that wait for a lookup to enter them into an order.
//!
//! A new packet waits in a group of names with the same first octets, which takes a few instructions
//! and compares no names. A group is a ring through the places of an order that its packets are not in.

use super::order::{Base, NONE};
use crate::{FoldKey, HashKey};

/// A name's group is told by so many of its first octets.
const GROUP_OCTETS: usize = 24;
/// Groups of a small store and of a larger one.
const GROUPS_FEW: usize = 16;
const GROUPS: usize = 1024;
/// A store is larger from so many slots on; its groups are made anew then, once.
pub(super) const REGROUP_AT: usize = 4096;

/// In place of a tower: the slot neither stands in the order nor waits.
pub(super) const ABSENT: u32 = NONE - 1;
/// The same from here on: it waits for this order, in the group of this number.
pub(super) const FOR_ONE: u32 = u32::MAX << 16;
/// The same from here on: it waits for both orders.
pub(super) const FOR_BOTH: u32 = FOR_ONE + (1 << 15);

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
}

const EMPTY: Group = Group { first: NONE, waiting: 0 };

/// Those that wait for the same.
#[derive(Debug)]
pub(super) struct Waiting {
    groups: Vec<Group>,
    waiting: usize,
    /// The group that a lookup in all of them goes on with.
    cursor: usize,
    /// [`FOR_ONE`] or [`FOR_BOTH`].
    what: u32,
}

impl Waiting {
    pub(super) fn new(what: u32) -> Self {
        Self { groups: vec![EMPTY; GROUPS_FEW], waiting: 0, cursor: 0, what }
    }

    /// The number of the group of names with this mark.
    // Below 1024.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    pub(super) fn group(&self, mark: u64) -> u32 {
        ((u128::from(mark) * self.groups.len() as u128) >> 64) as u32
    }

    /// Has `slot` wait in this group.
    #[inline(always)]
    pub(super) fn add(&mut self, bases: &mut [Base], slot: u32, number: u32) {
        let group = &mut self.groups[number as usize];
        let (mut left, mut right) = (slot, slot);
        if group.waiting == 0 {
            group.first = slot;
        } else {
            right = group.first;
            left = std::mem::replace(&mut bases[right as usize].left, slot);
            bases[left as usize].right = slot;
        }
        bases[slot as usize] = Base { left, right, tower: self.what + number };
        group.waiting += 1;
        self.waiting += 1;
    }

    /// Takes `slot`, which waits here, out; says in which group it waited.
    #[inline(always)]
    pub(super) fn take(&mut self, bases: &mut [Base], slot: u32) -> u32 {
        let place = &mut bases[slot as usize];
        let Base { left, right, tower } = *place;
        let number = tower - self.what;
        let group = &mut self.groups[number as usize];
        place.tower = ABSENT;
        bases[left as usize].right = right;
        bases[right as usize].left = left;
        if group.first == slot {
            group.first = right;
        }
        group.waiting -= 1;
        self.waiting -= 1;
        number
    }

    /// Who waits longest where names under a prefix may.
    pub(super) fn longest(&mut self, under: Under) -> Option<u32> {
        let number = match under {
            Under::One(mark) => self.group(mark) as usize,
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

    /// How many wait where names under a prefix may.
    pub(super) fn count(&self, under: Under) -> usize {
        match under {
            Under::All => self.waiting,
            Under::One(mark) => self.groups[self.group(mark) as usize].waiting as usize,
        }
    }

    /// Makes the groups of a larger store, in which nobody waits.
    pub(super) fn regroup(&mut self) {
        *self = Self { groups: vec![EMPTY; GROUPS], ..Self::new(self.what) };
    }
}
