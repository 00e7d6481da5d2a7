//! Counts what a producer has sent, against [`FetchBounds`].

use super::report::{FetchBounds, FetchError, SEGMENT_OCTETS_MIN, Segments};
use onym_wire::name::Name;

#[derive(Debug)]
pub(crate) struct Taken {
    bounds: FetchBounds,
    segments: Segments,
    /// Octets, each segment before the last one as [`SEGMENT_OCTETS_MIN`] at least.
    octets: u64,
    /// Length of the first segment that was asked for: what the others are expected to have.
    first: u64,
    end_moves: u32,
}

impl Taken {
    pub(crate) fn new(bounds: FetchBounds, segments: Segments) -> Self {
        Self { bounds, segments, octets: 0, first: 0, end_moves: 0 }
    }

    fn too_large(&self, name: &Name, last: Option<u64>) -> FetchError {
        FetchError::TooLarge { name: name.clone(), size_max: self.bounds.size_max, last }
    }

    /// The segments asked for before `last` fit, with `len` octets each.
    fn fits(&self, last: u64, len: u64) -> bool {
        let before = last.saturating_sub(self.segments.first);
        u128::from(before) * u128::from(len) <= u128::from(self.bounds.size_max)
    }

    /// Metadata announced a size; of a part it says nothing.
    pub(crate) fn announced(
        &self,
        name: &Name,
        size: Option<u64>,
        last: Option<u64>,
    ) -> Result<(), FetchError> {
        match size {
            Some(size) if size > self.bounds.size_max && self.segments == Segments::default() => {
                Err(self.too_large(name, last))
            }
            _ => Ok(()),
        }
    }

    /// Segment `segment` came with `len` octets; `last` is the end as known now.
    pub(crate) fn segment(
        &mut self,
        name: &Name,
        segment: u64,
        len: u64,
        last: Option<u64>,
    ) -> Result<(), FetchError> {
        let counted = if last == Some(segment) { len } else { len.max(SEGMENT_OCTETS_MIN) };
        self.octets = self.octets.saturating_add(counted);
        if segment == self.segments.first {
            self.first = len;
        }
        let expected = last.is_none_or(|last| self.fits(last, self.first));
        if self.octets > self.bounds.size_max || !expected {
            return Err(self.too_large(name, last));
        }
        Ok(())
    }

    /// The producer says that the object ends with segment `last`; before it was `known`.
    pub(crate) fn end(
        &mut self,
        name: &Name,
        known: Option<u64>,
        last: u64,
    ) -> Result<(), FetchError> {
        if known == Some(last) {
            return Ok(());
        }
        if !self.fits(last, self.first.max(SEGMENT_OCTETS_MIN)) {
            return Err(self.too_large(name, Some(last)));
        }
        self.end_moves += u32::from(known.is_some());
        if self.end_moves > self.bounds.end_moves_max {
            return Err(FetchError::EndUnsettled { name: name.clone(), moves: self.end_moves });
        }
        Ok(())
    }
}
