//! Frames that stand evenly in one chunk, as a segmented datagram brings them.

use crate::{Buf, RxFrame};

/// Frames of one length that stand in one chunk, each as far behind the one before as all others:
/// kept, handed on and sent as one. Never without a frame.
#[derive(Debug, Clone)]
pub struct FrameRow {
    first: Buf,
    /// Octets from the start of a frame to that of the next one.
    step: usize,
    count: usize,
}

impl FrameRow {
    /// A row of one frame.
    #[inline]
    #[must_use]
    pub const fn one(frame: Buf) -> Self {
        Self { first: frame, step: 0, count: 1 }
    }

    /// The longest row at the front of `frames`; `None` when there are no frames.
    #[must_use]
    pub fn of(frames: &[RxFrame]) -> Option<Self> {
        let (first, more) = frames.split_first()?;
        let first = &first.bytes;
        let step = more.first().and_then(|next| first.distance(&next.bytes)).unwrap_or(0);
        let is_next = |(n, next): &(usize, &RxFrame)| {
            next.bytes.len() == first.len() && first.distance(&next.bytes) == Some(n * step)
        };
        let count = 1 + (1..).zip(more).take_while(is_next).count();
        Some(Self { first: first.clone(), step, count })
    }

    /// Frames.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Octets of each frame.
    #[inline]
    #[must_use]
    pub const fn frame_len(&self) -> usize {
        self.first.len()
    }

    /// The first frame.
    #[inline]
    #[must_use]
    pub const fn first(&self) -> &Buf {
        &self.first
    }

    /// The octets of each frame in turn.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.iter_from(0)
    }

    /// The octets of each frame from frame `first` on.
    #[inline]
    pub fn iter_from(&self, first: usize) -> impl Iterator<Item = &[u8]> + Clone {
        (first..self.count).map(|n| self.first.later(n * self.step))
    }

    /// The first `count` frames: all, if there are not so many; one at least.
    #[must_use]
    pub fn take(&self, count: usize) -> Self {
        Self { count: count.clamp(1, self.count), ..self.clone() }
    }

    /// The row without its first `count` frames; `None` when that leaves nothing.
    #[must_use]
    pub fn skip(mut self, count: usize) -> Option<Self> {
        self.count = self.count.checked_sub(count).filter(|left| *left > 0)?;
        self.first.move_on(count * self.step);
        Some(self)
    }

    /// What stands in each frame from octet `from` on.
    ///
    /// # Panics
    /// If the frames have not so many octets.
    #[inline]
    #[must_use]
    pub fn rests(&self, from: usize) -> Self {
        Self { first: self.first.slice(from..self.first.len()), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(chunk: &Buf, starts: &[usize], len: usize) -> Vec<RxFrame> {
        let frame = |start: &usize| chunk.slice(*start..start + len);
        starts.iter().map(|start| RxFrame { endpoint: 0, bytes: frame(start) }).collect()
    }

    #[test]
    fn a_row_ends_where_length_distance_or_chunk_change() {
        let octets: Vec<u8> = (0..100).collect();
        let (chunk, other) = (Buf::copy_from(&octets), Buf::copy_from(&octets));
        let count = |frames: &[RxFrame]| FrameRow::of(frames).map(|row| row.count());
        assert_eq!(count(&[]), None);
        assert_eq!(count(&frames(&chunk, &[0, 10, 20, 30], 10)), Some(4));
        assert_eq!(count(&frames(&chunk, &[0, 14, 28, 40], 10)), Some(3));
        assert_eq!(count(&frames(&chunk, &[20, 10, 0], 10)), Some(1), "backwards");
        assert_eq!(count(&frames(&chunk, &[20, 20, 20], 10)), Some(3), "one frame three times");
        let mut mixed = frames(&chunk, &[0, 10], 10);
        mixed.extend(frames(&chunk, &[20], 9));
        assert_eq!(count(&mixed), Some(2));
        mixed.truncate(2);
        mixed.extend(frames(&other, &[20], 10));
        assert_eq!(count(&mixed), Some(2));
    }

    #[test]
    fn parts_of_a_row_are_the_frames_that_it_was_made_of() {
        let octets: Vec<u8> = (0..100).collect();
        let row = FrameRow::of(&frames(&Buf::copy_from(&octets), &[1, 13, 25, 37], 10)).unwrap();
        let starts = |row: &FrameRow| row.iter().map(|frame| frame[0]).collect::<Vec<_>>();
        assert_eq!(starts(&row), [1, 13, 25, 37]);
        assert_eq!(starts(&row.take(2)), [1, 13]);
        assert_eq!((row.take(0).count(), row.take(9).count()), (1, 4));
        let rest = row.clone().skip(3).unwrap();
        assert_eq!((starts(&rest), rest.first()[9]), (vec![37], 46));
        assert!(row.clone().skip(4).is_none() && row.clone().skip(5).is_none());
        let rests = row.rests(4);
        assert_eq!((starts(&rests), rests.frame_len()), (vec![5, 17, 29, 41], 6));
    }
}
