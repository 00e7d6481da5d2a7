//! The order of eviction: doubly linked queues through the slots.

use super::order::NONE;
use crate::room;

/// The queue that a slot is in. `lru` uses the last one only; `priority_fifo` evicts from the
/// first that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Queue {
    Unsolicited = 0,
    Stale = 1,
    Fresh = 2,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
    queue: Queue,
}

#[derive(Debug)]
pub(super) struct Queues {
    links: Vec<Link>,
    heads: [u32; 3],
    tails: [u32; 3],
}

impl Queues {
    pub(super) const fn new() -> Self {
        Self { links: Vec::new(), heads: [NONE; 3], tails: [NONE; 3] }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, slot: u32, queue: Queue) {
        let tail = std::mem::replace(&mut self.tails[queue as usize], slot);
        let link = Link { prev: tail, next: NONE, queue };
        match self.links.get_mut(slot as usize) {
            Some(place) => *place = link,
            // Slots are numbered without gaps.
            None => room::push(&mut self.links, link),
        }
        match tail {
            NONE => self.heads[queue as usize] = slot,
            t => self.links[t as usize].next = slot,
        }
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, slot: u32) {
        let Link { prev, next, queue } = self.links[slot as usize];
        match prev {
            NONE => self.heads[queue as usize] = next,
            p => self.links[p as usize].next = next,
        }
        match next {
            NONE => self.tails[queue as usize] = prev,
            n => self.links[n as usize].prev = prev,
        }
    }

    #[inline(always)]
    pub(super) fn move_to(&mut self, slot: u32, queue: Queue) {
        self.remove(slot);
        self.push(slot, queue);
    }

    /// Has the processor fetch the place of `slot`.
    #[inline(always)]
    pub(super) fn prefetch(&self, slot: u32) {
        if let Some(link) = self.links.get(slot as usize) {
            onym_mem::prefetch(link);
        }
    }

    /// The slots in the order in which they are evicted when nothing is used or moved.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.heads.iter().flat_map(|head| {
            let on = |slot: &u32| Some(self.links[*slot as usize].next).filter(|s| *s != NONE);
            std::iter::successors(Some(*head).filter(|slot| *slot != NONE), on)
        })
    }

    /// The slot to evict.
    pub(super) fn first(&self) -> Option<u32> {
        self.heads.into_iter().find(|&slot| slot != NONE)
    }
}
