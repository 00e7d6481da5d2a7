//! Keys as the control interface writes them.

use serde::{Deserialize, Serialize};

/// A key: exactly one of `spki`, `pem`, `certificate` and `hmac`, in base64 or PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySpec {
    /// Its name; a certificate says it as well.
    #[serde(default)]
    pub name: String,
    /// SubjectPublicKeyInfo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spki: Option<String>,
    /// PUBLIC KEY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pem: Option<String>,
    /// A certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// A shared secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hmac: Option<String>,
    /// What it may sign for; none: what is under its identity.
    #[serde(default)]
    pub prefixes: Vec<String>,
}

/// A key with what it signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyInfo {
    /// Its name.
    pub name: String,
    /// Its algorithm.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What it may sign for.
    pub prefixes: Vec<String>,
    /// Signatures found right.
    pub verified: u64,
    /// Signatures found wrong.
    pub failed: u64,
}
