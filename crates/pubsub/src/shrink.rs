//! When a table that was emptied hands its memory back.

/// A table of fewer entries is not worth rebuilding.
const KEPT: usize = 256;

/// Notes how large a table was, and when it is to be rebuilt: when it falls below a quarter of that,
/// with room for twice what it holds. So it is filled or emptied by half before it is rebuilt again,
/// and each entry that was added pays for less than one that moves.
#[derive(Debug, Default)]
pub(crate) struct Shrink {
    /// With fewer entries it is rebuilt.
    at: usize,
}

impl Shrink {
    /// The table has so many entries now.
    #[inline]
    pub(crate) fn grew(&mut self, len: usize) {
        self.at = self.at.max(len / 4);
    }

    /// Something was removed: the entries that the table is to have room for from now on, where it is
    /// to be rebuilt.
    #[inline]
    pub(crate) fn fell(&mut self, len: usize) -> Option<usize> {
        if len >= self.at || self.at < KEPT {
            return None;
        }
        self.at = len / 2;
        Some(2 * len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_emptied_is_rebuilt_a_few_times_and_one_that_swings_never() {
        let mut shrink = Shrink::default();
        (0..100_000).for_each(|len| shrink.grew(len + 1));
        let rooms: Vec<usize> = (0..100_000).rev().filter_map(|len| shrink.fell(len)).collect();
        assert_eq!(rooms.first(), Some(&(2 * 24_999)));
        assert!(rooms.len() < 9 && *rooms.last().unwrap() < 8 * KEPT, "{rooms:?}");
        (0..40_000).for_each(|len| shrink.grew(len + 1));
        for _ in 0..20 {
            assert!((10_000..40_000).rev().all(|len| shrink.fell(len).is_none()));
            (10_000..40_000).for_each(|len| shrink.grew(len + 1));
        }
    }
}
