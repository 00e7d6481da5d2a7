//! Changes that a page may ask for, as their bodies say them. Whether the user may is the node's to say.

use serde::Deserialize;

/// A change of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its structure says")]
pub enum Change {
    FaceCreate(FaceCreate),
    FaceDestroy(FaceDestroy),
    RouteAdd(RouteAdd),
    RouteRemove(RouteRemove),
    StrategySet(StrategySet),
    StrategyUnset(StrategyUnset),
    CacheSettings(CacheSettings),
    CacheErase(CacheErase),
}

/// `onym face create`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceCreate {
    /// Remote URI.
    pub uri: String,
    /// Local URI, for Ethernet.
    #[serde(default)]
    pub local: Option<String>,
    /// `persistent` or `permanent`.
    #[serde(default)]
    pub persistency: Option<String>,
}

/// `onym face destroy`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceDestroy {
    /// Its number.
    pub face: u64,
}

/// `onym route add`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteAdd {
    /// Prefix.
    pub prefix: String,
    /// Face, or remote URI.
    pub via: String,
    /// Cost.
    #[serde(default)]
    pub cost: u64,
}

/// `onym route remove`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteRemove {
    /// Prefix.
    pub prefix: String,
    /// Face.
    pub face: u64,
    /// Origin, a word or a number.
    pub origin: String,
}

/// `onym strategy set`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategySet {
    /// Prefix.
    pub prefix: String,
    /// A word or a name.
    pub strategy: String,
}

/// `onym strategy unset`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyUnset {
    /// Prefix.
    pub prefix: String,
}

/// `onym cs config`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSettings {
    /// Packets at most.
    #[serde(default)]
    pub capacity: Option<u64>,
    /// Whether new packets are admitted.
    #[serde(default)]
    pub admit: Option<bool>,
    /// Whether Interests are answered.
    #[serde(default)]
    pub serve: Option<bool>,
}

/// `onym cs erase`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheErase {
    /// Prefix.
    pub prefix: String,
}
