//! Kinds of key pairs.

use pkcs8::der::asn1::ObjectIdentifier;

pub(crate) const OID_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
pub(crate) const OID_EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
pub(crate) const OID_ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Kinds of key pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// ECDSA on P-256, the one every implementation of the field has.
    Ecdsa,
    /// Ed25519; ndn-cxx cannot verify it.
    Ed25519,
    /// RSA with a modulus of 2048 bits.
    Rsa,
}

impl KeyType {
    /// The signature type that keys of this kind make.
    #[must_use]
    pub fn signature_type(self) -> u64 {
        match self {
            Self::Rsa => 1,
            Self::Ecdsa => 3,
            Self::Ed25519 => 5,
        }
    }

    /// The word for this kind in commands and listings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ecdsa => "ecdsa",
            Self::Ed25519 => "ed25519",
            Self::Rsa => "rsa",
        }
    }
}
