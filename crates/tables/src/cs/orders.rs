//! The two orders, and which packets wait for which.
//!
//! A packet that may be fresh waits for both in one place, so that it is linked once when it comes and
//! once when it goes. The first lookup that enters it into one of them has it wait for the other alone.

use super::deferred::Deferred;
use super::waiting::{ABSENT, FOR_BOTH, FOR_ONE, Under, Waiting};
use crate::HashKey;

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// The first packets of chains.
    All,
    /// Those of which one may be fresh.
    Fresh,
}

#[derive(Debug)]
pub(super) struct Orders {
    pub(super) canonical: Deferred,
    pub(super) fresh: Deferred,
    /// Linked through the places of the canonical order.
    both: Waiting,
}

impl Orders {
    pub(super) fn new(key: &HashKey) -> Self {
        Self {
            canonical: Deferred::new(key.words([2, u64::MAX])),
            fresh: Deferred::new(key.words([3, u64::MAX])),
            both: Waiting::new(FOR_BOTH),
        }
    }

    /// Makes the places of the next slot in both orders: who asks for one of them first does not make
    /// a large store's at once.
    pub(super) fn add_place(&mut self) {
        self.canonical.order.add_place(ABSENT);
        self.fresh.order.add_place(ABSENT);
    }

    #[inline(always)]
    fn waits_for_both(&self, slot: u32) -> bool {
        (FOR_BOTH..ABSENT).contains(&self.canonical.state(slot))
    }

    /// Has `slot`, which is new and whose name has this mark, wait for this order, and for that of all.
    #[inline(always)]
    pub(super) fn note(&mut self, slot: u32, mark: u64, of: Of) {
        let Self { canonical, both, .. } = self;
        let number = both.group(mark);
        let list = match of {
            Of::All => &mut canonical.waiting,
            Of::Fresh => both,
        };
        list.add(&mut canonical.order.bases, slot, number);
    }

    /// Has `slot`, which was there, wait for the order of those that may be fresh, unless it does or
    /// stands in it.
    pub(super) fn note_fresh(&mut self, slot: u32, mark: u64) {
        if !self.waits_for_both(slot) {
            self.fresh.note(slot, self.both.group(mark));
        }
    }

    /// Takes `slot` out of the orders, or from those that wait.
    #[inline(always)]
    pub(super) fn leave(&mut self, slot: u32) {
        if self.waits_for_both(slot) {
            self.both.take(&mut self.canonical.order.bases, slot);
        } else {
            self.canonical.leave(slot);
            self.fresh.leave(slot);
        }
    }

    /// Puts `to`, which has the same name and is nowhere, where `slot` is.
    #[cold]
    pub(super) fn replace(&mut self, slot: u32, to: u32) {
        if self.waits_for_both(slot) {
            let Self { canonical, both, .. } = self;
            let number = both.take(&mut canonical.order.bases, slot);
            both.add(&mut canonical.order.bases, to, number);
        } else {
            self.canonical.replace(slot, to);
            self.fresh.replace(slot, to);
        }
    }

    pub(super) fn get_mut(&mut self, of: Of) -> &mut Deferred {
        match of {
            Of::All => &mut self.canonical,
            Of::Fresh => &mut self.fresh,
        }
    }

    /// How many wait for an order where names under a prefix may.
    pub(super) fn waiting(&self, of: Of, under: Under) -> usize {
        let alone = match of {
            Of::All => &self.canonical.waiting,
            Of::Fresh => &self.fresh.waiting,
        };
        alone.count(under) + self.both.count(under)
    }

    /// Whether nobody waits there.
    pub(super) fn is_complete(&self, of: Of, under: Under) -> bool {
        self.waiting(of, under) == 0
    }

    /// The next to enter under a prefix.
    pub(super) fn longest_waiting(&mut self, of: Of, under: Under) -> Option<u32> {
        self.both.longest(under).or_else(|| self.get_mut(of).waiting.longest(under))
    }

    /// Enters at most `most` of those that wait for an order under a prefix; says how many, and how
    /// many names were compared for it.
    pub(super) fn enter<'a>(
        &mut self,
        of: Of,
        under: Under,
        most: u32,
        name_of: impl Fn(u32) -> &'a [u8],
    ) -> (u32, u32) {
        let (mut entered, mut compared) = (0, 0);
        while entered < most
            && let Some(slot) = self.longest_waiting(of, under)
        {
            let number = self.wait_no_more(of, slot);
            compared += self.get_mut(of).enter(slot, number, &name_of);
            entered += 1;
        }
        (entered, compared)
    }

    /// Has `slot` wait for the other order alone; says in which group it waited.
    fn wait_no_more(&mut self, of: Of, slot: u32) -> u32 {
        if !self.waits_for_both(slot) {
            let Deferred { waiting, order, .. } = self.get_mut(of);
            return waiting.take(&mut order.bases, slot);
        }
        let number = self.both.take(&mut self.canonical.order.bases, slot);
        match of {
            Of::All => self.fresh.note(slot, number),
            Of::Fresh => self.canonical.note(slot, number),
        }
        number
    }

    /// Enters at most `most` of what lookups did not get; says how many.
    pub(super) fn pay<'a>(&mut self, of: Of, most: u32, name_of: impl Fn(u32) -> &'a [u8]) -> u32 {
        let Some(under) = self.get_mut(of).owed else { return 0 };
        let (entered, _) = self.enter(of, under, most, name_of);
        if self.is_complete(of, under) {
            self.get_mut(of).owed = None;
        }
        entered
    }

    pub(super) fn is_owing(&self) -> bool {
        self.canonical.owed.is_some() || self.fresh.owed.is_some()
    }

    /// Makes the groups of a larger store; `mark_of` says the mark of a slot's name.
    #[cold]
    pub(super) fn regroup(&mut self, mark_of: impl Fn(u32) -> u64) {
        let Self { canonical, fresh, both } = self;
        both.regroup();
        for deferred in [canonical, fresh] {
            deferred.forget_groups();
            for slot in 0..deferred.order.bases.len() {
                let slot = u32::try_from(slot).expect("invariant: fewer than 2^32 packets");
                let list = match deferred.state(slot) {
                    FOR_ONE..FOR_BOTH => &mut deferred.waiting,
                    FOR_BOTH..ABSENT => &mut *both,
                    _ => continue,
                };
                let number = list.group(mark_of(slot));
                list.add(&mut deferred.order.bases, slot, number);
            }
        }
    }
}
