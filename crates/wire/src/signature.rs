//! SignatureInfo of Data and Interests, and signed Interests of both formats.

use crate::name::NameRef;
use crate::tlv::{self, Element, Malformed, Reader};
use crate::types;
use crate::validity::ValidityPeriod;

/// What a KeyLocator names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLocator<'a> {
    /// Name of a key or certificate.
    Name(NameRef<'a>),
    /// SHA-256 of the public key (DER SubjectPublicKeyInfo).
    Digest(&'a [u8]),
    /// Something else, nothing, or a name that cannot be read: the VALUE as it is.
    Other(&'a [u8]),
}

impl<'a> KeyLocator<'a> {
    /// What cannot be used is no error: only who verifies needs the key.
    fn parse(value: &'a [u8]) -> Self {
        let usable = match Element::split(value) {
            Ok((element, _)) if element.typ == types::NAME => {
                NameRef::parse_value(element.value).ok().map(Self::Name)
            }
            Ok((element, _)) if element.typ == types::KEY_DIGEST => {
                Some(Self::Digest(element.value))
            }
            _ => None,
        };
        usable.unwrap_or(Self::Other(value))
    }

    /// Appends the KeyLocator element.
    pub fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, types::KEY_LOCATOR, |out| match self {
            Self::Name(name) => name.write_tlv(out),
            Self::Digest(digest) => tlv::put_tlv(out, types::KEY_DIGEST, digest),
            Self::Other(value) => out.extend_from_slice(value),
        });
    }

    /// The name, when it is one.
    #[must_use]
    pub fn name(&self) -> Option<NameRef<'a>> {
        if let Self::Name(name) = self { Some(*name) } else { None }
    }
}

/// SignatureInfo (Data) or InterestSignatureInfo.
///
/// To write one, fill in the fields and leave the others at their default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignatureInfo<'a> {
    /// SignatureType, see [`types`].
    pub kind: u64,
    /// Which key signed.
    pub key_locator: Option<KeyLocator<'a>>,
    /// SignatureNonce, at least one octet.
    pub nonce: Option<&'a [u8]>,
    /// SignatureTime, milliseconds since the Unix epoch.
    pub time: Option<u64>,
    /// SignatureSeqNum.
    pub seq_num: Option<u64>,
    /// Validity of a certificate; `None` also when it cannot be read, which is not an error here.
    pub validity_period: Option<ValidityPeriod>,
    /// VALUE of an AdditionalDescription (certificates).
    pub description: Option<&'a [u8]>,
}

/// Position of a known element in the order of the grammar; `None` for an unknown one.
const fn rank(typ: u32) -> Option<u8> {
    match typ {
        types::SIGNATURE_TYPE => Some(1),
        types::KEY_LOCATOR => Some(2),
        types::SIGNATURE_NONCE => Some(3),
        types::SIGNATURE_TIME => Some(4),
        types::SIGNATURE_SEQ_NUM => Some(5),
        _ => None,
    }
}

impl<'a> SignatureInfo<'a> {
    /// A SignatureInfo of type `kind` without anything else.
    #[must_use]
    pub fn of_kind(kind: u64) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Whether [`SignatureInfo::parse`] accepts `value`, at little cost in the common cases.
    #[inline]
    pub(crate) fn check(value: &[u8]) -> Result<(), Malformed> {
        const TYPE: u8 = types::SIGNATURE_TYPE as u8;
        const LOCATOR: u8 = types::KEY_LOCATOR as u8;
        match value {
            [TYPE, 1, _] => Ok(()),
            [TYPE, 1, _, LOCATOR, len @ 0..=252, tail @ ..] if tail.len() == usize::from(*len) => {
                Ok(())
            }
            _ => SignatureInfo::parse(value).map(drop),
        }
    }

