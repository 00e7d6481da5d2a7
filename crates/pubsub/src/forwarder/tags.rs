//! Which links a flat filter contains.
//!
//! A few links are tested one by one. With more, they are tested 64 at a time: for each four bits
//! of a filter and each of their 16 values there is a row of the links whose tags have no other
//! bits set there. The filter contains the links that are in all 64 rows that it selects, however
//! many links there are.

use onym_wire::push::Filter;

/// Links that are looked at together.
pub(super) const BLOCK: usize = 64;
/// Links that are tested one by one: more take longer than rows do.
const FEW: usize = 8;
/// Values of four bits.
const VALUES: usize = 16;

/// The tags of up to [`BLOCK`] links: for the low and the high half of each octet of a filter, and
/// each value of it, the links.
type Rows = [[[u64; VALUES]; 2]; Filter::LEN];

/// The tags of links in one table, in the order in which the links are.
#[derive(Debug, Clone, Default)]
pub(super) struct Tags {
    tags: Vec<Filter>,
    /// Once there are more than [`FEW`]; 8 KiB each.
    blocks: Vec<Box<Rows>>,
}

impl Tags {
    /// Adds the tag of one more link.
    pub(super) fn push(&mut self, tag: Filter) {
        self.tags.push(tag);
        match self.tags.len() {
            ..=FEW => {}
            len if self.blocks.is_empty() => (0..len).for_each(|at| self.note(at)),
            len => self.note(len - 1),
        }
    }

    /// Removes the link at `at`, whose place the last one takes.
    pub(super) fn swap_remove(&mut self, at: usize) {
        self.tags.swap_remove(at);
        if self.tags.len() <= FEW {
            return self.blocks.clear();
        }
        let last = self.tags.len();
        self.forget(at);
        if at != last {
            self.forget(last);
            self.note(at);
        }
        self.blocks.truncate(last.div_ceil(BLOCK));
    }

    /// Adds the link at `at` to each row whose value has all ones of its tag.
    fn note(&mut self, at: usize) {
        if at / BLOCK == self.blocks.len() {
            self.blocks.push(Box::new([[[0; VALUES]; 2]; Filter::LEN]));
        }
        let (Some(block), Some(tag)) = (self.blocks.get_mut(at / BLOCK), self.tags.get(at)) else {
            return;
        };
        for (halves, octet) in block.iter_mut().zip(tag.octets()) {
            for (rows, ones) in halves.iter_mut().zip([octet & 15, octet >> 4]) {
                for (value, links) in (0_u8..).zip(rows) {
                    *links |= u64::from(ones & !value == 0) << (at % BLOCK);
                }
            }
        }
    }

    /// Takes the link at `at` out of all rows.
    fn forget(&mut self, at: usize) {
        if let Some(block) = self.blocks.get_mut(at / BLOCK) {
            block.as_flattened_mut().as_flattened_mut().iter_mut().for_each(|links| {
                *links &= !(1 << (at % BLOCK));
            });
        }
    }

    /// The links from `BLOCK * block` on that `filter` holds, the first one in the lowest bit.
    #[inline]
    pub(super) fn held_by(&self, filter: &Filter, block: usize) -> u64 {
        if self.blocks.is_empty() {
            let tags = self.tags.iter().enumerate();
            return tags.fold(0, |links, (at, tag)| links | u64::from(filter.contains(tag)) << at);
        }
        self.blocks.get(block).map_or(0, |block| held_by(block, filter))
    }
}

#[inline]
fn held_by(block: &Rows, filter: &Filter) -> u64 {
    block.iter().zip(filter.octets()).fold(u64::MAX, |links, ([low, high], octet)| {
        links & low[usize::from(octet & 15)] & high[usize::from(octet >> 4)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_tables::Rng;
    use onym_tables::bloom::{Kind, Scheme};

    #[test]
    fn the_links_of_a_filter_are_those_whose_tags_it_contains() {
        let seed = 3;
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        for kind in [Kind::Bits, Kind::Tags { k: 5, tables: 8 }] {
            let (scheme, mut tags, mut all) = (Scheme { kind, seed: 1 }, Tags::default(), vec![]);
            for number in 0..200 {
                // None has to be there, and none is held that is not.
                let filters = (0..10).map(|_| {
                    let mut filter = Filter::EMPTY;
                    let bits = rng.below(300);
                    (0..bits).for_each(|_| filter.set(rng.below(256) as u8));
                    (0..3).for_each(|_| filter.add(&scheme.tag(rng.below(250) as u32, 0)));
                    filter
                });
                for filter in filters.chain([Filter::ALL, Filter::EMPTY]) {
                    let blocks = 0..all.len().div_ceil(BLOCK);
                    let held: Vec<u64> = blocks.map(|b| tags.held_by(&filter, b)).collect();
                    let is_held = |i: usize| held[i / BLOCK] >> (i % BLOCK) & 1 == 1;
                    assert!(all.iter().enumerate().all(|(i, t)| is_held(i) == filter.contains(t)));
                    let ones: u32 = held.iter().map(|links| links.count_ones()).sum();
                    assert_eq!(ones as usize, all.iter().filter(|t| filter.contains(t)).count());
                }
                let tag = scheme.tag(number, 0);
                tags.push(tag);
                all.push(tag);
            }
        }
    }
}
