//! One Interest and its answer.

use onym_crypto::sha256;
use onym_wire::{InterestBuilder, NackReason, Name, NameRef};
use std::time::Duration;

/// An Interest, and how hard it is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The name.
    pub name: Name,
    /// Data under the name answer as well.
    pub can_be_prefix: bool,
    /// Caches answer with fresh Data only.
    pub must_be_fresh: bool,
    /// Delegations of a forwarding hint, preferred first.
    pub forwarding_hint: Vec<Name>,
    /// How long one sending waits; default 4 s.
    pub lifetime: Duration,
    /// HopLimit.
    pub hop_limit: Option<u8>,
    /// ApplicationParameters (unsigned); the name gets their digest.
    pub parameters: Option<Vec<u8>>,
    /// How often it is sent at most, at least once; default 1.
    pub tries: u32,
    /// Time between sendings; the lifetime when not said.
    pub interval: Option<Duration>,
    /// The face that the node shall send it to, by its NextHopFaceId.
    pub next_hop_face: Option<u64>,
}

impl Request {
    /// An Interest for exactly `name`, sent once.
    #[must_use]
    pub fn new(name: Name) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: Vec::new(),
            lifetime: Duration::from_secs(4),
            hop_limit: None,
            parameters: None,
            tries: 1,
            interval: None,
            next_hop_face: None,
        }
    }

    /// The Interest, with a Nonce that every sending replaces.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let hint: Vec<NameRef<'_>> = self.forwarding_hint.iter().map(Name::as_ref).collect();
        let builder = InterestBuilder {
            name: self.name.as_ref(),
            can_be_prefix: self.can_be_prefix,
            must_be_fresh: self.must_be_fresh,
            forwarding_hint: &hint,
            nonce: Some([0; 4]),
            lifetime_ms: Some(u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX)),
            hop_limit: self.hop_limit,
        };
        let mut wire = Vec::with_capacity(128);
        match &self.parameters {
            None => builder.write(&mut wire),
            Some(parameters) => {
                builder.write_with_parameters(&mut wire, parameters, |part| sha256(&[part]));
            }
        }
        wire
    }
}

/// Identifies a request of an endpoint; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub(crate) u64);

/// Why there is no Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unanswered {
    /// No answer to the last sending in time.
    #[error("no answer in time")]
    Timeout,
    /// A Nack with this reason.
    #[error("refused with a Nack, reason {0}")]
    Nack(NackReason),
}
