//! Errors of keys, signatures and certificates.

use onym_wire::Name;
use std::path::PathBuf;

/// An operation of this crate that failed. A signature that does not verify is
/// [`Error::BadSignature`]: it is the answer to a question, not a fault of the machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The signature does not belong to these bytes and this key.
    #[error("the signature does not verify")]
    BadSignature,
    /// The signature type of the packet is not the one that the key makes.
    #[error("signature type {got} cannot be verified with a key for signature type {key}")]
    WrongSignatureType {
        /// Number in the packet.
        got: u64,
        /// Number that the key belongs to.
        key: u64,
    },
    /// A signature type that is not in the registry (0, 1, 3, 4, 5 and 200 are).
    #[error("signature type {0} is not known")]
    UnknownSignatureType(u64),
    /// The packet carries no signature.
    #[error("the packet is not signed")]
    Unsigned,
    /// The type-2 name component is not the SHA-256 of the parameters.
    #[error("the parameters digest in the name does not match the parameters")]
    ParametersDigest,
    /// A public or private key that cannot be read.
    #[error("unusable key: {0}")]
    Key(String),
    /// The machine refused to make a key or a signature.
    #[error("cannot {0}: the cryptographic library refused")]
    Library(&'static str),
    /// A private key is in a token.
    #[error("the key is in a token and does not leave it")]
    Stays,
    /// A token refused: what and why.
    #[error("the token: {0}")]
    Outside(String),
    /// A key of the store is protected, and nothing opens it: why.
    #[error("the key {name} is protected: {why}")]
    Locked {
        /// Its name.
        name: String,
        /// What is missing.
        why: String,
    },
    /// A certificate that breaks a rule of the format.
    #[error("not a certificate: {0}")]
    Certificate(String),
    /// A certificate outside its validity period.
    #[error("certificate {name} is not valid now: valid from {not_before} to {not_after}")]
    NotValidNow {
        /// Name of the certificate.
        name: String,
        /// First second, `YYYYMMDDThhmmss` UTC.
        not_before: String,
        /// Last second, `YYYYMMDDThhmmss` UTC.
        not_after: String,
    },
    /// The certificate of a signature's key is not at hand.
    #[error("its certificate {0} is not known")]
    NoCertificate(Name),
    /// The rules refuse it, or no chain of certificates leads to a trust anchor: why, in words.
    #[error("it is not trusted: {0}")]
    Untrusted(String),
    /// Text that is not the base64 of one packet.
    #[error("cannot read the text: {0}")]
    Text(String),
    /// A safe bag that cannot be read or opened.
    #[error("cannot open the safe bag: {0}")]
    SafeBag(String),
    /// The key store refused: what and why.
    #[error("key store {path}: {what}")]
    Store {
        /// File or directory.
        path: PathBuf,
        /// What happened.
        what: String,
    },
    /// Nothing of that name in the key store.
    #[error("the key store has no {0}")]
    NotFound(String),
    /// The store has that name already.
    #[error("the key store already has {0}")]
    Exists(String),
}
