//! Records of the log: how they are laid out, and when one is valid.

use onym_wire::name::NameRef;

/// Octets in front of a body.
pub(crate) const HEADER: usize = 40;
const MAGIC: [u8; 4] = *b"ONYR";
/// Longest body: a note and its key.
pub(crate) const BODY_MAX: usize = (1 << 20) + 4096;

/// Where a record is: its segment and its offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
}

impl Place {
    pub(crate) fn number(self) -> u64 {
        u64::from(self.segment) << 32 | u64::from(self.offset)
    }

    // Both halves are meant.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn of(number: u64) -> Self {
        Self { segment: (number >> 32) as u32, offset: number as u32 }
    }
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Packet = 1,
    Delete = 2,
    Note = 3,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Packet),
            2 => Some(Self::Delete),
            3 => Some(Self::Note),
            _ => None,
        }
    }
}

/// A record that was checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) kind: Kind,
    pub(crate) owner: u16,
    pub(crate) arrival_ms: u64,
    pub(crate) expires_ms: u64,
    pub(crate) body: &'a [u8],
}

/// Octets that a record with a body of `len` takes.
pub(crate) const fn padded(len: usize) -> usize {
    (HEADER + len).next_multiple_of(8)
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}

fn u64_at(octets: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}

impl<'a> Record<'a> {
    /// What stands in front of the body of the record at `place`.
    pub(crate) fn head(&self, place: Place) -> [u8; HEADER] {
        let mut head = [0; HEADER];
        let len = u32::try_from(self.body.len()).expect("invariant: bodies are below BODY_MAX");
        head[8..12].copy_from_slice(&len.to_le_bytes());
        head[12] = self.kind as u8;
        head[14..16].copy_from_slice(&self.owner.to_le_bytes());
        let numbers = [self.arrival_ms, self.expires_ms, place.number()];
        for (to, number) in head[16..].chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head[8..]), self.body);
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&crc.to_le_bytes());
        head
    }

    /// Appends the record as it stands at `place`.
    pub(crate) fn write(&self, place: Place, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.head(place));
        out.extend_from_slice(self.body);
        out.resize(start + padded(self.body.len()), 0);
    }

    /// Octets of the body of the record that begins with `header`, if its head looks like one.
    pub(crate) fn body_len(header: &[u8]) -> Option<usize> {
        if !header.starts_with(&MAGIC) {
            return None;
        }
        let len = usize::try_from(u32_at(header, 8)?).ok()?;
        (len <= BODY_MAX).then_some(len)
    }

    /// The record that `octets` begin with, if it is whole, undamaged and in its place.
    pub(crate) fn read(octets: &'a [u8], place: Place) -> Option<Self> {
        let len = Self::body_len(octets)?;
        let checked = octets.get(8..HEADER + len)?;
        if crc32c::crc32c(checked) != u32_at(octets, 4)? || u64_at(octets, 32)? != place.number() {
            return None;
        }
        Some(Self {
            kind: Kind::of(*octets.get(12)?)?,
            owner: u16::from_le_bytes(*octets.get(14..)?.first_chunk()?),
            arrival_ms: u64_at(octets, 16)?,
            expires_ms: u64_at(octets, 24)?,
            body: octets.get(HEADER..HEADER + len)?,
        })
    }
}

/// Octets of the body of a note.
pub(crate) const fn note_len(key_len: usize, value_len: usize) -> usize {
    3 + key_len + value_len
}

/// The body of a note; no value deletes it.
pub(crate) fn note_body(key: &[u8], value: Option<&[u8]>) -> Vec<u8> {
    let len = u16::try_from(key.len()).expect("invariant: keys are below 4096 octets");
    let mut body = Vec::with_capacity(3 + key.len() + value.map_or(0, <[u8]>::len));
    body.extend_from_slice(&len.to_le_bytes());
    body.push(u8::from(value.is_some()));
    body.extend_from_slice(key);
    body.extend_from_slice(value.unwrap_or_default());
    body
}

/// Key and value of a note.
pub(crate) fn note_parts(body: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (len, rest) = body.split_first_chunk::<2>()?;
    let (is_set, rest) = rest.split_first()?;
    let (key, value) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
    Some((key, (*is_set == 1).then_some(value)))
}

/// Whether a packet of this name is the first, or only, one of an object.
pub(crate) fn is_head(name: NameRef<'_>) -> bool {
    name.last().and_then(|c| c.as_segment()).is_none_or(|n| n == 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_valid_in_its_place_only_and_undamaged_only() {
        let record =
            Record { kind: Kind::Packet, owner: 7, arrival_ms: 1, expires_ms: 2, body: b"abc" };
        let place = Place { segment: 3, offset: 64 };
        let mut octets = Vec::new();
        record.write(place, &mut octets);
        assert_eq!(octets.len(), padded(3));
        let read = Record::read(&octets, place).unwrap();
        assert_eq!((read.owner, read.body), (7, &b"abc"[..]));
        assert!(Record::read(&octets, Place { offset: 72, ..place }).is_none());
        for at in 0..HEADER + 3 {
            let mut damaged = octets.clone();
            damaged[at] ^= 1;
            assert!(Record::read(&damaged, place).is_none(), "octet {at}");
        }
        assert!(Record::read(&octets[..octets.len() - 6], place).is_none());
    }

    #[test]
    fn notes_are_read_as_written() {
        assert_eq!(note_parts(&note_body(b"k", Some(b"v"))), Some((&b"k"[..], Some(&b"v"[..]))));
        assert_eq!(note_parts(&note_body(b"k", None)), Some((&b"k"[..], None)));
        assert_eq!(note_parts(&[9]), None);
    }
}
