//! Which copies in an outbox a capture may want.

use std::ops::Range;

/// The copies that were made for packets which a capture may want. All others that were made for packets
/// received have names that no capture wants, since those packets have.
#[derive(Debug, Default)]
pub struct Copies {
    /// In order.
    places: Vec<Range<usize>>,
}

impl Copies {
    /// Those in these places of the outbox are looked at, which are behind all that were told before.
    pub fn look_at(&mut self, places: Range<usize>) {
        match self.places.last_mut() {
            Some(last) if last.end == places.start => last.end = places.end,
            _ => self.places.push(places),
        }
    }

    /// Shows the places of an outbox of so many copies, in order: which of them are looked at.
    pub fn each_stretch(&self, len: usize, mut show: impl FnMut(Range<usize>, bool)) {
        let mut at = 0;
        for places in &self.places {
            let (start, end) = (places.start.clamp(at, len), places.end.clamp(at, len));
            show(at..start, false);
            show(start..end, true);
            at = end;
        }
        show(at..len, false);
    }

    /// The outbox is empty again.
    pub fn clear(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Law: each place comes once and in order, and is looked at exactly where that was told.
        #[test]
        fn the_copies_that_were_told_are_looked_at_and_no_others(
            told in prop::collection::vec((0_usize..4, 0_usize..4), 0..12), behind in 0_usize..4,
        ) {
            let (mut copies, mut wanted) = (Copies::default(), Vec::new());
            for (left_out, looked_at) in told {
                wanted.extend(std::iter::repeat_n(false, left_out));
                let start = wanted.len();
                wanted.extend(std::iter::repeat_n(true, looked_at));
                copies.look_at(start..wanted.len());
            }
            wanted.extend(std::iter::repeat_n(false, behind));
            let mut found = Vec::new();
            copies.each_stretch(wanted.len(), |places, is_looked_at| {
                assert_eq!(places.start, found.len());
                found.extend(places.map(|_| is_looked_at));
            });
            prop_assert_eq!(found, wanted);
            copies.clear();
            copies.each_stretch(3, |places, looks| assert!(!looks || places.is_empty()));
        }
    }
}
