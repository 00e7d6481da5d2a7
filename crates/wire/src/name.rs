//! Names: a borrowed view, an owned form, components, canonical order.
//!
//! A name is kept as the VALUE of its Name element, the concatenation of its component elements.
//! Canonical order of names is the byte order of these VALUEs.

mod component;
#[cfg(test)]
mod tests;
mod uri;

pub use component::{Component, Components};
pub use uri::UriError;

use crate::tlv::{self, Element, Malformed};
use crate::types;
use std::borrow::Borrow;
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

    /// Checks a whole Name element.
    ///
    /// # Errors
    /// [`Malformed`] when it is not one Name element and nothing else.
    pub fn parse(wire: &'a [u8]) -> Result<Self, Malformed> {
        Self::parse_value(Element::parse_as(wire, types::NAME)?.value)
    }

    #[inline]
    pub(crate) fn scan(value: &'a [u8]) -> Result<(Self, Digests), Malformed> {
        let mut digests = Digests::default();
        let mut len = 0;
        let mut rest = value;
        while !rest.is_empty() {
            // Nearly every component has a one-octet TYPE and LENGTH and is no digest.
            rest = match rest {
                [3..=252, n @ 0..=252, tail @ ..] => {
                    tail.get(usize::from(*n)..).ok_or(Malformed::Truncated)?
                }
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
        Name { value: self.value.to_vec(), len: self.len }
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
        self.value == other.value
    }
}

/// An owned name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Name {
    value: Vec<u8>,
    len: usize,
}

impl Name {
    /// The name without components.
    #[must_use]
    pub const fn new() -> Self {
        Self { value: Vec::new(), len: 0 }
    }

    /// The view of this name.
    #[inline]
    #[must_use]
    // Not the trait `AsRef`: the view is a value, not a reference.
    #[allow(clippy::should_implement_trait)]
    pub fn as_ref(&self) -> NameRef<'_> {
        NameRef { value: &self.value, len: self.len }
    }

    /// VALUE of the Name element.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Number of components.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no component.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The components in order.
    #[must_use]
    pub fn components(&self) -> Components<'_> {
        self.as_ref().components()
    }

    /// Appends a component.
    pub fn push(&mut self, component: Component<'_>) -> &mut Self {
        component.write(&mut self.value);
        self.len += 1;
        self
    }

    /// Removes the last component.
    pub fn pop(&mut self) -> &mut Self {
        self.truncate(self.len.saturating_sub(1))
    }

    /// Keeps the first `count` components.
    pub fn truncate(&mut self, count: usize) -> &mut Self {
        let prefix = self.as_ref().prefix(count);
        let (octets, len) = (prefix.value.len(), prefix.len);
        self.value.truncate(octets);
        self.len = len;
        self
    }

    /// Appends all components of `other`.
    pub fn append(&mut self, other: NameRef<'_>) -> &mut Self {
        self.value.extend_from_slice(other.value);
        self.len += other.len;
        self
    }

    /// This name with one more component.
    #[must_use]
    pub fn with(mut self, component: Component<'_>) -> Self {
        self.push(component);
        self
    }

    /// This name followed by `other`.
    #[must_use]
    pub fn join(mut self, other: NameRef<'_>) -> Self {
        self.append(other);
        self
    }

    /// Appends a generic component.
    pub fn append_generic(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        self.push(Component::generic(value.as_ref()))
    }

    /// Appends a keyword component, written `32=…`.
    pub fn append_keyword(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        self.push(Component::keyword(value.as_ref()))
    }

    /// Appends a component of type `typ` that holds a number.
    pub fn append_number(&mut self, typ: u32, n: u64) -> &mut Self {
        tlv::put_nni_tlv(&mut self.value, typ, n);
        self.len += 1;
        self
    }

    /// Appends a segment number, written `seg=…`.
    pub fn append_segment(&mut self, n: u64) -> &mut Self {
        self.append_number(types::SEGMENT_COMPONENT, n)
    }

    /// Appends a byte offset, written `off=…`.
    pub fn append_byte_offset(&mut self, n: u64) -> &mut Self {
        self.append_number(types::BYTE_OFFSET_COMPONENT, n)
    }

    /// Appends a version, written `v=…`; versions taken from a clock count milliseconds or
    /// microseconds, so they are only compared.
    pub fn append_version(&mut self, n: u64) -> &mut Self {
        self.append_number(types::VERSION_COMPONENT, n)
    }

    /// Appends a timestamp in microseconds since the Unix epoch, written `t=…`.
    pub fn append_timestamp(&mut self, us: u64) -> &mut Self {
        self.append_number(types::TIMESTAMP_COMPONENT, us)
    }

    /// Appends a sequence number, written `seq=…`.
    pub fn append_sequence_num(&mut self, n: u64) -> &mut Self {
        self.append_number(types::SEQUENCE_NUM_COMPONENT, n)
    }

    /// Appends an implicit digest.
    pub fn append_implicit_digest(&mut self, digest: &[u8; 32]) -> &mut Self {
        self.push(Component::implicit_digest(digest))
    }

    /// Appends a parameters digest.
    pub fn append_parameters_digest(&mut self, digest: &[u8; 32]) -> &mut Self {
        self.push(Component::parameters_digest(digest))
    }
}

impl From<NameRef<'_>> for Name {
    fn from(name: NameRef<'_>) -> Self {
        name.to_name()
    }
}

impl<'a> From<&'a Name> for NameRef<'a> {
    fn from(name: &'a Name) -> Self {
        name.as_ref()
    }
}

impl<'a> FromIterator<Component<'a>> for Name {
    fn from_iter<I: IntoIterator<Item = Component<'a>>>(components: I) -> Self {
        let mut name = Self::new();
        for component in components {
            name.push(component);
        }
        name
    }
}

/// A map keyed by names is asked with the VALUE of a [`NameRef`], without a copy.
impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.value
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    /// Canonical order.
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
}

impl PartialEq<NameRef<'_>> for Name {
    fn eq(&self, other: &NameRef<'_>) -> bool {
        self.value == other.value
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
