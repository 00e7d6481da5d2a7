//! A hierarchical timer wheel: arming, moving and cancelling cost the same however many there are.
//!
//! Timers are numbered by their owner (the slots of a slab), so that nothing is allocated per
//! timer once the owner has stopped growing. A timer never fires early; it fires at the first
//! [`Wheel::pop`] at or after its moment, rounded up to about a millisecond.
//!
//! Most timers are cancelled and armed again for a later moment. Such a one stays where it is linked;
//! when the time of that place comes, it is linked where it belongs then, or nowhere. So a timer that
//! is armed and cancelled all the time is linked once in its time, and not each time.

use crate::Tick;
use crate::room::reserve;

/// A unit of the wheel is 2^20 ns, about 1.05 ms.
const UNIT_BITS: u32 = 20;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 7;
/// The farthest moment that the wheel tells apart: about 146 years. Later ones fire then.
const UNIT_MAX: u64 = (1 << (SLOT_BITS as u64 * LEVELS as u64)) - 1;
const NONE: u32 = u32::MAX;
/// `Node::place` of a timer that is not armed, or that is in the list of due timers.
const IDLE: u16 = u16::MAX;
const DUE: u16 = u16::MAX - 1;

#[derive(Debug, Clone, Copy)]
struct Node {
    prev: u32,
    next: u32,
    when: When,
}

/// The unit at which a timer fires or would have (47 bits), whether it is cancelled, and where it is
/// linked (16 bits), which is no later: level times 64 plus slot.
#[derive(Debug, Clone, Copy)]
struct When(u64);

/// The timer is linked, and not armed.
const CANCELLED: u64 = 1 << 16;

impl When {
    #[inline(always)]
    fn new(unit: u64, place: u16) -> Self {
        Self(unit << 17 | u64::from(place))
    }

    #[inline(always)]
    fn unit(self) -> u64 {
        self.0 >> 17
    }

    #[inline(always)]
    fn is_cancelled(self) -> bool {
        self.0 & CANCELLED != 0
    }

    /// Whether it fires.
    #[inline(always)]
    fn is_armed(self) -> bool {
        self.place() != IDLE && !self.is_cancelled()
    }

    #[inline(always)]
    fn place(self) -> u16 {
        (self.0 & 0xffff) as u16
    }
}

const IDLE_NODE: Node = Node { prev: NONE, next: NONE, when: When(IDLE as u64) };

/// The wheel. Bound: one timer for each number that its owner uses.
#[derive(Debug)]
pub struct Wheel {
    /// Units that have passed.
    now: u64,
    nodes: Vec<Node>,
    heads: [u32; SLOTS * LEVELS],
    /// Slots with a timer, as bits, per level.
    used: [u64; LEVELS],
    due: u32,
    armed: usize,
    /// No timer is linked before this unit: nearly every call of [`Wheel::pop`] ends here.
    soonest: u64,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            now: 0,
            nodes: Vec::new(),
            heads: [NONE; SLOTS * LEVELS],
            used: [0; LEVELS],
            due: NONE,
            armed: 0,
            soonest: u64::MAX,
        }
    }
}