    /// Reads the VALUE of a SignatureInfo or InterestSignatureInfo.
    ///
    /// # Errors
    /// [`Malformed`] by the rules of the packet format. KeyLocator and ValidityPeriod are never a
    /// reason: only who verifies needs them.
    pub fn parse(value: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let mut info = Self::of_kind(reader.expect(types::SIGNATURE_TYPE)?.nni()?);
        let mut last = 1;
        while !reader.is_empty() {
            let element = reader.element()?;
            match rank(element.typ) {
                Some(rank) if rank > last => {
                    last = rank;
                    info.take(element)?;
                }
                None if info.take_extension(element) => {}
                Some(_) if tlv::is_critical(element.typ) => {
                    return Err(Malformed::OutOfOrder(element.typ));
                }
                None if tlv::is_critical(element.typ) => {
                    return Err(Malformed::UnknownCritical(element.typ));
                }
                _ => {}
            }
        }
        Ok(info)
    }

    fn take(&mut self, element: Element<'a>) -> Result<(), Malformed> {
        match element.typ {
            types::KEY_LOCATOR => self.key_locator = Some(KeyLocator::parse(element.value)),
            types::SIGNATURE_NONCE if element.value.is_empty() => {
                return Err(Malformed::Length(element.typ));
            }
            types::SIGNATURE_NONCE => self.nonce = Some(element.value),
            types::SIGNATURE_TIME => self.time = Some(element.nni()?),
            _ => self.seq_num = Some(element.nni()?),
        }
        Ok(())
    }

    /// ValidityPeriod has a critical number but is ignorable for historical reasons.
    fn take_extension(&mut self, element: Element<'a>) -> bool {
        match element.typ {
            types::VALIDITY_PERIOD => {
                let parsed = ValidityPeriod::parse(element.value).ok();
                self.validity_period = self.validity_period.or(parsed);
            }
            types::ADDITIONAL_DESCRIPTION => {
                self.description = self.description.or(Some(element.value));
            }
            _ => return false,
        }
        true
    }

    /// Appends the element with TYPE `typ` ([`types::SIGNATURE_INFO`] or
    /// [`types::INTEREST_SIGNATURE_INFO`]).
    pub fn write(&self, out: &mut Vec<u8>, typ: u32) {
        tlv::put_nested(out, typ, |out| {
            tlv::put_nni_tlv(out, types::SIGNATURE_TYPE, self.kind);
            if let Some(locator) = &self.key_locator {
                locator.write(out);
            }
            if let Some(nonce) = self.nonce {
                tlv::put_tlv(out, types::SIGNATURE_NONCE, nonce);
            }
            if let Some(time) = self.time {
                tlv::put_nni_tlv(out, types::SIGNATURE_TIME, time);
            }
            if let Some(seq_num) = self.seq_num {
                tlv::put_nni_tlv(out, types::SIGNATURE_SEQ_NUM, seq_num);
            }
            if let Some(validity) = self.validity_period {
                validity.write(out);
            }
            if let Some(description) = self.description {
                tlv::put_tlv(out, types::ADDITIONAL_DESCRIPTION, description);
            }
        });
    }
}

/// A signed Interest of the old format (packet format 0.2): the last four components of its name
/// are timestamp, nonce, a SignatureInfo element and a SignatureValue element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameSignature<'a> {
    /// The name without the four components.
    pub name: NameRef<'a>,
    /// Timestamp, milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// The nonce's octets.
    pub nonce: &'a [u8],
    /// The SignatureInfo.
    pub info: SignatureInfo<'a>,
    /// The signature.
    pub value: &'a [u8],
    /// What is signed: every component element but the last.
    pub signed: &'a [u8],
}

impl<'a> NameSignature<'a> {
    /// The signature in `name`, if it ends like a signed Interest of the old format.
    #[must_use]
    pub fn of(name: NameRef<'a>) -> Option<Self> {
        let base = name.len().checked_sub(4).filter(|len| *len > 0)?;
        let mut tail = name.suffix(base).components();
        let (time, nonce, info, value) = (tail.next()?, tail.next()?, tail.next()?, tail.next()?);
        if ![time, nonce, info, value].iter().all(|c| c.is_generic()) {
            return None;
        }
        let info = Element::parse_as(info.value, types::SIGNATURE_INFO).ok()?;
        Some(Self {
            name: name.prefix(base),
            timestamp: time.as_number()?,
            nonce: nonce.value,
            info: SignatureInfo::parse(info.value).ok()?,
            value: Element::parse_as(value.value, types::SIGNATURE_VALUE).ok()?.value,
            signed: name.prefix(base + 3).value(),
        })
    }
}
