//! What a group writes to the log: records, of which the bodies that callers hold are not copied.

use crate::record::{HEADER, Place, Record, padded};
use std::io::IoSlice;

/// A body that is lent: it stands behind `own` octets of the heads and small records, at `at` in all.
#[derive(Debug)]
struct Lent<'p> {
    own: usize,
    at: usize,
    body: &'p [u8],
}

/// Octets to be written, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Parts<'p> {
    own: Vec<u8>,
    lent: Vec<Lent<'p>>,
    lent_octets: usize,
}

impl<'p> Parts<'p> {
    /// None yet; `buffer` is used again.
    pub(crate) fn in_buffer(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { own: buffer, ..Self::default() }
    }

    /// The buffer, for the next group.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.own
    }

    pub(crate) fn len(&self) -> usize {
        self.own.len() + self.lent_octets
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a record as it stands at `place`, and copies its body.
    pub(crate) fn copy(&mut self, record: &Record<'_>, place: Place) {
        record.write(place, &mut self.own);
    }

    /// Appends a record as it stands at `place`; its body is lent.
    pub(crate) fn lend(&mut self, record: &Record<'p>, place: Place) {
        let body = record.body;
        self.own.extend_from_slice(&record.head(place));
        self.lent.push(Lent { own: self.own.len(), at: self.len(), body });
        self.lent_octets += body.len();
        self.own.resize(self.own.len() + padded(body.len()) - HEADER - body.len(), 0);
    }

    /// The lent body that begins at `at`.
    pub(crate) fn lent_at(&self, at: usize) -> Option<&'p [u8]> {
        let found = self.lent.binary_search_by_key(&at, |lent| lent.at).ok()?;
        self.lent.get(found).map(|lent| lent.body)
    }

    /// All octets, in order.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(2 * self.lent.len() + 1);
        let mut done = 0;
        for lent in &self.lent {
            slices.push(IoSlice::new(&self.own[done..lent.own]));
            slices.push(IoSlice::new(lent.body));
            done = lent.own;
        }
        slices.push(IoSlice::new(&self.own[done..]));
        slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    #[test]
    fn what_is_lent_is_written_as_what_is_copied() {
        let bodies: Vec<Vec<u8>> = (0..20).map(|n| vec![n; usize::from(n) * 7]).collect();
        let (mut copied, mut lent) = (Parts::default(), Parts::in_buffer(vec![1; 10]));
        for (n, body) in bodies.iter().enumerate() {
            let record =
                Record { kind: Kind::Packet, owner: 3, arrival_ms: 1, expires_ms: 2, body };
            let place = Place { segment: 1, offset: u32::try_from(copied.len()).unwrap() };
            copied.copy(&record, place);
            let at = lent.len() + HEADER;
            match n % 3 {
                0 => lent.copy(&record, place),
                _ => lent.lend(&record, place),
            }
            assert_eq!(lent.lent_at(at), (n % 3 != 0).then_some(&body[..]));
            assert_eq!(lent.len(), copied.len());
        }
        let octets = |parts: &Parts<'_>| -> Vec<u8> {
            parts.slices().iter().flat_map(|slice| slice.iter().copied()).collect()
        };
        assert_eq!(octets(&lent), octets(&copied));
        assert_eq!(octets(&lent).len(), lent.len());
    }
}
