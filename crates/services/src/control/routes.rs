//! Routes as the control interface writes them.

use serde::{Deserialize, Serialize};

/// A static route.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// The prefix.
    pub prefix: String,
    /// Label of the face.
    pub face: String,
    /// Who is meant behind the face: an origin in hexadecimal.
    #[serde(default)]
    pub via: Option<String>,
    /// Its cost.
    #[serde(default)]
    pub cost: u64,
}

/// Who made a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteOrigin {
    /// The control interface.
    #[default]
    Static,
    /// A producer.
    Registered,
}

/// A route with what it carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteInfo {
    /// The prefix.
    pub prefix: String,
    /// Label of the face.
    pub face: String,
    /// Number of the face.
    pub id: u32,
    /// Who is meant behind the face.
    pub via: Option<String>,
    /// Its cost.
    pub cost: u64,
    /// Who made it.
    pub origin: RouteOrigin,
    /// The key that signed its registration.
    pub key: Option<String>,
    /// Milliseconds until it ends by itself.
    pub expires_ms: Option<u64>,
    /// Interests that the routes of this prefix matched.
    pub interests: u64,
    /// Data under the prefix.
    pub data: u64,
    /// Its octets.
    pub bytes: u64,
}
