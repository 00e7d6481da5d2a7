//! Keys of the gateway.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The gateway between push and pull (spec/gateway.md): publications can be asked for by name,
/// and producers feed subscriptions. It is an application of both halves, run by the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gateway {
    /// Which names and scopes mean the same. Empty: no gateway.
    pub map: Vec<GatewayMap>,
    /// Who signs the Data: an identity, key or certificate of the key store. Empty: a key made at
    /// each start, its certificate under the first prefix.
    pub key: String,
    /// The entry of `trust` by whose rules what producers have is published. Empty: whatever they
    /// have.
    pub trust: String,
    /// Most items with a subscription or publications kept.
    pub items_max: usize,
    /// Most Interests that wait for a publication.
    pub interests_max: usize,
    /// Most octets of publications kept as Data; the oldest go first.
    pub kept_bytes_max: usize,
    /// Most items that producers feed.
    pub offers_max: usize,
    /// A subscription that no Interest asked for ends after this, in milliseconds.
    pub idle_ms: u64,
    /// How often producers are asked for a newer version while somebody subscribes, in
    /// milliseconds.
    pub poll_ms: u64,
    /// How often the node's routes are looked at for producers, in milliseconds.
    pub routes_ms: u64,
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            map: Vec::new(),
            key: String::new(),
            trust: String::new(),
            items_max: 4096,
            interests_max: 65_536,
            kept_bytes_max: 64 << 20,
            offers_max: 4096,
            idle_ms: 30_000,
            poll_ms: 1000,
            routes_ms: 1000,
        }
    }
}

/// A name prefix and the scope that it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayMap {
    /// The name prefix; beneath it each label is a component of 8 octets.
    pub prefix: String,
    /// The scope, such as `/1`.
    pub scope: String,
    /// The strategy of the scope: `node-local`, `domain-local`, `inter-domain`.
    #[serde(default = "domain_local")]
    pub strategy: String,
    /// How long caches may answer with a publication as the newest, in milliseconds.
    #[serde(default = "freshness")]
    pub freshness_ms: u64,
    /// Items fed from producers, whatever the routes.
    #[serde(default)]
    pub items: Vec<String>,
    /// Whether every registered name of whole labels beneath the prefix is an item that its
    /// producer feeds.
    #[serde(default = "yes")]
    pub by_routes: bool,
}

fn domain_local() -> String {
    "domain-local".to_owned()
}

fn freshness() -> u64 {
    1000
}

fn yes() -> bool {
    true
}
