//! An order that is built on demand, where lookups need it.
//!
//! A lookup by prefix first enters packets that wait in the group of its prefix, up to a limit; those
//! beyond the limit are not in the order yet. So a packet is entered at most once, and a lookup pays
//! for a bounded number of packets whose names begin like its prefix.

use super::order::{NONE, Order};
use super::waiting::{ABSENT, FOR_ONE, Under, Waiting};

/// Neighbours of the slot entered last that are tried before the whole order is searched.
const FINGER_STEPS: usize = 8;

/// An order of slots, and those that wait for a lookup to enter them.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) order: Order,
    /// Those that wait for this order alone.
    pub(super) waiting: Waiting,
    /// Who was entered last, by group: hints for the next.
    last: Vec<u32>,
    /// What lookups asked for and did not get wholly.
    pub(super) owed: Option<Under>,
}

impl Deferred {
    pub(super) fn new(seed: u64) -> Self {
        let waiting = Waiting::new(FOR_ONE);
        Self { order: Order::new(seed), waiting, last: Vec::new(), owed: None }
    }

    /// What stands in place of the tower of `slot`.
    #[inline(always)]
    pub(super) fn state(&self, slot: u32) -> u32 {
        self.order.bases.get(slot as usize).map_or(ABSENT, |base| base.tower)
    }

    /// Whether `slot` stands in the order.
    #[inline(always)]
    pub(super) fn has(&self, slot: u32) -> bool {
        let state = self.state(slot);
        state < FOR_ONE || state == NONE
    }

    /// Has `slot` wait in this group, unless it does or stands in the order.
    #[inline(always)]
    pub(super) fn note(&mut self, slot: u32, number: u32) {
        if self.state(slot) == ABSENT {
            self.waiting.add(&mut self.order.bases, slot, number);
        }
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

    /// Takes `slot` out of the order, or from those that wait for it alone.
    pub(super) fn leave(&mut self, slot: u32) {
        match self.state(slot) {
            ABSENT => {}
            FOR_ONE..ABSENT => {
                self.waiting.take(&mut self.order.bases, slot);
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
        match self.state(slot) {
            ABSENT => {}
            FOR_ONE..ABSENT => {
                let number = self.waiting.take(&mut self.order.bases, slot);
                self.waiting.add(&mut self.order.bases, to, number);
            }
            _ => {
                self.order.replace(slot, to);
                self.order.bases[slot as usize].tower = ABSENT;
            }
        }
    }

    /// Makes the groups of a larger store, in which nobody waits.
    pub(super) fn forget_groups(&mut self) {
        self.waiting.regroup();
        self.last.clear();
    }

    /// Keeps in mind that a lookup did not get all of what waits under a prefix.
    #[cold]
    pub(super) fn owe(&mut self, under: Under) {
        let group = |mark| self.waiting.group(mark);
        self.owed = Some(match (self.owed, under) {
            (None, under) => under,
            (Some(Under::One(a)), Under::One(b)) if group(a) == group(b) => under,
            _ => Under::All,
        });
    }

    /// Enters `slot`, which waits nowhere any more and waited in this group; says how many names were
    /// compared.
    pub(super) fn enter<'a>(
        &mut self,
        slot: u32,
        number: u32,
        name_of: impl Fn(u32) -> &'a [u8],
    ) -> u32 {
        let number = number as usize;
        if number >= self.last.len() {
            self.last.resize(number + 1, NONE);
        }
        let last = self.last[number];
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
        self.last[number] = slot;
        compared
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
