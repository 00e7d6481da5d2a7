//! The system's randomness. Time is always a parameter (milliseconds since the Unix epoch).

use std::time::{SystemTime, UNIX_EPOCH};

/// A source of random bytes, given by the caller so that a simulation can seed it.
///
/// Key generation and ECDSA signing draw from the cryptographic library's own source instead:
/// they must not be predictable in any shell.
pub trait Entropy {
    /// Fills `out` with random bytes.
    fn fill(&mut self, out: &mut [u8]);
}

/// The machine's random source.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, out: &mut [u8]) {
        aws_lc_rs::rand::fill(out).expect("invariant: the library aborts without a random source");
    }
}

/// A number from the machine's random source: for the keys of hashes and the seeds of state machines,
/// which draw none themselves. Only edges call it.
#[must_use]
pub fn random_u64() -> u64 {
    let mut octets = [0; 8];
    SystemEntropy.fill(&mut octets);
    u64::from_ne_bytes(octets)
}

/// The wall clock, in milliseconds since the Unix epoch. Only edges (commands, shells) call it;
/// everything in this crate takes the time as a parameter.
#[must_use]
pub fn unix_now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
