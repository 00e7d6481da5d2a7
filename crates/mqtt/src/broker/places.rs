//! Places for topics, shared by address: who has many of them takes no more where few are left.

use super::holder::Holder;
use std::collections::BTreeMap;

/// Who has more than so many times the places that are left takes no more.
const GREED: usize = 8;

#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    taken: usize,
    held: BTreeMap<Holder, usize>,
}

impl Places {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, taken: 0, held: BTreeMap::new() }
    }

    /// Whether there is one more for somebody.
    pub(super) fn has_room(&self, holder: Holder) -> bool {
        let left = self.most.saturating_sub(self.taken);
        let held = self.held.get(&holder).copied().unwrap_or(0);
        left > 0 && held <= left.saturating_mul(GREED)
    }

    pub(super) const fn is_full(&self) -> bool {
        self.taken >= self.most
    }

    /// Somebody takes one, if there is one.
    pub(super) fn take(&mut self, holder: Holder) -> bool {
        let has_room = self.has_room(holder);
        if has_room {
            self.taken += 1;
            *self.held.entry(holder).or_default() += 1;
        }
        has_room
    }

    pub(super) fn give_back(&mut self, holder: Holder) {
        let Some(held) = self.held.get_mut(&holder) else { return };
        (self.taken, *held) = (self.taken - 1, *held - 1);
        if *held == 0 {
            self.held.remove(&holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn whoever_is_greedy_something_is_left_for_who_comes() {
        let of = |last: u8| Holder::from(IpAddr::from([192, 0, 2, last]));
        let mut places = Places::new(10_000);
        let mut takes_all =
            |last| std::iter::repeat_with(|| places.take(of(last))).position(|took| !took);
        let counts = [1, 2, 3, 4].map(|last| takes_all(last).unwrap());
        // Alone eight ninths; of what is left the next one as much again.
        assert_eq!(counts, [8889, 988, 110, 12]);
        assert!(places.take(of(5)) && !places.take(of(1)));
        (0..8000).for_each(|_| places.give_back(of(1)));
        assert!(places.take(of(1)) && places.take(of(2)));
        (0..9000).for_each(|_| places.give_back(of(1)));
        assert!(!places.held.contains_key(&of(1)));
        assert_eq!(places.taken, places.held.values().sum::<usize>());
    }

    #[test]
    fn few_places_are_all_for_who_comes_first() {
        let of = |last: u8| Holder::from(IpAddr::from([192, 0, 2, last]));
        let mut places = Places::new(3);
        assert!((0..3).all(|_| places.take(of(1))) && !places.take(of(2)));
        assert!(!Places::new(0).take(of(1)));
    }
}
