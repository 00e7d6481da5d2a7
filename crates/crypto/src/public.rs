//! Public keys and the verification of signatures.

use crate::digest::digest_of;
use crate::kind::{KeyType, OID_EC, OID_ED25519, OID_RSA};
use crate::{Error, sha256};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    VerificationAlgorithm,
};
use pkcs8::der::Decode as _;
use pkcs8::spki::SubjectPublicKeyInfoRef;
use std::fmt;

/// A public key that was read and found usable.
#[derive(Clone)]
pub struct PublicKey {
    kind: KeyType,
    key: ParsedPublicKey,
    spki: Vec<u8>,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.kind.word())
    }
}

impl PublicKey {
    /// Reads a DER SubjectPublicKeyInfo, the content of a certificate.
    ///
    /// # Errors
    /// [`Error::Key`] when it is malformed, of an unknown algorithm, another curve than P-256 or
    /// an RSA modulus outside 2048 to 8192 bits.
    pub fn from_spki(spki: &[u8]) -> Result<Self, Error> {
        let info = SubjectPublicKeyInfoRef::from_der(spki)
            .map_err(|e| Error::Key(format!("not a SubjectPublicKeyInfo: {e}")))?;
        let (kind, algorithm): (KeyType, &'static dyn VerificationAlgorithm) =
            match info.algorithm.oid {
                OID_EC => (KeyType::Ecdsa, &ECDSA_P256_SHA256_ASN1),
                OID_ED25519 => (KeyType::Ed25519, &ED25519),
                OID_RSA => (KeyType::Rsa, &RSA_PKCS1_2048_8192_SHA256),
                other => return Err(Error::Key(format!("algorithm {other} is not supported"))),
            };
        let key = ParsedPublicKey::new(algorithm, spki).map_err(|e| Error::Key(e.to_string()))?;
        Ok(Self { kind, key, spki: spki.to_vec() })
    }

    /// Which kind of key this is.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        self.kind
    }

    /// The DER SubjectPublicKeyInfo.
    #[must_use]
    pub fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// SHA-256 of the SubjectPublicKeyInfo: the value of a KeyDigest locator.
    #[must_use]
    pub fn key_digest(&self) -> [u8; 32] {
        sha256(&[&self.spki])
    }

    /// Checks that `signature` was made over the concatenation of `parts` with the private half.
    ///
    /// # Errors
    /// [`Error::BadSignature`] when not; [`Error::WrongSignatureType`] when `signature_type` is
    /// not the one that keys of this kind make.
    pub fn verify(
        &self,
        signature_type: u64,
        parts: &[&[u8]],
        signature: &[u8],
    ) -> Result<(), Error> {
        let own = self.kind.signature_type();
        if signature_type != own {
            return Err(Error::WrongSignatureType { got: signature_type, key: own });
        }
        let verified = match (self.kind, parts) {
            (KeyType::Ed25519, [one]) => self.key.verify_sig(one, signature),
            (KeyType::Ed25519, _) => self.key.verify_sig(&parts.concat(), signature),
            _ => self.key.verify_digest_sig(&digest_of(parts), signature),
        };
        verified.map_err(|_| Error::BadSignature)
    }
}
