//! Names: a borrowed view, an owned form, components, canonical order.
//!
//! A name is kept as the VALUE of its Name element, the concatenation of its component elements.
//! Canonical order of names is the byte order of these VALUEs.

mod component;
mod owned;
mod tail;
#[cfg(test)]
mod tests;
mod uri;

pub use component::{Component, Components};
pub use owned::Name;
pub use tail::Tail;
pub use uri::UriError;

use crate::tlv::{self, Element, Malformed};
use crate::types;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A view of a checked name. Copying it copies a pointer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NameRef<'a> {
    value: &'a [u8],
    len: usize,
}

/// What one walk over a name finds beside its length.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Digests {
    /// How many `ParametersSha256Digest` components there are.
    pub(crate) parameters: usize,
    /// Offset in the VALUE behind the last `ParametersSha256Digest` component.
    pub(crate) parameters_end: usize,
    /// Offset in the VALUE behind the last `ImplicitSha256Digest` component.
    pub(crate) implicit_end: usize,
}

/// Octets of a digest component with its TYPE and LENGTH.
pub(crate) const DIGEST_COMPONENT_LEN: usize = 34;

impl<'a> NameRef<'a> {
    /// The name without components.
    pub const EMPTY: NameRef<'static> = NameRef { value: &[], len: 0 };

    /// Checks the VALUE of a Name element.
    ///
    /// # Errors
    /// [`Malformed`] when it is not a sequence of name components.
    #[inline]
    pub fn parse_value(value: &'a [u8]) -> Result<Self, Malformed> {
        Ok(Self::scan(value)?.0)
    }

    /// The name with this VALUE and so many components, of which the caller knows both from a name that
    /// was checked before, as a table does that keeps the octets of one. Of other octets the components
    /// are not what they should be; nothing worse follows.
    #[inline(always)]
    #[must_use]
    pub const fn known(value: &'a [u8], len: usize) -> Self {
        Self { value, len }
    }

    /// Checks a whole Name element.
    ///
    /// # Errors
    /// [`Malformed`] when it is not one Name element and nothing else.
    pub fn parse(wire: &'a [u8]) -> Result<Self, Malformed> {
        Self::parse_value(Element::parse_as(wire, types::NAME)?.value)
    }

    /// VALUE of the name with which an Interest or Data begins; nothing of it is checked.
    #[inline]
    #[must_use]
    pub fn value_in(packet: &'a [u8]) -> Option<&'a [u8]> {
        let (inner, _) =
            tlv::take(packet, types::INTEREST).or_else(|| tlv::take(packet, types::DATA))?;
        tlv::take(inner, types::NAME).map(|(value, _)| value)
    }

    /// The name with this VALUE, if no component of it is a digest or has a long TYPE or LENGTH.
    #[inline(always)]
    pub(crate) fn plain(value: &'a [u8]) -> Option<Self> {
        let (mut rest, mut len) = (value, 0);
        while let [3..=252, n @ 0..=252, tail @ ..] = rest {
            rest = tail.get(usize::from(*n)..)?;
            len += 1;
        }
        rest.is_empty().then_some(Self { value, len })
    }

    #[inline]
    pub(crate) fn scan(value: &'a [u8]) -> Result<(Self, Digests), Malformed> {
        let mut digests = Digests::default();
        let mut len = 0;
        let mut rest = value;
        loop {
            // Nearly every component has a one-octet TYPE and LENGTH and is no digest.
            rest = match rest {
                [3..=252, n @ 0..=252, tail @ ..] => {
                    tail.get(usize::from(*n)..).ok_or(Malformed::Truncated)?
                }
                [] => break,
                _ => Self::scan_special(value, rest, &mut digests)?,
            };
            len += 1;
        }
        Ok((Self { value, len }, digests))
    }

    fn scan_special(
        value: &'a [u8],
        rest: &'a [u8],
        digests: &mut Digests,
    ) -> Result<&'a [u8], Malformed> {
        let (component, rest) = Component::split(rest)?;
        let end = value.len() - rest.len();
        match u32::from(component.typ) {
            types::PARAMETERS_SHA256_DIGEST => {
                digests.parameters += 1;
                digests.parameters_end = end;
            }
            types::IMPLICIT_SHA256_DIGEST => digests.implicit_end = end,
            _ => {}
        }
        Ok(rest)
    }

