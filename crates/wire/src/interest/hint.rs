//! Forwarding hints.

use crate::name::NameRef;
use crate::tlv::{self, Element, Malformed, Reader};
use crate::types;

/// The delegations of a ForwardingHint (or of the content of a LINK), preferred first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForwardingHint<'a> {
    value: &'a [u8],
}

impl<'a> ForwardingHint<'a> {
    /// Checks the VALUE of a ForwardingHint: names, or delegations of the old form.
    ///
    /// # Errors
    /// [`Malformed`] when it holds something else that is critical, or no name.
    pub fn parse(value: &'a [u8]) -> Result<Self, Malformed> {
        let mut names = 0;
        for element in Reader::new(value) {
            let element = element?;
            match element.typ {
                types::NAME => {
                    NameRef::parse_value(element.value)?;
                    names += 1;
                }
                types::DELEGATION => {
                    let name = delegation(element.value)?;
                    NameRef::parse_value(name.value)?;
                    names += 1;
                }
                typ if tlv::is_critical(typ) => return Err(Malformed::UnknownCritical(typ)),
                _ => {}
            }
        }
        if names == 0 { Err(Malformed::Missing(types::NAME)) } else { Ok(Self { value }) }
    }

    /// Whether there is no delegation.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// VALUE of the element.
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The names, preferred first.
    pub fn iter(&self) -> impl Iterator<Item = NameRef<'a>> + use<'a> {
        Reader::new(self.value).filter_map(|element| {
            let element = element.ok()?;
            let value = match element.typ {
                types::NAME => element.value,
                types::DELEGATION => delegation(element.value).ok()?.value,
                _ => return None,
            };
            NameRef::parse_value(value).ok()
        })
    }
}

/// The Name element in a Delegation of the old form: Preference, Name.
fn delegation(value: &[u8]) -> Result<Element<'_>, Malformed> {
    const PREFERENCE: u32 = 30;
    let mut reader = Reader::new(value);
    reader.expect(PREFERENCE)?.nni()?;
    reader.expect(types::NAME)
}
