//! Packets of one name, and where they stand in the order of names.

use super::order::NONE;
use super::{ContentStore, Slot, VARIANTS_MAX};
use onym_frame::Buf;

impl ContentStore {
    pub(super) fn same_packet(&self, head: u32, data: &Buf) -> Option<u32> {
        let mut at = head;
        while at != NONE {
            let s = &self.slots[at as usize];
            if s.stored.bytes() == &**data {
                return Some(at);
            }
            at = s.same_next;
        }
        None
    }

    /// Puts `slot` into the chain of its name, in the order of digests.
    pub(super) fn join_chain(&mut self, head: u32, slot: u32) {
        let mine = self.digest(slot);
        let (mut before, mut at) = (NONE, head);
        while at != NONE && self.digest(at) < mine {
            (before, at) = (at, self.slots[at as usize].same_next);
        }
        (self.slots[slot as usize].same_prev, self.slots[slot as usize].same_next) = (before, at);
        if at != NONE {
            self.slots[at as usize].same_prev = slot;
        }
        if before == NONE {
            self.index.replace(self.slots[slot as usize].hash, head, slot);
            self.orders.replace(head, slot);
        } else {
            self.slots[before as usize].same_next = slot;
        }
    }

    /// Takes `slot` out of the chain of its name.
    #[cold]
    pub(super) fn leave_chain(&mut self, slot: u32) {
        let Slot { hash, same_prev: prev, same_next: next, .. } = self.slots[slot as usize];
        if next != NONE {
            self.slots[next as usize].same_prev = prev;
        }
        if prev == NONE {
            self.index.replace(hash, slot, next);
            self.orders.replace(slot, next);
        } else {
            self.slots[prev as usize].same_next = next;
        }
    }

    /// Takes the last packet of a chain that is at its bound out.
    pub(super) fn trim_chain(&mut self, head: u32) {
        let (mut last, mut count) = (head, 1);
        while self.slots[last as usize].same_next != NONE {
            last = self.slots[last as usize].same_next;
            count += 1;
        }
        if count >= VARIANTS_MAX {
            self.remove(last);
        }
    }

    /// The first packet in the chain of `slot`.
    pub(super) fn first_of_chain(&self, slot: u32) -> u32 {
        let mut head = slot;
        while self.slots[head as usize].same_prev != NONE {
            head = self.slots[head as usize].same_prev;
        }
        head
    }
}
