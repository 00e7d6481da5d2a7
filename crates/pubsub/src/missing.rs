//! Fragments that are missing, as requests name them: ranges, the last one included (P-32, P-64).

/// Most ranges in one request.
const RANGES_MAX: usize = 64;
/// Most fragments that one request brings.
pub(crate) const FRAGMENTS_MAX: usize = 256;

/// Ranges of a request that is made.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    /// Adds a fragment, the indices in their order; whether there was room.
    pub(crate) fn add(&mut self, index: u32) -> bool {
        let has_room = self.0.len() < RANGES_MAX;
        match self.0.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(index) => *last = index,
            _ if !has_room => return false,
            _ => self.0.push((index, index)),
        }
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_inner(self) -> Vec<(u32, u32)> {
        self.0
    }
}

/// The fragments that a request names, those that nobody looks at left out; `end` is the first one
/// that does not count.
pub(crate) fn fragments(ranges: &[(u32, u32)], end: u32) -> impl Iterator<Item = u32> {
    let each = move |(first, last): &(u32, u32)| *first..last.saturating_add(1).min(end);
    ranges.iter().take(RANGES_MAX).flat_map(each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_in_ranges_and_read_again_within_bounds() {
        let mut ranges = Ranges::default();
        assert!([1, 2, 3, 7, 9, 10].into_iter().all(|index| ranges.add(index)));
        let ranges = ranges.into_inner();
        assert_eq!(ranges, [(1, 3), (7, 7), (9, 10)]);
        assert_eq!(fragments(&ranges, 10).collect::<Vec<_>>(), [1, 2, 3, 7, 9]);
        let mut many = Ranges::default();
        assert_eq!((0..1000).take_while(|n| many.add(n * 2)).count(), RANGES_MAX);
        // Hostile ones: upside down, without end, too many.
        assert_eq!(fragments(&[(9, 3)], u32::MAX).count(), 0);
        assert_eq!(fragments(&[(0, u32::MAX)], u32::MAX).take(FRAGMENTS_MAX).count(), 256);
        assert_eq!(fragments(&[(5, 5); 1000], 6).count(), RANGES_MAX);
    }
}
