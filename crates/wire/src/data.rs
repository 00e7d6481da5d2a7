//! Data: the view, the builder, and what Data answers which Interest.

mod build;
mod quick;
#[cfg(test)]
mod tests;

pub use build::DataBuilder;

use crate::interest::Interest;
use crate::name::{Component, DIGEST_COMPONENT_LEN, NameRef};
use crate::signature::SignatureInfo;
use crate::tlv::{self, Element, Head, Malformed, Reader};
use crate::types;

/// A checked Data.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// The whole element; SHA-256 of it is the implicit digest.
    pub wire: &'a [u8],
    /// Its name; may be empty.
    pub name: NameRef<'a>,
    /// ContentType, 0 when not stated.
    pub content_type: u64,
    /// FreshnessPeriod in milliseconds, 0 when not stated: never fresh in a cache.
    pub freshness_ms: u64,
    /// The last component of the last segment, when the producer tells it.
    pub final_block_id: Option<Component<'a>>,
    /// VALUE of MetaInfo, empty when there is none.
    pub meta_info: &'a [u8],
    /// Content, empty when there is none.
    pub content: &'a [u8],
    /// SignatureValue.
    pub signature_value: &'a [u8],
    /// What is signed: from the Name to the SignatureInfo, both included.
    pub signed_range: &'a [u8],
    /// VALUE of SignatureInfo, checked.
    signature_info: &'a [u8],
}

/// What a forwarder asks of a Data.
#[derive(Debug, Clone, Copy)]
pub struct DataHead<'a> {
    /// [`Data::name`].
    pub name: NameRef<'a>,
    /// [`Data::freshness_ms`].
    pub freshness_ms: u64,
}

impl<'a> From<Data<'a>> for DataHead<'a> {
    #[inline(always)]
    fn from(Data { name, freshness_ms, .. }: Data<'a>) -> Self {
        Self { name, freshness_ms }
    }
}

impl<'a> DataHead<'a> {
    /// As [`Data::parse`]; where the name is `expected`, its components are not looked at again, and
    /// that is said.
    ///
    /// # Errors
    /// As [`Data::parse`].
    #[inline]
    pub fn parse_expecting(
        wire: &'a [u8],
        expected: Option<NameRef<'_>>,
    ) -> Result<(Self, bool), Malformed> {
        match quick::parse(wire, expected) {
            Some((data, is_expected)) => Ok((data.into(), is_expected)),
            None => Data::parse_any(wire).map(|data| (data.into(), false)),
        }
    }
}

/// Positions of the elements in the order of the grammar.
mod rank {
    pub(super) const NAME: u8 = 1;
    pub(super) const META_INFO: u8 = 2;
    pub(super) const CONTENT: u8 = 3;
    pub(super) const SIGNATURE_INFO: u8 = 4;
    pub(super) const SIGNATURE_VALUE: u8 = 5;
}

impl<'a> Data<'a> {
    /// Checks a whole Data element. The signature is not verified, its type may be any.
    ///
    /// # Errors
    /// [`Malformed`] by the rules of packet format v0.3: unknown or misplaced critical elements
    /// refuse the packet, non-critical ones are skipped.
    #[inline]
    pub fn parse(wire: &'a [u8]) -> Result<Self, Malformed> {
        match quick::parse(wire, None) {
            Some((data, _)) => Ok(data),
            None => Self::parse_any(wire),
        }
    }

    /// As [`Data::parse`], for every layout.
    #[cold]
    fn parse_any(wire: &'a [u8]) -> Result<Self, Malformed> {
        let outer = Head::outer(wire, types::DATA)?;
        let first = Head::at(wire, outer.value)?;
        if first.typ != types::NAME {
            return Err(Malformed::Missing(types::NAME));
        }
        let mut data = Self {
            wire,
            name: NameRef::parse_value(first.of(wire))?,
            content_type: types::CONTENT_BLOB,
            freshness_ms: 0,
            final_block_id: None,
            meta_info: &[],
            content: &[],
            signature_value: &[],
            signed_range: &[],
            signature_info: &[],
        };
        let last = data.take_all(outer.value, first.end)?;
        // A checked SignatureInfo is not empty.
        if data.signature_info.is_empty() {
            return Err(Malformed::Missing(types::SIGNATURE_INFO));
        }
        if last != rank::SIGNATURE_VALUE {
            return Err(Malformed::Missing(types::SIGNATURE_VALUE));
        }
        Ok(data)
    }

