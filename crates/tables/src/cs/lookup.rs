//! Which packet answers an Interest.

use super::{Body, ContentStore, NONE, Policy, Query, Queue, SCAN_MAX};
use crate::Tick;

/// What [`ContentStore::find_noting`] finds.
#[derive(Debug)]
pub struct Noting<'a> {
    /// The packet.
    pub body: Body<'a>,
    /// Until when it is fresh.
    pub fresh_until: Tick,
    /// Whether it was not found so before.
    pub is_first: bool,
}

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

    /// As [`ContentStore::find`], for who keeps packets elsewhere, too: says which are news.
    pub fn find_noting(&mut self, now: Tick, query: &Query<'_>) -> Option<Noting<'_>> {
        if !self.config.serve {
            return None;
        }
        let slot = self.lookup(now, query)?;
        if self.config.policy == Policy::Lru {
            self.queues.move_to(slot, Queue::Fresh);
        }
        let s = &mut self.slots[slot as usize];
        let is_first = !std::mem::replace(&mut s.noted, true);
        Some(Noting { body: s.stored.body(), fresh_until: s.fresh_until, is_first })
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
        self.enter_under(now, query);
        if query.must_be_fresh {
            return self.first_fresh(now, query);
        }
        self.first_under(now, query, head)
    }

    /// The canonically smallest match behind `head`, the first packet of exactly this name.
    #[inline(never)]
    fn first_under(&mut self, now: Tick, query: &Query<'_>, head: Option<u32>) -> Option<u32> {
        let order = &self.orders.canonical.order;
        let mut at = match head {
            Some(head) if self.orders.canonical.has(head) => order.right(head),
            _ => order.right(order.last_where(|other| self.name(other) <= query.name)),
        };
        for _ in 0..SCAN_MAX {
            if at == NONE || !self.name(at).starts_with(query.name) {
                return None;
            }
            if let Some(slot) = self.usable(now, at, query) {
                return Some(slot);
            }
            self.steps += 1;
            at = self.orders.canonical.order.right(at);
        }
        None
    }

    /// The canonically smallest fresh match. What is found to be stale leaves the order, so it is
    /// looked at once, whoever asks.
    #[inline(never)]
    fn first_fresh(&mut self, now: Tick, query: &Query<'_>) -> Option<u32> {
        let order = &self.orders.fresh.order;
        let mut at = order.right(order.last_where(|other| self.name(other) < query.name));
        for _ in 0..SCAN_MAX {
            if at == NONE || !self.name(at).starts_with(query.name) {
                return None;
            }
            if let Some(slot) = self.usable(now, at, query) {
                return Some(slot);
            }
            self.steps += 1;
            let right = self.orders.fresh.order.right(at);
            self.orders.fresh.leave(at);
            at = right;
        }
        None
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
}
