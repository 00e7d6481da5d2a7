//! Why a packet is not believed.

use super::revocation::Revoker;
use crate::invite::InviteError;
use crate::policy::Denial;
use onym_wire::Name;
use std::fmt;

/// Which part of a chain a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// The packet itself, when it is a certificate.
    Packet,
    /// A certificate between the packet and its anchor.
    Chain,
    /// The trust anchor.
    Anchor,
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packet => "the certificate",
            Self::Chain => "the certificate of its chain",
            Self::Anchor => "the trust anchor",
        })
    }
}

/// Why a packet is not believed. Each one names what a person looks at next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The packet cannot be read, or an Interest's parameters digest is wrong.
    #[error("it is malformed: {0}")]
    Malformed(String),
    /// A signature that names nobody: a digest, a shared secret, none, an unknown type.
    #[error("signature type {0} names no key, so nobody vouches for the packet")]
    NoKey(u64),
    /// There is no key locator.
    #[error("the signature has no key locator")]
    NoLocator,
    /// The key locator is a digest of the key, by which no certificate can be asked for.
    #[error("the key locator is a digest, by which no certificate can be found")]
    KeyDigest,
    /// The key locator is not the name of a key or certificate.
    #[error("the key locator {0} is not the name of a key or certificate")]
    BadLocator(Name),
    /// The rules forbid it.
    #[error("{0}")]
    Denied(Denial),
    /// The invitation that came with it does not count.
    #[error("{0}")]
    Invitation(InviteError),
    /// The signature was not made over these octets with the named key.
    #[error("the signature of {of} was not made with the key of {key}: {what}")]
    BadSignature {
        /// What is signed.
        of: Name,
        /// The certificate whose key should have.
        key: Name,
        /// What the verification said.
        what: String,
    },
    /// A certificate did not come.
    #[error("the certificate {name} could not be fetched: {why}")]
    NotFetched {
        /// Its name, as the key locator has it.
        name: Name,
        /// What happened.
        why: String,
    },
    /// Other Data came than was asked for.
    #[error("{got} came in place of the requested certificate {wanted}")]
    WrongCertificate {
        /// The key locator.
        wanted: Name,
        /// What came.
        got: Name,
    },
    /// What came is no certificate, or one that is not usable.
    #[error("{name} is not a usable certificate: {what}")]
    BadCertificate {
        /// Its name, or what was asked for.
        name: Name,
        /// What is wrong.
        what: String,
    },
    /// A certificate's time is over.
    #[error("{element} {name} expired: it was valid until {not_after}")]
    Expired {
        /// Which part of the chain.
        element: Element,
        /// Its name.
        name: Name,
        /// Last second, `YYYYMMDDThhmmss` UTC.
        not_after: String,
    },
    /// A certificate's time has not come: look at the clocks.
    #[error("{element} {name} is not valid yet: it will be from {not_before}")]
    NotYetValid {
        /// Which part of the chain.
        element: Element,
        /// Its name.
        name: Name,
        /// First second, `YYYYMMDDThhmmss` UTC.
        not_before: String,
    },
    /// A chain ends at a certificate that nobody vouches for.
    #[error("{0} is self-signed and not a trust anchor")]
    NotAnAnchor(Name),
    /// Certificates vouch for each other.
    #[error("the chain comes back to {0}")]
    Loop(Name),
    /// The chain is too long.
    #[error("more than {0} certificates lead to no trust anchor")]
    TooDeep(usize),
    /// A certificate or key is on the list of what is believed no longer.
    #[error("{0} is revoked")]
    Revoked(Name),
    /// A record of its issuer or owner says that it is believed no longer.
    #[error("{name} is revoked by a record of its {by}: {reason}")]
    RevokedByRecord {
        /// The certificate.
        name: Name,
        /// Who made the record.
        by: Revoker,
        /// Why, as the record has it.
        reason: &'static str,
    },
    /// Whether it is revoked cannot be known now, and the policy asks for it.
    #[error("nobody says whether {name} is revoked: {why}")]
    NoRecord {
        /// The certificate.
        name: Name,
        /// What happened to the question.
        why: String,
    },
    /// The packet does not say when it was signed, or nobody saw it then.
    #[error("{0} is not valid now, and no witness shows that the packet was signed before")]
    NoWitness(Name),
    /// A bound is reached; the packet may be tried again.
    #[error("too many packets wait for certificates: {0}")]
    Busy(&'static str),
}
