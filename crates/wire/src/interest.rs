//! Interests: the view, and the copy that a forwarder sends on.

mod build;
mod forward;
mod hint;
#[cfg(test)]
mod tests;

pub use build::InterestBuilder;
pub use hint::ForwardingHint;

use crate::name::{DIGEST_COMPONENT_LEN, Digests, NameRef};
use crate::signature::SignatureInfo;
use crate::tlv::{self, Element, Malformed, Reader};
use crate::types;

/// InterestLifetime of an Interest that states none, in milliseconds.
pub const LIFETIME_DEFAULT_MS: u64 = 4000;

/// A checked Interest.
#[derive(Debug, Clone, Copy)]
pub struct Interest<'a> {
    /// The whole element.
    pub wire: &'a [u8],
    /// Its name, at least one component.
    pub name: NameRef<'a>,
    /// Whether Data under the name answer, not only Data of the name.
    pub can_be_prefix: bool,
    /// Whether a cache may only answer with fresh Data.
    pub must_be_fresh: bool,
    /// Names towards which the Interest can be sent, preferred first; empty when there are none.
    pub forwarding_hint: ForwardingHint<'a>,
    /// Nonce, when there is one.
    pub nonce: Option<[u8; 4]>,
    /// InterestLifetime in milliseconds, when stated.
    pub lifetime_ms: Option<u64>,
    /// HopLimit, when there is one.
    pub hop_limit: Option<u8>,
    /// ApplicationParameters, when present (they may be empty).
    pub app_parameters: Option<&'a [u8]>,
    /// InterestSignatureInfo.
    pub signature_info: Option<SignatureInfo<'a>>,
    /// InterestSignatureValue.
    pub signature_value: Option<&'a [u8]>,
    at: Offsets,
    digests: Digests,
}

/// Where things are, counted from the start of the element. 0 stands for "absent".
#[derive(Debug, Clone, Copy, Default)]
struct Offsets {
    /// Of VALUE.
    value: usize,
    /// Of the ForwardingHint element and its length.
    hint: usize,
    hint_len: usize,
    /// Of the four octets of the Nonce.
    nonce: usize,
    /// Where a Nonce element belongs when there is none.
    nonce_slot: usize,
    /// Of the octet of the HopLimit.
    hop_limit: usize,
    /// Where a HopLimit element belongs when there is none.
    hop_limit_slot: usize,
    /// Of the ApplicationParameters element.
    parameters: usize,
    /// Of the InterestSignatureValue element.
    signature_value: usize,
}

/// Position of a known element in the order of the grammar; 0 for an unknown one.
#[inline]
const fn rank(typ: u32) -> u8 {
    match typ {
        types::NAME => 1,
        types::CAN_BE_PREFIX => 2,
        types::MUST_BE_FRESH => 3,
        types::FORWARDING_HINT => 4,
        types::NONCE => 5,
        types::INTEREST_LIFETIME => 6,
        types::HOP_LIMIT => 7,
        types::APPLICATION_PARAMETERS => 8,
        types::INTEREST_SIGNATURE_INFO => 9,
        types::INTEREST_SIGNATURE_VALUE => 10,
        _ => 0,
    }
}

impl<'a> Interest<'a> {
    /// Checks a whole Interest element.
    ///
    /// The parameters digest is not computed here (see [`Interest::parameters_range`]).
    ///
    /// # Errors
    /// [`Malformed`] by the rules of packet format v0.3: unknown or misplaced critical elements
    /// refuse the packet, non-critical ones are skipped.
    pub fn parse(wire: &'a [u8]) -> Result<Self, Malformed> {
        let outer = Element::parse_as(wire, types::INTEREST)?;
        let value_at = wire.len() - outer.value.len();
        let mut reader = Reader::new(outer.value);
        let (name, digests) = NameRef::scan(reader.expect(types::NAME)?.value)?;
        if name.is_empty() {
            return Err(Malformed::EmptyName);
        }
        let slot = wire.len() - reader.rest().len();
        let at = Offsets {
            value: value_at,
            nonce_slot: slot,
            hop_limit_slot: slot,
            ..Offsets::default()
        };
        let mut interest = Self {
            wire,
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: ForwardingHint::default(),
            nonce: None,
            lifetime_ms: None,
            hop_limit: None,
            app_parameters: None,
            signature_info: None,
            signature_value: None,
            at,
            digests,
        };
        let mut last = 1;
        while !reader.is_empty() {
            let element = reader.element()?;
            let rank = rank(element.typ);
            if rank > last {
                last = rank;
                interest.take(element, wire.len() - reader.rest().len())?;
            } else if tlv::is_critical(element.typ) {
                return Err(match rank {
                    0 => Malformed::UnknownCritical(element.typ),
                    _ => Malformed::OutOfOrder(element.typ),
                });
            }
        }
        if usize::from(interest.app_parameters.is_some()) != digests.parameters {
            return Err(Malformed::ParametersDigest);
        }
        Ok(interest)
    }

