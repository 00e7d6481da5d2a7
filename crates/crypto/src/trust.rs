//! From a signed packet to a trust anchor, one certificate at a time.
//!
//! Nothing is fetched here: a [`Check`] says which certificate it needs, the caller fetches it
//! when and how it likes. The rule is hierarchical: the identity whose key signs is a prefix of
//! what it signs; a certificate is about its key's identity.

use crate::cert::key_of_locator;
pub use crate::error::{DEPTH_MAX, Refusal};
use crate::verify::Signed;
use crate::{Certificate, Error};
use onym_wire::data::Data;
use onym_wire::{Name, NameRef};
use std::collections::VecDeque;

/// Most certificates kept beside the anchors; the oldest is forgotten and fetched again.
const VERIFIED_MAX: usize = 256;

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// The packet is trusted.
    Trusted,
    /// Fetch a certificate with this name or prefix (CanBePrefix) and hand it to
    /// [`Check::certificate`].
    Fetch(Name),
    /// The packet is not trusted.
    Refused(Refusal),
}

/// Trust anchors, and certificates found good before.
#[derive(Debug, Default)]
pub struct Trust {
    anchors: Vec<Certificate>,
    verified: VecDeque<Certificate>,
}

impl Trust {
    /// Trusts these certificates and what they vouch for.
    #[must_use]
    pub fn new(anchors: Vec<Certificate>) -> Self {
        Self { anchors, verified: VecDeque::new() }
    }

    /// The anchors.
    #[must_use]
    pub fn anchors(&self) -> &[Certificate] {
        &self.anchors
    }

    /// A trusted certificate that `locator` (name of a key or certificate) means, one that is
    /// valid now when there are several.
    fn find(&self, locator: NameRef<'_>, now_ms: u64) -> Option<&Certificate> {
        let all = || {
            let known = self.anchors.iter().chain(&self.verified);
            known.filter(|c| locator.is_prefix_of(c.name()) && covers(locator, c))
        };
        // An anchor is trusted as a key: another certificate of the same key leads to it too.
        let key = key_of_locator(locator);
        let same_key = || self.anchors.iter().find(|c| key.is_some_and(|k| k == c.key_name()));
        all().find(|c| c.check_valid_at(now_ms).is_ok()).or_else(|| all().next()).or_else(same_key)
    }

    fn remember(&mut self, chain: Vec<Certificate>) {
        for certificate in chain {
            if self.verified.contains(&certificate) {
                continue;
            }
            if self.verified.len() >= VERIFIED_MAX {
                self.verified.pop_front();
            }
            self.verified.push_back(certificate);
        }
    }
}

/// Whether `locator` reaches at least to the key id: a shorter one would mean any key.
fn covers(locator: NameRef<'_>, certificate: &Certificate) -> bool {
    locator.len() >= certificate.key_name().len()
}

/// A signature whose certificate is looked for.
#[derive(Debug)]
struct Open {
    subject: Name,
    signer: Name,
    signature_type: u64,
    signed: Vec<u8>,
    value: Vec<u8>,
}

impl Open {
    fn new(subject: NameRef<'_>, signed: &Signed<'_>) -> Result<Self, Refusal> {
        let signer = signed.signer().ok_or(Refusal::NoSigner)?;
        // Only public keys make trust: a digest or a shared secret names no one.
        if !matches!(signed.signature_type, 1 | 3 | 5) || key_of_locator(signer).is_none() {
            return Err(Refusal::NoSigner);
        }
        Ok(Self {
            subject: subject.to_name(),
            signer: signer.to_name(),
            signature_type: signed.signature_type,
            signed: signed.parts.concat(),
            value: signed.value.to_vec(),
        })
    }

    /// Whether the key of `certificate` made this signature and may have.
    fn judge(&self, certificate: &Certificate, now_ms: u64) -> Result<(), Refusal> {
        let identity = certificate.identity();
        if !identity.is_prefix_of(self.subject.as_ref()) {
            let (identity, subject) = (identity.to_name(), self.subject.clone());
            return Err(Refusal::NotUnder { identity, subject });
        }
        certificate.check_valid_at(now_ms)?;
        let key = certificate.public_key();
        key.verify(self.signature_type, &[&self.signed], &self.value)?;
        Ok(())
    }
}

/// One packet on its way to be trusted or refused.
#[derive(Debug)]
pub struct Check {
    open: Open,
    chain: Vec<Certificate>,
}

impl Check {
    /// Starts with a signature over something that belongs under `subject`: the name of a Data,
    /// or the prefix that a command is about.
    ///
    /// # Errors
    /// [`Refusal::NoSigner`] when no key is named.
    pub fn new(subject: NameRef<'_>, signed: &Signed<'_>) -> Result<Self, Refusal> {
        Ok(Self { open: Open::new(subject, signed)?, chain: Vec::new() })
    }

    /// What to do first.
    pub fn start(&mut self, trust: &mut Trust, now_ms: u64) -> Step {
        match trust.find(self.open.signer.as_ref(), now_ms) {
            None => Step::Fetch(self.open.signer.clone()),
            Some(certificate) => match self.open.judge(certificate, now_ms) {
                Ok(()) => {
                    trust.remember(std::mem::take(&mut self.chain));
                    Step::Trusted
                }
                Err(refusal) => Step::Refused(refusal),
            },
        }
    }

    /// Takes the Data that was fetched, and says what to do next.
    pub fn certificate(&mut self, wire: &[u8], trust: &mut Trust, now_ms: u64) -> Step {
        match self.take(wire, now_ms) {
            Ok(()) => self.start(trust, now_ms),
            Err(refusal) => Step::Refused(refusal),
        }
    }

    fn take(&mut self, wire: &[u8], now_ms: u64) -> Result<(), Refusal> {
        let certificate = Certificate::parse(wire)?;
        let wanted = &self.open.signer;
        if !wanted.as_ref().is_prefix_of(certificate.name())
            || !covers(wanted.as_ref(), &certificate)
        {
            let got = certificate.name().to_name();
            return Err(Refusal::WrongCertificate { got, wanted: wanted.clone() });
        }
        self.open.judge(&certificate, now_ms)?;
        if certificate.is_self_signed() {
            return Err(Refusal::NotAnAnchor(certificate.name().to_name()));
        }
        if self.chain.len() >= DEPTH_MAX {
            return Err(Refusal::TooDeep);
        }
        let data = Data::parse(wire).map_err(|e| Error::Certificate(e.to_string()))?;
        let open = Open::new(certificate.identity(), &Signed::data(&data))?;
        self.open = open;
        self.chain.push(certificate);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
