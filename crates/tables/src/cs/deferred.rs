//! An order that is made when somebody asks for it.
//!
//! What would enter it is only noted, which costs nearly nothing where nobody asks. Who asks enters
//! so many of the noted ones first; while some are left, the order is not complete and does not
//! answer. So entering a packet is paid once, by lookups, and each pays for a bounded number.

use super::order::{NONE, Order};
use crate::room;

/// Noted, and to be entered.
const NOTED: u8 = 1;
/// Stands in the order.
const ENTERED: u8 = 2;

/// An order of slots with those that are still to enter it. Holds at most one note a slot.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) order: Order,
    noted: Vec<u32>,
    /// What is so of each slot.
    marks: Vec<u8>,
    /// The slot entered last: a hint for the next.
    pub(super) last: u32,
}

impl Deferred {
    pub(super) fn new(seed: u64) -> Self {
        Self { order: Order::new(seed), noted: Vec::new(), marks: Vec::new(), last: NONE }
    }

    /// Makes room for notes of `slots` slots.
    #[cold]
    pub(super) fn reserve(&mut self, slots: usize, capacity: usize) {
        if self.marks.capacity() < slots {
            self.marks.reserve_exact(capacity.max(slots) - self.marks.len());
            self.noted.reserve_exact(capacity.max(slots) - self.noted.len());
        }
        while self.marks.len() < slots {
            room::push(&mut self.marks, 0);
        }
    }

    /// Notes that `slot` should be entered.
    #[inline(always)]
    pub(super) fn note(&mut self, slot: u32) {
        let mark = &mut self.marks[slot as usize];
        if *mark == 0 {
            *mark = NOTED;
            self.noted.push(slot);
        }
    }

    /// The next slot to enter; it may have become another packet, or none, since it was noted.
    pub(super) fn next_noted(&mut self) -> Option<u32> {
        let slot = self.noted.pop()?;
        self.marks[slot as usize] &= !NOTED;
        Some(slot)
    }

    /// Whether everything that was noted has been entered.
    pub(super) fn is_complete(&self) -> bool {
        self.noted.is_empty()
    }

    #[inline(always)]
    pub(super) fn has(&self, slot: u32) -> bool {
        self.marks.get(slot as usize).is_some_and(|mark| mark & ENTERED != 0)
    }

    /// Enters `slot` behind `left`.
    pub(super) fn enter(&mut self, left: u32, slot: u32) {
        self.order.insert_behind(left, slot);
        self.marks[slot as usize] |= ENTERED;
        self.last = slot;
    }

    /// Takes `slot`, which stands in the order, out.
    #[cold]
    pub(super) fn leave(&mut self, slot: u32) {
        self.order.remove(slot);
        self.marks[slot as usize] &= !ENTERED;
    }

    /// Makes `to` stand where `slot`, which stands in the order, stands.
    #[cold]
    pub(super) fn replace(&mut self, slot: u32, to: u32) {
        self.order.replace(slot, to);
        self.marks[slot as usize] &= !ENTERED;
        self.marks[to as usize] |= ENTERED;
    }
}