    /// Takes the elements behind the name, from offset `at` on; `start` is the offset of the name.
    /// Returns the rank of the last one.
    #[inline]
    fn take_all(&mut self, start: usize, mut at: usize) -> Result<u8, Malformed> {
        let wire = self.wire;
        let mut last = rank::NAME;
        while at < wire.len() {
            let head = Head::at(wire, at)?;
            let value = head.of(wire);
            last = match head.typ {
                types::META_INFO if last < rank::META_INFO => {
                    self.take_meta_info(value)?;
                    rank::META_INFO
                }
                types::CONTENT if last < rank::CONTENT => {
                    self.content = value;
                    rank::CONTENT
                }
                types::SIGNATURE_INFO if last < rank::SIGNATURE_INFO => {
                    SignatureInfo::check(value)?;
                    self.signature_info = value;
                    rank::SIGNATURE_INFO
                }
                types::SIGNATURE_VALUE if last < rank::SIGNATURE_VALUE => {
                    self.signature_value = value;
                    self.signed_range = wire.get(start..at).unwrap_or_default();
                    rank::SIGNATURE_VALUE
                }
                typ @ (types::NAME | 20..=23) => {
                    tlv::misplaced(typ)?;
                    last
                }
                typ => {
                    tlv::unknown(typ)?;
                    last
                }
            };
            at = head.end;
        }
        Ok(last)
    }

    #[inline]
    fn take_meta_info(&mut self, value: &'a [u8]) -> Result<(), Malformed> {
        self.meta_info = value;
        let mut last = 0;
        let mut at = 0;
        while at < value.len() {
            let head = Head::at(value, at)?;
            at = head.end;
            let inner = head.of(value);
            last = match head.typ {
                types::CONTENT_TYPE if last < 1 => {
                    self.content_type = tlv::nni(inner)?;
                    1
                }
                types::FRESHNESS_PERIOD if last < 2 => {
                    self.freshness_ms = tlv::nni(inner)?;
                    2
                }
                types::FINAL_BLOCK_ID if last < 3 => {
                    self.final_block_id = Some(only_component(inner)?);
                    3
                }
                // What an application added, whatever its parity.
                128..=252 => last,
                typ @ types::CONTENT_TYPE..=types::FINAL_BLOCK_ID => {
                    tlv::misplaced(typ)?;
                    last
                }
                typ => {
                    tlv::unknown(typ)?;
                    last
                }
            };
        }
        Ok(())
    }

    /// SignatureInfo, read when asked for.
    #[must_use]
    pub fn signature_info(&self) -> SignatureInfo<'a> {
        // It was checked, so this does not fail.
        SignatureInfo::parse(self.signature_info).unwrap_or_default()
    }

    /// The elements that an application added to MetaInfo (types 128 to 252).
    pub fn app_meta_info(&self) -> impl Iterator<Item = Element<'a>> + use<'a> {
        Reader::new(self.meta_info)
            .filter_map(Result::ok)
            .filter(|element| (128..=252).contains(&element.typ))
    }

    /// Whether this is the last segment by its own statement.
    #[must_use]
    pub fn is_final_block(&self) -> bool {
        self.final_block_id.is_some() && self.final_block_id == self.name.last()
    }
}

/// The one component that `value` is.
#[inline]
fn only_component(value: &[u8]) -> Result<Component<'_>, Malformed> {
    let (component, rest) = Component::split(value)?;
    if rest.is_empty() { Ok(component) } else { Err(Malformed::Trailing) }
}

/// Whether `data` answers `interest`. MustBeFresh does not matter here: only caches obey it.
///
/// `implicit_digest`, SHA-256 of the whole Data, is called only when the Interest asks for one.
#[inline]
#[must_use]
pub fn matches(
    interest: &Interest<'_>,
    data: &Data<'_>,
    implicit_digest: impl FnOnce() -> [u8; 32],
) -> bool {
    let (wanted, given) = (interest.name.value(), data.name.value());
    if interest.name.len() == data.name.len() + 1 {
        // A name longer by one component can only be the full name.
        return interest.implicit_digest().is_some_and(|digest| {
            wanted.len() == given.len() + DIGEST_COMPONENT_LEN
                && wanted.starts_with(given)
                && *digest == implicit_digest()
        });
    }
    if interest.can_be_prefix { given.starts_with(wanted) } else { given == wanted }
}
