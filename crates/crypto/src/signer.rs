//! Signing Data and Interests.

use crate::{Error, PrivateKey, sha256};
use aws_lc_rs::hmac;
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::signature::{KeyLocator, SignatureInfo};
use onym_wire::{Name, NameRef, tlv, types};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

/// What signs: a key, a secret, a digest or nothing, and the locator that says which key it was.
///
/// ```
/// use onym_crypto::{Signer, verify};
/// use onym_wire::{Name, data::{Data, DataBuilder}};
///
/// let name: Name = "/example/v=1/seg=0".parse()?;
/// let mut packet = Vec::new();
/// Signer::digest().sign_data(&DataBuilder::new(name.as_ref(), b"hello"), &mut packet)?;
/// verify::integrity(&Data::parse(&packet)?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Signer {
    kind: Kind,
    locator: Option<Name>,
}

#[derive(Clone)]
enum Kind {
    Digest,
    Hmac(Arc<hmac::Key>),
    Key(Arc<PrivateKey>),
    Null,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer(type {}, locator {:?})", self.signature_type(), self.locator)
    }
}

/// A signature; short ones are held in place.
#[derive(Debug, Clone)]
pub enum Signature {
    /// 32 octets of SHA-256 or HMAC.
    Digest([u8; 32]),
    /// Any other length.
    Octets(Vec<u8>),
}

impl AsRef<[u8]> for Signature {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Digest(digest) => digest,
            Self::Octets(octets) => octets,
        }
    }
}

/// What protects a signed Interest against replay, beside its signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Freshness {
    /// SignatureNonce, 8 octets as recommended.
    pub nonce: Option<[u8; 8]>,
    /// SignatureTime, milliseconds since the Unix epoch.
    pub time_ms: Option<u64>,
    /// SignatureSeqNum.
    pub seq: Option<u64>,
}

impl Signer {
    /// SHA-256 of the signed portion: shows damage, proves nothing about who made it.
    #[must_use]
    pub fn digest() -> Self {
        Self { kind: Kind::Digest, locator: None }
    }

    /// No signature (type 200).
    #[must_use]
    pub fn null() -> Self {
        Self { kind: Kind::Null, locator: None }
    }

    /// HMAC with the shared `secret`, which `locator` names.
    #[must_use]
    pub fn hmac(secret: &[u8], locator: Name) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        Self { kind: Kind::Hmac(Arc::new(key)), locator: Some(locator) }
    }

    /// A private key; `locator` names its certificate or the key.
    #[must_use]
    pub fn key(key: PrivateKey, locator: Name) -> Self {
        Self { kind: Kind::Key(Arc::new(key)), locator: Some(locator) }
    }

    /// The number of the signature type.
    #[must_use]
    pub fn signature_type(&self) -> u64 {
        match &self.kind {
            Kind::Digest => types::SIGNATURE_DIGEST_SHA256,
            Kind::Hmac(_) => types::SIGNATURE_HMAC_SHA256,
            Kind::Key(key) => key.key_type().signature_type(),
            Kind::Null => types::SIGNATURE_NULL,
        }
    }

    /// The name in the key locator.
    #[must_use]
    pub fn locator(&self) -> Option<NameRef<'_>> {
        self.locator.as_ref().map(Name::as_ref)
    }

    /// The SignatureInfo of this signer, to which an Interest's fields can be added.
    #[must_use]
    pub fn info(&self) -> SignatureInfo<'_> {
        let key_locator = self.locator().map(KeyLocator::Name);
        SignatureInfo { kind: self.signature_type(), key_locator, ..SignatureInfo::default() }
    }

    /// Signs the concatenation of `parts`.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn sign(&self, parts: &[&[u8]]) -> Result<Signature, Error> {
        match &self.kind {
            Kind::Digest => Ok(Signature::Digest(sha256(parts))),
            Kind::Hmac(key) => {
                let mut context = hmac::Context::with_key(key);
                parts.iter().for_each(|part| context.update(part));
                let mut tag = [0; 32];
                tag.copy_from_slice(context.sign().as_ref());
                Ok(Signature::Digest(tag))
            }
            Kind::Key(key) => {
                let mut octets = Vec::with_capacity(key.signature_len_max());
                key.sign(parts, &mut octets)?;
                Ok(Signature::Octets(octets))
            }
            Kind::Null => Ok(Signature::Octets(Vec::new())),
        }
    }

    /// Appends the signed Data to `out`.
    ///
    /// # Errors
    /// [`Error::Library`]; `out` is then as before.
    pub fn sign_data(&self, data: &DataBuilder<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        data.write(out, &self.info(), |signed| self.sign(&[signed]))
    }

    /// Appends the signed Interest (format v0.3) with `parameters` to `out`. Its name gets the
    /// parameters digest as the last component.
    ///
    /// # Errors
    /// [`Error::Library`]; `out` is then as before.
    pub fn sign_interest(
        &self,
        interest: &InterestBuilder<'_>,
        parameters: &[u8],
        freshness: Freshness,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let nonce = freshness.nonce;
        let info = SignatureInfo {
            nonce: nonce.as_ref().map(<[u8; 8]>::as_slice),
            time: freshness.time_ms,
            seq_num: freshness.seq,
            ..self.info()
        };
        let digest = |range: &[u8]| sha256(&[range]);
        interest.write_signed(out, parameters, &info, |parts| self.sign(parts), digest)
    }

    /// The name of a signed Interest of the old format (v0.2): `name` with timestamp, nonce,
    /// SignatureInfo and SignatureValue appended.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn sign_name(
        &self,
        name: NameRef<'_>,
        time_ms: u64,
        nonce: [u8; 8],
    ) -> Result<Name, Error> {
        let mut signed = name.to_name();
        // Eight octets always, as python-ndn writes it; readers take any width.
        signed.append_generic(time_ms.to_be_bytes());
        signed.append_generic(nonce);
        let mut info = Vec::new();
        self.info().write(&mut info, types::SIGNATURE_INFO);
        signed.append_generic(&info);
        let signature = self.sign(&[signed.value()])?;
        let mut value = Vec::new();
        tlv::put_tlv(&mut value, types::SIGNATURE_VALUE, signature.as_ref());
        signed.append_generic(&value);
        Ok(signed)
    }
}

/// Appends an unsigned Interest with `parameters`; its name gets the parameters digest as the
/// last component.
pub fn write_parameters(interest: &InterestBuilder<'_>, parameters: &[u8], out: &mut Vec<u8>) {
    interest.write_with_parameters(out, parameters, |range| sha256(&[range]));
}

/// Appends a Data with the Null signature (type 200), for who trusts where it came from.
pub fn write_null_data(data: &DataBuilder<'_>, out: &mut Vec<u8>) {
    let info = SignatureInfo::of_kind(types::SIGNATURE_NULL);
    data.write(out, &info, |_| Ok::<[u8; 0], Infallible>([]))
        .unwrap_or_else(|never| match never {});
}

/// Appends a Data with a DigestSha256 signature, which cannot fail.
pub fn write_digest_data(data: &DataBuilder<'_>, out: &mut Vec<u8>) {
    let info = SignatureInfo::of_kind(types::SIGNATURE_DIGEST_SHA256);
    data.write(out, &info, |signed| Ok::<_, Infallible>(sha256(&[signed])))
        .unwrap_or_else(|never| match never {});
}
