//! Replay protection: remembers signed Interests of each signer, so that each is accepted once.
//!
//! Checking and recording are two steps: a packet is recorded only after everything else about it
//! was accepted (packet format 0.3, "Signed Interest").

use crate::digest::sha256;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// Octets of a signer or a nonce that are kept; of longer ones the digest is.
const KEPT_LEN: usize = 32;

/// Bounds and rules of a [`ReplayGuard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayPolicy {
    /// Largest difference between the signature's time and now, in milliseconds.
    pub grace_ms: u64,
    /// Signers remembered; beyond that the one heard longest ago is forgotten. Forgetting opens
    /// no more than the grace window.
    pub keys_max: usize,
    /// Nonces remembered for each signer; beyond that the oldest is forgotten. Time still
    /// increases, so a forgotten nonce cannot come back with its old time.
    pub nonces_max: usize,
    /// Signers not heard for so long are forgotten, in milliseconds.
    pub idle_ms: u64,
}

impl Default for ReplayPolicy {
    /// The defaults of the field: 120 s, 1000 signers, 1000 nonces, one hour.
    fn default() -> Self {
        Self { grace_ms: 120_000, keys_max: 1000, nonces_max: 1000, idle_ms: 3_600_000 }
    }
}

/// The fields of a signature that protect against replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayFields<'a> {
    /// Milliseconds since the Unix epoch.
    pub time_ms: Option<u64>,
    /// The nonce.
    pub nonce: Option<&'a [u8]>,
    /// The sequence number.
    pub seq: Option<u64>,
}

/// Why a signed Interest counts as replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Replayed {
    /// Nothing in it protects against replay.
    #[error("the signature has neither time, nonce nor sequence number")]
    Unprotected,
    /// Its time is further from now than allowed.
    #[error(
        "signature time differs from the clock by {off_ms} ms; at most {grace_ms} ms are allowed"
    )]
    OutsideGrace {
        /// Distance from now, in milliseconds.
        off_ms: u64,
        /// What is allowed, in milliseconds.
        grace_ms: u64,
    },
    /// Its time is not later than that of an earlier one.
    #[error("signature time is not later than that of an earlier command")]
    OldTime,
    /// Its nonce was seen.
    #[error("signature nonce was used before")]
    OldNonce,
    /// Its sequence number is not above that of an earlier one.
    #[error("signature sequence number is not above that of an earlier command")]
    OldSeq,
}

#[derive(Debug, Default)]
struct Seen {
    time_ms: Option<u64>,
    seq: Option<u64>,
    nonces: VecDeque<Box<[u8]>>,
    heard_ms: u64,
}

/// Per-signer memory of times, nonces and sequence numbers.
#[derive(Debug, Default)]
pub struct ReplayGuard {
    policy: ReplayPolicy,
    keys: HashMap<Box<[u8]>, Seen>,
}

impl ReplayGuard {
    /// An empty memory. Whatever signers and nonces are called, 32 octets of each are kept.
    #[must_use]
    pub fn new(policy: ReplayPolicy) -> Self {
        Self { policy, keys: HashMap::new() }
    }

    /// Signers remembered now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no signer is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a packet of `signer` with these fields is new. Changes nothing.
    ///
    /// # Errors
    /// Why it counts as replayed.
    pub fn check(
        &self,
        signer: &[u8],
        fields: ReplayFields<'_>,
        now_ms: u64,
    ) -> Result<(), Replayed> {
        if fields == ReplayFields::default() {
            return Err(Replayed::Unprotected);
        }
        let grace_ms = self.policy.grace_ms;
        let off_ms = fields.time_ms.map_or(0, |time| time.abs_diff(now_ms));
        if off_ms > grace_ms {
            return Err(Replayed::OutsideGrace { off_ms, grace_ms });
        }
        let Some(seen) = self.keys.get(&*kept(signer)) else { return Ok(()) };
        if let (Some(last), Some(time)) = (seen.time_ms, fields.time_ms)
            && time <= last
        {
            return Err(Replayed::OldTime);
        }
        if let (Some(last), Some(seq)) = (seen.seq, fields.seq)
            && seq <= last
        {
            return Err(Replayed::OldSeq);
        }
        match fields.nonce.map(kept) {
            Some(nonce) if seen.nonces.iter().any(|n| **n == *nonce) => Err(Replayed::OldNonce),
            _ => Ok(()),
        }
    }

    /// Remembers an accepted packet of `signer`.
    pub fn record(&mut self, signer: &[u8], fields: ReplayFields<'_>, now_ms: u64) {
        let signer = kept(signer);
        if !self.keys.contains_key(&*signer) {
            self.make_room(now_ms);
            self.keys.insert(signer.as_ref().into(), Seen::default());
        }
        let Some(seen) = self.keys.get_mut(&*signer) else { return };
        seen.heard_ms = now_ms;
        seen.time_ms = seen.time_ms.max(fields.time_ms);
        seen.seq = seen.seq.max(fields.seq);
        if let Some(nonce) = fields.nonce {
            if seen.nonces.len() >= self.policy.nonces_max {
                seen.nonces.pop_front();
            }
            seen.nonces.push_back(kept(nonce).as_ref().into());
        }
    }

