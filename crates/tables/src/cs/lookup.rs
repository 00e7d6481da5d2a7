//! Which packet answers an Interest.

use super::{
    Body, ContentStore, ENTER_MAX, FINGER_STEPS, NONE, Order, Policy, Query, Queue, SCAN_MAX,
};
use crate::Tick;

impl ContentStore {
    /// The packet that answers `query`. A hit counts as a use.
    #[inline(always)]
    pub fn find(&mut self, now: Tick, query: &Query<'_>) -> Option<Body<'_>> {
        if !self.config.serve {
            return None;
        }
        let slot = self.lookup(now, query)?;
        if self.config.policy == Policy::Lru {
            self.queues.move_to(slot, Queue::Fresh);
        }
        Some(self.slots[slot as usize].stored.body())
    }

    #[inline(always)]
    fn lookup(&mut self, now: Tick, query: &Query<'_>) -> Option<u32> {
        let head = self.head(query.hash, query.name);
        if let Some(slot) = head.and_then(|head| self.usable(now, head, query)) {
            return Some(slot);
        }
        if !query.can_be_prefix || query.digest.is_some() {
            return None;
        }
        if query.must_be_fresh {
            self.enter_fresh();
            if self.fresh.is_complete() {
                return self.first_fresh(now, query);
            }
        }
        self.first_under(now, query, head)
    }

    /// The canonically smallest match behind `head`, the first packet of exactly this name.
    #[inline(never)]
    fn first_under(&mut self, now: Tick, query: &Query<'_>, head: Option<u32>) -> Option<u32> {
        let mut at = match head {
            Some(head) => self.order.right(head),
            None => self.order.right(self.order.last_where(|other| self.name(other) < query.name)),
        };
        for _ in 0..SCAN_MAX {
            if at == NONE || !self.name(at).starts_with(query.name) {
                return None;
            }
            if let Some(slot) = self.usable(now, at, query) {
                return Some(slot);
            }
            self.steps += 1;
            at = self.order.right(at);
        }
        None
    }

    /// The canonically smallest fresh match. What is found to be stale leaves the order, so it is
    /// looked at once, whoever asks.
    #[inline(never)]
    fn first_fresh(&mut self, now: Tick, query: &Query<'_>) -> Option<u32> {
        let order = &self.fresh.order;
        let mut at = order.right(order.last_where(|other| self.name(other) < query.name));
        for _ in 0..SCAN_MAX {
            if at == NONE || !self.name(at).starts_with(query.name) {
                return None;
            }
            if let Some(slot) = self.usable(now, at, query) {
                return Some(slot);
            }
            self.steps += 1;
            let right = self.fresh.order.right(at);
            self.fresh.leave(at);
            at = right;
        }
        None
    }

    /// Enters some of the packets that were noted as fresh, each by the first of its chain.
    #[inline(never)]
    fn enter_fresh(&mut self) {
        for _ in 0..ENTER_MAX {
            let Some(slot) = self.fresh.next_noted() else { return };
            if !self.slots[slot as usize].live {
                continue;
            }
            self.steps += 1;
            let mut head = slot;
            while self.slots[head as usize].same_prev != NONE {
                head = self.slots[head as usize].same_prev;
            }
            if self.fresh.has(head) {
                continue;
            }
            let (order, last) = (&self.fresh.order, self.fresh.last);
            let name = self.name(head);
            let hint = if self.fresh.has(last) { last } else { NONE };
            let left = self
                .near(order, hint, head, name)
                .unwrap_or_else(|| order.last_where(|other| self.name(other) < name));
            self.fresh.enter(left, head);
        }
    }

    /// What lookups did beyond looking at one packet each since this was asked last.
    #[inline]
    pub fn take_steps(&mut self) -> u32 {
        std::mem::take(&mut self.steps)
    }

    /// The first packet in the chain of `head` that `query` may be answered with.
    #[inline(always)]
    fn usable(&mut self, now: Tick, head: u32, query: &Query<'_>) -> Option<u32> {
        let mut at = head;
        while at != NONE {
            let s = &self.slots[at as usize];
            let next = s.same_next;
            let fresh = !query.must_be_fresh || s.fresh_until > now;
            if fresh && query.digest.is_none_or(|wanted| self.digest(at) == *wanted) {
                return Some(at);
            }
            at = next;
        }
        None
    }

    /// What [`ContentStore::find`] would find, without using it.
    #[must_use]
    pub fn would_find(&mut self, now: Tick, query: &Query<'_>) -> bool {
        self.config.serve && self.lookup(now, query).is_some()
    }

    /// The left neighbour in `order` for `slot`, which is named `name`, when it is near `from` (which
    /// may be anything).
    #[inline(always)]
    pub(super) fn near(&self, order: &Order, from: u32, slot: u32, name: &[u8]) -> Option<u32> {
        let s = self.slots.get(from as usize)?;
        // Only the first of a chain stands in the order.
        if from == slot || !s.live || s.same_prev != NONE {
            return None;
        }
        let mut at = from;
        if self.name(at) < name {
            for _ in 0..FINGER_STEPS {
                let right = order.right(at);
                if right == NONE || self.name(right) > name {
                    return Some(at);
                }
                at = right;
            }
        } else {
            for _ in 0..FINGER_STEPS {
                at = order.left(at);
                if at == NONE || self.name(at) < name {
                    return Some(at);
                }
            }
        }
        None
    }
}
