//! Configuration of a backward router.

use onym_forward::UnsolicitedPolicy;
use serde::{Deserialize, Serialize};

/// What becomes of Interests that are asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retransmission {
    /// Forwarded after 10 ms, doubled up to the window.
    Suppress,
    /// As `Suppress`, and sent again by the router itself.
    Active,
    /// Forwarded when the window is over.
    Paper,
    /// All go on: a strategy forwarder behind the router decides.
    Strategy,
}

/// Which Data that nobody asked for go on to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsolicited {
    /// None.
    DropAll,
    /// Those from local faces.
    AdmitLocal,
    /// Those from other faces.
    AdmitNetwork,
    /// All.
    AdmitAll,
}

impl From<Unsolicited> for UnsolicitedPolicy {
    fn from(policy: Unsolicited) -> Self {
        match policy {
            Unsolicited::DropAll => Self::DropAll,
            Unsolicited::AdmitLocal => Self::AdmitLocal,
            Unsolicited::AdmitNetwork => Self::AdmitNetwork,
            Unsolicited::AdmitAll => Self::AdmitAll,
        }
    }
}

/// Configuration of a backward router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackwardRouter {
    /// Pending Interests, at least 1.
    pub capacity: usize,
    /// What becomes of Interests that are asked again.
    pub retransmission: Retransmission,
    /// Upper end of the suppression, and the window of `paper`, in milliseconds.
    pub window_ms: u64,
    /// How often `active` sends an Interest again.
    pub retries: u32,
    /// Longer lifetimes are cut to this, in milliseconds.
    pub lifetime_max_ms: u64,
    /// Whether a looping Interest is answered by Nack Duplicate.
    pub nack: bool,
    /// Which Data that nobody asked for go on to the cache.
    pub unsolicited: Unsolicited,
    /// HopLimit added to Interests without one; 0 adds none.
    pub default_hop_limit: u8,
}

impl Default for BackwardRouter {
    fn default() -> Self {
        Self {
            capacity: 65_536,
            retransmission: Retransmission::Suppress,
            window_ms: 250,
            retries: 3,
            lifetime_max_ms: 60_000,
            nack: true,
            unsolicited: Unsolicited::DropAll,
            default_hop_limit: 0,
        }
    }
}
