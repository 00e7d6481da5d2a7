//! Which copies in an outbox no capture wants.

use std::ops::Range;

/// Copies that are known to have names which no capture wants, since the packets that they were made for
/// have. All others are looked at one by one.
#[derive(Debug, Default)]
pub struct Copies {
    /// Earlier ones, in order.
    earlier: Vec<Range<usize>>,
    last: Range<usize>,
}

impl Copies {
    /// Those in these places of the outbox, behind all that were told before.
    #[inline]
    pub fn leave_out(&mut self, places: Range<usize>) {
        if self.last.end != places.start {
            self.begin(places.start);
        }
        self.last.end = places.end;
    }

    #[cold]
    fn begin(&mut self, start: usize) {
        let last = std::mem::replace(&mut self.last, start..start);
        if !last.is_empty() {
            self.earlier.push(last);
        }
    }

    /// The places of an outbox of so many copies, in order: which of them are looked at.
    pub fn stretches(&self, len: usize) -> impl Iterator<Item = (Range<usize>, bool)> {
        let known = self.earlier.iter().chain([&self.last]);
        let mut at = 0;
        let stretches = known.flat_map(move |known| {
            let (start, end) = (known.start.clamp(at, len), known.end.clamp(at, len));
            let both = [(at..start, true), (start..end, false)];
            at = end;
            both
        });
        let end = self.last.end.min(len);
        stretches.chain([(end..len, true)])
    }

    /// The outbox is empty again.
    pub fn clear(&mut self) {
        self.earlier.clear();
        self.last = 0..0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Law: each place comes once and in order, and is left out exactly where that was told.
        #[test]
        fn every_copy_is_looked_at_unless_it_was_left_out(
            told in prop::collection::vec((0_usize..4, 0_usize..4), 0..12), behind in 0_usize..4,
        ) {
            let (mut copies, mut wanted) = (Copies::default(), Vec::new());
            for (looked_at, left_out) in told {
                wanted.extend(std::iter::repeat_n(true, looked_at));
                let start = wanted.len();
                wanted.extend(std::iter::repeat_n(false, left_out));
                copies.leave_out(start..wanted.len());
            }
            wanted.extend(std::iter::repeat_n(true, behind));
            let mut found = Vec::new();
            for (places, is_looked_at) in copies.stretches(wanted.len()) {
                prop_assert_eq!(places.start, found.len());
                found.extend(places.map(|_| is_looked_at));
            }
            prop_assert_eq!(found, wanted);
            copies.clear();
            prop_assert!(copies.stretches(3).all(|(places, looks)| looks || places.is_empty()));
        }
    }
}
