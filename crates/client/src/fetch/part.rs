//! Some octets of an object: in which segments they are, and where there.

use super::report::Segments;
use std::ops::RangeInclusive;

/// Some octets of an object whose segments are of one length.
///
/// ```
/// use onym_client::fetch::Part;
/// let mut part = Part::of(8_100..=16_099, 8_000).unwrap();
/// assert_eq!((part.segments.first, part.segments.last), (1, Some(2)));
/// let (first, second) = (vec![1; 8_000], vec![2; 8_000]);
/// assert_eq!(part.cut(&first), 100..8_000);
/// assert_eq!(part.cut(&second), 0..100);
/// assert_eq!(part.left(), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The segments to fetch.
    pub segments: Segments,
    skip: u64,
    left: u64,
}

impl Part {
    /// The octets `octets` of an object with `segment_size` octets in a segment; `None` when there
    /// are none, or segments are empty.
    #[must_use]
    pub fn of(octets: RangeInclusive<u64>, segment_size: u64) -> Option<Self> {
        let (first, last) = octets.into_inner();
        if segment_size == 0 || last < first {
            return None;
        }
        let segments = Segments {
            first: first / segment_size,
            last: Some(last / segment_size),
            size: Some(segment_size),
        };
        let left = (last - first).checked_add(1)?;
        Some(Self { segments, skip: first % segment_size, left })
    }

    /// Which octets of the next segment belong to it.
    pub fn cut(&mut self, content: &[u8]) -> std::ops::Range<usize> {
        let len = content.len() as u64;
        let from = std::mem::take(&mut self.skip).min(len);
        let to = from.saturating_add(self.left).min(len);
        self.left -= to - from;
        let at = |n: u64| usize::try_from(n).unwrap_or(content.len());
        at(from)..at(to)
    }

    /// Octets that did not come yet.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }
}
