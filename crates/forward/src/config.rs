//! Limits and behaviour of a forwarder.

use onym_tables::HashKey;
use onym_tables::cs::CsConfig;
use onym_tables::dead_nonces;
use onym_wire::mgmt::Scope;

/// Which Data that no pending Interest asked for are cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnsolicitedPolicy {
    /// None.
    #[default]
    DropAll,
    /// Those of local faces.
    AdmitLocal,
    /// Those of other faces.
    AdmitNetwork,
    /// All.
    AdmitAll,
}

impl UnsolicitedPolicy {
    /// Whether Data of a face of this scope is cached.
    #[must_use]
    pub const fn admits(self, scope: Scope) -> bool {
        match self {
            Self::DropAll => false,
            Self::AdmitLocal => matches!(scope, Scope::Local),
            Self::AdmitNetwork => matches!(scope, Scope::NonLocal),
            Self::AdmitAll => true,
        }
    }
}

/// What a forwarder is made with. Each limit is of one shard.
#[derive(Debug, Clone)]
pub struct Config {
    /// Number of the shard, 0 to 63.
    pub shard: u8,
    /// Key of name hashes, the same for all shards of a process.
    pub hash_key: HashKey,
    /// Seed of nonces and probing.
    pub seed: u64,
    /// Most pending Interests.
    pub pit_entries_max: usize,
    /// Most octets of pending Interests.
    pub pit_octets_max: usize,
    /// Most prefixes with next hops.
    pub fib_entries_max: usize,
    /// Content store.
    pub cs: CsConfig,
    /// Most dead nonces.
    pub dead_nonces_max: usize,
    /// How long they are remembered, in milliseconds.
    pub dead_nonce_lifetime_ms: u64,
    /// Most prefixes with measurements.
    pub measurements_max: usize,
    /// Most prefixes with a strategy of their own.
    pub strategies_max: usize,
    /// Most components of an Interest's name.
    pub name_components_max: usize,
    /// Longest InterestLifetime that is kept to, in milliseconds.
    pub lifetime_max_ms: u64,
    /// HopLimit added to Interests that have none; 0 adds none.
    pub default_hop_limit: u8,
    /// What taking an Interest in costs of its HopLimit: 1, or 0 for a part of a node that another
    /// part counts for.
    pub hop: u8,
    /// Whether one upstream may send an Interest to several, so that it may come round though the
    /// upstream answered.
    pub spreads: bool,
    /// Whether a contended PIT or upstream refuses a face what goes beyond its share.
    pub fairness: bool,
    /// What is done with Data that nobody asked for.
    pub unsolicited: UnsolicitedPolicy,
    /// Whether Interests carry a PIT token of ours upstream.
    pub originate_tokens: bool,
}

impl Default for Config {
    /// Defaults for tests and simulations: a fixed key and seed. A shell that meets strangers sets
    /// both from the system's randomness.
    fn default() -> Self {
        Self {
            shard: 0,
            hash_key: HashKey::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210),
            seed: 1,
            pit_entries_max: 262_144,
            pit_octets_max: 128 << 20,
            fib_entries_max: 1_048_576,
            cs: CsConfig::default(),
            dead_nonces_max: 1 << 20,
            dead_nonce_lifetime_ms: dead_nonces::LIFETIME_MS,
            measurements_max: 65_536,
            strategies_max: 65_536,
            name_components_max: 128,
            lifetime_max_ms: 3_600_000,
            default_hop_limit: 0,
            hop: 1,
            spreads: false,
            fairness: true,
            unsolicited: UnsolicitedPolicy::DropAll,
            originate_tokens: true,
        }
    }
}
