//! One Interest and its answer.

use onym_crypto::sha256;
use onym_frame::Buf;
use onym_wire::NackReason;
use onym_wire::data::Data;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::{Name, NameRef};
use std::time::Duration;

/// An Interest that a client sends, and how hard it tries.
///
/// ```
/// use onym_client::Request;
/// let name = "/example/file/32=metadata".parse().unwrap();
/// let request = Request { can_be_prefix: true, must_be_fresh: true, ..Request::new(name) };
/// assert_eq!(request.retries, 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The name.
    pub name: Name,
    /// Data under the name answer as well.
    pub can_be_prefix: bool,
    /// Caches answer with fresh Data only.
    pub must_be_fresh: bool,
    /// How long one Interest waits for its answer; default 4 s.
    pub lifetime: Duration,
    /// Interests sent again after a timeout, a congestion Nack or a duplicate Nonce; default 0.
    pub retries: u32,
    /// HopLimit.
    pub hop_limit: Option<u8>,
    /// Delegations of a forwarding hint, preferred first.
    pub forwarding_hint: Vec<Name>,
    /// ApplicationParameters (unsigned); the name gets their digest.
    pub parameters: Option<Vec<u8>>,
}

impl Request {
    /// An Interest for exactly `name`, sent once.
    #[must_use]
    pub fn new(name: Name) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            lifetime: Duration::from_secs(4),
            retries: 0,
            hop_limit: None,
            forwarding_hint: Vec::new(),
            parameters: None,
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
            lifetime_ms: Some(millis(self.lifetime)),
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

/// A duration as the wire counts it.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Identifies a request of an endpoint until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub(crate) u64);

/// Why there is no Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unanswered {
    /// No answer within the lifetime of the last Interest.
    #[error("no answer in time")]
    Timeout,
    /// A Nack with this reason.
    #[error("refused with a Nack, reason {0}")]
    Nack(NackReason),
    /// The face closed, and is not going to be opened again.
    #[error("the connection to the node was lost")]
    Disconnected,
}

/// Data that arrived, checked.
#[derive(Debug, Clone)]
pub struct Packet {
    bytes: Buf,
    /// Congestion mark that came with it, 0 when none.
    pub congestion_mark: u8,
}

impl Packet {
    /// Wraps a Data element that was checked.
    pub(crate) fn checked(bytes: Buf, congestion_mark: u8) -> Self {
        Self { bytes, congestion_mark }
    }

    /// The view of the Data.
    #[must_use]
    pub fn data(&self) -> Data<'_> {
        Data::parse(&self.bytes).expect("invariant: checked when it arrived")
    }

    /// The Data element.
    #[must_use]
    pub fn bytes(&self) -> &Buf {
        &self.bytes
    }

    /// Its content, without a copy.
    #[must_use]
    pub fn content(&self) -> Buf {
        self.bytes.slice_of(self.data().content)
    }
}
