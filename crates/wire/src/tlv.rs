//! TLV elements: numbers, reading, writing, framing of a byte stream.
//!
//! TYPE and LENGTH are numbers of 1, 3, 5 or 9 octets in their shortest form; TYPE is 1 to 2^32-1.

mod write;

pub use write::{
    nni_len, nni_tlv_len, num_len, put_head, put_nested, put_nested_sized, put_nni, put_nni_tlv,
    put_num, put_tlv, tlv_len,
};

use crate::PACKET_LEN_MAX;
use thiserror::Error;

/// Why bytes are not a packet, and at which TLV type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// An element ends beyond the bytes that hold it.
    #[error("an element is longer than what holds it")]
    Truncated,
    /// A TYPE or LENGTH not in its shortest form.
    #[error("a TYPE or LENGTH is not in its shortest form")]
    LongNumber,
    /// TYPE is 0 or above 2^32-1.
    #[error("TYPE is 0 or above 4294967295")]
    TypeRange,
    /// Octets behind the one element that was expected.
    #[error("octets follow the element")]
    Trailing,
    /// An element longer than is accepted.
    #[error("element longer than accepted")]
    TooLong,
    /// Another element was expected than the one of this type.
    #[error("unexpected element of type {0}")]
    Unexpected(u32),
    /// An unknown critical element.
    #[error("unknown critical element of type {0}")]
    UnknownCritical(u32),
    /// An unknown link-layer header field that must not be ignored.
    #[error("unknown critical link header field of type {0}")]
    UnknownHeader(u32),
    /// A known critical element after one that must follow it, or twice.
    #[error("element of type {0} out of order or repeated")]
    OutOfOrder(u32),
    /// A required element is missing.
    #[error("element of type {0} is missing")]
    Missing(u32),
    /// The VALUE of this type has a length that it must not have.
    #[error("wrong length of the element of type {0}")]
    Length(u32),
    /// The VALUE of this type is not one of those allowed.
    #[error("wrong value of the element of type {0}")]
    Value(u32),
    /// A `NonNegativeInteger` that is not 1, 2, 4 or 8 octets long.
    #[error("a number is not 1, 2, 4 or 8 octets long")]
    NniLength,
    /// A name component TYPE above 65535.
    #[error("name component of type {0}")]
    ComponentType(u32),
    /// An Interest without name components.
    #[error("the name of an Interest is empty")]
    EmptyName,
    /// Application parameters without their digest in the name, the reverse, or several digests.
    #[error("application parameters and their digest in the name do not go together")]
    ParametersDigest,
}

/// One TLV element within a larger buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    /// TYPE, 1 to 2^32-1.
    pub typ: u32,
    /// VALUE.
    pub value: &'a [u8],
    /// The whole element: TYPE, LENGTH and VALUE.
    pub wire: &'a [u8],
}

impl<'a> Element<'a> {
    /// Splits the first element off `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when `bytes` does not start with a whole element in shortest form.
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        // Nearly every element of a packet has a one-octet TYPE and LENGTH.
        if let [typ @ 1..=252, len @ 0..=252, tail @ ..] = bytes {
            let len = usize::from(*len);
            let (Some((value, rest)), Some(wire)) =
                (tail.split_at_checked(len), bytes.get(..len + 2))
            else {
                return Err(Malformed::Truncated);
            };
            return Ok((Self { typ: u32::from(*typ), value, wire }, rest));
        }
        Self::split_long(bytes)
    }

    fn split_long(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let (typ, tail) = number(bytes)?.ok_or(Malformed::Truncated)?;
        let typ = type_number(typ)?;
        let (len, tail) = number(tail)?.ok_or(Malformed::Truncated)?;
        let len = usize::try_from(len).map_err(|_| Malformed::Truncated)?;
        let (value, rest) = tail.split_at_checked(len).ok_or(Malformed::Truncated)?;
        let wire = bytes.get(..bytes.len() - rest.len()).ok_or(Malformed::Truncated)?;
        Ok((Self { typ, value, wire }, rest))
    }

    /// The one element that `bytes` is.
    ///
    /// # Errors
    /// [`Malformed`] when it is not whole, or octets follow it.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match Self::split(bytes)? {
            (element, []) => Ok(element),
            _ => Err(Malformed::Trailing),
        }
    }

    /// The one element of type `typ` that `bytes` is.
    ///
    /// # Errors
    /// [`Malformed`] when it is not whole, is of another type, or octets follow it.
    #[inline]
    pub fn parse_as(bytes: &'a [u8], typ: u32) -> Result<Self, Malformed> {
        let element = Self::parse(bytes)?;
        if element.typ == typ { Ok(element) } else { Err(Malformed::Unexpected(element.typ)) }
    }

    /// VALUE as a `NonNegativeInteger`.
    ///
    /// # Errors
    /// [`Malformed::NniLength`].
    #[inline]
    pub fn nni(&self) -> Result<u64, Malformed> {
        nni(self.value)
    }
}

