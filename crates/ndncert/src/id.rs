//! Identifiers of requests.

/// Identifies a request at its authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub [u8; 8]);

impl RequestId {
    /// Reads eight octets.
    #[must_use]
    pub fn read(octets: &[u8]) -> Option<Self> {
        octets.try_into().ok().map(Self)
    }
}
