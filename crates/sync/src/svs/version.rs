//! Versions of the protocol.

/// Protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One sequence number per node; the Interest is signed. ndn-svs, NLSR, NDNts by default.
    V2,
    /// Sequence numbers by bootstrap time; a signed Data inside. ndnd, NDNts when asked.
    V3,
}

impl Version {
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }
}
