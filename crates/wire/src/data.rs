//! Data: the view, the builder, and what Data answers which Interest.

mod build;
#[cfg(test)]
mod tests;

pub use build::DataBuilder;

use crate::interest::Interest;
use crate::name::{Component, DIGEST_COMPONENT_LEN, NameRef};
use crate::signature::SignatureInfo;
use crate::tlv::{self, Element, Malformed, Reader};
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
    /// SignatureInfo.
    pub signature_info: SignatureInfo<'a>,
    /// SignatureValue.
    pub signature_value: &'a [u8],
    /// What is signed: from the Name to the SignatureInfo, both included.
    pub signed_range: &'a [u8],
}

/// Position of a known element in the order of the grammar; 0 for an unknown one.
#[inline]
const fn rank(typ: u32) -> u8 {
    match typ {
        types::NAME => 1,
        types::META_INFO => 2,
        types::CONTENT => 3,
        types::SIGNATURE_INFO => 4,
        types::SIGNATURE_VALUE => 5,
        _ => 0,
    }
}

const fn misplaced(typ: u32, rank: u8) -> Result<(), Malformed> {
    match (tlv::is_critical(typ), rank) {
        (false, _) => Ok(()),
        (true, 0) => Err(Malformed::UnknownCritical(typ)),
        (true, _) => Err(Malformed::OutOfOrder(typ)),
    }
}

impl<'a> Data<'a> {
    /// Checks a whole Data element. The signature is not verified, its type may be any.
    ///
    /// # Errors
    /// [`Malformed`] by the rules of packet format v0.3: unknown or misplaced critical elements
    /// refuse the packet, non-critical ones are skipped.
    pub fn parse(wire: &'a [u8]) -> Result<Self, Malformed> {
        let outer = Element::parse_as(wire, types::DATA)?;
        let mut reader = Reader::new(outer.value);
        let name = NameRef::parse_value(reader.expect(types::NAME)?.value)?;
        let mut data = Self {
            wire,
            name,
            content_type: types::CONTENT_BLOB,
            freshness_ms: 0,
            final_block_id: None,
            meta_info: &[],
            content: &[],
            signature_info: SignatureInfo::default(),
            signature_value: &[],
            signed_range: &[],
        };
        let mut last = 1;
        let mut has_info = false;
        while !reader.is_empty() {
            let element = reader.element()?;
            let rank = rank(element.typ);
            if rank <= last {
                misplaced(element.typ, rank)?;
                continue;
            }
            last = rank;
            match element.typ {
                types::META_INFO => data.take_meta_info(element.value)?,
                types::CONTENT => data.content = element.value,
                types::SIGNATURE_INFO => {
                    data.signature_info = SignatureInfo::parse(element.value)?;
                    has_info = true;
                }
                _ => {
                    data.signature_value = element.value;
                    let signed = outer.value.len() - reader.rest().len() - element.wire.len();
                    data.signed_range = outer.value.get(..signed).unwrap_or_default();
                }
            }
        }
        match (has_info, last) {
            (true, 5) => Ok(data),
            (true, _) => Err(Malformed::Missing(types::SIGNATURE_VALUE)),
            (false, _) => Err(Malformed::Missing(types::SIGNATURE_INFO)),
        }
    }

    fn take_meta_info(&mut self, value: &'a [u8]) -> Result<(), Malformed> {
        self.meta_info = value;
        let mut last = 0;
        let mut reader = Reader::new(value);
        while !reader.is_empty() {
            let element = reader.element()?;
            let rank = match element.typ {
                types::CONTENT_TYPE => 1,
                types::FRESHNESS_PERIOD => 2,
                types::FINAL_BLOCK_ID => 3,
                // What an application added, whatever its parity.
                128..=252 => continue,
                _ => 0,
            };
            if rank <= last {
                misplaced(element.typ, rank)?;
                continue;
            }
            last = rank;
            match element.typ {
                types::CONTENT_TYPE => self.content_type = element.nni()?,
                types::FRESHNESS_PERIOD => self.freshness_ms = element.nni()?,
                _ => {
                    let component = Component::from_element(Element::parse(element.value)?)?;
                    self.final_block_id = Some(component);
                }
            }
        }
        Ok(())
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

/// Whether `data` answers `interest`. MustBeFresh does not matter here: only caches heed it.
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
