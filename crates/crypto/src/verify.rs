//! Verifying Data and Interests.

use crate::replay::ReplayFields;
use crate::{Error, PublicKey, sha256};
use aws_lc_rs::{constant_time, hmac};
use onym_wire::NameRef;
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::signature::{KeyLocator, NameSignature, SignatureInfo};
use onym_wire::types;

/// A signed packet, whatever its form: what was signed, and with what it says.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The name without what belongs to the signature: the whole name of a Data, without the
    /// parameters digest (v0.3) or the four components (v0.2) of an Interest.
    pub name: NameRef<'a>,
    /// The number of the signature type.
    pub signature_type: u64,
    /// The key locator.
    pub key_locator: Option<KeyLocator<'a>>,
    /// Pieces whose concatenation was signed.
    pub parts: [&'a [u8]; 2],
    /// The signature.
    pub value: &'a [u8],
    /// Fields against replay; Interests only.
    pub replay: ReplayFields<'a>,
}

impl<'a> Signed<'a> {
    /// The signature of a Data.
    #[must_use]
    pub fn data(data: &Data<'a>) -> Self {
        Self {
            name: data.name,
            signature_type: data.signature_info().kind,
            key_locator: data.signature_info().key_locator,
            parts: [data.signed_range, &[]],
            value: data.signature_value,
            replay: ReplayFields::default(),
        }
    }

    /// The signature of an Interest, of format v0.3 or, when it has no parameters, v0.2.
    ///
    /// # Errors
    /// [`Error::Unsigned`]; [`Error::ParametersDigest`] when the digest in the name is wrong.
    pub fn interest(interest: &Interest<'a>) -> Result<Self, Error> {
        if interest.app_parameters.is_none() {
            return NameSignature::of(interest.name).map(Self::old_format).ok_or(Error::Unsigned);
        }
        check_parameters_digest(interest)?;
        let parts = interest.signed_ranges().ok_or(Error::Unsigned)?;
        let info = interest.signature_info().ok_or(Error::Unsigned)?;
        let value = interest.signature_value.ok_or(Error::Unsigned)?;
        Ok(Self {
            name: interest.name.drop_last(1),
            signature_type: info.kind,
            key_locator: info.key_locator,
            parts,
            value,
            replay: replay_fields(&info),
        })
    }

    fn old_format(signature: NameSignature<'a>) -> Self {
        Self {
            name: signature.name,
            signature_type: signature.info.kind,
            key_locator: signature.info.key_locator,
            parts: [signature.signed, &[]],
            value: signature.value,
            replay: ReplayFields {
                time_ms: Some(signature.timestamp),
                nonce: Some(signature.nonce),
                seq: None,
            },
        }
    }

    fn parts(&self) -> &[&'a [u8]] {
        if self.parts[1].is_empty() { &self.parts[..1] } else { &self.parts }
    }

    /// The name in the key locator.
    #[must_use]
    pub fn signer(&self) -> Option<NameRef<'a>> {
        self.key_locator.and_then(|locator| locator.name())
    }

    /// Checks a DigestSha256 signature: the packet is undamaged, nothing more.
    ///
    /// # Errors
    /// [`Error::BadSignature`]; [`Error::WrongSignatureType`] when it is of another type.
    pub fn verify_digest(&self) -> Result<(), Error> {
        self.require(types::SIGNATURE_DIGEST_SHA256)?;
        if sha256(self.parts()) == self.value { Ok(()) } else { Err(Error::BadSignature) }
    }

    /// Checks a signature made with the private half of `key`.
    ///
    /// # Errors
    /// [`Error::BadSignature`]; [`Error::WrongSignatureType`] when the key makes another type.
    pub fn verify_key(&self, key: &PublicKey) -> Result<(), Error> {
        key.verify(self.signature_type, self.parts(), self.value)
    }

    /// Checks an HMAC made with the shared `secret`.
    ///
    /// # Errors
    /// [`Error::BadSignature`]; [`Error::WrongSignatureType`] when it is of another type.
    pub fn verify_hmac(&self, secret: &[u8]) -> Result<(), Error> {
        self.require(types::SIGNATURE_HMAC_SHA256)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let mut context = hmac::Context::with_key(&key);
        self.parts().iter().for_each(|part| context.update(part));
        let tag = context.sign();
        // In constant time: the time of a comparison would tell how much of a forgery is right.
        constant_time::verify_slices_are_equal(tag.as_ref(), self.value)
            .map_err(|_| Error::BadSignature)
    }

    fn require(&self, kind: u64) -> Result<(), Error> {
        match self.signature_type {
            got if got == kind => Ok(()),
            0 | 1 | 3 | 4 | 5 | 200 => {
                Err(Error::WrongSignatureType { got: self.signature_type, key: kind })
            }
            unknown => Err(Error::UnknownSignatureType(unknown)),
        }
    }
}

fn replay_fields<'a>(info: &SignatureInfo<'a>) -> ReplayFields<'a> {
    ReplayFields { time_ms: info.time, nonce: info.nonce, seq: info.seq_num }
}

/// Checks the parameters digest of an Interest, when it has parameters.
///
/// # Errors
/// [`Error::ParametersDigest`].
pub fn check_parameters_digest(interest: &Interest<'_>) -> Result<(), Error> {
    match (interest.parameters_range(), interest.parameters_digest()) {
        (None, None) => Ok(()),
        (Some(range), Some(digest)) if sha256(&[range]) == *digest => Ok(()),
        _ => Err(Error::ParametersDigest),
    }
}

/// Checks a Data with a DigestSha256 signature.
///
/// # Errors
/// [`Error::BadSignature`]; [`Error::WrongSignatureType`] when it is signed with a key.
pub fn integrity(data: &Data<'_>) -> Result<(), Error> {
    Signed::data(data).verify_digest()
}

/// Checks a Data signed with the private half of `key`.
///
/// # Errors
/// [`Error::BadSignature`]; [`Error::WrongSignatureType`] when the key makes another type.
pub fn data(data: &Data<'_>, key: &PublicKey) -> Result<(), Error> {
    Signed::data(data).verify_key(key)
}
