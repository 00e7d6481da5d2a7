//! Interests: the view, and the copy that a forwarder sends on.

mod build;
mod forward;

pub use forward::Hint;
mod hint;
mod quick;
#[cfg(test)]
mod tests;

pub use build::InterestBuilder;
pub use hint::ForwardingHint;

use crate::name::{DIGEST_COMPONENT_LEN, NameRef};
use crate::signature::SignatureInfo;
use crate::tlv::{self, Head, Malformed};
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
    /// InterestSignatureValue.
    pub signature_value: Option<&'a [u8]>,
    /// VALUE of InterestSignatureInfo, checked; empty when there is none.
    signature_info: &'a [u8],
    at: Offsets,
}

/// Where things are, counted from the start of the element. 0 stands for "absent".
///
/// 32 bits each, so that the view stays small; longer elements are refused.
#[derive(Debug, Clone, Copy, Default)]
struct Offsets {
    /// Of the four octets of the Nonce.
    nonce: u32,
    /// Of the octet of the HopLimit.
    hop_limit: u32,
    /// Of the ApplicationParameters element.
    parameters: u32,
    /// Of the InterestSignatureValue element.
    signature_value: u32,
    /// In the VALUE of the name, behind the last ParametersSha256Digest component.
    parameters_digest_end: u32,
    /// In the VALUE of the name, behind the last ImplicitSha256Digest component.
    implicit_digest_end: u32,
}

/// An offset within an element that [`Interest::parse`] found short enough.
#[inline]
#[allow(clippy::cast_possible_truncation)]
const fn offset(at: usize) -> u32 {
    at as u32
}

/// Positions of the elements in the order of the grammar.
mod rank {
    pub(super) const NAME: u8 = 1;
    pub(super) const CAN_BE_PREFIX: u8 = 2;
    pub(super) const MUST_BE_FRESH: u8 = 3;
    pub(super) const FORWARDING_HINT: u8 = 4;
    pub(super) const NONCE: u8 = 5;
    pub(super) const INTEREST_LIFETIME: u8 = 6;
    pub(super) const HOP_LIMIT: u8 = 7;
    pub(super) const APPLICATION_PARAMETERS: u8 = 8;
    pub(super) const SIGNATURE_INFO: u8 = 9;
    pub(super) const SIGNATURE_VALUE: u8 = 10;
}

/// Offset of an element in shortest form, from that of its VALUE.
const fn start_of(head: Head) -> usize {
    let len = head.end - head.value;
    head.end - tlv::tlv_len(head.typ, len)
}

/// An element that is present or absent and holds nothing.
#[inline]
const fn flag(value: &[u8], typ: u32) -> Result<bool, Malformed> {
    if value.is_empty() { Ok(true) } else { Err(Malformed::Length(typ)) }
}

impl<'a> Interest<'a> {
    /// Checks a whole Interest element.
    ///
    /// The parameters digest is not computed here (see [`Interest::parameters_range`]).
    ///
    /// # Errors
    /// [`Malformed`] by the rules of packet format v0.3: unknown or misplaced critical elements
    /// refuse the packet, non-critical ones are skipped.
    #[inline]
    pub fn parse(wire: &'a [u8]) -> Result<Self, Malformed> {
        match quick::parse(wire) {
            Some(interest) => Ok(interest),
            None => Self::parse_any(wire),
        }
    }

    /// As [`Interest::parse`], for every layout.
    #[cold]
    fn parse_any(wire: &'a [u8]) -> Result<Self, Malformed> {
        let outer = Head::outer(wire, types::INTEREST)?;
        if u32::try_from(wire.len()).is_err() {
            return Err(Malformed::TooLong);
        }
        let first = Head::at(wire, outer.value)?;
        if first.typ != types::NAME {
            return Err(Malformed::Missing(types::NAME));
        }
        let (name, digests) = NameRef::scan(first.of(wire))?;
        if name.is_empty() {
            return Err(Malformed::EmptyName);
        }
        let at = Offsets {
            parameters_digest_end: offset(digests.parameters_end),
            implicit_digest_end: offset(digests.implicit_end),
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
            signature_value: None,
            signature_info: &[],
            at,
        };
        interest.take_all(first.end)?;
        if usize::from(interest.app_parameters.is_some()) != digests.parameters {
            return Err(Malformed::ParametersDigest);
        }
        Ok(interest)
    }

