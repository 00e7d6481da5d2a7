//! Keys of tables and of the data path.

use super::OneOrMany;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The content store. Limits are of the whole node and shared out evenly over the shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cs {
    /// Most packets kept; 0 keeps none.
    pub packets_max: usize,
    /// Most octets of packets kept.
    pub bytes_max: usize,
    /// What is forgotten first when it is full.
    pub policy: CsPolicy,
    /// Whether Data that nobody asked for is kept.
    pub unsolicited: Unsolicited,
    /// Whether Data is put in.
    pub admit: bool,
    /// Whether Interests are answered from it.
    pub serve: bool,
    /// Data that are verified before they are kept. Whoever asked has them at once; what is refused,
    /// or not judged for want of room or time, is not kept. Empty: Data are kept as they come.
    pub verify: Vec<CsVerify>,
    /// Most Data that each shard has verified in a second; beyond it they are not kept.
    pub verify_rate_max: u64,
    /// A second level on a disk.
    pub disk: CsDisk,
}

/// The second level of the content store, on a disk: Data that memory has no room for any more are
/// answered from there, also after a restart. No packet waits for the disk but Interests for what is
/// on it, and these not for long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CsDisk {
    /// The folder; relative to that of the configuration file. Empty: there is no second level.
    pub folder: String,
    /// Most octets of its log, beside which the index takes about a twentieth more. When it is full
    /// the oldest sixteenth gives way.
    pub bytes_max: u64,
    /// Most packets; each takes 8 octets of memory, whether it is there or not.
    pub packets_max: u64,
    /// Nothing is written while less is free on the disk.
    pub free_min_bytes: u64,
    /// Whether Data are written that are asked for a second time: from memory, or again from the
    /// network while about four times as many names as `cs.packets_max` have come since.
    pub second_hit: bool,
    /// Data under these are written when they come.
    pub prefixes: Vec<String>,
    /// Longest that an Interest waits for the disk, in milliseconds; then it is forwarded, and for a
    /// second no other one waits.
    pub wait_ms: u64,
}

impl Default for CsDisk {
    fn default() -> Self {
        Self {
            folder: String::new(),
            bytes_max: 10 << 30,
            packets_max: 2_000_000,
            free_min_bytes: 1 << 30,
            second_hit: true,
            prefixes: Vec::new(),
            wait_ms: 100,
        }
    }
}

/// Names whose Data are verified before they are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CsVerify {
    /// The prefix; of several that match, the longest counts.
    pub prefix: String,
    /// The entry of `trust` by whose rules they are judged.
    pub trust: String,
    /// How many of a hundred names are verified, chosen so that nobody outside knows which. The
    /// others are kept as they come.
    #[serde(default = "hundred")]
    pub sample_percent: u8,
}

const fn hundred() -> u8 {
    100
}

impl Default for Cs {
    fn default() -> Self {
        Self {
            packets_max: 65_536,
            bytes_max: 512 << 20,
            policy: CsPolicy::Lru,
            unsolicited: Unsolicited::DropAll,
            admit: true,
            serve: true,
            verify: Vec::new(),
            verify_rate_max: 500,
            disk: CsDisk::default(),
        }
    }
}

/// What a full content store forgets first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CsPolicy {
    /// The packet whose last use is longest ago.
    Lru,
    /// Unsolicited packets, then stale ones, then the oldest.
    PriorityFifo,
}

/// Whether Data that nobody asked for is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unsolicited {
    /// Never.
    DropAll,
    /// From local faces.
    AdmitLocal,
    /// From other faces.
    AdmitNetwork,
    /// From every face.
    AdmitAll,
}

/// The table of pending Interests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pit {
    /// Most entries, of the whole node; beyond it Interests are dropped as `pit_full`, and a face
    /// above its share under contention as `pit_share`.
    pub entries_max: usize,
    /// Most octets of pending Interests, of the whole node; beyond it Interests are dropped as
    /// `pit_full`, and those of a face whose long ones hold more than its share under contention as
    /// `pit_share`.
    pub bytes_max: usize,
    /// Longest InterestLifetime that is kept to, in milliseconds; longer ones are cut to it.
    pub lifetime_max_ms: u64,
}

impl Default for Pit {
    fn default() -> Self {
        Self { entries_max: 262_144, bytes_max: 128 << 20, lifetime_max_ms: 3_600_000 }
    }
}

/// The table of routes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fib {
    /// Most prefixes; further ones are refused.
    pub routes_max: usize,
}

impl Default for Fib {
    fn default() -> Self {
        Self { routes_max: 1_048_576 }
    }
}

/// The smaller tables of the data path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tables {
    /// Most names and Nonces remembered after their Interest ended, of the whole node; the oldest
    /// are forgotten first.
    pub dead_nonces_max: usize,
    /// How long they are remembered, in milliseconds.
    pub dead_nonce_lifetime_ms: u64,
    /// Most prefixes with measurements of strategies, of each shard; the oldest are forgotten first.
    pub measurements_max: usize,
    /// Most prefixes with a strategy of their own; further ones are refused.
    pub strategies_max: usize,
    /// Most routes registered, all prefixes together; further ones are refused.
    pub rib_routes_max: usize,
    /// Most prefixes that one face may register for itself; further ones are refused. What an
    /// operator or a routing program registers for another face is not counted against this.
    pub rib_routes_per_face_max: usize,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            dead_nonces_max: 1 << 20,
            dead_nonce_lifetime_ms: 6000,
            measurements_max: 65_536,
            strategies_max: 65_536,
            rib_routes_max: 1_048_576,
            rib_routes_per_face_max: 65_536,
        }
    }
}

/// What the data path does to packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Forward {
    /// HopLimit added to Interests that have none; 0 adds none.
    pub default_hop_limit: u8,
    /// Whether a contended PIT or upstream refuses a face what goes beyond its share, and a face
    /// that has more pending than it uses gets shorter turns. Off is for measuring what that does:
    /// then only the limits of the tables bind, and who floods takes from everybody.
    pub fairness: bool,
    /// Name prefixes of the region that this node is in: an Interest whose forwarding hint has a
    /// delegation under one of them is forwarded by its own name.
    pub network_regions: OneOrMany,
}

impl Default for Forward {
    fn default() -> Self {
        Self { default_hop_limit: 0, fairness: true, network_regions: OneOrMany::default() }
    }
}

/// Reassembly of fragments, per face.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reassembly {
    /// Most unfinished packets of one face; further ones are refused as `reassembly_full`.
    pub partial_max: usize,
    /// How long an unfinished packet waits for its next fragment, in milliseconds.
    pub timeout_ms: u64,
    /// Most octets of unfinished packets of one face.
    pub bytes_max: usize,
}

impl Default for Reassembly {
    fn default() -> Self {
        Self { partial_max: 256, timeout_ms: 500, bytes_max: 1 << 20 }
    }
}
