//! The owned name.

use super::{Component, Components, NameRef};
use crate::tlv;
use crate::types;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

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

    /// `value` is the VALUE of a checked name of `len` components.
    pub(super) const fn from_checked(value: Vec<u8>, len: usize) -> Self {
        Self { value, len }
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