/// Offset of the VALUE of the first element within a packet, from the lengths of both: heads are in
/// their shortest form, TYPEs below 253 and lengths below 65,536.
#[inline(always)]
#[must_use]
pub const fn first_value_at(packet_len: usize, value_len: usize) -> usize {
    4 + 2 * ((packet_len > 254) as usize + (value_len > 252) as usize)
}

/// Where an element is within a buffer: what packets are parsed with, cheaper than slices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    /// TYPE.
    pub(crate) typ: u32,
    /// Offset of VALUE.
    pub(crate) value: usize,
    /// Offset behind the element, within the buffer.
    pub(crate) end: usize,
}

impl Head {
    /// The element of `bytes` that starts at offset `at`.
    #[inline(always)]
    pub(crate) fn at(bytes: &[u8], at: usize) -> Result<Self, Malformed> {
        let rest = bytes.get(at..).unwrap_or_default();
        let (typ, value, end) = match *rest {
            [typ @ 1..=252, len @ 0..=252, ..] => (typ, at + 2, at + 2 + usize::from(len)),
            [typ @ 1..=252, 253, a, b, ..] if a > 0 || b > 252 => {
                (typ, at + 4, at + 4 + usize::from(u16::from_be_bytes([a, b])))
            }
            _ => return Self::at_long(rest, at),
        };
        if end > bytes.len() {
            return Err(Malformed::Truncated);
        }
        Ok(Self { typ: u32::from(typ), value, end })
    }

    #[cold]
    fn at_long(rest: &[u8], at: usize) -> Result<Self, Malformed> {
        let (element, _) = Element::split(rest)?;
        let end = at + element.wire.len();
        Ok(Self { typ: element.typ, value: end - element.value.len(), end })
    }

    /// The element of type `typ` that `bytes` is.
    #[inline(always)]
    pub(crate) fn outer(bytes: &[u8], typ: u32) -> Result<Self, Malformed> {
        let head = Self::at(bytes, 0)?;
        if head.end != bytes.len() {
            return Err(Malformed::Trailing);
        }
        if head.typ == typ { Ok(head) } else { Err(Malformed::Unexpected(head.typ)) }
    }

    /// VALUE; `bytes` is the buffer that the element was found in.
    #[inline(always)]
    pub(crate) fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.value..self.end).unwrap_or_default()
    }
}

/// VALUE of the first element of `bytes`, and what follows it, if it is of type `typ` and its length
/// is of one or three octets. `None` says only that it is something else.
#[inline(always)]
pub(crate) fn take(bytes: &[u8], typ: u32) -> Option<(&[u8], &[u8])> {
    match *bytes {
        [t, len @ 0..=252, ref tail @ ..] if u32::from(t) == typ => {
            tail.split_at_checked(usize::from(len))
        }
        [t, 253, a, b, ref tail @ ..] if u32::from(t) == typ && (a > 0 || b > 252) => {
            tail.split_at_checked(usize::from(u16::from_be_bytes([a, b])))
        }
        _ => None,
    }
}

/// What an element of an unknown type does to its packet.
#[cold]
pub(crate) const fn unknown(typ: u32) -> Result<(), Malformed> {
    if is_critical(typ) { Err(Malformed::UnknownCritical(typ)) } else { Ok(()) }
}

/// What an element of a known type does to its packet where it is not in its place.
#[cold]
pub(crate) const fn misplaced(typ: u32) -> Result<(), Malformed> {
    if is_critical(typ) { Err(Malformed::OutOfOrder(typ)) } else { Ok(()) }
}