    /// Takes a known element in its place; `end` is the offset behind it.
    #[inline]
    fn take(&mut self, element: Element<'a>, end: usize) -> Result<(), Malformed> {
        let value = element.value;
        match element.typ {
            types::CAN_BE_PREFIX | types::MUST_BE_FRESH => {
                if !value.is_empty() {
                    return Err(Malformed::Length(element.typ));
                }
                let is_prefix = element.typ == types::CAN_BE_PREFIX;
                self.can_be_prefix |= is_prefix;
                self.must_be_fresh |= !is_prefix;
                (self.at.nonce_slot, self.at.hop_limit_slot) = (end, end);
            }
            types::FORWARDING_HINT => {
                self.forwarding_hint = ForwardingHint::parse(value)?;
                self.at.hint = end - element.wire.len();
                self.at.hint_len = element.wire.len();
                (self.at.nonce_slot, self.at.hop_limit_slot) = (end, end);
            }
            types::NONCE => {
                let nonce = value.try_into().map_err(|_| Malformed::Length(types::NONCE))?;
                self.nonce = Some(nonce);
                self.at.nonce = end - 4;
                self.at.hop_limit_slot = end;
            }
            types::INTEREST_LIFETIME => {
                self.lifetime_ms = Some(tlv::nni(value)?);
                self.at.hop_limit_slot = end;
            }
            types::HOP_LIMIT => {
                let [hop_limit] = value else { return Err(Malformed::Length(types::HOP_LIMIT)) };
                self.hop_limit = Some(*hop_limit);
                self.at.hop_limit = end - 1;
            }
            _ => self.take_parameters(element, end)?,
        }
        Ok(())
    }

    fn take_parameters(&mut self, element: Element<'a>, end: usize) -> Result<(), Malformed> {
        let start = end - element.wire.len();
        match element.typ {
            types::APPLICATION_PARAMETERS => {
                self.app_parameters = Some(element.value);
                self.at.parameters = start;
            }
            // Without parameters the signature has no place; both elements are not critical.
            _ if self.app_parameters.is_none() => {}
            types::INTEREST_SIGNATURE_INFO => {
                self.signature_info = Some(SignatureInfo::parse(element.value)?);
            }
            _ => {
                self.signature_value = Some(element.value);
                self.at.signature_value = start;
            }
        }
        Ok(())
    }

    /// InterestLifetime, or the default of 4000 ms.
    #[inline]
    #[must_use]
    pub fn lifetime_or_default(&self) -> u64 {
        self.lifetime_ms.unwrap_or(LIFETIME_DEFAULT_MS)
    }

    /// Offset in `wire` of the four octets of the Nonce.
    #[inline]
    #[must_use]
    pub fn nonce_offset(&self) -> Option<usize> {
        Some(self.at.nonce).filter(|at| *at != 0)
    }

    /// Offset in `wire` of the octet of the HopLimit.
    #[inline]
    #[must_use]
    pub fn hop_limit_offset(&self) -> Option<usize> {
        Some(self.at.hop_limit).filter(|at| *at != 0)
    }

    /// The implicit digest that the name ends with, if it does.
    #[inline]
    #[must_use]
    pub fn implicit_digest(&self) -> Option<&'a [u8; 32]> {
        let value = self.name.value();
        if self.digests.implicit_end != value.len() {
            return None;
        }
        value.last_chunk::<32>()
    }

    /// What the parameters digest covers: from the ApplicationParameters element to the end.
    #[must_use]
    pub fn parameters_range(&self) -> Option<&'a [u8]> {
        self.app_parameters.and_then(|_| self.wire.get(self.at.parameters..))
    }

    /// The parameters digest in the name; present exactly when parameters are.
    #[must_use]
    pub fn parameters_digest(&self) -> Option<&'a [u8; 32]> {
        self.app_parameters?;
        self.name.value().get(..self.digests.parameters_end)?.last_chunk::<32>()
    }

    /// Whether the Interest is signed in the format of v0.3: SignatureInfo and SignatureValue are
    /// present and the parameters digest is the last component.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.signed_ranges().is_some()
    }

    /// The two ranges whose concatenation is signed (format v0.3); `None` when not
    /// [signed](Interest::is_signed).
    #[must_use]
    pub fn signed_ranges(&self) -> Option<[&'a [u8]; 2]> {
        self.signature_info?;
        self.signature_value?;
        let name = self.name.value();
        if self.digests.parameters_end != name.len() {
            return None;
        }
        let components = name.get(..name.len().checked_sub(DIGEST_COMPONENT_LEN)?)?;
        let parameters = self.wire.get(self.at.parameters..self.at.signature_value)?;
        Some([components, parameters])
    }
}
