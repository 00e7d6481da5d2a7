//! One name component.

use crate::tlv::{self, Element, Malformed};
use crate::types;
use std::cmp::Ordering;
use std::fmt;

/// One name component.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Component<'a> {
    /// TYPE, 1 to 65535.
    pub typ: u16,
    /// VALUE; exactly 32 octets for the two digest types.
    pub value: &'a [u8],
}

// No truncation: these types of the registry are below 65536.
#[allow(clippy::cast_possible_truncation)]
const fn short(typ: u32) -> u16 {
    typ as u16
}

impl<'a> Component<'a> {
    /// A generic component.
    #[must_use]
    pub const fn generic(value: &'a [u8]) -> Self {
        Self { typ: short(types::GENERIC_COMPONENT), value }
    }

    /// A keyword component.
    #[must_use]
    pub const fn keyword(value: &'a [u8]) -> Self {
        Self { typ: short(types::KEYWORD_COMPONENT), value }
    }

    /// An implicit digest: SHA-256 of a whole Data.
    #[must_use]
    pub const fn implicit_digest(digest: &'a [u8; 32]) -> Self {
        Self { typ: short(types::IMPLICIT_SHA256_DIGEST), value: digest }
    }

    /// A parameters digest: SHA-256 of the parameters of an Interest.
    #[must_use]
    pub const fn parameters_digest(digest: &'a [u8; 32]) -> Self {
        Self { typ: short(types::PARAMETERS_SHA256_DIGEST), value: digest }
    }

    /// Splits the first component off `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when `bytes` does not start with a component.
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let (element, rest) = Element::split(bytes)?;
        Ok((Self::from_element(element)?, rest))
    }

    /// The component that `element` is.
    ///
    /// # Errors
    /// [`Malformed`] when its TYPE or the length of a digest does not fit.
    #[inline]
    pub fn from_element(element: Element<'a>) -> Result<Self, Malformed> {
        let typ = u16::try_from(element.typ).map_err(|_| Malformed::ComponentType(element.typ))?;
        if typ <= 2 && element.value.len() != 32 {
            return Err(Malformed::Length(element.typ));
        }
        Ok(Self { typ, value: element.value })
    }

    /// VALUE as a number, when its length is one of a `NonNegativeInteger`.
    #[must_use]
    pub fn as_number(self) -> Option<u64> {
        tlv::nni(self.value).ok()
    }

    fn as_typed(self, typ: u32) -> Option<u64> {
        if u32::from(self.typ) == typ { self.as_number() } else { None }
    }

    /// The segment number, when it is one.
    #[must_use]
    pub fn as_segment(self) -> Option<u64> {
        self.as_typed(types::SEGMENT_COMPONENT)
    }

    /// The byte offset, when it is one.
    #[must_use]
    pub fn as_byte_offset(self) -> Option<u64> {
        self.as_typed(types::BYTE_OFFSET_COMPONENT)
    }

    /// The version, when it is one.
    #[must_use]
    pub fn as_version(self) -> Option<u64> {
        self.as_typed(types::VERSION_COMPONENT)
    }

    /// The timestamp, when it is one.
    #[must_use]
    pub fn as_timestamp(self) -> Option<u64> {
        self.as_typed(types::TIMESTAMP_COMPONENT)
    }

    /// The sequence number, when it is one.
    #[must_use]
    pub fn as_sequence_num(self) -> Option<u64> {
        self.as_typed(types::SEQUENCE_NUM_COMPONENT)
    }

    /// The number behind `marker` in a generic component: the convention before typed components
    /// (0x00 segment, 0xFB byte offset, 0xFC timestamp, 0xFD version, 0xFE sequence number).
    #[must_use]
    pub fn as_marked(self, marker: u8) -> Option<u64> {
        match self.value.split_first() {
            Some((first, number)) if *first == marker && self.is_generic() => tlv::nni(number).ok(),
            _ => None,
        }
    }

    /// Whether this is a generic component.
    #[must_use]
    pub fn is_generic(self) -> bool {
        u32::from(self.typ) == types::GENERIC_COMPONENT
    }

    /// Whether this is the keyword `value`.
    #[must_use]
    pub fn is_keyword(self, value: &[u8]) -> bool {
        u32::from(self.typ) == types::KEYWORD_COMPONENT && self.value == value
    }

    /// Whether this is an implicit digest.
    #[must_use]
    pub fn is_implicit_digest(self) -> bool {
        u32::from(self.typ) == types::IMPLICIT_SHA256_DIGEST
    }

    /// Whether this is a parameters digest.
    #[must_use]
    pub fn is_parameters_digest(self) -> bool {
        u32::from(self.typ) == types::PARAMETERS_SHA256_DIGEST
    }

    /// Octets of the element.
    #[must_use]
    pub fn wire_len(self) -> usize {
        tlv::tlv_len(u32::from(self.typ), self.value.len())
    }

    /// Appends the element.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        tlv::put_tlv(out, u32::from(self.typ), self.value);
    }

    /// Turns `value`, a copy of this VALUE, into that of the next component; returns its TYPE.
    pub(crate) fn increment(self, value: &mut Vec<u8>) -> u16 {
        for octet in value.iter_mut().rev() {
            *octet = octet.wrapping_add(1);
            if *octet != 0 {
                return self.typ;
            }
        }
        if self.typ > 2 {
            value.push(0);
            return self.typ;
        }
        // A digest cannot grow: the next TYPE follows, whose smallest VALUE is 32 zeros or empty.
        if self.typ == 2 {
            value.clear();
        }
        self.typ + 1
    }
}

impl PartialOrd for Component<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Component<'_> {
    /// Canonical order: TYPE, then length, then octets.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |c: &Self| (c.typ, c.value.len());
        key(self).cmp(&key(other)).then_with(|| self.value.cmp(other.value))
    }
}

impl fmt::Debug for Component<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The components of a checked name.
#[derive(Debug, Clone, Copy)]
pub struct Components<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Components<'a> {
    pub(crate) const fn new(rest: &'a [u8], len: usize) -> Self {
        Self { rest, len }
    }

    /// The component elements not yielded yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;

    #[inline]
    fn next(&mut self) -> Option<Component<'a>> {
        // The name was checked, so this fails only at its end.
        let (component, rest) = Component::split(self.rest).ok()?;
        self.rest = rest;
        self.len -= 1;
        Some(component)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for Components<'_> {}