    /// Forgets idle signers and, when still full, the one heard longest ago.
    fn make_room(&mut self, now_ms: u64) {
        let idle_ms = self.policy.idle_ms;
        self.keys.retain(|_, seen| now_ms.saturating_sub(seen.heard_ms) <= idle_ms);
        while self.keys.len() >= self.policy.keys_max.max(1) {
            let oldest = self.keys.iter().min_by_key(|(_, seen)| seen.heard_ms);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            self.keys.remove(&key);
        }
    }
}

/// What is kept of a signer or a nonce.
fn kept(octets: &[u8]) -> Cow<'_, [u8]> {
    if octets.len() <= KEPT_LEN {
        return Cow::Borrowed(octets);
    }
    Cow::Owned(sha256(&[octets]).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn at(time_ms: u64, nonce: &[u8]) -> ReplayFields<'_> {
        ReplayFields { time_ms: Some(time_ms), nonce: Some(nonce), seq: None }
    }

    #[test]
    fn a_signature_works_once_and_only_near_its_time() {
        let mut guard = ReplayGuard::default();
        assert_eq!(guard.check(b"k", at(NOW, b"n1"), NOW), Ok(()));
        guard.record(b"k", at(NOW, b"n1"), NOW);
        assert_eq!(guard.check(b"k", at(NOW, b"n2"), NOW), Err(Replayed::OldTime));
        assert_eq!(guard.check(b"k", at(NOW + 1, b"n1"), NOW), Err(Replayed::OldNonce));
        assert_eq!(guard.check(b"k", at(NOW + 1, b"n2"), NOW), Ok(()));
        assert_eq!(guard.check(b"other", at(NOW, b"n1"), NOW), Ok(()));
        let late = guard.check(b"k", at(NOW + 120_001, b"n3"), NOW);
        assert_eq!(late, Err(Replayed::OutsideGrace { off_ms: 120_001, grace_ms: 120_000 }));
    }

    #[test]
    fn sequence_numbers_must_rise_and_something_must_protect() {
        let mut guard = ReplayGuard::default();
        let seq = |seq| ReplayFields { seq: Some(seq), ..ReplayFields::default() };
        assert_eq!(guard.check(b"k", ReplayFields::default(), NOW), Err(Replayed::Unprotected));
        guard.record(b"k", seq(7), NOW);
        assert_eq!(guard.check(b"k", seq(7), NOW), Err(Replayed::OldSeq));
        assert_eq!(guard.check(b"k", seq(8), NOW), Ok(()));
    }

    #[test]
    fn memory_is_bounded_in_signers_and_nonces() {
        let policy = ReplayPolicy { keys_max: 3, nonces_max: 2, ..ReplayPolicy::default() };
        let mut guard = ReplayGuard::new(policy);
        for i in 0..10_u8 {
            guard.record(&[i], at(NOW + u64::from(i), &[i]), NOW + u64::from(i));
        }
        assert_eq!(guard.len(), 3);
        assert_eq!(guard.check(&[9], at(NOW + 9, b"x"), NOW), Err(Replayed::OldTime));
        for i in 0..5_u8 {
            guard.record(b"k", ReplayFields { nonce: Some(&[i]), ..Default::default() }, NOW + 20);
        }
        let nonce = |n: &'static [u8]| ReplayFields { nonce: Some(n), ..Default::default() };
        assert_eq!(guard.check(b"k", nonce(&[4]), NOW), Err(Replayed::OldNonce));
        assert_eq!(guard.check(b"k", nonce(&[0]), NOW), Ok(()), "forgotten: only two are kept");
        guard.record(b"fresh", nonce(&[1]), NOW + 4_000_000);
        assert_eq!(guard.len(), 1, "idle signers are forgotten");
    }

    #[test]
    fn long_nonces_and_signers_are_remembered_in_few_octets() {
        let mut guard = ReplayGuard::default();
        let long = |end: u8| [vec![7; 8000], vec![end]].concat();
        fn nonce(nonce: &[u8]) -> ReplayFields<'_> {
            ReplayFields { nonce: Some(nonce), ..ReplayFields::default() }
        }
        let signer = long(1);
        for end in 0..200 {
            guard.record(&signer, nonce(&long(end)), NOW);
        }
        let (old, new) = (long(199), long(200));
        assert_eq!(guard.check(&signer, nonce(&old), NOW), Err(Replayed::OldNonce));
        assert_eq!(guard.check(&signer, nonce(&new), NOW), Ok(()));
        assert_eq!(guard.check(&long(2), nonce(&old), NOW), Ok(()), "another signer");
        let nonces = guard.keys.values().flat_map(|seen| seen.nonces.iter());
        let octets: usize = guard.keys.keys().chain(nonces).map(|kept| kept.len()).sum();
        assert!(octets <= 201 * KEPT_LEN, "{octets} octets");
    }
}
