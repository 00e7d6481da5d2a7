//! A signature that somebody must vouch for.

use super::refusal::Refusal;
use crate::policy::{Kind, Subject};
use onym_crypto::cert::key_of_locator;
use onym_crypto::verify::Signed;
use onym_crypto::{Certificate, PublicKey};
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::signature::KeyLocator;
use onym_wire::{Name, NameRef, types};

/// What is known about a packet beside its octets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context {
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// A moment at which somebody else saw the packet, such as a repository's time of insertion.
    pub witness_ms: Option<u64>,
    /// Where the packet came from: told with each fetch, for certificates that only the sender has.
    pub via: Option<u64>,
}

/// A signature with what it is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) locator: NameRef<'a>,
    signature_type: u64,
    parts: [&'a [u8]; 2],
    value: &'a [u8],
    /// SignatureTime, milliseconds.
    pub(super) time_ms: Option<u64>,
    /// Whether an invitation that counts lets its key sign it, whatever the rules say.
    pub(super) is_invited: bool,
}

/// A claim that waits.
#[derive(Debug, Clone)]
pub(super) struct OwnedClaim {
    name: Name,
    kind: Kind,
    locator: Name,
    signature_type: u64,
    signed: Vec<u8>,
    value: Vec<u8>,
    time_ms: Option<u64>,
    is_invited: bool,
    /// The claim that is judged when this one, of its invitation, is good.
    pub(super) then: Option<Box<Self>>,
}

impl<'a> Claim<'a> {
    pub(super) fn data(data: &Data<'a>) -> Result<Self, Refusal> {
        let time = data.signature_info().time;
        Self::new(Subject::data(data.name), &Signed::data(data), time)
    }

    /// A signed Interest of either form.
    pub(super) fn interest(interest: &Interest<'a>) -> Result<Self, Refusal> {
        let signed = Signed::interest(interest).map_err(|e| Refusal::Malformed(e.to_string()))?;
        // Of the old form, rules see timestamp and nonce as well.
        let is_old = interest.app_parameters.is_none();
        let name = if is_old { interest.name.drop_last(2) } else { signed.name };
        Self::new(Subject::interest(name), &signed, signed.replay.time_ms)
    }

    fn new(
        subject: Subject<'a>,
        signed: &Signed<'a>,
        time_ms: Option<u64>,
    ) -> Result<Self, Refusal> {
        let signature_type = signed.signature_type;
        let locator = match signed.key_locator {
            _ if !is_by_key(signature_type) => return Err(Refusal::NoKey(signature_type)),
            None | Some(KeyLocator::Other(_)) => return Err(Refusal::NoLocator),
            Some(KeyLocator::Digest(_)) => return Err(Refusal::KeyDigest),
            Some(KeyLocator::Name(name)) => name,
        };
        if key_of_locator(locator).is_none() {
            return Err(Refusal::BadLocator(locator.to_name()));
        }
        let subject = subject.signed(signature_type);
        let (parts, value) = (signed.parts, signed.value);
        Ok(Self { subject, locator, signature_type, parts, value, time_ms, is_invited: false })
    }

    /// The same signature, judged as one over this name.
    pub(super) const fn about(self, name: NameRef<'a>) -> Self {
        Self { subject: Subject { name, ..self.subject }, ..self }
    }

    /// The same, let in by an invitation.
    pub(super) const fn invited(self) -> Self {
        Self { is_invited: true, ..self }
    }

    pub(super) fn to_waiting(self) -> OwnedClaim {
        OwnedClaim {
            name: self.subject.name.to_name(),
            kind: self.subject.kind,
            locator: self.locator.to_name(),
            signature_type: self.signature_type,
            signed: self.parts.concat(),
            value: self.value.to_vec(),
            time_ms: self.time_ms,
            is_invited: self.is_invited,
            then: None,
        }
    }

    /// Checks the signature with this certificate's key.
    pub(super) fn verify(&self, certificate: &Certificate) -> Result<(), Refusal> {
        self.verify_key(certificate.public_key()).map_err(|what| Refusal::BadSignature {
            of: self.subject.name.to_name(),
            key: certificate.name().to_name(),
            what,
        })
    }

    fn verify_key(&self, key: &PublicKey) -> Result<(), String> {
        let parts: &[&[u8]] = if self.parts[1].is_empty() { &self.parts[..1] } else { &self.parts };
        key.verify(self.signature_type, parts, self.value).map_err(|e| e.to_string())
    }

    /// Whether the locator names the key of the certificate that this is.
    pub(super) fn is_by_itself(&self) -> bool {
        let own = key_of_locator(self.subject.name);
        own.is_some() && own == key_of_locator(self.locator)
    }
}

impl OwnedClaim {
    /// The same; `then` is judged when it is good.
    pub(super) fn followed_by(self, then: Option<Box<Self>>) -> Self {
        Self { then, ..self }
    }

    pub(super) fn borrow(&self) -> Claim<'_> {
        let subject = Subject { name: self.name.as_ref(), kind: self.kind, signature_type: None };
        Claim {
            subject: subject.signed(self.signature_type),
            locator: self.locator.as_ref(),
            signature_type: self.signature_type,
            parts: [&self.signed, &[]],
            value: &self.value,
            time_ms: self.time_ms,
            is_invited: self.is_invited,
        }
    }

    /// Octets that it keeps.
    pub(super) fn octets(&self) -> usize {
        let names = self.name.value().len() + self.locator.value().len();
        let then = self.then.as_ref().map_or(0, |then| then.octets());
        size_of::<Self>() + names + self.signed.len() + self.value.len() + then
    }
}

/// Whether a signature of this type is made with a private key: a digest anybody can make, and a
/// shared secret names no one.
const fn is_by_key(signature_type: u64) -> bool {
    matches!(
        signature_type,
        types::SIGNATURE_RSA_SHA256 | types::SIGNATURE_ECDSA_SHA256 | types::SIGNATURE_ED25519
    )
}

/// Whether a locator is the full name of a certificate.
pub(super) fn is_full(locator: NameRef<'_>) -> bool {
    key_of_locator(locator).is_some_and(|key| locator.len() == key.len() + 2)
}