    /// VALUE of the Name element: the component elements, concatenated.
    #[inline]
    #[must_use]
    pub const fn value(self) -> &'a [u8] {
        self.value
    }

    /// Number of components.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there is no component.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The components in order.
    #[inline]
    #[must_use]
    pub const fn components(self) -> Components<'a> {
        Components::new(self.value, self.len)
    }

    /// Component number `index` from the left.
    #[must_use]
    pub fn get(self, index: usize) -> Option<Component<'a>> {
        self.components().nth(index)
    }

    /// The last component.
    #[must_use]
    pub fn last(self) -> Option<Component<'a>> {
        self.get(self.len.checked_sub(1)?)
    }

    /// The first `count` components; the whole name when it has no more.
    #[must_use]
    pub fn prefix(self, count: usize) -> Self {
        if count >= self.len {
            return self;
        }
        let mut components = self.components();
        for _ in components.by_ref().take(count) {}
        let len = self.value.len() - components.rest().len();
        Self { value: self.value.get(..len).unwrap_or_default(), len: count }
    }

    /// The name without its last `count` components.
    #[must_use]
    pub fn drop_last(self, count: usize) -> Self {
        self.prefix(self.len.saturating_sub(count))
    }

    /// The components from number `index` on, as a name.
    #[must_use]
    pub fn suffix(self, index: usize) -> Self {
        let mut components = self.components();
        for _ in components.by_ref().take(index) {}
        Self { value: components.rest(), len: self.len.saturating_sub(index) }
    }

    /// What follows `prefix`, when `prefix` is one.
    #[must_use]
    pub fn strip_prefix(self, prefix: NameRef<'_>) -> Option<Self> {
        let value = self.value.strip_prefix(prefix.value)?;
        Some(Self { value, len: self.len - prefix.len })
    }

    /// Whether `other` starts with all components of this name, or equals it.
    #[inline]
    #[must_use]
    pub fn is_prefix_of(self, other: NameRef<'_>) -> bool {
        // Components delimit themselves: a prefix in octets ends between two of them.
        other.value.starts_with(self.value)
    }

    /// Octets of the Name element.
    #[inline]
    #[must_use]
    pub const fn wire_len(self) -> usize {
        tlv::tlv_len(types::NAME, self.value.len())
    }

    /// Appends the Name element.
    #[inline]
    pub fn write_tlv(self, out: &mut Vec<u8>) {
        tlv::put_tlv(out, types::NAME, self.value);
    }

    /// An owned copy.
    #[must_use]
    pub fn to_name(self) -> Name {
        Name::from_checked(self.value.to_vec(), self.len)
    }

    /// The smallest name in canonical order that is greater than every name with this prefix.
    ///
    /// The successor of the empty name is `/sha256digest=00…00`, as the field defines it.
    #[must_use]
    pub fn successor(self) -> Name {
        let Some(last) = self.last() else {
            return Name::new().with(Component::implicit_digest(&[0; 32]));
        };
        let mut name = self.drop_last(1).to_name();
        let mut value = last.value.to_vec();
        let typ = last.increment(&mut value);
        name.push(Component { typ, value: &value });
        name
    }
}

impl Default for NameRef<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PartialOrd for NameRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NameRef<'_> {
    /// Canonical order.
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(other.value)
    }
}

impl Hash for NameRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl<'a> IntoIterator for NameRef<'a> {
    type Item = Component<'a>;
    type IntoIter = Components<'a>;
    fn into_iter(self) -> Components<'a> {
        self.components()
    }
}

impl PartialEq<Name> for NameRef<'_> {
    fn eq(&self, other: &Name) -> bool {
        self.value == other.value()
    }
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
