//! Packets of one name, and where they stand in the order of names.

use super::order::NONE;
use super::{ContentStore, VARIANTS_MAX};
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
            self.order.replace(head, slot);
            if self.fresh.has(head) {
                self.fresh.replace(head, slot);
            }
        } else {
            self.slots[before as usize].same_next = slot;
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

    /// The finger for names like `name`: of about its length, with the same start, and the same
    /// octets before the last component if that is short, as a segment number is.
    fn finger(name: &[u8]) -> usize {
        const LAST_LEN: usize = 10;
        let parent = &name[..name.len().saturating_sub(LAST_LEN)];
        let tail = parent.last_chunk::<8>().map_or(0, |t| u64::from_le_bytes(*t));
        let head = parent.first_chunk::<8>().map_or(0, |h| u64::from_le_bytes(*h));
        let mixed = (head.rotate_left(23) ^ tail ^ (parent.len() as u64) << 56)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The eight top bits.
        #[allow(clippy::cast_possible_truncation)]
        {
            (mixed >> 56) as usize
        }
    }

    #[inline(always)]
    pub(super) fn enter_order(&mut self, slot: u32, name: &[u8]) {
        let finger = Self::finger(name);
        let left = self
            .near(&self.order, self.fingers[finger], slot, name)
            .unwrap_or_else(|| self.order.last_where(|other| self.name(other) < name));
        self.order.insert_behind(left, slot);
        self.fingers[finger] = slot;
    }
}
