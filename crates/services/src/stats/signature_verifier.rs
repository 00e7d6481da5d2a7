//! Statistics of a signature verifier.

use super::Durations;
use serde::Serialize;

/// A signature verifier.
#[derive(Debug, Clone, Serialize)]
pub struct SignatureVerifier {
    /// Signatures that are wrong.
    pub invalid: u64,
    /// Signatures that are right.
    pub valid: u64,
    /// Data whose key is not known.
    pub unknown_key: u64,
    /// Data without a signature of a key.
    pub unsigned: u64,
    /// Data whose key may not sign their name.
    pub untrusted: u64,
    /// Data that were not sampled.
    pub skipped: u64,
    /// Probability that a signature is verified.
    pub sampling: f64,
    /// Verifications under way.
    pub queue: u64,
    /// Keys known.
    pub keys: u64,
    /// Certificates fetched.
    pub fetched: u64,
    /// Rules sent to a name filter.
    pub rules_sent: u64,
    /// Time of a verification.
    pub verify_us: Durations,
    /// Time of all verifications together, in nanoseconds.
    pub verify_ns: u64,
    /// The last whole period.
    pub period: FailurePeriod,
}

/// A period of a signature verifier.
#[derive(Debug, Clone, Serialize)]
pub struct FailurePeriod {
    /// Its length, in milliseconds.
    pub ms: u64,
    /// Signatures that are wrong.
    pub invalid: u64,
}

impl SignatureVerifier {
    pub(super) fn add_thread(&mut self, other: &Self) {
        // What was verified is verified with the least of the threads' probabilities or more.
        self.sampling = self.sampling.min(other.sampling);
        for (sum, n) in [
            (&mut self.invalid, other.invalid),
            (&mut self.valid, other.valid),
            (&mut self.unknown_key, other.unknown_key),
            (&mut self.unsigned, other.unsigned),
            (&mut self.untrusted, other.untrusted),
            (&mut self.skipped, other.skipped),
            (&mut self.queue, other.queue),
            (&mut self.fetched, other.fetched),
            (&mut self.rules_sent, other.rules_sent),
            (&mut self.verify_ns, other.verify_ns),
            (&mut self.period.invalid, other.period.invalid),
        ] {
            *sum += n;
        }
        // Every thread has every key.
        self.keys = self.keys.max(other.keys);
        self.verify_us.add(&other.verify_us);
    }
}
