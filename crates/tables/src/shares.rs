//! Who holds how much of what is bounded together: at the bound whoever holds most loses the oldest,
//! so nobody pushes out what others hold.

use std::collections::{BTreeMap, BTreeSet};

/// Octets by holder, and what each holds in the order in which it came.
#[derive(Debug)]
pub struct Shares<H, K> {
    octets: usize,
    held: BTreeMap<H, usize>,
    /// The same the other way round.
    weights: BTreeSet<(usize, H)>,
    order: BTreeMap<(H, u64), K>,
    serial: u64,
}

impl<H: Copy + Ord, K> Default for Shares<H, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Copy + Ord, K> Shares<H, K> {
    /// Nothing is held.
    #[must_use]
    pub fn new() -> Self {
        let (held, weights, order) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { octets: 0, held, weights, order, serial: 0 }
    }

    /// Octets of all.
    #[must_use]
    pub const fn octets(&self) -> usize {
        self.octets
    }

    /// How many things are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Something of so many octets came; by what number it is taken out.
    pub fn add(&mut self, holder: H, key: K, octets: usize) -> u64 {
        self.serial += 1;
        self.order.insert((holder, self.serial), key);
        self.weigh(holder, octets, 0);
        self.serial
    }

    /// Something that is held has so many octets more.
    pub fn grow(&mut self, holder: H, octets: usize) {
        self.weigh(holder, octets, 0);
    }

    /// Something of so many octets is held no more.
    pub fn remove(&mut self, holder: H, serial: u64, octets: usize) {
        self.order.remove(&(holder, serial));
        self.weigh(holder, 0, octets);
    }

    /// The oldest thing of whoever holds most.
    #[must_use]
    pub fn oldest(&self) -> Option<&K> {
        let (_, holder) = *self.weights.last()?;
        self.order.range((holder, 0)..=(holder, u64::MAX)).next().map(|(_, key)| key)
    }

    fn weigh(&mut self, holder: H, more: usize, less: usize) {
        self.octets = self.octets + more - less;
        let before = self.held.get(&holder).copied().unwrap_or(0);
        self.weights.remove(&(before, holder));
        let now = before + more - less;
        if now == 0 {
            self.held.remove(&holder);
        } else {
            self.held.insert(holder, now);
            self.weights.insert((now, holder));
        }
    }

    /// Whether the sums agree with each other, for tests.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.held.values().sum::<usize>() == self.octets && self.weights.len() == self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_most_loses_the_oldest() {
        let mut shares = Shares::new();
        let first = shares.add('a', 1, 100);
        shares.add('b', 2, 60);
        shares.add('b', 3, 50);
        assert_eq!((shares.oldest(), shares.octets(), shares.len()), (Some(&2), 210, 3));
        shares.grow('a', 50);
        assert_eq!(shares.oldest(), Some(&1));
        shares.remove('a', first, 150);
        assert!(shares.is_sound());
        assert_eq!((shares.oldest(), shares.octets()), (Some(&2), 110));
    }
}