/// A cursor over the elements of a VALUE.
///
/// As an iterator it yields each element, or one error and then nothing.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads the elements that `bytes` concatenates.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What was not read yet.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was read.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next element, which must be there.
    ///
    /// # Errors
    /// [`Malformed`], also when nothing is left.
    #[inline]
    pub fn element(&mut self) -> Result<Element<'a>, Malformed> {
        let (element, rest) = Element::split(self.rest)?;
        self.rest = rest;
        Ok(element)
    }

    /// The next element, which must be of type `typ`.
    ///
    /// # Errors
    /// [`Malformed::Missing`] when another one or nothing is next.
    #[inline]
    pub fn expect(&mut self, typ: u32) -> Result<Element<'a>, Malformed> {
        self.optional(typ)?.ok_or(Malformed::Missing(typ))
    }

    /// The next element if it is of type `typ`; otherwise the cursor stays.
    ///
    /// # Errors
    /// [`Malformed`] when the next element is not whole.
    #[inline]
    pub fn optional(&mut self, typ: u32) -> Result<Option<Element<'a>>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (element, rest) = Element::split(self.rest)?;
        if element.typ != typ {
            return Ok(None);
        }
        self.rest = rest;
        Ok(Some(element))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Element<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match Element::split(self.rest) {
            Ok((element, rest)) => {
                self.rest = rest;
                Some(Ok(element))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

/// Whether an unknown or misplaced element of this type refuses its packet (packet format v0.3).
#[inline]
#[must_use]
pub const fn is_critical(typ: u32) -> bool {
    typ <= 31 || typ & 1 == 1
}

/// Reads a `NonNegativeInteger` of 1, 2, 4 or 8 octets.
///
/// # Errors
/// [`Malformed::NniLength`] for any other length.
#[inline]
pub fn nni(value: &[u8]) -> Result<u64, Malformed> {
    match *value {
        [a] => Ok(u64::from(a)),
        [a, b] => Ok(u64::from(u16::from_be_bytes([a, b]))),
        [a, b, c, d] => Ok(u64::from(u32::from_be_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Ok(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => Err(Malformed::NniLength),
    }
}

/// Reads a variable-size number; `None` when more octets are needed.
fn number(bytes: &[u8]) -> Result<Option<(u64, &[u8])>, Malformed> {
    let Some((first, tail)) = bytes.split_first() else { return Ok(None) };
    let (value, least, rest) = match first {
        0..=252 => return Ok(Some((u64::from(*first), tail))),
        253 => match tail.split_first_chunk::<2>() {
            Some((b, rest)) => (u64::from(u16::from_be_bytes(*b)), 253, rest),
            None => return Ok(None),
        },
        254 => match tail.split_first_chunk::<4>() {
            Some((b, rest)) => (u64::from(u32::from_be_bytes(*b)), 1 << 16, rest),
            None => return Ok(None),
        },
        255 => match tail.split_first_chunk::<8>() {
            Some((b, rest)) => (u64::from_be_bytes(*b), 1 << 32, rest),
            None => return Ok(None),
        },
    };
    if value < least { Err(Malformed::LongNumber) } else { Ok(Some((value, rest))) }
}

fn type_number(typ: u64) -> Result<u32, Malformed> {
    match u32::try_from(typ) {
        Ok(typ) if typ != 0 => Ok(typ),
        _ => Err(Malformed::TypeRange),
    }
}

/// Length of the first frame of a byte stream, in octets; `None` when its header is not whole yet.
///
/// The frame itself may not be whole: compare the length with what was received.
///
/// # Errors
/// [`Malformed::TooLong`] above [`PACKET_LEN_MAX`]; others when the header is not valid.
/// After an error the stream cannot be followed any more.
#[inline]
pub fn frame_len(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    frame_len_within(bytes, PACKET_LEN_MAX)
}

/// [`frame_len`] with another limit.
///
/// # Errors
/// As [`frame_len`].
pub fn frame_len_within(bytes: &[u8], len_max: usize) -> Result<Option<usize>, Malformed> {
    let Some((typ, tail)) = number(bytes)? else { return Ok(None) };
    type_number(typ)?;
    let Some((len, tail)) = number(tail)? else { return Ok(None) };
    let head = bytes.len() - tail.len();
    let total = usize::try_from(len).ok().and_then(|len| len.checked_add(head));
    match total {
        Some(total) if total <= len_max => Ok(Some(total)),
        _ => Err(Malformed::TooLong),
    }
}

#[cfg(test)]
mod tests;
