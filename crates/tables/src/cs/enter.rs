//! What depends on the orders being whole: entering what waits, erasing, and listing.

use super::orders::Of;
use super::{ContentStore, ENTER_MAX, GO_ON_AFTER, NONE, Query, Slot, Turn, name_of};
use crate::Tick;

impl Turn {
    /// What the turn of this time may still enter.
    fn left_at(&mut self, now: Tick) -> &mut u32 {
        if self.at != now {
            (self.at, self.left) = (now, ENTER_MAX);
        }
        &mut self.left
    }
}

impl ContentStore {
    /// Enters what waits under the prefix of `query`, as far as this turn may.
    pub(super) fn enter_under(&mut self, now: Tick, query: &Query<'_>) {
        let under = self.marker.under(query.name);
        let Self { slots, orders, .. } = self;
        let of = if query.must_be_fresh { Of::Fresh } else { Of::All };
        if orders.is_complete(of, under) {
            return;
        }
        let turn = self.turn.left_at(now);
        let (entered, compared) = orders.enter(of, under, *turn, |slot| name_of(slots, slot));
        *turn -= entered;
        self.steps += entered + compared;
        if !orders.is_complete(of, under) {
            orders.get_mut(of).owe(under);
            self.due = self.due.min(now + GO_ON_AFTER);
        }
    }

    /// When [`ContentStore::handle_timeout`] should be called next.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        self.due
    }

    /// Goes on to enter what lookups found waiting: so much in a turn, and a pause between turns, so
    /// that packets pass.
    #[inline]
    pub fn handle_timeout(&mut self, now: Tick) {
        if self.due <= now {
            self.go_on(now);
        }
    }

    #[cold]
    fn go_on(&mut self, now: Tick) {
        let Self { slots, orders, .. } = self;
        let turn = self.turn.left_at(now);
        for of in [Of::All, Of::Fresh] {
            *turn -= orders.pay(of, *turn, |slot| name_of(slots, slot));
        }
        self.due = if orders.is_owing() { now + GO_ON_AFTER } else { Tick::NEVER };
    }

    #[cold]
    pub(super) fn regroup(&mut self) {
        let Self { slots, marker, orders, .. } = self;
        orders.regroup(|slot| marker.mark(name_of(slots, slot)));
    }

    /// Erases at most `limit` packets whose name starts with `prefix` (a name's value); says how
    /// many. Of more than [`ENTER_MAX`] that wait, those go first that wait longest, and at most so
    /// many others are entered; [`ContentStore::may_have_under`] says whether to go on.
    pub fn erase(&mut self, prefix: &[u8], limit: usize) -> usize {
        let under = self.marker.under(prefix);
        let (mut erased, mut entered) = (0, 0);
        let is_many = self.orders.waiting(Of::All, under) > ENTER_MAX as usize;
        while erased < limit && entered < ENTER_MAX {
            let Some(slot) = self.orders.longest_waiting(Of::All, under) else { break };
            if is_many && self.name(slot).starts_with(prefix) {
                self.remove(slot);
                erased += 1;
                continue;
            }
            let Self { slots, orders, .. } = self;
            entered += orders.enter(Of::All, under, 1, |slot| name_of(slots, slot)).0;
        }
        let order = &self.orders.canonical.order;
        let before = order.last_where(|other| self.name(other) < prefix);
        while erased < limit {
            let at = self.orders.canonical.order.right(before);
            if at == NONE || !self.name(at).starts_with(prefix) {
                break;
            }
            self.remove(at);
            erased += 1;
        }
        erased
    }

    /// Whether a packet's name starts with `prefix` (a name's value), or may: packets wait there
    /// that were not looked at.
    #[must_use]
    pub fn may_have_under(&self, prefix: &[u8]) -> bool {
        let order = &self.orders.canonical.order;
        let at = order.right(order.last_where(|other| self.name(other) < prefix));
        (at != NONE && self.name(at).starts_with(prefix))
            || !self.orders.is_complete(Of::All, self.marker.under(prefix))
    }

    /// The packets in canonical order of their full names, each with what is left of its
    /// freshness at the time of asking and whether it came unsolicited. Sorts them.
    #[must_use]
    pub fn list(&self) -> Vec<(&[u8], Tick, bool)> {
        let mut heads: Vec<&Slot> =
            self.slots.iter().filter(|s| !s.stored.is_nothing() && s.same_prev == NONE).collect();
        heads.sort_unstable_by_key(|s| {
            &s.stored.room()[s.name_at as usize..s.name_at as usize + s.name_len as usize]
        });
        let mut all = Vec::with_capacity(self.len());
        for head in heads {
            let mut at = Some(head);
            while let Some(s) = at {
                all.push((s.stored.bytes(), s.fresh_until, s.unsolicited));
                at = self.slots.get(s.same_next as usize);
            }
        }
        all
    }
}
