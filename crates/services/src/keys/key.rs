//! One key.

use crate::control::{KeyInfo, KeySpec};
use crate::verify::Secret;
use onym_wire::cert::ValidityPeriod;
use onym_wire::name::{Name, NameRef};
use std::sync::Arc;

/// One key.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its name.
    pub name: Name,
    /// Full name of the certificate that it came with.
    pub certificate: Option<Name>,
    /// When it counts, where a certificate says so.
    pub(super) validity: Option<ValidityPeriod>,
    /// What it verifies with.
    pub secret: Arc<Secret>,
    /// What it may sign for.
    pub prefixes: Vec<Name>,
    /// Signatures found right and wrong.
    pub verified: u64,
    /// Signatures found wrong.
    pub failed: u64,
    pub(super) number: u64,
    pub(super) spec: KeySpec,
}

impl Key {
    /// Whether it may sign for `name`.
    #[must_use]
    pub fn may_sign(&self, name: NameRef<'_>) -> bool {
        self.prefixes.iter().any(|p| p.as_ref().is_prefix_of(name))
    }

    /// Whether its certificate is valid at this moment, in milliseconds since the Unix epoch; a key
    /// without one always is.
    #[must_use]
    pub fn is_valid_at(&self, now_ms: u64) -> bool {
        let second = i64::try_from(now_ms / 1000).unwrap_or(i64::MAX);
        self.validity.is_none_or(|validity| validity.contains(second))
    }

    /// Its number in the set, never used again.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn info(&self) -> KeyInfo {
        let kind = match &*self.secret {
            Secret::Public(key) => key.key_type().word(),
            Secret::Hmac(_) => "hmac",
        };
        KeyInfo {
            name: self.name.to_string(),
            kind,
            prefixes: self.prefixes.iter().map(ToString::to_string).collect(),
            verified: self.verified,
            failed: self.failed,
        }
    }
}