impl Wheel {
    /// Timers that are armed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.armed
    }

    /// Whether no timer is armed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.armed == 0
    }

    /// Arms timer `id` for `at`, wherever it was before. [`Tick::NEVER`] cancels it.
    #[inline]
    pub fn arm(&mut self, id: u32, at: Tick) {
        let unit = at.0.div_ceil(1 << UNIT_BITS).min(UNIT_MAX);
        // Where it is linked is no later than when it was to fire, and so no later than this.
        if let Some(node) = self.nodes.get_mut(id as usize)
            && node.when.place() != IDLE
            && node.when.unit() <= unit
            && at != Tick::NEVER
        {
            self.armed += usize::from(node.when.is_cancelled());
            node.when = When::new(unit, node.when.place());
            return;
        }
        self.arm_anew(id, at, unit);
    }

    fn arm_anew(&mut self, id: u32, at: Tick, unit: u64) {
        if at == Tick::NEVER {
            return self.cancel(id);
        }
        if id as usize >= self.nodes.len() {
            self.grow(id as usize + 1);
        }
        let place = self.place_of(unit);
        let node = &mut self.nodes[id as usize];
        let linked = node.when.place();
        self.armed += usize::from(!node.when.is_armed());
        self.soonest = self.soonest.min(unit);
        // Places are in the order of time, and what is due is before all.
        if linked == DUE || linked <= place && place != DUE {
            node.when = When::new(unit, linked);
            return;
        }
        if linked != IDLE {
            let (prev, next) = (node.prev, node.next);
            self.unlink(prev, next, linked);
        }
        self.link(id, unit, place);
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        if len > self.nodes.capacity() {
            reserve(&mut self.nodes, len);
        }
        self.nodes.resize(len, IDLE_NODE);
    }

    /// Has the processor fetch timer `id`.
    #[inline(always)]
    pub fn prefetch(&self, id: u32) {
        if let Some(node) = self.nodes.get(id as usize) {
            onym_mem::prefetch(node);
        }
    }

    /// Whether timer `id` is armed.
    #[must_use]
    pub fn is_armed(&self, id: u32) -> bool {
        self.nodes.get(id as usize).is_some_and(|node| node.when.is_armed())
    }

    /// Cancels timer `id`, if it is armed.
    #[inline]
    pub fn cancel(&mut self, id: u32) {
        let Some(node) = self.nodes.get_mut(id as usize) else { return };
        if node.when.is_armed() {
            node.when.0 |= CANCELLED;
            self.armed -= 1;
        }
    }

    /// Where a timer for `unit` is linked.
    #[inline(always)]
    fn place_of(&self, unit: u64) -> u16 {
        if unit <= self.now {
            return DUE;
        }
        // The highest digit in which `unit` differs from now tells the level.
        let level = (63 - (unit ^ self.now).leading_zeros()) / SLOT_BITS;
        let slot = (unit >> (level * SLOT_BITS)) & (SLOTS as u64 - 1);
        // No truncation: the level is below 7, the slot below 64.
        #[allow(clippy::cast_possible_truncation)]
        {
            level as u16 * SLOTS as u16 + slot as u16
        }
    }

    #[inline(always)]
    fn head(&mut self, place: u16) -> &mut u32 {
        // Every place but DUE is below the number of heads.
        self.heads.get_mut(place as usize).unwrap_or(&mut self.due)
    }

    #[inline]
    fn link(&mut self, id: u32, unit: u64, place: u16) {
        if let Some(used) = self.used.get_mut(place as usize / SLOTS) {
            *used |= 1 << (place as usize % SLOTS);
        }
        let next = std::mem::replace(self.head(place), id);
        if next != NONE {
            self.nodes[next as usize].prev = id;
        }
        self.nodes[id as usize] = Node { prev: NONE, next, when: When::new(unit, place) };
    }

    #[inline]
    fn unlink(&mut self, prev: u32, next: u32, place: u16) {
        if next != NONE {
            self.nodes[next as usize].prev = prev;
        }
        if prev != NONE {
            self.nodes[prev as usize].next = next;
            return;
        }
        *self.head(place) = next;
        if next == NONE && place != DUE {
            self.used[place as usize / SLOTS] &= !(1 << (place as usize % SLOTS));
        }
    }

    /// The start of the next slot with a timer: level, slot, unit.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        // A level's timers all lie before the next ones', so the first level with any decides.
        let level = self.used.iter().position(|&used| used != 0)?;
        let slot = self.used[level].trailing_zeros() as usize;
        let shift = level as u32 * SLOT_BITS;
        let above = self.now >> (shift + SLOT_BITS) << (shift + SLOT_BITS);
        Some((level, slot, above + ((slot as u64) << shift)))
    }

    /// The moment at which [`Wheel::pop`] should be called: exact for timers within 64 ms, else
    /// perhaps earlier than the timer, as where one was that was cancelled; `None` when nothing is armed.
    #[must_use]
    pub fn next(&self) -> Option<Tick> {
        if self.armed == 0 {
            return None;
        }
        if self.due != NONE {
            return Some(Tick(self.now << UNIT_BITS));
        }
        self.next_slot().map(|(_, _, unit)| Tick(unit.max(self.soonest) << UNIT_BITS))
    }

    /// Takes one timer whose moment has come at `now`; `None` when there is none (any more).
    #[inline]
    pub fn pop(&mut self, now: Tick) -> Option<u32> {
        let unit = now.0 >> UNIT_BITS;
        if unit < self.soonest { None } else { self.pop_at(unit) }
    }

    fn pop_at(&mut self, unit: u64) -> Option<u32> {
        loop {
            while self.due == NONE {
                match self.next_slot() {
                    Some((level, slot, at)) if at <= unit => {
                        self.now = at;
                        self.cascade(level, slot);
                    }
                    next => {
                        self.now = self.now.max(unit);
                        self.soonest = next.map_or(u64::MAX, |(_, _, at)| at);
                        return None;
                    }
                }
            }
            let id = self.due;
            let Node { prev, next, when } = self.nodes[id as usize];
            self.unlink(prev, next, DUE);
            if when.unit() <= self.now && !when.is_cancelled() {
                self.nodes[id as usize].when = When(IDLE.into());
                self.armed -= 1;
                return Some(id);
            }
            self.link_again(id, when);
        }
    }

    /// Links a timer that was taken out of its place where it belongs now.
    fn link_again(&mut self, id: u32, when: When) {
        if when.is_cancelled() {
            self.nodes[id as usize].when = When(IDLE.into());
        } else {
            self.link(id, when.unit(), self.place_of(when.unit()));
        }
    }

    /// Spreads a slot whose time has come over the levels below, or into the list of due timers.
    fn cascade(&mut self, level: usize, slot: usize) {
        let mut id = std::mem::replace(&mut self.heads[level * SLOTS + slot], NONE);
        self.used[level] &= !(1 << slot);
        while id != NONE {
            let Node { next, when, .. } = self.nodes[id as usize];
            self.link_again(id, when);
            id = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn timers_fire_in_their_unit_and_never_early(
            ops in prop::collection::vec((0u32..20, 0u64..200_000, 0u64..3_000, any::<bool>()), 1..200)
        ) {
            let mut wheel = Wheel::default();
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            let mut now = Tick(5);
            for (id, after_ms, step_ms, cancel) in ops {
                if cancel {
                    wheel.cancel(id);
                    model.remove(&id);
                } else {
                    wheel.arm(id, now.plus_ms(after_ms));
                    model.insert(id, now.plus_ms(after_ms).0);
                }
                prop_assert_eq!(wheel.len(), model.len());
                if let Some(next) = wheel.next() {
                    let first = *model.values().min().unwrap();
                    prop_assert!(next.0 <= first.div_ceil(1 << 20) << 20);
                } else {
                    prop_assert!(model.is_empty());
                }
                now = now.plus_ms(step_ms);
                while let Some(id) = wheel.pop(now) {
                    let at = model.remove(&id).expect("armed");
                    prop_assert!(at <= now.0, "early");
                }
                let rest = now.0 >> 20;
                prop_assert!(model.values().all(|at| at.div_ceil(1 << 20) > rest), "late");
            }
        }
    }

    /// Timers move to other memory about once for each eighth that they grow by, also when they are
    /// many enough for huge pages.
    #[test]
    fn timers_move_only_when_they_outgrow_their_room() {
        let (mut wheel, mut moves, mut at) = (Wheel::default(), 0, std::ptr::null());
        for id in 0..400_000 {
            wheel.arm(id, Tick(u64::from(id)));
            if wheel.nodes.as_ptr() != at {
                (at, moves) = (wheel.nodes.as_ptr(), moves + 1);
            }
        }
        assert!(size_of_val(&wheel.nodes[..]) > 4 << 20, "too few for huge pages");
        assert!(moves < 100, "{moves} moves");
    }

    /// Law: a timer that is cancelled and armed for later again and again is linked once, and fires at
    /// its last moment; one that stays cancelled leaves its place when the time of that comes.
    #[test]
    fn a_timer_that_never_comes_to_fire_stays_where_it_is() {
        let mut wheel = Wheel::default();
        let place = |wheel: &Wheel, id: usize| wheel.nodes[id].when.place();
        for id in 0..2 {
            wheel.arm(id, Tick::from_ms(4000));
        }
        let linked = place(&wheel, 0);
        for ms in 1..3000 {
            assert_eq!(wheel.pop(Tick::from_ms(ms)), None);
            (0..2).for_each(|id| wheel.cancel(id));
            assert_eq!((wheel.len(), wheel.next()), (0, None));
            (0..2).for_each(|id| wheel.arm(id, Tick::from_ms(4000 + ms)));
            assert_eq!(place(&wheel, 0), linked);
        }
        wheel.cancel(1);
        assert_eq!(wheel.pop(Tick::from_ms(6990)), None);
        assert_eq!((wheel.len(), place(&wheel, 1)), (1, IDLE));
        assert_eq!(wheel.pop(Tick::from_ms(7001)), Some(0));
        assert_eq!((wheel.len(), wheel.next()), (0, None));
        // For earlier it moves.
        wheel.arm(0, Tick::from_ms(90_000));
        wheel.arm(0, Tick::from_ms(7100));
        assert_eq!(wheel.pop(Tick::from_ms(7102)), Some(0));
    }

    #[test]
    fn polling_at_the_moment_it_names_reaches_every_timer() {
        let mut wheel = Wheel::default();
        wheel.arm(3, Tick::from_ms(4000));
        wheel.arm(1, Tick::from_ms(864_000_000));
        let mut polls = 0;
        let mut fired = Vec::new();
        while let Some(next) = wheel.next() {
            polls += 1;
            while let Some(id) = wheel.pop(next) {
                fired.push(id);
            }
        }
        assert_eq!(fired, [3, 1]);
        assert!(polls < 16, "each poll at the named moment makes progress");
    }
}