    /// Takes the elements behind the name, from offset `at` on.
    #[inline]
    fn take_all(&mut self, mut at: usize) -> Result<(), Malformed> {
        let wire = self.wire;
        let mut last = rank::NAME;
        while at < wire.len() {
            let head = Head::at(wire, at)?;
            at = head.end;
            let value = head.of(wire);
            last = match head.typ {
                types::MUST_BE_FRESH if last < rank::MUST_BE_FRESH => {
                    self.must_be_fresh = flag(value, head.typ)?;
                    rank::MUST_BE_FRESH
                }
                types::NONCE if last < rank::NONCE => {
                    let nonce = value.try_into().map_err(|_| Malformed::Length(types::NONCE))?;
                    self.nonce = Some(nonce);
                    self.at.nonce = offset(head.value);
                    rank::NONCE
                }
                types::INTEREST_LIFETIME if last < rank::INTEREST_LIFETIME => {
                    self.lifetime_ms = Some(tlv::nni(value)?);
                    rank::INTEREST_LIFETIME
                }
                types::HOP_LIMIT if last < rank::HOP_LIMIT => {
                    let [hop_limit] = *value else {
                        return Err(Malformed::Length(types::HOP_LIMIT));
                    };
                    self.hop_limit = Some(hop_limit);
                    self.at.hop_limit = offset(head.value);
                    rank::HOP_LIMIT
                }
                types::CAN_BE_PREFIX if last < rank::CAN_BE_PREFIX => {
                    self.can_be_prefix = flag(value, head.typ)?;
                    rank::CAN_BE_PREFIX
                }
                _ => self.take_rare(head, last)?,
            };
        }
        Ok(())
    }

    /// Takes an element that few Interests have, or that is not in its place; `last` is the rank of
    /// the one before, the result the new one.
    fn take_rare(&mut self, head: Head, last: u8) -> Result<u8, Malformed> {
        let value = head.of(self.wire);
        let rank = match head.typ {
            types::FORWARDING_HINT => rank::FORWARDING_HINT,
            types::APPLICATION_PARAMETERS => rank::APPLICATION_PARAMETERS,
            types::INTEREST_SIGNATURE_INFO => rank::SIGNATURE_INFO,
            types::INTEREST_SIGNATURE_VALUE => rank::SIGNATURE_VALUE,
            types::NAME
            | types::CAN_BE_PREFIX
            | types::MUST_BE_FRESH
            | types::NONCE
            | types::INTEREST_LIFETIME
            | types::HOP_LIMIT => rank::NAME,
            typ => {
                tlv::unknown(typ)?;
                return Ok(last);
            }
        };
        if rank <= last {
            tlv::misplaced(head.typ)?;
            return Ok(last);
        }
        match head.typ {
            types::FORWARDING_HINT => self.forwarding_hint = ForwardingHint::parse(value)?,
            types::APPLICATION_PARAMETERS => {
                self.app_parameters = Some(value);
                self.at.parameters = offset(start_of(head));
            }
            // Without parameters the signature has no place; both elements are not critical.
            _ if self.app_parameters.is_none() => {}
            types::INTEREST_SIGNATURE_INFO => {
                SignatureInfo::check(value)?;
                self.signature_info = value;
            }
            _ => {
                self.signature_value = Some(value);
                self.at.signature_value = offset(start_of(head));
            }
        }
        Ok(rank)
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
        Some(self.at.nonce as usize).filter(|at| *at != 0)
    }

    /// Offset in `wire` of the octet of the HopLimit.
    #[inline]
    #[must_use]
    pub fn hop_limit_offset(&self) -> Option<usize> {
        Some(self.at.hop_limit as usize).filter(|at| *at != 0)
    }

    /// The implicit digest that the name ends with, if it does.
    #[inline]
    #[must_use]
    pub fn implicit_digest(&self) -> Option<&'a [u8; 32]> {
        let value = self.name.value();
        if self.at.implicit_digest_end as usize != value.len() {
            return None;
        }
        value.last_chunk::<32>()
    }

    /// What the parameters digest covers: from the ApplicationParameters element to the end.
    #[must_use]
    pub fn parameters_range(&self) -> Option<&'a [u8]> {
        self.app_parameters.and_then(|_| self.wire.get(self.at.parameters as usize..))
    }

    /// The parameters digest in the name; present exactly when parameters are.
    #[must_use]
    pub fn parameters_digest(&self) -> Option<&'a [u8; 32]> {
        self.app_parameters?;
        self.name.value().get(..self.at.parameters_digest_end as usize)?.last_chunk::<32>()
    }

    /// InterestSignatureInfo, read when asked for.
    #[must_use]
    pub fn signature_info(&self) -> Option<SignatureInfo<'a>> {
        // A checked one is not empty and does not fail.
        SignatureInfo::parse(self.signature_info).ok()
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
        self.signature_info()?;
        self.signature_value?;
        let name = self.name.value();
        if self.at.parameters_digest_end as usize != name.len() {
            return None;
        }
        let components = name.get(..name.len().checked_sub(DIGEST_COMPONENT_LEN)?)?;
        let parameters =
            self.wire.get(self.at.parameters as usize..self.at.signature_value as usize)?;
        Some([components, parameters])
    }
}
