//! Verifying one signature, away from the tables: what the threads of a verifier do.

use onym_crypto::PublicKey;
use onym_crypto::verify::Signed;
use onym_link::Packet;
use onym_wire::data::Data;
use std::sync::Arc;

/// What a key verifies with.
#[derive(Debug, Clone)]
pub enum Secret {
    /// A public key.
    Public(PublicKey),
    /// A shared secret.
    Hmac(Vec<u8>),
}

/// A signature to verify.
#[derive(Debug)]
pub struct Job {
    /// The Data.
    pub packet: Packet,
    /// The key; `None` when only the digest is checked.
    pub key: Option<Arc<Secret>>,
    /// Which key of the set, for its statistics.
    pub number: u64,
    /// Whether the signature is right, once it was looked at.
    pub valid: Option<bool>,
    /// Nanoseconds that it took.
    pub took_ns: u64,
}

impl Job {
    /// Looks at the signature.
    pub fn run(&mut self) {
        let Ok(data) = Data::parse(&self.packet.bytes) else {
            self.valid = Some(false);
            return;
        };
        let signed = Signed::data(&data);
        let result = match self.key.as_deref() {
            None => signed.verify_digest(),
            Some(Secret::Public(key)) => signed.verify_key(key),
            Some(Secret::Hmac(secret)) => signed.verify_hmac(secret),
        };
        self.valid = Some(result.is_ok());
    }
}
